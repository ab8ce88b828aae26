"""Keep what a program does, and try its launches once more on other numbers, when it has ended.

The program has no part in the record: it goes to whoever started the server, over a socket that the program
does not have. What the server itself sees are launches, what is in memory before and after each, what copies
take out of it, and findings. Spans, events and returned errors are as the program's library reports them.
"""

from __future__ import annotations

import io
import json
import math
import socket
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simt.common.buffer_names import Named
from simt.common.errors import SimtError
from simt.kernel import Launch
from simt.launch.arguments import Packed, Range
from simt.module import Kernel
from simt.programs.server.memory import (
    ALIGNMENT,
    CONSTANT,
    POINTER_BYTES,
    VARIABLE,
    Allocation,
    Memory,
    arguments,
)
from simt.programs.server.wire import Reader
from simt.programs.server.words import shown

SPAN, COPIED, EVENT, ELAPSED, RETURNED = range(1, 6)  # notes, as runtime/runtime.h has them
MOST_NOTES = 4000
MOST_LAUNCHES = 64  # kept per program
MOST_BYTES, MOST_ARRAYS = 160 << 20, 600  # of contents, in all
MOST_TRIED, MOST_TRIED_BYTES, MOST_POINTERS = 16, 8 << 20, 8  # launches; the bytes and pointers of one
SLACK = 1 << 16  # bytes behind an array that a launch may use when it is tried, as on a GPU
MOST_NUMBER = 16  # what is tried: whole numbers below it, which float32 computes with exactly

Plain = dict[str, Any]  # numbers, texts, arrays, and lists and dictionaries of them


@dataclass(frozen=True)
class _Kept:
    """What a launch needs to be tried again: its kernel, its parameters, and the arrays they point into."""

    kernel: Kernel
    launch: Launch
    pointers: Mapping[
        int, tuple[Allocation, int]
    ]  # by place in the parameters: the array, and the bytes before


@dataclass
class Recorder:
    """The record of one program. `seed` draws the numbers that launches are tried on."""

    memory: Memory
    gpu: str
    seed: int
    notes: dict[str, list[Plain]] = field(default_factory=dict)
    ended: bool = False
    _bytes: int = 0
    _arrays: int = 0
    _at: int = 0
    _recorded: dict[int, int] = field(default_factory=dict)  # by event: its place in the order
    _launches: list[_Kept] = field(default_factory=list)

    def add(self, kind: str, **what: Any) -> Plain | None:
        """Keep what has happened, with its place in the order of all; None where too much has."""
        self._at += 1
        if self._at > MOST_NOTES:
            return None
        self.notes.setdefault(kind, []).append({"at": self._at, **what})
        return self.notes[kind][-1]

    def note(self, reader: Reader) -> None:
        """Keep what the program's library reports."""
        kind = reader.u32()
        if kind == SPAN:
            copy, stream = reader.u64(), reader.u64()
            self.add("spans", copy=copy, stream=stream, begin=reader.double(), end=reader.double())
        elif kind == COPIED:
            to, start, size = reader.u64(), reader.u64(), reader.u64()
            self.add("copies", to=to, start=start, contents=self._contents(start, size))
        elif kind == EVENT:
            self._recorded[reader.u64()] = self._at = self._at + 1
        elif kind == ELAPSED:
            first, second = reader.u64(), reader.u64()
            times = reader.double(), reader.double()
            started, stopped = (self._recorded.get(event, 0) for event in (first, second))
            self.add("elapsed", started=started, stopped=stopped, begin=times[0], end=times[1])
        elif kind == RETURNED:
            code = reader.u32()
            self.add("returned", code=code, function=reader.text())

    def before(self, kernel: Kernel, launch: Launch) -> Plain | None:
        """Keep a launch that is about to run, and what its arrays hold."""
        pointers = self._pointers(kernel, launch)
        added = self.add(
            "launches",
            kernel=shown(kernel),
            grid=list(launch.grid),
            block=list(launch.block),
            code=0,
            arrays=[self._array(array, offset) for array, offset in pointers.values()],
        )
        if added is None or len(self._launches) == MOST_LAUNCHES:
            return None
        self._launches.append(_Kept(kernel, launch, pointers))
        return added

    def _array(self, array: Allocation, offset: int) -> Plain:
        start = array.start + offset
        return {"start": start, "before": self._contents(start, array.bytes - offset)}

    def after(self, added: Plain | None, code: int, seconds: float) -> None:
        """Keep how a launch ended, and what its arrays hold now."""
        if added is None:
            return
        added["code"], added["seconds"] = code, seconds
        for array in added["arrays"]:
            before = array["before"]
            if before is not None:
                now = self.memory.view(array["start"], before.size)
                array["after"] = (
                    before if np.array_equal(now, before) else self._contents(array["start"], now.size)
                )

    def send(self, channel: socket.socket, found: Sequence[tuple[str, str]]) -> None:
        """Try the launches, and hand out the record."""
        for number, (kept, added) in enumerate(
            zip(self._launches, self.notes.get("launches", ()), strict=False)
        ):
            if number < MOST_TRIED and not added["code"]:
                added["tried"] = self._tried(kept, number)
        told = {"ended": self.ended, "gpu": self.gpu, "found": [list(each) for each in found], **self.notes}
        told["is_whole"] = self._at <= MOST_NOTES and len(self._launches) < MOST_LAUNCHES
        channel.sendall(packed(told))
        channel.close()

    def _contents(self, start: int, size: int) -> np.ndarray | None:
        """Return a copy of bytes of the region; None where the record has no room, or they are not there."""
        try:
            here = self.memory.checked(start, size)
        except ValueError:
            return None
        self._bytes, self._arrays = self._bytes + size, self._arrays + 1
        has_room = self._bytes <= MOST_BYTES and self._arrays <= MOST_ARRAYS
        return here.copy() if has_room else None

    def _pointers(self, kernel: Kernel, launch: Launch) -> dict[int, tuple[Allocation, int]]:
        """Find the parameters that are addresses of arrays."""
        arrays = [each for each in self.memory.allocations() if each.kind not in (VARIABLE, CONSTANT)]
        return {
            place: (array, address - array.start)
            for place, address in arguments(kernel, launch)[1].items()
            for array in arrays
            if array.start <= address < array.start + array.bytes
        }

    def _tried(self, kept: _Kept, number: int) -> list[Plain] | str | None:
        """Run a launch on drawn numbers, in memory that the program does not have; return its arrays, a
        text where it fails, or None where it has too many or too large ones.
        """
        arrays = {array.start: array for array, _ in kept.pointers.values()}
        is_large = sum(array.bytes for array in arrays.values()) > MOST_TRIED_BYTES
        if is_large or len(kept.pointers) > MOST_POINTERS:
            return None
        rng = np.random.default_rng([self.seed, number])
        copies = {start: _drawn(rng, array.bytes) for start, array in arrays.items()}
        before = {start: copy.copy() for start, copy in copies.items()}
        params = bytearray(arguments(kept.kernel, kept.launch)[0])
        for place, (array, offset) in kept.pointers.items():
            address = copies[array.start].ctypes.data + offset
            params[place : place + POINTER_BYTES] = address.to_bytes(POINTER_BYTES, "little")
        ranges = [
            Range(copy.ctypes.data, copy.size + SLACK, 0, Named(str(arrays[start]), copy.size))
            for start, copy in copies.items()
        ]
        launch = kept.launch
        try:
            with redirect_stdout(io.StringIO()):
                kept.kernel(
                    launch.grid, launch.block, (Packed(bytes(params), ranges),), launch.shared_mem,
                    timeout=launch.timeout,
                )  # fmt: skip
        except SimtError as error:
            return str(error)[:1000]
        return [
            {"before": before[array.start][offset:], "after": copies[array.start][offset:]}
            for array, offset in kept.pointers.values()
        ]


def _drawn(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return `size` bytes that hold float32 numbers, aligned as device memory is."""
    room = np.zeros(size + ALIGNMENT + SLACK, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    memory = room[start : start + size]
    numbers = rng.integers(0, MOST_NUMBER, math.ceil(size / 4)).astype(np.float32)
    memory[:] = numbers.view(np.uint8)[:size]
    return memory


def packed(told: Plain) -> bytes:
    """Return a record as a file of NumPy's, with what is no array in it as JSON."""
    arrays: list[np.ndarray] = []

    def numbered(value: np.ndarray) -> Plain:
        arrays.append(value)
        return {"array": len(arrays) - 1}

    text = json.dumps(told, default=numbered)
    file = io.BytesIO()
    named: dict[str, Any] = {f"a{number}": array for number, array in enumerate(arrays)}
    np.savez(file, text=np.frombuffer(text.encode(), np.uint8), **named)
    return file.getvalue()


def unpacked(data: bytes) -> Plain:
    """Return the record of `packed`. Raises ValueError for other bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {int(name[1:]): file[name] for name in file.files if name != "text"}
        text = file["text"].tobytes().decode()

    def put(value: Plain) -> Any:
        return arrays[value["array"]] if value.keys() == {"array"} else value

    told = json.loads(text, object_hook=put)
    if not isinstance(told, dict):
        raise ValueError("a record is a dictionary")
    return told
