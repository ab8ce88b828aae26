"""Find the loops that may spin, and mark where their lanes give way to others.

A loop may spin if it looks again and again at a place in memory that other threads change, and if what it
sees decides whether it ends: `while (atomicExch(&lock, 1));`, or a loop around a volatile load. On GPUs since
Volta the other threads go on meanwhile. Before such a loop comes `yield.spin`, where its lanes park. The
others may then run ahead of them, so `yield.gather` comes before what lanes of a warp do together.

A loop that gets on by itself does not spin: a compare-and-swap that expects what it has just read, a counter
that hands out work, or a search that looks at another place each time.
"""

from collections.abc import Iterable
from functools import cached_property

from simt.analysis.blocks import Block, find_live_registers, natural_loops, split
from simt.lowering.writer import Start, rewrite
from simt.ptx import GRID, Address, Immediate, Instruction, Kernel, Operand, Register

_ORDERED = {"volatile", "relaxed", "acquire", "mmio"}
_REPEATABLE = {"exch", "cas", "and", "or", "min", "max"}  # twice the same changes no more than once
_EVERYONE = Immediate(0xFFFFFFFF)


def mark_spins(kernel: Kernel) -> None:
    """Put `yield.spin` before each loop that may spin, and `yield.gather` where lanes then meet.

    Asynchronous kernels are left alone: their warps give way where they wait (services.py), and their blocks
    run in an order in which a block that hands on its part of a sum comes before the one that takes it.
    """
    if kernel.is_asynchronous or not any(_is_look(each) for each in kernel.code):
        return
    blocks = split(kernel)
    find_live_registers(blocks)
    loops = [_Loop(blocks, head, body) for head, body in natural_loops(blocks).items()]
    spinning = [loop for loop in loops if loop.poll]
    if not spinning:
        return
    before: dict[int, list[Instruction]] = {}  # by the identity of the instruction that follows
    for loop in spinning:
        assert loop.poll is not None
        parts = ("yield", "spin", *loop.whose)
        spin = Instruction(parts, (), None, loop.poll.line, loop.poll.calls)
        before[id(blocks[loop.head].code[0])] = [spin]
    for block in blocks:
        met: set[Operand] = set()
        for each in block.code:
            mask = _lanes_needed(each)
            if mask is not None and mask not in met:
                gather = Instruction(("yield", "gather"), (mask,), each.guard, each.line, each.calls)
                before.setdefault(id(each), []).append(gather)
                met.add(mask)
            met.difference_update(each.results)
    rewrite(Start(kernel), lambda each, _: [*before.get(id(each), []), each])


def polls(kernel: Kernel) -> set[int]:
    """Return the places of the instructions by which loops of a marked kernel wait for other threads."""
    if not any(each.spins for each in kernel.code):
        return set()
    blocks = split(kernel)
    loops = [body for head, body in natural_loops(blocks).items() if blocks[head].code[0].spins]
    found = {id(each) for body in loops for index in body for each in blocks[index].code if _is_look(each)}
    return {place for place, each in enumerate(kernel.code) if id(each) in found}


def _lanes_needed(instruction: Instruction) -> Operand | None:
    """Return the mask of the lanes that an instruction needs together, or None."""
    family = instruction.family
    if family.names_lanes and "sync" in instruction.parts and not instruction.is_barrier:
        return instruction.operands[-1]
    return _EVERYONE if family.joins_lanes else None


def _is_look(instruction: Instruction) -> bool:
    """Say whether an instruction reads what other threads may write meanwhile, and may do so again."""
    family, parts = instruction.family, set(instruction.parts)
    if not instruction.is_access or not instruction.results:
        return False
    if not family.is_atomic:
        return family.reads and not parts.isdisjoint(_ORDERED)
    if "add" in parts:
        added = instruction.operands[-1]
        return isinstance(added, Immediate) and added.value == 0
    return not parts.isdisjoint(_REPEATABLE)


class _Loop:
    """A loop of a kernel; `poll` is the instruction that may have it spin, or None."""

    def __init__(self, blocks: list[Block], head: int, body: set[int]) -> None:
        self.blocks, self.head, self.body = blocks, head, body
        self.code = [each for index in sorted(body) for each in blocks[index].code]
        self.set_by: dict[Register, list[Instruction]] = {}
        for each in self.code:
            for register in each.results:
                self.set_by.setdefault(register, []).append(each)
        waits = {index for index in body if blocks[index].code[-1].is_barrier}
        self.poll: Instruction | None = None
        if self._can_go_round(without=waits):
            polls = [each for each in self.code if _is_look(each) and self._may_look_again(each)]
            self.poll = next((each for each in polls if self._decides(each)), None)

    @property
    def whose(self) -> tuple[str, ...]:
        """Return the part of the opcode that says whether the loop may wait for other blocks."""
        spaces = {each.space for each in self.code if _is_look(each)}
        return () if spaces == {"shared"} else (GRID,)

    def _can_go_round(self, without: set[int]) -> bool:
        """Say whether a way round the loop avoids some of its blocks."""
        return self.head not in without and self.head in self._reachable(self.head, without)

    def _reachable(self, start: int, without: Iterable[int] = ()) -> set[int]:
        """Return the blocks of the loop that may follow `start` in its round, and the head if that ends."""
        found: set[int] = set()
        work = [start]
        while work:
            for following in self.blocks[work.pop()].successors:
                if following in self.body and following not in found and following not in without:
                    found.add(following)
                    if following != self.head:
                        work.append(following)
        return found

    def _may_look_again(self, look: Instruction) -> bool:
        """Say whether a look may be the same in the next round: its place, and what it expects."""
        read: list[Operand] = [each.base for each in look.operands if isinstance(each, Address)]
        if look.family.is_atomic:
            values = look.operands[2:]
            read += values[:1] if "cas" in look.parts else values
        return all(self._may_stay(each) for each in self._sources(read))

    def _sources(self, operands: Iterable[Operand]) -> set[Register]:
        """Return the registers of which operands are made in the loop."""
        found: set[Register] = set()
        work = [each for each in operands if isinstance(each, Register)]
        while work:
            register = work.pop()
            if register not in found:
                found.add(register)
                work += [source for each in self.set_by.get(register, ()) for source in each.sources]
        return found

    def _may_stay(self, register: Register) -> bool:
        """Say whether a register may have the same value in the next round, given that others do."""
        if any(self._is_read(each) for each in self.set_by.get(register, ())):
            return False
        if register.name not in self.blocks[self.head].live_in:
            return True
        changing = {
            index
            for index in self.body
            if any(
                register in each.results and not self._keeps(each, register)
                for each in self.blocks[index].code
            )
        }
        return self._can_go_round(without=changing)

    def _is_read(self, instruction: Instruction) -> bool:
        """Say whether an instruction takes a value from memory that may differ each time."""
        if not instruction.is_access:
            return False
        place = _place(instruction)
        is_own = instruction.space == "local" or place[0] == Register("%SP")
        return not is_own or any(
            _place(each) == place for each in self.code if each.family.writes and each.is_access
        )

    def _keeps(self, instruction: Instruction, register: Register) -> bool:
        """Say whether an instruction may give a register the value that it had when the round began."""
        seen: set[int] = set()
        work = [instruction]
        while work:
            each = work.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if each.guard and register in each.results:
                return True
            if each.family.is_copy or each.parts[0] == "selp":
                if register in each.sources:
                    return True
                work += [other for source in each.sources for other in self.set_by.get(source, ())]
        return False

    def _decides(self, look: Instruction) -> bool:
        """Say whether what a look gives decides if the loop ends."""
        known: set[Register | tuple[Operand, int]] = set(look.results)
        chosen: set[int] = set()  # blocks that run or do not by what it gives
        while True:
            before = len(known), len(chosen)
            for index in self.body:
                for each in self.blocks[index].code:
                    place = _place(each) if each.is_access and not each.family.is_atomic else None
                    if index in chosen or not known.isdisjoint(each.sources) or place in known:
                        known.update(each.results)
                        if each.family.writes and place is not None:
                            known.add(place)
                guard = self.blocks[index].code[-1].guard
                if index in chosen or (guard is not None and guard.register in known):
                    chosen |= self._chosen_at(index)
            if (len(known), len(chosen)) == before:
                return any(self._may_end(index, known, chosen) for index in self.body)

    def _chosen_at(self, index: int) -> set[int]:
        """Return the blocks of the loop that run or do not by the branch at the end of block `index`."""
        following = self.blocks[index].successors
        if len(following) < 2 or not self.body.issuperset(following):
            return set()
        ways = [self._surely[way] for way in following if way != self.head]
        return set[int]().union(*ways) - (self._surely[index] - {index})

    @cached_property
    def _surely(self) -> dict[int, set[int]]:
        """Return for each block of the loop those that a round surely comes by after it: its postdominators.

        A round ends at the loop's head; one of a loop within this loop does not end it.
        """
        ways = {
            index: [way for way in self.blocks[index].successors if way in self.body] for index in self.body
        }
        after = {index: set(self.body) for index in self.body}
        work = True
        while work:
            work = False
            for index in sorted(self.body, reverse=True):
                ends = not ways[index] or self.head in ways[index]
                found = set[int]() if ends else set[int].intersection(*(after[way] for way in ways[index]))
                found = found | {index}
                work |= found != after[index]
                after[index] = found
        return after

    def _may_end(self, index: int, known: set[Register | tuple[Operand, int]], chosen: set[int]) -> bool:
        last, following = self.blocks[index].code[-1], self.blocks[index].successors
        leaves = not self.body.issuperset(following) or last.family.end == "leave"
        return leaves and (index in chosen or (last.guard is not None and last.guard.register in known))


def _place(instruction: Instruction) -> tuple[Operand, int]:
    """Return the base and the offset of an access."""
    address = next(each for each in instruction.operands if isinstance(each, Address))
    return address.base, address.offset
