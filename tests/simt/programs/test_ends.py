"""However a program ends, it ends as with a GPU, says why, and leaves no process behind."""

import signal
import time
from pathlib import Path

import pytest

SOURCE = r"""
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__managed__ int managed = 5;
__global__ void add(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += i;
}
__global__ void endless(volatile int *flag) { while (!*flag) ; }
__global__ void failing(int n) { assert(threadIdx.x < n); }
__global__ void hello() { printf("hello from thread %d\n", threadIdx.x); }
__global__ void outside(int *out) { out[threadIdx.x + (1 << 28)] = 1; }
__global__ void trap() { __trap(); }

static int sum(int n) { // 3 times 0 + 1 + ... + n - 1
    int *d, total = 0;
    std::vector<int> h(n);
    cudaStream_t s;
    if (cudaStreamCreate(&s) || cudaMalloc(&d, n * sizeof(int)))
        return -1;
    cudaMemsetAsync(d, 0, n * sizeof(int), s);
    for (int i = 0; i < 3; i++)
        add<<<(n + 127) / 128, 128, 0, s>>>(d, n);
    cudaMemcpyAsync(h.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost, s);
    if (cudaStreamSynchronize(s))
        return -2;
    cudaFree(d);
    cudaStreamDestroy(s);
    for (int v : h)
        total += v;
    return total;
}
static void report() { puts(cudaGetErrorName(cudaDeviceSynchronize())); }

int main(int argc, char **argv) {
    auto is = [&](const char *name) { return !strcmp(argv[1], name); };
    int *d;
    if (is("fork-first")) {
        pid_t child = fork();
        int total = sum(child ? 100 : 200), status;
        managed += child ? 1 : 2;
        if (child)
            waitpid(child, &status, 0);
        printf("%s %d %d\n", child ? "parent" : "child", total, managed);
        return 0;
    }
    cudaMalloc(&d, 64);
    cudaMemset(d, 0, 64);
    if (is("fork-after")) {
        pid_t child = fork();
        if (child)
            waitpid(child, nullptr, 0);
        puts(cudaGetErrorName(cudaMalloc(&d, 4)));
    }
    if (is("null")) *(volatile int *)nullptr = 1;
    if (is("touch")) d[0] = 1;
    if (is("endless")) endless<<<1, 1>>>(d), report(), report();
    if (is("waits")) puts("begins"), fflush(stdout), endless<<<1, 1>>>(d), report();
    if (is("assert")) failing<<<1, 4>>>(3), report(), report();
    if (is("trap")) trap<<<1, 1>>>(), report();
    if (is("outside")) outside<<<1, 2>>>(d), report(), cudaDeviceReset(), printf("%d\n", sum(10));
    if (is("exit")) hello<<<1, 2>>>(), exit(3);
    if (is("_exit")) _exit(4);
    if (is("abort")) abort();
    if (is("throw")) throw std::runtime_error("thrown");
    if (is("return")) return hello<<<1, 1>>>(), 5;
    if (is("threads")) {
        std::vector<std::thread> threads;
        std::vector<int> totals(4);
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&, i] { totals[i] = sum(100 * (i + 1)); });
        for (auto &thread : threads)
            thread.join();
        for (int total : totals)
            printf("%d\n", total);
    }
    if (is("thread-exits")) std::thread([] { sum(10), exit(6); }).join();
    if (is("goes-on")) std::thread([] { for (;;) sum(10); }).detach(), usleep(100000), exit(7);
    return 0;
}
"""


def three_sums(n):
    return str(3 * sum(range(n)))


def line_of(text):
    """Return the place of a line of the source."""
    return f"main.cu:{SOURCE[: SOURCE.index(text)].count(chr(10)) + 1}"


# By what the program is told to do: exit code, the lines of its output, a part of its messages ("": none).
ENDS = {
    "fork-first": (0, {f"parent {three_sums(100)} 6", f"child {three_sums(200)} 7"}, ""),
    "fork-after": (0, ["cudaErrorInitializationError", "cudaSuccess"], ""),
    "null": (-signal.SIGSEGV, [], ""),
    "touch": (-signal.SIGSEGV, [], "which is device memory. Copy it to the host with cudaMemcpy first"),
    "endless": (0, ["cudaErrorLaunchTimeout"] * 2, "the kernel ran for more than 2 s"),
    "assert": (0, ["cudaErrorAssert"] * 2, f"{line_of('void failing')}: assertion failed"),
    "trap": (0, ["cudaErrorLaunchFailure"], f"{line_of('void trap')}: the kernel stopped itself"),
    "outside": (
        0,
        ["cudaErrorIllegalAddress", three_sums(10)],
        f"{line_of('void outside')}: invalid global write",
    ),
    "exit": (3, ["hello from thread 0", "hello from thread 1"], ""),
    "_exit": (4, [], ""),
    "abort": (-signal.SIGABRT, [], ""),
    "throw": (-signal.SIGABRT, [], "what():  thrown"),
    "return": (5, ["hello from thread 0"], ""),
    "threads": (0, [three_sums(n) for n in (100, 200, 300, 400)], ""),
    "thread-exits": (6, [], ""),
    "goes-on": (7, [], ""),
}


def left_behind(mark):
    """Return the processes that have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def wait_until_none_is_left(mark):
    """A process that has been ended needs a moment."""
    for _ in range(50):
        if not (found := left_behind(mark)):
            return
        time.sleep(0.1)
    raise AssertionError(f"processes are left: {found}")


@pytest.fixture(scope="module")
def program(built):
    return built(SOURCE)


@pytest.mark.parametrize("what", ENDS)
def test_a_program_ends_as_with_a_gpu(program, what):
    code, lines, message = ENDS[what]
    mark = f"MARK=ends {what} {time.time()}"
    out, told, returned = program.run(what, LABKIT_TIMEOUT="2", MARK=mark.removeprefix("MARK="))
    assert returned == code, told
    assert (set if isinstance(lines, set) else list)(out.splitlines()) == lines
    assert message in told if message else not told
    wait_until_none_is_left(mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_ends_in_the_middle_of_a_kernel(program, number):
    mark = f"MARK=signal {time.time()}"
    process = program.start("waits", MARK=mark.removeprefix("MARK="))
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=20) == -number
    wait_until_none_is_left(mark)
