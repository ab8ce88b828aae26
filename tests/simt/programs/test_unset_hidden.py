"""A variable that only some paths set: optimised code hides it, and `labkit check` says how to see it."""

SOURCE = """#include <cstdio>
__global__ void classify(const float *x, int *kind, int n) {
    int i = threadIdx.x;
    float value;
    if (i < n) value = x[i];
    kind[i] = value > 0.5f ? 1 : 2;
}
int main() {
    float *x; int *kind;
    cudaMalloc(&x, 128); cudaMalloc(&kind, 256);
    cudaMemset(x, 0, 128);
    classify<<<1, 64>>>(x, kind, 32);
    cudaDeviceSynchronize();
    cudaFree(x); cudaFree(kind);
}
"""


def test_a_debug_build_shows_what_the_optimiser_hides(built):
    _, told, _ = built(SOURCE).run(LABKIT_PROGRAM="check")
    assert "labkit check: no mistake found (a build with -G also shows" in told
    _, told, _ = built(SOURCE, "-G").run(LABKIT_PROGRAM="check")
    assert "labkit check: unset variable: main.cu:6" in told


def test_a_right_debug_build_has_no_hint(built):
    right = SOURCE.replace("float value;", "float value = 0;")
    _, told, _ = built(right, "-G").run(LABKIT_PROGRAM="check")
    assert told.strip() == "labkit check: no mistake found"
