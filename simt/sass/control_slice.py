"""Keep of a kernel's code only what decides which instructions run, and where shared memory is accessed.

The sums of a matrix product decide neither: a kernel of thousands of instructions becomes its loops, its
branches and its addresses. A value from memory decides where a branch or an address depends on it; then what
is stored to that memory before is kept, too (Weiser, Program Slicing, 1984).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from simt import ptx
from simt.analysis.blocks import Block, split
from simt.common.errors import SimtError
from simt.counters.traffic import ATOMIC
from simt.ptx import Address, Guard, Immediate, Instruction, Operand, Register, Vector
from simt.sass.lift.table import UNKNOWN
from simt.sass.opcodes import known, width
from simt.sass.reaching_definitions import Chains, find_chains, separate

_STORED_TO = {"global", "shared", "local", "generic"}
_SLOT = re.compile(r"(?:@!?\w+ )?\w+(\S*) .*\[R1(?:\+(0x[0-9a-f]+))?\].*")
WAITS = "a loop runs for as long as other threads let it"
TIMES = ("%clock", "%clock64", "%globaltimer")


class NoCounts(SimtError):
    """The issues of a kernel's machine code cannot be counted; the message says why."""


@dataclass(frozen=True)
class Slice:
    """The code that decides, the position that each of its instructions had, and the memory that decides.

    `spaces` are among "global", "shared", "local", "generic".
    """

    code: list[Instruction]
    positions: list[int]
    spaces: frozenset[str]


def keep_deciders(
    kernel: ptx.Kernel, names: Sequence[str], guards: Sequence[Guard | None], keeps_traffic: bool = False
) -> Slice:
    """Return what decides. `names` are the instructions of machine code, by `Instruction.line` from 1, and
    `guards` those under which the result of each PTX instruction matters. `keeps_traffic`: accesses to global
    memory and atomic operations are kept, too, as loads.

    Raises NoCounts where what decides is unknown, or depends on the order in which threads run.
    """
    return _Slicer(kernel, names, guards, keeps_traffic).slice()


class _Slicer:
    def __init__(
        self,
        kernel: ptx.Kernel,
        names: Sequence[str],
        guards: Sequence[Guard | None],
        keeps_traffic: bool,
    ) -> None:
        self.keeps_traffic = keeps_traffic
        self.code, self.names, self.kernel = kernel.code, names, kernel
        self.chains: Chains = find_chains(kernel, guards)
        self.block_of: list[int] = [0] * len(kernel.code)
        blocks = split(kernel)
        self.predecessors: list[list[int]] = [[] for _ in blocks]
        numbers = {id(instruction): i for i, instruction in enumerate(kernel.code)}
        for index, block in enumerate(blocks):
            for instruction in block.code:
                self.block_of[numbers[id(instruction)]] = index
            for successor in block.successors:
                self.predecessors[successor].append(index)
        self.slots = self._find_slots()
        self.has_stack_addresses = any(
            instruction.parts[0] == UNKNOWN and "c[0x0]" in self._named(number)
            for number, instruction in enumerate(self.code)
        )
        self.whole: set[int] = set()  # instructions whose results are needed
        self.touches: set[int] = set()  # accesses of which only the address is
        self.spaces: set[str] = set()
        self.work: list[int] = []

    def slice(self) -> Slice:
        for number, instruction in enumerate(self.code):
            if instruction.parts[0] == UNKNOWN and known(self._opcode(number)).decides:
                raise NoCounts(f"there is no rule for {self._named(number)}, which decides what runs")
            if instruction.family.end or instruction.parts[0] in ("pmevent", "bssy", "break"):
                self._need(number)
            elif is_counted(instruction) or (self.keeps_traffic and is_traffic(instruction)):
                self.touches.add(number)
                self._follow(number, [each.name for each in self._place(instruction)])
        while True:
            while self.work:
                self._needed(self.work.pop())
            if not self._of_memory():
                break
        self._race()
        kept = sorted(self.whole | self.touches)
        code = [self._without_values(number) for number in kept]
        for number, instruction in zip(kept, code, strict=True):
            self.code[number] = instruction
        return Slice(list(separate(self.code, kept, self.chains)), kept, frozenset(self.spaces))

    def _find_slots(self) -> dict[int, range]:
        """Return the bytes of the stack that each access to a place of its own there has.

        There are none where the stack's top, R1, changes after the kernel's first instructions: in functions.
        """
        found, moves = {}, False
        for number, instruction in enumerate(self.code):
            if instruction.space == "local" and (place := _SLOT.fullmatch(self._named(number))):
                start = int(place[2] or "0", 16)
                found[number] = range(start, start + width(f"L{place[1]}") // 8)
            moves |= bool(found) and any(each.name == "%R1" for each in instruction.results)
        return {} if moves else found

    def _need(self, number: int) -> None:
        if number not in self.whole:
            self.whole.add(number)
            self.work.append(number)

    def _needed(self, number: int) -> None:
        instruction = self.code[number]
        if instruction.parts[0] == UNKNOWN:
            raise NoCounts(f"there is no rule for {self._named(number)}, which decides what runs")
        if any(isinstance(each, ptx.Symbol) and each.name.startswith(TIMES) for each in instruction.operands):
            raise NoCounts(f"{self._named(number)} reads the time, which decides what runs")
        if _reads_memory(instruction):
            self.spaces.add(instruction.space)
        self._follow(number, {register.name for register in instruction.sources})

    def _named(self, number: int) -> str:
        return self.names[self.code[number].line - 1]

    def _opcode(self, number: int) -> str:
        """Return the opcode of machine code, without its modifiers and its predicate."""
        words = self._named(number).split()
        return words[words[0].startswith("@")].partition(".")[0]

    def _follow(self, number: int, names: set[str] | list[str]) -> None:
        for name in names:
            for write in self.chains.writes(number, name):
                self._need(write)

    def _place(self, instruction: Instruction) -> list[Register]:
        """Return the registers that say where an access goes, and which lanes take part."""
        found = [instruction.guard.register] if instruction.guard else []
        for operand in instruction.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Register):
                found.append(operand.base)
        return found

    def _of_memory(self) -> bool:
        """Keep what stores to the memory that decides, and the barriers that order it."""
        before = len(self.whole)
        decides = self._deciding_loads()
        for number, instruction in enumerate(self.code):
            if (
                (instruction.is_barrier and self.spaces & {"global", "shared", "generic"})
                or (instruction.is_barrier and instruction.results and number in self.whole)
                or (instruction.family.writes and decides(number, instruction.space))
            ):
                self._need(number)
            elif instruction.parts[0] == UNKNOWN and decides(number, self._stored_unknown(number)):
                raise NoCounts(
                    f"there is no rule for {self._named(number)}, which writes to memory that decides"
                )
        return len(self.whole) > before

    def _deciding_loads(self) -> Callable[[int, str], bool]:
        """Return a function of a store and its space: whether a load that decides may see what it stores.

        A load sees what its own thread stored earlier, or what others stored before a barrier that all pass,
        so a store that no deciding load follows decides nothing. Without such a barrier it is a race.
        """
        loads = [n for n in self.whole if _reads_memory(self.code[n])]
        follows: dict[str, Callable[[int], bool]] = {}

        def decides(number: int, space: str) -> bool:
            if space not in _STORED_TO:
                return False
            if space not in follows:
                seen = [n for n in loads if self._may_meet(space, self.code[n].space)]
                follows[space] = self._places_before(seen)
            if not follows[space](number):
                return False
            own = self.slots.get(number) if space == "local" else None
            return own is None or any(
                not _apart(self.slots.get(n, own), own)
                for n in loads
                if self._may_meet("local", self.code[n].space)
            )

        return decides

    def _may_meet(self, a: str, b: str) -> bool:
        """Say whether accesses to these spaces may be to one address.

        A generic address of the stack is made with a constant that the lift has no rule for.
        """
        if "generic" not in (a, b):
            return a == b
        return "local" not in (a, b) or self.has_stack_addresses

    def _places_before(self, loads: Sequence[int]) -> Callable[[int], bool]:
        """Return a function that says whether a thread may get from an instruction to one of these loads."""
        last: dict[int, int] = {}  # by block, the last of the loads in it
        for number in loads:
            block = self.block_of[number]
            last[block] = max(last.get(block, -1), number)
        reaching = set[int]()  # blocks from whose end a load can be reached
        work = list(last)
        while work:
            for block in self.predecessors[work.pop()]:
                if block not in reaching:
                    reaching.add(block)
                    work.append(block)

        def found(number: int) -> bool:
            block = self.block_of[number]
            return block in reaching or last.get(block, -1) > number

        return found

    def _stored_unknown(self, number: int) -> str:
        """Return the space that an instruction without a rule stores to, or ""."""
        found = known(self._opcode(number))
        return found.space if found.access in ("store", "atomic") else ""

    def _race(self) -> None:
        """Refuse a loop that ends when other threads let it: how often it runs is a matter of time."""
        blocks = split(self.kernel)
        numbers = {id(instruction): i for i, instruction in enumerate(self.code)}
        for loop in _loops(blocks):
            inside = {numbers[id(i)] for index in loop for i in blocks[index].code}
            for number in inside & self.whole:
                instruction = self.code[number]
                if instruction.parts[0] != "atom" and not _is_strong(self._named(number)):
                    continue
                if self._decides_within(number, inside):
                    name = self._named(number)
                    raise NoCounts(f"{WAITS}: {name} decides that")

    def _decides_within(self, number: int, inside: set[int]) -> bool:
        """Say whether a branch of a loop depends on what an instruction in it reads."""
        reached, grown = {number}, True
        while grown:
            grown = False
            for each in inside & self.whole - reached:
                if any(reached & writes for writes in self.chains.seen[each].values()):
                    reached.add(each)
                    grown = True
        return any(self.code[each].family.end and each != number for each in reached)

    def _without_values(self, number: int) -> Instruction:
        """Return an access of which only the address is needed, without what it moves."""
        instruction = self.code[number]
        if number in self.whole:
            return instruction

        def empty(operand: Operand) -> Operand:
            if isinstance(operand, Vector):
                return Vector(tuple(empty(item) for item in operand.items))
            if isinstance(operand, Address):
                return operand
            return Register("_") if not instruction.family.writes else Immediate(0)

        if self.keeps_traffic and is_traffic(instruction):
            return _as_load(instruction)
        return replace(instruction, operands=tuple(empty(operand) for operand in instruction.operands))


def _reads_memory(instruction: Instruction) -> bool:
    """Say whether it reads what a kernel may have stored."""
    reads = instruction.family.reads and "param" not in instruction.parts
    return reads and instruction.space in _STORED_TO


def _apart(a: range, b: range) -> bool:
    return a.stop <= b.start or b.stop <= a.start


def _as_load(instruction: Instruction) -> Instruction:
    """Return a load from where an access goes, which changes nothing."""
    address = next(operand for operand in instruction.operands if isinstance(operand, Address))
    items = next((len(o.items) for o in instruction.operands if isinstance(o, Vector)), 1)
    atomic = [ATOMIC] if instruction.family.is_atomic else []
    space = [] if instruction.space == "generic" else [instruction.space]
    vector = [f"v{items}"] if items > 1 else []
    nothing = Register("_")
    value = Vector((nothing,) * items) if items > 1 else nothing
    parts = ("ld", *atomic, *space, *vector, instruction.type)
    return replace(instruction, parts=parts, operands=(value, address))


def is_counted(instruction: Instruction) -> bool:
    """Say whether it is a load from or a store to shared memory, whose wavefronts are counted."""
    is_access = instruction.parts[0] in ("ld", "st") and "shared" in instruction.parts
    return is_access and "async" not in instruction.parts


def is_traffic(instruction: Instruction) -> bool:
    """Say whether it goes to global memory, or is an atomic operation."""
    return instruction.is_access and (
        instruction.space in ("global", "generic") or instruction.family.is_atomic
    )


def _is_strong(name: str) -> bool:
    return "STRONG" in name and name.startswith("LD")


def _loops(blocks: Sequence[Block]) -> list[set[int]]:
    """Return the strongly connected parts of the graph that have a cycle (Tarjan)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[set[int]] = []
    for root in range(len(blocks)):
        if root in index:
            continue
        calls = [(root, iter(blocks[root].successors))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while calls:
            block, rest = calls[-1]
            for successor in rest:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    calls.append((successor, iter(blocks[successor].successors)))
                    break
                if successor in stack:
                    low[block] = min(low[block], index[successor])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[block])
                if low[block] == index[block]:
                    part = set(stack[stack.index(block) :])
                    del stack[stack.index(block) :]
                    if len(part) > 1 or block in blocks[block].successors:
                        found.append(part)
    return found
