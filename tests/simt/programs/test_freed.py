"""An access of memory that has been freed is told with the line that freed it."""

import re

SOURCE = """__global__ void k(float *p, float *q) { q[0] = p[3]; }
template <class T> void drop(T *p) {
    cudaFree(p);
}
int main(int argc, char **) {
    float *a, *b, *c;
    cudaMalloc(&a, 400);
    cudaMalloc(&b, 400);
    cudaMemset(a, 0, 400);
    if (argc == 2) drop(a);
    if (argc == 3) cudaMalloc(&c, 400), cudaFree(c);
    k<<<1, 1>>>(argc == 4 ? a + 97 + argc : a, b);
    cudaDeviceSynchronize();
    if (argc != 2) cudaFree(a);
    cudaFree(b);
}
"""


def test_an_access_of_freed_memory_names_the_line_that_freed_it(built):
    program = built(SOURCE, "-O2")
    _, told, _ = program.run("freed", LABKIT_PROGRAM="check")
    found = re.findall(r"out of bounds: main\.cu:1: invalid global read of 4 bytes: (.*)", told)
    assert found == [
        "byte 12 of array from cudaMalloc number 1 (400 bytes), which has been freed in main.cu:3"
    ]


def test_other_accesses_are_told_as_before(built):
    program = built(SOURCE, "-O2")
    for arguments in ((), ("another", "one")):
        _, told, _ = program.run(*arguments, LABKIT_PROGRAM="check")
        assert told.startswith("labkit check: no mistake found") and told.count("\n") == 1
    _, told, _ = program.run("past", "the", "end", LABKIT_PROGRAM="check")
    assert "20 bytes past the end of array from cudaMalloc number 1 (400 bytes)" in told
    assert "freed" not in told.split("labkit check: ")[1]
