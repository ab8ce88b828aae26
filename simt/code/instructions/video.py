"""Video instructions: `vadd4`, `vabsdiff2` and others that work on a register's bytes or half-words.

Reference: PTX ISA, 9.7.17 (video) and 9.7.18 (SIMD video). The scalar ones (`vadd.s32.u32.s32`) take whole
registers or one part of them.
"""

import re
from collections.abc import Callable
from functools import partial

from llvmlite import ir

from simt.code.instructions.comparisons import compared
from simt.code.instructions.dots import part
from simt.code.instructions.table import operation
from simt.code.instructions.values import Value, constant, intrinsic, same_shape
from simt.ptx import Instruction

I64, I128 = ir.IntType(64), ir.IntType(128)


def _average(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    """Return (x + y) / 2, with halves rounded away from zero."""
    total = b.add(x, y)
    one = constant(total, 1)
    up = b.select(b.icmp_signed("<", total, constant(total, 0)), constant(total, 0), one)
    return b.ashr(b.add(total, up), one)


def _larger(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed(">", x, y), x, y)


def _smaller(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


def _shift(b: ir.IRBuilder, left: bool, wrap: bool, x: Value, amount: Value) -> Value:
    limit = constant(amount, 31 if wrap else 32)
    amount = b.and_(amount, limit) if wrap else _smaller(b, amount, limit)
    return b.shl(x, amount) if left else b.ashr(x, amount)


def _combined(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    """Compute the operation on integers wide enough for any result."""
    name = re.sub(r"\d$", "", i.parts[0])
    if name == "vset":
        holds = compared(b, i.parts[-1] if i.parts[-1] in _COMPARISONS else i.parts[-2], False, True, x, y)
        return b.zext(holds, x.type)
    if name in ("vshl", "vshr"):
        return _shift(b, name == "vshl", "wrap" in i.parts, x, y)
    simple: dict[str, Callable[[], Value]] = {
        "vadd": lambda: b.add(x, y),
        "vsub": lambda: b.sub(x, y),
        "vabsdiff": lambda: _larger(b, b.sub(x, y), b.sub(y, x)),
        "vmin": lambda: _smaller(b, x, y),
        "vmax": lambda: _larger(b, x, y),
        "vavrg": lambda: _average(b, x, y),
        "vmad": lambda: b.mul(x, y),
    }
    return simple[name]()


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _clamped(b: ir.IRBuilder, x: Value, type_: str, bits: int) -> Value:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    return _larger(b, _smaller(b, x, constant(x, high)), constant(x, low))


def _types(i: Instruction) -> list[str]:
    """Return the types of the result and the two operands; a comparison's result is unsigned."""
    types = [part for part in i.parts if part in ("u32", "s32")]
    return types if len(types) == 3 else ["u32", *types]


def _simd(width: int, b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    """Put one result per part in place of c's parts, or with `.add` sum them, and c."""
    result, *operands = _types(i)
    wide = same_shape(x, I64)
    total, packed = z, constant(x, 0)
    for index in range(32 // width):
        parts = [
            (b.sext if type_[0] == "s" else b.zext)(part(b, value, index, width, type_[0] == "s"), wide)
            for value, type_ in zip((x, y), operands, strict=True)
        ]
        value = _combined(b, i, *parts)
        value = b.trunc(_clamped(b, value, result, width) if "sat" in i.parts else value, x.type)
        total = b.add(total, value)
        value = b.and_(value, constant(value, (1 << width) - 1))
        packed = b.or_(packed, b.shl(value, constant(value, width * index)))
    return total if "add" in i.parts else packed


def _scalar(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value = None) -> Value:
    """Emit `vadd.s32.s32.u32[.sat][.add|.min|.max] d, a, b[, c]`; products `vmad` add c themselves."""
    result, *operands = _types(i)
    # a sum of products, or a number shifted by 32, has up to 65 bits
    long = "sat" in i.parts and i.parts[0] in ("vshl", "vmad")
    wide = same_shape(x, I128 if long else I64)
    x, y = (
        (b.sext if type_[0] == "s" else b.zext)(value, wide)
        for value, type_ in zip((x, y), operands, strict=True)
    )
    value = _combined(b, i, x, y)
    if i.parts[0] == "vmad":
        value = b.add(value, (b.sext if result[0] == "s" else b.zext)(z, wide))
        if "po" in i.parts:  # plus one
            value = b.add(value, constant(value, 1))
        shift = next((int(part[3:]) for part in i.parts if part.startswith("shr")), 0)
        value = b.ashr(value, constant(value, shift))
    value = _clamped(b, value, result, 32) if "sat" in i.parts else value
    value = b.trunc(value, same_shape(x, ir.IntType(32)))
    second = next((name for name in ("add", "min", "max") if name in i.parts), None)
    if z is None or i.parts[0] == "vmad" or second is None:
        return value
    sign = "s" if result[0] == "s" else "u"
    return b.add(value, z) if second == "add" else intrinsic(b, f"{sign}{second}", value.type, value, z)


for _name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vavrg"):
    operation(f"{_name}4", "uuu:u")(partial(_simd, 8))
    operation(f"{_name}2", "uuu:u")(partial(_simd, 16))
for _name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr"):
    operation(_name, "uu:u")(_scalar)
    for _second in ("add", "min", "max"):
        operation(f"{_name}.{_second}", "uuu:u")(_scalar)
operation("vmad", "uuu:u")(_scalar)
