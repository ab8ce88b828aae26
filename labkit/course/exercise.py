"""Exercises: what a kernel or C function has to do, as a list of criteria, and the judgement of one.

A kernel is checked in the simulator, also where there is a GPU: there a stray write goes unnoticed or ends
the session, and its counters want another tool. So a check's answer is the same on every machine. A C
function (c_criteria.py) runs here, in a process of its own, and a Python function (py_criteria.py) where
the notebook runs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from labkit import checks, simt
from labkit.c.function import CFunction
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.device import NoGpu
from labkit.errors import InvalidAccess, SimtError
from labkit.mismatch import Mismatch
from labkit.problems import Problem, Shape


class Unmet(Exception):
    "A criterion is not met; the message tells the student why, and what to look at."


@dataclass(frozen=True)
class Criterion:
    """One thing asked of an answer: its `text` as the student reads it, and the test.

    The test gets the kernel, compiled for the simulator, or the CFunction, or the Python function. If that
    falls short it raises Unmet, Mismatch or SimtError; where it takes a GPU and there is none, NoGpu.
    """

    text: str
    test: Callable[[Any], None]


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
        "The hint that fits a finding."
        is_shared = "of shared" in str(finding).partition("\n")[0]
        race = self.race if is_shared else self.owner or self.race
        return {"memcheck": self.out_of_bounds, "racecheck": race}.get(finding.tool) or self.usual


class Launch(Protocol):
    "A launch that a criterion tries; str() tells the student which it was."

    @property
    def grid(self) -> Any:
        "As in a call of the kernel."

    @property
    def block(self) -> Any:
        "As in a call of the kernel."

    def args(self, is_poisoned: bool = False) -> Sequence[Any]:
        "Fresh arguments; `is_poisoned`: an output that must not be read is memory that nobody has written."

    def verify(self, args: Sequence[Any]) -> None:
        "Raise Mismatch unless the launch has left the right results in `args`."


@dataclass(frozen=True)
class OnProblem:
    "The launch on a problem that `Problem.launch(tile, rows)` says."

    problem: Problem
    tile: int
    rows: int | None

    @property
    def grid(self) -> Shape:
        "Blocks in x and y."
        return self.problem.launch(self.tile, self.rows)[0]

    @property
    def block(self) -> Shape:
        "Threads in x and y."
        return self.problem.launch(self.tile, self.rows)[1]

    def args(self, is_poisoned: bool = False) -> Sequence[Any]:
        "See Launch. An output that beta scales is read."
        args = list(self.problem.args(np))
        if is_poisoned and not getattr(self.problem, "beta", 0):
            at = list(self.problem.shapes()).index(self.problem.output_name)
            args[at] = simt.empty(args[at].shape, args[at].dtype)
        return args

    def verify(self, args: Sequence[Any]) -> None:
        "See Launch."
        self.problem.verify(self.problem.output(tuple(args)))

    def __str__(self) -> str:
        return f"{self.problem}, grid {self.grid}, block {self.block}"


@dataclass(frozen=True)
class Exercise:
    """An exercise: its stable `id` (02.1 is the first of notebook 02), what it is worth, and criteria in the
    order of judging.

    `magic` is that of its answer cell: cuda for a kernel, c for a C function, answer for one in Python.
    """

    id: str
    title: str
    points: int
    criteria: tuple[Criterion, ...]
    magic: str = "cuda"

    def judge(self, answer: Any) -> Feedback:
        "Try the criteria on `answer`, a kernel or CFunction, up to the first that it does not meet."
        magic = _magic_of(answer)
        if magic != self.magic:
            return self.not_judged(
                f"the answer is a cell of %%{self.magic}",
                f"This is {ASKED[magic]}, and {self.id} asks for {ASKED[self.magic]}: "
                f"begin the cell with %%{self.magic} {self.id}.",
            )
        judged, lines, failure = _simulated(answer) if magic == "cuda" else answer, [], None
        for criterion in self.criteria:
            state = NOT_JUDGED if failure else MET
            if not failure:
                try:
                    criterion.test(judged)
                except NoGpu:
                    state = NEEDS_GPU
                except (Unmet, Mismatch, SimtError) as error:
                    state, failure = FAILED, str(error)
            lines.append(Line(criterion.text, state))
        return Feedback(f"{self.id} {self.title}", tuple(lines), failure)

    def not_judged(self, text: str, failure: str) -> Feedback:
        "Feedback on an answer that no criterion can be tried on: what it lacks, and why."
        return Feedback(f"{self.id} {self.title}", (Line(text, FAILED),), failure)


NO_HINTS = Hints()
SOUND = "right for the right reason: no race, nothing outside the arrays, nothing read before it is written"
# What the answer of a cell is, by its magic.
ASKED = {"cuda": "a CUDA kernel", "c": "a C function", "answer": "a Python function"}


def by_id(exercises: Iterable[Exercise]) -> dict[str, Exercise]:
    "Exercises by their ids, which must differ."
    found: dict[str, Exercise] = {}
    for exercise in exercises:
        if exercise.id in found:
            titles = f"{found[exercise.id].title!r} and {exercise.title!r}"
            raise ValueError(f"two exercises have the id {exercise.id}: {titles}.")
        found[exercise.id] = exercise
    return found


def right(text: str, problem: str = "matmul", **settings: Any) -> Criterion:
    "Criterion: right results. `settings` are those of `checks.check`: tile, dtype, sizes, rows."

    def test(kernel: simt.Kernel) -> None:
        verdict = checks.check(kernel, problem, **settings)
        if not verdict.ok:
            raise Unmet(str(verdict))

    return Criterion(text, test)


def right_in(text: str, *launches: Launch, hints: Hints = NO_HINTS) -> Criterion:
    "Criterion: right results. Of wrong ones the reason is told, where `kernel.check` finds one."

    def test(kernel: simt.Kernel) -> None:
        for launch in launches:
            args = launch.args()
            with case(str(launch), hints.usual, hints.out_of_bounds):
                kernel(launch.grid, launch.block, args, timeout=checks.TIMEOUT)
            try:
                launch.verify(args)
            except Mismatch as error:
                _no_finding(kernel, launch, hints, f"{error}\n")
                with case(str(launch), hints.usual):
                    raise

    return Criterion(text, test)


def no_finding_in(text: str, *launches: Launch, hints: Hints = NO_HINTS) -> Criterion:
    "Criterion: `kernel.check` finds nothing, also where a mistake gives right results."

    def test(kernel: simt.Kernel) -> None:
        for launch in launches:
            _no_finding(kernel, launch, hints)

    return Criterion(text, test)


def right_on(
    text: str, *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    "Criterion: right results for `problems`, launched as `Problem.launch(tile, rows)` says; see `right_in`."
    return right_in(text, *(OnProblem(problem, tile, rows) for problem in problems), hints=hints)


def no_finding(
    *problems: Problem, tile: int = 16, rows: int | None = None, hints: Hints = NO_HINTS
) -> Criterion:
    "Criterion: `kernel.check` finds nothing for `problems`, launched likewise."
    return no_finding_in(SOUND, *(OnProblem(problem, tile, rows) for problem in problems), hints=hints)


def at_most(
    most: float, what: str, text: str, problem: Problem, *, hint: str, tile: int = 16, rows: int | None = None
) -> Criterion:
    """Criterion: no source line has more than `most` of `what`, a column of `Profile.lines`.

    Such as at_most(4, "sectors_per_request", …) or at_most(0, "conflicts", …), counted in a launch on
    `problem`. `hint` ends the message.
    """

    def test(kernel: simt.Kernel) -> None:
        lines = checks.profile(kernel, problem, tile, rows).lines
        above = lines[lines[what] > most]
        if len(above):
            worst = above.loc[above[what].idxmax()]
            count = f"{worst[what]:.4g} {what.replace('_', ' ')}"
            raise Unmet(
                f"{problem}\n"
                f"line {worst.line} has {count}; the goal is at most {most:g}\n"
                f"{worst.line:>5} | {worst.source}\n{hint}"
            )

    return Criterion(text, test)


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


def _no_finding(kernel: simt.Kernel, launch: Launch, hints: Hints, seen: str = "") -> None:
    "Raise Unmet with the first of the kernel's findings, after what was `seen` to be wrong."
    args = launch.args(is_poisoned=True)
    for finding in kernel.check(launch.grid, launch.block, args, timeout=checks.TIMEOUT)[:1]:
        told = f"{launch}\n{seen}{finding.tool} finds: {both_sides(finding, kernel)}"
        raise Unmet("\n".join(filter(None, (told, hints.after(finding))))) from None


def both_sides(finding: simt.Finding, kernel: simt.Kernel) -> str:
    "A finding with its line, and of a race with the line on the other side."
    other = finding.other_line
    if other in (0, finding.line):
        return str(finding)
    return f"{finding}\n    {other:>4} | {kernel.module.code.splitlines()[other - 1].strip()}"


def listed(lines: pd.DataFrame, costs: Iterable[str]) -> str:
    "Rows of `Profile.lines` as lines of the source, each with what it costs."
    return "\n".join(
        f"{row.line:>5} | {row.source}    {cost}" for row, cost in zip(lines.itertuples(), costs, strict=True)
    )


def recompiled(kernel: simt.Kernel, **macros: str | int) -> simt.Kernel:
    "The kernel's source compiled with these macros in the place of their old values."
    module = kernel.module
    options = [each for each in module.options if not each.startswith(tuple(f"-D{name}" for name in macros))]
    options += [f"-D{name}={value}" for name, value in macros.items()]
    return module.with_options(options).get_function(kernel.name)


def _magic_of(answer: Any) -> str:
    "The magic of the cell that an answer comes from."
    if isinstance(answer, CFunction):
        return "c"
    return "answer" if isinstance(answer, FunctionType) else "cuda"


def _simulated(kernel: Any) -> simt.Kernel:
    "The kernel compiled for the simulator, if it is one for the GPU."
    return kernel if isinstance(kernel, simt.Kernel) else kernel.simulated
