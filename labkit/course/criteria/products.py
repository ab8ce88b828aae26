"""Criteria for a matrix product that is launched as its own line says, see `labkit.yours`.

It must be right for the right reason, and meet goals for its counters. Its speed is compared with a rung of
the ladder that is timed in the same run, where there is a GPU.
"""

from dataclasses import replace
from functools import lru_cache

import pandas as pd

from labkit.course import fresh_inputs
from labkit.course.criteria.hints import Hints
from labkit.course.criteria.kernels import both_sides, case, failed_launch, missed, profiled
from labkit.course.criteria.launches import Launch, as_said
from labkit.course.criteria.undisturbed import alone
from labkit.course.exercise import Unmet, criterion
from labkit.devices.select import find_gpu
from labkit.figures import own_product
from labkit.figures.own_product import FLOATS, Figures
from labkit.kernels.matmul.family import Matmul
from simt import AnyKernel
from simt.common.errors import LaunchError
from simt.counters import profile

MAPPING = "Row i of A begins at index i * K, row k of B at k * N, row i of C at i * N."
ROUND_UP = "In the launch line N/16 drops the remainder, as in C; ceil(N/16) rounds up."
REACH = (
    "Where C is no multiple of a tile, blocks stick out over its edge: does the launch line round up, as "
    "ceil(N/16) does? Where a tile sticks out, it holds 0."
)
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
    "Two barriers per round: the tiles are complete before anyone reads them, and everyone has read them "
    "before anyone overwrites them."
)
ARRIVE = "Every thread of the block comes to every barrier, also one without an element of C."
COVER = (
    "The blocks of the launch line must cover C. Where blockIdx.x counts blocks of columns, the first size "
    "of the grid comes from N and the second from M."
)
UNREAD = "With beta = 0 the kernel must not read C: nothing was put there, and 0 * NaN is NaN."
SQUARE = (
    "Each block reads whole rows of A and columns of B: a square of C with twice the side needs half "
    "as many blocks, and each element is read half as often."
)
TOGETHER = (
    "Threads with neighbouring threadIdx.x are in one warp, and should want neighbouring elements: "
    "at least eight in a row, which are a sector."
)
PADDING = (
    "Which elements do the lanes of a warp touch at once, and how many words lie between them? A row "
    "of the tile that is a little longer moves its columns to other banks."
)
REGISTERS = (
    "A thread with a x b elements of C needs a + b elements for a b multiply-adds: let it keep them, "
    "and its sums, in registers."
)
UNROLLED = (
    "An array stays in registers where all its indices are known to the compiler: loops over it are "
    "unrolled (#pragma unroll)."
)
SPILLED = (
    "No array lies there: what a thread keeps wants more registers than it may have. Fewer elements of C per "
    "thread need fewer; __launch_bounds__(threads, blocks) and -maxrregcount set the limit."
)
WIDE = (
    "Four neighbours come in one load, as a float4, where their address is a multiple of 16 bytes; "
    "or give each thread more elements of C."
)
FILLED = "A tile is written before it is read, past the edges of A and B too: with 0."

HINTS = Hints(
    usual=MAPPING,
    out_of_bounds=GUARD,
    race=BARRIERS,
    owner=OWNER,
    edges=REACH,
    unread=UNREAD,
    unfilled=FILLED,
    misaligned=ALIGNED,
    sync=ARRIVE,
    untouched=COVER,
    fits=fresh_inputs.TILES,
)


@criterion("{text}")
def launches(kernel: AnyKernel, text: str, *problems: Matmul) -> None:
    """Ask for a launch line that comes to a launch that a GPU takes."""
    for problem in fresh_inputs.problems(problems, fresh_inputs.TILES):
        _launched(kernel, problem)


@criterion("{text}")
def right_as_launched(kernel: AnyKernel, text: str, *problems: Matmul, hint: str = "") -> None:
    """Ask for right results, and for the right reason: `kernel.check` finds nothing.

    Put problems that ask for more behind those that ask for less. `hint` is for wrong results of any kind.
    """
    hints = replace(HINTS, usual=hint, edges=hint) if hint else HINTS
    for problem in fresh_inputs.problems(problems, fresh_inputs.TILES):
        launch = _launched(kernel, problem)
        with case(str(launch)):
            findings, wrong = launch.check(kernel)
        if findings:
            first = findings[0]
            found = f"{first.tool} finds: {both_sides(first, kernel)}"
            told = [str(launch), str(wrong or ""), found, hints.for_finding(first, launch)]
            raise Unmet("\n".join(filter(None, told)), first)
        if wrong:
            raise failed_launch(launch, wrong, hints)


def _launched(kernel: AnyKernel, problem: Matmul) -> Launch:
    try:
        return as_said(kernel, problem)
    except LaunchError as error:
        raise Unmet(f"{error}\n{ROUND_UP}" if "no blocks" in str(error) else str(error)) from None


# Goals for counters, on the problem that labkit.yours.figures counts, or one in which the same tiles fit.

COUNTED = tuple(Matmul(*size) for size in ((384, 384, 96), (384, 384, 128), (384, 768, 64), (768, 384, 64)))


@lru_cache(maxsize=1)
def _counted(kernel: AnyKernel, problem: Matmul, seed: int) -> Figures:
    """Count once for all goals that are judged with one seed. Raises Unmet where the result is wrong."""
    counted = profiled(kernel, _launched(kernel, problem), REACH)
    return own_product.figures_of(kernel, problem, counted)


def _figures(kernel: AnyKernel) -> Figures:
    return _counted(kernel, fresh_inputs.one_of(own_product.MEASURED, COUNTED), fresh_inputs.fresh(0))


@criterion("at least {least} multiply-adds per sector of global loads")
def reuse(kernel: AnyKernel, least: int) -> None:
    """Ask for so many multiply-adds per sector of global loads."""
    found = _figures(kernel)
    if found.reuse < least:
        rows = profile.loads(found.profile.lines, "global")
        told = f"{found.reuse:.4g} multiply-adds per sector of global loads"
        raise _missed(found, told, f"at least {least}", rows, rows.sectors, "sectors", SQUARE)


@criterion("at most {load} sectors per 128 bytes that a line loads, {store} that it stores")
def coalesced(kernel: AnyKernel, load: int, store: int) -> None:
    """Ask that no line takes more sectors of global memory for 128 bytes; 4 are perfect."""
    found = _figures(kernel)
    goals = found.accesses.op.map({"ld": load, "st": store}).fillna(min(load, store))  # atomics do both
    above = found.accesses.assign(goal=goals)[found.accesses.sectors > goals]
    if len(above):
        worst = above.sort_values("sectors").iloc[-1]
        raise Unmet(
            f"{found.problem}\n"
            f"line {worst.line} takes {worst.sectors:.3g} sectors per 128 bytes; the goal is at most "
            f"{worst.goal}\n{worst.line:>5} | {worst.source}\n{TOGETHER}"
        )


@criterion("bank conflicts are at most {most:g} % of the passes")
def few_conflicts(kernel: AnyKernel, most: float) -> None:
    """Limit the percentage of the passes over the banks that are there for conflicts."""
    found = _figures(kernel)
    if 100 * found.conflicts > most:
        rows = found.profile.lines.query("space == 'shared' and conflicts > 0")
        told = f"{100 * found.conflicts:.3g} % of the passes over the banks are due to conflicts"
        raise _missed(found, told, f"at most {most:g} %", rows, rows.conflicts, "conflicts", PADDING)


@criterion("at most {most:g} elements from shared memory per multiply-add")
def shared(kernel: AnyKernel, most: float) -> None:
    """Limit the elements that are read from shared memory per multiply-add."""
    found = _figures(kernel)
    rows = profile.loads(found.profile.lines, "shared")
    elements = rows.useful_bytes / FLOATS
    _limit(found, found.shared, most, "elements from shared memory", rows, elements, REGISTERS)


@criterion("no local memory: what a thread keeps stays in registers")
def in_registers(kernel: AnyKernel) -> None:
    """Ask that no thread has local memory."""
    found = _figures(kernel)
    if found.local_bytes:
        lines = found.profile.lines
        hint = UNROLLED if (lines.space == "local").any() else SPILLED
        raise Unmet(
            f"{found.problem}\nEach thread has {found.local_bytes} bytes of local memory, which lies where "
            f"global memory does.\n{hint}"
        )


@criterion("at most {most:g} loads of a thread per multiply-add (in PTX)")
def loads(kernel: AnyKernel, most: float) -> None:
    """Limit the loads of a thread per multiply-add."""
    found = _figures(kernel)
    rows = profile.loads(found.profile.lines)
    _limit(found, found.loads, most, "loads of a thread", rows, rows.threads, WIDE)


@criterion("room for at least {least} warps on an SM of an H200")
def warps(kernel: AnyKernel, least: int) -> None:
    """Ask that so many warps fit a multiprocessor."""
    found = _figures(kernel)
    if found.warps < least:
        held = found.profile.occupancy
        raise Unmet(
            f"{found.problem}\n{held}; the goal is at least {least} warps\n"
            f"A thread has {held.launch__registers_per_thread} registers. Fewer elements of C per thread, a "
            "smaller tile, or __launch_bounds__(threads, blocks) make room for another block."
        )


@criterion(
    f"at least {{factor:g}} times as fast as {{rung}} in the same run, M = N = K = {own_product.LARGE.N}"
)
def faster(kernel: AnyKernel, rung: str, factor: float) -> None:
    """Ask that the kernel is so many times as fast as a rung, on this machine's GPU."""
    find_gpu()
    with alone():
        ms, wrong = own_product.measured(kernel, fresh_inputs.numbers(own_product.LARGE), rung)
    if wrong:
        raise Unmet(f"{own_product.LARGE}\n{wrong}")
    mine, theirs = (ms.set_index("kernel").value[name] for name in (own_product.NAME, rung))
    if theirs < factor * mine:
        raise Unmet(
            f"{own_product.LARGE}: yours takes {mine:.3g} ms and {rung} {theirs:.3g} ms: it is "
            f"{theirs / mine:.3g} times as fast, and the goal is {factor:g} times.\n"
            "Change one thing at a time (the tile, elements per thread, #pragma unroll) and time it again."
        )


def _limit(
    found: Figures, each: float, most: float, what: str, rows: pd.DataFrame, counts: pd.Series, hint: str
) -> None:
    """Raise Unmet where there is more than `most` of `what` for each multiply-add."""
    if each > most:
        told, costs = f"{each:.3g} {what} per multiply-add", counts / found.multiply_adds
        raise _missed(found, told, f"at most {most:g}", rows, costs, "per multiply-add", hint)


def _missed(
    found: Figures, told: str, goal: str, rows: pd.DataFrame, counts: pd.Series, what: str, hint: str
) -> Unmet:
    """Make the error of a goal that is missed; the costliest lines come first."""
    ordered = counts.sort_values(ascending=False)
    costs = (f"{count:.7g} {what}" for count in ordered)
    return missed(f"{found.problem}\n{told}", goal, rows.loc[ordered.index], costs, hint)
