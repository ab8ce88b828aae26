// Makes calls of a student's function on arrays in a file, which another process fills, reads and times.
// Linked with driver.c; calls.py lays the file out, and stopwatch.py is the other process.
//
// The file `arrays` begins with a struct head. Behind it is for each argument of each call a struct place, and
// then the numbers among the arguments. Each array has pages of its own, of which it touches the first or the
// last byte; before and behind these pages no memory can be read or written.
#ifndef _WIN32
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef MAP_POPULATE
enum { POPULATED = MAP_POPULATE }; // its pages are there before the time is taken
#else
enum { POPULATED = 0 };
#endif
enum { GUARD = 1 << 20, HANDLER_STACK = 1 << 16 }; // bytes; a guard has whole pages

struct place {
    int64_t start, bytes; // in the file; bytes -k: the memory of argument k - 1
    int64_t address;      // where it is in memory, which is told here
};

struct head {
    int64_t calls, arguments, bytes; // bytes: of the head, the places and the numbers
    int64_t call, fault;             // the call that is being made; the address at which it has ended
    struct place place[];
};

const char *labkit_call(void **arguments, void *value);

static struct head *head;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    head->fault = (int64_t)info->si_addr;
} // the handler is gone: the same instruction now ends the process

static void catch_faults(void)
{
    stack_t own = {.ss_sp = malloc(HANDLER_STACK), .ss_size = HANDLER_STACK}; // the function's may be full
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

// Waits until the other process has opened the pipe `go` and closed it.
static void wait_for_go(void)
{
    char nothing;
    int go = open("go", O_RDONLY);
    while (go < 0 || read(go, &nothing, 1) > 0)
        if (go < 0)
            _exit(EXIT_FAILURE);
    close(go);
}

static void *map(void *at, int64_t start, int64_t bytes, int file)
{
    int flags = (at ? MAP_SHARED | MAP_FIXED : MAP_SHARED) | POPULATED;
    void *mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, file, start);
    if (mapped == MAP_FAILED)
        _exit(EXIT_FAILURE);
    return mapped;
}

static char *between_guards(const struct place *place, int file)
{
    int64_t page = sysconf(_SC_PAGESIZE), first = place->start / page * page;
    int64_t bytes = (place->start + place->bytes - first + page - 1) / page * page;
    bytes += bytes ? 0 : page; // an empty array has an address, too
    char *room = mmap(NULL, bytes + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (room == MAP_FAILED)
        _exit(EXIT_FAILURE);
    return (char *)map(room + GUARD, first, bytes, file) + (place->start - first);
}

void labkit_calls(void)
{
    int file = open("arrays", O_RDWR);
    struct head first;
    if (file < 0 || read(file, &first, sizeof first) != sizeof first)
        _exit(EXIT_FAILURE);
    head = map(NULL, 0, first.bytes, file);
    int64_t all = first.calls * first.arguments;
    void **argument = malloc(all * sizeof *argument);
    for (int64_t i = 0; i < all; i++) {
        struct place *place = &head->place[i];
        if (place->bytes < 0)
            argument[i] = argument[i - i % first.arguments - place->bytes - 1];
        else if (place->start < first.bytes)
            argument[i] = (char *)head + place->start;
        else
            argument[i] = between_guards(place, file);
        place->address = (int64_t)argument[i];
    }
    catch_faults();
    wait_for_go(); // now the arrays hold what they should
    char value[16];
    for (int64_t call = 0; call < first.calls; call++) {
        head->call = call;
        labkit_call(argument + call * first.arguments, value);
    }
    head->call = first.calls;
    int done = open("done", O_WRONLY);
    if (done < 0 || write(done, "", 1) != 1)
        _exit(EXIT_FAILURE);
    wait_for_go(); // the other process reads what is there, and how long it took
    _exit(EXIT_SUCCESS);
}
#else
void labkit_calls(void) {}
#endif
