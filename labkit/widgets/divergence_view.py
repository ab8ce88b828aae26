"""The explorer of divergence: what a warp does with its time when its lanes take different ways."""

from functools import cache

import numpy as np

import simt
from labkit.figures.pictures.warp import Rows, drawn, rows_of
from labkit.widgets.explorer import Explorer, View, menu, plain, slider
from simt.common.limits import WARP
from simt.trace import Step, trace

THREADS = 64  # of the block: two warps

_KERNEL = """extern "C" __global__
void pattern(float* out, int n)
{{
    int x = threadIdx.x;
    float v = out[x];
{}
    out[x] = v;
}}"""
_TWO_WAYS = """    if ({}) {{
        v = sqrtf(v) / 3;
        v = sqrtf(v) / 5;
    }} else {{
        v = 1 / (v * v + 2);
        v = 1 / (v * v + 4);
    }}"""
_ROUNDS = """    #pragma unroll 1
    for (int k = 0; k < x % n; ++k)
        v = sqrtf(v) / 3;"""
_GUARD = """    if (x >= n)
        return;
    v = sqrtf(v) / 3;
    v = sqrtf(v) / 5;"""

# What the menu offers: the condition as it stands in the source, and the source.
PATTERNS = {
    "if (x % n == 0)": _KERNEL.format(_TWO_WAYS.format("x % n == 0")),
    "if (x < n)": _KERNEL.format(_TWO_WAYS.format("x < n")),
    "if (x / n % 2 == 0)": _KERNEL.format(_TWO_WAYS.format("x / n % 2 == 0")),
    "loop: x % n rounds": _KERNEL.format(_ROUNDS),
    "guard: x >= n returns": _KERNEL.format(_GUARD),
}


def divergence() -> Explorer:
    """Show which lanes of a warp work and which wait, where they take different branches.

    A menu chooses the pattern; sliders set the number n in its condition, and the warp that is shown.
    """
    controls = {
        "pattern": menu("pattern", plain(PATTERNS)),
        "n": slider("n", 1, THREADS, 3),
        "warp": slider("warp", 0, THREADS // WARP - 1, 0),
    }
    return Explorer(divergence_view, controls, title="What a warp does where its lanes take different ways")


def divergence_view(pattern: str, n: int, warp: int) -> View:
    """Draw the lanes of a warp against time, and say what divergence costs, from a run in the simulator."""
    steps, counted = _run(pattern, n)
    rows = rows_of(steps, warp)
    return View(
        (drawn(rows, warp, _kernel(pattern).module.lines),),
        _time(rows, warp),
        f"{_ways(rows)}\n{_block(counted)}",
        "Point at a line of the source, at work in the picture or at a thread.",
    )


@cache
def _kernel(pattern: str) -> simt.Kernel:
    return simt.RawModule(code=PATTERNS[pattern]).get_function("pattern")


@cache
def _run(pattern: str, n: int) -> tuple[list[Step], dict[str, float]]:
    """Return the block's steps and what the simulator counts of it."""
    kernel, args = _kernel(pattern), (np.ones(THREADS, np.float32), np.int32(n))
    return trace(kernel, 1, THREADS, args), kernel.profile(1, THREADS, args).ptx


# Sentences.


def _time(rows: Rows, warp: int) -> str:
    """Say what part of the warp's time is used."""
    return (
        f"Warp {warp} uses {100 * rows.mean / WARP:.0f} % of its lanes' time: on average {rows.mean:.3g} of "
        f"{WARP} lanes are active."
    )


def _ways(rows: Rows) -> str:
    """Say which lines only some lanes run."""
    lanes = {int(line): rows.lanes_at(int(line)) for line in np.unique(rows.lines)}
    parted = [f"{count:.3g} in line {line}" for line, count in lanes.items() if count < WARP]
    if not parted:
        return "All lanes go the same way: a condition that is the same for a whole warp costs nothing."
    return (
        f"The lanes part. Active on average: {', '.join(parted)}; the others wait meanwhile, or have ended. "
        "The warp goes every way that one of its lanes goes, one after the other."
    )


def _block(counted: dict[str, float]) -> str:
    """Say the same about the whole block, in Nsight Compute's words."""
    branches, divergent = int(counted["branches"]), int(counted["divergent_branches"])
    return (
        f"Block of {THREADS} threads: {counted['threads_per_instruction']:.3g} threads per instruction "
        "(Nsight Compute: smsp__thread_inst_executed_per_inst_executed); branch efficiency "
        f"{counted['branch_efficiency_pct']:.0f} %: of {branches} branches {divergent} sent a warp's lanes "
        "two ways. Counted by the simulator, at PTX level."
    )
