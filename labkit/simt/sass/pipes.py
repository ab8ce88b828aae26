"""The pipe of a multiprocessor that each instruction goes to, on Hopper."""

from labkit.compiler.machine_code import Instruction

PIPES: tuple[str, ...] = ()


def pipe(instruction: Instruction) -> tuple[str, ...]:
    """Return the pipes that count an instruction, by Nsight Compute's names."""
    return ()
