"""The time that a submission, and each of its answers, may take; what is late is interrupted."""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from time import monotonic

POLL_SECONDS = 0.1
GRACE_SECONDS = 2.0  # in which the judge sees that the sandbox was stopped, before it is interrupted itself


class Late(BaseException):
    """Raised in the judge where its own work goes on past the limit. No `except Exception` keeps it."""


class Clock:
    """So many seconds, in words `what`; time in which a turn is waited for is not counted.

    A clock that is a part of another is late no later than that.
    """

    def __init__(self, seconds: float, what: str, whole: "Clock | None" = None) -> None:
        self._seconds, self._what, self._whole = seconds, what, whole
        self._until = monotonic() + seconds
        self._paused_at: float | None = None

    def part(self, seconds: float, what: str) -> "Clock":
        """Return a clock for a part of what this one measures."""
        return Clock(seconds, what, self)

    def left(self) -> float:
        """Return the seconds that are left; less than 0 when it is late."""
        return min(self._own(), self._whole.left()) if self._whole else self._own()

    def why(self) -> str:
        """Say in a sentence what took too long."""
        if self._whole and self._whole.left() <= self._own():
            return self._whole.why()
        return f"{self._what} took more than {self._seconds:g} s and was stopped."

    def _own(self) -> float:
        return self._until - (self._paused_at or monotonic())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the time stand still."""
        with self._whole.paused() if self._whole else nullcontext():
            self._paused_at = start = monotonic()
            try:
                yield
            finally:
                self._paused_at = None
                self._until += monotonic() - start

    @contextmanager
    def enforced(self, stop: Callable[[str], None]) -> Iterator[None]:
        """Call `stop` with a sentence when it is late. Raises Late in here where even that ends nothing."""
        ended, raised = threading.Event(), threading.Event()
        lock, judge = threading.Lock(), threading.get_ident()

        def watch() -> None:
            while not ended.wait(min(max(self.left(), 0.0) + 0.01, POLL_SECONDS)):
                if self.left() <= 0:
                    break
            else:
                return
            stop(self.why())
            ended.wait(GRACE_SECONDS)
            with lock:
                if not ended.is_set():
                    raised.set()
                    _raise_in(judge, Late)

        watcher = threading.Thread(target=watch, daemon=True, name="clock")
        watcher.start()
        try:
            yield
        finally:
            with lock:
                ended.set()
            if raised.is_set() and not isinstance(sys.exc_info()[1], Late):
                _let_it_come()  # too late to say that the judge is


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    """Raise an exception in another thread where that next runs Python.

    It must arrive: CPython 3.11 does not forget one that is taken back, and a profiled call then never ends.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _let_it_come() -> None:
    """Have a Late that is under way arrive here."""
    with suppress(Late):
        for _ in range(1000):  # one is raised at the end of a round
            pass
