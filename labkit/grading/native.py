"""A student's C runs in a sandbox of its own, a call after the other, which the judge starts and times.

It is compiled where the probe is, and does not run there: so it sees neither the probe nor what another call
has left, and no process of it outlives a call. What it computes with comes through a pipe, and its time
counts from when it begins to read that.
"""

import os
import select
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from labkit.c.process import Ended, run_limited
from labkit.c.run import Done, Job, read_output, sanitizer_environment
from labkit.errors import Crash
from labkit.grading.sandbox import Limits, Sandbox
from labkit.grading.wire import Channel

MOST_BESIDE = 2**16  # bytes of files beside the output
WAIT_SECONDS = 0.0002


def run_outside(channel: Channel, job: Job) -> Done:
    "In the probe: have the judge run a program."
    told = {"words": job.words, "most": job.most, "options": job.options, "timeout": job.timeout}
    files = {"program": _array(job.program.read_bytes()), "data": _array(job.data)}
    channel.send({"run": told | files})
    reply = channel.receive()
    if reply["stopped"]:
        raise Crash(reply["stopped"])
    ended = Ended(reply["code"], reply["printed"].tobytes().decode(errors="replace"), reply["over"])
    return Done(ended, reply["output"].tobytes(), reply["seconds"])


def run_asked(asked: Mapping[str, Any], isolation: str, limits: Limits, seconds: float) -> dict[str, Any]:
    "In the judge: run the program that a probe asks for, for `seconds` at most; what is told of it."
    most, words = int(asked["most"]), [str(word) for word in asked["words"]]
    limits = replace(limits, disk_bytes=most + MOST_BESIDE)
    variables = sanitizer_environment(str(asked["options"]))
    with Sandbox(isolation, limits, writable=("output",), variables=variables) as sandbox:
        program, given, left = (sandbox.shared / name for name in ("program", "input", "output"))
        program.write_bytes(asked["program"].tobytes())
        left.touch()
        os.mkfifo(given)
        with _Feeder(given, asked["data"].tobytes()) as feeder:
            ended = run_limited(
                sandbox.command([str(program), *words]),
                sandbox.shared,
                sandbox.environment(),
                min(float(asked["timeout"]), seconds),
                sandbox.watch,
            )
            end = sandbox.ended_at()
        output = read_output(left, most)
    return {
        "stopped": sandbox.stopped_for,
        "code": ended.code,
        "printed": _array(ended.printed.encode()),
        "over": ended.over,
        "output": _array(output),
        "seconds": end - feeder.start if feeder.start else 0.0,
    }


class _Feeder:
    "Writes data into a pipe as soon as somebody reads it; `start` is when that began, on perf_counter."

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
    "Bytes as an array: these have room in a message."
    return np.frombuffer(data, np.uint8)
