"""Criteria for kernels: right results, nothing that `kernel.check` finds, and what a profile counts.

What is counted is the work of a launch whose result is right: one that does nothing costs nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd

from labkit import simt
from labkit.core.compare import Mismatch
from labkit.core.errors import InvalidAccess, SimtError
from labkit.course import drawn
from labkit.course.criteria.launches import Given, Launch, Launches, tiled
from labkit.course.exercise import Criterion, Unmet
from labkit.kernels import verify
from labkit.kernels.problem import Problem

SOUND = "right for the right reason: no race, nothing outside the arrays, nothing read before it is written"
LOADS = ("global", "shared")
ATOMIC = "Atomic additions load as well, one lane after the other: each lane counts as a request. "


@dataclass(frozen=True)
class Hints:
    """The end of a message: the usual one, that for an access outside an array, that for a race.

    `owner` is for a race on an argument, where `race` speaks of barriers: they order no other block.
    """

    usual: str = ""
    out_of_bounds: str = ""
    race: str = ""
    owner: str = ""

    def after(self, finding: simt.Finding) -> str:
        """The hint that fits a finding."""
        is_shared = "of shared" in str(finding).partition("\n")[0]
        race = self.race if is_shared else self.owner or self.race
        return {"memcheck": self.out_of_bounds, "racecheck": race}.get(finding.tool) or self.usual


NO_HINTS = Hints()


def right_in(text: str, launches: Launches, hints: Hints = NO_HINTS) -> Criterion:
    """Criterion: right results. Of wrong ones the reason is told, where `kernel.check` finds one."""

    def test(kernel: simt.AnyKernel) -> None:
        for launch in launches(kernel):
            args = launch.args()
            with case(str(launch), hints.usual, hints.out_of_bounds):
                kernel(launch.grid, launch.block, args, timeout=verify.TIMEOUT)
            try:
                launch.verify(args)
            except Mismatch as error:
                _no_finding(kernel, launch, hints, f"{error}\n")
                with case(str(launch), hints.usual):
                    raise

    return Criterion(text, test)


def no_finding_in(text: str, launches: Launches, hints: Hints = NO_HINTS) -> Criterion:
    """Criterion: `kernel.check` finds nothing, also where a mistake gives right results."""

    def test(kernel: simt.AnyKernel) -> None:
        for launch in launches(kernel):
            args = _no_finding(kernel, launch, hints)
            with case(str(launch), hints.usual):
                launch.verify(args)

    return Criterion(text, test)


def right_on(
    text: str, *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    """Criterion: right results for `problems`, launched as `Problem.launch(tile, rows)` says; see
    `right_in`.
    """
    return right_in(text, _on(problems, tile, rows), hints)


def no_finding(
    *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    """Criterion: `kernel.check` finds nothing for `problems`, launched likewise."""
    return no_finding_in(SOUND, _on(problems, tile, rows), hints)


def clean_in(launches: Launches, hints: Hints = NO_HINTS) -> Criterion:
    """`no_finding_in`, told in other words."""
    return no_finding_in("right for the right reason: kernel.check finds nothing", launches, hints)


def at_most(
    most: float, what: str, text: str, problem: Problem, *, hint: str, tile: int = 16, rows: int | None = None
) -> Criterion:
    """Criterion: no source line has more than `most` of `what`, a column of `Profile.lines`.

    Such as at_most(4, "sectors_per_request", …) or at_most(0, "conflicts", …), counted in a launch on
    `problem`. `hint` ends the message.
    """

    def test(kernel: simt.AnyKernel) -> None:
        lines = profiled(kernel, tiled(problem, tile, rows)).lines
        above = lines[lines[what] > most]
        if len(above):
            worst = above.nlargest(1, what).iloc[0]
            count = f"{worst[what]:.4g} {what.replace('_', ' ')}"
            raise Unmet(
                f"{problem}\n"
                f"line {worst.line} has {count}; the goal is at most {most:g}\n"
                f"{worst.line:>5} | {worst.source}\n{hint}"
            )

    return Criterion(text, test)


def loads_in(
    most: int, text: str, make: Callable[[], Given], *, spaces: Sequence[str] = LOADS, hint: str
) -> Criterion:
    """Criterion: warps load at most so often from these memories, all lines together, and add atomically."""

    def test(kernel: simt.AnyKernel) -> None:
        given = make()
        lines = profiled(kernel, given).lines
        # Atomic additions read, too, one lane after the other.
        is_atomic = lines.op.isin(["atom", "red"])
        lines = lines.assign(requests=lines.requests.where(~is_atomic, lines.threads))
        loads = lines[lines.space.isin(spaces) & ((lines.op == "ld") | is_atomic)]
        if loads.requests.sum() > most:
            requests = listed(loads, (f"{count} requests" for count in loads.requests))
            raise Unmet(
                f"{given}\n{loads.requests.sum()} requests to load; the goal is at most {most}\n{requests}\n"
                f"{ATOMIC if is_atomic.any() else ''}{hint}"
            )

    return Criterion(text, test)


def profiled(kernel: simt.AnyKernel, launch: Launch, hint: str = "") -> simt.Profile:
    """The profile of a launch, which must leave right results. Raises Unmet, which `hint` ends, otherwise."""
    args = launch.args()
    with case(str(launch), hint):
        profile = kernel.profile(launch.grid, launch.block, args, timeout=verify.TIMEOUT)
        launch.verify(args)
    return profile


def listed(lines: pd.DataFrame, costs: Iterable[str]) -> str:
    """Rows of `Profile.lines` as lines of the source, each with what it costs."""
    return "\n".join(
        f"{row.line:>5} | {row.source}    {cost}" for row, cost in zip(lines.itertuples(), costs, strict=True)
    )


def recompiled(kernel: simt.AnyKernel, **macros: str | int) -> simt.AnyKernel:
    """The kernel's source compiled with these macros in the place of their old values."""
    module = kernel.module
    options = [each for each in module.options if not each.startswith(tuple(f"-D{name}" for name in macros))]
    options += [f"-D{name}={value}" for name, value in macros.items()]
    return module.with_options(options).get_function(kernel.name)


@contextmanager
def case(what: str, hint: str = "", out_of_bounds: str = "") -> Iterator[None]:
    """Tell the student which launch it was that failed inside.

    `hint` ends the message, but for an access outside an array `out_of_bounds` does, where it is given.
    """
    try:
        yield
    except (Mismatch, SimtError) as error:
        fitting = out_of_bounds if isinstance(error, InvalidAccess) and out_of_bounds else hint
        raise Unmet("\n".join(filter(None, (what, str(error), fitting)))) from None


def both_sides(finding: simt.Finding, kernel: simt.AnyKernel) -> str:
    """A finding with its line, and of a race with the line on the other side."""
    other = finding.other_line
    if other in (0, finding.line):
        return str(finding)
    return f"{finding}\n    {other:>4} | {kernel.module.code.splitlines()[other - 1].strip()}"


def _on(problems: Sequence[Problem], tile: int, rows: int | None) -> Launches:
    return lambda _: [tiled(problem, tile, rows) for problem in drawn.problems(problems, tile)]


def _no_finding(kernel: simt.AnyKernel, launch: Launch, hints: Hints, seen: str = "") -> Sequence[Any]:
    """The arguments after a launch in which `kernel.check` finds nothing.

    Raises Unmet with the first finding, after what was `seen` to be wrong.
    """
    args = launch.args(is_poisoned=True)
    for finding in kernel.check(launch.grid, launch.block, args, timeout=verify.TIMEOUT)[:1]:
        told = f"{launch}\n{seen}{finding.tool} finds: {both_sides(finding, kernel)}"
        raise Unmet("\n".join(filter(None, (told, hints.after(finding))))) from None
    return args
