"""The same calls on a real GPU. All need one: they say so and are skipped elsewhere."""

import subprocess
import sys

import numpy as np
import pytest

import labkit
from labkit import kernels, simt
from labkit.errors import CompileError, LaunchError, SimtError
from labkit.problems import problem

pytestmark = pytest.mark.gpu

SCALE = """
#include <cstdio>
template <typename T, int FACTOR>
__global__ void scale(T* a, int n, T offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = FACTOR * a[i] + offset;
}
"""
DYNAMIC = """
extern "C" __global__ void reverse(int* a, int n)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = a[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = s[n - 1 - i];
}
"""


@pytest.fixture
def scale(gpu):
    name = "scale<float, 3>"
    return labkit.RawModule(code=SCALE, name_expressions=(name,)).get_function(name)


def test_the_gpu_is_chosen(gpu):
    assert labkit.device().kind == "gpu"
    assert labkit.xp is gpu
    assert labkit.RawModule is not simt.RawModule


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("size", [(1, 1, 1), (33, 31, 35), (300, 200, 100)])
def test_matmul_kernels(gpu, dtype, size):
    case = problem("matmul", *size, dtype=dtype, alpha=2, beta=-3)
    for name in kernels.names("matmul"):
        args = case.args(gpu)
        kernels.load(name, DTYPE=case.ctype, TILE=16)(*case.launch(16), args)
        case.verify(case.output(args))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_transpose_kernels(gpu, dtype):
    case = problem("transpose", 1000, 33, dtype=dtype)
    for name in kernels.names("transpose")[1:]:
        args = case.args(gpu)
        rows = 8 if name.endswith("unrolled") else None
        kernels.load(name, DTYPE=case.ctype, TILE=32)(*case.launch(32, rows), args)
        case.verify(case.output(args))


def test_python_numbers_get_the_parameters_type(gpu, scale):
    a = gpu.arange(100, dtype=gpu.float32)
    scale((4,), (32,), (a, 100, 0.5))
    np.testing.assert_array_equal(a.get(), 3 * np.arange(100, dtype=np.float32) + 0.5)
    scale(4, 32, (a, np.int32(100), np.float32(1)))
    np.testing.assert_array_equal(a.get(), 9 * np.arange(100, dtype=np.float32) + 2.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda xp: (np.zeros(4, np.float32), 4, 0.0), r"argument 0 is a NumPy array.*labkit\.xp\.asarray"),
        (lambda xp: (xp.zeros(4, xp.float32), 4), "takes 3 arguments, 2 were given"),
        (lambda xp: (xp.zeros(4, xp.float32), np.int64(4), 0.0), "argument 1 is int64"),
        (lambda xp: (xp.zeros(4, xp.float32), xp.zeros(1), 0.0), "argument 1 .* not an array"),
        (lambda xp: (xp.zeros((4, 4), xp.float32).T, 4, 0.0), "argument 0 is not contiguous"),
    ],
)
def test_wrong_arguments_are_named(gpu, scale, arguments, message):
    with pytest.raises(LaunchError, match=message):
        scale((1,), (32,), arguments(gpu))


def test_impossible_launches_have_the_simulators_sentences(gpu, scale):
    a = gpu.zeros(4, gpu.float32)
    with pytest.raises(LaunchError, match=r"block \(33, 33\) has 1089 threads; a block holds at most 1024"):
        scale((1,), (33, 33), (a, 4, 0.0))
    with pytest.raises(LaunchError, match=r"grid .* is too large"):
        scale((1, 70000), (1,), (a, 4, 0.0))


def test_compile_errors_are_the_simulators(gpu):
    broken = 'extern "C" __global__ void f(int* a)\n{\n    a[0] = b;\n}\n'
    with pytest.raises(CompileError) as on_gpu:
        labkit.RawModule(code=broken)
    with pytest.raises(CompileError) as in_simulator:
        simt.RawModule(code=broken)
    assert on_gpu.value.lines == in_simulator.value.lines
    assert on_gpu.value.lines[0][:2] == (3, "error")
    assert "kernel.cu(3)" in on_gpu.value.log


def test_what_only_the_gpus_compiler_finds_is_a_compile_error(gpu):
    body = "__shared__ float s[20000]; s[threadIdx.x] = a[0]; a[1] = s[0];"
    greedy = 'extern "C" __global__ void f(float* a) { ' + body + " }"
    with pytest.raises(SimtError):
        labkit.RawModule(code=greedy).get_function("f")


def test_variables_of_a_module(gpu):
    source = """__constant__ float weights[4]; namespace deep { __device__ int count = 3; }
    extern "C" __global__ void f(float* x) { x[threadIdx.x] = weights[threadIdx.x] * deep::count; }"""
    module = labkit.RawModule(code=source)
    gpu.ndarray((4,), gpu.float32, module.get_global("weights"))[...] = gpu.arange(4, dtype=gpu.float32)
    gpu.ndarray((1,), gpu.int32, module.get_global("deep::count"))[...] = 5
    x = gpu.zeros(4, gpu.float32)
    module.get_function("f")((1,), (4,), (x,))
    assert x.get().tolist() == [0, 5, 10, 15]
    with pytest.raises(SimtError, match="no __device__ or __constant__ variable is called `w`"):
        module.get_global("w")


def test_an_unknown_kernel_is_named(gpu):
    with pytest.raises(SimtError, match="no kernel is called `scale`; this module has"):
        labkit.RawModule(code=SCALE, name_expressions=("scale<int, 2>",)).get_function("scale")


def test_figures_of_a_kernel(gpu):
    kernel = kernels.load("matmul/2_tiled", TILE=16)
    assert kernel.shared_size_bytes == 2 * 16 * 16 * 4
    assert 16 <= kernel.num_regs <= 255
    assert kernel.local_size_bytes == 0
    assert kernel.max_threads_per_block == 1024
    assert kernel.attributes["num_regs"] == kernel.num_regs


def test_dynamic_shared_memory(gpu):
    kernel = labkit.RawModule(code=DYNAMIC).get_function("reverse")
    a = gpu.arange(20000, dtype=gpu.int32)
    with pytest.raises(LaunchError, match=r"shared_mem=80000.*set kernel\.max_dynamic_shared_size_bytes"):
        kernel((1,), (256,), (a, 20000), shared_mem=80000)
    kernel.max_dynamic_shared_size_bytes = 80000
    kernel((1,), (256,), (a, 20000), shared_mem=80000)
    np.testing.assert_array_equal(a.get(), np.arange(20000)[::-1])


def test_profile_is_the_simulators_and_changes_nothing(gpu):
    case = problem("transpose", 64, 64)
    args = case.args(gpu)
    on_gpu = kernels.load("transpose/2_shared", TILE=32)
    counted = on_gpu.profile(*case.launch(32), args)
    assert gpu.isnan(case.output(args)).all()
    module = simt.RawModule(code=kernels.source("transpose/2_shared"), options=("-DTILE=32",))
    expected = module.get_function("transpose").profile(*case.launch(32), case.args(np))
    assert counted.metrics == expected.metrics


def test_an_illegal_access_is_explained(gpu):
    "In a process of its own: CUDA takes no more work from it afterwards."
    script = """
import labkit
from labkit.device import synchronize
from labkit.errors import InvalidAccess
code = 'extern "C" __global__ void f(int* a) { a[1l << 45] = 1; }'
labkit.RawModule(code=code).get_function("f")((1,), (1,), (labkit.xp.zeros(1, dtype="int32"),))
try:
    synchronize()
except InvalidAccess as error:
    print("caught:", error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "caught:" in done.stdout, done.stderr
    assert "LABKIT_DEVICE=simt" in done.stdout
