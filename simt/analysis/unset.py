"""Registers that may be read before they are written, as in `float sum; sum += x;`."""

from simt.analysis.blocks import Block
from simt.ptx import TYPE_BYTES, Instruction


def may_be_unset(blocks: list[Block]) -> dict[str, Instruction]:
    """Find the registers that some path reads before it writes them, and those computed from them.

    Each has the first instruction that uses the value that was never set. What another lane gives counts as
    set, but for products of matrices, which join the values of all lanes. So does what memory gives, unless a
    register that may be unset is stored in memory of that kind. `find_live_registers` has run.
    """
    code = [instruction for block in blocks for instruction in block.code]
    unset: dict[str, Instruction] = {}
    for instruction in code:
        for register in instruction.sources:
            if register.name in blocks[0].live_in:
                unset.setdefault(register.name, instruction)
    size, holding = 0, set[str]()
    while size != len(unset):
        size = len(unset)
        for instruction in code:
            if keeps_copies(instruction) and any(register.name in unset for register in instruction.sources):
                holding.add(instruction.space)
            if loads_copies(instruction, holding):
                for register in instruction.results:
                    unset.setdefault(register.name, instruction)
            origins = [unset[register.name] for register in instruction.sources if register.name in unset]
            if origins and takes_on(instruction):
                for register in instruction.results:
                    unset.setdefault(register.name, origins[0])
    return unset


def takes_on(instruction: Instruction) -> bool:
    """Say whether a result counts as set only where the operands are."""
    each_lane = instruction.family.lanes == "each" and not instruction.family.names_lanes
    return (each_lane and not instruction.is_access) or instruction.family.joins_lanes


def keeps_copies(instruction: Instruction) -> bool:
    """Say whether it is a store to memory of the block or of the thread alone.

    A value that was never set may be stored there, as algorithms do beyond the end of their data: it is used
    where somebody reads it and something depends on it.
    """
    return instruction.parts[0] == "st" and instruction.space in ("shared", "local", "generic")


def loads_copies(instruction: Instruction, holding: set[str]) -> bool:
    """Say whether it loads from memory of a kind that may be `holding` values that were never set.

    Narrow ones are not told from others.
    """
    if instruction.parts[0] != "ld" or not instruction.is_access or TYPE_BYTES[instruction.type] < 4:
        return False
    space = instruction.space
    if space == "generic":
        return bool(holding)
    return space in holding or ("generic" in holding and space in ("shared", "local"))
