"""Moves, sums, products, quotients, minima and maxima: the same entries for integers and floats."""

from llvmlite import ir

from simt.code.instructions.table import Emit, operation, type_of
from simt.code.instructions.values import Value, constant, intrinsic, same_shape, type_width
from simt.ptx import Instruction


def _plain(float_method: str | None, integer_method: str) -> Emit:
    def emit(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
        if "sat" in i.parts and not type_of(i).is_float:
            return intrinsic(b, f"s{integer_method}.sat", x.type, x, y)
        return getattr(b, float_method if float_method and type_of(i).is_float else integer_method)(x, y)

    return emit


operation("add", "tt:t")(_plain("fadd", "add"))
operation("sub", "tt:t")(_plain("fsub", "sub"))
operation("mul mul.lo", "tt:t")(_plain("fmul", "mul"))
operation("and", "tt:t")(_plain(None, "and_"))
operation("or", "tt:t")(_plain(None, "or_"))
operation("xor", "tt:t")(_plain(None, "xor"))


@operation("mov", "t:t")
@operation("cvta", "t:t")
def _move(_b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return x


@operation("not", "t:t")
def _not(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return b.not_(x)


@operation("cnot", "t:t")
def _logical_not(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return b.zext(b.icmp_unsigned("==", x, constant(x, 0)), x.type)


@operation("neg", "t:t")
def _negate(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    return b.fneg(x) if type_of(i).is_float else b.sub(constant(x, 0), x)


@operation("abs", "t:t")
def _absolute(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    if type_of(i).is_float:
        return intrinsic(b, "fabs", x.type, x)
    return b.select(b.icmp_signed("<", x, constant(x, 0)), b.sub(constant(x, 0), x), x)


@operation("sad", "ttt:t")
def _sum_of_difference(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    """Compute |x - y| + z."""
    below = b.icmp_signed("<", x, y) if type_of(i).is_signed else b.icmp_unsigned("<", x, y)
    return b.add(b.select(below, b.sub(y, x), b.sub(x, y)), z)


@operation("min", "tt:t")
@operation("max", "tt:t")
def _extreme(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    if not type_of(i).is_float:
        value = intrinsic(b, f"{'s' if type_of(i).is_signed else 'u'}{i.parts[0]}", x.type, x, y)
        return intrinsic(b, "smax", x.type, value, constant(x, 0)) if "relu" in i.parts else value
    if "xorsign" in i.parts:  # the smaller or larger size, with the product's sign
        sign = b.xor(_bits(b, x), _bits(b, y))
        x, y = (intrinsic(b, "fabs", v.type, v) for v in (x, y))
        return intrinsic(b, "copysign", x.type, _extreme_float(b, i, x, y), b.bitcast(sign, x.type))
    return _extreme_float(b, i, x, y)


def _extreme_float(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Return the smaller or larger; a NaN gives the other operand (`.NaN`: a NaN), and -0 is below +0."""
    value = intrinsic(b, f"{i.parts[0]}num", x.type, x, y)
    join = b.or_ if i.parts[0] == "min" else b.and_
    both = b.bitcast(join(_bits(b, x), _bits(b, y)), x.type)
    value = b.select(b.fcmp_ordered("==", x, y), both, value)
    return b.select(b.fcmp_unordered("uno", x, y), b.fadd(x, y), value) if "NaN" in i.parts else value


def _bits(b: ir.IRBuilder, x: Value) -> Value:
    return b.bitcast(x, same_shape(x, ir.IntType(type_width(x))))


@operation("fma", "ttt:t")
@operation("mad", "ttt:t")
@operation("mad.lo", "ttt:t")
def _multiply_add(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    if type_of(i).is_float:
        return intrinsic(b, "fma", x.type, x, y, z)
    return b.add(b.mul(x, y), z)


@operation("mul24", "tt:t")
def _multiply_24(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Multiply the lower 24 bits, and return the product's lower 32 bits (`.lo`) or bits 16 to 47 (`.hi`)."""
    wide, eight = same_shape(x, ir.IntType(64)), constant(x, 8)
    x, y = (b.shl(v, eight) for v in (x, y))
    signed = type_of(i).is_signed
    x, y = (b.ashr(v, eight) if signed else b.lshr(v, eight) for v in (x, y))
    x, y = (b.sext(v, wide) if signed else b.zext(v, wide) for v in (x, y))
    product = b.mul(x, y)
    if "hi" in i.parts:
        product = b.lshr(product, constant(product, 16))
    return b.trunc(product, same_shape(x, ir.IntType(32)))


@operation("mad24", "ttt:t")
def _multiply_add_24(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    product = _multiply_24(b, i, x, y)
    if "sat" in i.parts:
        return intrinsic(b, "sadd.sat", z.type, product, z)
    return b.add(product, z)


def _widened(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    wide = same_shape(x, ir.IntType(2 * type_of(i).bits))
    return b.sext(x, wide) if type_of(i).is_signed else b.zext(x, wide)


@operation("mul.wide", "tt:w")
def _multiply_wide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    return b.mul(_widened(b, i, x), _widened(b, i, y))


@operation("mad.wide", "ttw:w")
def _multiply_add_wide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    return b.add(_multiply_wide(b, i, x, y), z)


@operation("mul.hi", "tt:t")
def multiply_high(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Return the upper half of a product."""
    wide = _multiply_wide(b, i, x, y)
    return b.trunc(b.lshr(wide, constant(wide, type_of(i).bits)), x.type)


@operation("mad.hi", "ttt:t")
def _multiply_add_high(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    if "sat" in i.parts:
        return intrinsic(b, "sadd.sat", z.type, multiply_high(b, i, x, y), z)
    return b.add(multiply_high(b, i, x, y), z)


@operation("div", "tt:t")
@operation("rem", "tt:t")
def _divide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    if type_of(i).is_float:
        return b.fdiv(x, y)
    # The host traps on x/0 and on the lowest number divided by -1; a GPU gives some number.
    divides = i.parts[0] == "div"
    zero = b.icmp_unsigned("==", y, constant(y, 0))
    safe = b.select(zero, constant(y, 1), y)
    if not type_of(i).is_signed:
        quotient = b.udiv(x, safe) if divides else b.urem(x, safe)
    else:
        minus_one = b.icmp_signed("==", y, constant(y, -1))
        safe = b.select(minus_one, constant(y, 1), safe)
        quotient = b.sdiv(x, safe) if divides else b.srem(x, safe)
        if divides:
            quotient = b.select(minus_one, b.sub(constant(x, 0), x), quotient)
    return b.select(zero, constant(x, -1) if divides else x, quotient)


def _pairs(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Compute `add`, `min` or `max` on the two 16-bit integers of a register; `.relu`: at least 0."""
    count = x.type.count if isinstance(x.type, ir.VectorType) else 1
    type_ = ir.VectorType(ir.IntType(16), 2 * count)
    x, y, register = b.bitcast(x, type_), b.bitcast(y, type_), x.type
    sign = "s" if "s16x2" in i.parts else "u"
    value = b.add(x, y) if i.parts[0] == "add" else intrinsic(b, f"{sign}{i.parts[0]}", type_, x, y)
    if "relu" in i.parts:
        value = intrinsic(b, "smax", type_, value, constant(value, 0))
    return b.bitcast(value, register)


for _name in ("add", "min", "max"):
    for _type in ("s16x2", "u16x2"):
        operation(f"{_name}.{_type}", "tt:t")(_pairs)
