"""Grade all submissions on the processes of this machine (pool.py) or of a Dask cluster (cluster.py).

The process that asks reads submissions and keeps grades. Workers get submissions as plain data and need no
files but labkit. Nothing that a student did makes grading raise. If it raises, or if its process dies, the
infrastructure has failed: the submission is tried again, and after TRIES times its exercises are marked for
regrading.
"""

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from labkit.course import EXERCISES
from labkit.grading.model import REGRADE, Graded, Result, Submission

TRIES = 3
DIED = "the process that graded it died"

Grade = Callable[[Submission, tuple[str, ...], int, str], Graded]


class NoCluster(RuntimeError):
    """There are no workers that could grade; the message says why, and what to do."""


@dataclass(frozen=True)
class Job:
    """What is the same for all submissions: labs such as 02, the seed, the isolation, and what grades one.

    `grade(submission, labs, seed, isolation)` must be a function of a module that workers have.
    """

    labs: tuple[str, ...]
    seed: int
    isolation: str
    grade: Grade


@dataclass(frozen=True)
class Trouble:
    """Infrastructure failed: the reason, and the worker's address on a cluster."""

    reason: str
    worker: str = ""
    was_killed: bool = False


@dataclass(frozen=True)
class Attempt:
    """A submission to grade for the `number`-th time; not on the worker `avoid` if a cluster has another."""

    submission: Submission
    number: int = 1
    avoid: str = ""


class Workers(Protocol):
    """Processes that grade attempts; its length is the number of attempts that they have now."""

    def __len__(self) -> int: ...

    def ask(self, question: Callable[[], str]) -> dict[str, str]:
        """Return what `question`, a function of labkit, answers on each machine or worker, by its name."""

    def has_room(self) -> bool:
        """Return whether another attempt may start."""

    def start(self, attempt: Attempt, job: Job) -> None:
        """Hand an attempt to a worker."""

    def land(self) -> tuple[Attempt, Graded | Trouble]:
        """Wait for an attempt that has ended."""

    def abandon(self) -> None:
        """Let go of all attempts."""


def grade_all(workers: Workers, submissions: Iterable[Submission], job: Job) -> Iterator[Graded]:
    """Grade all submissions; they come in the order in which they are done.

    `submissions` are taken as workers need them, and nothing is kept of those that are done. Raises NoCluster
    where the scheduler or all workers are lost.
    """
    fresh = map(Attempt, submissions)
    again, suspects = deque[Attempt](), deque[Attempt]()
    try:
        while True:
            while workers.has_room() and (ready := again.popleft() if again else next(fresh, None)):
                workers.start(ready, job)
            # A submission under which a worker died is tried again at the end, when none runs beside it.
            if not workers and suspects:
                workers.start(suspects.popleft(), job)
            if not workers:
                return
            attempt, outcome = workers.land()
            if isinstance(outcome, Graded):
                yield outcome
            elif attempt.number == TRIES:
                yield regrade(attempt.submission, job, outcome.reason)
            else:
                following = Attempt(attempt.submission, attempt.number + 1, outcome.worker)
                (suspects if outcome.was_killed else again).append(following)
    finally:
        workers.abandon()


def regrade(submission: Submission, job: Job, reason: str) -> Graded:
    """Mark all exercises of the labs for regrading."""
    results = []
    for id, exercise in EXERCISES.items():
        if id.partition(".")[0] in job.labs:
            answer = submission.answers.get(id)
            source, note = (answer.source, answer.note) if answer else ("", "")
            results.append(
                Result(id, REGRADE, None, exercise.points, failure=reason, note=note, source=source)
            )
    return Graded(submission, tuple(results), job.isolation, 0.0)


def attempted(submission: Submission, job: Job, worker: str = "") -> Graded | Trouble:
    """Grade on a worker. What is raised there is returned as text, as not every exception can be pickled."""
    try:
        return job.grade(submission, job.labs, job.seed, job.isolation)
    except BaseException as error:  # SystemExit would end the worker
        return Trouble(reason_of(error), worker)


def reason_of(error: BaseException) -> str:
    """Tell an exception, and after its first line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({frame.filename.rpartition('/')[2]}, line {frame.lineno})" for frame in last)
    first, *more = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return "\n".join([first + place, *more])
