"""Grade all submissions on the processes of this machine (pool.py) or of a Dask cluster (cluster.py).

The process that asks reads submissions and keeps grades. Workers get submissions as plain data and need no
files but labkit. Nothing that a student did makes grading raise: faults.py sees to it. If it raises, or if
its process dies, the infrastructure has failed: the submission is tried again, and after TRIES times its
exercises are marked for regrading. If its process was stopped for the time that it takes, the submission is
the cause, and has no points.
"""

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from grader.judging.faults import AGAIN, ours
from grader.model import GRADED, REGRADE, Graded, Result, Submission
from labkit.course import EXERCISES

TRIES = 3
DIED = "The process that graded this submission died. The submission needs to be graded again."
TOO_LONG = "Judging this submission took too long and was stopped."

Grade = Callable[[Submission, tuple[str, ...], int, str], Graded]


class NoCluster(RuntimeError):
    """There are no workers that could grade; the message says why, and what to do."""


@dataclass(frozen=True)
class Job:
    """What is the same for all submissions: labs such as 02, the seed, the isolation, and what grades one.

    `grade(submission, labs, seed, isolation)` must be a function of a module that workers have. `cpu_seconds`
    is what it may compute by itself, beside the sandboxes, for one submission.
    """

    labs: tuple[str, ...]
    seed: int
    isolation: str
    grade: Grade
    cpu_seconds: float = 3600


@dataclass(frozen=True)
class Trouble:
    """Infrastructure failed: the reason in a sentence, the worker's address on a cluster, and the traceback.

    `took_too_long`: the worker was stopped for its time, which is the submission's fault.
    """

    reason: str
    worker: str = ""
    was_killed: bool = False
    inside: str = ""
    took_too_long: bool = False


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
            elif outcome.took_too_long:
                yield none(attempt.submission, job, outcome.reason)
            elif attempt.number == TRIES:
                yield regrade(attempt.submission, job, outcome.reason, outcome.inside)
            else:
                following = Attempt(attempt.submission, attempt.number + 1, outcome.worker)
                (suspects if outcome.was_killed else again).append(following)
    finally:
        workers.abandon()


def regrade(submission: Submission, job: Job, reason: str, inside: str = "") -> Graded:
    """Mark all exercises of the labs for regrading."""
    return _all(submission, job, REGRADE, None, reason, inside)


def none(submission: Submission, job: Job, reason: str) -> Graded:
    """Give no points in all exercises of the labs."""
    return _all(submission, job, GRADED, 0.0, reason)


def _all(
    submission: Submission, job: Job, state: str, points: float | None, reason: str, inside: str = ""
) -> Graded:
    """Make the same result of all exercises of the labs."""
    results = []
    for id, exercise in EXERCISES.items():
        if id.partition(".")[0] in job.labs:
            answer = submission.answers.get(id)
            source, note = (answer.source, answer.note) if answer else ("", "")
            told = Result(id, state, points, exercise.points, failure=reason, note=note, source=source)
            results.append(replace(told, inside=inside))
    return Graded(submission, tuple(results), job.isolation, 0.0)


def attempted(submission: Submission, job: Job, worker: str = "") -> Graded | Trouble:
    """Grade on a worker. What is raised there is returned as text, as not every exception can be pickled."""
    try:
        return job.grade(submission, job.labs, job.seed, job.isolation)
    except BaseException as error:  # SystemExit would end the worker
        return trouble(error, worker)


def trouble(error: BaseException, worker: str = "") -> Trouble:
    """Return the trouble that an exception is: a sentence for students, the traceback for instructors."""
    return Trouble(ours(error) or AGAIN, worker, inside="".join(traceback.format_exception(error)))
