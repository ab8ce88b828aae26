"""Who may run on this machine: answers beside each other, or one alone, whose time is taken.

All graders of a user on a machine share two files that nobody else can hold. What runs beside others holds
a shared lock on `room`, what is to be alone an exclusive one. Who waits to be alone holds `gate`, so that no
newcomer goes in before.
"""

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import psutil

from labkit.course.criteria.undisturbed import Disturbed
from simt.common.cache import cache_dir

BUSY_SECONDS, BUSY_PERCENT = 0.3, 25


class MachineLock:
    """The turns of one grader; of several in a process each needs its own."""

    def __init__(self, folder: Path | None = None) -> None:
        self._gate, self._room = _opened(folder) if folder else _own()

    @contextmanager
    def beside(self, waiting: Callable[[], AbstractContextManager[object]] = nullcontext) -> Iterator[None]:
        """Run beside others. Who is alone is waited for in `waiting()`."""
        with waiting():
            self._enter(fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)

    @contextmanager
    def alone(self, waiting: Callable[[], AbstractContextManager[object]] = nullcontext) -> Iterator[None]:
        """Run alone; within `beside` that gives up its place meanwhile. Others are waited for in
        `waiting()`.
        """
        fcntl.flock(self._room, fcntl.LOCK_UN)
        with waiting():
            self._enter(fcntl.LOCK_EX)
        try:
            yield
        finally:
            with waiting():
                fcntl.flock(self._room, fcntl.LOCK_SH)

    def refuse_if_busy(self) -> None:
        """Raise Disturbed where this machine works for somebody else, while nothing is graded beside."""
        with self.alone():
            busy = psutil.cpu_percent(BUSY_SECONDS)
        if busy > BUSY_PERCENT:
            raise Disturbed(
                f"This machine was busy with something else, {busy:.0f} % of its processors: times say too "
                "little about this answer. Grade it again while nothing else runs."
            )

    def close(self) -> None:
        """Give up all places."""
        os.close(self._gate)
        os.close(self._room)

    def _enter(self, kind: int) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, kind)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)


def _own() -> tuple[int, int]:
    """Open the files in this user's cache or, where that is read-only, in a folder for temporary files."""
    name = f"turns-{os.getuid()}-{socket.gethostname()}"  # a home may be that of several machines
    for folder in (cache_dir() / name, Path(tempfile.gettempdir(), f"labkit-{name}")):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
                return _opened(folder)
    with tempfile.TemporaryDirectory() as alone:  # somebody else has made them: no turns then
        return _opened(Path(alone))


def _opened(folder: Path) -> tuple[int, int]:
    gate, room = (os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("gate", "room"))
    return gate, room
