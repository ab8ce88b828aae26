"""How often machine code is issued: Nsight Compute's figures of an H200 for the gallery and every rung.

`python benchmarks/record_machine_code.py` recorded them. They hold for the compiler that made the machine
code there. Another may unroll or predicate in another way, so then these tests are skipped.
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from gallery import cases

import simt
from labkit import problem
from labkit.ladder import running
from simt.compiler.nvrtc import nvrtc_version
from simt.sass.opcodes import PIPES

FOLDER = Path(__file__).parents[2] / "data" / "h200" / "machine_code"
ROWS = {row["launch"]: row for row in csv.DictReader((FOLDER / "counters.csv").open())}
GALLERY = {case.name: case for case in cases("clean")}
INSTRUCTIONS = "smsp__inst_executed.sum"
WAVEFRONTS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")]
METRICS = [INSTRUCTIONS, *WAVEFRONTS, *(f"sm__inst_executed_pipe_{pipe}.sum" for pipe in PIPES)]

ON_OTHERS = "for as long as other threads let it"
ABSENT = {  # why the simulator has no figures: what decides is a matter of time, or lies in the driver
    **dict.fromkeys(
        ["atomic_cas_double", "atomics_float", "bfs_levels", "bfs_queue", "hash_table"], ON_OTHERS
    ),
    **dict.fromkeys(["scan_chained", "spin_lock"], ON_OTHERS),
    "layernorm_backward": ON_OTHERS,
    "printing": "calls a function of the driver",
    **dict.fromkeys(["recursion_ackermann", "recursion_fibonacci", "recursion_mutual"], "calls itself"),
}
# Lanes leave these loops one by one; in which order groups of them arrive where they meet is not known.
NEARLY = {"mandelbrot": 0.002, "n_queens": 0.002}
BRANCHES = 0.03  # of the few instructions that pipe cbu has of those
# One thread of a block works while its warp waits at WARPSYNC; the GPU counts one branch more per block.
NEARLY |= {name: 0.01 for name in ROWS if name.startswith("reduction-7_last_block")}

recorded_by_this_compiler = pytest.mark.skipif(
    f"NVRTC {nvrtc_version()}," not in json.loads((FOLDER / "counters.json").read_text())["versions"] + ",",
    reason=f"this is NVRTC {nvrtc_version()}, which may make other machine code than was recorded",
)


def profile(name):
    """Count a launch of the gallery, or one of a rung."""
    row = ROWS[name]
    if name in GALLERY:
        case = GALLERY[name]
        module = simt.RawModule(
            code=case.source, options=case.options, name_expressions=case.name_expressions
        )
        kernel = module.get_function(case.entry)
        kernel.max_dynamic_shared_size_bytes = case.shared_mem or None
        args = tuple(case.args(simt.empty).values())
        return kernel.profile(case.grid, case.block, args, case.shared_mem, timeout=60)
    family, _, rung = row["kernel"].partition("/")
    sizes = [int(size) for size in re.findall(r"=(\d+)", row["size"])]
    given = problem(family, *sizes, dtype=row["dtype"])
    macros = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row["macros"])}
    names = {path: name for name, path in running.rungs(family).items()}
    case = running.case(names[f"{family}/{rung}"], given, **macros)
    kernel, grid, block = case.compiled()
    return kernel.simulated.profile(grid, block, given.args(np), timeout=60)


@recorded_by_this_compiler
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in GALLERY else [pytest.mark.slow])  # the rungs, at all sizes
        for name in ROWS
        if name not in ABSENT
    ],
)
def test_figures_equal_those_of_the_gpu(name):
    row, metrics = ROWS[name], profile(name).metrics
    varying = row["varies"].split()
    if "tensor_cores-PRECISION=tf32" in name:  # its fragments are loaded and stored by generic addresses
        varying += WAVEFRONTS
        for metric in WAVEFRONTS:
            with pytest.raises(KeyError, match="generic addresses"):
                metrics[metric]
    for metric in (metric for metric in METRICS if metric not in varying):
        near = NEARLY.get(name, 0)
        near = BRANCHES if near and "pipe_cbu" in metric else near
        assert metrics[metric] == pytest.approx(int(row[metric]), rel=near, abs=0), metric


@recorded_by_this_compiler
@pytest.mark.parametrize("name", ABSENT)
def test_what_is_not_known_is_absent_with_the_reason(name):
    with pytest.raises(KeyError, match=ABSENT[name]):
        profile(name).metrics[INSTRUCTIONS]


def test_a_figure_of_machine_code_is_not_among_those_that_are_listed():
    metrics = profile("dot_product").metrics
    assert INSTRUCTIONS not in list(metrics)
    assert metrics[INSTRUCTIONS] > 0


def test_a_sample_of_the_blocks_is_scaled():
    code = 'extern "C" __global__ void k(float* o) { o[blockIdx.x * blockDim.x + threadIdx.x] = 1; }'
    kernel = simt.RawModule(code=code).get_function("k")
    out = np.zeros(64 * 64, np.float32)
    whole, sampled = (kernel.profile(64, 64, (out,), blocks=blocks) for blocks in (None, 8))
    assert sampled.metrics[INSTRUCTIONS] == whole.metrics[INSTRUCTIONS]


def test_arrays_are_as_the_launch_left_them_after_the_figures_are_worked_out():
    code = """extern "C" __global__ void halve(int* a) {
        int i = threadIdx.x;
        while (a[i] > 1) a[i] /= 2;
    }"""
    kernel = simt.RawModule(code=code).get_function("halve")
    numbers = np.arange(1, 33, dtype=np.int32)
    counted = kernel.profile(1, 32, (numbers,))
    numbers[:] = 7
    assert counted.metrics[INSTRUCTIONS] > 5 * len("loop")
    assert (numbers == 7).all()


def test_issues_by_instruction_line_and_kind():
    code = """extern "C" __global__ void scale(float* a, float x) {
        a[threadIdx.x] = a[threadIdx.x] * x;
    }"""
    kernel = simt.RawModule(code=code).get_function("scale")
    issued = kernel.profile(3, 64, (np.ones(64, np.float32), np.float32(2))).sass
    table = issued.table
    assert set(table[table.opcode.str.startswith(("LDG", "STG", "FMUL"))].issued) == {6}
    assert table.issued.sum() == issued.kinds.sum() == issued.lines.sum()
    assert issued.kinds["FMUL"] == issued.kinds["LDG.32"] == 6


HALVES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"


def issued(code, *args, opcode, gpu="H200"):
    """Return how often a launch of 4 blocks of 128 threads issues each instruction of `opcode`."""
    source = f'{HALVES}extern "C" __global__ void k({code}'
    kernel = simt.RawModule(code=source).get_function("k")
    table = kernel.profile(4, 128, args, gpu=gpu).sass.table
    return table[table.opcode.str.startswith(opcode)].issued.to_numpy()


def most_of_each_warp(rounds):
    return rounds.reshape(-1, 32).max(axis=1).sum()


@pytest.mark.parametrize("gpu", ["T4", "H200", "RTX 5090"])
@pytest.mark.parametrize("type_", ["__half", "__nv_bfloat16"])
def test_a_loop_that_a_half_ends(type_, gpu):
    numbers = np.random.default_rng(1).random(512, np.float32)
    bits = (
        numbers.astype(np.float16) if type_ == "__half" else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    )
    values = bits if type_ == "__half" else (bits.astype(np.uint32) << 16).view(np.float32)
    value, rounds = values.astype(np.float64), np.zeros(512, int)
    while (value < 4).any():  # doubling and 4 are exact in both types
        rounds += value < 4
        value = np.where(value < 4, value * 2, value)
    code = f"""{type_}* x) {{
        int i = blockIdx.x * 128 + threadIdx.x;
        {type_} v = x[i];
        while (v < ({type_})4.0f) v = v + v;
        x[i] = v;
    }}"""
    if gpu == "T4" and type_ == "__nv_bfloat16":
        pytest.skip("a T4 has no bfloat16")
    assert issued(code, bits, opcode="HADD2", gpu=gpu).max() == most_of_each_warp(rounds)


@pytest.mark.parametrize("gpu", ["T4", "H200", "RTX 5090"])
@pytest.mark.parametrize("name", ["fmin", "fmax"])
def test_the_least_and_most_of_doubles_with_nan(name, gpu):
    a, b = np.random.default_rng(2).integers(0, 9, (2, 512)).astype(np.float64)
    a[::7] = b[::5] = np.nan
    expected = np.nan_to_num(getattr(np, name)(a, b), nan=20)
    code = f"""double* a, double* b, double* o) {{
        int i = blockIdx.x * 128 + threadIdx.x;
        double v = {name}(a[i], b[i]), s = i;
        if (v != v) v = 20;
        #pragma unroll 1
        for (int n = v; n > 0; --n) s = s * s;
        o[i] = s;
    }}"""
    assert issued(code, a, b, np.zeros(512), opcode="DMUL", gpu=gpu).max() == most_of_each_warp(expected)


def test_what_a_driver_s_function_issues_is_not_known_but_one_that_is_not_called_does_no_harm():
    code = """#include <cassert>
    extern "C" __global__ void k(int* a, int most) {
        assert(a[threadIdx.x] < most);
        a[threadIdx.x] = 1;
    }"""
    kernel = simt.RawModule(code=code).get_function("k")
    assert kernel.profile(1, 32, (np.zeros(32, np.int32), 5)).metrics[INSTRUCTIONS] > 0


def test_a_value_that_is_only_stored_need_not_be_known():
    """A clock is stored to memory that decides earlier."""
    code = """extern "C" __global__ void k(int* a) {
        int n = a[threadIdx.x], s = 0;
        #pragma unroll 1
        for (int i = 0; i < n; ++i) s = s * s + i;
        a[threadIdx.x] = s + clock();
    }"""
    kernel = simt.RawModule(code=code).get_function("k")
    counted = [kernel.profile(1, 32, (np.full(32, n, np.int32),)).metrics[INSTRUCTIONS] for n in (5, 6, 7)]
    assert counted[2] - counted[1] == counted[1] - counted[0] > 0


def test_pipes_are_known_for_hopper_alone():
    code = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] = 1; }'
    kernel = simt.RawModule(code=code).get_function("k")
    metrics = kernel.profile(1, 32, (np.zeros(32, np.float32),), gpu="T4").metrics
    assert metrics[INSTRUCTIONS] > 0
    with pytest.raises(KeyError, match="known for Hopper"):
        metrics["sm__inst_executed_pipe_fma.sum"]
