"""An exercise lists criteria for a kernel or function, and judges an answer by them.

A kernel is checked in the simulator, also where there is a GPU: there a stray write goes unnoticed or ends
the session, and its counters need another tool. So a check's answer is the same on every machine. A C
function (criteria/c_functions.py) runs in a process of its own, and a Python function (criteria/python.py)
where the notebook runs.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, Concatenate, ParamSpec

from labkit.c.function import CFunction
from labkit.course.check_progress import Step
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.course.fresh_inputs import drawn
from labkit.course.reimported import Elsewhere
from labkit.devices.select import NoGpu
from simt import AnyKernel
from simt.common.compare import Mismatch
from simt.common.errors import SimtError
from simt.common.launches import watched
from simt.programs.program import AnyProgram, Unbuilt
from simt.recording.failing import Failure, Why

P = ParamSpec("P")
Answer = AnyKernel | CFunction | FunctionType | Elsewhere | AnyProgram
FUNCTIONS = CFunction | FunctionType | Elsewhere | AnyProgram  # the answers that are no kernels


class Unmet(Exception):
    """A criterion is not met; the message tells the student why, and what to look at.

    `why` is the wrong result, the error or the finding of a launch, where that is why.
    """

    def __init__(self, message: str, why: Why = None) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True)
class Criterion:
    """One thing asked of an answer: its `text` as the student reads it, and the test.

    The test gets the kernel, compiled for the simulator, or the CFunction, or the Python function. If that
    falls short it raises Unmet, Mismatch or SimtError; where it takes a GPU and there is none, NoGpu.
    """

    text: str
    test: Callable[[Any], None]


def criterion(text: str) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[P, Criterion]]:
    """Turn a test with further parameters into a function that makes a Criterion of them.

        @criterion("at most {most} bytes of shared memory")
        def shared_bytes(kernel: AnyKernel, most: int) -> None: ...

    `shared_bytes(4096)` is then the Criterion "at most 4096 bytes of shared memory". The text
    has what a tuple holds as a list.
    """

    def decorate(test: Callable[Concatenate[Any, P], None]) -> Callable[P, Criterion]:
        @wraps(test)
        def make(*args: P.args, **kwargs: P.kwargs) -> Criterion:
            values = signature(test).bind(None, *args, **kwargs)
            values.apply_defaults()
            told = {
                name: ", ".join(map(str, value)) if isinstance(value, tuple) else value
                for name, value in values.arguments.items()
            }
            return Criterion(text.format(**told), lambda answer: test(answer, *args, **kwargs))

        return make

    return decorate


@dataclass(frozen=True)
class Exercise:
    """An exercise: its stable `id` (02.1 is the first of lab 02), what it is worth, and its criteria.

        Exercise("02.1", "The naive product", 2).asks(right_on(…), no_finding(…))

    `magic` is that of its answer cell: cuda for a kernel, c for a C function, answer for one in Python,
    program for a whole program. `function` is the name that the answer's function has where it may not be
    the last one in its cell.
    `given` is the number of criteria, from the first, that are met by what a student starts from: the
    released cell, or the answer of an earlier exercise that is to be copied. `practice`: it is more practice
    of what its notebook's other exercises teach, graded like them.
    """

    id: str
    title: str
    points: int
    criteria: tuple[Criterion, ...] = ()
    magic: str = "cuda"
    given: int = 0
    function: str = ""
    practice: bool = False

    def asks(self, *criteria: Criterion) -> "Exercise":
        """Return this exercise with criteria, in the order of judging."""
        return replace(self, criteria=criteria)

    def judge(self, answer: Answer, seed: int | None = None, step: Step = lambda *_: None) -> Feedback:
        """Try the criteria on `answer`, a kernel or function, up to the first that it does not meet.

        With a `seed` of at least 0 they try fresh inputs, too: see fresh_inputs.py. `step` is called before
        each with its number, from 1, and how many there are.
        """
        magic = _magic_of(answer)
        if magic != self.magic:
            return self.not_judged(
                f"the answer is a cell of %%{self.magic}",
                f"This is {ASKED[magic]}, and {self.id} asks for {ASKED[self.magic]}: "
                f"begin the cell with %%{self.magic} {self.id}.",
            )
        if isinstance(answer, Unbuilt):
            return self.not_judged("the program can be built on this machine", answer.why)
        with nullcontext() if seed is None else drawn(seed, self.id):
            return self._judged(answer if isinstance(answer, FUNCTIONS) else answer.simulated, step)

    def _judged(self, answer: Answer, step: Step) -> Feedback:
        lines, failure, replay = [], None, None
        for number, criterion in enumerate(self.criteria, 1):
            step(number, len(self.criteria))
            state = NOT_JUDGED if failure else MET
            if not failure:
                try:
                    with watched() as launches:
                        criterion.test(answer)
                except NoGpu:
                    state = NEEDS_GPU
                except (Unmet, Mismatch, SimtError) as error:
                    state, failure = FAILED, str(error)
                    why = error.why if isinstance(error, Unmet) else error
                    replay = Failure(*launches.last, why) if launches.last and why else None
            lines.append(Line(criterion.text, state))
        return Feedback(f"{self.id} {self.title}", tuple(lines), failure, replay=replay)

    def points_of(self, feedback: Feedback) -> float:
        """Return what an answer is worth: each criterion that it meets counts an equal part of the points.

        Those that are `given` are worth nothing, or a student would have points for handing in what was
        handed out.
        """
        return round(self.points * self.share_of(feedback), 2)

    def share_of(self, feedback: Feedback) -> float:
        """Return the share of the points, from 0 to 1, that an answer is worth.

        What needs a GPU counts where there is one; elsewhere the other criteria share the points.
        """
        states = [line.state for line in feedback.lines if line.state != NEEDS_GPU]
        earned = max(0, states.count(MET) - self.given)
        return earned / (len(states) - self.given) if earned else 0.0

    def not_judged(self, text: str, failure: str) -> Feedback:
        """Make the feedback on an answer that no criterion can be tried on: what it lacks, and why."""
        return Feedback(f"{self.id} {self.title}", (Line(text, FAILED),), failure)


# What the answer of a cell is, by its magic.
ASKED = {
    "cuda": "a CUDA kernel",
    "c": "a C function",
    "answer": "a Python function",
    "program": "a whole CUDA program",
}


def by_id(exercises: Iterable[Exercise]) -> dict[str, Exercise]:
    """Return exercises by their ids, which must differ."""
    found: dict[str, Exercise] = {}
    for exercise in exercises:
        if exercise.id in found:
            titles = f"{found[exercise.id].title!r} and {exercise.title!r}"
            raise ValueError(f"two exercises have the id {exercise.id}: {titles}.")
        found[exercise.id] = exercise
    return found


def _magic_of(answer: Answer) -> str:
    """Name the magic of the cell that an answer comes from."""
    if isinstance(answer, CFunction):
        return "c"
    if isinstance(answer, AnyProgram):
        return "program"
    return "answer" if isinstance(answer, FUNCTIONS) else "cuda"
