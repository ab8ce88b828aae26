"""Write the instructions that replace one that is lowered."""

from labkit.simt.ptx import Guard, Instruction, Kernel, Operand, Register, Symbol


class Writer:
    """Writes instructions in place of one; they keep its line, and its guard unless another is given."""

    def __init__(self, kernel: Kernel, instruction: Instruction, number: int) -> None:
        self.kernel, self.instruction, self.number = kernel, instruction, number
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.registers = 0

    def register(self, type_: str) -> Register:
        """Declare a new register."""
        self.registers += 1
        register = Register(f"%l{self.number}~{self.registers}")
        self.kernel.registers[register.name] = type_
        return register

    def emit(self, opcode: str, *operands: Operand, guard: Guard | None = None) -> None:
        """Add an instruction; unless given another, it has the guard of the one that it replaces."""
        guard = guard or self.instruction.guard
        self.code.append(Instruction(tuple(opcode.split(".")), operands, guard, self.instruction.line))

    def new(self, opcode: str, type_: str, *operands: Operand) -> Register:
        """Emit an instruction with a new register of `type_` as its result."""
        result = self.register(type_)
        self.emit(opcode, result, *operands)
        return result

    def label(self, name: str) -> Symbol:
        """Return a label for `place` and for branches."""
        return Symbol(f"l{self.number}~{name}")

    def place(self, label: Symbol) -> None:
        """Put a label before what is added next."""
        self.labels[label.name] = len(self.code)
