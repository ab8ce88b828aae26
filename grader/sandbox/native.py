"""A student's C runs in a sandbox of its own, one for each program, which the judge starts and times.

It is compiled where the probe is, and does not run there: so it sees neither the probe nor what another call
has left, and no process of it outlives a call.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from grader.sandbox.limits import Limits
from grader.sandbox.process import Sandbox
from grader.sandbox.wire import Channel
from labkit.c.calls import Calls, Left
from labkit.c.compile import find_compiler
from labkit.c.function import CFunction
from labkit.c.process import Ended, run_limited
from labkit.c.run import MEMORY_BYTES, ONE_THREAD, Done, Job, read_output, sanitizer_environment
from labkit.c.stopwatch import ARRAYS, Stopwatch
from simt.common.errors import Crash, SimtError

MOST_BESIDE = 2**16  # bytes of files beside the output


@cache
def prepare() -> None:
    """Have ziglang make its libraries, if it compiles here; otherwise each sandbox would do it anew."""
    if "ziglang" in (find_compiler() or ()):
        with suppress(SimtError):
            nothing = CFunction("void nothing(void) {}", "nothing")
            nothing()
            nothing.make([()])


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


@dataclass(frozen=True)
class Asked:
    """What a probe asks to be run: a program, its words and its input, and the limits on it."""

    program: bytes
    data: bytes
    words: tuple[str, ...]
    most: int
    options: str
    timeout: float


def read_asked(told: Mapping[str, Any]) -> Asked:
    """Read the request of a probe. Raises TypeError and the like for what is none."""
    words = tuple(str(word) for word in told["words"])
    files = told["program"].tobytes(), told["data"].tobytes()
    return Asked(*files, words, int(told["most"]), str(told["options"]), float(told["timeout"]))


def run_asked(asked: Asked, isolation: str, limits: Limits, seconds: float) -> dict[str, Any]:
    """In the judge: run the program that a probe asks for, for `seconds` at most; what is told of it."""
    done, stopped = _run(asked, min(asked.timeout, seconds), isolation, limits)
    return {
        "stopped": stopped,
        "code": done.ended.code,
        "printed": _array(done.ended.printed.encode()),
        "over": done.ended.over,
        "output": _array(done.output),
    }


def make(program: bytes, calls: Calls, isolation: str, limits: Limits, timeout: float) -> Left:
    """In the judge: run a program that makes these calls. Raises Crash where it is stopped at its limits."""
    limits = replace(limits, disk_bytes=calls.nbytes + MOST_BESIDE)
    with Sandbox(isolation, limits, writable=(ARRAYS,), variables=ONE_THREAD, forks=False) as sandbox:
        file = sandbox.shared / "program"
        file.write_bytes(program)
        with Stopwatch(sandbox.shared, calls.file(), calls.known, sandbox.pids) as watch:
            command = sandbox.command([str(file), *calls.words(MEMORY_BYTES)])
            ended = run_limited(command, sandbox.shared, sandbox.environment(), timeout, sandbox.watch)
    if sandbox.stopped_for and not watch.seconds:
        raise Crash(sandbox.stopped_for)
    return Left(ended, watch.left, watch.seconds)


def _run(asked: Asked, timeout: float, isolation: str, limits: Limits) -> tuple[Done, str]:
    """Return how the program ended, and why it was stopped, if so."""
    limits = replace(limits, disk_bytes=asked.most + MOST_BESIDE)
    variables = sanitizer_environment(asked.options)
    with Sandbox(isolation, limits, writable=("output",), variables=variables) as sandbox:
        file, left = (sandbox.shared / name for name in ("program", "output"))
        file.write_bytes(asked.program)
        (sandbox.shared / "input").write_bytes(asked.data)
        left.touch()
        command = sandbox.command([str(file), *asked.words])
        ended = run_limited(command, sandbox.shared, sandbox.environment(), timeout, sandbox.watch)
        return Done(ended, read_output(left, asked.most)), sandbox.stopped_for


def _array(data: bytes) -> np.ndarray:
    """Make bytes an array: a message has room for these."""
    return np.frombuffer(data, np.uint8)
