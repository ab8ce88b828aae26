// Watches a student's function where the compiler instruments it, but has no library that looks: clang without
// AddressSanitizer's runtime, as ziglang comes. Linked with driver.c, which says where the arguments are.
//
// What is found is written as AddressSanitizer writes it. UndefinedBehaviorSanitizer then prints the stack.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif
#ifdef __linux__
#include <ucontext.h>
#endif

enum { FIRST_PAGE = 4096, BELOW_STACK = 1 << 16, HANDLER_STACK = 1 << 18, STACK_BYTES = 1 << 13 };

// driver.c sets these before the call.
extern void **labkit_argument;
extern int64_t *labkit_size, labkit_count, labkit_guard;

static volatile int reached = 1;

static void abort_with_stack(void)
{
    signal(SIGABRT, SIG_DFL);
    if (reached)
        __builtin_unreachable(); // -fsanitize=unreachable prints the stack and aborts
    abort();
}

// A child process, which has the same stack, prints it. The innermost frames will do: a recursion has thousands.
// driver.c calls it in exit().
void __sanitizer_print_stack_trace(void)
{
    fprintf(stderr, "labkit: the stack\n");
    fflush(NULL);
#ifndef _WIN32
    int ends[2];
    pid_t child = pipe(ends) ? -1 : fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        abort_with_stack();
    }
    if (child < 0)
        return;
    close(ends[1]);
    static char text[STACK_BYTES];
    size_t length = 0;
    ssize_t more;
    while (length < sizeof text && (more = read(ends[0], text + length, sizeof text - length)) > 0)
        length += more;
    fwrite(text, 1, length, stderr);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
#endif
}

static void stop(void)
{
    __sanitizer_print_stack_trace();
    signal(SIGABRT, SIG_DFL);
    abort();
}

// The first byte of an access that lies beside an argument; NULL: there is none.
static const char *outside(const char *from, size_t bytes)
{
    for (int64_t i = 0; i < labkit_count; i++) {
        const char *start = labkit_argument[i], *end = start + labkit_size[i];
        if (labkit_size[i] < 0 || from >= end + labkit_guard || from + bytes <= start - labkit_guard)
            continue;
        if (from < start)
            return from;
        if (from + bytes > end)
            return from > end ? from : end;
    }
    return NULL;
}

static void look(const void *from, size_t bytes, const char *verb)
{
    if (!outside(from, bytes))
        return;
    fprintf(stderr, "ERROR: bounds: %s of size %zu at %p\n", verb, bytes, from);
    stop();
}

static void look_in(const char *function, const void *from, size_t bytes, const char *verb)
{
    const char *first = bytes ? outside(from, bytes) : NULL;
    if (!first)
        return;
    fprintf(stderr, "ERROR: bounds: %s of size %zu at %p\n    #0 0x0 in %s (sanitizer)\n", verb, bytes, first, function);
    stop();
}

#define ACCESS(BYTES) \
    void __asan_load##BYTES##_noabort(const void *from) { look(from, BYTES, "READ"); } \
    void __asan_store##BYTES##_noabort(const void *to) { look(to, BYTES, "WRITE"); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
void __asan_loadN_noabort(const void *from, size_t bytes) { look(from, bytes, "READ"); }
void __asan_storeN_noabort(const void *to, size_t bytes) { look(to, bytes, "WRITE"); }
void __asan_handle_no_return(void) {}

void *__asan_memset(void *to, int value, size_t bytes)
{
    look_in("memset", to, bytes, "WRITE");
    return memset(to, value, bytes);
}

void *__asan_memcpy(void *to, const void *from, size_t bytes)
{
    look_in("memcpy", from, bytes, "READ");
    look_in("memcpy", to, bytes, "WRITE");
    return memcpy(to, from, bytes);
}

void *__asan_memmove(void *to, const void *from, size_t bytes)
{
    look_in("memmove", from, bytes, "READ");
    look_in("memmove", to, bytes, "WRITE");
    return memmove(to, from, bytes);
}

#ifdef __linux__
static const char *verb_of(const ucontext_t *context)
{
#ifdef __x86_64__
    return context->uc_mcontext.gregs[REG_ERR] & 2 ? "WRITE" : "READ";
#else
    (void)context;
    return "UNKNOWN";
#endif
}

static int stack_is_full(uintptr_t address, const ucontext_t *context)
{
#ifdef __x86_64__
    uintptr_t top = context->uc_mcontext.gregs[REG_RSP];
#else
    uintptr_t top = context->uc_mcontext.sp;
#endif
    struct { uintptr_t low, high; } near = {top - BELOW_STACK, top + BELOW_STACK};
    return address > near.low && address < near.high;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    if (number == SIGABRT)
        fprintf(stderr, "ERROR: bounds: ABRT\n");
    else if (number == SIGILL)
        fprintf(stderr, "ERROR: bounds: ILL\n");
    else if (number == SIGFPE)
        fprintf(stderr, "ERROR: bounds: FPE\n");
    else if (info->si_code == SI_KERNEL)
        fprintf(stderr, "ERROR: bounds: SEGV on a high value address\n");
    else if (stack_is_full(address, context))
        fprintf(stderr, "ERROR: bounds: stack-overflow\n");
    else
        fprintf(stderr, "ERROR: bounds: SEGV on unknown address %p caused by a %s%s\n", info->si_addr,
                verb_of(context), address < FIRST_PAGE ? ", which points to the zero page" : "");
    stop();
}

__attribute__((constructor)) static void catch_signals(void)
{
    stack_t own = {.ss_sp = malloc(HANDLER_STACK), .ss_size = HANDLER_STACK}; // the student's may be full
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}
#endif
