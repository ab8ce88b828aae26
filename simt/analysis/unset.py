"""Registers that may be read before they are written, as in `float sum; sum += x;`."""

from simt.analysis.blocks import Block
from simt.ptx import Instruction


def may_be_unset(blocks: list[Block]) -> dict[str, Instruction]:
    """Find the registers that some path reads before it writes them, and those computed from them.

    Each has the first instruction that uses the value that was never set. What memory or another lane gives
    counts as set, but for products of matrices, which join the values of all lanes. `find_live_registers` has
    run.
    """
    code = [instruction for block in blocks for instruction in block.code]
    unset: dict[str, Instruction] = {}
    for instruction in code:
        for register in instruction.sources:
            if register.name in blocks[0].live_in:
                unset.setdefault(register.name, instruction)
    size = 0
    while size != len(unset):
        size = len(unset)
        for instruction in code:
            origins = [unset[register.name] for register in instruction.sources if register.name in unset]
            if origins and takes_on(instruction):
                for register in instruction.results:
                    unset.setdefault(register.name, origins[0])
    return unset


def takes_on(instruction: Instruction) -> bool:
    """Say whether a result counts as set only where the operands are."""
    each_lane = instruction.family.lanes == "each" and not instruction.family.names_lanes
    return (each_lane and not instruction.is_access) or instruction.family.joins_lanes
