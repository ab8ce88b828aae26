"""How many cycles the register file takes to read the operands of each instruction.

Each sub-partition has two banks of registers, of even and of odd numbers. Each bank delivers one register of
a warp per cycle (Huerta et al., "Analyzing Modern NVIDIA GPU cores", 2025, for Ampere; the model takes it to
hold for all GPUs). The assembler marks with `.reuse` what the next instruction finds in a small cache beside
the pipe, one per place of an operand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from simt.compiler.machine_code import Instruction
from simt.sass.opcodes import known

REGISTER = re.compile(r"(?<![A-Z0-9])R(\d+)")


def bank_cycles(instructions: Sequence[Instruction]) -> np.ndarray:
    """Return, by instruction, the cycles of the register file: 1 or more."""
    found = np.ones(len(instructions))
    kept: dict[int, int] = {}
    for number, instruction in enumerate(instructions):
        operands = _read(instruction)
        needed = {
            each
            for place, register in operands.items()
            if kept.get(place) != register
            for each in _registers(instruction, place, register)
        }
        even = sum(each % 2 == 0 for each in needed)
        found[number] = max(1, even, len(needed) - even)
        kept = {
            place: register for place, register in operands.items() if ".reuse" in instruction.operands[place]
        }
    return found


def _read(instruction: Instruction) -> dict[int, int]:
    """Return the registers that arithmetic reads, by the place of the operand."""
    if not known(instruction.opcode).reads_together:
        return {}
    first = next((i for i, each in enumerate(instruction.operands) if REGISTER.search(each)), 0)
    first += 0 if "SETP" in instruction.opcode else 1  # its results are predicates
    places = range(first, len(instruction.operands))
    matches = ((place, REGISTER.search(instruction.operands[place])) for place in places)
    return {place: int(match[1]) for place, match in matches if match}


def _registers(instruction: Instruction, place: int, register: int) -> tuple[int, ...]:
    """Return the registers of an operand: two of 64 bits."""
    last = place == len(instruction.operands) - 1
    is_wide = instruction.opcode.startswith("D") or ("WIDE" in instruction.opcode and last)
    return (register, register + 1) if is_wide else (register,)
