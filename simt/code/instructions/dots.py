"""Sums of products of bytes and half-words: `dp4a`, `dp2a`.

Reference: PTX ISA, 9.7.1.23 and 9.7.1.24.
"""

from llvmlite import ir

from simt.code.instructions.table import operation
from simt.code.instructions.values import Value, constant
from simt.ptx import Instruction


def part(b: ir.IRBuilder, x: Value, index: int, bits: int, signed: bool) -> Value:
    """Return part `index` of a 32-bit register, `bits` wide, as a 32-bit integer."""
    top = b.shl(x, constant(x, 32 - bits * (index + 1)))
    return (b.ashr if signed else b.lshr)(top, constant(x, 32 - bits))


def _signs(i: Instruction) -> list[bool]:
    """Say for the first and the second operand whether their elements are signed."""
    return [type_[0] == "s" for type_ in i.parts[-2:]]


@operation("dp4a", "tft:t")
def _dot_of_four(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, total: Value) -> Value:
    x_signed, y_signed = _signs(i)
    for index in range(4):
        total = b.add(total, b.mul(part(b, x, index, 8, x_signed), part(b, y, index, 8, y_signed)))
    return total


@operation("dp2a", "tft:t")
def _dot_of_two(b: ir.IRBuilder, i: Instruction, x: Value, y: Value, total: Value) -> Value:
    """Multiply two half-words by the lower (`.lo`) or upper (`.hi`) two bytes, and add."""
    x_signed, y_signed = _signs(i)
    first = 2 if "hi" in i.parts else 0
    for index in range(2):
        total = b.add(total, b.mul(part(b, x, index, 16, x_signed), part(b, y, first + index, 8, y_signed)))
    return total
