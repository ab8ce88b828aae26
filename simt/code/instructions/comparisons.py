"""Comparisons and selections."""

from llvmlite import ir

from simt.code.instructions.table import kind_of, operation
from simt.code.instructions.values import Value, constant, intrinsic, same_shape
from simt.ptx import Instruction, Vector

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_COMPARISONS = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def compare(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Emit the comparison named by the instruction's second part, for the type it names last."""
    kind = kind_of("f", i)
    return compared(b, i.parts[1], kind.is_float, kind.is_signed, x, y)


def compared(b: ir.IRBuilder, name: str, is_float: bool, is_signed: bool, x: Value, y: Value) -> Value:
    """Emit PTX's comparison `name` (eq, ltu, nan, hs, ...)."""
    if is_float:
        if name in ("num", "nan"):
            return b.fcmp_ordered("ord", x, y) if name == "num" else b.fcmp_unordered("uno", x, y)
        if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
            return b.fcmp_unordered(_COMPARISONS[name[:2]], x, y)
        # `ne` is ordered in PTX: false where an operand is NaN
        return b.fcmp_ordered(_COMPARISONS[name], x, y)
    if name in _UNSIGNED_COMPARISONS or not is_signed:
        return b.icmp_unsigned(_UNSIGNED_COMPARISONS.get(name) or _COMPARISONS[name], x, y)
    return b.icmp_signed(_COMPARISONS[name], x, y)


@operation("setp", "tt?p:p")  # setp.lt.and: the third operand is joined to the comparison
def _set_predicate(
    b: ir.IRBuilder, i: Instruction, x: Value, y: Value, other: Value = None
) -> Value | tuple[Value, Value]:
    """Emit `setp.lt.s32 p, x, y`, or `setp.lt.s32 p|q, x, y`: q is of the opposite comparison."""
    holds = compare(b, i, x, y)
    if isinstance(i.operands[0], Vector):
        return joined(b, i, holds, other), joined(b, i, b.not_(holds), other)
    return joined(b, i, holds, other)


def joined(b: ir.IRBuilder, i: Instruction, holds: Value, other: Value) -> Value:
    """Join a comparison to another predicate, if there is one, as the instruction's third part says."""
    if other is None:
        return holds
    return getattr(b, {"and": "and_", "or": "or_", "xor": "xor"}[i.parts[2]])(holds, other)


@operation("set", "ff:d")
def _set(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    holds, kind = compare(b, i, x, y), kind_of("d", i)
    to = same_shape(x, kind.llvm)
    return b.uitofp(holds, to) if kind.is_float else b.sext(holds, to)


@operation("selp", "ttp:t")
def _select(b: ir.IRBuilder, _i: Instruction, x: Value, y: Value, p: Value) -> Value:
    return b.select(p, x, y)


@operation("testp", "t:p")
def _test_property(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Emit `testp.finite`, `infinite`, `number`, `notanumber`, `normal` or `subnormal`."""
    least = 2.0**-126 if kind_of("t", i).bits == 32 else 2.0**-1022
    size = intrinsic(b, "fabs", x.type, x)
    infinity, normal = constant(x, float("inf")), b.fcmp_ordered(">=", size, constant(x, least))
    finite = b.fcmp_ordered("<", size, infinity)
    return {
        "finite": lambda: finite,
        "infinite": lambda: b.fcmp_ordered("==", size, infinity),
        "number": lambda: b.fcmp_ordered("ord", x, x),
        "notanumber": lambda: b.fcmp_unordered("uno", x, x),
        "normal": lambda: b.and_(finite, normal),
        # zero is not "subnormal" in the manual's sense
        "subnormal": lambda: b.and_(b.not_(normal), b.fcmp_ordered(">", size, constant(x, 0.0))),
    }[i.parts[1]]()


@operation("slct", "ddf:d")
def _select_by_sign(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    zero = constant(z, 0)
    return b.select(
        b.fcmp_ordered(">=", z, zero) if kind_of("f", i).is_float else b.icmp_signed(">=", z, zero), x, y
    )
