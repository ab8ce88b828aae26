"""The copies of the Tensor Memory Accelerator (TMA): tiles by a tensor map, and plain bytes.

`load`, `store` and `reduce` are `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor` of PTX, in the mode
`.tile`; `copy_bytes` and `reduce_bytes` are `cp.async.bulk` and `cp.reduce.async.bulk`. They move bytes at
once: when a kernel may see them is the caller's business, as are barriers and multicast.

A tile lies in shared memory with its innermost dimension side by side. A swizzle moves each chunk of 16 bytes
to another place in its 128 bytes, which its address alone decides: the number of the chunk (address bits 4 to
6) is XORed with that of the 128 bytes (bits 7 to 9), in whole or in part.

Reference: PTX ISA, "Data Movement and Conversion Instructions: Tensor copy"; CUDA C++ Programming Guide,
"Tensor Memory Accelerator".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from threading import Lock

import numpy as np

from simt.common.errors import InvalidAccess
from simt.common.tensor_map import ELEMENTS, UNIT, Geometry, decode, is_live

TILE_ALIGNMENT = 128  # bytes, of a tile in shared memory
_LINE = 128  # bytes that a swizzle shuffles among themselves
_CHUNK = np.dtype(np.complex128)  # NumPy copies its 16 bytes as they are
_one_at_a_time = Lock()  # blocks run on several threads, and no sum may get lost
_BITS: dict[int, np.dtype] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def load(data: bytes, coordinates: Sequence[int], shared: np.ndarray, address: int) -> int:
    """Copy a tile from global to shared memory and return its bytes, as the barrier counts them.

    `data` is the 128 bytes of the tensor map. `coordinates` are those of the tile's first element as PTX has
    them, the innermost dimension first. `shared` is the shared memory of the block that gets the tile, as
    uint8 from its address 0 on; the tile starts at `address`. Elements outside the array become 0 or NaN.
    Raises InvalidAccess.
    """
    tile = _tile(data, coordinates, address, shared.size)
    inside = tile.in_array()
    if tile.geometry.element in ("tf32", "tf32_ftz"):
        inside = _rounded_to_tf32(inside)
    if tile.is_whole:
        elements = inside
    else:
        elements = np.full(tile.shape, _fill(tile.geometry), inside.dtype)
        elements[tile.part] = inside
    tile.chunks(shared)[tile.places] = _as_chunks(elements)
    return elements.nbytes


def store(data: bytes, coordinates: Sequence[int], shared: np.ndarray, address: int) -> int:
    """Copy a tile from shared to global memory, and return its bytes; takes what `load` takes.

    Elements outside the array are not written, except that a row of the array ends at a multiple of 16 bytes:
    an H200 writes all 16. No coordinate may be negative.
    """
    tile = _tile(data, coordinates, address, shared.size, writes=True)
    tile.in_array()[...] = tile.in_shared(shared)
    return tile.nbytes


def reduce(op: str, data: bytes, coordinates: Sequence[int], shared: np.ndarray, address: int) -> int:
    """Combine a tile in shared memory with that in global memory, which gets the result; else like `store`.

    `op` is add, min, max, inc, dec, and, or, xor. Raises InvalidAccess also where elements of this type have
    no such operation.
    """
    tile = _tile(data, coordinates, address, shared.size, writes=True)
    inside, given = tile.in_array(), tile.in_shared(shared)
    with _one_at_a_time:
        inside[...] = _combined(op, tile.geometry.element, inside, given)
    return tile.nbytes


def copy_bytes(destination: np.ndarray, source: np.ndarray, *addresses: int) -> int:
    """Copy as many bytes as both have and return their number. `addresses` are those that the kernel gave.

    Raises InvalidAccess if an address or the number is no multiple of 16.
    """
    _check_bulk(destination.size, addresses)
    destination[...] = source
    return destination.size


def reduce_bytes(op: str, kind: str, destination: np.ndarray, source: np.ndarray, *addresses: int) -> int:
    """Combine bytes with those of the destination, which gets the result; else like `copy_bytes`.

    `kind` is PTX's type, such as u32 or bf16. Raises InvalidAccess also for a type without the operation.
    """
    _check_bulk(destination.size, addresses)
    bits = _BITS[ELEMENTS[_PTX_TYPES[kind]]]
    old, new = destination.view(bits), source.view(bits)
    with _one_at_a_time:
        old[...] = combined(op, kind, old, new)
    return destination.size


def combined(op: str, kind: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the results of an operation as bits, which `old` and `new` are too; `kind` is PTX's type."""
    return _combined(op, _PTX_TYPES[kind], old, new)


def shared_bytes(data: bytes, address: int) -> tuple[int, int]:
    """Return the first byte of shared memory that a copy of a tile touches, and the byte behind its last."""
    geometry = decode(bytes(data))
    return address, address + _layout(geometry).span


@dataclass(frozen=True)
class _Layout:
    """A tile in shared memory: rows of `row` bytes, one each `pitch` bytes, `span` bytes in all."""

    rows: int
    row: int
    pitch: int

    @property
    def span(self) -> int:
        return self.rows * self.pitch


@lru_cache(maxsize=1024)
def _layout(geometry: Geometry) -> _Layout:
    """Return where rows lie: shorter ones than the swizzle leave room for the rest of it."""
    row = geometry.tile[-1] * geometry.itemsize
    return _Layout(prod(geometry.tile[:-1]), row, max(row, geometry.swizzle))


@lru_cache(maxsize=1024)
def _places(layout: _Layout, swizzle: int, phase: int) -> np.ndarray | slice:
    """Return the places of a tile's chunks of 16 bytes, counted from the tile's start.

    `phase` is the tile's address, as far as the swizzle depends on it.
    """
    if not swizzle:
        return slice(None)
    row_starts = np.arange(layout.rows)[:, None] * layout.pitch
    address = phase + row_starts + np.arange(0, layout.row, UNIT)
    line = address // _LINE % (swizzle // UNIT)
    return ((address ^ line * UNIT) - phase).ravel() // UNIT


@dataclass(frozen=True)
class _Tile:
    """The tile of one copy. Of its `shape`, the slices `part` are in the array; dimensions as in NumPy."""

    geometry: Geometry
    address: int
    shape: tuple[int, ...]
    starts: tuple[int, ...]
    part: tuple[slice, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.geometry.itemsize

    @property
    def is_whole(self) -> bool:
        """Say whether all of it is in the array."""
        return all(part.stop - part.start == side for part, side in zip(self.part, self.shape, strict=True))

    @property
    def places(self) -> np.ndarray | slice:
        """Return the places of its chunks in shared memory."""
        swizzle = self.geometry.swizzle
        return _places(_layout(self.geometry), swizzle, self.address % (8 * _LINE))

    def in_array(self) -> np.ndarray:
        """Return its elements in the array, as bits."""
        geometry, counts, offset, strides = self.geometry, [], 0, []
        for part, start, step, stride in zip(
            self.part, self.starts, geometry.steps, geometry.strides, strict=True
        ):
            counts.append(part.stop - part.start)
            offset += (start + part.start * step) * stride
            strides.append(step * stride)
        bits = _BITS[geometry.itemsize]
        if 0 in counts:
            return np.empty(counts, bits)
        return np.ndarray(counts, bits, _memory(geometry.address, _padded(geometry.extent)), offset, strides)

    def chunks(self, shared: np.ndarray) -> np.ndarray:
        """Return the chunks of 16 bytes of shared memory that it occupies."""
        return np.ndarray((_layout(self.geometry).span // UNIT,), _CHUNK, shared, self.address)

    def in_shared(self, shared: np.ndarray) -> np.ndarray:
        """Return its elements in shared memory, as bits, as far as they have a place in the array."""
        elements = self.chunks(shared)[self.places].view(_BITS[self.geometry.itemsize])
        return elements.reshape(self.shape)[self.part]


def _as_chunks(elements: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(elements).reshape(-1).view(_CHUNK)


def _tile(
    data: bytes, coordinates: Sequence[int], address: int, shared_size: int, writes: bool = False
) -> _Tile:
    """Return the tile of a copy. Raises InvalidAccess for what a GPU's copy engine would refuse."""
    geometry = decode(bytes(data))
    _check_coordinates(geometry, coordinates, writes)
    if address % TILE_ALIGNMENT:
        raise InvalidAccess(
            f"a tile at address {address} of shared memory, which is {address % TILE_ALIGNMENT} bytes past a "
            f"multiple of {TILE_ALIGNMENT}. Declare the memory with alignas({TILE_ALIGNMENT})"
        )
    span = _layout(geometry).span
    if not 0 <= address <= shared_size - span:
        raise InvalidAccess(
            f"a tile of {span} bytes at address {address} of shared memory ends past the block's "
            f"{shared_size} bytes"
        )
    if not is_live(geometry.address, geometry.extent):
        raise InvalidAccess(f"the array of the {geometry} does not exist any more: keep a reference to it")
    starts, shape, sizes = tuple(reversed(coordinates)), geometry.tile, geometry.sizes
    if writes and is_live(geometry.address, _padded(geometry.extent)):
        sizes = *sizes[:-1], _padded(sizes[-1] * geometry.itemsize) // geometry.itemsize
    part = tuple(map(_inside, starts, shape, sizes, geometry.steps))
    return _Tile(geometry, address, shape, starts, part)


def _check_coordinates(geometry: Geometry, coordinates: Sequence[int], writes: bool) -> None:
    """Raise InvalidAccess where an H200 stops with cudaErrorIllegalInstruction."""
    if len(coordinates) != len(geometry.sizes):
        raise InvalidAccess(
            f"a copy with {len(coordinates)} coordinates, by a {geometry}: it takes {len(geometry.sizes)}"
        )
    if coordinates[0] * geometry.itemsize % UNIT:
        raise InvalidAccess(
            f"a tile from element {coordinates[0]} of the innermost dimension on ({geometry.element}): tiles "
            f"start at multiples of {UNIT} bytes there, {UNIT // geometry.itemsize} elements"
        )
    if writes and min(coordinates) < 0:
        raise InvalidAccess(
            f"a tile is written at the coordinates {tuple(coordinates)}: none may be negative. Tiles that "
            "are read may start before the array"
        )


def _inside(start: int, count: int, size: int, step: int) -> slice:
    """Return which of `count` elements, one each `step` from `start` on, lie in a dimension of `size`."""
    first = min(max(-(start // step), 0), count)
    last = min(max(-((start - size) // step), first), count)
    return slice(first, last)


@lru_cache(maxsize=1024)
def _memory(address: int, size: int) -> np.ndarray:
    """Return these bytes of the process's memory."""
    return np.asarray(_Interface(address, size))


class _Interface:
    """Memory at an address, in NumPy's own protocol."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


def _padded(size: int) -> int:
    """Return the next multiple of 16."""
    return -(-size // UNIT) * UNIT


def _fill(geometry: Geometry) -> int:
    """Return the bits of an element outside the array: 0, or the NaN that an H200 writes."""
    return int("7ff7" * (geometry.itemsize // 2), 16) if geometry.fill == "nan" else 0


def _rounded_to_tf32(bits: np.ndarray) -> np.ndarray:
    """Return float32 numbers, given as bits, with a mantissa of 10 bits, rounded to nearest even.

    So does an H200; with "float32_ftz" it leaves all bits as they are, subnormal numbers too.
    """
    rounded = bits + 0xFFF + (bits >> 13 & 1) & 0xFFFFE000
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, 0x7FFFE000, rounded).astype(np.uint32)


def _check_bulk(size: int, addresses: Sequence[int]) -> None:
    if size % UNIT:
        raise InvalidAccess(f"a bulk copy of {size} bytes: the number must be a multiple of {UNIT}")
    for address in addresses:
        if address % UNIT:
            raise InvalidAccess(
                f"a bulk copy at an address {address % UNIT} bytes past a multiple of {UNIT}; it needs a "
                f"multiple. Declare the memory with alignas({UNIT})"
            )


_PTX_TYPES = {
    "u32": "uint32",
    "s32": "int32",
    "b32": "uint32",
    "u64": "uint64",
    "s64": "int64",
    "b64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
_INTEGERS = ("uint32", "int32", "uint64")
_OPERATIONS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], tuple[str, ...]]] = {
    "add": (np.add, (*_INTEGERS, "float16", "bfloat16", "float32", "float64")),
    "min": (np.minimum, (*_INTEGERS, "int64", "float16", "bfloat16")),
    "max": (np.maximum, (*_INTEGERS, "int64", "float16", "bfloat16")),
    "inc": (lambda old, most: np.where(old >= most, 0, old + 1).astype(old.dtype), ("uint32",)),
    "dec": (lambda old, most: np.where((old == 0) | (old > most), most, old - 1), ("uint32",)),
    "and": (np.bitwise_and, _INTEGERS),
    "or": (np.bitwise_or, _INTEGERS),
    "xor": (np.bitwise_xor, _INTEGERS),
}


def _combined(op: str, element: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return an operation's results as bits. Sums of 16-bit floats are rounded once, to nearest even."""
    function, elements = _OPERATIONS[op]
    if element not in elements:
        raise InvalidAccess(f"a reduction by {op} of {element} elements: it takes {', '.join(elements)}")
    if element in _INFINITY and op != "add":
        return _extreme(function, _INFINITY[element], old, new)
    with np.errstate(all="ignore"):
        if element == "bfloat16":
            return _rounded_to_bfloat16(function(_widened(old), _widened(new)))
        return function(old.view(element), new.view(element)).view(old.dtype)


_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}


def _extreme(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], infinity: int, old: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Return the smaller or larger of 16-bit floats, given as bits: -0 is less than 0, a NaN gives way."""

    def ordered(bits: np.ndarray) -> np.ndarray:
        return np.where(bits & 0x8000, ~bits, bits | 0x8000)

    def is_nan(bits: np.ndarray) -> np.ndarray:
        return bits & 0x7FFF > infinity

    chosen = np.where(function(ordered(old), ordered(new)) == ordered(old), old, new)
    numbers = np.where(is_nan(old), new, np.where(is_nan(new), old, chosen))
    return np.where(is_nan(numbers), 0x7FFF, numbers).astype(np.uint16)


def _widened(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given as bits, as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _rounded_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Return float32 numbers as the bits of bfloat16, rounded to nearest even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)
