"""All submissions, graded by the workers of a Dask client.

Submissions are read and grades are kept by the process that asks; workers get submissions as plain data and
need no files but labkit. Grading a submission never fails for what a student did. If it raises, or its worker
dies, infrastructure has failed: it is tried again, and after TRIES times its exercises are marked for
regrading.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any
from uuid import uuid4

from distributed import Client, Future, KilledWorker, get_worker

from labkit import __version__
from labkit.course import EXERCISES
from labkit.grading.judging.cluster import WORKERS_SECONDS, NoCluster
from labkit.grading.model import REGRADE, Graded, Result, Submission

TRIES = 3
AHEAD = 2  # submissions with each worker: one is graded, and the next is there when that is done
POLL_SECONDS = 1.0
FETCH_SECONDS = 60.0

Grade = Callable[[Submission, tuple[str, ...], int, str], Graded]


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
    """Infrastructure failed: why, and the address of the worker."""

    reason: str
    worker: str = ""
    was_killed: bool = False


@dataclass(frozen=True)
class Attempt:
    """A submission to grade, for the `number`-th time, and not on the worker `avoid`, if there is another."""

    submission: Submission
    number: int = 1
    avoid: str = ""


def grade_all(client: Client, submissions: Iterable[Submission], job: Job) -> Iterator[Graded]:
    """Grade all submissions; they come in the order in which they are done.

    `submissions` are taken as workers need them, and nothing is kept of those that are done. Raises NoCluster
    where the scheduler or all workers are lost.
    """
    fresh = map(Attempt, submissions)
    again, suspects = deque[Attempt](), deque[Attempt]()
    flight = _Flight(client, job)
    try:
        while True:
            while flight.has_room() and (ready := again.popleft() if again else next(fresh, None)):
                flight.start(ready)
            # A worker that dies takes all with it that it has: these are tried again at the end, one by one.
            if not flight and suspects:
                flight.start(suspects.popleft())
            if not flight:
                return
            attempt, outcome = flight.land()
            if isinstance(outcome, Graded):
                yield outcome
            elif attempt.number == TRIES:
                yield regrade(attempt.submission, job, outcome.reason)
            else:
                following = Attempt(attempt.submission, attempt.number + 1, outcome.worker)
                (suspects if outcome.was_killed else again).append(following)
    finally:
        flight.abandon()


def regrade(submission: Submission, job: Job, reason: str) -> Graded:
    """All exercises of the labs, marked for regrading."""
    results = []
    for id, exercise in EXERCISES.items():
        if id.partition(".")[0] in job.labs:
            answer = submission.answers.get(id)
            source, note = (answer.source, answer.note) if answer else ("", "")
            results.append(
                Result(id, REGRADE, None, exercise.points, failure=reason, note=note, source=source)
            )
    return Graded(submission, tuple(results), job.isolation, 0.0)


class _Flight:
    """The attempts that are with the workers."""

    def __init__(self, client: Client, job: Job) -> None:
        self._client, self._job = client, job
        self._running: dict[Any, tuple[Future, Attempt]] = {}  # by the future's key
        self._only: dict[Any, set[str]] = {}  # the workers that some of them may go to
        self._done: SimpleQueue[Future] = SimpleQueue()
        self._workers: tuple[str, ...] = ()
        self._asked = self._seen = float("-inf")  # when the scheduler was asked for workers, and had one

    def __len__(self) -> int:
        return len(self._running)

    def has_room(self) -> bool:
        """May another attempt start?"""
        self._look()
        return len(self) < AHEAD * max(1, len(self._workers))

    def start(self, attempt: Attempt) -> None:
        """Send an attempt to a worker."""
        others = set(self._workers) - {attempt.avoid} if attempt.avoid in self._workers else set()
        future = self._client.submit(
            _attempt,
            attempt.submission,
            self._job,
            __version__,
            key=f"grade-{uuid4().hex}",
            workers=list(others) or None,
        )
        self._running[future.key] = (future, attempt)
        if others:
            self._only[future.key] = others
        future.add_done_callback(self._done.put)

    def land(self) -> tuple[Attempt, Graded | Trouble]:
        """Wait for an attempt that is done."""
        while True:
            try:
                future = self._done.get(timeout=POLL_SECONDS)
            except Empty:
                self._look()
                continue
            if future.key not in self._running:
                continue
            if outcome := _outcome(future):
                return self._remove(future.key), outcome
            future.add_done_callback(self._done.put)  # its worker has died since, and it runs again

    def abandon(self) -> None:
        """Let go of all attempts."""
        for key in [*self._running]:
            self._remove(key)

    def _remove(self, key: Any) -> Attempt:
        future, attempt = self._running.pop(key)
        self._only.pop(key, None)
        future.release()
        return attempt

    def _look(self) -> None:
        """Once in a while, ask which workers there are."""
        if monotonic() < self._asked + POLL_SECONDS:
            return
        try:
            self._workers = tuple(self._client.nthreads())
        except (OSError, RuntimeError) as error:
            raise NoCluster(f"The connection to the scheduler is lost: {error}") from None
        self._asked = monotonic()
        if self._workers or self._seen < 0:
            self._seen = self._asked
        elif self._asked > self._seen + WORKERS_SECONDS:
            raise NoCluster(f"All workers are lost, for {WORKERS_SECONDS:.0f} seconds now.")
        for key in [key for key, only in self._only.items() if only.isdisjoint(self._workers)]:
            self.start(replace(self._remove(key), avoid=""))  # Dask would wait for those workers for ever


_one_at_a_time = threading.Lock()  # a worker may have several threads; pytest and its capture are for one


def _attempt(submission: Submission, job: Job, version: str) -> Graded | Trouble:
    """On a worker: grade. What is raised there is told, not raised: so Dask need not pickle it."""
    worker = get_worker().address
    if version != __version__:  # a worker that has come since all were asked
        return Trouble(f"a worker has labkit {__version__}, not {version}", worker)
    try:
        with _one_at_a_time:
            return job.grade(submission, job.labs, job.seed, job.isolation)
    except BaseException as error:  # SystemExit would end the worker
        return Trouble(_told(error), worker)


def _outcome(future: Future) -> Graded | Trouble | None:
    """What became of an attempt; None if it has to run again, as its worker is gone with what it gave."""
    if future.status in ("pending", "lost"):
        return None
    if future.status == "cancelled":
        raise NoCluster("The connection to the scheduler is lost.")
    try:
        outcome: Graded | Trouble = future.result(timeout=FETCH_SECONDS)
    except TimeoutError:
        return None
    except KilledWorker as error:
        return Trouble("the process that graded it died", error.last_worker.address, was_killed=True)
    except Exception as error:  # Dask's own, such as from a worker that has come without labkit
        return Trouble(_told(error))
    return outcome


def _told(error: BaseException) -> str:
    """An exception, and after its first line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({frame.filename.rpartition('/')[2]}, line {frame.lineno})" for frame in last)
    first, *more = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return "\n".join([first + place, *more])
