"""RawKernel in CuPy's form, and variables of a module as arrays of their elements."""

import numpy as np
import pytest

import labkit
import simt

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x % 32] = a;
    __syncthreads();
    if (i < n) y[i] = tile[(threadIdx.x + 1) % 32] * x[i] + y[i] + OFFSET;
}
template <class T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
"""


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def test_a_raw_kernel_is_called_as_cupys():
    kernel = labkit.RawKernel(SAXPY, "saxpy", ("-DOFFSET=1",))
    assert isinstance(kernel, simt.Kernel)
    x = np.arange(100, dtype=np.float32)
    y = np.full(100, np.float32(2))
    kernel((2,), (64,), (np.float32(3), x, y, np.int32(100)))
    np.testing.assert_array_equal(y, 3 * np.arange(100) + 3)
    kernel.compile()
    assert (kernel.name, kernel.code, kernel.options, kernel.backend) == (
        "saxpy",
        SAXPY,
        ("-DOFFSET=1",),
        "nvrtc",
    )
    figures = kernel.attributes
    assert figures["shared_size_bytes"] == kernel.shared_size_bytes == 4 * 32
    assert figures["max_threads_per_block"] == kernel.max_threads_per_block == 1024
    assert figures["max_dynamic_shared_size_bytes"] == 48 * 1024 - 128
    assert figures["num_regs"] == kernel.num_regs > 0
    assert figures["local_size_bytes"] == kernel.local_size_bytes == 0


def test_it_may_be_an_instance_and_is_checked_as_any_kernel():
    kernel = simt.RawKernel(SAXPY, "fill<double>", options=("-DOFFSET=0",), backend="nvcc")
    x = np.zeros(32)
    kernel((1,), (32,), (x, np.float64(2.5)))
    assert x.tolist() == [2.5] * 32
    (finding,) = kernel.check((1,), (33,), (x, np.float64(1)))
    assert (finding.kind, finding.line) == ("out of bounds", 9)


def test_what_it_is_not_asked_for():
    with pytest.raises(simt.CompileError, match="OFFSET"):
        simt.RawKernel(SAXPY, "saxpy")
    with pytest.raises(simt.SimtError, match="no kernel is called `axpy`"):
        simt.RawKernel(SAXPY, "axpy", ("-DOFFSET=0",))
    with pytest.raises(ValueError, match="backend='cc'"):
        simt.RawKernel(SAXPY, "saxpy", backend="cc")
    with pytest.raises(ValueError, match="jitify"):
        simt.RawKernel(SAXPY, "saxpy", jitify=True)


VARIABLES = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Pair { int first; float second; };
__constant__ float weights[2][3]; // __constant__ int weights[6];
__device__ int seen = -7;
__device__ unsigned long long ticket = 5;
static __device__ const unsigned char table[4] = {1, 2, 255, 4};
__device__ __half halves[4];
__device__ __nv_bfloat16 brains[2];
__device__ float4 vectors[2];
__device__ uint2 words;
__device__ Pair pairs[2];
__device__ double sums[3] = {0.5, 1.5, -2.5};
__device__ bool flag = true;
__device__ signed char small = -3;
namespace deep { __device__ short count[2] = {-1, 2}; }
template <class T> __device__ T generic;
extern "C" __global__ void use(float* out) {
    int i = threadIdx.x;
    out[0] = weights[1][2] + seen + ticket + table[i] + __half2float(halves[i]) + vectors[1].z;
    out[1] = __bfloat162float(brains[i]) + words.y + pairs[1].second + sums[i] + flag + small;
    out[2] = deep::count[i] + generic<float>;
}
"""
TYPES = {
    "weights": ("float32", 6),
    "seen": ("int32", 1),
    "ticket": ("uint64", 1),
    "table": ("uint8", 4),
    "halves": ("float16", 4),
    "brains": ("bfloat16", 2),
    "vectors": ("float32", 8),
    "words": ("uint32", 2),
    "pairs": ("uint8", 16),
    "sums": ("float64", 3),
    "flag": ("bool", 1),
    "small": ("int8", 1),
    "deep::count": ("int16", 2),
    "generic<float>": ("float32", 1),
}


def test_variables_are_arrays_of_their_elements():
    module = simt.RawModule(code=VARIABLES, name_expressions=["&generic<float>"])
    found = {name: module.get_global(name) for name in ("weights", *TYPES)}
    assert {name: (each.dtype.name, each.size) for name, each in found.items()} == TYPES
    assert found["seen"].tolist() == [-7]
    assert found["ticket"].tolist() == [5]
    assert found["table"].tolist() == [1, 2, 255, 4]
    assert found["sums"].tolist() == [0.5, 1.5, -2.5]
    assert (found["small"].tolist(), found["deep::count"].tolist()) == ([-3], [-1, 2])
    found["weights"][:] = np.arange(6)  # later launches see changes
    found["halves"][:] = 0.5
    found["vectors"][6] = 100
    out = np.zeros(3, np.float32)
    module.get_function("use")((1,), (1,), (out,))
    assert out[0] == 5 - 7 + 5 + 1 + 0.5 + 100
    same = np.ndarray((6,), np.float32, module.get_global("weights"))  # as with CuPy
    assert same.tolist() == list(range(6))
