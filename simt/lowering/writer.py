"""Write the instructions that replace one that is lowered."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from simt.ptx import Guard, Immediate, Instruction, Kernel, Operand, Register, Symbol


@dataclass
class Start:
    """What a kernel does once, before all else: instructions that depend on nothing but a thread's lane."""

    kernel: Kernel
    code: dict[tuple[str, tuple[Operand, ...]], Instruction] = field(default_factory=dict)
    prefix: str = "l"  # of the names of new registers and labels: one for each time a kernel is rewritten

    @cached_property
    def numbers(self) -> dict[Register, Immediate]:
        """Return the registers that are only ever set to one number."""
        setting = [instruction for instruction in self.kernel.code if instruction.results]
        times = Counter(register for instruction in setting for register in instruction.results)
        return {
            instruction.results[0]: value
            for instruction in setting
            if instruction.parts[0] == "mov" and not instruction.guard
            for value in instruction.operands[1:]
            if isinstance(value, Immediate) and times[instruction.results[0]] == 1
        }


class Writer:
    """Writes instructions in place of one; they keep its line, and its guard unless another is given."""

    def __init__(self, start: Start, instruction: Instruction, number: int) -> None:
        self.kernel, self.start, self.instruction, self.number = start.kernel, start, instruction, number
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.registers = 0

    def register(self, type_: str) -> Register:
        """Declare a new register."""
        self.registers += 1
        register = Register(f"%{self.start.prefix}{self.number}~{self.registers}")
        self.kernel.registers[register.name] = type_
        return register

    def emit(self, opcode: str, *operands: Operand, guard: Guard | None = None) -> None:
        """Add an instruction; unless given another, it has the guard of the one that it replaces."""
        guard = guard or self.instruction.guard
        parts, of = tuple(opcode.split(".")), self.instruction
        self.code.append(Instruction(parts, operands, guard, of.line, of.calls))

    def new(self, opcode: str, type_: str, *operands: Operand) -> Register:
        """Emit an instruction with a new register of `type_` as its result."""
        result = self.register(type_)
        self.emit(opcode, result, *operands)
        return result

    def at_start(self, opcode: str, type_: str, *operands: Operand) -> Register:
        """Return what an instruction at the kernel's start gives; the operands are known there."""
        if (opcode, operands) not in self.start.code:
            parts, operands_with = tuple(opcode.split(".")), (self.register(type_), *operands)
            self.start.code[opcode, operands] = Instruction(parts, operands_with, None, self.instruction.line)
        (result,) = self.start.code[opcode, operands].results
        return result

    def label(self, name: str) -> Symbol:
        """Return a label for `place` and for branches."""
        return Symbol(f"{self.start.prefix}{self.number}~{name}")

    def place(self, label: Symbol) -> None:
        """Put a label before what is added next."""
        self.labels[label.name] = len(self.code)


def rewrite(start: Start, change: Callable[[Instruction, int], Sequence[Instruction] | Writer]) -> None:
    """Put what `change` returns in the place of each instruction of a kernel; its labels move along.

    `change` gets the instruction and its number, and returns instructions or a writer that has some.
    """
    kernel, code = start.kernel, list[Instruction]()
    places, labels = list[int](), dict[str, int]()
    for number, instruction in enumerate(kernel.code):
        places.append(len(code))
        made = change(instruction, number)
        if isinstance(made, Writer):
            labels |= {name: len(code) + place for name, place in made.labels.items()}
            made = made.code
        code += made
    places.append(len(code))
    labels |= {name: places[place] for name, place in kernel.labels.items()}
    kernel.labels = {name: len(start.code) + place for name, place in labels.items()}
    kernel.code = [*start.code.values(), *code]


def also(w: Writer, predicate: Register) -> Guard:
    """Return a guard that holds where the predicate and the instruction's own guard do."""
    if guard := w.instruction.guard:
        own = guard.register
        both = w.register("pred")
        if guard.negated:
            own = w.register("pred")
            w.code.append(Instruction(("not", "pred"), (own, guard.register), None, w.instruction.line))
        w.code.append(Instruction(("and", "pred"), (both, predicate, own), None, w.instruction.line))
        predicate = both
    return Guard(predicate, False)
