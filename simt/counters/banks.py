"""Count the bank conflicts of an access to shared memory: ahead, where offsets are known, or in code.

Rules: CUDA C++ Programming Guide, "Shared Memory"; Nsight Compute documentation, "Memory Tables".
"""

from collections.abc import Sequence

from llvmlite import ir

from simt.code.abi import I8, I32, I64, Value
from simt.code.checked_access import LANES_64, counted_loop, defined_once, each_distinct
from simt.code.instructions import constant, intrinsic
from simt.common.limits import WARP

BANKS, BANK_BYTES = 32, 4


def bank_conflicts(addresses: Sequence[int], size: int) -> int:
    """Count the extra passes over the banks that a warp's access takes, with `size` bytes per lane.

    In each pass a bank delivers one 4-byte word. Accesses of 8 bytes go by half-warps and of 16 by
    quarter-warps.
    """
    words_each = max(1, size // BANK_BYTES)
    lanes_each = len(addresses) // words_each
    extra = 0
    for first in range(0, len(addresses), lanes_each):
        words = {
            a // BANK_BYTES + i for a in addresses[first : first + lanes_each] for i in range(words_each)
        }
        in_bank = [0] * BANKS
        for word in words:
            in_bank[word % BANKS] += 1
        extra += max(in_bank) - 1
    return extra


def count_bank_conflicts(b: ir.IRBuilder, places: Value, mask: Value, size: Value) -> Value:
    """Emit a call that counts as `bank_conflicts` does, for addresses known only when the kernel runs."""
    type_ = ir.FunctionType(I64, [LANES_64, I32, I64])
    function = defined_once(b.module, "bank_conflicts", type_, _emit_bank_conflicts)
    return b.call(function, [places, mask, size])


def _emit_bank_conflicts(function: ir.Function) -> None:
    places, mask, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    words_each = words_of(b, size)
    passes = sum_of_passes(b, places, mask, words_each, words_each, least=1)
    b.ret(b.sub(passes, words_each))


def words_of(b: ir.IRBuilder, size: Value) -> Value:
    """Emit how many words of a bank `size` bytes are."""
    return b.lshr(b.add(size, ir.Constant(I64, BANK_BYTES - 1)), ir.Constant(I64, 2))


def sum_of_passes(
    b: ir.IRBuilder, places: Value, mask: Value, words_each: Value, parts: Value, least: int
) -> Value:
    """Emit the sum over the parts of a warp of how many words the busiest bank has, `least` at least.

    Each lane has `words_each` words.
    """
    lanes_each = b.trunc(b.udiv(ir.Constant(I64, WARP), parts), I32)
    part = b.lshr(ir.Constant(I32, -1), b.sub(ir.Constant(I32, WARP), lanes_each))
    words = b.lshr(places, constant(places, 2))
    banks_type = ir.ArrayType(I8, BANKS)
    banks, total, worst = b.alloca(banks_type), b.alloca(I64), b.alloca(I8)
    b.store(ir.Constant(I64, 0), total)
    with counted_loop(b, b.trunc(parts, I32)) as index:
        b.store(ir.Constant(banks_type, None), banks)
        b.store(ir.Constant(I8, least), worst)
        lanes = b.and_(mask, b.shl(part, b.mul(index, lanes_each)))
        with each_distinct(b, words, lanes) as word, counted_loop(b, words_each) as extra:
            bank = b.and_(b.add(word, extra), ir.Constant(I64, BANKS - 1))
            slot = b.gep(banks, [ir.Constant(I64, 0), bank])
            passes = b.add(b.load(slot, typ=I8), ir.Constant(I8, 1))
            b.store(passes, slot)
            b.store(intrinsic(b, "umax", I8, passes, b.load(worst, typ=I8)), worst)
        b.store(b.add(b.load(total, typ=I64), b.zext(b.load(worst, typ=I8), I64)), total)
    return b.load(total, typ=I64)
