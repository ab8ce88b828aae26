"""Criteria for whole programs: what one prints, how it ends, and what a checked run finds in it.

A program runs in the simulator on every machine, and its times are those predicted for one GPU.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from labkit.course.drawn import further
from labkit.course.exercise import Unmet, criterion
from labkit.programs.program import AnyProgram, Mode, Outcome

GPU = "H200"  # whose times are predicted
SECONDS = 20.0  # that a run may take
_VARIABLES = {"LABKIT_DEVICE": "simt", "LABKIT_GPU": GPU}
_NUMBER = r"\s*(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_SHOWN = 8  # lines of what a program prints

Args = tuple[int, ...]
Draw = Callable[[np.random.Generator, Args], Args]


class Run(NamedTuple):
    """A run as a student would type it, and what came of it."""

    shown: str
    outcome: Outcome

    def unmet(self, why: str, hint: str = "") -> Unmet:
        """Return the failure of a criterion: the run, why, what the program printed, and a hint."""
        printed = [*self.outcome.stdout.splitlines(), *self.outcome.stderr.splitlines()]
        shown = "\n".join(f"    {line[:150]}" for line in printed[:_SHOWN]) or "    (nothing)"
        return Unmet(f"{self.shown}: {why}\nIt prints\n{shown}" + f"\n{hint}" * bool(hint))


def ran(program: AnyProgram, args: Args, mode: Mode = "run") -> Run:
    """Run a program with arguments. Raises Unmet where it does not come to its end."""
    words = [str(each) for each in args]
    outcome = program.run(*words, mode=mode, timeout=SECONDS, variables=_VARIABLES)
    run = Run(f"./program {shlex.join(words)}" + f" (mode {mode})" * (mode != "run"), outcome)
    if outcome.timed_out:
        raise run.unmet(f"it has not ended after {SECONDS:g} s and was stopped.")
    if outcome.code > 128:
        raise run.unmet(f"it was ended by signal {outcome.code - 128}.")
    return run


def succeeded(program: AnyProgram, args: Args) -> Run:
    """Run a program with arguments. Raises Unmet where its exit code is not 0."""
    run = ran(program, args)
    if run.outcome.code:
        raise run.unmet(f"its exit code is {run.outcome.code}; a program that succeeds returns 0.")
    return run


def number(run: Run, name: str) -> float:
    """Return the number behind `name:` in what a program prints. Raises Unmet where there is none."""
    found = re.findall(rf"\b{re.escape(name)}:{_NUMBER}", run.outcome.stdout)
    if not found:
        raise run.unmet(f'it does not print a line such as "{name}: 12.5".')
    return float(found[-1])


@criterion("{text}")
def prints(
    program: AnyProgram,
    text: str,
    *cases: Args,
    of: Callable[..., float],
    draw: Draw,
    hint: str,
    name: str = "sum",
    relative: float = 1e-6,
) -> None:
    """Ask that for each case, its arguments, the program prints `name: value` with the value `of(*args)`."""
    for args in further(cases, draw):
        run = succeeded(program, args)
        got, expected = number(run, name), of(*args)
        if not abs(got - expected) <= relative * max(1, abs(expected)):
            raise run.unmet(f"{name} is {got:.10g}; it should be {expected:.10g}.", hint)


@criterion("{text}")
def fails(
    program: AnyProgram, text: str, *cases: Args, draw: Draw, message: str, hint: str, silent: str = "sum"
) -> None:
    """Ask that the program ends with exit code 1, `message` on stderr, and no result `silent`."""
    for args in further(cases, draw):
        run = ran(program, args)
        if f"{silent}:" in run.outcome.stdout:
            raise run.unmet(f'it prints a result, and there is none: CUDA says "{message}".', hint)
        if run.outcome.code != 1:
            raise run.unmet(f"its exit code is {run.outcome.code}; it should be 1.", hint)
        if message not in run.outcome.stderr:
            raise run.unmet(f'stderr does not say "{message}".', hint)


@criterion("{text}")
def no_mistake(
    program: AnyProgram,
    text: str,
    *cases: Args,
    draw: Draw,
    hints: dict[str, str],
    kinds: Sequence[str] = (),
    kernel: str = "",
) -> None:
    """Ask that a checked run finds nothing, or nothing of these `kinds`; `hints` are by kind.

    A program without the `kernel` in which a mistake is to be found has not mended it.
    """
    for args in further(cases, draw):
        run = ran(program, args, mode="check")
        found = [(kind, told) for kind, told in run.outcome.mistakes if not kinds or kind in kinds]
        if found:
            kind, told = found[0]
            raise Unmet(
                f"{run.shown}: {len(found)} found, the first\n    {kind}: {told}\n"
                f"{hints.get(kind, '')}".rstrip()
            )
        if "labkit check: " not in run.outcome.stderr:
            raise run.unmet("it ended before the check could say what it found.")
    if kernel:
        _launched(program, kernel, cases[0], "The kernel stays, and is mended.")


@criterion("{text}")
def launches(program: AnyProgram, text: str, kernel: str, args: Args, hint: str) -> None:
    """Ask that the program launches a kernel of this name."""
    _launched(program, kernel, args, hint)


def _launched(program: AnyProgram, kernel: str, args: Args, hint: str) -> None:
    """Raise Unmet where the program does not launch the kernel."""
    run = ran(program, args, mode="profile")
    if not re.search(rf"^\s*\d+\s+{re.escape(kernel)}\b", run.outcome.stderr, re.M):
        raise Unmet(f"{run.shown}: no launch of the kernel {kernel} is counted.\n{hint}".rstrip())
