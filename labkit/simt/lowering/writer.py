"""Writes instructions in the place of one that is lowered."""

from __future__ import annotations

from labkit.simt.ptx import Guard, Instruction, Kernel, Operand, Register, Symbol


class Writer:
    """Writes instructions in the place of one; all keep its line, and its guard unless told otherwise."""

    def __init__(self, kernel: Kernel, instruction: Instruction, number: int) -> None:
        self.kernel, self.instruction, self.number = kernel, instruction, number
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.registers = 0

    def register(self, type_: str) -> Register:
        """A new register."""
        self.registers += 1
        register = Register(f"%l{self.number}~{self.registers}")
        self.kernel.registers[register.name] = type_
        return register

    def emit(self, opcode: str, *operands: Operand, guard: Guard | None = None) -> None:
        """Add an instruction; it has the guard of the one that it stands for, if none is given."""
        guard = guard or self.instruction.guard
        self.code.append(Instruction(tuple(opcode.split(".")), operands, guard, self.instruction.line))

    def new(self, opcode: str, type_: str, *operands: Operand) -> Register:
        """Emit an instruction with a new register of `type_` as its result."""
        result = self.register(type_)
        self.emit(opcode, result, *operands)
        return result

    def label(self, name: str) -> Symbol:
        """A label for `place` and for branches."""
        return Symbol(f"l{self.number}~{name}")

    def place(self, label: Symbol) -> None:
        """Let a label stand before what is added next."""
        self.labels[label.name] = len(self.code)
