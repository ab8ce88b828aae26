"""How long one warp takes alone: its instructions in order, each waiting for what it needs.

The assembler writes into each instruction how many cycles pass until the next one may issue, and which of six
barriers it sets or waits for (`simt.compiler.machine_code.Control`). With a latency for each kind of
instruction that sets a barrier, a walk over the code gives the time of each basic block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from simt.compiler.machine_code import Instruction, KernelCode
from simt.sass.opcodes import known
from simt.sass.program import blocks

Latency = Callable[[int], float]  # of an instruction, by its number: cycles until its result is there
PASSES = 3  # over a loop: the last one is as all later ones


def chain(code: KernelCode, visits: np.ndarray, latency: Latency) -> float:
    """Return the cycles of a warp that visits each instruction `visits` times, on average."""
    found = list(blocks(code))
    times = np.array([visits[first] for first, _ in found])
    walk = _Walk(code.instructions, found, times, latency)
    cycles = np.zeros(len(found))
    done: set[int] = set()
    for first, last in _loops(code, found):
        inside = [i for i in range(first, last + 1) if i not in done]
        if not inside or not times[first : last + 1].max():
            continue
        state = _State()
        spent: dict[int, float] = {}
        for _ in range(PASSES):
            spent = {i: walk.block(i, state) for i in range(first, last + 1) if walk.is_usual(i, first, last)}
        for i in inside:
            cycles[i] = spent[i] if i in spent else walk.block(i, _State())
        done |= set(inside)
    state = _State()
    for i in range(len(found)):
        if times[i] and i not in done:
            cycles[i] = walk.block(i, state)
    return float(cycles @ times)


class _State:
    """The clock of a warp, and when each barrier is free."""

    def __init__(self) -> None:
        self.now = 0.0
        self.free = [0.0] * 6


class _Walk:
    def __init__(
        self,
        instructions: Sequence[Instruction],
        found: Sequence[tuple[int, int]],
        times: np.ndarray,
        latency: Latency,
    ) -> None:
        self.instructions, self.found, self.times, self.latency = instructions, found, times, latency

    def is_usual(self, block: int, first: int, last: int) -> bool:
        """Say whether most turns of the loop from block `first` to `last` visit this block."""
        return bool(self.times[block] >= 0.5 * self.times[[first, last]].max())

    def block(self, index: int, state: _State) -> float:
        """Let a warp run a basic block; return the cycles that it takes."""
        begin = state.now
        for number in range(*self.found[index]):
            control = self.instructions[number].control
            for barrier in control.waits:
                state.now = max(state.now, state.free[barrier])
            latency = self.latency(number)
            if control.write_barrier is not None:
                ready = state.now + latency
                state.free[control.write_barrier] = max(state.free[control.write_barrier], ready)
            elif latency and known(self.instructions[number].opcode).waits:
                state.now += latency
            if control.read_barrier is not None:
                state.free[control.read_barrier] = max(state.free[control.read_barrier], state.now + READ)
            state.now += max(1, control.stall)
        return state.now - begin


READ = 12  # cycles until an instruction with a read barrier has read its operands


def _loops(code: KernelCode, found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and the last block of each loop, inner ones first: those that jump back."""
    block_at = {code.instructions[first].address: i for i, (first, _) in enumerate(found)}
    jumps = []
    for i, (_, end) in enumerate(found):
        last = code.instructions[end - 1]
        if known(last.opcode).end != "jump":
            continue
        target = next((code.labels[o] for o in last.operands if o in code.labels), None)
        if target is not None and (start := block_at.get(target, len(found))) <= i:
            jumps.append((start, i))
    return sorted(set(jumps), key=lambda jump: jump[1] - jump[0])
