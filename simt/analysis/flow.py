"""Find where the lanes of a kernel part and meet, and the shape of every register.

Scheduling rule of a warp: lanes that part at a branch wait at the start of their block. Of all blocks with
waiting lanes, the lowest in order runs next, with all lanes that wait there. The order keeps loops together
and puts a block after all that lead to it, so lanes that parted meet again as early as they can. The rule
determines statically which blocks may have lanes waiting while another runs (`may_wait`), and thus where a
register must be blended: only if lanes that wait elsewhere will read its old value.
"""

from collections.abc import Iterable

from simt.analysis.blocks import Block, find_live_registers, ordered, split
from simt.analysis.lanes import UNIFORM, VARYING, Shape, elementwise, joined
from simt.analysis.shapes import ShapeRules
from simt.ptx import Instruction, Kernel, Register


class Flow:
    """The blocks of one kernel in scheduling order, and its registers' shapes for one block shape.

    Attributes: `blocks`, `shapes` (register name -> Shape), `divergent` (indices of blocks whose branch can
    part a warp).
    """

    def __init__(self, kernel: Kernel, rules: ShapeRules) -> None:
        self.kernel = kernel
        self.rules = rules
        self.blocks = ordered(split(kernel))
        find_live_registers(self.blocks)
        self.shapes: dict[str, Shape] = {}
        self.divergent: set[int] = set()
        self.blended: set[str] = set()
        # Shapes, divergence and blending depend on each other; each can only get coarser, so this ends.
        while True:
            self._find_shapes()
            divergent = {i for i, block in enumerate(self.blocks) if self._parts_the_warp(block)}
            self._find_waiting(divergent)
            blended = {
                r
                for i, block in enumerate(self.blocks)
                for r in self._written(block)
                if self.needs_blend(i, r)
            }
            if divergent == self.divergent and blended == self.blended:
                break
            self.divergent, self.blended = divergent, blended

    def needs_blend(self, index: int, register: str) -> bool:
        """Say whether lanes that wait while block `index` runs will read the old value of `register`."""
        return any(register in self.blocks[waiting].live_in for waiting in self.blocks[index].may_wait)

    def next_blocks(self, index: int, targets: Iterable[int], may_leave: bool = False) -> list[int]:
        """Return the blocks that may run after block `index`, lowest first, when lanes went to all `targets`.

        `may_leave`: some lanes, or all, left the kernel instead of going to the targets.
        """
        waiting = sorted({*self.blocks[index].may_wait, *targets})
        furthest = len(self.blocks) if may_leave else max(targets, default=len(self.blocks))
        return [block for block in waiting if block <= furthest]

    def shape(self, register: Register) -> Shape:
        """Return the shape of a register. One that is never written is the same in all lanes."""
        return self.shapes.get(register.name, UNIFORM)

    def _written(self, block: Block) -> set[str]:
        return {register.name for instruction in block.code for register in instruction.results}

    def _parts_the_warp(self, block: Block) -> bool:
        last = block.last
        return bool(
            last
            and last.guard
            and block.end in ("branch", "leave")
            and self.shape(last.guard.register) != UNIFORM
        )

    def _find_shapes(self) -> None:
        self.shapes = dict.fromkeys(self.blended, VARYING)
        writing = [code for block in self.blocks for code in block.code if code.results]
        changed_at: dict[str, int] = {}  # by register; time passes with each shape that is worked out
        seen_at = [-1] * len(writing)
        time, before = 0, -1
        while time > before:
            before = time
            for number, instruction in enumerate(writing):
                seen = seen_at[number]
                if (
                    seen < 0
                    or any(changed_at.get(register.name, -1) >= seen for register in instruction.sources)
                    or any(changed_at.get(register.name, -1) > seen for register in instruction.results)
                ):
                    time += 1
                    seen_at[number] = time
                    self._widen(instruction, changed_at, time)

    def _widen(self, instruction: Instruction, changed_at: dict[str, int], time: int) -> None:
        """Join the shape of an instruction's result to its registers; note which of them changed."""
        shape = self._result_shape(instruction)
        for register in instruction.results:
            merged = joined(self.shapes.get(register.name), shape)
            if merged != self.shapes.get(register.name):
                self.shapes[register.name] = merged
                changed_at[register.name] = time

    def _result_shape(self, instruction: Instruction) -> Shape:
        shape = self.rules.result(instruction, self.shapes).shape
        if instruction.guard:  # lanes whose guard is false keep the old value
            old = [self.shapes.get(register.name, UNIFORM) for register in instruction.results]
            guard = self.shape(instruction.guard.register)
            shape = (
                elementwise(shape, guard, *old)
                if guard != UNIFORM
                else joined(shape, elementwise(shape, *old))
            )
        return shape

    def _find_waiting(self, divergent: set[int]) -> None:
        """Find, following the scheduling rule, where lanes may wait and whether some may have left."""
        for block in self.blocks:
            block.may_wait, block.may_have_exited = frozenset(), False
        work = list(range(len(self.blocks)))
        while work:
            index = work.pop(0)
            block = self.blocks[index]
            for targets, exits in self._outcomes(index, divergent):
                waiting = {*block.may_wait, *targets}
                exited = block.may_have_exited or (exits and (bool(waiting) or index in divergent))
                for following in self.next_blocks(index, targets):
                    successor = self.blocks[following]
                    may_wait = successor.may_wait | {other for other in waiting if other > following}
                    if may_wait != successor.may_wait or exited > successor.may_have_exited:
                        successor.may_wait = frozenset(may_wait)
                        successor.may_have_exited |= exited
                        work.append(following)

    def _outcomes(self, index: int, divergent: set[int]) -> list[tuple[list[int], bool]]:
        """Return the ways block `index` can end: (targets that get lanes, whether lanes leave the kernel)."""
        block = self.blocks[index]
        if block.end == "leave":
            if not block.successors:
                return [([], True)]
            return [(block.successors, index in divergent), ([], True)]
        if index in divergent or len(block.successors) < 2:
            return [(block.successors, False)]
        return [([target], False) for target in block.successors]
