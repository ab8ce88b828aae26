"""Grade on the workers of a Dask cluster that others have started. This alone needs the extra `cluster`."""

import asyncio
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic
from uuid import uuid4

from dask.typing import Key
from distributed import Client, Future, KilledWorker, Security, get_worker
from distributed.comm import connect

from grader.judging.engine import DIED, Attempt, Job, NoCluster, Trouble, attempted, trouble
from grader.judging.faults import AGAIN
from grader.model import Graded, Submission
from labkit import __version__

CONNECT_SECONDS = 20.0
WORKERS_SECONDS = 300.0  # a cluster's queue may take its time to give us workers
AHEAD = 2  # submissions with each worker: one is graded, and the next is there when that is done
POLL_SECONDS = 1.0
FETCH_SECONDS = 60.0


@contextmanager
def existing(scheduler: str) -> Iterator["Cluster"]:
    """Connect with a scheduler that runs already, such as tcp://node7:8786. Raises NoCluster."""
    try:
        asyncio.run(_reach(scheduler))
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without a configured key
        why = str(error) or f"no answer in {CONNECT_SECONDS:g} s"
        raise NoCluster(
            f"labkit cannot reach the scheduler {scheduler}: {why}. "
            "Is it running (dask scheduler), and is this the address that it prints?"
        ) from None
    with Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False) as client:
        yield Cluster(client)


async def _reach(scheduler: str) -> None:
    """Connect and go. A client tries for ever where something else listens, and leaves threads behind."""
    secure = Security().get_connection_args("client")
    async with asyncio.timeout(CONNECT_SECONDS):
        comm = await connect(scheduler, timeout=CONNECT_SECONDS, **secure)
        await comm.close()


class Cluster:
    """The workers of a Dask client, and the attempts that they have."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._running: dict[Key, tuple[Future, Attempt, Job]] = {}  # by the future's key
        self._only: dict[Key, set[str]] = {}  # the workers that some of them may go to
        self._done: SimpleQueue[Future] = SimpleQueue()
        self._workers: tuple[str, ...] = ()
        self._asked = self._seen = float("-inf")  # when the scheduler was asked for workers, and had one

    def __len__(self) -> int:
        return len(self._running)

    def ask(self, question: Callable[[], str]) -> dict[str, str]:
        """Return what `question`, a function of labkit, answers on each worker, by the worker's address.

        Raises NoCluster where no worker comes in time, or one has another Python or labkit.
        """
        try:
            self.client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            raise NoCluster(
                f"The scheduler has had no workers for {WORKERS_SECONDS:.0f} seconds. "
                "Start some with its address: dask worker tcp://…"
            ) from None
        python = platform.python_version_tuple()[:2]
        for address, told in self.client.sync(self.client._get_versions)["workers"].items():
            other = told["host"]["python"]
            if tuple(other.split(".")[:2]) != python:
                raise NoCluster(
                    f"The worker {address} runs Python {other}, this is {'.'.join(python)}. "
                    "They exchange pickles: use the same Python version everywhere."
                )
        answers = self.client.run(_introduce, question, on_error="return")
        install = f"Install labkit {__version__} there, with its extra cluster."
        for address, answer in answers.items():
            if isinstance(answer, Exception):
                raise NoCluster(f"The worker {address} has no labkit that can grade: {answer!r}. {install}")
            if answer[0] != __version__:
                raise NoCluster(
                    f"The worker {address} has labkit {answer[0]}, this is {__version__}. {install}"
                )
        return {address: answer[1] for address, answer in answers.items()}

    def has_room(self) -> bool:
        """Return whether another attempt may start."""
        self._look()
        return len(self) < AHEAD * max(1, len(self._workers))

    def start(self, attempt: Attempt, job: Job) -> None:
        """Send an attempt to a worker; a second one to another, which may have come a moment ago."""
        if attempt.avoid and set(self._workers) <= {attempt.avoid}:
            self._look(is_due=True)
        others = set(self._workers) - {attempt.avoid} if attempt.avoid in self._workers else set()
        future = self.client.submit(
            _attempt,
            attempt.submission,
            job,
            __version__,
            key=f"grade-{uuid4().hex}",
            workers=list(others) or None,
        )
        self._running[future.key] = (future, attempt, job)
        if others:
            self._only[future.key] = others
        future.add_done_callback(self._done.put)

    def land(self) -> tuple[Attempt, Graded | Trouble]:
        """Wait for an attempt that has ended."""
        while True:
            try:
                future = self._done.get(timeout=POLL_SECONDS)
            except Empty:
                self._look()
                continue
            if future.key not in self._running:
                continue
            if outcome := _outcome(future):
                return self._remove(future.key)[0], outcome
            future.add_done_callback(self._done.put)  # its worker has died since, and it runs again

    def abandon(self) -> None:
        """Let go of all attempts."""
        for key in [*self._running]:
            self._remove(key)

    def _remove(self, key: Key) -> tuple[Attempt, Job]:
        future, attempt, job = self._running.pop(key)
        self._only.pop(key, None)
        future.release()
        return attempt, job

    def _look(self, *, is_due: bool = False) -> None:
        """Ask which workers there are: once in a while, or now."""
        if not is_due and monotonic() < self._asked + POLL_SECONDS:
            return
        try:
            self._workers = tuple(self.client.nthreads())
        except (OSError, RuntimeError) as error:
            raise NoCluster(f"The connection to the scheduler is lost: {error}") from None
        self._asked = monotonic()
        if self._workers or self._seen < 0:
            self._seen = self._asked
        elif self._asked > self._seen + WORKERS_SECONDS:
            raise NoCluster(f"The cluster has had no workers for {WORKERS_SECONDS:.0f} seconds.")
        for key in [key for key, only in self._only.items() if only.isdisjoint(self._workers)]:
            attempt, job = self._remove(key)  # Dask would wait for those workers for ever
            self.start(replace(attempt, avoid=""), job)


def _introduce(question: Callable[[], str]) -> tuple[str, str]:
    return __version__, question()


_one_at_a_time = threading.Lock()  # a worker may have several threads; pytest and its capture are for one


def _attempt(submission: Submission, job: Job, version: str) -> Graded | Trouble:
    """Grade on a worker of the cluster."""
    worker: str = get_worker().address
    if version != __version__:  # a worker that has come since all were asked
        return Trouble(AGAIN, worker, inside=f"The worker {worker} has labkit {__version__}, not {version}.")
    with _one_at_a_time:
        return attempted(submission, job, worker)


def _outcome(future: Future) -> Graded | Trouble | None:
    """Return what became of an attempt; None if it has to run again, as its result is lost."""
    if future.status in ("pending", "lost"):
        return None
    if future.status == "cancelled":
        raise NoCluster("The connection to the scheduler is lost.")
    try:
        outcome: Graded | Trouble = future.result(timeout=FETCH_SECONDS)
    except TimeoutError:
        return None
    except KilledWorker as error:
        return Trouble(DIED, error.last_worker.address, was_killed=True)
    except Exception as error:  # Dask's own, such as from a worker that has come without labkit
        return trouble(error)
    return outcome
