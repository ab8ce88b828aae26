"""Criteria for a matrix product that is launched as its own line says, see `labkit.yours`.

It must be right for the right reason, and keep to goals for its counters; speed is a ratio to a rung of the
ladder, timed in the same run, and judged where there is a GPU.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pandas as pd

from labkit import simt
from labkit.core.compare import Mismatch, unwritten
from labkit.core.errors import LaunchError
from labkit.core.limits import Dim3
from labkit.course import drawn
from labkit.course.criteria.kernels import both_sides, case, listed
from labkit.course.criteria.undisturbed import alone
from labkit.course.exercise import Criterion, Unmet
from labkit.device.select import find_gpu
from labkit.figures import own_product
from labkit.figures.own_product import FLOATS, Figures
from labkit.kernels import verify
from labkit.kernels.matmul.family import Matmul

FITS = 32  # divides the sizes that tiles fit
MAPPING = "Row i of A begins at index i * K, row k of B at k * N, row i of C at i * N."
ROUND_UP = "In the launch line N/16 drops the remainder, as in C; ceil(N/16) rounds up."
REACH = (
    "Where C is no multiple of a tile, blocks stick out over its edge: does the launch line round up, as "
    "ceil(N/16) does? Where a tile sticks out, it holds 0."
)
SCALE = "alpha scales the sum alone, beta the old element of C."
GUARD = (
    "Compare each index with the size that bounds it: rows of A and C with M, columns of B and C with N, "
    "columns of A and rows of B with K."
)
ALIGNED = (
    "A float4 is read and written where the address is a multiple of 16 bytes: its index must be a multiple "
    "of 4, and so must the length of the rows."
)
OWNER = "Each element of C is the work of one thread alone: does the launch line fit the kernel's indices?"
BARRIERS = (
    "Two barriers a round: the tiles are complete before anyone reads them, and everyone has read them "
    "before anyone overwrites them."
)
ARRIVE = "Every thread of the block comes to every barrier, also one without an element of C."
UNREAD = "With beta = 0 the kernel must not read C: nothing was put there, and 0 * NaN is NaN."
FILLED = "A tile is written before it is read, past the edges of A and B too: with 0."


def launches(text: str, *problems: Matmul) -> Criterion:
    """Criterion: the launch line comes to a launch that a GPU takes."""

    def test(kernel: simt.AnyKernel) -> None:
        for problem in drawn.problems(problems, drawn.TILES):
            _launched(kernel, problem)

    return Criterion(text, test)


def right_as_launched(text: str, *problems: Matmul, hint: str = "") -> Criterion:
    """Criterion: right results, and for the right reason: `kernel.check` finds nothing.

    Without a `hint` on wrong results it is one on what the problem asks for: so put problems that ask for
    more behind those that ask for less.
    """

    def test(kernel: simt.AnyKernel) -> None:
        for problem in map(drawn.numbers, drawn.problems(problems, drawn.TILES)):
            usual = hint or _usual(problem)
            grid, block = _launched(kernel, problem)
            told, args = f"{problem}, grid {grid}, block {block}", list(problem.args(np))
            if not problem.beta:
                args[2] = simt.empty(args[2].shape, args[2].dtype)
            with case(told):
                findings = kernel.check(grid, block, args, timeout=verify.TIMEOUT)
            wrong = _wrong(problem, args[2])
            if findings:
                first = findings[0]
                said = (
                    told,
                    wrong,
                    f"{first.tool} finds: {both_sides(first, kernel)}",
                    _reason(first, usual),
                )
                raise Unmet("\n".join(filter(None, said)))
            if wrong:
                raise Unmet(f"{told}\n{wrong}\n{usual}")

    return Criterion(text, test)


def _launched(kernel: simt.AnyKernel, problem: Matmul) -> tuple[Dim3, Dim3]:
    try:
        return own_product.launch(kernel, problem)
    except LaunchError as error:
        raise Unmet(f"{error}\n{ROUND_UP}" if "no blocks" in str(error) else str(error)) from None


def _wrong(problem: Matmul, c: np.ndarray) -> str:
    """What is wrong with C, in words; elements that nothing was written to are told as such."""
    nothing = simt.empty(1).view(np.uint32)[0]
    found = np.where(c.view(np.uint32) == nothing, unwritten(c.shape, problem.dtype), c)
    try:
        problem.verify(found)
    except Mismatch as error:
        return str(error)
    return ""


def _usual(problem: Matmul) -> str:
    """The hint for a wrong result without a finding."""
    if (problem.alpha, problem.beta) != (1, 0):
        return SCALE
    return REACH if any(size % FITS for size in (problem.M, problem.N, problem.K)) else MAPPING


def _reason(finding: simt.Finding, usual: str) -> str:
    """The hint that fits a finding."""
    text = str(finding).splitlines()[0]
    by_tool = {
        "memcheck": ALIGNED if finding.kind == "misaligned" else GUARD,
        "racecheck": BARRIERS if "of shared" in text else OWNER,
        "synccheck": ARRIVE,
        "initcheck": UNREAD if "argument 2" in text else FILLED,
    }
    return by_tool.get(finding.tool, usual)


# Goals for counters, in the launch that labkit.yours.figures counts.


@lru_cache(maxsize=1)
def _figures(kernel: simt.AnyKernel, problem: Matmul) -> Figures:
    """Counted once for all goals. Raises Unmet where the result is wrong."""
    found = own_product.figures(kernel, problem)
    wrong = _wrong(found.problem, found.result)
    if wrong:
        raise Unmet(f"{found.problem}\n{wrong}\n{REACH}")
    return found


def _goal(text: str, judge: Callable[[Figures], str]) -> Criterion:
    """Criterion on the figures: `judge` says what they fall short of, or nothing."""

    def test(kernel: simt.AnyKernel) -> None:
        found = _figures(kernel, drawn.numbers(own_product.MEASURED))
        if words := judge(found):
            raise Unmet(f"{found.problem}\n{words}")

    return Criterion(text, test)


def reuse(least: int) -> Criterion:
    """Criterion: so many multiply-adds at least for each sector of global loads."""

    def judge(found: Figures) -> str:
        if found.reuse >= least:
            return ""
        loads = found.profile.lines.query("space == 'global' and op == 'ld'")
        return (
            f"{found.reuse:.4g} multiply-adds for each sector of global loads; the goal is at least {least}\n"
            f"{_listed(loads, loads.sectors, 'sectors')}\n"
            "Each block reads whole rows of A and columns of B: a square of C with twice the side needs half "
            "as many blocks, and each element is read half as often."
        )

    return _goal(f"at least {least} multiply-adds for each sector of global loads", judge)


def coalesced(load: int, store: int) -> Criterion:
    """Criterion: no line loads or stores with more sectors of global memory for 128 bytes; 4 are perfect."""
    most = {"ld": load, "st": store}

    def judge(found: Figures) -> str:
        goals = found.accesses.op.map(most)
        above = found.accesses.assign(goal=goals)[found.accesses.sectors > goals]
        if above.empty:
            return ""
        worst = above.sort_values("sectors").iloc[-1]
        return (
            f"line {worst.line} takes {worst.sectors:.3g} sectors for each 128 bytes; the goal is at most "
            f"{worst.goal}\n{worst.line:>5} | {worst.source}\n"
            "Threads with neighbouring threadIdx.x are in one warp, and should want neighbouring elements: "
            "at least eight in a row, which are a sector."
        )

    return _goal(f"at most {load} sectors for 128 bytes that a line loads, {store} that it stores", judge)


def few_conflicts(most: float) -> Criterion:
    """Criterion: so many percent of the passes over the banks at most are there for conflicts."""

    def judge(found: Figures) -> str:
        if 100 * found.conflicts <= most:
            return ""
        rows = found.profile.lines.query("space == 'shared' and conflicts > 0")
        return (
            f"{100 * found.conflicts:.3g} % of the passes over the banks are due to conflicts; the goal is "
            f"at most {most:g} %\n{_listed(rows, rows.conflicts, 'conflicts')}\n"
            "Which elements do the lanes of a warp touch at once, and how many words lie between them? A row "
            "of the tile that is a little longer moves its columns to other banks."
        )

    return _goal(f"bank conflicts are at most {most:g} % of the passes", judge)


def shared(most: float) -> Criterion:
    """Criterion: so many elements from shared memory at most for each multiply-add."""

    def judge(found: Figures) -> str:
        if found.shared <= most:
            return ""
        rows = found.profile.lines.query("space == 'shared' and op == 'ld'")
        return (
            f"{found.shared:.3g} elements from shared memory for each multiply-add; "
            f"the goal is at most {most:g}\n"
            f"{_listed(rows, rows.useful_bytes / FLOATS / found.multiply_adds, 'a multiply-add')}\n"
            "A thread with a x b elements of C needs a + b elements for a b multiply-adds: let it keep them, "
            "and its sums, in registers."
        )

    return _goal(f"at most {most:g} elements from shared memory for a multiply-add", judge)


def in_registers() -> Criterion:
    """Criterion: no thread has local memory."""

    def judge(found: Figures) -> str:
        if not found.local_bytes:
            return ""
        return (
            f"Each thread has {found.local_bytes} bytes of local memory, which lies where global memory "
            "does.\n"
            "An array stays in registers where all its indices are known to the compiler (loops over it are "
            "unrolled: #pragma unroll), and where there are not too many of them."
        )

    return _goal("no local memory: what a thread keeps stays in registers", judge)


def loads(most: float) -> Criterion:
    """Criterion: so many loads of a thread at most for each multiply-add."""

    def judge(found: Figures) -> str:
        if found.loads <= most:
            return ""
        rows = found.profile.lines.query("op == 'ld' and space != 'const'")
        return (
            f"{found.loads:.3g} loads of a thread for each multiply-add; the goal is at most {most:g}\n"
            f"{_listed(rows, rows.threads / found.multiply_adds, 'a multiply-add')}\n"
            "Four neighbours come in one load, as a float4, where their address is a multiple of 16 bytes; "
            "or give each thread more elements of C."
        )

    return _goal(f"at most {most:g} loads of a thread for a multiply-add (in PTX)", judge)


def warps(least: int) -> Criterion:
    """Criterion: so many warps at least fit a multiprocessor."""

    def judge(found: Figures) -> str:
        if found.warps >= least:
            return ""
        held = found.profile.occupancy
        return (
            f"{held}; the goal is at least {least} warps\n"
            f"A thread has {held.launch__registers_per_thread} registers. Fewer elements of C a thread, a "
            "smaller tile, or __launch_bounds__(threads, blocks) make room for another block."
        )

    return _goal(f"room for at least {least} warps on a multiprocessor of an H200", judge)


def faster(rung: str, factor: float) -> Criterion:
    """Criterion: so many times at least as fast as a rung, on this machine's GPU."""

    def test(kernel: simt.AnyKernel) -> None:
        find_gpu()
        with alone():
            ms, wrong = own_product.measured(kernel, drawn.numbers(own_product.LARGE), rung)
        if wrong:
            raise Unmet(f"{own_product.LARGE}\n{wrong}")
        mine, theirs = (ms.set_index("kernel").value[name] for name in (own_product.NAME, rung))
        if theirs < factor * mine:
            raise Unmet(
                f"{own_product.LARGE}: yours takes {mine:.3g} ms and {rung} {theirs:.3g} ms: it is "
                f"{theirs / mine:.3g} times as fast, and the goal is {factor:g} times.\n"
                "Change one thing at a time (the tile, elements a thread, #pragma unroll) and time it again."
            )

    return Criterion(
        f"at least {factor:g} times as fast as {rung} in the same run, M = N = K = {own_product.LARGE.N}",
        test,
    )


def _listed(rows: pd.DataFrame, counts: pd.Series, what: str) -> str:
    """Source lines, the costliest first."""
    ordered = counts.sort_values(ascending=False)
    return listed(rows.loc[ordered.index], (f"{count:.7g} {what}" for count in ordered))
