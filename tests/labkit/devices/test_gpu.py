"""The same calls on a real GPU. All need one: they say so and are skipped elsewhere."""

import subprocess
import sys

import numpy as np
import pytest
from test_rehearsal import PLANTED

import labkit
import simt
from labkit import kernels
from labkit.devices import preflight
from labkit.devices.select import synchronize
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import _solved, problem
from simt.common.compare import Mismatch
from simt.common.errors import CompileError, InvalidAccess, LaunchError, OutOfMemory, SimtError
from simt.launch import twins

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


# Sizes within a tile, across tiles, beyond them by one; K and N that four divides and does not divide.
SIZES = [(1, 1, 1), (33, 31, 35), (300, 200, 100), (129, 257, 65), (258, 130, 62), (512, 512, 512)]
PRODUCTS = [name for name in kernels.names("matmul") if name != "matmul/0_peak"]
TENSOR_CORES = "matmul/tensor_cores"


def of_dtypes(names):
    """Each name with each dtype that its source can have."""
    others = [(name, dtype) for name in names for dtype in ("int32", "float64") if has_dtype(name)]
    return [(name, "float32") for name in names] + others


def has_dtype(name):
    return "DTYPE" in kernels.parameters(name)


def launched(name, case, xp, **parameters):
    """Output of one launch of a kernel of the course."""
    args = case.args(xp)
    kernel = kernels.load(name, **({"DTYPE": case.ctype} if has_dtype(name) else {}), **parameters)
    kernel(*kernels.launch(name, case, **parameters), args)
    return case.output(args)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("name", "dtype"), of_dtypes(PRODUCTS))
def test_matmul_kernels(gpu, name, dtype, size):
    case = problem("matmul", *size, dtype=dtype, alpha=2, beta=-3)
    case.verify(launched(name, case, gpu), unit_of_inputs=2**-11 if name == TENSOR_CORES else 0)


@pytest.mark.parametrize("precision", ["tf32", "half"])
def test_tensor_cores_round_and_no_more(gpu, precision):
    case = problem("matmul", 200, 300, 100)
    got = launched(TENSOR_CORES, case, gpu, PRECISION=precision)
    case.verify(got, unit_of_inputs=2**-11)
    with pytest.raises(Mismatch):
        case.verify(got)


@pytest.mark.parametrize("size", [(1, 1), (1000, 33), (64, 4100), (513, 511)], ids=str)
@pytest.mark.parametrize(("name", "dtype"), of_dtypes(kernels.names("transpose")[1:]))
def test_transpose_kernels(gpu, name, dtype, size):
    case = problem("transpose", *size, dtype=dtype)
    case.verify(launched(name, case, gpu))


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


# --- a launch is tried in the simulator first ---------------------------------------------------------------


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_planted_mistake_does_not_reach_the_gpu(gpu, planted):
    source, old, new, error, message = planted
    case = problem("matmul", 1025, 1023, 1027)
    args = case.args(gpu)
    kernel = labkit.RawModule(code=source.replace(old, new)).get_function("matmul")
    with pytest.raises(error, match=message.replace("4097", "1025").replace("4099", "1027")):
        kernel(*case.launch(16), args, timeout=0.5)
    synchronize()
    assert gpu.isnan(case.output(args)).all(), "nothing was written"
    labkit.RawModule(code=source).get_function("matmul")(*case.launch(16), args)
    case.verify(case.output(args))


def test_a_launch_is_tried_once(gpu, monkeypatch):
    tried = []
    monkeypatch.setattr(preflight, "rehearse", lambda _, launch: tried.append((launch.grid, launch.block)))
    kernel = labkit.RawModule(code=kernels.source("matmul/1_naive")).get_function("matmul")
    for case in (
        problem("matmul", 64, 64, 64),
        problem("matmul", 64, 64, 64, alpha=3),
        problem("matmul", 33, 3, 3),
    ):
        for _ in range(3):
            args = case.args(gpu)
            kernel(*case.launch(16), args)
        case.verify(case.output(args))
    assert tried == [((4, 4, 1), (16, 16, 1)), ((1, 3, 1), (16, 16, 1))]


def test_the_courses_kernels_are_not_tried(gpu):
    assert kernels.load("matmul/1_naive").rehearse is False
    assert labkit.RawModule(code=DYNAMIC).get_function("reverse").rehearse is True


def test_untried_a_race_runs(gpu):
    source, old, new, *_ = PLANTED["no second barrier"]
    case = problem("matmul", 64, 64, 64)
    kernel = labkit.RawModule(code=source.replace(old, new)).get_function("matmul")
    kernel.rehearse = False
    args = case.args(gpu)
    kernel(*case.launch(16), args)
    assert not gpu.isnan(case.output(args)).any()


def test_arrays_in_the_rehearsal_lie_as_on_the_gpu(gpu):
    whole = gpu.arange(100, dtype=gpu.float32)
    first, second, other, empty = whole[3:50], whole[40:], gpu.ones((2, 3)), gpu.zeros(0)
    one, two, three, four, number = twins.on_host([first, second, other, empty, 7])
    np.testing.assert_array_equal(one, np.arange(3, 50))
    np.testing.assert_array_equal(two, np.arange(40, 100))
    assert three.shape == (2, 3) and (three == 1).all() and four.size == 0 and number == 7
    assert two.ctypes.data - one.ctypes.data == 37 * 4
    assert not np.shares_memory(one, three)
    for host, device in ((one, first), (two, second), (three, other)):
        assert host.ctypes.data % 256 == device.data.ptr % 256
    assert not np.any(twins.zeros([first])[0])


def test_a_view_that_is_not_aligned_is_found(gpu):
    code = """extern "C" __global__ void f(const float4* in, float* out) {
    float4 v = in[threadIdx.x]; *out = v.x + v.y + v.z + v.w; }"""
    kernel = labkit.RawModule(code=code).get_function("f")
    whole, out = gpu.arange(9, dtype=gpu.float32), gpu.zeros(1, gpu.float32)
    kernel((1,), (1,), (whole[:8], out))
    assert out.get() == 0 + 1 + 2 + 3
    with pytest.raises(InvalidAccess, match="not a multiple of 16"):
        kernel((1,), (1,), (whole[1:], out))


def test_variables_of_the_module_are_what_they_are_on_the_gpu(gpu):
    code = """__constant__ int place[2];
    extern "C" __global__ void f(float* x) { x[place[threadIdx.x]] = 1; }"""
    module = labkit.RawModule(code=code)
    kernel, x = module.get_function("f"), gpu.zeros(4, gpu.float32)
    place = gpu.ndarray((2,), gpu.int32, module.get_global("place"))
    place[...] = gpu.asarray([3, 4], gpu.int32)
    with pytest.raises(InvalidAccess, match="is past the end of `"):
        kernel((1,), (2,), (x,))
    place[...] = gpu.asarray([3, 1], gpu.int32)
    kernel((1,), (2,), (x,))
    assert x.get().tolist() == [0, 1, 0, 1]


def test_a_kernel_that_allocates_goes_to_the_gpu_untried(gpu):
    code = """extern "C" __global__ void f(int* x) {
        int* memory = (int*)malloc(4); *memory = 5; *x = *memory; free(memory); }"""
    kernel, x = labkit.RawModule(code=code).get_function("f"), gpu.zeros(1, gpu.int32)
    with pytest.warns(UserWarning, match="`f` goes to the GPU untried .*lies on the GPU"):
        kernel((1,), (1,), (x,))
    assert x.get() == 5


# --- a fault all the same -----------------------------------------------------------------------------------

LAUNCH = "kernel((1,), (1,), (x, at))"
FAULTS = {
    "past the rehearsal": (
        "x[at[threadIdx.x]] = 1;",
        f"{LAUNCH}\nat[0] = 1 << 45\n{LAUNCH}  # like the first, which was right",
        "an illegal memory access was encountered",
    ),
    "misaligned": (
        "*(double*)((char*)x + 4) = at[0];",
        f"kernel.rehearse = False\n{LAUNCH}",
        "misaligned address",
    ),
    "trap": ("__trap();", f"kernel.rehearse = False\n{LAUNCH}", "cudaError"),
}
FAULT = """
import os
import labkit
from labkit.devices.select import synchronize
from simt.common.errors import SimtError
xp = labkit.xp
xp.ones((4, 4), "float32") @ xp.ones((4, 4), "float32")  # loads cuBLAS
code = 'extern "C" __global__ void f(float* x, const long long* at) {{ {body} }}'
kernel = labkit.RawModule(code=code).get_function("f")
x, at = xp.zeros(64, "float32"), xp.zeros(1, "int64")
{launch}
"""
AFTERWARDS = """
for name, call in dict(
    synchronize=synchronize, device=labkit.device, launch=lambda: kernel((1,), (1,), (x, at)),
    load=lambda: labkit.kernels.load("matmul/1_naive"),
).items():
    try:
        call()
    except SimtError as error:
        print(f"caught in {name}:", type(error).__name__, error)
os.environ["LABKIT_DEVICE"] = "simt"
print("afterwards:", labkit.device().kind)
x.get()
"""
NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.user_ns.update(x=x, xp=xp)
shell.run_line_magic("load_ext", "labkit")
for cell in ("x.get()", "x + 1", "x.reshape(8, 8) @ x.reshape(8, 8)", "xp.zeros(1 << 28)"):
    shell.run_cell(cell)
"""
LAST = "The last one launched was `f`, grid (1, 1, 1), block (1, 1, 1)."


def in_a_process_of_its_own(script):
    """CUDA takes no more work from a process after a fault."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_wherever_it_comes_up(gpu, fault):
    body, launch, what = fault
    done = in_a_process_of_its_own(FAULT.format(body=body, launch=launch) + AFTERWARDS)
    for name in ("synchronize", "device", "launch", "load"):
        assert f"caught in {name}: " in done.stdout, done.stdout + done.stderr
    assert done.stdout.count(LAST) == 4
    assert "afterwards: simulator" in done.stdout
    for said in (done.stdout, done.stderr):
        assert what in said and "Kernel > Restart" in said and "LABKIT_DEVICE=simt" in said


def test_a_notebook_shows_a_fault_in_short(gpu):
    pytest.importorskip("IPython")
    body, launch, what = FAULTS["past the rehearsal"]
    done = in_a_process_of_its_own(FAULT.format(body=body, launch=launch) + NOTEBOOK)
    shown = done.stdout
    assert [shown.count(words) for words in ("InvalidAccess: ", what, LAST)] == [4, 4, 4], shown + done.stderr
    assert "Traceback" not in shown


# --- large problems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        problem("matmul", 2100, 2000, 2050, alpha=2, beta=-1),
        problem("matmul", 2048, 2048, 2048, dtype="int32"),
        problem("matmul", 1500, 1600, 1700, dtype="float64"),
        problem("transpose", 3001, 4000),
        problem("transpose", 3001, 4000, dtype="int32"),
    ],
    ids=str,
)
def test_a_large_result_is_verified_where_it_is(gpu, case):
    """With the same sentence as on the host."""
    family = "matmul" if "matmul" in str(case) else "transpose"
    got = launched({"matmul": "matmul/1_naive", "transpose": "transpose/1_naive"}[family], case, gpu)
    host = got.get()
    _solved.cache_clear()
    case.verify(got)
    case.verify(host)
    for array in (got, host):
        array[17, 3] += 1
        array[40, 5] = case.output(case.inputs())[40, 5]
    with pytest.raises(Mismatch) as on_host:
        case.verify(host)
    with pytest.raises(Mismatch) as on_gpu:
        case.verify(got)
    assert str(on_gpu.value) == str(on_host.value)
    assert on_gpu.value.wrong == 2


def test_a_full_gpu_verifies_on_the_host(gpu):
    case = problem("matmul", 2048, 2048, 2048)
    got = launched("matmul/1_naive", case, gpu)
    _solved.cache_clear()
    gpu.get_default_memory_pool().free_all_blocks()
    free, _ = gpu.cuda.runtime.memGetInfo()
    full = gpu.cuda.alloc(free - (24 << 20))
    case.verify(got)
    del full
    gpu.get_default_memory_pool().free_all_blocks()


def test_arrays_beyond_the_gpus_memory_are_refused_with_the_sum(gpu, monkeypatch):
    gpu.get_default_memory_pool().free_all_blocks()
    free, _ = gpu.cuda.runtime.memGetInfo()
    full = gpu.cuda.alloc(free - (1 << 30))
    case = problem("matmul", 20000, 20000, 20000)
    monkeypatch.setattr(Matmul, "inputs", lambda _: pytest.fail("arrays were made"))
    with pytest.raises(
        OutOfMemory, match=r"C \(20000, 20000\) of float32 take 4\.8 GB together; NVIDIA .* has [0-4]\."
    ):
        case.args(gpu)
    del full  # CuPy keeps it for the next array: it counts as free
    monkeypatch.undo()
    small = problem("matmul", 9000, 9000, 9000)
    assert case.output(small.args(gpu)).shape == (9000, 9000)
    gpu.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("options", [(), ("-G",)])
def test_a_kernel_that_synchronises_its_grid_is_launched_so(gpu, options):
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void f(int* a, int* out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
        a[i] = i;
        cooperative_groups::this_grid().sync();
        out[i] = a[n - 1 - i];
    }"""
    f = labkit.RawModule(code=source, options=options).get_function("f")
    a, out = gpu.zeros((2, 264 * 256), np.int32)
    if options:  # the simulator does not have it
        with pytest.warns(UserWarning, match="goes to the GPU untried"):
            f((264,), (256,), (a, out))
    else:
        f((264,), (256,), (a, out))
        many = gpu.zeros((2, 1057 * 256), np.int32)
        with pytest.raises(LaunchError, match="must be on the GPU at once"):
            f((1057,), (256,), tuple(many))
    synchronize()
    np.testing.assert_array_equal(out.get(), np.arange(264 * 256)[::-1])
