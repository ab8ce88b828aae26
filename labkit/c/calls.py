"""Several calls of a C function as one file: their arrays, which calls.c maps into its memory.

Each array has pages of its own: in one call it ends where they end, in the next it begins where they begin.
An access beyond them ends the program, whatever the compiler has made of the function. The rest of the pages
is full of GUARD_BYTE, and must be so after the calls, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from mmap import PAGESIZE

import numpy as np

from labkit.c.arguments import Arguments
from labkit.c.process import MAX_PRINTED_BYTES, Ended
from labkit.c.report import Memory, from_assert, from_exit, from_guards, near
from simt.common.errors import Crash, InvalidAccess, SimtError, Timeout

ALIGNMENT = 64  # bytes: each array begins at a cache line
GUARD, GUARD_BYTE = 2**20, 0xA5  # bytes of a guard of calls.c
HEAD, PLACE = 5, 3  # numbers in calls.c's struct head and struct place
CALL, FAULT = 3, 4  # of these in the head
WORD = 8  # bytes of each
IN_OPTIMISED = "in the optimised build"


@dataclass(frozen=True)
class Left:
    """How a program with these calls ended: the file as it was when it had made them, or when it ended."""

    ended: Ended
    data: np.ndarray  # bytes
    seconds: float  # of the processor, from when it could read the arrays; 0: it has not made all calls


class Calls:
    """Arguments of one call after the other, and the file with all of them."""

    def __init__(self, arguments: Sequence[Arguments]) -> None:
        self.arguments = tuple(arguments)
        self._starts, self._bytes, self._table = self._places()

    def file(self) -> np.ndarray:
        """Return the file's bytes."""
        data = np.full(self._bytes, GUARD_BYTE, np.uint8)
        data[: self._table.nbytes] = self._table.view(np.uint8)
        for call, starts in zip(self.arguments, self._starts, strict=True):
            for value, start in zip(call.values, starts, strict=True):
                if start:
                    data[start : start + value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
        return data

    def words(self, memory: int) -> tuple[str, ...]:
        """Return the program's command-line arguments; it gets so many bytes of memory beside the arrays."""
        guards = 2 * GUARD * sum(len(call.sizes) for call in self.arguments)
        return (str(memory + self._bytes + guards),)

    @property
    def nbytes(self) -> int:
        """Return the file's bytes."""
        return self._bytes

    @property
    def known(self) -> int:
        """Return how many bytes of the file say nothing of what is in the arrays."""
        return self._table.nbytes

    def update(self, left: Left, name: str, source: str, timeout: float) -> float:
        """Set the arrays to what the calls of function `name` have left; return their seconds.

        Raises what went wrong.
        """
        if not left.seconds or left.data.size != self._bytes:
            raise self._error(left, name, source, timeout)
        self._look_at_guards(left.data)
        for call, starts in zip(self.arguments, self._starts, strict=True):
            for value, start in zip(call.values, starts, strict=True):
                if start and value.ndim:
                    found = left.data[start : start + value.nbytes]
                    value[...] = found.view(value.dtype).reshape(value.shape)
        return left.seconds

    def _places(self) -> tuple[list[list[int]], int, np.ndarray]:
        """Return where the arguments begin (0: in the memory of another), the file's bytes, and its head."""
        count = len(self.arguments[0].sizes)
        all_values = sum(len(call.values) for call in self.arguments)
        head = WORD * (HEAD + PLACE * all_values)
        number = _up(head, ALIGNMENT)
        pages = _up(number + ALIGNMENT * all_values, PAGESIZE)
        begin = pages
        starts: list[list[int]] = []
        table: list[int] = []
        for call, at_end in zip(self.arguments, cycle((True, False)), strict=False):
            starts.append([])
            for value, size in zip(call.values, call.sizes, strict=True):
                start = 0
                if size >= 0 and not value.ndim:
                    start, number = number, number + ALIGNMENT
                elif size >= 0:
                    room = max(PAGESIZE, _up(size, PAGESIZE))
                    start = begin + (room - max(ALIGNMENT, _up(size, ALIGNMENT)) if at_end else 0)
                    begin += room
                starts[-1].append(start)
                table += [start, size, 0]
        return starts, begin, np.array([len(self.arguments), count, pages, 0, 0, *table], np.int64)

    def _look_at_guards(self, data: np.ndarray) -> None:
        """Raise InvalidAccess where bytes beside an array have changed."""
        for call, starts in zip(self.arguments, self._starts, strict=True):
            for k, (value, start) in enumerate(zip(call.values, starts, strict=True)):
                if not start or not value.ndim:
                    continue
                end = start + value.nbytes
                low, high = start // PAGESIZE * PAGESIZE, _up(max(end, start + 1), PAGESIZE)
                for first, beside in ((end, data[end:high]), (low, data[low:start])):
                    changed = np.flatnonzero(beside != GUARD_BYTE)
                    if changed.size:
                        place = changed[0 if first == end else -1]
                        raise from_guards(call.named(k), int(first + place - start))

    def _error(self, left: Left, name: str, source: str, timeout: float) -> SimtError:
        """Explain why the program has not made all calls."""
        ended = left.ended
        if ended.over == "printing":
            return Crash(f"{name} printed more than {MAX_PRINTED_BYTES:,} bytes and was stopped.")
        if ended.over == "time":
            return Timeout(
                f"{name} ran for more than {timeout:g} s {IN_OPTIMISED} and was stopped. Does each of its "
                "loops end?"
            )
        failed = from_assert(ended.printed, source.split("\n"))
        return failed or self._fault(left) or from_exit(ended.code, "", source.split("\n"))

    def _fault(self, left: Left) -> InvalidAccess | None:
        """Return the error of an access outside the arrays, if that has ended the program."""
        table = left.data[: self._table.nbytes].view(np.int64)
        if len(table) < len(self._table) or not table[FAULT]:
            return None
        call = int(table[CALL])
        if not 0 <= call < len(self.arguments):
            return None
        places = table[HEAD:].reshape(len(self.arguments), -1, PLACE)[call]
        arrays = [
            Memory(self.arguments[call].named(k), int(address))
            for k, (value, (_, _, address)) in enumerate(
                zip(self.arguments[call].values, places, strict=True)
            )
            if value.ndim
        ]
        where = near(int(table[FAULT]), 0, arrays)
        return InvalidAccess(f"invalid access {IN_OPTIMISED}: {where}")


def _up(size: int, step: int) -> int:
    """Round up to a multiple of `step`."""
    return -(-size // step) * step
