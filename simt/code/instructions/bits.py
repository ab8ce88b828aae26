"""Shifts, logic and all other operations on bits."""

from llvmlite import ir

from simt.code.instructions.table import operation, type_of
from simt.code.instructions.values import Value, constant, intrinsic, same_shape
from simt.ptx import Immediate, Instruction


@operation("shl", "tu:t")
@operation("shr", "tu:t")
def _shift(b: ir.IRBuilder, i: Instruction, x: Value, amount: Value) -> Value:
    bits = type_of(i).bits
    arithmetic = i.parts[0] == "shr" and type_of(i).is_signed
    limit = constant(amount, bits - 1)
    in_range = b.icmp_unsigned("<=", amount, limit)
    amount = b.select(in_range, amount, limit)  # amounts above the width act as the width
    amount = _resized(b, amount, x)
    if arithmetic:
        return b.ashr(x, amount)
    shifted = b.shl(x, amount) if i.parts[0] == "shl" else b.lshr(x, amount)
    return b.select(in_range, shifted, constant(x, 0))


def _resized(b: ir.IRBuilder, x: Value, like: Value) -> Value:
    """Convert the unsigned integer `x` to the width of `like`."""
    width, wanted = _scalar(x).width, _scalar(like).width
    to = same_shape(x, ir.IntType(wanted))
    return x if width == wanted else b.zext(x, to) if width < wanted else b.trunc(x, to)


def _scalar(x: Value) -> ir.Type:
    return x.type.element if isinstance(x.type, ir.VectorType) else x.type


@operation("shf", "ttu:t")
def _funnel_shift(b: ir.IRBuilder, i: Instruction, low: Value, high: Value, amount: Value) -> Value:
    if "clamp" in i.parts:
        limit = constant(amount, 32)
        amount = b.select(b.icmp_unsigned("<", amount, limit), amount, limit)
        wide = same_shape(low, ir.IntType(64))
        both = b.or_(b.zext(low, wide), b.shl(b.zext(high, wide), constant(b.zext(low, wide), 32)))
        amount = b.zext(amount, wide)
        if "r" in i.parts:
            return b.trunc(b.lshr(both, amount), low.type)
        return b.trunc(b.lshr(both, b.sub(constant(amount, 32), amount)), low.type)
    return intrinsic(b, "fshr" if "r" in i.parts else "fshl", low.type, high, low, amount)


@operation("popc", "t:u")
@operation("clz", "t:u")
def _count_bits(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    if i.parts[0] == "popc":
        count = intrinsic(b, "ctpop", x.type, x)
    else:
        count = intrinsic(b, "ctlz", x.type, x, ir.Constant(ir.IntType(1), 0))
    return _resized(b, count, constant_u32(count))


def constant_u32(like: Value) -> Value:
    """Return zero as unsigned 32-bit integers, in the shape of `like`."""
    return ir.Constant(same_shape(like, ir.IntType(32)), None)


@operation("bfind", "t:u")
def _find_highest(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Return the position of the highest bit unlike the sign, or its shift to the top; -1 if none."""
    if type_of(i).is_signed:
        x = b.xor(x, b.ashr(x, constant(x, type_of(i).bits - 1)))
    above = intrinsic(b, "ctlz", x.type, x, ir.Constant(ir.IntType(1), 0))
    place = above if "shiftamt" in i.parts else b.sub(constant(above, type_of(i).bits - 1), above)
    found = b.select(b.icmp_unsigned("==", x, constant(x, 0)), constant(x, -1), place)
    return _resized(b, found, constant_u32(found))


@operation("brev", "t:t")
def _reverse_bits(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return intrinsic(b, "bitreverse", x.type, x)


@operation("bfe", "tuu:t")
def _extract_bits(b: ir.IRBuilder, i: Instruction, x: Value, start: Value, length: Value) -> Value:
    """Return bits [start, start + length) of x, with their sign if signed; both counts are modulo 256."""
    bits = type_of(i).bits
    start, length = (_resized(b, b.and_(n, constant(n, 255)), x) for n in (start, length))
    signed = type_of(i).is_signed
    wide = same_shape(x, ir.IntType(2 * bits))
    extended = b.sext(x, wide) if signed else b.zext(x, wide)
    limit = constant(start, bits)
    start, length = (b.select(b.icmp_unsigned("<", n, limit), n, limit) for n in (start, length))
    field = b.ashr(extended, b.zext(start, wide))
    left = b.sub(constant(field, 2 * bits), b.zext(length, wide))
    left = b.select(b.icmp_unsigned("<", left, constant(left, 2 * bits)), left, constant(left, 2 * bits - 1))
    cut = b.ashr(b.shl(field, left), left) if signed else b.lshr(b.shl(field, left), left)
    empty = b.icmp_unsigned("==", length, constant(length, 0))
    return b.select(empty, constant(x, 0), b.trunc(cut, x.type))


@operation("bfi", "ttuu:t")
def _insert_bits(
    b: ir.IRBuilder, i: Instruction, x: Value, into: Value, start: Value, length: Value
) -> Value:
    bits = type_of(i).bits
    wide = same_shape(x, ir.IntType(2 * bits))
    start, length = (_resized(b, b.and_(n, constant(n, 255)), x) for n in (start, length))
    limit = constant(start, bits)
    start, length = (
        b.zext(b.select(b.icmp_unsigned("<", n, limit), n, limit), wide) for n in (start, length)
    )
    ones = b.sub(b.shl(constant(length, 1), length), constant(length, 1))
    mask = b.trunc(b.shl(ones, start), x.type)
    shifted = b.trunc(b.shl(b.zext(x, wide), start), x.type)
    return b.or_(b.and_(shifted, mask), b.and_(into, b.not_(mask)))


# The modes of `prmt`: the bytes that each value of the selector picks, in the form of the general mode.
_PERMUTATIONS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@operation("prmt", "ttu:t")
def _permute_bytes(b: ir.IRBuilder, i: Instruction, low: Value, high: Value, selector: Value) -> Value:
    """Pick four bytes of eight, each by a nibble of the selector, whose top bit asks for the byte's sign."""
    if table := next((table for mode, table in _PERMUTATIONS.items() if mode in i.parts), None):
        number, selector = b.and_(selector, constant(selector, 3)), constant(selector, table[0])
        for choice, nibbles in enumerate(table[1:], 1):
            chosen = b.icmp_unsigned("==", number, constant(number, choice))
            selector = b.select(chosen, constant(number, nibbles), selector)
    wide = same_shape(low, ir.IntType(64))
    both = b.or_(b.zext(low, wide), b.shl(b.zext(high, wide), constant(b.zext(low, wide), 32)))
    result = constant(low, 0)
    for position in range(4):
        nibble = b.and_(b.lshr(selector, constant(selector, 4 * position)), constant(selector, 15))
        shift = b.zext(b.shl(b.and_(nibble, constant(nibble, 7)), constant(nibble, 3)), wide)
        byte = b.and_(b.trunc(b.lshr(both, shift), low.type), constant(low, 255))
        sign = b.select(
            b.icmp_unsigned(">=", byte, constant(byte, 128)), constant(byte, 255), constant(byte, 0)
        )
        byte = b.select(b.icmp_unsigned(">=", nibble, constant(nibble, 8)), sign, byte)
        result = b.or_(result, b.shl(byte, constant(byte, 8 * position)))
    return result


@operation("lop3", "tttu:t")
def _logic_of_three(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value, _table: Value) -> Value:
    """Compute any bitwise function of three operands, from its truth table (an immediate)."""
    table, result = i.operands[4], constant(x, 0)
    assert isinstance(table, Immediate)
    for row in range(8):
        if table.value >> row & 1:
            term = constant(x, -1)
            for operand, bit in ((x, 4), (y, 2), (z, 1)):
                term = b.and_(term, operand if row & bit else b.not_(operand))
            result = b.or_(result, term)
    return result


def _ones_from(b: ir.IRBuilder, place: Value) -> Value:
    """Return all bits from `place` (below 64) upwards."""
    inside = b.icmp_unsigned("<", place, constant(place, 32))
    shifted = b.shl(constant(place, -1), b.and_(place, constant(place, 31)))
    return b.select(inside, shifted, constant(place, 0))


@operation("bmsk", "uu:u")
def _bit_mask(b: ir.IRBuilder, i: Instruction, start: Value, length: Value) -> Value:
    """Return `length` ones from bit `start`; bits above 31 are dropped (`.clamp`) or wrap round (`.wrap`)."""
    if "wrap" in i.parts:
        start, length = (b.and_(n, constant(n, 31)) for n in (start, length))
    limit = constant(start, 32)
    start, length = (b.select(b.icmp_unsigned("<", n, limit), n, limit) for n in (start, length))
    return b.and_(_ones_from(b, start), b.not_(_ones_from(b, b.add(start, length))))


@operation("szext", "tu:t")
def _extend(b: ir.IRBuilder, i: Instruction, x: Value, length: Value) -> Value:
    """Return the lower `length` bits, with their sign for signed types."""
    if "wrap" in i.parts:
        length = b.and_(length, constant(length, 31))
    limit, none = constant(length, 32), b.icmp_unsigned("==", length, constant(length, 0))
    length = b.select(b.icmp_unsigned("<", length, limit), length, limit)
    left = b.and_(b.sub(limit, length), constant(length, 31))
    top = b.shl(x, left)
    return b.select(none, constant(x, 0), b.ashr(top, left) if type_of(i).is_signed else b.lshr(top, left))


@operation("fns", "uuu:u")
def _find_nth_set(b: ir.IRBuilder, _i: Instruction, mask: Value, base: Value, offset: Value) -> Value:
    """Return where the offset-th one of the mask is, from `base` up (negative: down); -1 if none."""
    zero, one, none = constant(mask, 0), constant(mask, 1), constant(mask, -1)
    negative = b.icmp_signed("<", offset, zero)
    step = b.select(negative, none, one)
    count = b.select(negative, b.sub(zero, offset), offset)
    only_base = b.icmp_unsigned("==", count, zero)
    left, place, found = b.select(only_base, one, count), base, none
    for distance in range(32):
        inside = b.icmp_unsigned("<", place, constant(place, 32))
        bit = b.and_(b.lshr(mask, b.and_(place, constant(place, 31))), one)
        bit = b.select(inside, bit, zero)
        here = b.icmp_unsigned("==", b.add(left, b.sub(zero, bit)), zero)
        here = b.and_(here, b.icmp_unsigned("==", bit, one))
        if distance:
            here = b.and_(here, b.not_(only_base))
        found = b.select(here, place, found)
        left, place = b.sub(left, bit), b.add(place, step)
    return found
