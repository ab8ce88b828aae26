"""Show what each step of the GPU's ladder changes: source lines, counts per multiply-add, rate.

Rungs have the names used in `labkit.ladder`. Counts are per warp instruction: one multiply-add, or one load,
is one instruction for the 32 threads of a warp. A product of (M,K) by (K,N) has M N K / 32 multiply-adds.
"""

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from math import prod

import numpy as np
import pandas as pd

from labkit import kernels, records
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import problem_class
from labkit.ladder import running
from simt.common import occupancy
from simt.common.limits import WARP
from simt.kernel import PATIENCE_SECONDS

SIZE = 1024  # M, N and K of the products whose counters are recorded
LARGE = 8192  # a product that keeps every multiprocessor busy
REFERENCE = Matmul.reference_name
FIRST = "naive_uncoalesced"
FOR_ANY_SHAPE = ("any_tile", "stream_k")  # rungs of matmul beside the climb

_NO_CODE = re.compile(r"\s*(#(?!pragma)|static_assert|constexpr|using|template)")
_COUNTERS = {  # Nsight Compute's names -> the column, and whether it is divided by the multiply-adds
    "smsp__inst_executed.sum": ("instructions", True),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sectors", True),
    "launch__registers_per_thread": ("registers", False),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": ("L1 busy %", False),
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": ("FMA busy %", False),
}


def climb(family: str = Matmul.family) -> list[str]:
    """Return the rungs of a family of products in the order of the course, then the reference.

    Rungs that round their inputs are left out, and those that serve other shapes than large squares.
    """
    apart = {*problem_class(family).rounding, *(FOR_ANY_SHAPE if family == Matmul.family else ())}
    rungs = [rung for rung in running.rungs(family) if rung not in apart]
    return [*sorted(rungs, key=lambda rung: rung != FIRST), REFERENCE]


def product_of(times: pd.DataFrame) -> str:
    """Return the family of products that times are of. Raises ValueError where they are of no one such."""
    if times.empty:
        raise ValueError(
            "the frame must hold one time of each rung, and has none. ladder.here(problem) measures on a GPU."
        )
    families = sorted(set(times.problem))
    if any(problem_class(family).reference_name != REFERENCE for family in families) or len(families) > 1:
        raise ValueError(
            f"these are records of {', '.join(families)}; the ladder that this draws is that of one family "
            "of products. Choose labkit.plots, such as plots.bandwidth_by_size."
        )
    return families[0]


def changes(before: str, after: str, about: str = "", family: str = Matmul.family) -> str:
    """Return the lines in which two rungs of a family differ, marked - and + as by `diff`.

    Comments, macros and checks are left out. `about` keeps only the changes that have this text in one of
    their lines. Raises ValueError where there are none.
    """
    old, new = _code(before, family), _code(after, family)
    places = [
        [f"- {line}" for line in old[i1:i2]] + [f"+ {line}" for line in new[j1:j2]]
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if kind != "equal" and any(about in line for line in (*old[i1:i2], *new[j1:j2]))
    ]
    if not places:
        raise ValueError(f"{before} and {after} do not differ in a line with {about!r}.")
    indent = min(len(line[2:]) - len(line[2:].lstrip()) for place in places for line in place)
    return "\n...\n".join("\n".join(line[:2] + line[2 + indent :] for line in place) for place in places)


def recorded(sizes: Iterable[int], rungs: Collection[str], machine: str = "h200") -> pd.DataFrame:
    """Return the recorded times (`ladder.recorded`) of rungs and the reference with M = N = K = each size."""
    times = pd.concat([running.recorded(Matmul(n, n, n), machine) for n in sizes], ignore_index=True)
    return times[times.kernel.isin(rungs)].reset_index(drop=True)


def here(sizes: Iterable[int], rungs: Collection[str]) -> pd.DataFrame:
    """Measure the same on this machine's GPU (`ladder.here`); return an empty table where there is none."""
    return pd.concat([running.here(Matmul(n, n, n), *rungs) for n in sizes], ignore_index=True)


def rates(times: pd.DataFrame) -> pd.DataFrame:
    """Turn times of one product into rates: one row per rung, from the bottom of the ladder.

    `times` has the columns of `records.load`. Columns: ms, TFLOP/s, "% of cublas" (missing where it was not
    timed) and "× the one before". Raises ValueError where a rung has several times because `times` mixes
    several sizes, dtypes or sources.
    """
    order = climb(product_of(times))
    timed = times[(times.quantity == "time") & times.kernel.isin(order)].set_index("kernel")
    if timed.empty or timed.index.has_duplicates:
        raise ValueError("the frame must hold one time of each rung: choose one size, dtype and source.")
    timed = timed.loc[[rung for rung in order if rung in timed.index]]
    rate = (2.0 * timed.m * timed.n * timed.k / timed.value / 1e9).astype(float)
    best = rate.get(REFERENCE, float("nan"))
    return pd.DataFrame(
        {
            "ms": timed.value,
            "TFLOP/s": rate,
            f"% of {REFERENCE}": 100 * rate / best,
            "× the one before": rate / rate.shift(),
        }
    ).rename_axis("rung")


def counters(machine: str = "h200") -> pd.DataFrame:
    """Return what Nsight Compute counted for each rung on a recorded GPU, with N = 1024 and float32.

    Columns: instructions and sectors of global loads per multiply-add; registers per thread; and the share of
    time that two units were busy, averaged over the multiprocessors that had work: the path to L1 cache and
    shared memory, and the units that multiply and add (integers too).
    """
    runs = records.recorded(machine, list(_COUNTERS), problem="matmul", dtype="float32", n=SIZE)
    table = runs.pivot(index="kernel", columns="quantity", values="value")
    found = {
        name: table[metric] / (SIZE**3 / WARP if is_sum else 1)
        for metric, (name, is_sum) in _COUNTERS.items()
    }
    rows = [rung for rung in climb() if rung in table.index]
    return pd.DataFrame(found).astype({"registers": int}).loc[rows].rename_axis("rung")


def counted(*cases: running.Case) -> pd.DataFrame:
    """Return what the simulator counts in launches of `ladder.case`, per multiply-add: one row per case.

    Columns: `global loads` and `shared loads` (requests), and `barriers` (one per warp that reaches one).
    """
    return pd.DataFrame([_counts(case) for case in cases], index=[case.rung for case in cases])


def tiles(machine: str = "h200") -> pd.DataFrame:
    """Return each rung's tile of C with default macros, and its rate on a recorded GPU in float32.

    Columns: TILE_M and TILE_N; `per SM`, the blocks that fit a multiprocessor by their registers and threads
    (shared memory is never the limit here); TFLOP/s at N = 8192, which gives every multiprocessor enough
    blocks.
    """
    times = running.recorded(Matmul(LARGE, LARGE, LARGE), machine)
    gpu, speed, registers = occupancy.gpu(times.machine.iloc[0]), rates(times), counters(machine).registers
    rows = {}
    for rung in (each for each in climb() if each in speed.index and each != REFERENCE):
        case = running.case(rung, Matmul(LARGE, LARGE, LARGE))
        macros = dict(case.macros)
        _, block = kernels.launch(case.kernel, case.problem, **macros)
        rows[rung] = {
            "TILE_M": macros.get("TILE_M", macros.get("TILE")),
            "TILE_N": macros.get("TILE_N", macros.get("TILE")),
            "per SM": occupancy.occupancy(gpu, prod(block), int(registers[rung])).blocks,
            "TFLOP/s": speed["TFLOP/s"][rung],
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _counts(case: running.Case) -> dict[str, float]:
    kernel, launch = case.compiled()[0], case.launch(case.problem.args(np))
    profile = kernel.profile(*launch, timeout=PATIENCE_SECONDS)
    multiply_adds = case.problem.flops / 2 / WARP
    loads = profile.lines.query("op == 'ld'").groupby("space").requests.sum()
    executed = profile.ptx_lines
    barriers = executed[executed.source.str.contains("__syncthreads")].instructions.sum()
    return {
        "global loads": loads.get("global", 0) / multiply_adds,
        "shared loads": loads.get("shared", 0) / multiply_adds,
        "barriers": barriers / multiply_adds,
    }


def _code(rung: str, family: str) -> list[str]:
    """Return the lines of a rung's source without comments, macros and checks."""
    source = kernels.source(running.rungs(family)[rung])
    lines = [line.split("//")[0].rstrip() for line in source.splitlines()]
    return [line for line in lines if line and not _NO_CODE.match(line)]
