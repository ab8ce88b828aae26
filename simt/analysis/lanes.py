"""How a value differs between the 32 lanes of a warp.

A `Shape` says that lane i holds `base[i // group] + offsets[i]`, with offsets known when code is made.
Uniform values (loop counters, base pointers) have group 32 and no offsets: one scalar serves the warp.
`threadIdx.x` of a 16-wide block is one base with offsets 0..15, 0..15; `threadIdx.y * K` has two bases there,
one per half of the warp. Group 1 can hold any value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from simt.common.limits import WARP, Dim3

Offsets = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """Says that lane i holds base[i // group] + offsets[i]; `offsets` is None where all are zero."""

    group: int
    offsets: Offsets | None = None

    @property
    def bases(self) -> int:
        """Return the number of groups of lanes, each of which has its own base."""
        return WARP // self.group

    def lane_offsets(self) -> Offsets:
        """Return what each lane adds to the base of its group, in bytes."""
        return self.offsets or (0,) * WARP


UNIFORM = Shape(WARP)
VARYING = Shape(1)
LANE_INDEX = Shape(WARP, tuple(range(WARP)))


def with_offsets(group: int, offsets: Offsets) -> Shape:
    """Return the shape in its simplest form, without offsets that are all zero."""
    return Shape(group, offsets if any(offsets) else None)


@cache
def absorbed(shape: Shape) -> Shape:
    """Return the coarsest shape without offsets that can hold the same values."""
    if shape.offsets is None:
        return shape
    group = shape.group
    while group > 1 and not _constant_in_groups(shape.offsets, group):
        group //= 2
    return Shape(group)


def added(a: Shape, b: Shape, sign: int = 1) -> Shape:
    """Return the shape of a + sign·b."""
    offsets = tuple(x + sign * y for x, y in zip(a.lane_offsets(), b.lane_offsets(), strict=True))
    return with_offsets(min(a.group, b.group), offsets)


def scaled(shape: Shape, factor: int) -> Shape:
    """Return the shape of factor·value."""
    return with_offsets(shape.group, tuple(factor * offset for offset in shape.lane_offsets()))


def elementwise(*shapes: Shape) -> Shape:
    """Return the shape of any function of the values, which is computed once per group."""
    return Shape(min((absorbed(shape).group for shape in shapes), default=WARP))


def joined(a: Shape | None, b: Shape) -> Shape:
    """Return the shape of a register that holds either (None: not yet written)."""
    if a is None or a == b:
        return b
    if a.offsets == b.offsets:
        return Shape(min(a.group, b.group), a.offsets)
    return elementwise(a, b)


def thread_index(axis: str, block: Dim3) -> tuple[Shape, Callable[[int], int]]:
    """Return the shape of `threadIdx.x`, `.y` or `.z`, and each warp's base as a function of its number.

    The x index of threads varies fastest along the lanes (CUDA C++ Programming Guide, "Thread Hierarchy").
    Blocks whose rows do not line up with warps have no constant offsets: the shape is VARYING, and its base
    function is not used.
    """
    x, y, _ = block
    divisor, modulus = {"x": (1, x), "y": (x, y), "z": (x * y, 1 << 30)}[axis]

    def index(thread: int) -> int:
        return thread // divisor % modulus

    warps = range(max(1, -(-block[0] * block[1] * block[2] // WARP)))
    first = tuple(index(lane) - index(0) for lane in range(WARP))
    for warp in warps:
        if any(index(WARP * warp + lane) - index(WARP * warp) != first[lane] for lane in range(WARP)):
            return VARYING, index
    return with_offsets(WARP, first), lambda warp: index(WARP * warp)


def _constant_in_groups(offsets: Offsets, group: int) -> bool:
    return all(offsets[i] == offsets[i - i % group] for i in range(WARP))
