"""Tensor maps: what CUDA's `CUtensorMap` says of an array, so that one instruction copies a tile of it.

A tensor map describes an array in global memory and a box, the tile that the copy engine of a GPU (Tensor
Memory Accelerator, TMA; compute capability 9.0) moves to or from shared memory. On a GPU the driver writes
its 128 bytes, and only the GPU reads them. `encode` and `decode` are the simulator's own form of the same
content.

Reference: CUDA Driver API, "Tensor Map Object Management"; CUDA C++ Programming Guide, "Tensor Memory
Accelerator".
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from simt.common.errors import InvalidAccess

BYTES = 128
MAP_ALIGNMENT = 64  # bytes, of a tensor map in memory
UNIT = 16  # bytes: addresses, strides and rows of a box are multiples of it, and a swizzle moves such chunks
MOST_DIMENSIONS = 5
MOST_BOX, MOST_STEP = 256, 8
MOST_TILE_BYTES = 228 << 10  # of which CUDA's documentation says nothing; the driver of an H200 does
MOST_SIZE, MOST_STRIDE = 1 << 32, 1 << 40
SWIZZLES = (0, 32, 64, 128)  # bytes, in the order of CUDA's CUtensorMapSwizzle
L2_PROMOTIONS = (0, 64, 128, 256)  # bytes, in the order of CUDA's CUtensorMapL2promotion

# The element types in the order of CUDA's CUtensorMapDataType, with the bytes of each
ELEMENTS = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "int32": 4,
    "uint64": 8,
    "int64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "bfloat16": 2,
    "float32_ftz": 4,
    "tf32": 4,
    "tf32_ftz": 4,
}
FLOATS = frozenset(name for name in ELEMENTS if "int" not in name)
# A copy looks at no bits of these, so CUDA has no types of their own for them.
_AS_BITS = {"bool": "uint8", "int8": "uint8", "int16": "uint16"}

_RECORD = struct.Struct("<8sQ8B4Q5Q5H5B17x")
_NAME = b"labkit.t"  # what the simulator's own form starts with


class Array(Protocol):
    """What a tensor map asks of an array of NumPy or CuPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the size of each dimension."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the bytes from one element to the next of each dimension."""

    @property
    def dtype(self) -> np.dtype:
        """Return the type of an element."""


@dataclass(frozen=True)
class Geometry:
    """An array in global memory and a box in it. Dimensions are in NumPy's order, the innermost last.

    `sizes` and `box` count elements, `strides` bytes; `steps` says of each dimension that the copy takes one
    of so many elements. `swizzle` is 0, 32, 64 or 128 bytes. Elements outside the array read as 0, or as NaN.
    """

    address: int
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    fill: Literal["zero", "nan"] = "zero"
    l2_promotion: int = 0

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return ELEMENTS[self.element]

    @property
    def extent(self) -> int:
        """Return the bytes from the array's first element to the end of its last."""
        return extent(self.sizes, self.strides, self.itemsize)

    @property
    def tile(self) -> tuple[int, ...]:
        """Return how many elements of each dimension a copy moves."""
        return tuple(-(-side // step) for side, step in zip(self.box, self.steps, strict=True))

    def __str__(self) -> str:
        box = " x ".join(map(str, self.box))
        sizes = " x ".join(map(str, self.sizes))
        return f"tensor map of {sizes} elements ({self.element}), box {box}, swizzle {self.swizzle}"


def extent(sizes: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Return the bytes from the first element of an array to the end of its last; 0 without elements."""
    if 0 in sizes:
        return 0
    return sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + itemsize


def describe(
    array: Array,
    address: int,
    box: Sequence[int],
    swizzle: int,
    strides: Sequence[int] | None,
    element_strides: Sequence[int] | None,
    dtype: str | None,
    fill: Literal["zero", "nan"],
    l2_promotion: int,
) -> Geometry:
    """Return the geometry of a tensor map; `labkit.tensor_map` says what it takes. Raises ValueError."""
    dimensions = len(array.shape)
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ValueError(
            f"the array has {dimensions} dimensions; a tensor map has 1 to {MOST_DIMENSIONS}. Reshape it."
        )
    geometry = Geometry(
        address,
        _element(array.dtype, dtype),
        _numbers("shape", array.shape, dimensions),
        _numbers("strides", array.strides if strides is None else strides, dimensions),
        _numbers("box", box, dimensions),
        _numbers("element_strides", element_strides or (1,) * dimensions, dimensions),
        swizzle,
        fill,
        l2_promotion,
    )
    _check_array(geometry)
    _check_box(geometry)
    if strides is not None and geometry.extent > extent(array.shape, array.strides, array.dtype.itemsize):
        raise ValueError(
            f"strides={tuple(strides)} reach over {geometry.extent} bytes, and the array takes "
            f"{extent(array.shape, array.strides, array.dtype.itemsize)}. Choose smaller strides, or pass a "
            "larger array"
        )
    return geometry


def _element(dtype: np.dtype, named: str | None) -> str:
    """Return the element type: the array's, or the one of the same size that is named."""
    own = _AS_BITS.get(dtype.name, dtype.name)
    if own.startswith("float8"):
        own = "uint8"
    element = named or own
    if element not in ELEMENTS or not dtype.isnative:
        raise ValueError(
            f"a tensor map cannot have elements of type {named or dtype}. It has {', '.join(ELEMENTS)}"
        )
    if ELEMENTS[element] != dtype.itemsize:
        raise ValueError(
            f"dtype={named!r} has {ELEMENTS[element]} bytes per element, and the array's {dtype} has "
            f"{dtype.itemsize}. Choose a type of the same size, or pass a view of the array"
        )
    return element


def _numbers(name: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """Return one whole number per dimension."""
    given = tuple(values) if isinstance(values, Sequence) else (values,)
    if len(given) != count or not all(isinstance(value, int | np.integer) for value in given):
        raise ValueError(
            f"{name}={values!r} must have {count} whole numbers, one per dimension of the array, the "
            "innermost last"
        )
    return tuple(map(int, given))


def _check_array(geometry: Geometry) -> None:
    """Check what cuTensorMapEncodeTiled asks of the array. Raises ValueError."""
    if geometry.address % UNIT:
        raise ValueError(
            f"the array starts {geometry.address % UNIT} bytes past a multiple of {UNIT} bytes; a tensor map "
            "needs a multiple. Start the view at an element whose address is one, or pass a copy"
        )
    if not all(1 <= size <= MOST_SIZE for size in geometry.sizes):
        raise ValueError(f"shape {geometry.sizes}: a tensor map has 1 to 2^32 elements per dimension")
    if geometry.strides[-1] != geometry.itemsize:
        raise ValueError(
            f"elements of the innermost dimension are {geometry.strides[-1]} bytes apart; a tensor map needs "
            f"them side by side, {geometry.itemsize} bytes apart. Pass an array in C order"
        )
    for axis, stride in enumerate(geometry.strides[:-1]):
        if stride % UNIT or not 0 <= stride < MOST_STRIDE:
            raise ValueError(
                f"the stride of dimension {axis} is {stride} bytes; a tensor map needs a multiple of {UNIT} "
                f"from 0 to 2^40 - {UNIT}. Allocate rows of a multiple of {UNIT // geometry.itemsize} "
                "elements, and pass a view of the part that you need"
            )
    if geometry.fill not in ("zero", "nan") or (geometry.fill == "nan" and geometry.element not in FLOATS):
        raise ValueError(
            f"fill={geometry.fill!r}: elements outside the array read as 'zero', or as 'nan' where they are "
            f"floats; these are {geometry.element}"
        )
    if geometry.l2_promotion not in L2_PROMOTIONS:
        raise ValueError(f"l2_promotion={geometry.l2_promotion} bytes: choose 0, 64, 128 or 256")


def _check_box(geometry: Geometry) -> None:
    """Check what cuTensorMapEncodeTiled asks of the box. Raises ValueError."""
    if not all(1 <= side <= MOST_BOX for side in geometry.box):
        raise ValueError(f"box {geometry.box}: each side has 1 to {MOST_BOX} elements. Copy several boxes")
    if not all(1 <= step <= MOST_STEP for step in geometry.steps):
        raise ValueError(f"element_strides {geometry.steps}: each is 1 to {MOST_STEP}")
    if geometry.steps[-1] != 1:
        raise ValueError(
            f"element_strides {geometry.steps}: the copy engine takes every element of the innermost "
            "dimension, so its stride must be 1"
        )
    row = geometry.box[-1] * geometry.itemsize
    if row % UNIT:
        raise ValueError(
            f"a row of the box has {geometry.box[-1]} elements of {geometry.itemsize} bytes, {row} bytes; it "
            f"needs a multiple of {UNIT} bytes. Choose a multiple of {UNIT // geometry.itemsize} elements"
        )
    if (size := prod(geometry.tile) * geometry.itemsize) > MOST_TILE_BYTES:
        raise ValueError(
            f"a tile of {' x '.join(map(str, geometry.tile))} elements has {size} bytes; it has at most "
            f"{MOST_TILE_BYTES}, the shared memory of a multiprocessor. Choose a smaller box"
        )
    if geometry.swizzle not in SWIZZLES:
        raise ValueError(f"swizzle={geometry.swizzle} bytes: choose 0 (none), 32, 64 or 128")
    if geometry.swizzle and row > geometry.swizzle:
        raise ValueError(
            f"a row of the box has {row} bytes, more than the swizzle of {geometry.swizzle} bytes. Choose at "
            f"most {geometry.swizzle // geometry.itemsize} elements for the box's innermost side"
        )


def encode(geometry: Geometry) -> bytes:
    """Return a geometry as the simulator's 128 bytes of a tensor map, dimensions in CUDA's order."""
    dimensions = len(geometry.sizes)

    def five(values: Sequence[int]) -> list[int]:
        return [*reversed(values), *[0] * (MOST_DIMENSIONS - dimensions)]

    kinds = (
        dimensions,
        list(ELEMENTS).index(geometry.element),
        SWIZZLES.index(geometry.swizzle),
        L2_PROMOTIONS.index(geometry.l2_promotion),
        int(geometry.fill == "nan"),
        0,
        0,
        0,
    )
    sides = (*five(geometry.sizes), *five(geometry.box), *five(geometry.steps))
    return _RECORD.pack(_NAME, geometry.address, *kinds, *five(geometry.strides)[1:], *sides)


@lru_cache(maxsize=1024)
def decode(data: bytes) -> Geometry:
    """Return the geometry in the simulator's 128 bytes of a tensor map. Raises InvalidAccess for others."""
    if len(data) != BYTES or not data.startswith(_NAME):
        raise InvalidAccess(
            f"these {len(data)} bytes are no tensor map of the simulator. Pass what labkit.tensor_map(...) "
            "returns, as a `const __grid_constant__ CUtensorMap`, or copy np.asarray(...) of it to memory"
        )
    _, address, *numbers = _RECORD.unpack(data)
    (dimensions, element, swizzle, promotion, is_nan), strides = numbers[:5], numbers[8:12]
    sizes, box, steps = numbers[12:17], numbers[17:22], numbers[22:27]

    def own(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(reversed(values[:dimensions]))

    name, itemsize = list(ELEMENTS.items())[element]
    return Geometry(
        address,
        name,
        own(sizes),
        own([itemsize, *strides]),
        own(box),
        own(steps),
        SWIZZLES[swizzle],
        "nan" if is_nan else "zero",
        L2_PROMOTIONS[promotion],
    )


@dataclass(frozen=True, eq=False, repr=False)
class TensorMap:
    """A tensor map: its array, what it says of it, and its 128 bytes, in the driver's form on a GPU."""

    array: Array
    geometry: Geometry
    data: bytes

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the 128 bytes as uint8, so that a kernel can find them in memory."""
        return np.frombuffer(self.data, np.uint8).astype(dtype or np.uint8)

    def __repr__(self) -> str:
        return str(self.geometry)


def in_simulator(geometry: Geometry, array: np.ndarray) -> TensorMap:
    """Return the simulator's tensor map of an array in host memory, with the geometry but for its address."""
    keep_in_sight(array)
    here = replace(geometry, address=array.ctypes.data)
    return TensorMap(array, here, encode(here))


def root(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of a view; an array that is no view is its own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# The memory that copies by tensor maps may touch: start, end, and the array that owns it while that exists
_live: list[tuple[int, int, weakref.ref[np.ndarray]]] = []


def keep_in_sight(array: np.ndarray) -> None:
    """Let copies by tensor maps touch the memory of an array, or of what it is a view of, while it exists."""
    owner = root(array)
    start, end = byte_bounds(owner)
    _live[:] = [each for each in _live if each[2]() is not None]
    if all(each[:2] != (start, end) for each in _live):
        _live.append((start, end, weakref.ref(owner)))


def is_live(start: int, size: int) -> bool:
    """Say whether these bytes of host memory are part of an array in sight that still exists."""
    return any(first <= start and start + size <= end and owner() is not None for first, end, owner in _live)
