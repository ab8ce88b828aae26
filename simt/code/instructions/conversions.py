"""Conversions between types.

Reference: PTX ISA, 9.7.9 (cvt). Narrow float types (f16, bf16) live in registers as bits, see half.py.
"""

from llvmlite import ir

from simt.code.instructions import half
from simt.code.instructions.rounding import DIRECTED, integer_to_float, integer_to_odd, rounded
from simt.code.instructions.table import Kind, kind_of, operation
from simt.code.instructions.values import Value, constant, intrinsic, same_shape
from simt.ptx import Instruction

_TO_INTEGER = {"rzi": "trunc", "rni": "roundeven", "rmi": "floor", "rpi": "ceil"}


@operation("cvt", "f:d")
@operation("cvt.rz", "f:d")
@operation("cvt.rm", "f:d")
@operation("cvt.rp", "f:d")
def _convert(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    to, from_ = kind_of("d", i), kind_of("f", i)
    target = same_shape(x, to.llvm)
    if from_.is_float and to.is_float:
        return _convert_float(b, i, x, target)
    if from_.is_float:
        return _to_integer(b, i, x, from_.bits)
    if to.is_float:
        return integer_to_float(b, x, from_.is_signed, to.llvm, _direction(i))
    if "sat" in i.parts:
        x = _saturated(b, x, from_, to)
    if to.bits > from_.bits:
        return b.sext(x, target) if from_.is_signed else b.zext(x, target)
    return b.trunc(x, target) if to.bits < from_.bits else x


def _direction(i: Instruction) -> str | None:
    return next((part for part in i.parts if part in DIRECTED), None)


def _to_integer(b: ir.IRBuilder, i: Instruction, x: Value, from_bits: int) -> Value:
    """Convert a float to an integer; values out of range saturate."""
    to = kind_of("d", i)
    mode = next(part for part in i.parts if part in _TO_INTEGER)
    number = intrinsic(b, _TO_INTEGER[mode], x.type, x)
    name, target = "fptosi.sat" if to.is_signed else "fptoui.sat", same_shape(x, to.llvm)
    value = intrinsic(b, name, target, number, overloads=(target, x.type))
    if max(to.bits, from_bits) < 64:
        return value  # a NaN gives 0
    # For a NaN, with 64 bits on either side, an H200 sets only the top bit, though the manual says 0.
    top = constant(value, 1 << max(to.bits, 32) - 1)
    return b.select(b.fcmp_unordered("uno", x, x), top, value)


def _convert_float(b: ir.IRBuilder, i: Instruction, x: Value, target: ir.Type) -> Value:
    to, from_ = kind_of("d", i), kind_of("f", i)
    if to.bits == from_.bits:
        mode = next((part for part in i.parts if part in _TO_INTEGER), None)
        return intrinsic(b, _TO_INTEGER[mode], x.type, x) if mode else x
    if to.bits > from_.bits:
        return b.fpext(x, target)
    direction = _direction(i)
    return rounded(b, direction, "fptrunc", target, x) if direction else b.fptrunc(x, target)


@operation("cvt.f16 cvt.bf16", "f:d")
def _convert_half(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Convert to or from f16 or bf16, or both, through a float32 that holds it or rounds as it would."""
    to, from_ = kind_of("d", i), kind_of("f", i)
    if from_.name in half.SCALARS:
        single = half.widened(b, from_.name, x)
        if to.is_float:
            return single if to.bits == 32 else b.fpext(single, same_shape(x, to.llvm))
        if to.name not in half.SCALARS:
            return _to_integer(b, i, single, 16)
        if mode := next((part for part in i.parts if part in _TO_INTEGER), None):
            single = intrinsic(b, _TO_INTEGER[mode], single.type, single)
        return _narrowed(b, i, to.name, single)
    bits = _narrowed(b, i, to.name, _single(b, x, from_))
    if from_.name == "f64":  # from f64 an H200 gives a different NaN
        quiet = constant(bits, 0x7E00 if to.name == "f16" else 0x7FC0)
        bits = b.select(b.fcmp_unordered("uno", x, x), quiet, bits)
    return bits


@operation("cvt.f16x2 cvt.bf16x2", "ff:d")
def _convert_pair(b: ir.IRBuilder, i: Instruction, upper: Value, lower: Value) -> Value:
    """Emit `cvt.rn.f16x2.f32 d, a, b`, which puts a into the upper half and b into the lower."""
    format_ = kind_of("d", i).name.removesuffix("x2")
    wide = same_shape(upper, ir.IntType(32))
    high, low = (b.zext(_narrowed(b, i, format_, x), wide) for x in (upper, lower))
    return b.or_(b.shl(high, constant(high, 16)), low)


@operation("cvt.tf32", "f:u")
def _convert_tf32(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Convert to float32 with a 10-bit fraction; `.rna` rounds ties away from zero.

    `.relu` gives at least 0, `.satfinite` finite values.
    """
    if "relu" in i.parts:
        x = b.select(b.fcmp_ordered("<=", x, constant(x, 0.0)), constant(x, 0.0), x)
    bits = b.bitcast(x, same_shape(x, ir.IntType(32)))
    last = b.and_(b.lshr(bits, constant(bits, 13)), constant(bits, 1))
    added = {
        "rna": constant(bits, 1 << 12),
        "rn": b.add(last, constant(bits, (1 << 12) - 1)),
        "rz": constant(bits, 0),
    }
    total = b.and_(b.add(bits, added[i.parts[1]]), constant(bits, -1 << 13))
    if "satfinite" in i.parts:
        size = b.and_(total, constant(total, 0x7FFFFFFF))
        infinite = b.icmp_unsigned("==", size, constant(size, 0x7F800000))
        total = b.select(infinite, b.sub(total, constant(total, 1 << 13)), total)
    return b.select(b.fcmp_unordered("uno", x, x), constant(bits, 0x7FFFFFFF), total)


def _single(b: ir.IRBuilder, x: Value, from_: Kind) -> Value:
    """Convert any number to a float32 that rounds to 16 bits as the number itself would."""
    if from_.name == "f32":
        return x
    if from_.is_float:
        return half.odd_single(b, x)
    double = same_shape(x, ir.DoubleType())
    if from_.bits == 64:
        return half.odd_single(b, integer_to_odd(b, x, from_.is_signed))
    return half.odd_single(b, b.sitofp(x, double) if from_.is_signed else b.uitofp(x, double))


def _narrowed(b: ir.IRBuilder, i: Instruction, format_: str, x: Value) -> Value:
    """Narrow to 16 bits; `.sat` clamps to [0, 1], `.relu` to at least 0, `.satfinite` to finite values."""
    if "relu" in i.parts:
        x = b.select(b.fcmp_ordered("<=", x, constant(x, 0.0)), constant(x, 0.0), x)
    if "sat" in i.parts:
        low = intrinsic(b, "maxnum", x.type, x, constant(x, 0.0))
        x = intrinsic(b, "minnum", x.type, low, constant(x, 1.0))
    bits = half.narrowed(b, format_, x, _direction(i) or "rn")
    if "satfinite" in i.parts:
        size = b.and_(bits, constant(bits, 0x7FFF))
        infinity = {"f16": 0x7C00, "bf16": 0x7F80}[format_]
        largest = b.or_(b.and_(bits, constant(bits, 0x8000)), constant(bits, infinity - 1))
        bits = b.select(b.icmp_unsigned("==", size, constant(bits, infinity)), largest, bits)
    return bits


def _saturated(b: ir.IRBuilder, x: Value, from_: Kind, to: Kind) -> Value:
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.is_signed else (0, (1 << to.bits) - 1)
    low = max(low, -(1 << from_.bits - 1) if from_.is_signed else 0)
    high = min(high, (1 << from_.bits - from_.is_signed) - 1)
    sign = "s" if from_.is_signed else "u"
    return intrinsic(
        b, f"{sign}min", x.type, intrinsic(b, f"{sign}max", x.type, x, constant(x, low)), constant(x, high)
    )


@operation("cvt.pack", "ff?u:u")
def _pack(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, below: Value = None) -> Value:
    """Emit `cvt.pack.sat.s8.s32.b32 d, a, b, c`: a and b clamped to narrow integers, c's lower half above."""
    to = kind_of("t", i)
    high, low = (b.and_(_saturated(b, v, Kind("s32"), to), constant(v, (1 << to.bits) - 1)) for v in (x, y))
    packed = b.or_(b.shl(high, constant(high, to.bits)), low)
    return packed if below is None else b.or_(b.shl(below, constant(below, 2 * to.bits)), packed)
