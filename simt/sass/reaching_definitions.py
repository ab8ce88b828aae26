"""Which writes of a register each read of it sees, and registers renamed by that.

The assembler uses a register for one value after another. Here each gets a name of its own, so that what
decides can be told from what does not (Muchnick, Advanced Compiler Design, 8.10: webs).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from simt import ptx
from simt.analysis.blocks import split
from simt.ptx import Address, Guard, Instruction, Operand, Register, Vector

Definition = tuple[int, str]  # instruction, register


@dataclass(frozen=True)
class Chains:
    """For each instruction, the writes that each register it reads may come from.

    A guarded write leaves the old value where its guard is false, so both may be seen after it.
    """

    seen: list[dict[str, frozenset[int]]]

    def writes(self, number: int, register: str) -> frozenset[int]:
        """Return the instructions whose value of `register` instruction `number` may read."""
        return self.seen[number].get(register, frozenset())


def find_chains(kernel: ptx.Kernel, guards: Sequence[Guard | None]) -> Chains:
    """Follow the values of registers through the blocks of a kernel.

    `guards` has the guard under which each instruction's result matters, its own or another. What it reads is
    then what was written under the same guard, if that was in the same block.
    """
    blocks = split(kernel)
    numbers = {id(instruction): i for i, instruction in enumerate(kernel.code)}
    inside = [[numbers[id(instruction)] for instruction in block.code] for block in blocks]
    before: list[dict[str, frozenset[int]]] = [{} for _ in blocks]
    work = list(range(len(blocks)))
    queued = set(work)
    while work:
        index = work.pop(0)
        queued.discard(index)
        after = dict(before[index])
        for number in inside[index]:
            _step(kernel.code[number], number, after)
        for successor in blocks[index].successors:
            known = before[successor]
            changed = False
            for register, writes in after.items():
                if not writes <= (old := known.get(register, frozenset())):
                    known[register] = old | writes
                    changed = True
            if changed and successor not in queued:
                work.append(successor)
                queued.add(successor)
    seen: list[dict[str, frozenset[int]]] = [{} for _ in kernel.code]
    for index, part in enumerate(inside):
        state = dict(before[index])
        same: _UnderGuards = {}
        for number in part:
            instruction, guard = kernel.code[number], guards[number]
            names = {register.name for register in instruction.sources}
            under = same.get(guard, {}) if guard else {}
            seen[number] = {name: under.get(name, state[name]) for name in names if name in state}
            _step(instruction, number, state)
            _step_under(instruction, number, same)
    return Chains(seen)


_UnderGuards = dict[Guard, dict[str, frozenset[int]]]  # what lanes see for which this guard holds


def _step_under(instruction: Instruction, number: int, same: _UnderGuards) -> None:
    own = frozenset((number,))
    for register in instruction.results:
        for guard in [guard for guard in same if guard.register == register]:
            del same[guard]
        for guard, written in same.items():
            if register.name in written and instruction.guard != guard:
                if instruction.guard is None:
                    del written[register.name]
                elif instruction.guard.register != guard.register:
                    written[register.name] |= own
        if instruction.guard and instruction.guard.register != register:
            same.setdefault(instruction.guard, {})[register.name] = own


def _step(instruction: Instruction, number: int, state: dict[str, frozenset[int]]) -> None:
    for register in instruction.results:
        own = frozenset((number,))
        state[register.name] = own | state.get(register.name, own) if instruction.guard else own


def separate(code: Sequence[Instruction], kept: Iterable[int], chains: Chains) -> Iterator[Instruction]:
    """Yield the kept instructions with a name for each web of a register: `%R4` becomes `%R417`."""
    kept = list(kept)
    webs = _Webs()
    for number in kept:
        for name in {register.name for register in code[number].sources}:
            webs.join([(write, name) for write in chains.writes(number, name)])
    for number in kept:
        instruction = code[number]

        def read(operand: Operand, number: int = number) -> Operand:
            if not isinstance(operand, Register):
                return operand
            writes = chains.writes(number, operand.name)
            return webs.name((min(writes), operand.name)) if writes else operand

        def written(operand: Operand, number: int = number) -> Operand:
            if isinstance(operand, Register) and operand.name != "_":
                return webs.name((number, operand.name))
            return operand

        has_results = bool(instruction.operands) and (instruction.family.has_result or instruction.votes)
        operands = [
            _mapped(each, written if i == 0 and has_results else read)
            for i, each in enumerate(instruction.operands)
        ]
        guard = instruction.guard
        if guard is not None:
            register = read(guard.register)
            assert isinstance(register, Register)
            guard = replace(guard, register=register)
        yield replace(instruction, operands=tuple(operands), guard=guard)


def _mapped(operand: Operand, change: object) -> Operand:
    assert callable(change)
    match operand:
        case Address(base, offset):
            return Address(change(base), offset)
        case Vector(items):
            return Vector(tuple(_mapped(item, change) for item in items))
    result: Operand = change(operand)
    return result


class _Webs:
    """Sets of writes that must share a name, because some read may see any of them (union-find)."""

    def __init__(self) -> None:
        self.parents: dict[Definition, Definition] = {}
        self.numbers: dict[Definition, int] = {}

    def find(self, one: Definition) -> Definition:
        while (parent := self.parents.setdefault(one, one)) != one:
            self.parents[one] = self.parents[parent]
            one = parent
        return one

    def join(self, writes: Sequence[Definition]) -> None:
        for write in writes[1:]:
            self.parents[self.find(write)] = self.find(writes[0])

    def name(self, write: Definition) -> Register:
        root = self.find(write)
        number = self.numbers.setdefault(root, len(self.numbers))
        return Register(f"{root[1].rstrip('0123456789')}{number}")
