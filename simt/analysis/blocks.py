"""Basic blocks of a kernel: where code parts and meets, their order, and the registers they need."""

from dataclasses import dataclass, field
from itertools import pairwise

from simt.ptx import Instruction, Kernel, Symbol


@dataclass
class Block:
    """Straight-line code that ends at a branch, a barrier, a return, or before a label.

    While it runs, other lanes may wait at the blocks `may_wait`, which run before the lanes of `may_park`:
    these wait until other threads have changed something, or until all lanes have come (see flow.py).
    """

    code: list[Instruction]
    successors: list[int] = field(default_factory=list)
    live_in: frozenset[str] = frozenset()
    may_wait: frozenset[int] = frozenset()
    may_park: frozenset[int] = frozenset()
    may_have_exited: bool = False

    @property
    def last(self) -> Instruction | None:
        """Return the last instruction, or None in an empty block."""
        return self.code[-1] if self.code else None

    @property
    def elsewhere(self) -> frozenset[int]:
        """Return the blocks at which other lanes may wait while it runs."""
        return self.may_wait | self.may_park

    @property
    def end(self) -> str:
        """Return how its code ends: "branch", "leave" or "trap"; "" for a barrier or a label."""
        return self.last.family.end if self.last else ""


def split(kernel: Kernel) -> list[Block]:
    """Split a kernel into blocks in text order. A branch's target is its block's first successor."""
    code = kernel.code
    starts = {0, *kernel.labels.values()}
    for i, instruction in enumerate(code):
        if instruction.ends_block:
            starts.add(i + 1)
    bounds = [*sorted(start for start in starts if start < len(code)), len(code)]
    block_at = {start: i for i, start in enumerate(bounds[:-1])}
    blocks = [Block(code[a:b]) for a, b in pairwise(bounds)]
    for i, block in enumerate(blocks):
        last = block.last
        falls_through = i + 1 < len(blocks) and not (last and not last.guard and block.end)
        if last and block.end == "branch":
            target = last.operands[0]
            assert isinstance(target, Symbol)
            block.successors.append(block_at[kernel.labels[target.name]])
        if falls_through and (not block.successors or block.successors[0] != i + 1):
            block.successors.append(i + 1)
    return blocks


def with_latches(blocks: list[Block]) -> list[Block]:
    """Let all ways back to the start of a loop lead over one empty block, its latch (as in LLVM's loops).

    Lanes that come to the start by different ways meet at the latch. Without it the first would go round
    again, and pass a barrier or an atomic operation, while the others are still in the loop's body. A loop
    that waits for other threads has none: its lanes park at its start, one by one.
    """
    tails: dict[int, list[int]] = {}
    for tail, header in _back_edges(blocks):
        tails.setdefault(header, []).append(tail)
    for header, several in tails.items():
        last = blocks[header].last
        if len(several) > 1 and not (last and last.spins):
            for tail in several:
                ways = blocks[tail].successors
                blocks[tail].successors = [len(blocks) if way == header else way for way in ways]
            blocks.append(Block([], [header]))
    return blocks


def ordered(blocks: list[Block]) -> list[Block]:
    """Sort blocks in reverse post-order, each loop before what follows it, and drop unreachable ones."""
    loops = natural_loops(blocks).values()
    to_barrier = _that_reach_a_barrier(blocks)
    order: list[int] = []
    seen: set[int] = set()

    def exits_first(index: int) -> list[int]:
        # What is visited first comes last: exits of loops, then ways to a barrier. Lanes that return early
        # are gone when the others arrive at the barrier.
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
    found = {i for i, block in enumerate(blocks) if block.last and block.last.is_barrier}
    while more := {i for i, block in enumerate(blocks) if found.intersection(block.successors)} - found:
        found |= more
    return found


def natural_loops(blocks: list[Block]) -> dict[int, set[int]]:
    """Return the bodies of the natural loops by their first block (Aho et al., Compilers, 2nd ed., 9.6)."""
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
    return bodies


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


def find_live_registers(blocks: list[Block]) -> None:
    """Find, backwards, the registers that some path from a block's start reads before it writes them."""
    effects = [_effect(block) for block in blocks]
    changed = True
    while changed:
        changed = False
        for block, (read, written) in zip(reversed(blocks), reversed(effects), strict=True):
            live = set().union(*(blocks[successor].live_in for successor in block.successors))
            live = read | (live - written)
            if live != block.live_in:
                block.live_in = frozenset(live)
                changed = True


def _effect(block: Block) -> tuple[set[str], set[str]]:
    """Return the registers that a block reads before it writes them, and those that it surely writes."""
    read: set[str] = set()
    written: set[str] = set()
    for instruction in reversed(block.code):
        results = {register.name for register in instruction.results}
        if instruction.guard:  # where the guard is false the old value stays
            read |= results
        else:
            read -= results
            written |= results
        read.update(register.name for register in instruction.sources)
    return read, written
