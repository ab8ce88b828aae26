"""What is known of a kernel before code is made: basic blocks, reconvergence, liveness, and the shape of
every register.

Scheduling rule of a warp: lanes that part at a branch wait at the start of their block, and of all waiting
blocks the lowest in `order` runs next with all lanes that wait there. The order keeps loops together and
puts a block behind all that lead to it, so lanes that parted meet again at the first point they can. From
this rule follows statically which blocks may have lanes waiting while another runs (`may_wait`), and with
it where a register must be blended: only if lanes that wait elsewhere will read its old value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from labkit.simt.lanes import UNIFORM, VARYING, Shape, elementwise, joined
from labkit.simt.ptx import Address, Instruction, Kernel, Register, Symbol, Vector
from labkit.simt.shapes import ShapeRules

NO_RESULT = {
    "st",
    "bar",
    "barrier",
    "bra",
    "ret",
    "exit",
    "membar",
    "fence",
    "trap",
    "red",
    "prefetch",
    "nanosleep",
    "printf",
}


@dataclass
class Block:
    """Straight-line code; it ends at a branch, a barrier, a return, or before a label."""

    code: list[Instruction]
    successors: list[int] = field(default_factory=list)
    live_in: frozenset[str] = frozenset()
    may_wait: frozenset[int] = frozenset()
    may_have_exited: bool = False

    @property
    def last(self) -> Instruction | None:
        return self.code[-1] if self.code else None

    def ends_with(self, *opcodes: str) -> bool:
        return self.last is not None and self.last.parts[0] in opcodes


def is_barrier(instruction: Instruction) -> bool:
    """Does it wait for the whole block? (`bar.warp.sync` does not: lanes of a warp run in step.)"""
    return instruction.parts[0] in ("bar", "barrier") and "warp" not in instruction.parts


def results(instruction: Instruction) -> list[Register]:
    """Registers an instruction writes."""
    if instruction.parts[0] in NO_RESULT or not instruction.operands:
        return []
    first = instruction.operands[0]
    items = first.items if isinstance(first, Vector) else (first,)
    return [item for item in items if isinstance(item, Register) and item.name != "_"]


def sources(instruction: Instruction) -> list[Register]:
    """Registers an instruction reads, its guard's among them."""
    read = [instruction.guard.register] if instruction.guard else []
    for operand in instruction.operands[bool(results(instruction)) :]:
        if isinstance(operand, Vector):
            read += [item for item in operand.items if isinstance(item, Register)]
        elif isinstance(operand, Address):
            read += [operand.base] if isinstance(operand.base, Register) else []
        elif isinstance(operand, Register):
            read.append(operand)
    return read


class Flow:
    """Blocks of one kernel in scheduling order, and the shapes of its registers for one block shape.

    Attributes: `blocks`, `shapes` (register name -> Shape), `divergent` (indices of blocks whose branch can
    part a warp).
    """

    def __init__(self, kernel: Kernel, rules: ShapeRules) -> None:
        self.kernel = kernel
        self.rules = rules
        self.blocks = _ordered(_split(kernel))
        _find_live_registers(self.blocks)
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
        """Will lanes that wait while block `index` runs read the old value of `register`?"""
        return any(register in self.blocks[waiting].live_in for waiting in self.blocks[index].may_wait)

    def next_blocks(self, index: int, targets: Iterable[int]) -> list[int]:
        """Blocks that may run after block `index` when lanes went to all of `targets`, lowest first."""
        waiting = sorted({*self.blocks[index].may_wait, *targets})
        furthest = max(targets, default=len(self.blocks))
        return [block for block in waiting if block <= furthest]

    def shape(self, register: Register) -> Shape:
        return self.shapes.get(register.name, UNIFORM)

    def _written(self, block: Block) -> set[str]:
        return {register.name for instruction in block.code for register in results(instruction)}

    def _parts_the_warp(self, block: Block) -> bool:
        last = block.last
        return bool(
            last
            and last.guard
            and block.ends_with("bra", "ret", "exit")
            and self.shape(last.guard.register) != UNIFORM
        )

    def _find_shapes(self) -> None:
        self.shapes = dict.fromkeys(self.blended, VARYING)
        changed = True
        while changed:
            changed = False
            for block in self.blocks:
                for instruction in block.code:
                    written = results(instruction)
                    if not written:
                        continue
                    shape = self._result_shape(instruction)
                    for register in written:
                        merged = joined(self.shapes.get(register.name), shape)
                        if merged != self.shapes.get(register.name):
                            self.shapes[register.name] = merged
                            changed = True

    def _result_shape(self, instruction: Instruction) -> Shape:
        shape = self.rules.result(instruction, self.shapes).shape
        if instruction.guard:  # lanes whose guard is false keep the old value
            old = [self.shapes.get(register.name, UNIFORM) for register in results(instruction)]
            guard = self.shape(instruction.guard.register)
            shape = (
                elementwise(shape, guard, *old)
                if guard != UNIFORM
                else joined(shape, elementwise(shape, *old))
            )
        return shape

    def _find_waiting(self, divergent: set[int]) -> None:
        """Data flow over the scheduling rule: which blocks may have waiting lanes, and whether lanes may
        have left.
        """
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
        """Ways block `index` can end: (targets that get lanes, whether lanes leave the kernel)."""
        block = self.blocks[index]
        if block.ends_with("ret", "exit"):
            if not block.successors:
                return [([], True)]
            return (
                [(block.successors, True)] if index in divergent else [(block.successors, False), ([], True)]
            )
        if index in divergent or len(block.successors) < 2:
            return [(block.successors, False)]
        return [([target], False) for target in block.successors]


def _split(kernel: Kernel) -> list[Block]:
    """Blocks in text order; a block's first successor is the branch target, the second the next block."""
    code = kernel.code
    starts = {0, *kernel.labels.values()}
    for i, instruction in enumerate(code):
        if instruction.parts[0] in ("bra", "ret", "exit", "trap") or is_barrier(instruction):
            starts.add(i + 1)
    bounds = [*sorted(start for start in starts if start < len(code)), len(code)]
    block_at = {start: i for i, start in enumerate(bounds[:-1])}
    blocks = [Block(code[a:b]) for a, b in pairwise(bounds)]
    for i, block in enumerate(blocks):
        last = block.last
        falls_through = i + 1 < len(blocks) and not (
            last and not last.guard and block.ends_with("bra", "ret", "exit", "trap")
        )
        if last and block.ends_with("bra"):
            target = last.operands[0]
            assert isinstance(target, Symbol)
            block.successors.append(block_at[kernel.labels[target.name]])
        if falls_through and (not block.successors or block.successors[0] != i + 1):
            block.successors.append(i + 1)
    return blocks


def _ordered(blocks: list[Block]) -> list[Block]:
    """Reverse post-order in which a loop's body comes before what follows the loop; unreachable blocks are
    dropped.
    """
    loops = _loops(blocks)
    to_barrier = _that_reach_a_barrier(blocks)
    order: list[int] = []
    seen: set[int] = set()

    def exits_first(index: int) -> list[int]:
        # What is visited first is placed last: ways out of loops, then ways to a barrier (lanes that return
        # early are
        # gone when the others arrive there).
        around = [body for body in loops if index in body]
        return sorted(
            blocks[index].successors,
            key=lambda s: (-sum(s not in body for body in around), s not in to_barrier),
        )

    stack: list[tuple[int, list[int]]] = [(0, exits_first(0))]
    seen.add(0)
    while stack:
        index, remaining = stack[-1]
        if remaining:
            successor = remaining.pop(0)
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, exits_first(successor)))
        else:
            order.append(index)
            stack.pop()
    order.reverse()
    position = {old: new for new, old in enumerate(order)}
    for old in order:
        blocks[old].successors = [position[s] for s in blocks[old].successors]
    return [blocks[old] for old in order]


def _that_reach_a_barrier(blocks: list[Block]) -> set[int]:
    found = {i for i, block in enumerate(blocks) if block.last and is_barrier(block.last)}
    while more := {i for i, block in enumerate(blocks) if found.intersection(block.successors)} - found:
        found |= more
    return found


def _loops(blocks: list[Block]) -> list[set[int]]:
    """Bodies of the natural loops (Aho et al., Compilers, 2nd ed., 9.6): back edges found by depth-first
    search.
    """
    predecessors: dict[int, set[int]] = {i: set() for i in range(len(blocks))}
    for i, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].add(i)
    bodies: dict[int, set[int]] = {}
    for tail, header in _back_edges(blocks):
        body, work = bodies.setdefault(header, {header}), [tail]
        while work:
            index = work.pop()
            if index not in body:
                body.add(index)
                work += predecessors[index]
    return list(bodies.values())


def _back_edges(blocks: list[Block]) -> list[tuple[int, int]]:
    edges, state = [], {0: "open"}
    stack = [(0, list(blocks[0].successors))]
    while stack:
        index, remaining = stack[-1]
        if not remaining:
            state[index] = "done"
            stack.pop()
            continue
        successor = remaining.pop()
        if state.get(successor) == "open":
            edges.append((index, successor))
        elif successor not in state:
            state[successor] = "open"
            stack.append((successor, list(blocks[successor].successors)))
    return edges


def _find_live_registers(blocks: list[Block]) -> None:
    """Backward data flow: registers read before they are written, on some path from the block's start."""
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            live = set().union(*(blocks[s].live_in for s in block.successors)) if block.successors else set()
            for instruction in reversed(block.code):
                if not instruction.guard:
                    live -= {register.name for register in results(instruction)}
                live |= {register.name for register in sources(instruction)}
                if instruction.guard:  # where the guard is false the old value goes on
                    live |= {register.name for register in results(instruction)}
            if live != block.live_in:
                block.live_in = frozenset(live)
                changed = True
