"""What each arithmetic PTX instruction computes, as LLVM instructions.

One entry an instruction, found by its opcode with the longest matching form first ("mul.wide" before
"mul"). An entry works alike on scalars (uniform values) and vectors (a value a lane or a group of lanes).
Memory, barriers and branches are in memory.py and codegen.py. Reference: NVIDIA, Parallel Thread Execution
ISA, chapter 9.7.

The signature names the operand types, then the result: t the instruction's type, w twice as wide, u an
unsigned 32-bit integer, p a predicate, f and d the source and the destination of a conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from labkit.simt.ptx import TYPE_BYTES, Instruction

Value = Any  # an llvmlite value: a scalar, or a vector of one value a group of lanes
Emit = Callable[..., Value]


@dataclass(frozen=True)
class Kind:
    """A PTX type such as `s32`."""

    name: str

    @property
    def bits(self) -> int:
        return 1 if self.name == "pred" else 8 * TYPE_BYTES[self.name]

    @property
    def is_float(self) -> bool:
        return self.name in ("f32", "f64")

    @property
    def is_signed(self) -> bool:
        return self.name[0] == "s"

    @property
    def llvm(self) -> ir.Type:
        return {"f32": ir.FloatType(), "f64": ir.DoubleType()}.get(self.name) or ir.IntType(self.bits)

    def widened(self) -> Kind:
        return Kind(f"{self.name[0]}{2 * self.bits}")


@dataclass(frozen=True)
class Operation:
    """How to emit one instruction: operand and result types, and the emitting function (builder,
    instruction, *values).
    """

    signature: str
    emit: Emit

    def operand_kinds(self, instruction: Instruction) -> list[Kind]:
        return [_kind(letter, instruction) for letter in self.signature.split(":")[0]]

    def result_kind(self, instruction: Instruction) -> Kind:
        return _kind(self.signature[-1], instruction)


OPERATIONS: dict[str, Operation] = {}


def find(instruction: Instruction) -> Operation | None:
    """The entry of an instruction, or None."""
    first, *rest = instruction.parts
    names = [f"{first}.{part}" for part in rest]
    return next((OPERATIONS[name] for name in [*names, first] if name in OPERATIONS), None)


def _kind(letter: str, instruction: Instruction) -> Kind:
    types = [part for part in instruction.parts if part in TYPE_BYTES]
    match letter:
        case "t" | "d":
            return Kind(types[0])
        case "f":
            return Kind(types[-1])
        case "w":
            return Kind(types[0]).widened()
        case "u":
            return Kind("u32")
    return Kind("pred")


def operation(names: str, signature: str) -> Callable[[Emit], Emit]:
    """Enter a function in the table under one or more opcodes."""

    def enter(emit: Emit) -> Emit:
        for name in names.split():
            OPERATIONS[name] = Operation(signature, emit)
        return emit

    return enter


def constant(like: Value, value: float) -> Value:
    """`value` in the type of `like`, in every element if it is a vector."""
    if isinstance(like.type, ir.VectorType):
        return ir.Constant(like.type, [ir.Constant(like.type.element, value)] * like.type.count)
    return ir.Constant(like.type, value)


def same_shape(like: Value, element: ir.Type) -> ir.Type:
    """`element`, or a vector of it as long as `like`."""
    return ir.VectorType(element, like.type.count) if isinstance(like.type, ir.VectorType) else element


def intrinsic(
    b: ir.IRBuilder, name: str, result: ir.Type, *arguments: Value, overloads: tuple[ir.Type, ...] = ()
) -> Value:
    """Call an LLVM intrinsic; its name gets the overloaded types (by default the result's)."""
    full = ".".join([f"llvm.{name}", *(type_suffix(type_) for type_ in overloads or (result,))])
    if full not in b.module.globals:
        ir.Function(b.module, ir.FunctionType(result, [argument.type for argument in arguments]), full)
    return b.call(b.module.globals[full], arguments)


def type_suffix(type_: ir.Type) -> str:
    """`v32f32` for a vector of 32 floats, as in the names of LLVM's intrinsics."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{type_suffix(type_.element)}"
    if isinstance(type_, ir.PointerType):
        return "p0"
    return {ir.FloatType: "f32", ir.DoubleType: "f64"}.get(type(type_)) or f"i{type_.width}"


def _type(instruction: Instruction) -> Kind:
    return _kind("t", instruction)


def _plain(float_method: str | None, integer_method: str) -> Emit:
    def emit(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
        return getattr(b, float_method if float_method and _type(i).is_float else integer_method)(x, y)

    return emit


OPERATIONS["add"] = Operation("tt:t", _plain("fadd", "add"))
OPERATIONS["sub"] = Operation("tt:t", _plain("fsub", "sub"))
OPERATIONS["mul"] = OPERATIONS["mul.lo"] = Operation("tt:t", _plain("fmul", "mul"))
OPERATIONS["and"] = Operation("tt:t", _plain(None, "and_"))
OPERATIONS["or"] = Operation("tt:t", _plain(None, "or_"))
OPERATIONS["xor"] = Operation("tt:t", _plain(None, "xor"))


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
    return b.fneg(x) if _type(i).is_float else b.sub(constant(x, 0), x)


@operation("abs", "t:t")
def _absolute(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    if _type(i).is_float:
        return intrinsic(b, "fabs", x.type, x)
    return b.select(b.icmp_signed("<", x, constant(x, 0)), b.sub(constant(x, 0), x), x)


@operation("min", "tt:t")
@operation("max", "tt:t")
def _extreme(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    if _type(i).is_float:  # a NaN operand gives the other one
        return intrinsic(b, f"{i.parts[0]}num", x.type, x, y)
    sign = "s" if _type(i).is_signed else "u"
    return intrinsic(b, f"{sign}{i.parts[0]}", x.type, x, y)


@operation("fma", "ttt:t")
@operation("mad", "ttt:t")
@operation("mad.lo", "ttt:t")
def _multiply_add(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    if _type(i).is_float:
        return intrinsic(b, "fma", x.type, x, y, z)
    return b.add(b.mul(x, y), z)


def _widened(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    wide = same_shape(x, ir.IntType(2 * _type(i).bits))
    return b.sext(x, wide) if _type(i).is_signed else b.zext(x, wide)


@operation("mul.wide", "tt:w")
def _multiply_wide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    return b.mul(_widened(b, i, x), _widened(b, i, y))


@operation("mad.wide", "ttw:w")
def _multiply_add_wide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    return b.add(_multiply_wide(b, i, x, y), z)


@operation("mul.hi", "tt:t")
def _multiply_high(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    wide = _multiply_wide(b, i, x, y)
    return b.trunc(b.lshr(wide, constant(wide, _type(i).bits)), x.type)


@operation("mad.hi", "ttt:t")
def _multiply_add_high(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    return b.add(_multiply_high(b, i, x, y), z)


@operation("div", "tt:t")
@operation("rem", "tt:t")
def _divide(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    if _type(i).is_float:
        return b.fdiv(x, y)
    # The host traps on x/0 and on the lowest number divided by -1; a GPU gives some number.
    divides = i.parts[0] == "div"
    zero = b.icmp_unsigned("==", y, constant(y, 0))
    safe = b.select(zero, constant(y, 1), y)
    if not _type(i).is_signed:
        quotient = b.udiv(x, safe) if divides else b.urem(x, safe)
    else:
        minus_one = b.icmp_signed("==", y, constant(y, -1))
        safe = b.select(minus_one, constant(y, 1), safe)
        quotient = b.sdiv(x, safe) if divides else b.srem(x, safe)
        if divides:
            quotient = b.select(minus_one, b.sub(constant(x, 0), x), quotient)
    return b.select(zero, constant(x, -1) if divides else x, quotient)


@operation("shl", "tu:t")
@operation("shr", "tu:t")
def _shift(b: ir.IRBuilder, i: Instruction, x: Value, amount: Value) -> Value:
    bits = _type(i).bits
    arithmetic = i.parts[0] == "shr" and _type(i).is_signed
    limit = constant(amount, bits - 1)
    in_range = b.icmp_unsigned("<=", amount, limit)
    amount = b.select(in_range, amount, limit)  # amounts beyond the width act as the width
    amount = _resized(b, amount, x)
    if arithmetic:
        return b.ashr(x, amount)
    shifted = b.shl(x, amount) if i.parts[0] == "shl" else b.lshr(x, amount)
    return b.select(in_range, shifted, constant(x, 0))


def _resized(b: ir.IRBuilder, x: Value, like: Value) -> Value:
    """The unsigned integer `x` at the width of `like`."""
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
    return ir.Constant(same_shape(like, ir.IntType(32)), None)


@operation("brev", "t:t")
def _reverse_bits(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return intrinsic(b, "bitreverse", x.type, x)


@operation("bfe", "tuu:t")
def _extract_bits(b: ir.IRBuilder, i: Instruction, x: Value, start: Value, length: Value) -> Value:
    """Bits [start, start + length) of x, sign-extended for signed types; both counts are taken modulo 256."""
    bits = _type(i).bits
    start, length = (_resized(b, b.and_(n, constant(n, 255)), x) for n in (start, length))
    signed = _type(i).is_signed
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
    bits = _type(i).bits
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


@operation("prmt", "ttu:t")
def _permute_bytes(b: ir.IRBuilder, i: Instruction, low: Value, high: Value, selector: Value) -> Value:
    """Four bytes picked from eight, each by a nibble of the selector whose top bit asks for the byte's
    sign.
    """
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
def _logic_of_three(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value, table: Value) -> Value:
    """Any bitwise function of three operands, from its truth table (an immediate)."""
    element = table.constant[0] if isinstance(table.type, ir.VectorType) else table
    result = constant(x, 0)
    for row in range(8):
        if element.constant >> row & 1:
            term = constant(x, -1)
            for operand, bit in ((x, 4), (y, 2), (z, 1)):
                term = b.and_(term, operand if row & bit else b.not_(operand))
            result = b.or_(result, term)
    return result


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_COMPARISONS = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def compare(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """The comparison named by the instruction's second part, for the type it names last."""
    name, kind = i.parts[1], _kind("f", i)
    if kind.is_float:
        if name in ("num", "nan"):
            return b.fcmp_ordered("ord", x, y) if name == "num" else b.fcmp_unordered("uno", x, y)
        if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
            return b.fcmp_unordered(_COMPARISONS[name[:2]], x, y)
        # `ne` is ordered in PTX: false where an operand is NaN
        return b.fcmp_ordered(_COMPARISONS[name], x, y)
    if name in _UNSIGNED_COMPARISONS or not kind.is_signed:
        return b.icmp_unsigned(_UNSIGNED_COMPARISONS.get(name) or _COMPARISONS[name], x, y)
    return b.icmp_signed(_COMPARISONS[name], x, y)


@operation("setp", "tt:p")
def _set_predicate(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, other: Value = None) -> Value:
    result = compare(b, i, x, y)
    return (
        result
        if other is None
        else getattr(b, {"and": "and_", "or": "or_", "xor": "xor"}[i.parts[2]])(result, other)
    )


@operation("set", "ff:d")
def _set(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    holds, kind = compare(b, i, x, y), _kind("d", i)
    to = same_shape(x, kind.llvm)
    return b.uitofp(holds, to) if kind.is_float else b.sext(holds, to)


@operation("selp", "ttp:t")
def _select(b: ir.IRBuilder, _i: Instruction, x: Value, y: Value, p: Value) -> Value:
    return b.select(p, x, y)


@operation("slct", "ddf:d")
def _select_by_sign(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    zero = constant(z, 0)
    return b.select(
        b.fcmp_ordered(">=", z, zero) if _kind("f", i).is_float else b.icmp_signed(">=", z, zero), x, y
    )


_TO_INTEGER = {"rzi": "trunc", "rni": "roundeven", "rmi": "floor", "rpi": "ceil"}


@operation("cvt", "f:d")
def _convert(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    to, from_ = _kind("d", i), _kind("f", i)
    target = same_shape(x, to.llvm)
    if from_.is_float and to.is_float:
        return _convert_float(b, i, x, target)
    if from_.is_float:
        mode = next(part for part in i.parts if part in _TO_INTEGER)
        rounded = intrinsic(b, _TO_INTEGER[mode], x.type, x)
        name = "fptosi.sat" if to.is_signed else "fptoui.sat"  # out of range saturates, NaN gives 0
        return intrinsic(b, name, target, rounded, overloads=(target, x.type))
    if to.is_float:
        return b.sitofp(x, target) if from_.is_signed else b.uitofp(x, target)
    if "sat" in i.parts:
        x = _saturated(b, x, from_, to)
    if to.bits > from_.bits:
        return b.sext(x, target) if from_.is_signed else b.zext(x, target)
    return b.trunc(x, target) if to.bits < from_.bits else x


def _convert_float(b: ir.IRBuilder, i: Instruction, x: Value, target: ir.Type) -> Value:
    to, from_ = _kind("d", i), _kind("f", i)
    if to.bits == from_.bits:
        mode = next((part for part in i.parts if part in _TO_INTEGER), None)
        x = intrinsic(b, _TO_INTEGER[mode], x.type, x) if mode else x
    else:
        x = b.fptrunc(x, target) if to.bits < from_.bits else b.fpext(x, target)
    return _clamped_to_unit(b, x) if "sat" in i.parts else x


def _clamped_to_unit(b: ir.IRBuilder, x: Value) -> Value:
    return intrinsic(
        b, "minnum", x.type, intrinsic(b, "maxnum", x.type, x, constant(x, 0.0)), constant(x, 1.0)
    )


def _saturated(b: ir.IRBuilder, x: Value, from_: Kind, to: Kind) -> Value:
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.is_signed else (0, (1 << to.bits) - 1)
    low = max(low, -(1 << from_.bits - 1) if from_.is_signed else 0)
    high = min(high, (1 << from_.bits - from_.is_signed) - 1)
    sign = "s" if from_.is_signed else "u"
    return intrinsic(
        b, f"{sign}min", x.type, intrinsic(b, f"{sign}max", x.type, x, constant(x, low)), constant(x, high)
    )


@operation("rcp", "t:t")
def _reciprocal(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return b.fdiv(constant(x, 1.0), x)


@operation("sqrt", "t:t")
def _square_root(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return intrinsic(b, "sqrt", x.type, x)


@operation("rsqrt", "t:t")
def _reciprocal_square_root(b: ir.IRBuilder, _i: Instruction, x: Value) -> Value:
    return b.fdiv(constant(x, 1.0), intrinsic(b, "sqrt", x.type, x))


def _math(name: str) -> Emit:
    return lambda b, _i, x: intrinsic(b, name, x.type, x)


for _ptx, _llvm in {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh"}.items():
    OPERATIONS[_ptx] = Operation("t:t", _math(_llvm))


@operation("copysign", "tt:t")
def _copy_sign(b: ir.IRBuilder, _i: Instruction, sign: Value, magnitude: Value) -> Value:
    return intrinsic(b, "copysign", sign.type, magnitude, sign)
