// Calls a student's function in a process of its own. function.py builds it, run.py starts and reads it.
//
//   driver MEMORY GUARD SAMPLES SECONDS SIZE...
//   driver MEMORY                                 makes the calls of calls.c
//
// MEMORY   limit of the address space in bytes; 0: none
// GUARD    bytes before and behind each argument that must stay as they are; 0: AddressSanitizer has its own
// SAMPLES  0: call once and write the arguments back; else measure so many calls, SECONDS at most
// SIZE     of each argument in bytes; -k: the memory of argument k - 1
//
// It reads the arguments' bytes from the file `input`. In the file `output` it leaves before the call the number
// and addresses of the arguments, and behind these, after it, a `struct after` and the arguments or samples.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <malloc.h>
#include <windows.h>
#else
#include <sys/resource.h>
#include <time.h>
#endif

enum { ALIGNMENT = 64, MIN_SAMPLES = 3, NO_MEMORY = 77, GUARD_BYTE = 0xA5, STACK_BYTES = 8 << 20 };

struct after {
    int64_t damaged_argument, damaged_byte; // the first guard that was written to: its argument or -1; the byte's offset
    char type[8], value[16];                // what the function returned: its struct code ("" if no number), its bytes
};

// Generated, behind the student's source. Returns the struct code of what the function returned.
const char *labkit_call(void **arguments, void *value);

void labkit_calls(void); // calls.c

#ifdef __linux__
extern void __sanitizer_print_stack_trace(void) __attribute__((weak)); // NULL in a build without sanitizers
#endif

// For bounds.c: the arguments, and how many bytes around each are nobody's.
void **labkit_argument;
int64_t *labkit_size, labkit_count, labkit_guard;

static int in_call;

// exit() in the student's function: leave its line in the report.
static void at_exit(void)
{
#ifdef __linux__
    if (in_call && __sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
#endif
}

static void set_limits(int64_t memory)
{
    (void)memory; // only Linux has that limit
#ifndef _WIN32
    struct rlimit none = {0, 0}, stack;
    setrlimit(RLIMIT_CORE, &none);
    getrlimit(RLIMIT_STACK, &stack); // may have none: NVRTC takes it away from the process that it runs in
    if (stack.rlim_cur > STACK_BYTES) {
        stack.rlim_cur = STACK_BYTES;
        setrlimit(RLIMIT_STACK, &stack);
    }
#ifdef __linux__
    struct rlimit limit = {(rlim_t)memory, (rlim_t)memory};
    if (memory)
        setrlimit(RLIMIT_AS, &limit);
#endif
#endif
}

static double milliseconds(void)
{
#ifdef _WIN32
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    return 1e3 * ticks.QuadPart / per_second.QuadPart;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * now.tv_sec + 1e-6 * now.tv_nsec;
#endif
}

static void *allocate(size_t bytes)
{
    void *block = NULL;
#ifdef _WIN32
    block = _aligned_malloc(bytes, ALIGNMENT);
#else
    if (posix_memalign(&block, ALIGNMENT, bytes))
        block = NULL;
#endif
    if (!block)
        exit(NO_MEMORY);
    return block;
}

// Offset from `start` of the guard byte nearest to the argument that was written to; 0: none.
static int64_t damaged(const unsigned char *start, int64_t size, int64_t guard)
{
    for (int64_t i = 0; i < guard; i++) {
        if (start[size + i] != GUARD_BYTE)
            return size + i;
        if (start[-1 - i] != GUARD_BYTE)
            return -1 - i;
    }
    return 0;
}

int main(int argc, char **argv)
{
    set_limits(atoll(argv[1]));
    setvbuf(stdout, NULL, _IONBF, 0); // what is printed before a crash must not be lost
    atexit(at_exit);
    if (argc == 2) {
        labkit_calls();
        return EXIT_FAILURE;
    }
    int64_t guard = atoll(argv[2]), count = argc - 5;
    int samples = atoi(argv[3]), taken = 0;
    double seconds = atof(argv[4]);

    int64_t *size = allocate(count * sizeof *size);
    void **argument = allocate(count * sizeof *argument), **original = allocate(count * sizeof *original);
    double *times = allocate(samples * sizeof *times);
    FILE *input = fopen("input", "rb"), *output = fopen("output", "wb");
    if (!input || !output)
        return EXIT_FAILURE;
    for (int64_t i = 0; i < count; i++) {
        size[i] = atoll(argv[5 + i]);
        if (size[i] < 0) {
            argument[i] = argument[-size[i] - 1];
            continue;
        }
        unsigned char *block = allocate(size[i] + 2 * guard);
        memset(block, GUARD_BYTE, guard);
        memset(block + guard + size[i], GUARD_BYTE, guard);
        argument[i] = block + guard;
        if (fread(argument[i], 1, size[i], input) != (size_t)size[i])
            return EXIT_FAILURE;
        original[i] = memcpy(allocate(samples ? size[i] : 0), argument[i], samples ? size[i] : 0);
    }
    fclose(input);
    fwrite(&count, sizeof count, 1, output);
    fwrite(argument, sizeof *argument, count, output);
    fflush(output);
    labkit_argument = argument, labkit_size = size, labkit_count = count, labkit_guard = guard;

    struct after after = {.damaged_argument = -1};
    in_call = 1;
    const char *type = labkit_call(argument, after.value); // the only call, or the warm-up
    double end = milliseconds() + 1e3 * seconds;
    while (taken < samples && (taken < MIN_SAMPLES || milliseconds() < end)) {
        for (int64_t i = 0; i < count; i++)
            if (size[i] > 0)
                memcpy(argument[i], original[i], size[i]);
        double start = milliseconds();
        labkit_call(argument, after.value);
        times[taken++] = milliseconds() - start;
    }
    in_call = 0;

    strncpy(after.type, type, sizeof after.type - 1);
    for (int64_t i = 0; i < count && after.damaged_argument < 0; i++) {
        after.damaged_byte = size[i] < 0 ? 0 : damaged(argument[i], size[i], guard);
        if (after.damaged_byte)
            after.damaged_argument = i;
    }
    fwrite(&after, sizeof after, 1, output);
    for (int64_t i = 0; i < count && !samples; i++)
        if (size[i] > 0)
            fwrite(argument[i], 1, size[i], output);
    fwrite(times, sizeof *times, taken, output);
    return fclose(output) ? EXIT_FAILURE : EXIT_SUCCESS;
}
