"""Emit code that moves values between shapes: a scalar, one value per group of lanes, one per lane."""

from collections.abc import Sequence
from functools import lru_cache

from llvmlite import ir

from simt.analysis.lanes import Shape, absorbed
from simt.code.abi import I1, I32, Value
from simt.code.instructions import constant, intrinsic
from simt.common.limits import WARP


def vector_type(element: ir.Type, count: int) -> ir.Type:
    """Return the type of `count` elements: a scalar for one, which is how uniform values are held."""
    return element if count == 1 else ir.VectorType(element, count)


def count_of(value: Value) -> int:
    """Count the elements of a vector; a scalar has 1."""
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def element_type(value: Value) -> ir.Type:
    """Return the type of a scalar, or of a vector's elements."""
    return value.type.element if isinstance(value.type, ir.VectorType) else value.type


def shuffled(b: ir.IRBuilder, x: Value, y: Value | None, indices: Sequence[int]) -> Value:
    """Pick elements of x, followed by those of y, by position."""
    second = ir.Constant(x.type, ir.Undefined) if y is None else y
    return b.shuffle_vector(x, second, numbers(tuple(indices)))


@lru_cache(maxsize=4096)
def numbers(values: tuple[int, ...]) -> ir.Constant:
    """Return a vector of 32-bit numbers. It is cached with its text, which takes long to write."""
    return ir.Constant(ir.VectorType(I32, len(values)), [ir.Constant(I32, value) for value in values])


def broadcast(b: ir.IRBuilder, scalar: Value, count: int) -> Value:
    """Return a vector of `count` copies of the scalar."""
    if count == 1:
        return scalar
    vector = ir.Constant(ir.VectorType(scalar.type, 1), ir.Undefined)
    return shuffled(b, b.insert_element(vector, scalar, ir.Constant(I32, 0)), None, [0] * count)


def expanded(b: ir.IRBuilder, value: Value, count: int) -> Value:
    """Repeat each element so that there are `count`: one value per smaller group."""
    have = count_of(value)
    if have == count:
        return value
    if have == 1:
        return broadcast(b, value, count)
    return shuffled(b, value, None, [i * have // count for i in range(count)])


def element(b: ir.IRBuilder, value: Value, index: int) -> Value:
    """Return an element of a vector; a scalar is its only element."""
    is_vector = isinstance(value.type, ir.VectorType)
    return b.extract_element(value, ir.Constant(I32, index)) if is_vector else value


def assembled(b: ir.IRBuilder, scalars: Sequence[Value]) -> Value:
    """Make a vector of the scalars; a single scalar stays a scalar."""
    if len(scalars) == 1:
        return scalars[0]
    vector = ir.Constant(ir.VectorType(scalars[0].type, len(scalars)), ir.Undefined)
    for i, scalar in enumerate(scalars):
        vector = b.insert_element(vector, scalar, ir.Constant(I32, i))
    return vector


def reshaped(b: ir.IRBuilder, value: Value, have: Shape, want: Shape) -> Value:
    """Convert a value held in shape `have` to the finer shape `want`."""
    value = expanded(b, value, max(want.bases, have.bases))
    if have.offsets == want.offsets:
        return value
    assert want.offsets is None, "only a shape without offsets can hold them all"
    value = expanded(b, value, max(want.bases, absorbed(have).bases))
    group = WARP // count_of(value)
    offsets = [have.lane_offsets()[i * group] for i in range(count_of(value))]
    kind = element_type(value)
    constants = [ir.Constant(kind, offset & ((1 << kind.width) - 1)) for offset in offsets]
    return b.add(value, constants[0] if len(constants) == 1 else ir.Constant(value.type, constants))


def lanes_of(b: ir.IRBuilder, mask: Value) -> Value:
    """Convert a bit mask to a predicate for each lane."""
    return b.bitcast(mask, ir.VectorType(I1, WARP))


def mask_of(b: ir.IRBuilder, predicate: Value) -> Value:
    """Convert a predicate (for the warp, its groups or its lanes) to a bit mask."""
    if count_of(predicate) == 1:
        return b.sext(predicate, I32)
    return b.bitcast(expanded(b, predicate, WARP), I32)


def all_true(b: ir.IRBuilder, predicate: Value) -> Value:
    """Emit a test whether all elements hold."""
    count = count_of(predicate)
    if count == 1:
        return predicate
    bits = b.bitcast(predicate, ir.IntType(count))
    return b.icmp_unsigned("==", bits, constant(bits, -1))


def group_value(b: ir.IRBuilder, values: Value, group: int) -> Value:
    """Make one value per group from one per lane; idle lanes hold zero, and a group's others agree."""
    if group == 1:
        return values
    kind = element_type(values)
    bits = ir.IntType({ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or kind.width)
    values = b.bitcast(values, ir.VectorType(bits, WARP))
    count = WARP
    while count > WARP // group:
        count //= 2
        even, odd = ([2 * i + side for i in range(count)] for side in (0, 1))
        if count == 1:
            values = b.or_(element(b, values, 0), element(b, values, 1))
        else:
            values = b.or_(shuffled(b, values, None, even), shuffled(b, values, None, odd))
    return b.bitcast(values, vector_type(kind, count))


def last_lane(b: ir.IRBuilder, mask: Value) -> Value:
    """Return the index of the highest lane of a mask that is not empty."""
    zeros = intrinsic(b, "ctlz", I32, mask, ir.Constant(I1, 1))
    return b.sub(ir.Constant(I32, WARP - 1), zeros)
