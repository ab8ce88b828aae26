"""Find where the lanes of a kernel part and meet, and the shape of every register.

Scheduling rule of a warp: lanes that part at a branch wait at the start of their block. Of all blocks with
waiting lanes, the lowest in order runs next, with all lanes that wait there. The order keeps loops together
and puts a block after all that lead to it, so lanes that parted meet again as early as they can. The rule
determines statically which blocks may have lanes waiting while another runs (`may_wait`), and thus where a
register must be blended: only if lanes that wait elsewhere will read its old value.

Lanes that spin, in a loop that waits for other threads, park before the loop; the others run on. They park,
too, where they need the lanes that spin: at a barrier and at `__syncwarp` and its kind. When all lanes of a
warp are parked, other warps run, and then those that spin look again (code/spinning.py).
"""

from collections.abc import Iterable, Iterator

from simt.analysis.blocks import Block, find_live_registers, ordered, split, with_latches
from simt.analysis.lanes import UNIFORM, VARYING, Shape, elementwise, joined
from simt.analysis.shapes import ShapeRules
from simt.ptx import Instruction, Kernel, Register

# A block that may run next, the blocks at which lanes may wait then, those at which lanes may be parked, and
# whether lanes may have left the kernel.
_Turn = tuple[int, set[int], frozenset[int], bool]


class Flow:
    """The blocks of one kernel in scheduling order, and its registers' shapes for one block shape.

    Attributes: `blocks`, `shapes` (register name -> Shape), `divergent` (indices of blocks whose branch can
    part a warp).
    """

    def __init__(self, kernel: Kernel, rules: ShapeRules) -> None:
        self.kernel = kernel
        self.rules = rules
        self.blocks = ordered(with_latches(split(kernel)))
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
        return any(register in self.blocks[waiting].live_in for waiting in self.blocks[index].elsewhere)

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
            block.may_wait, block.may_park, block.may_have_exited = frozenset(), frozenset(), False
        work = list(range(len(self.blocks)))
        while work:
            index = work.pop(0)
            for following, waiting, parked, exited in self._following(index, divergent):
                successor = self.blocks[following]
                may_wait = successor.may_wait | {other for other in waiting if other > following}
                known = successor.may_wait, successor.may_park, successor.may_have_exited
                new = frozenset(may_wait), successor.may_park | parked, successor.may_have_exited or exited
                if new != known:
                    successor.may_wait, successor.may_park, successor.may_have_exited = new
                    work.append(following)

    def _following(self, index: int, divergent: set[int]) -> Iterator[_Turn]:
        """Yield the blocks that may run after block `index`, with what may hold then."""
        block, last = self.blocks[index], self.blocks[index].last
        if last is not None and last.is_barrier and block.may_park:
            yield block.successors[0], set(), frozenset(), block.may_have_exited
        else:
            for targets, exits in self._outcomes(index, divergent):
                waiting = {*block.may_wait, *targets}
                some_stay = bool(waiting) or index in divergent or bool(block.may_park)
                exited = block.may_have_exited or (exits and some_stay)
                for following in self.next_blocks(index, targets):
                    yield following, waiting, block.may_park, exited
                if exits:
                    yield from self._turns_of_parked(block.may_park, exited)
        if last is not None and self._may_park_at(block, last):
            parked = block.may_park | {index}
            for following in block.may_wait:
                yield following, set(block.may_wait), parked, block.may_have_exited
            yield from self._turns_of_parked(parked, block.may_have_exited)

    def _may_park_at(self, block: Block, last: Instruction) -> bool:
        return last.spins or bool(block.may_park and (last.gathers or last.is_barrier))

    def _turns_of_parked(self, parked: frozenset[int], exited: bool) -> Iterator[_Turn]:
        """Yield what may run when all lanes of the warp are parked."""
        barriers = {place for place in parked if self.blocks[place].code[-1].is_barrier}
        for place in parked:
            if place in barriers:
                yield self.blocks[place].successors[0], set(), frozenset(), exited
            else:
                yield place, set(parked - barriers), parked, exited

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
