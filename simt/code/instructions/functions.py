"""Roots, reciprocals and the elementary functions."""

import math

from llvmlite import ir

from simt.code.instructions.table import Emit, operation
from simt.code.instructions.values import Value, constant, intrinsic
from simt.ptx import Instruction


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
    operation(_ptx, "t:t")(_math(_llvm))


@operation("sin.2pi cos.2pi", "t:t")
def _of_turns(b: ir.IRBuilder, i: Instruction, x: Value) -> Value:
    """Return the sine or cosine of x turns, that is of 2 pi x; whole turns are subtracted exactly."""
    part = b.fsub(x, intrinsic(b, "roundeven", x.type, x))
    return intrinsic(b, i.parts[0], x.type, b.fmul(part, constant(x, 2 * math.pi)))


@operation("div.approx", "tt:t")
def _divide_roughly(b: ir.IRBuilder, _i: Instruction, x: Value, y: Value) -> Value:
    """Divide through the reciprocal, which is 0 for |y| above 2^126 (PTX ISA, div.approx.f32)."""
    large = b.fcmp_ordered(">", intrinsic(b, "fabs", y.type, y), constant(y, 2.0**126))
    zero = intrinsic(b, "copysign", y.type, constant(y, 0.0), y)
    return b.select(large, b.fmul(x, zero), b.fdiv(x, y))


@operation("copysign", "tt:t")
def _copy_sign(b: ir.IRBuilder, _i: Instruction, sign: Value, magnitude: Value) -> Value:
    return intrinsic(b, "copysign", sign.type, magnitude, sign)
