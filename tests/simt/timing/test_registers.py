"""Cycles of the register file, by hand: a bank of even and one of odd registers, each with one per cycle."""

import pytest

from simt.compiler.machine_code import Control, Instruction
from simt.timing.registers import bank_cycles

CONTROL = Control(1, False, None, None, ())


def cycles(*lines):
    """Return the cycles of each instruction, which is written as nvdisasm does."""
    return bank_cycles([_instruction(line) for line in lines]).tolist()


def _instruction(line):
    opcode, _, operands = line.partition(" ")
    return Instruction(0, "", opcode, tuple(operands.split(", ")), 0, 0, None, CONTROL)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("FFMA R1, R2, R4, R6", 3),  # all in the even bank
        ("FFMA R1, R3, R5, R7", 3),
        ("FFMA R1, R2, R4, R7", 2),
        ("FFMA R1, R2, R2, R7", 1),  # one register twice is one read
        ("FADD R2, R4, R5", 1),  # the result is written, not read
        ("FFMA R1, R2, c[0x0][0x160], R4", 2),  # a constant is in no bank
        ("FFMA R1, R2, UR4, RZ", 1),  # nor are a uniform register and zero
        ("ISETP.GE.AND P0, PT, R2, R4, PT", 2),  # the first register of a comparison is an operand
    ],
)
def test_a_bank_gives_one_register_per_cycle(line, expected):
    assert cycles(line) == [expected]


def test_reuse_saves_a_read_of_the_next_instruction_at_the_same_place():
    first = "FFMA R1, R2.reuse, R4, R6"
    assert cycles(first, "FFMA R3, R2, R8, R10") == [3, 2]
    assert cycles(first, "FFMA R3, R8, R2, R10") == [3, 3]  # at another place it is read again
    assert cycles(first, "FFMA R3, R2, R8, R10", "FFMA R5, R2, R8, R10") == [3, 2, 3]  # kept once
    assert cycles(first, "LDS R9, [R0]", "FFMA R3, R2, R8, R10") == [3, 1, 3]  # something else came between


@pytest.mark.parametrize(
    "line, expected",
    [
        ("DFMA R8, R2, R4, R6", 3),  # R2 to R7: three in each bank
        ("DADD R8, R2, R4", 2),
        ("IMAD.WIDE R8, R2, R3, R4", 2),  # R2 and R4 are even, R3 and R5 odd
        ("IMAD R8, R2, R3, R4", 2),
    ],
)
def test_operands_of_64_bits_are_two_registers(line, expected):
    assert cycles(line) == [expected]


def test_loads_and_stores_collect_their_operands_over_time():
    assert cycles("STS.128 [R2], R4", "LDG.E R2, [R4]") == [1, 1]
