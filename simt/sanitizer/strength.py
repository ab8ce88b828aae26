"""Find the instructions that are atomic or ordered by the memory model: two of these do not race."""

from llvmlite import ir

from simt.code.abi import I8
from simt.lowering.spinning import polls
from simt.ptx import Address, Instruction, Kernel, Operand, Register
from simt.sanitizer.shadow import ATOMIC, POLL, STRONG

_ORDERED = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")


def is_ordered(instruction: Instruction) -> bool:
    """Say whether the memory model orders an access."""
    return not set(_ORDERED).isdisjoint(instruction.parts)


def strong_table(module: ir.Module, kernel: Kernel) -> list[int]:
    """Add a table of the instructions that are atomic or ordered (volatile, relaxed, ...), and return it.

    A load from an address that the kernel also changes atomically counts as atomic. What it reads is a first
    guess, which the atomic operation then confirms (the compare-and-swap loop of the CUDA C++ Programming
    Guide, "Atomic Functions").
    """
    kinds = strengths(kernel)
    table = ir.GlobalVariable(module, ir.ArrayType(I8, len(kinds)), "is_strong")
    table.initializer = ir.Constant(table.value_type, [ir.Constant(I8, kind) for kind in kinds])
    table.global_constant, table.linkage = True, "internal"
    return kinds


def strengths(kernel: Kernel) -> list[int]:
    """Return the bits ATOMIC, STRONG and POLL of each instruction."""
    origins = _origins(kernel)
    atomic = {_place(i, origins) for i in kernel.code if i.family.is_atomic}
    kinds = []
    waiting = polls(kernel)
    for place, i in enumerate(kernel.code):
        is_guess = i.is_access and not i.family.writes and _place(i, origins) in atomic
        is_atomic = i.family.is_atomic or is_guess
        kinds.append(ATOMIC * is_atomic | STRONG * is_ordered(i) | POLL * (place in waiting))
    return kinds


def _origins(kernel: Kernel) -> dict[str, Operand]:
    """Map each register that copies another (the same address in another space) to its original."""
    copies: dict[str, Operand] = {}
    written: set[str] = set()
    for instruction in kernel.code:
        for register in instruction.results:
            if instruction.family.is_copy and register.name not in written:
                copies[register.name] = instruction.operands[1]
            else:
                copies.pop(register.name, None)
            written.add(register.name)
    return copies


def _place(instruction: Instruction, origins: dict[str, Operand]) -> tuple[Operand, int]:
    """Return the base and offset of an access."""
    address = next(o for o in instruction.operands if isinstance(o, Address))
    base: Operand = address.base
    while isinstance(base, Register) and base.name in origins:
        base = origins[base.name]
    return base, address.offset
