"""Find registers that hold a thread's index: it does not wrap round, so widening it is exact.

An unsigned 32-bit sum may wrap round, and then base + lane offset differs before and after widening. A
register that is `threadIdx`, or `blockIdx * blockDim + threadIdx` of one direction, is bounded by the size of
the grid.
"""

from collections import Counter

from simt.common.limits import MAX_THREADS
from simt.ptx import Immediate, Instruction, Kernel, Operand, Register, Symbol

MOST_BLOCKS = (1 << 22) - 1  # per direction: with 1024 threads each, and one more warp, indices fit 32 bits
Meaning = tuple[str, str]  # "tid", "ntid", "ctaid", "first" (of the block) or "index", and the direction


def thread_indices(kernel: Kernel) -> frozenset[str]:
    """Name the registers that hold a thread's index, in a grid of up to MOST_BLOCKS in each direction."""
    times_written = Counter(register.name for i in kernel.code for register in i.results)
    meanings: dict[str, Meaning] = {}
    changed = True
    while changed:
        changed = False
        for instruction in kernel.code:
            written = instruction.results
            if len(written) != 1 or instruction.guard or times_written[written[0].name] > 1:
                continue
            meaning = _meaning(instruction, meanings)
            if meaning and written[0].name not in meanings:
                meanings[written[0].name], changed = meaning, True
    return frozenset(name for name, (what, _) in meanings.items() if what in ("tid", "index"))


def _meaning(instruction: Instruction, meanings: dict[str, Meaning]) -> Meaning | None:
    """Return what an instruction's result means, if it is part of an index."""
    opcode, operands = instruction.opcode, instruction.operands[1:]
    known = [_of(operand, meanings) for operand in operands]
    if opcode in ("mov.u32", "mov.b32"):
        return known[0]
    if opcode in ("mul.lo.s32", "mul.lo.u32"):
        return _first(operands, known)
    if opcode in ("mad.lo.s32", "mad.lo.u32"):
        return _index(_first(operands[:2], known[:2]), known[2])
    if opcode in ("add.s32", "add.u32"):
        return _index(known[0], known[1]) or _index(known[1], known[0])
    return None


def _of(operand: Operand, meanings: dict[str, Meaning]) -> Meaning | None:
    if isinstance(operand, Register):
        return meanings.get(operand.name)
    if isinstance(operand, Symbol):
        what, _, direction = operand.name.lstrip("%").partition(".")
        return (what, direction) if what in ("tid", "ntid", "ctaid") else None
    return None


def _first(operands: tuple[Operand, ...], known: list[Meaning | None]) -> Meaning | None:
    """Recognise a block's first index: blockIdx times blockDim, or times a literal number of threads."""
    for (x, y), other in (((known[0], known[1]), operands[1]), ((known[1], known[0]), operands[0])):
        if x is not None and x[0] == "ctaid":
            written_out = isinstance(other, Immediate) and 0 <= other.value <= MAX_THREADS
            if y == ("ntid", x[1]) or written_out:
                return "first", x[1]
    return None


def _index(x: Meaning | None, y: Meaning | None) -> Meaning | None:
    is_index = x is not None and y is not None and (x[0], y[0], x[1]) == ("first", "tid", y[1])
    return ("index", x[1]) if is_index and x is not None else None
