"""Arrays that count as never written, like memory from cudaMalloc."""

import weakref
from typing import Any

import numpy as np

from simt.common.bits import POISON

# The arrays from `empty`: each, its first address, and its end.
_empty: list[tuple[weakref.ref[np.ndarray], int, int]] = []


def empty(shape: Any, dtype: Any = np.float32) -> np.ndarray:
    """Return an array that `kernel.check` treats as never written, like memory from cudaMalloc.

    It holds NaNs (odd numbers for integers) until the host or a kernel writes to it.
    """
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    words = np.full(-(-size // 4), POISON, np.uint32)
    start = words.ctypes.data
    _empty[:] = [entry for entry in _empty if entry[0]() is not None]
    _empty.append((weakref.ref(words), start, start + words.nbytes))
    return words.view(np.uint8)[:size].view(dtype).reshape(shape)


def is_empty(array: np.ndarray) -> bool:
    """Say whether the array comes from `empty` and nothing has been written to it."""
    start = array.ctypes.data
    known = any(owner() is not None and begin <= start < end for owner, begin, end in _empty)
    return known and array.tobytes() == empty(array.shape, array.dtype).tobytes()


def may_be_unwritten(first: int, end: int) -> bool:
    """Say whether memory from `first` to `end` overlaps an array from `empty`."""
    return any(first < stop and start < end for _, start, stop in _empty)
