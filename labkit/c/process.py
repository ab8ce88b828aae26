"""Run a program that may do anything, within limits on its time and on what it prints."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal

MAX_PRINTED_BYTES = 2**20
POLL_SECONDS = 0.05
REPORT_SECONDS = 10  # time for a sanitizer to report where the program was


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, negative for a signal, and what it printed.

    `over` is the limit that it was stopped for, if any; the exit code then means nothing.
    """

    code: int
    printed: str
    over: Literal["", "time", "printing"]


def run_limited(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    started: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
) -> Ended:
    """Run `command` in `folder` for at most `timeout` seconds; then its whole process group is gone.

    It has no input. At the time limit it first gets SIGABRT, so that a sanitizer reports where it was.
    `started` is called with the process.
    """
    deadline = monotonic() + timeout
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a process group of its own; Windows has none and ignores it
    )
    printed = bytearray()
    reader = threading.Thread(target=_read, args=(process, printed), daemon=True)
    try:
        started(process)
        reader.start()
        while reader.is_alive() and process.poll() is None and monotonic() < deadline:
            reader.join(POLL_SECONDS)
        if process.poll() is not None:  # processes that it left behind may hold the pipe open
            _kill(process)
            reader.join(REPORT_SECONDS)
        if len(printed) >= MAX_PRINTED_BYTES:
            return Ended(0, _text(printed), "printing")
        try:
            code = process.wait(max(0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            _abort(process)
            return Ended(0, _text(printed), "time")
        return Ended(code, _text(printed), "")
    finally:  # also on Ctrl-C
        _kill(process)
        reader.join(REPORT_SECONDS)  # bounded: a process that left the group may hold the pipe open


def _read(process: subprocess.Popen[bytes], printed: bytearray) -> None:
    assert process.stdout is not None
    with process.stdout as pipe:
        while len(printed) < MAX_PRINTED_BYTES and (data := os.read(pipe.fileno(), 2**16)):
            printed += data


def _text(printed: bytearray) -> str:
    return bytes(printed).decode(errors="replace")


def _abort(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.terminate()
    else:
        process.send_signal(signal.SIGABRT)
        process.send_signal(signal.SIGCONT)  # a stopped process reacts to nothing else
    with suppress(subprocess.TimeoutExpired):
        process.wait(REPORT_SECONDS)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and, where there are process groups, all that it has started."""
    with suppress(ProcessLookupError, PermissionError):  # they are gone, which macOS may report in this way
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
