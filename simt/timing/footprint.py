"""How much memory a number of blocks touch, each place counted once, estimated from a sample of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simt.counters.notes import LINE_BYTES, SECTORS_OF_LINE
from simt.counters.traffic import LINE, SITE_SHIFT, WHAT
from simt.timing.caches import Stream

if TYPE_CHECKING:
    from simt.timing.work import Sampled

FAR = 4  # blocks far apart that are compared
NEAR = 256  # bytes: memory is quicker where it reads more than one granule of so many
GRANULE = 64  # bytes that the L2 fetches at once: two sectors (`sectors` in data/h200/limits.csv)


class Footprint:
    """The places of `unit` bytes that instructions with the opcodes `group` touch; none of `omitted`.

    Each further block is taken to bring as many new places as the last one of the sample did, until an array
    is full: as a neighbour does within a wave, as a block far away does in the whole grid.
    """

    def __init__(
        self,
        sampled: Sampled,
        names: np.ndarray,
        group: Sequence[str],
        unit: int = GRANULE,
        omitted: Sequence[str] = (),
    ) -> None:
        self.sampled, self.names, self.group = sampled, names, group
        self.unit, self.omitted = unit, omitted
        self.sets = {number: self._of_block(number) for number in sampled.alone}

    def without(self, group: Sequence[str]) -> Footprint:
        """Return the same without what instructions with these opcodes touch."""
        return Footprint(self.sampled, self.names, self.group, self.unit, group)

    def _of_block(self, number: int) -> np.ndarray:
        touches = self.sampled.alone[number].touches
        site = touches[:, WHAT] >> SITE_SHIFT

        def places(group: Sequence[str]) -> np.ndarray:
            chosen = touches[np.isin(self.names, group)[site]]
            return self._places(chosen[:, LINE], chosen[:, WHAT])

        found = places(self.group)
        return _without(found, places(self.omitted)) if self.omitted else found

    def _places(self, line: np.ndarray, sectors: np.ndarray) -> np.ndarray:
        per_line = LINE_BYTES // self.unit
        each = SECTORS_OF_LINE // per_line
        masks = [((1 << each) - 1) << each * i for i in range(per_line)]
        return _distinct([line[sectors & m > 0] * per_line + i for i, m in enumerate(masks)])

    def count(self, stream: Stream) -> int:
        """Count the different places in a stream of accesses."""
        return len(self._places(stream.line, stream.sectors))

    def alone(self) -> float:
        """Return the share of places in whose 256 bytes neither the block nor a neighbour touches another."""
        plan, together = self.sampled.plan, NEAR // self.unit
        if not len(own := self.sets[plan.first]):
            return 0.0
        nearby = _distinct([self.sets[n] for n in (plan.first, *plan.beside)])
        areas, counts = np.unique(nearby // together, return_counts=True)
        return float((counts[np.searchsorted(areas, own // together)] == 1).mean())

    def by_range(self, blocks: float) -> np.ndarray:
        """Estimate how many different places so many blocks touch, in each array."""
        plan, launched = self.sampled.plan, self.sampled.launched
        if blocks >= launched.blocks:
            far = [each for each in plan.spread if each not in plan.beside]  # the last one must be new
            seen, last = [plan.first, *plan.beside, *far[:-1]], far[-1:]
        elif blocks > launched.grid[0] and len(plan.beside) > 1:
            seen, last = [plan.first, *plan.beside[:-1]], [*plan.beside[-1:]]
        else:
            seen, last = [plan.first], [*plan.beside[:1]]
        first = self.sampled.alone[plan.first]
        scale = max(1.0, float(first.lines.sum()) / max(1, first.recorded))  # of what was recorded
        found = []
        for low, high in self._bounds():
            own = _within(self.sets[plan.first], low, high)
            before = _distinct([_within(self.sets[n], low, high) for n in seen])
            further = [len(_without(_within(self.sets[n], low, high), before)) for n in last]
            each = float(np.mean(further)) if further else float(len(own))
            found.append(min(float(high - low), scale * (len(own) + (blocks - 1) * each)))
        return np.array(found)

    def is_local(self) -> np.ndarray:
        """Say of each array whether blocks far apart touch different parts of it."""
        numbers = sorted([self.sampled.plan.first, *self.sampled.plan.spread[:FAR]])
        found = []
        for low, high in self._bounds():
            parts = [part for n in numbers if len(part := _within(self.sets[n], low, high))]
            ends = sorted((int(part[0]), int(part[-1])) for part in parts)
            found.append(len(ends) > 1 and all(a[1] < b[0] for a, b in pairwise(ends)))
        return np.array(found)

    def _bounds(self) -> list[tuple[int, int]]:
        arrays = [each for each in self.sampled.together.ranges if each.size]
        ends = [(each.shift // self.unit, -(-(each.shift + each.size) // self.unit) + 1) for each in arrays]
        return ends or [(0, 1 << 62)]

    def bytes(self, blocks: float) -> float:
        """Estimate the bytes that so many blocks touch, each counted once."""
        return float(self.by_range(blocks).sum()) * self.unit


def _within(keys: np.ndarray, low: int, high: int) -> np.ndarray:
    return keys[np.searchsorted(keys, low) : np.searchsorted(keys, high)]


def _distinct(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the different keys in order; NumPy's own `unique` takes several times as long for runs."""
    keys = np.sort(np.concatenate(parts), kind="stable")
    return keys[np.diff(keys, prepend=keys[:1] - 1) != 0] if len(keys) else keys


def _without(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the keys that are not among `others`; both are in order."""
    if not len(others):
        return keys
    places = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    return keys[others[places] != keys]
