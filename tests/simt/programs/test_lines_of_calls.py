"""Lines of failed calls and leaks in optimised programs; what the host sees of memory that nobody wrote."""

import re

import pytest

CALLS = """#include <cstdlib>
template <class T> T *made(int n) {
    T *p;
    cudaMalloc(&p, n * sizeof(T));
    return p;
}
int main(int argc, char **) {
    float *a;
    cudaMalloc(&a, 400);
    int *b = made<int>(5);
    if (argc > 1) {
        cudaFree(a);
        cudaFree(b);
        return 0;
    }
    cudaMemcpy(b, a, 1 << 20, cudaMemcpyDefault);
    cudaMemset(a, 0, 4000);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_a_call_has_its_line_where_the_compiler_has_inlined_it(built, level):
    program = built(CALLS, level)
    _, told, _ = program.run(LABKIT_PROGRAM="check")
    places = re.findall(r"labkit check: ([\w ]+): main\.cu:(\d+): (\w+)", told)
    assert places == [
        ("failed call", "16", "cudaMemcpy"),
        ("failed call", "17", "cudaMemset"),
        ("leak", "9", "400"),
        ("leak", "4", "20"),
    ]
    _, told, _ = program.run("free", LABKIT_PROGRAM="check")
    assert told.startswith("labkit check: no mistake found") and told.count("\n") == 1


UNCHECKED = """#include <cstdio>
__global__ void f() {}
int main(int argc, char **argv) {
    std::remove(argv[0]);
    f<<<1, 5000>>>();
    cudaDeviceSynchronize();
}
"""


def test_a_program_whose_file_is_gone_keeps_its_lines(built):
    """Another build of the same program may put its own file in the place of one that runs."""
    _, told, _ = built(UNCHECKED).run(LABKIT_PROGRAM="check")
    assert "failed call: main.cu:5: a kernel launch failed" in told
    assert "unchecked launch: main.cu:5: this launch failed" in told


def test_an_unchecked_launch_is_told_without_lines_too(built):
    _, told, _ = built(UNCHECKED, "-Xlinker", "--strip-debug").run(LABKIT_PROGRAM="check")
    assert "failed call: a kernel launch failed" in told
    assert "unchecked launch: this launch failed" in told


COMPARES = """#include <cmath>
#include <cstdio>
#include <cuda_fp16.h>
__global__ void fill(float *a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 1; }
template <class T> void compare(const void *a, int n) {
    T seen[128];
    cudaMemcpy(seen, a, n * sizeof(T), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += std::fabs((double)seen[i] - 1) > 1e-5;
    printf("%d\\n", wrong);
}
int main(int argc, char **) {
    float *a;
    cudaMalloc(&a, 256);
    fill<<<1, 64>>>(a, argc > 1 ? 64 : 32);
    compare<float>(a, 64);
    if (argc == 1) compare<double>(a + 32, 16);
    if (argc == 1) compare<__half>(a + 32, 64);
    if (argc == 1) compare<int>(a + 32, 32);
    cudaFree(a);
}
"""


def test_a_program_that_compares_sees_what_was_never_written(built):
    """A NaN would hide it: no comparison with one holds."""
    program = built(COMPARES)
    out, told, _ = program.run(LABKIT_PROGRAM="check")
    assert out.split() == ["32", "16", "64", "32"]
    assert told.count("uninitialised copy: main.cu:7:") == 4 or "times in all" in told
    out, told, _ = program.run("all", LABKIT_PROGRAM="check")
    assert out.split() == ["0"]
    assert told.startswith("labkit check: no mistake found") and told.count("\n") == 1
