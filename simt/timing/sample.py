"""Choose which blocks of a launch are run to learn what all of them do.

One multiprocessor's blocks are run together, because they share its L1: a GPU deals blocks out to the
multiprocessors in turn, so these are every s-th block, where s is the number of multiprocessors. Neighbours
show which memory blocks share; blocks far apart show what all of them do on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

from simt.common.limits import Dim3
from simt.common.occupancy import Gpu

SPREAD = 24  # blocks far apart, at most
GOLDEN = 0.6180339887498949  # parts of it are spread evenly, however many there are (Knuth, TAOCP 3, 6.4)
MOST_ISSUED = 8_000_000  # instructions of warps that a prediction runs at most, beyond the first block


@dataclass(frozen=True)
class Plan:
    """The blocks of a launch that are run, by their numbers.

    `together`: one multiprocessor's blocks, of which `first` is one. `beside` are its neighbours: the next in
    x, then in y (and z) with those between, so that the last one touches all others. `spread` lie far apart.
    `resident` is how many blocks one multiprocessor has at once in this launch.
    """

    first: int
    together: tuple[int, ...]
    beside: tuple[int, ...]
    spread: tuple[int, ...]
    resident: int

    def within(self, issued_by_first: int) -> Plan:
        """Return the part of the plan that takes at most MOST_ISSUED, if all blocks are like the first."""
        affordable = int(MOST_ISSUED / max(1, issued_by_first))
        beside = self.beside if affordable >= len(self.beside) else self.beside[:affordable]
        affordable -= len(beside)
        spread = self.spread[: max(0, affordable // 2)]
        affordable -= len(spread)
        return replace(self, together=self.together[: 1 + max(0, affordable)], beside=beside, spread=spread)


def plan(grid: Dim3, blocks_per_sm: int, gpu: Gpu) -> Plan:
    """Return the blocks to run of a launch of which `blocks_per_sm` fit a multiprocessor at once."""
    total, sms = math.prod(grid), gpu.multiprocessors
    resident = max(1, min(blocks_per_sm, -(-total // sms)))
    first = _middle(grid)
    together = [first + i * sms for i in range(-(resident // 2), resident - resident // 2)]
    together = [number % total for number in together if total > sms] or [first]
    if first not in together:
        together[0] = first
    beside = [number for number in _beside(grid, first) if number != first]
    spread = dict.fromkeys(int((i + 1) * GOLDEN % 1 * total) for i in range(min(SPREAD, total)))
    spread.pop(first, None)
    return Plan(first, tuple(dict.fromkeys(together)), tuple(beside), tuple(spread), resident)


def _middle(grid: Dim3) -> int:
    """Return a block in the middle of the grid: those at its edges may do less."""
    x, y, z = (max(0, (size - 1) // 2) for size in grid)
    return x + grid[0] * (y + grid[1] * z)


def _beside(grid: Dim3, first: int) -> list[int]:
    """Return the neighbours of a block towards the grid's end; the last has all others beside it."""
    steps = [step for step, size in zip((1, grid[0], grid[0] * grid[1]), grid, strict=True) if size > 1]
    return [first + sum(each) for n in range(1, len(steps) + 1) for each in combinations(steps, n)]
