/* What happens before main(), at exit and after fork(); and which device serves the program's calls. */
#include "runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern void *labkit_table[];
extern const char *const labkit_names[];
extern void *const labkit_served[]; /* NULL where the simulator does not serve a function */
extern void *const labkit_missing[];
extern const unsigned labkit_count;
extern const char labkit_cudart[];

void use_server(int socket);
void leave_server_to_parent(void);
bool has_server(void);
void begin_own_memory(void);
void forget_modules(void);

pthread_mutex_t lock;
bool is_checked, is_watched, is_recorded, is_forked, has_begun;
static void *driver;

/* Say whether there is an NVIDIA driver with a GPU. */
static bool has_gpu(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver)
        return false;
    for (unsigned i = 0; i < labkit_count; i++) /* first: the driver may call its own functions by their names */
        labkit_table[i] = dlsym(driver, labkit_names[i]);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
    int devices = 0;
    return init && count && !init(0) && !count(&devices) && devices > 0;
}

static void use_gpu(void) {
    const char *path = getenv("LABKIT_CUDART");
    void *runtime = dlopen(path ? path : labkit_cudart, RTLD_NOW | RTLD_LOCAL);
    if (!runtime) {
        tell("labkit: cannot load the CUDA runtime: %s", dlerror());
        _exit(1);
    }
    void *blas = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL), *random = dlopen("libcurand.so.10", RTLD_NOW);
    for (unsigned i = 0; i < labkit_count; i++) {
        void *found = labkit_table[i] ? labkit_table[i] : dlsym(runtime, labkit_names[i]);
        if (!found && blas)
            found = dlsym(blas, labkit_names[i]);
        if (!found && random)
            found = dlsym(random, labkit_names[i]);
        labkit_table[i] = found ? found : labkit_missing[i];
    }
}

bool follows_order(void) { return is_checked && !is_forked; }

/* A function that has no code here: its number is known to the stub that calls this. */
cudaError_t labkit_refuse(unsigned number) {
    begin_call(labkit_names[number], __builtin_return_address(0));
    return done(refuse(labkit_names[number]));
}

static struct sigaction earlier_fault;

/* The host's code has read or written device memory: say so, and end as the program would with a GPU. */
static void fault(int number, siginfo_t *info, void *context) {
    if (is_checked && is_guarded(info->si_addr, context))
        return;
    if (is_ours(info->si_addr)) {
        char text[256];
        int length = snprintf(text, sizeof text,
                              "labkit: the program's own code on the CPU used address %p, which is device memory. "
                              "Copy it to the host with cudaMemcpy first\n",
                              info->si_addr);
        if (write(2, text, (size_t)length) < 0)
            _exit(1);
    }
    sigaction(number, &earlier_fault, NULL); /* the instruction runs again, and ends the program */
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void make_lock(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
}

/* A child process has no CUDA context if its parent used CUDA before it; else it gets one of its own. */
static void in_child(void) {
    leave_server_to_parent();
    is_recorded = false; /* what the server keeps is the parent's */
    is_forked = has_begun;
    if (!is_forked) {
        begin_own_memory();
        forget_modules();
    }
    make_lock(); /* the parent's belongs to a thread that is not here */
}

static void at_exit(void) {
    if (is_forked || !has_server())
        return;
    struct message message = {0};
    excuse_leaks();
    if (is_watched || is_recorded) /* it has come to its end by itself: only then is memory that is left a leak */
        ask(LAST, &message);
    forget(&message);
    end_server();
}

#define VARIABLE "LABKIT_SERVER"

/* Take the server's socket and the region's file from labkit, where it has started the program; -1 if not. The
   program is told nothing of them: it does the same whether somebody looks or not. */
static int inherited_file(void) {
    char *given = getenv(VARIABLE);
    int socket, file;
    if (!given || sscanf(given, "%d,%d", &socket, &file) != 2)
        return -1;
    unsetenv(VARIABLE);
    size_t name = strlen(VARIABLE) + 1;
    memset(given - name, 0, name + strlen(given)); /* /proc/self/environ shows this memory */
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(file, F_SETFD, FD_CLOEXEC);
    use_server(socket);
    return file;
}

__attribute__((constructor)) static void begin(void) {
    int file = inherited_file();
    const char *device = getenv("LABKIT_DEVICE");
    bool wants_gpu = device && !strcmp(device, "gpu"), wants_simulator = device && !strcmp(device, "simt");
    if (device && *device && !wants_gpu && !wants_simulator && strcmp(device, "auto")) {
        fprintf(stderr, "labkit: LABKIT_DEVICE=%s is unknown; choose gpu, simt or auto\n", device);
        _exit(1);
    }
    const char *mode = getenv("LABKIT_PROGRAM");
    bool needs_simulator = file >= 0 || wants_simulator || (mode && *mode && !wants_gpu);
    if (!needs_simulator && has_gpu()) {
        use_gpu();
        return;
    }
    if (wants_gpu) {
        fprintf(stderr, "labkit: LABKIT_DEVICE=gpu, but this machine has no NVIDIA GPU or no driver\n");
        _exit(1);
    }
    for (unsigned i = 0; i < labkit_count; i++)
        labkit_table[i] = labkit_served[i] ? labkit_served[i] : labkit_missing[i];
    is_checked = mode && !strcmp(mode, "check");
    is_watched = mode && *mode;
    make_lock();
    begin_memory(file);
    is_checked |= allocations->flags & CHECKED;
    is_watched |= allocations->flags & (CHECKED | WATCHED);
    is_recorded = allocations->flags & RECORDED;
    begin_server(); /* it starts while the program's own start goes on */
    pthread_atfork(before_fork, after_fork, in_child);
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &earlier_fault);
}

__attribute__((destructor)) static void end(void) { at_exit(); }
