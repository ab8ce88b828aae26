"""Whole programs whose threads wait for each other: a lock per thread, a barrier of the grid made by hand."""

import os
import subprocess
import sys

import pytest

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
__device__ int count, arrived;
__device__ volatile int gone_on;
__global__ void locked() {
    __shared__ int lock;
    if (threadIdx.x == 0)
        lock = 0;
    __syncthreads();
    int mine = 1;
    while (mine != 0)
        mine = atomicExch(&lock, 1);
    count = count + 1;
    __threadfence();
    atomicExch(&lock, 0);
}
__global__ void met(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
            __threadfence();
            gone_on = 1;
        }
        while (gone_on == 0)
            ;
        __threadfence();
    }
    __syncthreads();
    if (a[n - 1 - i] == n - 1 - i)
        atomicAdd(&count, 1);
}
int main(int argc, char **argv) {
    int blocks = atoi(argv[1]), n = 0, *a;
    cudaMalloc(&a, 1024 * sizeof(int) * (blocks + 1));
    if (blocks)
        met<<<blocks, 1024>>>(a, 1024 * blocks);
    else
        locked<<<1, 64>>>();
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpyFromSymbol(&n, count, sizeof n);
    printf("%s %d\n", cudaGetErrorName(error), n);
    cudaFree(a);
}
"""


@pytest.fixture(scope="module")
def program(nvcc):
    return nvcc("spin.cu", "-o", "spin", spin_cu=SOURCE) / "spin"


def started(program, *call, **environment):
    """Run a call; return its output and messages."""
    environment = os.environ | {"LABKIT_DEVICE": "simt"} | environment
    done = subprocess.run(
        call, cwd=program.parent, env=environment, capture_output=True, text=True, timeout=100
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(("blocks", "expected"), [(0, 64), (140, 140 * 1024)])
def test_threads_that_wait_for_each_other_get_there(program, blocks, expected):
    out, told = started(program, program, str(blocks))
    assert out == f"cudaSuccess {expected}\n", told
    for tool in ("check", "profile"):
        out, told = started(program, sys.executable, "-m", "labkit", tool, program, str(blocks))
        assert f"cudaSuccess {expected}\n" in out, told
        assert tool == "profile" or "no mistake found" in out + told


def test_a_grid_that_does_not_fit_the_gpu_is_told_so(program):
    out, told = started(program, program, "265", LABKIT_GPU="H100 SXM5")
    assert out.startswith("cudaErrorLaunchFailure"), told
    assert "spin.cu:28" in told
    assert "the launch has 265 blocks, the GPU holds 264 of this kernel at once" in told


WAITING = """
__global__ void waits(volatile int *flag) { while (*flag == 0); }
int main(int argc, char **argv) {
    int *flag;
    cudaMalloc(&flag, sizeof(int)), cudaMemset(flag, argc - 1, sizeof(int));
    waits<<<1, 64>>>(flag);
    cudaDeviceSynchronize();
    cudaFree(flag);
}
"""


def test_messages_about_a_kernel_that_waits_name_it_and_its_place_if_that_is_known(built):
    program = built(WAITING)
    _, told, _ = program.run(LABKIT_TIMEOUT="1")
    assert "kernel `waits` has failed" in told
    assert ("stopped in the loop here" in told) == ("main.cu:2" in told) != ("stopped in a loop" in told)
    _, told, _ = program.run("1", LABKIT_PROGRAM="profile")
    assert "no time can be predicted for `waits`: a loop runs" in told and "_Z5waits" not in told
