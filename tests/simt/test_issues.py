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

from labkit import problem, simt
from labkit.compiler.nvrtc import nvrtc_version
from labkit.ladder import running
from labkit.simt.sass.pipes import PIPES

FOLDER = Path(__file__).parents[2] / "data" / "h200" / "machine_code"
ROWS = {row["launch"]: row for row in csv.DictReader((FOLDER / "counters.csv").open())}
GALLERY = {case.name: case for case in cases("clean")}
INSTRUCTIONS = "smsp__inst_executed.sum"
WAVEFRONTS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")]
METRICS = [INSTRUCTIONS, *WAVEFRONTS, *(f"sm__inst_executed_pipe_{pipe}.sum" for pipe in PIPES)]

ON_OTHERS = "for as long as other threads let it"
ABSENT = {  # why the simulator has no figures: what decides is a matter of time, or has no rule
    **dict.fromkeys(
        ["atomic_cas_double", "atomics_float", "bfs_levels", "bfs_queue", "hash_table"], ON_OTHERS
    ),
    **dict.fromkeys(["scan_chained", "spin_lock"], ON_OTHERS),
    "binomial_option": "no rule for DSETP.MAX",
    "function_pointer": "no rule for CALL",
    "layernorm_backward": "no rule for ATOMS.CAST",
    "printing": "no rule for CALL",
    **dict.fromkeys(["recursion_ackermann", "recursion_fibonacci", "recursion_mutual"], "calls itself"),
}
# Lanes leave these loops one by one; in which order groups of them arrive where they meet is not known.
NEARLY = {"mandelbrot": 0.002, "n_queens": 0.002}
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
@pytest.mark.parametrize("name", [name for name in ROWS if name not in ABSENT])
def test_figures_equal_those_of_the_gpu(name):
    row, metrics = ROWS[name], profile(name).metrics
    varying = row["varies"].split()
    for metric in (metric for metric in METRICS if metric not in varying):
        recorded = int(row[metric])
        assert metrics[metric] == pytest.approx(recorded, rel=NEARLY.get(name, 0), abs=0), metric


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
