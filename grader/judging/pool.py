"""Grade on processes of this machine, each with one submission at a time.

A process that dies costs the submission that it has, and no other. A process in which grading failed, for
whatever reason, ends, and a new one takes its place.
"""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from multiprocessing.connection import Connection, wait

from threadpoolctl import threadpool_limits

from grader.judging.engine import DIED, TOO_LONG, Attempt, Job, Trouble, attempted
from grader.model import Graded
from grader.sandbox import process
from grader.sandbox.watch import below

END_SECONDS = 5.0  # for an interrupted process to remove its sandbox
HERE = "this machine"
MOST_BELOW = 10_000  # processes
# A server imports what grades once, and forks for each worker: so they start at once and share that memory.
_CONTEXT = multiprocessing.get_context("forkserver")


class Pool:
    """Up to so many worker processes, started as they are needed; use it as a context manager."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._idle: list[_Worker] = []
        self._busy: dict[object, tuple[_Worker, Attempt]] = {}  # by the worker's pipe
        _CONTEXT.set_forkserver_preload(["grader.judging.judge", __name__])

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()
        for worker in self._idle:
            worker.end()

    def __len__(self) -> int:
        return len(self._busy)

    def pids(self) -> list[int]:
        """Return the numbers of the processes that there are now."""
        workers = [*self._idle, *(worker for worker, _ in self._busy.values())]
        return [worker.process.pid or 0 for worker in workers]

    def ask(self, question: Callable[[], str]) -> dict[str, str]:
        """Answer the question here: all workers are on this machine."""
        return {HERE: question()}

    def has_room(self) -> bool:
        """Return whether another attempt may start."""
        return len(self) < self._processes

    def start(self, attempt: Attempt, job: Job) -> None:
        """Hand an attempt to a process that has nothing to do, or to a new one."""
        worker = self._idle.pop() if self._idle else _Worker()
        self._busy[worker.pipe] = worker, attempt
        with suppress(BrokenPipeError):  # it died as it waited; landing says so
            worker.pipe.send((attempt.submission, job))

    def land(self) -> tuple[Attempt, Graded | Trouble]:
        """Wait for an attempt that has ended."""
        worker, attempt = self._busy.pop(wait([worker.pipe for worker, _ in self._busy.values()])[0])
        try:
            outcome: Graded | Trouble = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(END_SECONDS)
            is_late = worker.process.exitcode == -signal.SIGXCPU
            outcome = Trouble(TOO_LONG, took_too_long=True) if is_late else Trouble(DIED, was_killed=True)
        if isinstance(outcome, Graded):
            self._idle.append(worker)
        else:
            worker.end()
        return attempt, outcome

    def abandon(self) -> None:
        """Interrupt the processes that still grade."""
        interrupted = [worker for worker, _ in self._busy.values()]
        self._busy.clear()
        for worker in interrupted:
            worker.process.terminate()
            worker.pipe.close()  # or one that was stopped in time would wait for more
        for worker in interrupted:
            worker.process.join(END_SECONDS)
            worker.end()


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(theirs,))
        self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def end(self) -> None:
        """Kill the process, and what it runs; remove the folders that it leaves."""
        self.pipe.close()
        pid = self.process.pid or 0
        inside = below(pid, MOST_BELOW)[0] if self.process.is_alive() else []
        self.process.kill()
        self.process.join()
        for each in inside:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        process.clear(pid)


def _serve(pipe: Connection) -> None:
    """Grade, in a worker process, what comes through the pipe, until the other side closes it.

    Ctrl-C in a terminal reaches all of its processes; what it means is for the grader to say. Its handler,
    unlike SIG_IGN, is not handed down to the programs that are started here.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the sandbox is cleared away
    with threadpool_limits(1), suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            submission, job = pipe.recv()
            _limit_cpu(job.cpu_seconds)
            pipe.send(attempted(submission, job))


def _limit_cpu(seconds: float) -> None:
    """Have the kernel end this process when it computes for longer from now on: nothing in it can be late."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft, most = ceil(used.ru_utime + used.ru_stime + seconds), resource.getrlimit(resource.RLIMIT_CPU)[1]
    if most == resource.RLIM_INFINITY or soft < most:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, most))
