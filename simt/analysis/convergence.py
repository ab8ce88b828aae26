"""Where the lanes of a warp part and meet when machine code runs, on Volta and later.

Lanes that part form groups, which run one after the other. They meet only where the code says so: `bssy L`
opens a region that ends before label L, and `bsync L` waits there for all lanes that opened it, except those
that have left (`break L`) or ended. NVIDIA, "Inside Volta" (2017); US patent 10067768 (convergence barriers).
"""

from simt.analysis.flow import Flow
from simt.ptx import Immediate, Instruction, Symbol

ALL = 0xFFFFFFFF  # lanes


def meeting_place(instruction: Instruction | None) -> str:
    """Return the label where an instruction of a region has lanes meet, or ""."""
    if instruction is None or instruction.parts[0] not in ("bssy", "bsync", "break"):
        return ""
    place = instruction.operands[0]
    return place.name if isinstance(place, Symbol) else ""


class Groups(Flow):
    """A flow in which groups of lanes wait for their turn, or for others at a meeting place."""

    def blocks_of(self, label: str) -> int:
        """Return the number of the block that begins at a label."""
        first = self.kernel.code[self.kernel.labels[label]]
        return next(i for i, block in enumerate(self.blocks) if block.code and block.code[0] is first)

    def meetings(self) -> set[int]:
        """Return the blocks before which lanes meet."""
        return {self.blocks_of(name) for block in self.blocks if (name := _waits_for(block.last))}

    def _find_waiting(self, divergent: set[int]) -> None:
        """Find where groups may wait while a block runs."""
        opened: dict[int, set[int]] = {}  # by meeting place: the blocks that open a region that ends there
        for i, block in enumerate(self.blocks):
            block.may_wait, block.may_have_exited = frozenset(), True
            for instruction in block.code:
                if instruction.parts[0] == "bssy":
                    place = meeting_place(instruction)
                    if any(_waits_for(b.last) == place for b in self.blocks):
                        openers = opened.setdefault(self.blocks_of(place), set())
                        if Immediate(ALL) not in instruction.operands:  # else nobody waits elsewhere after it
                            openers.add(i)
        apart = {self.blocks[i].successors[-1] for i in divergent if len(self.blocks[i].successors) > 1}
        work = list(range(len(self.blocks)))
        while work:
            index = work.pop(0)
            for following, waiting in self._turns(index, divergent, apart, opened):
                block = self.blocks[following]
                if not waiting <= block.may_wait:
                    block.may_wait |= waiting
                    work.append(following)

    def _turns(
        self, index: int, divergent: set[int], apart: set[int], opened: dict[int, set[int]]
    ) -> list[tuple[int, frozenset[int]]]:
        """Return the blocks that may run after block `index`, and the blocks before which groups then wait.

        `apart` are the blocks before which a group waits that has parted from another.
        """
        block = self.blocks[index]
        waiting, targets = block.may_wait, block.successors
        if place := _waits_for(block.last):
            meeting = self.blocks_of(place)
            turns = [(other, waiting | {meeting}) for other in waiting & apart]
            outside = [self.blocks[each].may_wait for each in opened.get(meeting, {index})]
            return [*turns, (meeting, frozenset[int]().union(*outside))]
        turns = []
        if block.last and block.last.is_barrier:
            turns = [(other, waiting | {targets[0]}) for other in waiting & apart]
            return [*turns, (targets[0], frozenset())]
        if block.end == "leave":
            turns = [(other, waiting) for other in waiting & apart]
        pushed = frozenset(targets[1:]) if index in divergent else frozenset[int]()
        return [*turns, *((target, waiting | (pushed - {target})) for target in targets)]


def _waits_for(instruction: Instruction | None) -> str:
    return meeting_place(instruction) if instruction and instruction.parts[0] == "bsync" else ""
