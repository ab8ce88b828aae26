"""Roots, reciprocals and the elementary functions."""

from __future__ import annotations

from llvmlite import ir

from labkit.simt.instructions.table import OPERATIONS, Emit, Operation, Value, constant, intrinsic, operation
from labkit.simt.ptx import Instruction


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
