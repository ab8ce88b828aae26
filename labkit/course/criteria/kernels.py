"""Criteria for kernels: right results, nothing that `kernel.check` finds, and what a profile counts.

What is counted is the work of a launch whose result is right: one that does nothing costs nothing.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd

from labkit.course import fresh_inputs
from labkit.course.criteria.hints import NO_HINTS, Hints
from labkit.course.criteria.launches import Launch, Launches, Wrong, tiled
from labkit.course.exercise import Criterion, Unmet, criterion
from labkit.kernels.problem import Problem
from simt import AnyKernel, Finding, Profile
from simt.common.compare import Mismatch
from simt.common.errors import InvalidAccess, SimtError
from simt.common.limits import WARP
from simt.common.occupancy import DEFAULT_GPU
from simt.counters.profile import loads, stores
from simt.counters.sectors import SECTOR_BYTES

SOUND = "right for the right reason: no race, nothing outside the arrays, nothing read before it is written"
LOADS = ("global", "shared")
ATOMIC = "Atomic additions load as well, one lane after the other: each lane counts as a request. "


BUSIEST = 2  # times the instructions of an average warp of a block
LEAST_ACTIVE = 1 / 4  # of the lanes that a warp of the launch has
PARTS = 12  # of a grid that are run alone
WORD = 4  # bytes of an element
BESIDE = 8  # sectors that a warp writes at once: twice as many as 32 elements in a row have
COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)  # one that is left open goes on to the end
BLOCKS = (
    "Threads are counted by threadIdx.x along x, with blockDim.x of them in a block, and by threadIdx.y "
    "along y, with blockDim.y. Here the two differ."
)
APART = (
    "Each element comes no more often than it may, but lanes of a warp ask for elements that lie apart. "
    "Neighbours along threadIdx.x should bring neighbours of a row."
)
OWN = "Each thread should have elements of its own."
FEW_THREADS, FEW_WARPS = "a few threads do the work of all", "few warps do the work of all"
LITTLE = "leave little to the others"


@dataclass(frozen=True)
class Shares:
    """What each thread may do of a launch, which should have few blocks and fill them.

    No part of the grid may write more than `factor` times its fair share of the output, no warp of a block
    may run much more than its share of the instructions, no thread may write more than `elements` on average,
    and all together may load at most `loads` elements. Where there is a hint `once`, each element of the
    output is written once; where there is a hint `beside`, lanes of a warp write elements that lie side by
    side.
    """

    launch: Callable[[AnyKernel], Launch]
    factor: float = 2
    elements: int = 256
    loads: int | None = None
    once: str = ""
    beside: str = ""

    def ask(self, kernel: AnyKernel) -> None:
        """Raise Unmet where few threads do the work of all, or where threads do it more than once."""
        launch = self.launch(kernel)
        profile = profiled(kernel, launch)
        threads, blocks = math.prod(launch.block), math.prod(launch.grid)
        output = launch.task.output(launch.task.args(np)).size
        stored, loaded = (
            int(many(profile.lines, "global").useful_bytes.sum()) // WORD for many in (stores, loads)
        )
        counts, most = profile.ptx_lines[["active", "instructions"]].sum(), min(WARP, threads)
        lanes = counts.active / counts.instructions
        worst = stores(profile.lines, "global").sectors_per_request.max()
        if self.beside and worst > BESIDE:
            raise Unmet(
                f"{launch}\na warp's store to global memory takes {worst:.3g} sectors.\n{self.beside}"
            )
        if self.once and stored > output:
            raise Unmet(f"{launch}\n{output} elements are written {stored} times.\n{self.once}")
        if self.loads is not None and loaded > self.loads:
            raise Unmet(
                f"{launch}\nall threads together load {loaded} elements; {self.loads} are plenty. Each "
                "thread should load what its own elements need, and no other's."
            )
        if lanes < LEAST_ACTIVE * most or output > self.elements * threads * blocks:
            raise Unmet(
                f"{launch}\non average {lanes:.2g} of {most} lanes are active, and {output} elements are "
                f"written: {FEW_THREADS}. {OWN}"
            )
        average = sum(profile.by_warp) / len(profile.by_warp)
        if max(profile.by_warp) > BUSIEST * average:
            busiest = profile.by_warp.index(max(profile.by_warp))
            raise Unmet(
                f"{launch}\nwarp {busiest} of a block runs {max(profile.by_warp)} instructions; on average a "
                f"warp runs {average:.0f}: {FEW_WARPS}. {OWN}"
            )
        for part, written in enumerate(launch.written_by_part(kernel, PARTS)):
            own = len(range(part, blocks, PARTS))
            if written > self.factor * output * own / blocks:
                raise Unmet(
                    f"{launch}\n{own * threads} threads write {written} of the {output} elements, and "
                    f"{LITTLE}. {OWN}"
                )


def shared_out(criterion: Criterion, shares: Shares) -> Criterion:
    """Return the criterion, which then also asks that threads share the work out."""

    def test(kernel: AnyKernel) -> None:
        criterion.test(kernel)
        shares.ask(kernel)

    return Criterion(criterion.text, test)


def other_blocks(criterion: Criterion, *launches: Launch) -> Criterion:
    """Return the criterion, which then also tries launches with blocks of another shape.

    They are for kernels that ask for blockDim: where the exercise says 16 x 16, a kernel may rely on it.
    """

    def test(kernel: AnyKernel) -> None:
        criterion.test(kernel)
        if re.search(r"\bblockDim\b", COMMENT.sub("", kernel.module.code)):
            right_in("", lambda _: launches, Hints(BLOCKS)).test(kernel)

    return Criterion(criterion.text, test)


@criterion("{text}")
def right_in(kernel: AnyKernel, text: str, launches: Launches, hints: Hints = NO_HINTS) -> None:
    """Ask for right results. Wrong ones are told with their reason, where `kernel.check` finds one."""
    for launch in launches(kernel):
        try:
            launch.run(kernel)
        except Wrong as wrong:
            _no_finding(kernel, launch, hints, f"{wrong}\n")
            raise failed_launch(launch, wrong, hints) from None
        except SimtError as error:
            raise failed_launch(launch, error, hints) from None


@criterion("{text}")
def no_finding_in(kernel: AnyKernel, text: str, launches: Launches, hints: Hints = NO_HINTS) -> None:
    """Ask for launches in which `kernel.check` finds nothing, also where a mistake gives right results."""
    for launch in launches(kernel):
        wrong = _no_finding(kernel, launch, hints)
        if wrong:
            raise failed_launch(launch, wrong, hints)


def right_on(
    text: str, *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    """Ask for right results for `problems`, launched as `Problem.launch(tile, rows)` says."""
    return right_in(text, _on(problems, tile, rows), hints)


def no_finding(
    *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    """Ask that `kernel.check` finds nothing for `problems`, launched likewise.

    Inside `drawn` they have a much longer side, too: barriers may not depend on a loop's few rounds.
    """
    return no_finding_in(SOUND, _on(problems, tile, rows, longer=True), hints)


def clean_in(launches: Launches, hints: Hints = NO_HINTS) -> Criterion:
    """Ask for the same as `no_finding_in`, in other words."""
    return no_finding_in("right for the right reason: kernel.check finds nothing", launches, hints)


@criterion("{text}")
def at_most(
    kernel: AnyKernel, most: float, what: str, text: str, make: Callable[[], Launch], *, hint: str
) -> None:
    """Ask that no source line has more than `most` of `what`, a column of `Profile.lines`.

    Examples are at_most(4, "sectors_per_request", …) and at_most(0, "conflicts", …), counted in the launch
    that `make` makes. `hint` ends the message.
    """
    launch = make()
    lines = profiled(kernel, launch).lines
    above = lines[lines[what] > most]
    if len(above):
        worst = above.nlargest(1, what).iloc[0]
        count = f"{worst[what]:.4g} {what.replace('_', ' ')}"
        raise Unmet(
            f"{launch}\n"
            f"line {worst.line} has {count}; the goal is at most {most:g}\n"
            f"{worst.line:>5} | {worst.source}\n{hint}"
        )


@criterion("{text}")
def loads_in(
    kernel: AnyKernel,
    most: int,
    text: str,
    make: Callable[..., Launch],
    first: fresh_inputs.Size,
    *others: fresh_inputs.Size,
    whole: int = 1,
    spaces: Sequence[str] = LOADS,
    hint: str,
) -> None:
    """Ask that warps load at most so often from these memories, all lines together; atomics load too.

    `most` is for the first of the stated sizes, which `make` makes launches of; it grows with their product.
    """
    for size in fresh_inputs.instead([first, *others], whole):
        _few_loads(kernel, most * math.prod(size) // math.prod(first), make(*size), spaces, hint)


def _few_loads(kernel: AnyKernel, most: int, launch: Launch, spaces: Sequence[str], hint: str) -> None:
    lines = profiled(kernel, launch).lines
    # Atomic additions read, too, one lane after the other.
    is_atomic = lines.op.isin(["atom", "red"])
    lines = lines.assign(requests=lines.requests.where(~is_atomic, lines.threads))
    own = loads(lines, *spaces)
    if own.requests.sum() > most:
        found = f"{launch}\n{own.requests.sum()} requests to load"
        requests = (f"{count} requests" for count in own.requests)
        raise missed(found, f"at most {most}", own, requests, f"{ATOMIC if is_atomic.any() else ''}{hint}")


def few_sectors(kernel: AnyKernel, launch: Launch, most: int, told: str, hint: str) -> None:
    """Raise Unmet where global loads touch more than `most` sectors; `told` begins the message."""
    counted = profiled(kernel, launch)
    sectors = loads(counted.lines, "global").sectors.sum()
    if sectors > most:
        comes_once = loads(counted.lines, "global").useful_bytes.sum() <= SECTOR_BYTES * most
        lines = global_loads(counted)
        raise missed(f"{told}: {sectors} sectors", f"at most {most}", *lines, APART if comes_once else hint)


def global_loads(counted: Profile) -> tuple[pd.DataFrame, Iterable[str]]:
    """Return the lines of a profile with global loads, and their sectors in words."""
    own = loads(counted.lines, "global")
    return own, (f"{count} sectors" for count in own.sectors)


def profiled(kernel: AnyKernel, launch: Launch, hint: str = "", gpu: str = DEFAULT_GPU) -> Profile:
    """Profile a launch, which must leave right results. Raises Unmet, which `hint` ends, otherwise."""
    try:
        return launch.profile(kernel, gpu)
    except Wrong as wrong:
        _no_finding(kernel, launch, Hints(hint), f"{wrong}\n")
        raise failed_launch(launch, wrong, Hints(hint)) from None
    except SimtError as error:
        raise failed_launch(launch, error, Hints(hint)) from None


def missed(found: str, goal: str, lines: pd.DataFrame, costs: Iterable[str], hint: str) -> Unmet:
    """Make the error of a goal that is missed: what was found, the goal, the lines' costs, and a hint."""
    return Unmet(f"{found}; the goal is {goal}\n{listed(lines, costs)}\n{hint}")


def listed(lines: pd.DataFrame, costs: Iterable[str]) -> str:
    """Write rows of `Profile.lines` as lines of the source, each with what it costs."""
    return "\n".join(
        f"{row.line:>5} | {row.source}    {cost}" for row, cost in zip(lines.itertuples(), costs, strict=True)
    )


def recompiled(kernel: AnyKernel, **macros: str | int) -> AnyKernel:
    """Compile the kernel's source with these macros in the place of their old values."""
    module = kernel.module
    replaced = {f"-D{name}" for name in macros}
    options = [each for each in module.options if each.partition("=")[0] not in replaced]
    options += [f"-D{name}={value}" for name, value in macros.items()]
    return module.with_options(options).get_function(kernel.name)


def failed_launch(launch: Launch, error: Wrong | SimtError, hints: Hints) -> Unmet:
    """Make the error of a launch that failed: what was seen, and the hint that fits it, if one does."""
    if isinstance(error, Wrong):
        hint = hints.for_results(error, launch)
    else:
        hint = hints.for_finding(error.finding, launch) if isinstance(error.finding, Finding) else ""
    return Unmet("\n".join(filter(None, (str(launch), str(error), hint))), error)


@contextmanager
def case(what: str, out_of_bounds: str = "") -> Iterator[None]:
    """Tell the student which launch it was that failed inside.

    `out_of_bounds` ends the message for an access outside an array.
    """
    try:
        yield
    except (Mismatch, SimtError) as error:
        hint = out_of_bounds if isinstance(error, InvalidAccess) else ""
        raise Unmet("\n".join(filter(None, (what, str(error), hint))), error) from None


def both_sides(finding: Finding, kernel: AnyKernel) -> str:
    """Write a finding with its line, and a race also with the line on the other side."""
    other = finding.other_line
    if other in (0, finding.line):
        return str(finding)
    return f"{finding}\n    {other:>4} | {kernel.module.code.splitlines()[other - 1].strip()}"


def _on(problems: Sequence[Problem], tile: int, rows: int | None, longer: bool = False) -> Launches:
    return lambda _: [tiled(each, tile, rows) for each in fresh_inputs.problems(problems, tile, longer)]


def _no_finding(kernel: AnyKernel, launch: Launch, hints: Hints, seen: str = "") -> Wrong | None:
    """Return what is wrong with the results of a launch in which `kernel.check` finds nothing.

    Raises Unmet with the first finding, after what was `seen` to be wrong.
    """
    findings, wrong = launch.check(kernel)
    for finding in [each for each in findings if each.kind not in hints.ignores][:1]:
        told = f"{launch}\n{seen}{finding.tool} finds: {both_sides(finding, kernel)}"
        words = "\n".join(filter(None, (told, hints.for_finding(finding, launch))))
        raise Unmet(words, finding) from None
    return wrong
