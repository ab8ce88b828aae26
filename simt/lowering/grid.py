"""Make the barrier of a whole grid, `cg::this_grid().sync()`, an instruction of its own.

CUDA's header writes it as code: all threads of a block meet at a barrier, one of them adds to a counter in
memory whose address the driver leaves in %envreg1 and %envreg2, waits in a loop until the blocks have flipped
the counter's top bit, and meets the others at a second barrier. Here the counter goes, so that nobody waits
in the loop, and the second barrier becomes `barrier.sync.grid`, at which the simulator stops a block until
all others have come.
"""

from dataclasses import replace

from simt.ptx import GRID, Address, Immediate, Kernel, Operand, Register, Symbol

_FLIPPED = Immediate(0x80000000)


def make_grid_barriers(kernel: Kernel) -> None:
    """Rewrite the barriers of the grid; a kernel whose counter goes another way is left as it is."""
    counter = _registers_of_counter(kernel)
    if not counter:
        return
    code = list(kernel.code)
    for at, instruction in enumerate(kernel.code):
        name, operands = instruction.parts[0], instruction.operands
        on_counter = any(isinstance(o, Address) and _is_in(o.base, counter) for o in operands)
        if on_counter and name == "ld":
            barrier = _next_barrier(kernel, at)
            if barrier is None:
                return
            code[at] = replace(instruction, parts=("mov", "u32"), operands=(operands[0], _FLIPPED))
            code[barrier] = replace(kernel.code[barrier], parts=(*kernel.code[barrier].parts, GRID))
        elif on_counter and name == "atom":
            code[at] = replace(instruction, parts=("mov", "u32"), operands=(operands[0], Immediate(0)))
        elif name == "st" and any(_is_in(operand, counter) for operand in operands):
            return  # as with -G: the counter's address is kept in memory
        elif any(map(_is_driver_word, operands)):
            code[at] = replace(instruction, operands=(operands[0], Immediate(1)))  # there is a counter
    kernel.code = code


def _registers_of_counter(kernel: Kernel) -> set[str]:
    """Return the registers that hold the counter's address or a part of it."""
    found: set[str] = set()
    while True:
        more = {
            instruction.operands[0].name
            for instruction in kernel.code
            if instruction.family.has_result
            and instruction.operands
            and not instruction.family.reads
            and isinstance(instruction.operands[0], Register)
            and kernel.register_type(instruction.operands[0].name) != "pred"
            and any(_is_driver_word(o) or _is_in(o, found) for o in instruction.operands[1:])
        }
        if more <= found:
            return found
        found |= more


def _next_barrier(kernel: Kernel, at: int) -> int | None:
    """Return the place of the barrier that comes next when the loop around `at` ends."""
    seen: set[int] = set()
    while at < len(kernel.code) and at not in seen:
        seen.add(at)
        instruction = kernel.code[at]
        if instruction.is_barrier:
            return at
        target = instruction.operands[0] if instruction.parts[0] == "bra" else None
        jumps = isinstance(target, Symbol) and instruction.guard is None
        at = kernel.labels[target.name] if jumps and isinstance(target, Symbol) else at + 1
    return None


def _is_driver_word(operand: Operand) -> bool:
    return isinstance(operand, Symbol) and operand.name.startswith("%envreg")


def _is_in(operand: Operand, registers: set[str]) -> bool:
    return isinstance(operand, Register) and operand.name in registers
