"""A student's C runs in a sandbox of its own, one for each program, which the judge starts and times.

It is compiled where the probe is, and does not run there: so it sees neither the probe nor what another call
has left, and no process of it outlives a call. What it computes with comes through a pipe, and its time
counts from when it begins to read that.
"""

import os
import select
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from labkit.c.arguments import Arguments
from labkit.c.compile import find_compiler
from labkit.c.function import CFunction
from labkit.c.process import Ended, run_limited
from labkit.c.run import Done, Job, read_output, sanitizer_environment, update, words_for
from labkit.core.errors import Crash, SimtError
from labkit.grading.sandbox.limits import Limits
from labkit.grading.sandbox.process import Sandbox
from labkit.grading.sandbox.wire import Channel

MOST_BESIDE = 2**16  # bytes of files beside the output
WAIT_SECONDS = 0.0002


@cache
def prepare() -> None:
    """Have ziglang make its libraries, if it compiles here; otherwise each sandbox would do it anew."""
    if "ziglang" in (find_compiler() or ()):
        with suppress(SimtError):
            nothing = CFunction("void nothing(void) {}", "nothing")
            nothing()
            nothing.program()


def run_outside(channel: Channel, job: Job) -> Done:
    """Have the judge run a program; called in the probe."""
    told = {"words": job.words, "most": job.most, "options": job.options, "timeout": job.timeout}
    files = {"program": _array(job.program.read_bytes()), "data": _array(job.data)}
    channel.send({"run": told | files})
    reply = channel.receive()
    if reply["stopped"]:
        raise Crash(reply["stopped"])
    ended = Ended(reply["code"], reply["printed"].tobytes().decode(errors="replace"), reply["over"])
    return Done(ended, reply["output"].tobytes())


def run_asked(asked: Mapping[str, Any], isolation: str, limits: Limits, seconds: float) -> dict[str, Any]:
    """In the judge: run the program that a probe asks for, for `seconds` at most; what is told of it."""
    words, timeout = tuple(str(word) for word in asked["words"]), min(float(asked["timeout"]), seconds)
    files = asked["program"].tobytes(), asked["data"].tobytes()
    most, options = int(asked["most"]), str(asked["options"])
    done, _, stopped = _run(*files, words, most, timeout, options, isolation, limits)
    return {
        "stopped": stopped,
        "code": done.ended.code,
        "printed": _array(done.ended.printed.encode()),
        "over": done.ended.over,
        "output": _array(done.output),
    }


def seconds_of(
    program: bytes, calls: Sequence[Arguments], isolation: str, limits: Limits, timeout: float
) -> float:
    """In the judge: seconds from when the program begins to read until it has made these calls and ended.

    Their arrays are changed. Raises Crash where something goes wrong.
    """
    data = b"".join(call.data() for call in calls)
    most = len(data) + MOST_BESIDE
    done, seconds, stopped = _run(program, data, words_for(calls), most, timeout, "", isolation, limits)
    try:
        update(calls, done)
    except ValueError as why:
        raise Crash(stopped or f"When its time is taken: {why}.") from None
    return seconds


def _run(
    program: bytes,
    data: bytes,
    words: tuple[str, ...],
    most: int,
    timeout: float,
    options: str,
    isolation: str,
    limits: Limits,
) -> tuple[Done, float, str]:
    """Return how the program ended, its seconds since it began to read, and why it was stopped, if so."""
    limits = replace(limits, disk_bytes=most + MOST_BESIDE)
    variables = sanitizer_environment(options)
    with Sandbox(isolation, limits, writable=("output",), variables=variables) as sandbox:
        file, given, left = (sandbox.shared / name for name in ("program", "input", "output"))
        file.write_bytes(program)
        left.touch()
        os.mkfifo(given)
        command = sandbox.command([str(file), *words])
        with _Feeder(given, data) as feeder:
            ended = run_limited(command, sandbox.shared, sandbox.environment(), timeout, sandbox.watch)
            end = sandbox.ended_at()
        done = Done(ended, read_output(left, most))
    return done, end - (feeder.start or end), sandbox.stopped_for


class _Feeder:
    """Writes data into a pipe as soon as somebody reads it; `start` is when that began, on perf_counter."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.start = 0.0
        self._path, self._data, self._ended = path, data, threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> "_Feeder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._ended.is_set():
            try:
                handle = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:  # nobody has opened it to read
                self._ended.wait(WAIT_SECONDS)
        else:
            return
        self.start = perf_counter()
        rest = memoryview(self._data)
        with suppress(OSError), os.fdopen(handle, "wb", 0) as pipe:
            while rest and not self._ended.is_set():
                if select.select([], [pipe], [], 0.1)[1]:
                    rest = rest[pipe.write(rest) or 0 :]


def _array(data: bytes) -> np.ndarray:
    """Make bytes an array: a message has room for these."""
    return np.frombuffer(data, np.uint8)
