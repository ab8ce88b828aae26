"""Twins of a launch's arrays: host memory that stands in for them, laid out in the same way.

The simulator takes NumPy arrays. A twin stands in for an array on a GPU, or for one of the host that must not
change. Arrays that share memory have twins that share memory, and a twin lies as far past a boundary of 256
bytes as its array does on a GPU, so that the same sectors and the same alignment are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from mmap import mmap
from typing import Any

import numpy as np

from simt.common.tensor_map import TensorMap, in_simulator, root
from simt.launch.arguments import GPU_ALIGNMENT
from simt.launch.unwritten import empty, may_be_unwritten

APART = 1 << 20  # bytes between twins, so that an access past the end of one does not reach another


@dataclass(frozen=True)
class Placed:
    """Where an array lies and how it is laid out, without its contents; `strides` are in bytes.

    `address` is that of its first element. `origin` is an address before it that is a multiple of 256 on a
    GPU: for an array of the host, where the memory begins that it is a view of.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    address: int
    origin: int

    @property
    def shift(self) -> int:
        """Return how many bytes past a multiple of 256 the first element lies on a GPU."""
        return (self.address - self.origin) % GPU_ALIGNMENT

    @property
    def span(self) -> tuple[int, int]:
        """Return the addresses of the array's lowest byte, and of the byte behind its highest."""
        if 0 in self.shape:
            return self.address, self.address
        ways = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        low, high = (sum(way for way in ways if (way > 0) == up) for up in (False, True))
        return self.address + low, self.address + high + self.dtype.itemsize


def is_on_gpu(value: object) -> bool:
    """Say whether a value is an array on a GPU, such as CuPy's."""
    return hasattr(type(value), "__cuda_array_interface__")


def is_array(value: object) -> bool:
    """Say whether a value is an array, of NumPy or on a GPU."""
    return isinstance(value, np.ndarray) or is_on_gpu(value)


def arrays(args: Sequence[Any]) -> list[Any]:
    """Return the arrays of a launch, those of tensor maps included."""
    given = [arg.array if isinstance(arg, TensorMap) else arg for arg in args]
    return [array for array in given if is_array(array)]


def on_host(args: Sequence[Any]) -> Sequence[Any]:
    """Return a launch's arguments with twins of the arrays on a GPU; arrays of the host are passed on."""
    if not any(map(is_on_gpu, arrays(args))):
        return args
    return _with_twins(args, is_on_gpu, _contents)


def copies(args: Sequence[Any]) -> Sequence[Any]:
    """Return a launch's arguments with twins of all arrays, so that the launch changes none of the caller's.

    What counts as never written does so in the twin, too.
    """
    return _with_twins(args, is_array, _contents)


def zeros(args: Sequence[Any]) -> Sequence[Any]:
    """Return a launch's arguments with twins that hold zeros, which take no memory until they are touched.

    What `described` returns has twins, too.
    """
    return _with_twins(args, lambda value: is_array(value) or isinstance(value, Placed), None)


def described(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return a launch's arguments with a `Placed` for each array, so that no array is kept alive."""
    return tuple(
        replace(arg, array=placed(arg.array))
        if isinstance(arg, TensorMap)
        else (placed(arg) if is_array(arg) else arg)
        for arg in args
    )


def placed(array: Any) -> Placed:
    """Return where an array of NumPy or of a GPU lies."""
    if isinstance(array, Placed):
        return array
    if isinstance(array, np.ndarray):
        address, origin = array.ctypes.data, root(array).ctypes.data
    else:
        address, origin = array.data.ptr, 0
    return Placed(array.shape, array.strides, array.dtype, address, origin)


def _contents(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def _with_twins(
    args: Sequence[Any], is_wanted: Callable[[Any], bool], contents: Callable[[Any], np.ndarray] | None
) -> list[Any]:
    """Return the arguments with twins of the arrays that are wanted; `contents` returns what one holds."""
    wanted = [arg.array if isinstance(arg, TensorMap) else arg for arg in args]
    spans = _joined(placed(value) for value in wanted if is_wanted(value))
    buffers = [(span, _buffer(span, contents is not None)) for span in spans]

    def twin(array: Any) -> np.ndarray:
        place = placed(array)
        span, buffer = next((span, buffer) for span, buffer in buffers if span.holds(place))
        made = np.ndarray(place.shape, place.dtype, buffer, place.address - span.first, place.strides)
        if contents is not None:
            made[...] = contents(array)
        return made

    def replaced(arg: Any) -> Any:
        if isinstance(arg, TensorMap) and is_wanted(arg.array):
            return in_simulator(arg.geometry, twin(arg.array))
        return twin(arg) if is_wanted(arg) else arg

    return [replaced(arg) for arg in args]


@dataclass(frozen=True)
class _Span:
    """Bytes from `first` to `end` in the memory that begins at `origin`."""

    origin: int
    first: int
    end: int

    def holds(self, place: Placed) -> bool:
        """Say whether an array lies in these bytes."""
        first, end = place.span
        return place.origin == self.origin and self.first <= first and end <= self.end


def _joined(places: Iterable[Placed]) -> list[_Span]:
    """Return the spans of memory that arrays take; those of one memory that are close together are one.

    Arrays less than 256 bytes apart may share a sector or a line of a cache.
    """
    spans: list[_Span] = []
    for origin, (first, end) in sorted((place.origin, place.span) for place in places):
        last = spans[-1] if spans else None
        if last and last.origin == origin and first < last.end + GPU_ALIGNMENT:
            spans[-1] = replace(last, end=max(last.end, end))
        else:
            spans.append(_Span(origin, first, end))
    return spans


def _buffer(span: _Span, keeps_unwritten: bool) -> np.ndarray:
    """Return bytes for a span, which lie as far past a multiple of 256 as the span does.

    They are zeros; where the span is the host's and may count as never written, they count so, too.
    """
    shift = (span.first - span.origin) % GPU_ALIGNMENT
    size = span.end - span.first + shift
    if keeps_unwritten and may_be_unwritten(span.first, span.end):
        return empty((size,), np.uint8)[shift:]
    return np.frombuffer(mmap(-1, size + APART), np.uint8)[shift:size]
