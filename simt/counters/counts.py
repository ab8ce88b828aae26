"""Turn the totals of a counted run into the counts of each instruction that a profile needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simt.code.abi import Counter
from simt.code.compiled import Compiled
from simt.common.limits import WARP
from simt.counters.sectors import IRREGULAR
from simt.ptx import Instruction


@dataclass(frozen=True)
class Counts:
    """The counts of a run over the blocks that it ran: int64 arrays, one entry per instruction.

    `by_warp` has one entry per warp of a block: the instructions that those of all blocks ran.

    Every instruction: `executed`, how often warps ran it; `active`, its active lanes, summed over those.
    Branches: `divergent`, executions in which lanes went both ways.
    Memory instructions: `requests`, executions with an active lane; `threads`, active lanes, summed;
    `sectors` of global memory; `passes` over the banks of shared memory, and `conflicts`, the passes beyond
    the fewest that the access can take; `strides`, the commonest distance in bytes between neighbouring
    lanes, None where none is common, 0 also where it is not known; `used_bytes` of global memory, the
    distinct bytes of each request; `turns` of atomic operations, the most lanes of a request at one address,
    summed.
    """

    executed: np.ndarray
    active: np.ndarray
    divergent: np.ndarray
    requests: np.ndarray
    threads: np.ndarray
    sectors: np.ndarray
    passes: np.ndarray
    conflicts: np.ndarray
    strides: Sequence[int | None]
    used_bytes: np.ndarray
    turns: np.ndarray
    by_warp: Sequence[int] = ()


@dataclass(frozen=True)
class Facts:
    """What is known of a counted kernel from its code alone, one entry per instruction.

    `usual` is what the accesses of a whole warp always cost (abi.Usual), `strides` the distance in bytes
    between neighbouring lanes.
    """

    usual: np.ndarray
    strides: Sequence[int | None]


class Reader:
    """Computes the counts of runs from their totals; what follows from the code alone is worked out once."""

    def __init__(self, code: Sequence[Instruction], compiled: Compiled) -> None:
        assert isinstance(compiled.facts, Facts)
        self._known, self._usual = compiled.facts.strides, compiled.facts.usual
        self._lengths = np.array([len(sites) for sites in compiled.blocks])
        self._block = np.full(len(code), len(compiled.blocks))  # of each instruction; beyond the last: none
        for number, sites in enumerate(compiled.blocks):
            self._block[sites] = number
        self._guarded = np.array([i.guard is not None for i in code], bool)
        self._moved = np.array([i.moved_bytes if i.type else 0 for i in code])
        # One pass per 4 bytes of a lane, and the conflicts. Larger accesses by few lanes may take fewer.
        self._least = np.array(
            [max(1, n // 4) if "shared" in i.parts else 0 for n, i in zip(self._moved, code, strict=True)]
        )

    def counts(self, totals: Totals) -> Counts:
        """Compute the counts of a run."""
        counters = dict(zip((entry[0] for entry in Counter._fields_), totals.counters.T, strict=True))
        visits = np.concatenate([totals.visits.sum(axis=0), np.zeros((1, 3), np.int64)])
        full, fewer, lanes = visits[self._block].T
        executed, active = full + fewer, WARP * full + lanes
        entered = totals.visits[:, :, :2].sum(axis=2)  # by warp and basic block
        requests = np.where(self._guarded, counters["requests"], executed)
        distinct, conflicts = (
            counters[name] + full * self._usual[:, column]
            for column, name in enumerate(("distinct", "conflicts"))
        )
        return Counts(
            executed=executed,
            active=active,
            divergent=counters["divergent"],
            requests=requests,
            threads=np.where(self._guarded, counters["threads"], active),
            sectors=counters["sectors"],
            passes=conflicts + requests * self._least,
            conflicts=conflicts,
            strides=self._strides(totals.strides),
            used_bytes=distinct * self._moved,
            turns=counters["turns"],
            by_warp=(entered @ self._lengths).tolist(),
        )

    def _strides(self, seen: Sequence[np.ndarray]) -> list[int | None]:
        if not seen:
            return []
        return [_stride(*both) for both in zip(self._known, np.array(seen).T, strict=True)]


@dataclass(frozen=True)
class Totals:
    """The totals of a counted run.

    `counters` has one row per instruction (abi.Counter), `visits` one table per warp of a block, with one row
    per basic block (abi.Visits).
    """

    reader: Reader
    counters: np.ndarray
    visits: np.ndarray
    strides: list[np.ndarray]  # the last that each thread of the host saw; [] where none was looked for
    touches: np.ndarray | None = None  # of a run that records them, one row each (abi.Touch)
    recorded: int = 0  # how many these would be if none was left out

    def counts(self) -> Counts:
        """Return the counts of each instruction."""
        return self.reader.counts(self)


def _stride(known: int | None, seen: np.ndarray) -> int | None:
    """Return the stride known beforehand, or the one seen at run time if it was always the same."""
    found = {int(stride) for stride in seen if stride}
    if known or not found:
        return known
    return found.pop() if len(found) == 1 and IRREGULAR not in found else None
