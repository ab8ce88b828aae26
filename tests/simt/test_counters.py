"""Counters follow Nsight Compute's address rules: 32-byte sectors, 32 banks of 4 bytes; expected values
come from NumPy.
"""

import subprocess
import sys

import numpy as np
import pytest

import simt
from simt.common.occupancy import gpu
from simt.compiler import nvrtc
from simt.counters.profile import Counts, LaunchContext, Profile
from simt.launch.sample import Sample
from simt.ptx import Address, Guard, Instruction, Register, Symbol

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"


def profile(source, grid, block, *args, **options):
    kernel = simt.RawModule(code=source).get_function("f")
    return kernel.profile(grid, block, args, **options)


def sectors(addresses, size):
    """Distinct 32-byte sectors of each warp's request, summed; `addresses` has one row per warp."""
    return sum(len({(a + k) // 32 for a in row for k in range(0, size, 4)}) for row in addresses.tolist())


@pytest.mark.parametrize("dtype, ctype", [(np.float32, "float"), (np.float64, "double"), (np.int16, "short")])
@pytest.mark.parametrize("stride", [0, 1, 2, 5, 8, 33])
@pytest.mark.parametrize("start", [0, 3])
def test_sectors_of_strided_access(dtype, ctype, stride, start):
    source = f"""extern "C" __global__ void f(const {ctype}* in, {ctype}* out) {{
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        out[t] = in[{start} + {stride} * t];
    }}"""
    values, out = np.arange(128 * stride + 8).astype(dtype), np.zeros(128, dtype)
    metrics = profile(source, 2, 64, values, out).metrics
    size, threads = out.itemsize, np.arange(128).reshape(4, 32)
    assert metrics[REQUESTS.format("ld")] == metrics[REQUESTS.format("st")] == 4
    assert metrics[SECTORS.format("ld")] == sectors((start + stride * threads) * size, size)
    assert metrics[SECTORS.format("st")] == sectors(threads * size, size)
    np.testing.assert_array_equal(out, values[start + stride * np.arange(128)])


def test_sectors_do_not_depend_on_where_the_host_put_the_array():
    source = (
        'extern "C" __global__ void f(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }'
    )
    memory = np.zeros(400, np.float32)
    for view, expected in ((memory[:64], 4), (memory[3:67], 5)):
        counted = profile(source, 1, 32, view, np.zeros(32, np.float32)).metrics
        assert counted[SECTORS.format("ld")] == expected


@pytest.mark.parametrize("pitch, degree", [(32, 32), (33, 1), (34, 2), (36, 4), (40, 8), (48, 16)])
def test_bank_conflicts_of_a_column(pitch, degree):
    source = f"""extern "C" __global__ void f(float* out) {{
        __shared__ float tile[32][{pitch}];
        int x = threadIdx.x, y = threadIdx.y;
        tile[y][x] = x + 100 * y;
        __syncthreads();
        out[32 * y + x] = tile[x][y];
    }}"""
    out = np.zeros((32, 32), np.float32)
    counted = profile(source, 1, (32, 32), out)
    assert counted.metrics[CONFLICTS.format("ld")] == 32 * (degree - 1)
    assert counted.metrics[CONFLICTS.format("st")] == 0
    np.testing.assert_array_equal(out, np.arange(32)[None, :] * 100 + np.arange(32)[:, None])
    lines = counted.lines.set_index(["space", "op"])
    assert lines.loc[("shared", "ld"), ["line", "conflicts", "source"]].tolist() == [
        6,
        32 * (degree - 1),
        "out[32 * y + x] = tile[x][y];",
    ]


def test_one_word_for_all_lanes_is_no_conflict():
    source = """extern "C" __global__ void f(float* out) {
        __shared__ float s[64];
        s[threadIdx.x] = threadIdx.x; s[threadIdx.x + 32] = 0;
        __syncthreads();
        out[threadIdx.x] = s[5] + s[threadIdx.x / 2];
    }"""
    assert profile(source, 1, 32, np.zeros(32, np.float32)).metrics[CONFLICTS.format("ld")] == 0


def test_instructions_are_counted_by_warp_of_a_block_too():
    source = """extern "C" __global__ void f(float* x, int n)
{
    if (threadIdx.x / 32 == 2)
        for (int i = 0; i < n; ++i)
            atomicAdd(x, 1.0f);
}"""
    few, many = (profile(source, 3, 128, np.zeros(1, np.float32), np.int32(n)) for n in (10, 110))
    assert sum(few.by_warp) == few.ptx["instructions"]
    assert few.by_warp[0] == few.by_warp[1] == few.by_warp[3] == many.by_warp[0] < few.by_warp[2]
    assert many.by_warp[2] - few.by_warp[2] >= 3 * 100


def test_only_active_lanes_count():
    source = (
        'extern "C" __global__ void f(float* out, int n) { if (threadIdx.x < n) out[8 * threadIdx.x] = 1; }'
    )
    for n, requests in ((0, 0), (5, 1), (32, 1), (40, 2)):
        counted = profile(source, 1, 64, np.zeros(512, np.float32), np.int32(n)).metrics
        assert counted[SECTORS.format("st")] == n
        assert counted[REQUESTS.format("st")] == requests


def test_a_sample_of_blocks_is_scaled_and_says_so():
    source = 'extern "C" __global__ void f(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }'
    whole = profile(source, 1000, 64, np.zeros(64000, np.float32))
    sample = profile(source, 1000, 64, np.zeros(64000, np.float32), blocks=10)
    assert whole.metrics == sample.metrics
    assert whole.label == "counted by the simulator"
    assert sample.label == "counted by the simulator in 10 of 1000 blocks, scaled"


def test_registers_are_the_assemblers():
    source = """extern "C" __global__ void __launch_bounds__(128) f(float* out) {
        __shared__ float s[100]; s[threadIdx.x % 100] = 1; __syncthreads(); out[threadIdx.x] = s[0]; }"""
    kernel = simt.RawModule(code=source).get_function("f")
    assert kernel.shared_size_bytes == 400
    assert 4 <= kernel.num_regs <= 32
    assert (kernel.local_size_bytes, kernel.max_threads_per_block) == (0, 128)
    with pytest.raises(simt.LaunchError, match="launch_bounds"):
        kernel(1, 256, (np.zeros(256, np.float32),))


BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"


# Measured with Nsight Compute 2025.3.1 on an NVIDIA H200, 2026-11-21: different bytes of a request count.
@pytest.mark.parametrize(
    "ctype, index, loaded, stored",
    [
        ("float", "0 * t", 4, 32),
        ("float", "t", 32, 32),
        ("float", "2 * t", 16, 32),
        ("float", "5 * t", 6.4, 32),
        ("float", "8 * t", 4, 32),
        ("float", "33 * t", 4, 32),
        ("float", "t / 2", 32, 32),
        ("float", "t + 3", 25.6, 32),
        ("float", "31 - t % 32", 32, 32),
        ("short", "t", 32, 32),
        ("double", "0 * t", 8, 32),
        ("double", "5 * t", 8, 32),
        ("float4", "t", 32, 32),
    ],
)
def test_bytes_a_sector_are_an_h200s(ctype, index, loaded, stored):
    source = f"""extern "C" __global__ void f(const {ctype}* in, {ctype}* out) {{
        int t = threadIdx.x;
        out[t] = in[{index}];
    }}"""
    array = np.zeros(64 * 40, {"short": np.int16, "double": np.float64}.get(ctype, np.float32))
    metrics = profile(source, 1, 64, array, array.copy()).metrics
    assert metrics[BYTES_PER_SECTOR.format("ld")] == pytest.approx(loaded)
    assert metrics[BYTES_PER_SECTOR.format("st")] == pytest.approx(stored)


# A kernel of four instructions, with counts that a test can add up by hand: a warp loads a column, a branch
# parts it, one side stores to shared memory, both return.
LOAD = Instruction(("ld", "global", "f32"), (Register("%f1"), Address(Register("%rd1"))), None, 2)
BRANCH = Instruction(("bra",), (Symbol("end"),), Guard(Register("%p1"), False), 3)
STORE = Instruction(("st", "shared", "f64"), (Address(Register("%r1")), Register("%fd1")), None, 4)
RETURN = Instruction(("ret",), (), None, 5)
COUNTS = Counts(
    executed=np.array([10, 10, 8, 10]),
    active=np.array([320, 320, 64, 320]),
    divergent=np.array([0, 6, 0, 0]),
    requests=np.array([10, 0, 8, 0]),
    threads=np.array([320, 0, 64, 0]),
    sectors=np.array([160, 0, 0, 0]),
    passes=np.array([0, 0, 24, 0]),
    conflicts=np.array([0, 0, 16, 0]),
    strides=[16, None, 8, None],
    used_bytes=np.array([640, 0, 0, 0]),
    turns=np.array([0, 0, 0, 0]),
)
SOURCE = ["void f()", "  v = in[4 * t];", "  if (t % 4 == 0)", "    s[t] = v;", "}"]


def by_hand(counts=COUNTS, sample=None, on="H200", registers=40):
    resources = nvrtc.Resources(registers, 0, 0, 0, 0)
    circumstances = LaunchContext((5, 2, 1), (32, 2, 1), 3000, lambda arch: resources, gpu(on))
    return Profile([LOAD, BRANCH, STORE, RETURN], lambda: counts, SOURCE, sample, circumstances)


def test_metrics_by_hand():
    counted = by_hand().metrics
    assert dict(counted) == {
        REQUESTS.format("ld"): 10,
        SECTORS.format("ld"): 160,
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 16,
        BYTES_PER_SECTOR.format("ld"): 4,
        CONFLICTS.format("ld"): 0,
        REQUESTS.format("st"): 0,
        SECTORS.format("st"): 0,
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": 0,
        BYTES_PER_SECTOR.format("st"): 0,
        CONFLICTS.format("st"): 16,
        "launch__grid_size": 10,
        "launch__block_size": 64,
        "launch__registers_per_thread": 40,
        "launch__occupancy_limit_blocks": 32,
        "launch__occupancy_limit_registers": 24,  # 65536 / 4 / 1280 = 12 warps a partition
        "launch__occupancy_limit_shared_mem": 33,  # 132 KB / 4096
        "launch__occupancy_limit_warps": 32,
        "sm__maximum_warps_per_active_cycle_pct": 75.0,
    }
    assert len(counted) == len(list(counted))


def test_figures_at_ptx_level_by_hand():
    assert by_hand().ptx == {
        "instructions": 38,
        "thread_instructions": 1024,
        "threads_per_instruction": pytest.approx(1024 / 38),
        "branches": 10,
        "divergent_branches": 6,
        "branch_efficiency_pct": pytest.approx(40),
        "shared_passes_ld": 0,
        "shared_passes_st": 24,
    }


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("bins", [1, 5, 64])
def test_turns_of_atomic_operations(space, bins):
    """Per request as many as lanes meet at the address that most of them name; a masked lane names none."""
    source = """extern "C" __global__ void f(const int* x, int* out, int n) {
        __shared__ int mine[64];
        for (int i = threadIdx.x; i < 64; i += blockDim.x) mine[i] = 0;
        __syncthreads();
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) atomicAdd(&WHERE[x[i]], 1);
        __syncthreads();
        if (WHERE == mine) for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&out[i], mine[i]);
    }""".replace("WHERE", "mine" if space == "shared" else "out")
    n = 1000
    x, out = np.random.default_rng(bins).integers(0, bins, n, dtype=np.int32), np.zeros(64, np.int32)
    lines = profile(source, 8, 128, x, out, np.int32(n)).lines
    np.testing.assert_array_equal(out, np.bincount(x, minlength=64))
    found = lines[(lines.line == 6) & lines.op.isin(["atom", "red"])]
    most = sum(np.bincount(x[first : first + 32]).max() for first in range(0, n, 32))
    assert (found.turns.sum(), found.requests.sum(), found.threads.sum()) == (most, 32, n)
    assert lines[lines.op.isin(["ld", "st"])].turns.sum() == 0


def test_lines_by_hand():
    lines = by_hand().lines
    assert lines.drop(columns=["sectors_per_request", "conflicts_per_request"]).to_dict("records") == [
        {"line": 2, "space": "global", "op": "ld", "requests": 10, "threads": 320, "sectors": 160}
        | {"passes": 0, "conflicts": 0, "turns": 0, "useful_bytes": 1280, "source": "v = in[4 * t];"},
        {"line": 4, "space": "shared", "op": "st", "requests": 8, "threads": 64, "sectors": 0}
        | {"passes": 24, "conflicts": 16, "turns": 0, "useful_bytes": 512, "source": "s[t] = v;"},
    ]
    assert lines["sectors_per_request"].tolist() == [16, 0]
    assert lines["conflicts_per_request"].tolist() == [0, 2]


def test_instructions_and_branches_by_line():
    assert by_hand().ptx_lines.to_dict("list") == {
        "line": [2, 3, 4, 5],
        "instructions": [10, 10, 8, 10],
        "active": [320, 320, 64, 320],
        "branches": [0, 10, 0, 0],
        "divergent": [0, 6, 0, 0],
        "threads_per_instruction": [32, 32, 8, 32],
        "source": ["v = in[4 * t];", "if (t % 4 == 0)", "s[t] = v;", "}"],
    }


def test_every_count_of_a_sample_is_scaled():
    whole, sample = by_hand(), by_hand(sample=Sample(np.array([0, 9]), 10))
    assert sample.label == "counted by the simulator in 2 of 10 blocks, scaled"
    for name in ("instructions", "thread_instructions", "branches", "divergent_branches", "shared_passes_st"):
        assert sample.ptx[name] == 5 * whole.ptx[name]
    for name in ("threads_per_instruction", "branch_efficiency_pct"):
        assert sample.ptx[name] == pytest.approx(whole.ptx[name])
    assert sample.metrics[SECTORS.format("ld")] == 800
    assert sample.metrics[BYTES_PER_SECTOR.format("ld")] == 4
    assert sample.lines["useful_bytes"].tolist() == [6400, 2560]
    assert sample.metrics["launch__grid_size"] == 10


TILE = """extern "C" __global__ void f(float* out) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = 1;
    __syncthreads();
    out[32 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}"""


def test_occupancy_is_that_of_the_launch_on_the_gpu_asked_for():
    kernel = simt.RawModule(code=TILE).get_function("f")
    args, shared = (np.zeros((32, 32), np.float32),), 32 * 33 * 4
    assert kernel.num_regs < 16
    on_h200, on_t4 = (kernel.profile(1, (32, 32), args, gpu=name) for name in ("H200", "T4"))
    assert on_h200.metrics["launch__registers_per_thread"] == 16  # as an H200 gives at the least
    assert on_h200.registers_label == "registers as NVIDIA's assembler gives them for sm_90"
    assert on_h200.metrics["sm__maximum_warps_per_active_cycle_pct"] == 100
    # as recorded for transpose_padded in data/h200/gallery/counters.csv, a launch of the same size
    assert on_h200.metrics["launch__occupancy_limit_shared_mem"] == 3
    assert on_t4.metrics["launch__occupancy_limit_shared_mem"] == 64 * 1024 // (-(-shared // 256) * 256)
    assert on_t4.metrics["launch__occupancy_limit_warps"] == 1


def test_dynamic_shared_memory_counts_for_occupancy():
    source = TILE.replace(
        "__shared__ float tile[32][33]", "extern __shared__ float memory[]; auto tile = (float(*)[33]) memory"
    )
    kernel = simt.RawModule(code=source).get_function("f")
    found = kernel.profile(1, (32, 32), (np.zeros((32, 32), np.float32),), shared_mem=40000, gpu="H200")
    assert found.metrics["launch__occupancy_limit_shared_mem"] == 2


def test_a_gpu_that_nvrtc_does_not_compile_for_gets_the_nearest_registers():
    found = (
        simt.RawModule(code=TILE).get_function("f").profile(1, 32, (np.zeros(1024, np.float32),), gpu="V100")
    )
    assert "registers of sm_75, the nearest to V100's sm_70" in found.registers_label
    assert found.occupancy.gpu.name == "V100"
    assert found.occupancy.launch__registers_per_thread > 0


def test_an_unknown_gpu_is_refused_before_anything_runs():
    out = np.zeros((32, 32), np.float32)
    with pytest.raises(ValueError, match="no figures of a GPU 'H300'"):
        simt.RawModule(code=TILE).get_function("f").profile(1, (32, 32), (out,), gpu="H300")
    assert not out.any()


def test_registers_are_compiled_for_only_when_asked_for(monkeypatch):
    def refuse(*_):
        raise AssertionError("compiled for a GPU")

    kernel = simt.RawModule(code=TILE).get_function("f")
    monkeypatch.setattr("simt.compiler.nvrtc.resources", refuse)
    found = kernel.profile(1, (32, 32), (np.zeros((32, 32), np.float32),))
    assert found.metrics[SECTORS.format("st")] == 128
    assert "launch__grid_size" in repr(found)
    with pytest.raises(AssertionError, match="compiled for a GPU"):
        _ = found.metrics["launch__registers_per_thread"]


PARTED = """extern "C" __global__ void f(float* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t % 4 == 0)
        for (int i = 0; i < n; ++i)
            atomicAdd(&out[t], 1.0f);
    else
        out[t] = 2;
}"""


def test_divergence_is_counted_by_line():
    found = profile(PARTED, 3, 64, np.zeros(192, np.float32), np.int32(5))
    lines = found.ptx_lines.set_index("line")
    assert lines.threads_per_instruction[5] == 8
    assert lines.threads_per_instruction[7] == 24
    assert lines.divergent[3] == 6
    assert found.ptx["divergent_branches"] == 6
    assert found.ptx["branch_efficiency_pct"] < 100
    atomics = found.lines.set_index("op").loc["atom" if "atom" in set(found.lines.op) else "red"]
    assert (atomics.requests, atomics.threads) == (6 * 5, 6 * 5 * 8)


def test_strides_of_neighbouring_lanes():
    source = """extern "C" __global__ void f(const double* in, float* out, int n) {
        __shared__ float tile[16][20];
        int x = threadIdx.x, y = threadIdx.y;
        tile[x][y] = in[n * y + 3 * x];
        __syncthreads();
        out[16 * y + x] = tile[y][x] + tile[0][0];
    }"""
    found = profile(source, 1, (16, 16), np.zeros(999), np.zeros(256, np.float32), np.int32(48))
    strides = {(site.line, site.space, site.op): site.stride for site in found.sites if site.requests}
    assert strides[4, "global", "ld"] == 24
    assert strides[4, "shared", "st"] == 80
    assert strides[6, "global", "st"] == 4
    loads = [site.stride for site in found.sites if (site.line, site.space, site.op) == (6, "shared", "ld")]
    assert sorted(loads) == [0, 4]


def test_the_simulator_knows_nothing_of_notebooks():
    seen = "import sys, simt; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert not {"labkit.figures.source_costs", "IPython", "matplotlib", "pandas"} & set(done.stdout.split())


def test_stride_of_rows_of_threads_is_that_within_a_row():
    source = """extern "C" __global__ void f(float* out, int n) {
        out[threadIdx.x * n + threadIdx.y] = n;
    }"""
    kernel = simt.RawModule(code=source).get_function("f")
    found = kernel.profile(1, (16, 4), (np.zeros(16 * 100, np.float32), np.int32(100)))
    assert [site.stride for site in found.sites if site.space == "global"] == [400]
