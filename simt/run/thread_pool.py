"""The threads of the host that run a launch, its time limit, and Ctrl-C."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from simt.code.abi import Launch

POLL_SECONDS = 0.05  # between checks of the clock and for Ctrl-C
PATIENCE_SECONDS = 2.0
Job = Callable[[], None]


def run_all(jobs: Sequence[Job], launch: Launch, timeout: float) -> bool:
    """Run each job on its own thread; stop them at the time limit or at Ctrl-C. Return True if in time."""
    finished: SimpleQueue[None] = SimpleQueue()
    for number, job in enumerate(jobs):
        _crewman(number).put((job, finished))
    end, running = time.monotonic() + timeout, len(jobs)
    try:
        while running and time.monotonic() < end:
            with suppress(Empty):
                finished.get(timeout=POLL_SECONDS)
                running -= 1
    finally:
        if running:
            launch.stop = 1
            for _ in range(running):
                finished.get()
    return not running


def can_run_here() -> bool:
    """Say whether this is the thread to which Python gives signals."""
    return threading.current_thread() is threading.main_thread()


def run_here(jobs: Sequence[Job], launch: Launch, timeout: float) -> bool:
    """Run jobs that should be short on the calling thread. Return True if in time.

    This saves waking another thread. While they run, Python handles no signal, so a watchman checks the
    clock, and the socket in which Python notes signals as they come.
    """
    noted, note = _signals()
    _read(noted)  # forget signals of the last launch
    _watchman.watch(launch, time.monotonic() + timeout)
    earlier = signal.set_wakeup_fd(note.fileno(), warn_on_full_buffer=False)
    try:
        for job in jobs:
            job()
    finally:
        signal.set_wakeup_fd(earlier)
        was_late = _watchman.leave()
        came = _read(noted)
        if came and earlier >= 0:
            with suppress(OSError):  # whoever else watches signals may be gone
                os.write(earlier, came)
    if signal.SIGINT in came:
        raise KeyboardInterrupt
    return not was_late


def _read(noted: socket.socket, flags: int = 0) -> bytes:
    """Read the numbers of the signals that came, one byte each."""
    with suppress(BlockingIOError):
        return noted.recv(64, flags)
    return b""


class _Watchman:
    """A thread that stops a launch when its time is over, or at Ctrl-C.

    It checks at intervals and need not be woken, which would take longer than a short launch. It ends when
    there has been nothing to watch for a while.
    """

    def __init__(self) -> None:
        self.watched: tuple[Launch, float] | None = None
        self.is_there = self.was_late = False

    def watch(self, launch: Launch, end: float) -> None:
        self.watched, self.was_late = (launch, end), False
        if not self.is_there:
            self.is_there = True
            threading.Thread(target=self._look, name="labkit-simt-watchman", daemon=True).start()

    def leave(self) -> bool:
        """Note that the launch is over, and say whether its time limit stopped it."""
        self.watched = None
        return self.was_late

    def _look(self) -> None:
        last_seen = time.monotonic()
        while True:
            time.sleep(POLL_SECONDS)
            watched, now = self.watched, time.monotonic()
            if watched is not None:
                last_seen = now
                self._look_at(*watched, now)
            elif now - last_seen > PATIENCE_SECONDS:
                self.is_there = False
                if self.watched is None:
                    return
                self.is_there = True  # a launch began meanwhile and relies on this thread

    def _look_at(self, launch: Launch, end: float, now: float) -> None:
        if now > end:
            self.was_late, launch.stop = True, 1
        if signal.SIGINT in _read(_signals()[0], socket.MSG_PEEK):
            launch.stop = 1


def _signals() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of the socket in which Python notes signals: one to read, one to write."""
    if not _sockets:
        _sockets.extend(socket.socketpair())
        for end in _sockets:
            end.setblocking(False)
    return _sockets[0], _sockets[1]


Jobs = SimpleQueue[tuple[Job, SimpleQueue[None]]]


def _crewman(number: int) -> Jobs:
    """Return the queue from which a thread takes its jobs. The thread stays: waking it takes microseconds."""
    while len(_crew) <= number:
        jobs: Jobs = SimpleQueue()
        threading.Thread(target=_work, args=(jobs,), name="labkit-simt", daemon=True).start()
        _crew.append(jobs)
    return _crew[number]


def _work(jobs: Jobs) -> None:
    while True:
        job, finished = jobs.get()
        try:
            job()
        finally:
            finished.put(None)


def _start_anew() -> None:
    """Forget the parent's threads and signals in a child process, which has neither."""
    global _watchman
    _crew.clear()
    _sockets.clear()
    _watchman = _Watchman()


_crew: list[Jobs] = []
_sockets: list[socket.socket] = []
_watchman = _Watchman()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
