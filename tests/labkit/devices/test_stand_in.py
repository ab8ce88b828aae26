"""Kernels that need what a GPU lacks run in the simulator, on copies of the GPU's arrays."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_array import GpuArray

import labkit
from labkit.devices import simulated_fallback
from labkit.devices.select import Device
from simt.common.tensor_map import TensorMap, describe
from simt.compiler.nvrtc import compile_ptx

PLAIN = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] *= 2; }'
BULK = r"""
#include <cuda.h>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void ones(const __grid_constant__ CUtensorMap map, int* done)
{
    __shared__ alignas(128) int tile[8][8];
    tile[threadIdx.x / 8][threadIdx.x % 8] = 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        int start[2] = {8, 0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, start, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        done[0] = 1;
    }
}
"""
WGMMA = 'extern "C" __global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }'


@pytest.mark.parametrize(
    ("source", "capability", "instruction"),
    [
        (PLAIN, "7.5", ""),
        (BULK, "8.6", "fence.proxy.async"),
        (BULK, "9.0", ""),
        (BULK, "12.0", ""),
        (WGMMA, "8.9", "wgmma"),
        (WGMMA, "9.0", ""),
        (WGMMA, "10.0", "wgmma"),  # Hopper's alone
    ],
)
def test_what_a_gpu_lacks(source, capability, instruction):
    assert simulated_fallback.lacking(compile_ptx(source).text, capability) == instruction


def test_a_warning_says_why():
    with pytest.warns(UserWarning, match=r"Tesla T4 .*7\.5.* lacks wgmma.*run in the simulator"):
        simulated_fallback.warn("wgmma", Device("gpu", "Tesla T4", compute_capability="7.5"))


def test_arrays_are_copied_and_copied_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=GpuArray, asarray=np.asarray))
    memory, done = np.zeros((8, 32), np.int32), np.zeros(1, np.int32)
    array = GpuArray(memory[:, 4:20])
    geometry = describe(array, array.data.ptr, (8, 8), 0, None, None, None, "zero", 0)
    args = TensorMap(array, geometry, bytes(128)), GpuArray(done)
    kernel = simulated_fallback.RawModule(code=BULK).get_function("ones")
    assert kernel.check((1,), (64,), args) == []
    assert not memory.any()  # a check leaves the arrays alone
    kernel((1,), (64,), args)
    expected = np.zeros((8, 32), np.int32)
    expected[:, 12:20] = 1
    np.testing.assert_array_equal(memory, expected)
    assert done[0] == 1


@pytest.mark.gpu
def test_it_takes_what_a_gpu_takes(gpu):
    array, done = gpu.zeros((8, 16), np.int32), gpu.zeros(1, np.int32)
    kernel = simulated_fallback.RawModule(code=BULK).get_function("ones")
    kernel((1,), (64,), (labkit.tensor_map(array, (8, 8)), done))
    np.testing.assert_array_equal(array.get(), [[0] * 8 + [1] * 8] * 8)
    assert done.get() == 1
