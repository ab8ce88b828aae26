"""Float32 sums and products rounded down, up or towards zero (`.rm`, `.rp`, `.rz`).

The result to nearest is off by less than a step; the sign of its error says whether to take the neighbour. In
float64 a product of two float32 is exact, and so is the error of a sum (Knuth's two-sum).
"""

from __future__ import annotations

from llvmlite import ir

from labkit.simt.instructions.table import OPERATIONS, Operation, Value, constant, intrinsic, same_shape
from labkit.simt.ptx import Instruction


def _directed(b: ir.IRBuilder, i: Instruction, product: Value, addend: Value) -> Value:
    """Product + addend, both float64 and exact, as float32 rounded in the direction the instruction names."""
    single = same_shape(product, ir.FloatType())
    total = b.fadd(product, addend)
    part = b.fsub(total, product)
    rest = b.fadd(b.fsub(product, b.fsub(total, part)), b.fsub(addend, part))  # total + rest is exact
    nearest = b.fptrunc(total, single)
    error = b.fadd(b.fsub(total, b.fpext(nearest, total.type)), rest)
    zero = constant(error, 0.0)
    too_high, too_low = b.fcmp_ordered("<", error, zero), b.fcmp_ordered(">", error, zero)
    negative = b.fcmp_ordered("<", total, zero)
    down = {
        "rm": too_high,
        "rp": b.and_(too_high, constant(too_high, 0)),
        "rz": b.and_(too_high, b.not_(negative)),
    }
    up = {"rm": b.and_(too_low, constant(too_low, 0)), "rp": too_low, "rz": b.and_(too_low, negative)}
    mode = next(part for part in i.parts if part in down)
    return b.select(down[mode], _next(b, nearest, -1), b.select(up[mode], _next(b, nearest, 1), nearest))


def _next(b: ir.IRBuilder, x: Value, direction: int) -> Value:
    """The neighbour of a float32 below (-1) or above (1)."""
    bits = b.bitcast(x, same_shape(x, ir.IntType(32)))
    negative = b.icmp_signed("<", bits, constant(bits, 0))
    away = constant(bits, 1)
    step = b.select(negative, constant(bits, -direction), constant(bits, direction))
    is_zero = b.fcmp_ordered("==", x, constant(x, 0.0))
    smallest = b.or_(away, constant(bits, (1 << 31) if direction < 0 else 0))
    return b.bitcast(b.select(is_zero, smallest, b.add(bits, step)), x.type)


def _wide(b: ir.IRBuilder, x: Value) -> Value:
    return b.fpext(x, same_shape(x, ir.DoubleType()))


def _add(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    return _directed(b, i, _wide(b, x), _wide(b, y))


def _subtract(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    return _directed(b, i, _wide(b, x), b.fneg(_wide(b, y)))


def _multiply(b: ir.IRBuilder, i: Instruction, x: Value, y: Value) -> Value:
    product = b.fmul(_wide(b, x), _wide(b, y))
    return _directed(b, i, product, intrinsic(b, "copysign", product.type, constant(product, 0.0), product))


def _multiply_add(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, z: Value) -> Value:
    return _directed(b, i, b.fmul(_wide(b, x), _wide(b, y)), _wide(b, z))


for _mode in ("rm", "rp", "rz"):
    OPERATIONS[f"add.{_mode}"] = Operation("tt:t", _add)
    OPERATIONS[f"sub.{_mode}"] = Operation("tt:t", _subtract)
    OPERATIONS[f"mul.{_mode}"] = Operation("tt:t", _multiply)
    OPERATIONS[f"fma.{_mode}"] = Operation("ttt:t", _multiply_add)
