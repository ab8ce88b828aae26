"""Missing waits: two streams, or a stream and the host, that use the same memory with nothing ordering them.

The program's library reports work as it is enqueued, events, and what the host waits for. Each stream, each
event and the host has a vector clock: by stream, how many of its operations have ended before. An operation
is pending until the host's clock has it. A new one conflicts with a pending one that its own clock does not
have, where both use the same bytes, and not only to read or only atomically.

What the host itself reads and writes, the library sees by page faults: it guards the pages that `guards`
names. A page is guarded where pending work uses all bytes that an array has in it, so every fault is a
conflict. Where the rules of CUDA leave open whether a call waits, it counts as one that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from simt.programs.server.device_code import Sources
from simt.programs.server.memory import BYTES, HOST_START, MANAGED, PINNED, START, VARIABLE, Memory
from simt.programs.server.reporting import Mistakes
from simt.ptx import Kernel
from simt.sanitizer.shadow import STRONG
from simt.sanitizer.strength import strengths
from simt.sanitizer.touched import Spans

PAGE = 4096
MOST_PENDING = 2000  # operations; older ones are forgotten
ALIKE = 32  # pending operations back to which a new one may take the place of an equal one
NO_ACCESS, READ_ONLY = 0, 1  # mmap's protections
Clock = dict[int, int]
Guard = tuple[int, int, int]  # start, end, protection


class Order(IntEnum):
    """What the library reports, as runtime/runtime.h has it."""

    STREAM_MADE = 1
    STREAM_GONE = 2
    RAN = 3
    MOVED = 4
    EVENT_RECORDED = 5
    STREAM_WAITS = 6
    HOST_WAITS_FOR_STREAM = 7
    HOST_WAITS_FOR_EVENT = 8
    HOST_WAITS_FOR_ALL = 9
    HOST_TOUCHED = 10


@dataclass(frozen=True)
class Part:
    """Bytes that an operation uses in one way."""

    spans: Spans
    is_write: bool
    is_atomic: bool = False

    def meets(self, other: Part) -> tuple[int, int] | None:
        """Return the first spans that overlap, if the two ways conflict: one of each part."""
        if not (self.is_write or other.is_write) or (self.is_atomic and other.is_atomic):
            return None
        if not self.spans.starts.size or not other.spans.starts.size:
            return None
        theirs = np.searchsorted(other.spans.ends, self.spans.starts, side="right")
        inside = np.minimum(theirs, other.spans.ends.size - 1)
        hits = (theirs < other.spans.ends.size) & (other.spans.starts[inside] < self.spans.ends)
        mine = np.flatnonzero(hits)
        return (int(mine[0]), int(inside[mine[0]])) if mine.size else None


def rows_of(start: int, pitch: int, width: int, rows: int) -> Spans:
    """Return the bytes of the rows of a copy."""
    if rows == 1 or width >= pitch:
        rows, width = 1, (rows - 1) * pitch + width
    starts = start + pitch * np.arange(rows)
    return Spans(starts, starts + width, np.zeros(rows, np.int64))


@dataclass
class Operation:
    """A kernel, a copy or a memset in a stream."""

    what: str  # "kernel `f`"
    line: str  # that has enqueued it; "" where it is not known
    parts: Sequence[Part]
    place: Callable[[int], str] = lambda site: ""  # a kernel's line, by an instruction's number
    is_signalling: bool = False  # the host may wait for what it writes, without any call
    stream: int = 0
    number: int = 0  # in its stream
    guards: list[Guard] = field(default_factory=list)

    def at(self, part: Part, span: int) -> str:
        """Return the line of an access, or of the call."""
        return self.place(int(part.spans.sites[span])) or self.line

    def is_like(self, other: Operation) -> bool:
        """Say whether another operation of the same line uses the same bytes in the same way."""
        mine, others = (self.what, self.line, self.stream), (other.what, other.line, other.stream)
        return (
            mine == others
            and len(self.parts) == len(other.parts)
            and all(
                (a.is_write, a.is_atomic) == (b.is_write, b.is_atomic)
                and np.array_equal(a.spans.starts, b.spans.starts)
                and np.array_equal(a.spans.ends, b.spans.ends)
                for a, b in zip(self.parts, other.parts, strict=True)
            )
        )


def moved(
    line: str, to: int, to_pitch: int, source: int, from_pitch: int, width: int, rows: int
) -> Operation:
    """Return a copy, or a memset, which has no source."""
    places = [(to, to_pitch, True), (source, from_pitch, False)]
    parts = [
        Part(rows_of(start, pitch, width, rows), is_write)
        for start, pitch, is_write in places
        if START <= start < START + BYTES
    ]
    return Operation("a copy" if source else "a memset", line, parts)


def launched(
    name: str, line: str, sources: Sources, kernel: Kernel, arrays: Iterable[tuple[Spans, Spans]]
) -> Operation:
    """Return a launch, with the bytes that it has read and written of each array."""
    kinds = np.array(strengths(kernel))
    parts, is_signalling = [], False
    for spans, is_write in ((spans, is_write) for both in arrays for is_write, spans in enumerate(both)):
        strong = kinds[spans.sites]
        is_signalling |= bool(is_write and np.any(strong & STRONG))
        for chosen, is_atomic in ((strong == 0, False), (strong != 0, True)):
            if np.any(chosen):
                few = Spans(spans.starts[chosen], spans.ends[chosen], spans.sites[chosen])
                parts.append(Part(few, bool(is_write), is_atomic))
    what = f"kernel `{name}`"
    return Operation(what, line, parts, lambda site: sources.place(kernel.code[site].line), is_signalling)


class Waits:
    """Follows who has waited for whom. Streams have numbers; 0 is the legacy default stream."""

    def __init__(self, memory: Memory, mistakes: Mistakes) -> None:
        self._memory, self._mistakes = memory, mistakes
        self._host: Clock = {}
        self._clocks: dict[int, Clock] = {0: {}}
        self._is_free: dict[int, bool] = {0: False}  # of the streams that are there
        self._numbers = {0: 0}  # by the program's handle
        self._events: dict[int, Clock] = {}
        self._pending: list[Operation] = []
        self._count = 0  # of streams

    def follow(self, kind: Order, numbers: Sequence[int]) -> None:
        """Follow one report that is neither work nor the host's use of memory."""
        if kind == Order.STREAM_MADE:
            self.stream_made(numbers[0], bool(numbers[1]))
        elif kind == Order.STREAM_GONE:
            self.stream_gone(numbers[0])
        elif kind == Order.EVENT_RECORDED:
            self._events[numbers[0]] = dict(self._begin(numbers[1]))
        elif kind == Order.STREAM_WAITS:
            _join(self._begin(numbers[0]), self._events.get(numbers[1], {}))
        elif kind == Order.HOST_WAITS_FOR_STREAM:
            self._wait(self._begin(numbers[0]))
        elif kind == Order.HOST_WAITS_FOR_EVENT:
            self._wait(self._events.get(numbers[0], {}))
        elif kind == Order.HOST_WAITS_FOR_ALL:
            self._wait_for_all()

    def stream_made(self, handle: int, is_free: bool) -> None:
        """Note a new stream; `is_free`: from the default stream."""
        self._count += 1
        self._numbers[handle] = self._count
        self._clocks[self._count], self._is_free[self._count] = dict(self._host), is_free

    def stream_gone(self, handle: int) -> None:
        """Note a stream that is destroyed; its work goes on."""
        number = self._numbers.pop(handle, 0)
        if number and not self._is_free.pop(number, True):
            _join(self._clocks[0], self._clocks[number])

    def enqueue(self, handle: int, operation: Operation) -> None:
        """Note work that is given to a stream; tell what it conflicts with."""
        clock = self._begin(handle)
        told = set()  # one missing wait for each stream
        for other in reversed(self._pending):
            is_ordered = other.number <= clock.get(other.stream, 0)
            if not is_ordered and other.stream not in told and self._compare(operation, other):
                told.add(other.stream)
        number = self._numbers.get(handle, 0)
        operation.stream, operation.number = number, clock.get(number, 0) + 1
        clock[number] = operation.number
        if not operation.is_signalling:
            operation.guards = list(self._guards_of(operation))
        for i in range(len(self._pending) - 1, max(-1, len(self._pending) - 1 - ALIKE), -1):
            if self._pending[i].is_like(operation):
                del self._pending[i]
                break
        self._pending.append(operation)
        del self._pending[:-MOST_PENDING]

    def _wait_for_all(self) -> None:
        for clock in self._clocks.values():
            _join(self._host, clock)
        self._pending.clear()
        self._clocks = {number: self._clocks[number] for number in self._is_free}

    def host_touched(self, address: int, is_write: bool, line: str) -> None:
        """Tell that the host has used guarded memory. The operation guards nothing any more."""
        for each in reversed(self._pending):
            if any(start <= address < end for start, end, _ in each.guards):
                each.guards.clear()
                self._tell_host(each, address, is_write, line)

    @property
    def guards(self) -> list[Guard]:
        """Return the pages that the host must not use now; a later one goes over an earlier."""
        found = {guard for each in self._pending for guard in each.guards}
        return sorted(found, key=lambda guard: (-guard[2], guard))

    def _begin(self, handle: int) -> Clock:
        """Return a stream's clock with all that its next operation waits for."""
        number = self._numbers.get(handle, 0)
        clock = self._clocks[number]
        _join(clock, self._host)
        if not number:
            for other, is_free in self._is_free.items():
                if not is_free:
                    _join(clock, self._clocks[other])
        elif not self._is_free[number]:
            _join(clock, self._clocks[0])
        return clock

    def _wait(self, clock: Clock) -> None:
        _join(self._host, clock)
        self._pending = [each for each in self._pending if each.number > self._host.get(each.stream, 0)]

    def _compare(self, new: Operation, old: Operation) -> bool:
        """Tell it if two operations conflict; return whether they do."""
        for mine in new.parts:
            for other in old.parts:
                if spans := mine.meets(other):
                    self._tell_streams((new, mine, spans[0]), (old, other, spans[1]))
                    return True
        return False

    def _tell_streams(self, new: tuple[Operation, Part, int], old: tuple[Operation, Part, int]) -> None:
        (now, mine, span), (before, other, others_span) = new, old
        line, others_line = now.at(mine, span), before.at(other, others_span)
        address = max(int(mine.spans.starts[span]), int(other.spans.starts[others_span]))
        who, whom = f"{now.what}{_enqueued(now, line)}", f"{before.what}{_enqueued(before, others_line)}"
        text = (
            f"{_head(line)}{who} {_verb(mine)} {self._named(address)}, which {whom} {_verb(other)}"
            f"{_at(others_line)} in another stream, and nothing orders the two. Record an event after the "
            "first (cudaEventRecord), and let the second's stream wait for it (cudaStreamWaitEvent)"
        )
        self._mistakes.add("missing wait", text, f"{line} {others_line}")

    def _tell_host(self, operation: Operation, address: int, is_write: bool, line: str) -> None:
        parts = sorted(operation.parts, key=lambda part: not part.is_write)
        hits = ((part, _span_at(part.spans, address)) for part in parts)
        part, span = next(((p, s) for p, s in hits if s is not None), (parts[0], 0))
        others_line = operation.at(part, span)
        who = f"{operation.what}{_enqueued(operation, others_line)}"
        text = (
            f"{_head(line)}the host {'writes' if is_write else 'reads'} {self._named(address)}, which {who} "
            f"may still {_verb(part)[:-1]}{_at(others_line)}: nothing has waited for it. "
            "Call cudaDeviceSynchronize or cudaStreamSynchronize first"
        )
        self._mistakes.add("missing wait", text, f"{line} {others_line}")

    def _named(self, address: int) -> str:
        for each in self._memory.allocations():
            if each.start <= address < each.start + each.bytes:
                return "a `__device__` variable" if each.kind == VARIABLE else str(each)
        return "memory"

    def _guards_of(self, operation: Operation) -> Iterator[Guard]:
        """Yield the pages of the host's memory that an operation uses as a whole."""
        written = _merged([part.spans for part in operation.parts if part.is_write])
        used = _merged([part.spans for part in operation.parts])
        if not used.size or used[-1, 1] <= HOST_START:
            return
        for each in self._memory.allocations():
            if each.kind in (PINNED, MANAGED):
                yield from _pages(used, each.start, each.start + each.bytes, READ_ONLY)
                yield from _pages(written, each.start, each.start + each.bytes, NO_ACCESS)


def _join(clock: Clock, other: Clock) -> None:
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number


def _span_at(spans: Spans, address: int) -> int | None:
    number = int(np.searchsorted(spans.ends, address, side="right"))
    return number if number < spans.ends.size and spans.starts[number] <= address else None


def _merged(all_spans: Sequence[Spans]) -> np.ndarray:
    """Return rows (start, end) of bytes without a gap."""
    starts = np.concatenate([each.starts for each in all_spans] or [np.empty(0, np.int64)])
    ends = np.concatenate([each.ends for each in all_spans] or [np.empty(0, np.int64)])
    if not starts.size:
        return np.empty((0, 2), np.int64)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.r_[True, starts[1:] > ends[:-1]]
    return np.stack([starts[first], ends[np.r_[first[1:], True]]], axis=1)


def _pages(rows: np.ndarray, start: int, end: int, protection: int) -> Iterator[Guard]:
    """Yield the pages of an array of which all bytes lie in `rows`. No two arrays share a page in a check."""
    for first, last in rows[(rows[:, 1] > start) & (rows[:, 0] < end)].tolist():
        begin = start // PAGE * PAGE if first <= start else -(-first // PAGE) * PAGE
        beyond = -(-end // PAGE) * PAGE if last >= end else last // PAGE * PAGE
        if begin < beyond:
            yield begin, beyond, protection


def _head(line: str) -> str:
    return f"{line}: " if line else ""


def _at(line: str) -> str:
    return f" at {line}" if line else ""


def _verb(part: Part) -> str:
    return "writes" if part.is_write else "reads"


def _enqueued(operation: Operation, line: str) -> str:
    """Say where an operation was enqueued, unless that is the line which stands beside it."""
    return f" (enqueued at {operation.line})" if operation.line and operation.line != line else ""
