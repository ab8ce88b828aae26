"""Conversions between types."""

from __future__ import annotations

from llvmlite import ir

from labkit.simt.instructions.table import Kind, Value, constant, intrinsic, kind_of, operation, same_shape
from labkit.simt.ptx import Instruction

_TO_INTEGER = {"rzi": "trunc", "rni": "roundeven", "rmi": "floor", "rpi": "ceil"}


@operation("cvt", "f:d")
def _convert(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    to, from_ = kind_of("d", i), kind_of("f", i)
    target = same_shape(x, to.llvm)
    if from_.is_float and to.is_float:
        return _convert_float(b, i, x, target)
    if from_.is_float:
        mode = next(part for part in i.parts if part in _TO_INTEGER)
        rounded = intrinsic(b, _TO_INTEGER[mode], x.type, x)
        name = "fptosi.sat" if to.is_signed else "fptoui.sat"  # out of range saturates
        value = intrinsic(b, name, target, rounded, overloads=(target, x.type))
        if max(to.bits, from_.bits) < 64:
            return value  # a NaN gives 0
        # With 64 bits on either side an H200 gives the top bit alone for a NaN, though the manual says 0.
        top = constant(value, 1 << max(to.bits, 32) - 1)
        return b.select(b.fcmp_unordered("uno", x, x), top, value)
    if to.is_float:
        return b.sitofp(x, target) if from_.is_signed else b.uitofp(x, target)
    if "sat" in i.parts:
        x = _saturated(b, x, from_, to)
    if to.bits > from_.bits:
        return b.sext(x, target) if from_.is_signed else b.zext(x, target)
    return b.trunc(x, target) if to.bits < from_.bits else x


def _convert_float(b: ir.IRBuilder, i: Instruction, x: Value, target: ir.Type) -> Value:
    to, from_ = kind_of("d", i), kind_of("f", i)
    if to.bits == from_.bits:
        mode = next((part for part in i.parts if part in _TO_INTEGER), None)
        x = intrinsic(b, _TO_INTEGER[mode], x.type, x) if mode else x
    else:
        x = b.fptrunc(x, target) if to.bits < from_.bits else b.fpext(x, target)
    return x


def _saturated(b: ir.IRBuilder, x: Value, from_: Kind, to: Kind) -> Value:
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.is_signed else (0, (1 << to.bits) - 1)
    low = max(low, -(1 << from_.bits - 1) if from_.is_signed else 0)
    high = min(high, (1 << from_.bits - from_.is_signed) - 1)
    sign = "s" if from_.is_signed else "u"
    return intrinsic(
        b, f"{sign}min", x.type, intrinsic(b, f"{sign}max", x.type, x, constant(x, low)), constant(x, high)
    )
