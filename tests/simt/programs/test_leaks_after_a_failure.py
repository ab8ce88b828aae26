"""After a kernel's mistake no call frees memory any more: what a checked program then holds is no leak."""

import pytest

from simt.programs.program import build_program

SOURCE = r"""
#include <cassert>
#include <cstring>
__global__ void fails(int n) { assert(threadIdx.x < n); }
int main(int argc, char **argv)
{
    int *freed, *kept;
    cudaMalloc(&freed, 64), cudaMalloc(&kept, 128);
    fails<<<1, 32>>>(strcmp(argv[1], "fails") ? 32 : 8);
    cudaDeviceSynchronize();
    cudaFree(freed);
    if (argc > 2)
        cudaDeviceReset();
}
"""


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (["fails"], ["assert"]),
        (["fails", "reset"], ["assert"]),
        (["goes well"], ["leak"]),
        (["goes well", "reset"], ["leak"]),
    ],
)
def test_what_no_call_can_free_is_no_leak(nvcc, arguments, kinds):
    found = build_program(SOURCE).run(*arguments, mode="check").mistakes
    assert [kind for kind, _ in found] == kinds
