"""The memory that the program and the simulator share, and what is allocated in it. See runtime/memory.c."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simt.common.buffer_names import Freed, Named
from simt.common.errors import SimtError
from simt.kernel import Launch
from simt.launch.arguments import Packed, Range
from simt.module import Kernel

START, BYTES = 0x300000000000, 1 << 40
TABLE_BYTES, VARIABLE_BYTES = 1 << 24, 1 << 32
DEVICE_START = START + TABLE_BYTES + VARIABLE_BYTES
HOST_START = DEVICE_START + (1 << 39)  # pinned and managed memory, as runtime/runtime.h has it
SEGMENT = 2 << 20  # a GPU maps its memory in pages of this size, and faults beyond them alone
ALIGNMENT = 256
MOST_FREED = 16  # arrays that are known after they have been freed
HEAD_BYTES, FLAGS_AT = 32, 16  # of the table: its version, its rows, flags
POINTER_BYTES = 8
SITES = 6  # return addresses that lead to a call
FREE, DEVICE, PINNED, MANAGED, VARIABLE, CONSTANT = range(6)
NAMES = {
    DEVICE: "array from cudaMalloc",
    PINNED: "pinned host array",
    MANAGED: "managed array",
}
_ROW = np.dtype([("start", "u8"), ("bytes", "u8"), ("kind", "u4"), ("number", "u4"), ("sites", "u8", SITES)])
# Linux's numbers for mmap, which Python's module does not have all of.
_READ_AND_WRITE, _SHARED, _NORESERVE, _FIXED_NOREPLACE = 3, 1, 0x4000, 0x100000


@dataclass(frozen=True)
class Allocation:
    """What one call has allocated: address, bytes, kind, number, and the addresses that lead to the call."""

    start: int
    bytes: int
    kind: int
    number: int
    sites: tuple[int, ...]

    def __str__(self) -> str:
        return f"{NAMES.get(self.kind, 'memory')} number {self.number} ({self.bytes} bytes)"


class Memory:
    """The region that the program has made, mapped at the same addresses as there."""

    def __init__(self, file: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        how = _SHARED | _NORESERVE | _FIXED_NOREPLACE
        place = libc.mmap(START, BYTES, _READ_AND_WRITE, how, file, 0)
        if place != START:
            raise SimtError(f"the simulator cannot map memory at {START:#x}: error {ctypes.get_errno()}")
        self._head = self.view(START, 16).view(np.uint64)
        self._next_variable = START + TABLE_BYTES
        self._version, self._exact = -1, False
        self._ranges: list[Range] = []
        self._freed: deque[Range] = deque(maxlen=MOST_FREED)

    def view(self, start: int, size: int) -> np.ndarray:
        """Return bytes of the region as an array."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))

    def checked(self, start: int, size: int) -> np.ndarray:
        """Return bytes that lie in allocated memory. Raises ValueError for others."""
        ranges = self.ranges(exact=False)
        if not any(each.start <= start and start + size <= each.start + each.size for each in ranges):
            raise ValueError(f"{size} bytes at {start:#x} are not in device memory")
        return self.view(start, size)

    def allocations(self) -> list[Allocation]:
        """Return what is allocated now, in the order of addresses."""
        count = int(self._head[1])
        rows = self.view(START + HEAD_BYTES, count * _ROW.itemsize).view(_ROW)
        return [Allocation(*row[:4], tuple(row[4])) for row in rows.tolist()]  # type: ignore[call-arg]

    def place_variable(self, value: np.ndarray, start: int | None = None) -> np.ndarray:
        """Return memory in the region for a module's variable, with its first value; at `start`, if given."""
        if start is not None:
            placed = self.view(start, value.size)
            placed[:] = value
            return placed
        start = self._next_variable
        self._next_variable = -(-(start + value.size) // ALIGNMENT) * ALIGNMENT
        if self._next_variable > START + TABLE_BYTES + VARIABLE_BYTES:
            raise SimtError("the program's __device__ variables take more than 4 GiB")
        placed = self.view(start, value.size)
        placed[:] = value
        return placed

    def ranges(self, exact: bool) -> Sequence[Range]:
        """Return the memory that a kernel may use: each array, or with `exact` false, as much as on a GPU.

        There, arrays share pages of 2 MiB, and an access beyond an array's end goes on in its page.
        """
        version = int(self._head[0])
        if (version, exact) != (self._version, self._exact):
            self._version, self._exact = version, exact
            kept = [each for each in self.allocations() if each.kind not in (VARIABLE, CONSTANT)]
            arrays = [self._range(each) for each in kept]
            self._ranges = [*arrays, *self._freed] if exact else _pages(arrays)
        return self._ranges

    def note_freed(self, each: Allocation, where: Callable[[], str]) -> None:
        """Keep memory that is about to be freed; `where` finds the line of the call."""
        self._freed.append(Range(each.start, 0, 0, Freed(str(each), each.bytes, where=where)))

    def _range(self, each: Allocation) -> Range:
        return Range(each.start, each.bytes, 0, Named(str(each), each.bytes))


def arguments(kernel: Kernel, launch: Launch) -> tuple[bytes, dict[int, int]]:
    """Return the parameters of a program's launch, and the addresses of the region among them by place."""
    (packed,) = launch.args
    assert isinstance(packed, Packed)
    places = (kernel.storage.params[each.name] for each in kernel.parsed.params if each.size == POINTER_BYTES)
    values = {at: int.from_bytes(packed.params[at : at + POINTER_BYTES], "little") for at in places}
    return packed.params, {at: value for at, value in values.items() if START <= value < START + BYTES}


def _pages(arrays: Sequence[Range]) -> list[Range]:
    """Merge the pages in which the arrays lie; the first page of device memory is the driver's own."""
    pages: list[tuple[int, int, list[Range]]] = [(DEVICE_START, DEVICE_START + SEGMENT, [])]
    for each in arrays:
        first = each.start // SEGMENT * SEGMENT
        end = -(-(each.start + each.size) // SEGMENT) * SEGMENT
        if first <= pages[-1][1]:
            start, before, inside = pages[-1]
            pages[-1] = start, max(end, before), [*inside, each]
        else:
            pages.append((first, end, [each]))
    return [Range(start, end - start, 0, arrays=inside) for start, end, inside in pages]
