"""Run a program with a server that labkit starts, and get the server's record of what the program did.

A criterion judges by the record: a program can print what it likes. The program finds the server by two open
files, and its environment is the same whatever is looked at.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from simt.programs import library
from simt.programs.server.memory import BYTES, FLAGS_AT
from simt.programs.server.recorder import unpacked
from simt.programs.server.wire import BEGIN

CHECKED, WATCHED, RECORDED = 1, 2, 4  # flags of the memory's table, as runtime/runtime.h has them
_FLAGS = {"run": RECORDED, "check": RECORDED | CHECKED, "profile": RECORDED | WATCHED}
_OURS = "LABKIT_"  # begins the names of variables that set up the simulator
SECONDS = 60.0  # time for the record to arrive after the program has ended


@dataclass(frozen=True)
class Arrays:
    """The bytes that the array behind a pointer of a launch holds before and after it, from the pointer on.

    `start` is the pointer, 0 where the launch was tried on drawn numbers.
    """

    before: np.ndarray
    after: np.ndarray
    start: int = 0


@dataclass(frozen=True)
class Launched:
    """A launch: its place in the order of the record, CUDA's error, its arrays, one per pointer parameter.

    `arrays` is None where they are too large to be kept. `tried` has what the same launch did to drawn
    numbers: None where it was not tried, a text where it failed.
    """

    at: int
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    code: int
    seconds: float
    arrays: list[Arrays] | None
    tried: list[Arrays] | str | None


@dataclass(frozen=True)
class Copied:
    """A copy out of device memory: where to, and the bytes. They are None where there are too many."""

    at: int
    to: int
    contents: np.ndarray | None


@dataclass(frozen=True)
class Span:
    """When a stream was busy with a copy (a cudaMemcpyKind) or a kernel (KERNEL), in seconds of the model."""

    at: int
    copy: int
    stream: int
    begin: float
    end: float

    KERNEL = 100


@dataclass(frozen=True)
class Elapsed:
    """What cudaEventElapsedTime was asked: for both events their places in the order, and their times in
    seconds of the model.
    """

    started: int
    stopped: int
    begin: float
    end: float

    @property
    def ms(self) -> float:
        """Return what the program got."""
        return 1e3 * (self.end - self.begin)


@dataclass(frozen=True)
class Returned:
    """A call that has returned an error, or handed one out as cudaGetLastError does."""

    at: int
    function: str
    code: int


@dataclass(frozen=True)
class Record:
    """What a program did. `ended`: it came to its end, and was looked at until then.

    `is_whole` is false where more was done than a record holds. `found` has kind and text of each mistake.
    """

    ended: bool
    is_whole: bool
    gpu: str
    found: list[tuple[str, str]]
    launches: list[Launched] = field(default_factory=list)
    copies: list[Copied] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    elapsed: list[Elapsed] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)


def record_of(told: Mapping[str, Any]) -> Record:
    """Return the record of plain values. Raises KeyError, TypeError or ValueError for others."""
    return Record(
        ended=bool(told["ended"]),
        is_whole=bool(told["is_whole"]),
        gpu=str(told["gpu"]),
        found=[(str(kind), str(text)) for kind, text in told["found"]],
        launches=[_launched(each) for each in told.get("launches", ())],
        copies=[Copied(int(c["at"]), int(c["to"]), _bytes(c["contents"])) for c in told.get("copies", ())],
        spans=[
            Span(int(s["at"]), int(s["copy"]), int(s["stream"]), float(s["begin"]), float(s["end"]))
            for s in told.get("spans", ())
        ],
        elapsed=[
            Elapsed(int(e["started"]), int(e["stopped"]), float(e["begin"]), float(e["end"]))
            for e in told.get("elapsed", ())
        ],
        returned=[
            Returned(int(r["at"]), str(r["function"]), int(r["code"])) for r in told.get("returned", ())
        ],
    )


def _launched(told: Mapping[str, Any]) -> Launched:
    tried = told.get("tried")
    grid, block = (tuple(int(n) for n in told[name]) for name in ("grid", "block"))
    return Launched(
        int(told["at"]),
        str(told["kernel"]),
        grid,
        block,
        int(told["code"]),
        float(told.get("seconds", 0)),
        _arrays(told["arrays"]),
        tried if tried is None or isinstance(tried, str) else _arrays(tried),
    )


def _arrays(told: list[Mapping[str, Any]] | None) -> list[Arrays] | None:
    if told is None:
        return None
    both = [
        (_bytes(each.get("before")), _bytes(each.get("after")), int(each.get("start", 0))) for each in told
    ]
    kept = [
        Arrays(before, after, start)
        for before, after, start in both
        if before is not None and after is not None
    ]
    return kept if len(kept) == len(told) else None


def _bytes(value: object) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim != 1:
        raise TypeError(f"bytes are wanted, not {type(value).__name__}")
    return value


class Watching:
    """A server for one program to come, and the files that the program inherits."""

    def __init__(self, mode: str, variables: Mapping[str, str], seed: int, stdout: int, stderr: int) -> None:
        self._requests, ours = socket.socketpair()
        self._channel, theirs = socket.socketpair()
        self._memory = _memory_file(_FLAGS[mode])
        words = [ours.fileno(), self._memory, library.version(), theirs.fileno()]
        # The simulator's own: a notebook on a GPU has chosen another device.
        ours_alone = {"LABKIT_PROGRAM": mode if mode != "run" else "", "LABKIT_DEVICE": "simt"}
        environment = os.environ | variables | ours_alone
        paths = str(Path(library.__file__).parents[2]), os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        environment.pop("LD_PRELOAD", None)
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "simt.programs.server", *map(str, words)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[ours.fileno(), self._memory, theirs.fileno()],
            start_new_session=True,
        )
        ours.close()
        theirs.close()
        self._seed = seed

    def begin(self, program: int) -> None:
        """Have the server serve the process `program`, which has been started with `files`."""
        self._channel.sendall(BEGIN.pack(self._seed, program))

    @property
    def files(self) -> list[int]:
        """Return the files that the program inherits."""
        return [self._requests.fileno(), self._memory]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the program's variables: no word of how it is looked at."""
        kept = {name: value for name, value in (os.environ | variables).items() if not name.startswith(_OURS)}
        return kept | {"LABKIT_SERVER": ",".join(map(str, self.files))}

    def finish(self, is_stopped: bool) -> Record | None:
        """End the server. Return its record: None where it has none, or the program was stopped."""
        told = b"" if is_stopped else self._told()
        with suppress(ProcessLookupError):
            self._server.kill()
        self._server.wait()
        self._channel.close()
        self._requests.close()
        os.close(self._memory)
        try:
            return record_of(unpacked(told)) if told else None
        except (ValueError, KeyError, TypeError, OSError):
            return None

    def _told(self) -> bytes:
        with suppress(OSError):
            self._requests.shutdown(socket.SHUT_RDWR)  # a child of the program may hold its end open
        parts, until = [], monotonic() + SECONDS
        try:
            while part := self._received(until):
                parts.append(part)
        except OSError:
            return b""
        return b"".join(parts)

    def _received(self, until: float) -> bytes:
        self._channel.settimeout(max(0.01, until - monotonic()))
        return self._channel.recv(1 << 20)


def _memory_file(flags: int) -> int:
    """Return the file that the program and the server share; the flags stand in its head."""
    if sys.platform != "linux":
        raise NotImplementedError("programs run on Linux")
    try:
        file = os.memfd_create("labkit")
    except OSError:  # a sandbox may refuse it: there, a file without a name does
        file = os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(file, BYTES)
    os.pwrite(file, flags.to_bytes(8, "little"), FLAGS_AT)
    return file
