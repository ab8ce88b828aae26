"""Half precision: f16, bf16 and their pairs f16x2, bf16x2, bit for bit.

Registers hold the bits, as 16-bit integers (pairs: 32-bit). Sums and products are computed in float32, whose
24 bits make the second rounding harmless (24 >= 2 * 11 + 2). A fused multiply-add rounds to odd in between,
so that it also rounds only once. A NaN result is 0x7fff, as on the hardware. Reference: PTX ISA, 9.7.4.
"""

from collections.abc import Callable

from llvmlite import ir

from simt.code.instructions.comparisons import compared, joined
from simt.code.instructions.table import OPERATIONS, Emit, operation
from simt.code.instructions.values import Value, constant, intrinsic, same_shape
from simt.ptx import Instruction

SCALARS = ("f16", "bf16")
PAIRS = ("f16x2", "bf16x2")
I16, I32, SINGLE, DOUBLE = ir.IntType(16), ir.IntType(32), ir.FloatType(), ir.DoubleType()
NAN = 0x7FFF
ONE = {"f16": 0x3C00, "bf16": 0x3F80}


def widened(b: ir.IRBuilder, format_: str, x: Value) -> Value:
    """Convert the bits of f16 or bf16 numbers to float32, exactly."""
    if format_ == "f16":
        return b.fpext(b.bitcast(x, same_shape(x, ir.HalfType())), same_shape(x, SINGLE))
    wide = b.zext(x, same_shape(x, I32))
    return b.bitcast(b.shl(wide, constant(wide, 16)), same_shape(x, SINGLE))


def narrowed(b: ir.IRBuilder, format_: str, x: Value, mode: str = "rn") -> Value:
    """Round float32 to the bits of f16 or bf16."""
    bits = _to_f16(b, x, mode) if format_ == "f16" else _to_bf16(b, x, mode)
    return b.select(b.fcmp_unordered("uno", x, x), constant(bits, NAN), bits)


def _to_f16(b: ir.IRBuilder, x: Value, mode: str) -> Value:
    nearest = b.fptrunc(x, same_shape(x, ir.HalfType()))
    bits = b.bitcast(nearest, same_shape(x, I16))
    if mode == "rn":
        return bits
    # Rounding to nearest is off by less than a step: take the neighbour if it lies on the wrong side.
    back, one = b.fpext(nearest, x.type), constant(bits, 1)
    negative = b.icmp_signed("<", bits, constant(bits, 0))
    away, towards = b.add(bits, one), b.sub(bits, one)
    high, low = b.fcmp_ordered(">", back, x), b.fcmp_ordered("<", back, x)
    if mode == "rz":
        return b.select(b.select(negative, low, high), towards, bits)
    if mode == "rm":
        return b.select(high, b.select(negative, away, towards), bits)
    return b.select(low, b.select(negative, towards, away), bits)


def _to_bf16(b: ir.IRBuilder, x: Value, mode: str) -> Value:
    """Return the upper half of a float32; the lower half decides whether one is added."""
    bits = b.bitcast(x, same_shape(x, I32))
    negative = b.icmp_signed("<", bits, constant(bits, 0))
    odd = b.and_(b.lshr(bits, constant(bits, 16)), constant(bits, 1))
    nothing, all_but = constant(bits, 0), constant(bits, 0xFFFF)
    added = {
        "rn": b.add(odd, constant(bits, 0x7FFF)),
        "rz": nothing,
        "rm": b.select(negative, all_but, nothing),
        "rp": b.select(negative, nothing, all_but),
    }[mode]
    return b.trunc(b.lshr(b.add(bits, added), constant(bits, 16)), same_shape(x, I16))


def odd(b: ir.IRBuilder, x: Value, error: Value) -> Value:
    """Return x, or if rounding lost `error`, the float beside the exact value whose last bit is 1."""
    bits = b.bitcast(x, same_shape(x, ir.IntType(32 if _element(x) == SINGLE else 64)))
    one, zero = constant(bits, 1), constant(error, 0.0)
    positive = b.fcmp_ordered(">", x, zero)
    below = b.or_(
        b.and_(positive, b.fcmp_ordered("<", error, zero)),
        b.and_(b.fcmp_ordered("<", x, zero), b.fcmp_ordered(">", error, zero)),
    )
    inexact = b.and_(b.fcmp_ordered("!=", error, zero), _finite(b, x))
    truncated = b.select(below, b.sub(bits, one), bits)
    return b.bitcast(b.select(inexact, b.or_(truncated, one), bits), x.type)


def odd_single(b: ir.IRBuilder, x: Value) -> Value:
    """Convert float64 to a float32 that rounds to a narrower type as x itself would."""
    single = b.fptrunc(x, same_shape(x, SINGLE))
    back = b.fpext(single, x.type)
    bits = b.bitcast(single, same_shape(x, I32))
    too_large = b.fcmp_ordered(">", intrinsic(b, "fabs", x.type, back), intrinsic(b, "fabs", x.type, x))
    truncated = b.sub(bits, b.zext(too_large, bits.type))
    inexact = b.zext(b.fcmp_ordered("!=", back, x), bits.type)
    return b.bitcast(b.or_(truncated, inexact), single.type)


def _sum_to_odd(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    """Return the sum rounded to odd (its error comes from Knuth's two-sum)."""
    total = b.fadd(x, y)
    part = b.fsub(total, x)
    return odd(b, total, b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part)))


def _element(x: Value) -> ir.Type:
    return x.type.element if isinstance(x.type, ir.VectorType) else x.type


def _finite(b: ir.IRBuilder, x: Value) -> Value:
    return b.fcmp_ordered("<", intrinsic(b, "fabs", x.type, x), constant(x, float("inf")))


def _add(b: ir.IRBuilder, _i: Instruction, _f: str, x: Value, y: Value) -> Value:
    return b.fadd(x, y)


def _subtract(b: ir.IRBuilder, _i: Instruction, _f: str, x: Value, y: Value) -> Value:
    return b.fsub(x, y)


def _multiply(b: ir.IRBuilder, _i: Instruction, _f: str, x: Value, y: Value) -> Value:
    return b.fmul(x, y)


def _multiply_add(b: ir.IRBuilder, _i: Instruction, format_: str, x: Value, y: Value, z: Value) -> Value:
    """Compute x * y + z; products of f16 are exact in float32, those of bf16 only in float64."""
    if format_ == "f16":
        return _sum_to_odd(b, b.fmul(x, y), z)
    x, y, z = (b.fpext(value, same_shape(value, DOUBLE)) for value in (x, y, z))
    return odd_single(b, _sum_to_odd(b, b.fmul(x, y), z))


def _extreme(b: ir.IRBuilder, i: Instruction, _f: str, x: Value, y: Value) -> Value:
    return OPERATIONS[i.parts[0]].emit(b, _as_single(i), x, y)


def _as_single(i: Instruction) -> Instruction:
    """Return the same instruction on float32."""
    parts = tuple("f32" if part in (*SCALARS, *PAIRS) else part for part in i.parts)
    return Instruction(parts, i.operands, i.guard, i.line)


def _function(name: str) -> Callable[..., Value]:
    return lambda b, _i, _f, x: intrinsic(b, name, x.type, x)


def _arithmetic(compute: Callable[..., Value]) -> Emit:
    """Make an entry that widens its operands, computes in float32 and rounds the result."""

    def emit(b: ir.IRBuilder, i: Instruction, *operands: Value) -> Value:
        type_ = next(part for part in i.parts if part in (*SCALARS, *PAIRS))
        format_ = type_.removesuffix("x2")
        values = [_flushed(b, i, widened(b, format_, _halves(b, type_, x))) for x in operands]
        result = compute(b, i, format_, *values)
        if "sat" in i.parts:
            low = intrinsic(b, "maxnum", result.type, result, constant(result, 0.0))
            result = intrinsic(b, "minnum", result.type, low, constant(result, 1.0))
        if "relu" in i.parts:
            zero = constant(result, 0.0)
            result = b.select(b.fcmp_ordered("<=", result, zero), zero, result)
        if "ftz" in i.parts:
            result = _flushed(b, i, widened(b, format_, narrowed(b, format_, result)))
        return _whole(b, type_, narrowed(b, format_, result), operands[0].type)

    return emit


def _flushed(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Treat subnormal halves as zero for `.ftz`."""
    if "ftz" not in i.parts:
        return x
    least = 2.0**-126 if i.parts[-1].startswith("bf16") else 2.0**-14
    small = b.fcmp_ordered("<", intrinsic(b, "fabs", x.type, x), constant(x, least))
    return b.select(small, intrinsic(b, "copysign", x.type, constant(x, 0.0), x), x)


def _halves(b: ir.IRBuilder, type_: str, x: Value) -> Value:
    """Return a register's 16-bit numbers; both of a pair, side by side."""
    if type_ not in PAIRS:
        return x
    count = x.type.count if isinstance(x.type, ir.VectorType) else 1
    return b.bitcast(x, ir.VectorType(I16, 2 * count))


def _whole(b: ir.IRBuilder, type_: str, halves: Value, register: ir.Type) -> Value:
    return b.bitcast(halves, register) if type_ in PAIRS else halves


def _sign(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Emit `neg` or `abs`, which change one bit, except for NaNs."""
    type_ = i.parts[-1]
    halves = _halves(b, type_, x)
    size = b.and_(halves, constant(halves, 0x7FFF))
    result = b.xor(halves, constant(halves, 0x8000)) if i.parts[0] == "neg" else size
    infinity = 0x7F80 if type_.startswith("bf16") else 0x7C00
    no_number = b.icmp_unsigned(">", size, constant(size, infinity))
    return _whole(b, type_, b.select(no_number, constant(halves, NAN), result), x.type)


def _holds(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Compare, and return one predicate per 16-bit number."""
    type_ = i.type
    wide = [widened(b, type_.removesuffix("x2"), _halves(b, type_, operand)) for operand in (x, y)]
    return compared(b, i.parts[1], True, True, *(_flushed(b, i, operand) for operand in wide))


def _set_predicate(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, other: Value = None) -> Value:
    """Emit `setp.lt.f16 p, x, y`, or `setp.lt.f16x2 p|q, x, y`: p for the lower numbers, q for the upper."""
    holds = _holds(b, i, x, y)
    if i.type not in PAIRS:
        return joined(b, i, holds, other)
    count = holds.type.count // 2
    if count == 1:
        parts = [b.extract_element(holds, ir.Constant(I32, side)) for side in (0, 1)]
    else:
        undefined = ir.Constant(holds.type, ir.Undefined)
        masks = [[ir.Constant(I32, 2 * n + side) for n in range(count)] for side in (0, 1)]
        type_ = ir.VectorType(I32, count)
        parts = [b.shuffle_vector(holds, undefined, ir.Constant(type_, mask)) for mask in masks]
    return tuple(joined(b, i, part, other) for part in parts)


def _set(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Emit `set.lt.f16.f16` (1.0 or 0), or `set.lt.u32.f16x2` (all ones or zeros in each half)."""
    holds, (to, from_) = _holds(b, i, x, y), i.parts[-2:]
    if from_ in PAIRS:
        yes = ONE.get(to.removesuffix("x2"), 0xFFFF)
        halves = b.select(holds, constant(_halves(b, from_, x), yes), constant(_halves(b, from_, x), 0))
        return b.bitcast(halves, x.type)
    if to in ONE:
        return b.select(holds, constant(x, ONE[to]), constant(x, 0))
    if to == "f32":
        return b.uitofp(holds, same_shape(x, SINGLE))
    return b.sext(holds, same_shape(x, ir.IntType(int(to[1:]))))


for _type in (*SCALARS, *PAIRS):
    operation(f"add.{_type}", "tt:t")(_arithmetic(_add))
    operation(f"sub.{_type}", "tt:t")(_arithmetic(_subtract))
    operation(f"mul.{_type}", "tt:t")(_arithmetic(_multiply))
    operation(f"fma.{_type}", "ttt:t")(_arithmetic(_multiply_add))
    for _name in ("min", "max"):
        operation(f"{_name}.{_type}", "tt:t")(_arithmetic(_extreme))
    for _name in ("neg", "abs"):
        operation(f"{_name}.{_type}", "t:t")(_sign)
    for _name, _llvm in (("ex2", "exp2"), ("tanh", "tanh")):
        operation(f"{_name}.{_type}", "t:t")(_arithmetic(_function(_llvm)))
    operation(f"setp.{_type}", "tt?p:p")(_set_predicate)
    operation(f"set.{_type}", "ff:d")(_set)
