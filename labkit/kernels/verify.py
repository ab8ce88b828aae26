"""Check a kernel on sizes that expose the usual mistakes, and tell a student what is wrong."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labkit.devices.select import array_module, synchronize
from labkit.kernels.problem import Problem, problem_class
from simt.common.compare import Mismatch
from simt.common.errors import SimtError
from simt.kernel import SECONDS

if TYPE_CHECKING:
    from simt import AnyKernel

TIMEOUT = SECONDS  # per launch in the simulator
RIGHT, WRONG, NOT_RUN = "right", "WRONG", "not run"


@dataclass(frozen=True)
class Case:
    """One launch: its problem, whether it was RIGHT, WRONG or NOT_RUN, and what was wrong."""

    problem: Problem
    state: str
    message: str = ""


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of `check`. Printed, it is one line per case, then the first failure in words."""

    cases: tuple[Case, ...]
    tile: int

    @property
    def ok(self) -> bool:
        """Return True if the kernel was right in every case."""
        return all(case.state == RIGHT for case in self.cases)

    def __repr__(self) -> str:
        total, wrong = len(self.cases), [case for case in self.cases if case.state == WRONG]
        lines = [f"  {case.state:<7}  {case.problem}" for case in self.cases]
        if not wrong:
            return "\n".join([f"Right: all {total} cases.", *lines])
        first = wrong[0]
        reason = [f"{first.problem}:", *first.message.splitlines(), *self._hints()]
        return "\n".join([f"WRONG: {len(wrong)} of {total} cases.", *lines, *reason])

    def _hints(self) -> list[str]:
        """Say what the wrong cases have in common and the right ones do not."""
        run = [case for case in self.cases if case.state != NOT_RUN]
        wrong = [case.state == WRONG for case in run]
        ragged = [any(n % self.tile for n in np.ravel([*case.problem.shapes().values()])) for case in run]
        scaled = [case.problem.reads_output for case in run]
        if all(wrong):
            return []
        if wrong == ragged:
            return [f"It is right only where {self.tile} divides all sizes: look at the guards at the edges."]
        for hint, pattern in zip(run[0].problem.variant_hints, (True, False), strict=True):
            if hint and wrong == [each is pattern for each in scaled]:
                return [hint]
        return []


def check(
    kernel: "AnyKernel",
    problem: str = "matmul",
    tile: int = 16,
    dtype: str = "",
    sizes: Sequence[tuple[int, ...]] | None = None,
    rows: int | None = None,
) -> Verdict:
    """Run `kernel` on several sizes of `problem`, a family's name, and compare with right results.

    The launch is that of `Problem.launch(tile, rows)`. Before it, the output is full of NaN or the smallest
    int32. `dtype` is by default the family's own. The problems use the family's variants in turn. A launch
    that raises SimtError ends the check. A launch on a GPU is first tried in the simulator, with all of its
    checks (preflight.py).
    """
    chosen = problem_class(problem).trials(dtype, sizes)
    return judge(chosen, lambda each: _run(kernel, each, tile, rows), tile)


def judge(chosen: Iterable[Problem], run: Callable[[Problem], None], tile: int) -> Verdict:
    """Run each problem and collect results: Mismatch makes a case wrong; SimtError also ends the check."""
    cases: list[Case] = []
    ended = False
    for each in chosen:
        if ended:
            cases.append(Case(each, NOT_RUN))
            continue
        try:
            run(each)
            cases.append(Case(each, RIGHT))
        except (Mismatch, SimtError) as error:
            cases.append(Case(each, WRONG, str(error)))
            ended = isinstance(error, SimtError)
    return Verdict(tuple(cases), tile)


def _run(kernel: "AnyKernel", problem: Problem, tile: int, rows: int | None) -> None:
    """Launch once. Raises SimtError where it fails, Mismatch where its result is wrong."""
    args = problem.args(array_module(kernel))
    kernel(*problem.launch(tile, rows), args, timeout=TIMEOUT)
    synchronize()
    problem.verify(problem.output(args))
