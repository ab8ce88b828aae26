/* Requests to the server, one at a time, over a pair of sockets. */
#include "runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern int region_file;
extern const char labkit_python[], labkit_path[], labkit_version[]; /* where the library was made: see library.py */

static int server_socket = -1;
static pid_t server;
static bool server_is_gone, has_answered;

void put(struct message *message, const void *data, size_t bytes) {
    if (message->length + bytes > message->room) {
        message->room = 2 * (message->length + bytes) + 64;
        message->data = realloc(message->data, message->room);
        if (!message->data)
            abort();
    }
    memcpy(message->data + message->length, data, bytes);
    message->length += bytes;
}

void put_u32(struct message *message, uint32_t number) { put(message, &number, sizeof number); }
void put_u64(struct message *message, uint64_t number) { put(message, &number, sizeof number); }

void put_text(struct message *message, const char *text) {
    put_u32(message, (uint32_t)strlen(text));
    put(message, text, strlen(text));
}

void get(struct message *message, void *data, size_t bytes) {
    if (message->read + bytes > message->length) {
        memset(data, 0, bytes);
        return;
    }
    memcpy(data, message->data + message->read, bytes);
    message->read += bytes;
}

uint32_t get_u32(struct message *message) {
    uint32_t number;
    get(message, &number, sizeof number);
    return number;
}

uint64_t get_u64(struct message *message) {
    uint64_t number;
    get(message, &number, sizeof number);
    return number;
}

double get_double(struct message *message) {
    double number;
    get(message, &number, sizeof number);
    return number;
}

void forget(struct message *message) {
    free(message->data);
    memset(message, 0, sizeof *message);
}

void note(enum note kind, const uint64_t *numbers, size_t count, const double *times, size_t time_count) {
    struct message message = {0};
    put_u32(&message, kind);
    put(&message, numbers, count * sizeof *numbers);
    put(&message, times, time_count * sizeof *times);
    ask(NOTED, &message);
    forget(&message);
}

static bool send_all(const void *data, size_t bytes) {
    for (const char *at = data; bytes;) {
        ssize_t sent = send(server_socket, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent, bytes -= (size_t)sent;
    }
    return true;
}

static bool receive_all(void *data, size_t bytes) {
    for (char *at = data; bytes;) {
        ssize_t got = recv(server_socket, at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got, bytes -= (size_t)got;
    }
    return true;
}

bool ask(enum request request, struct message *message) {
    if (server_is_gone)
        return false;
    begin_server();
    uint32_t head[2] = {request, (uint32_t)message->length}, length;
    bool is_answered = send_all(head, sizeof head) && send_all(message->data, message->length) &&
                       receive_all(&length, sizeof length);
    message->length = message->read = 0;
    if (is_answered && length > message->room) {
        message->data = realloc(message->data, length);
        message->room = length;
        if (!message->data)
            abort();
    }
    if (!is_answered || !receive_all(message->data, length)) {
        if (server_is_gone)
            return false;
        server_is_gone = true;
        if (!has_answered) /* it has never started, and has said why */
            _exit(1);
        tell("labkit: the simulator has ended, so all further calls of CUDA fail");
        return false;
    }
    message->length = length;
    has_answered = true;
    return true;
}

/* Use a server that runs already, by this end of its sockets. */
void use_server(int socket) { server_socket = socket; }

/* Start Python with the simulator. It inherits one end of the sockets, and the file of the memory. */
void begin_server(void) {
    if (server_socket >= 0)
        return;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        tell("labkit: cannot create sockets for the simulator: %s", strerror(errno));
        exit(1);
    }
    const char *python = getenv("LABKIT_PYTHON");
    char numbers[2][16];
    snprintf(numbers[0], sizeof *numbers, "%d", 100);
    snprintf(numbers[1], sizeof *numbers, "%d", 101);
    char *arguments[] = {(char *)(python ? python : labkit_python), "-P", "-m", "simt.programs.server", numbers[0],
                         numbers[1], (char *)labkit_version, NULL};
    /* The program's own LD_PRELOAD and OMP settings are not the simulator's. */
    size_t count = 0;
    while (environ[count])
        count++;
    char **variables = calloc(count + 2, sizeof *variables);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "PYTHONPATH=", 11))
            variables[kept++] = environ[i];
    const char *earlier = getenv("PYTHONPATH");
    size_t room = strlen(labkit_path) + (earlier ? strlen(earlier) : 0) + 16;
    char *path = malloc(room);
    snprintf(path, room, "PYTHONPATH=%s%s%s", labkit_path, earlier ? ":" : "", earlier ? earlier : "");
    variables[kept] = path;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 100);
    posix_spawn_file_actions_adddup2(&actions, region_file, 101);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn(&server, arguments[0], &actions, &attributes, arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(variables);
    free(path);
    close(ends[1]);
    if (failed) {
        tell("labkit: cannot start %s, which runs the simulator: %s. Set LABKIT_PYTHON to another Python that has "
             "labkit",
             arguments[0], strerror(failed));
        _exit(1);
    }
    server_socket = ends[0];
}

/* Ask for the last report and wait until the server has ended, so that its lines stand before the shell's. */
void end_server(void) {
    if (server_socket < 0)
        return;
    server_is_gone = true; /* other threads of the program may go on for a moment: they get errors */
    shutdown(server_socket, SHUT_RDWR);
    close(server_socket);
    server_socket = -1;
    int status;
    while (server > 0 && waitpid(server, &status, 0) < 0 && errno == EINTR)
        ;
    server = 0;
}

/* In a child of fork() the server is the parent's. */
void leave_server_to_parent(void) {
    if (server_socket >= 0)
        close(server_socket);
    server_socket = -1;
    server = 0;
}

bool has_server(void) { return server_socket >= 0; }
