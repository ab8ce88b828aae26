"""A program's calls, timed from outside: it neither fills its arrays nor reads them out nor has the clock.

The program (calls.c) maps the file `arrays` and opens the pipe `go`. Its time begins, and only then are the
numbers written into the file. When it has made its calls it says so in the pipe `done`, and waits: the file
is read, and after that the time of its processor, in all its threads. So what it has done earlier it did
without the numbers, and what it does later counts for nothing. A busy machine makes a program wait, which
takes none of this time.
"""

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

assert sys.platform != "win32"  # it has no such pipes: there CFunction.make does without this module
WAIT_SECONDS = 0.0005
LOOK_SECONDS = 0.05
PIPES = ("go", "done")
ARRAYS = "arrays"


class Stopwatch:
    """Fills and reads the arrays of a program in `folder`, and times it; it runs within this context.

    `data` is the file's content, of which the program may know the first `known` bytes before. `pids` returns
    the numbers of its processes. Afterwards `left` is the file's content, and `seconds` how long it took; 0
    if it has not made all its calls.
    """

    def __init__(self, folder: Path, data: np.ndarray, known: int, pids: Callable[[], Sequence[int]]) -> None:
        self.left, self.seconds = data[:0], 0.0
        self._given, self._known, self._pids = data, known, pids
        for name in PIPES:
            os.mkfifo(folder / name)
        self._go = folder / "go"
        self._done = os.open(folder / "done", os.O_RDONLY | os.O_NONBLOCK)
        self._file = os.open(folder / ARRAYS, os.O_RDWR | os.O_CREAT, 0o600)
        os.truncate(self._file, data.size)
        os.pwrite(self._file, data[:known].data, 0)
        self._before: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._time, daemon=True)

    def __enter__(self) -> "Stopwatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if not self.seconds:
            self.left = self._read()
        os.close(self._done)
        os.close(self._file)

    def _time(self) -> None:
        if not self._open_go(self._fill):
            return
        while not select.select([self._done], [], [], LOOK_SECONDS)[0]:
            if self._ended.is_set():
                return
        self.left = self._read()
        after = processor_seconds(self._pids())
        if after.keys() >= self._before.keys():  # otherwise it has ended, and its time is gone
            self.seconds = sum(each - self._before.get(pid, 0) for pid, each in after.items())
        self._open_go(lambda: None)

    def _fill(self) -> None:
        while not self._before and not self._ended.is_set():  # the program is quicker than who starts it
            self._before = processor_seconds(self._pids())
        with open(self._file, "r+b", closefd=False) as file:
            file.seek(self._known)
            file.write(self._given[self._known :].data)

    def _open_go(self, then: Callable[[], None]) -> bool:
        """Open the pipe as soon as the program reads from it, and close it again; False if it has ended."""
        while not self._ended.is_set():
            try:
                go = os.open(self._go, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody has opened it to read
                self._ended.wait(WAIT_SECONDS)
                continue
            then()
            os.close(go)
            return True
        return False

    def _read(self) -> np.ndarray:
        data = np.empty_like(self._given)
        count = os.preadv(self._file, [data.data], 0)
        return data[:count]


def processor_seconds(pids: Sequence[int]) -> dict[int, float]:
    """Return the seconds for which a processor has worked for each process that is there, by its number.

    The kernel counts these, per process in all its threads. Systems other than Linux do not tell them of
    another process: there it is the time of day.
    """
    if not sys.platform.startswith("linux"):
        return dict.fromkeys(pids[:1], time.perf_counter())
    found = {}
    for pid in pids:
        with suppress(OSError):  # it has ended
            found[pid] = time.clock_gettime((~pid << 3) | 2)  # Linux: the clock CPUCLOCK_SCHED of a process
    return found
