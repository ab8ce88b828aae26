"""Sums and products that pass on a carry: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.

The parser gives the carry its own register: a second result of `.cc` forms, and a last operand of `addc`,
`subc` and `madc`.
"""

from llvmlite import ir

from simt.code.instructions.arithmetic import multiply_high
from simt.code.instructions.table import operation, type_of
from simt.code.instructions.values import Value, constant, same_shape
from simt.ptx import Instruction


def _carrying(b: ir.IRBuilder, i: Instruction, *operands: Value) -> Value | tuple[Value, Value]:
    """Return the sum and, for `.cc` forms, its carry (for a difference, its borrow)."""
    bits, takes_carry = type_of(i).bits, i.parts[0] in ("addc", "subc", "madc")
    values, carry = (operands[:-1], operands[-1]) if takes_carry else (operands, None)
    wide = same_shape(values[0], ir.IntType(2 * bits))
    if i.parts[0].startswith("mad"):
        x, y, addend = values
        first = multiply_high(b, i, x, y) if "hi" in i.parts else b.mul(x, y)
    else:
        first, addend = values
    combine = b.sub if i.parts[0].startswith("sub") else b.add
    total = combine(b.zext(first, wide), b.zext(addend, wide))
    if carry is not None:
        total = combine(total, b.zext(carry, wide))
    result = b.trunc(total, values[0].type)
    if "cc" not in i.parts:
        return result
    beyond = b.and_(b.lshr(total, constant(total, bits)), constant(total, 1))
    return result, b.trunc(beyond, same_shape(result, ir.IntType(1)))


for _name, _signature in {"add": "tt:t", "sub": "tt:t", "mad": "ttt:t"}.items():
    operation(f"{_name}.cc", _signature)(_carrying)
    operation(f"{_name}c {_name}c.cc", _signature.replace(":", "p:"))(_carrying)
