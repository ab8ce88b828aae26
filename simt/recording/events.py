"""The events of a recorded block: which instruction a warp executed, with which lanes and values.

An event is one PTX instruction that one warp executes. The log of a run (simt/counters/recording.py) has the
visits of basic blocks and the values; here they become one list in the order in which things happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simt.common.limits import WARP
from simt.counters.recording import ENTER, TAG_BITS
from simt.module import Recorded
from simt.ptx import TYPE_BYTES, Instruction

LANES = np.arange(WARP, dtype=np.uint32)
ACCESSES = ("load", "store", "atomic")  # kinds of instructions that access memory


@dataclass(frozen=True)
class Vectors:
    """Values per lane: of event `event` in `role`; `start` and `wide` say where they lie in `words`.

    Roles are those of a log: ADDRESSES, RESULT + n, AFTER + n. Values that are `wide` take two words each.
    """

    event: np.ndarray
    role: np.ndarray
    start: np.ndarray
    wide: np.ndarray
    words: np.ndarray

    @cached_property
    def _at(self) -> dict[tuple[int, int], int]:
        return {(int(e), int(r)): i for i, (e, r) in enumerate(zip(self.event, self.role, strict=True))}

    def values(self, event: int, role: int) -> np.ndarray | None:
        """Return the bits of 32 values, or None where none were kept."""
        number = self._at.get((event, role))
        if number is None:
            return None
        start = self.start[number]
        if not self.wide[number]:
            return self.words[start : start + WARP]
        return self.words[start : start + 2 * WARP].view(np.uint64)

    def rows(self, wide: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the vectors of one width, and their values as rows of 32."""
        numbers = np.flatnonzero(self.wide == wide)
        places = self.start[numbers, None] + np.arange(2 * WARP if wide else WARP)
        rows = self.words[places]
        return numbers, rows.view(np.uint64) if wide else rows


@dataclass(frozen=True)
class Events:
    """What a block did, in order: columns with an entry per event, and the values.

    `site` is the number of the instruction, `mask` has a bit per lane. `total` is how many entries the log
    would have with room for all, `kept` how many it has.
    """

    site: np.ndarray
    warp: np.ndarray
    mask: np.ndarray
    vectors: Vectors
    kept: int
    total: int

    def __len__(self) -> int:
        return len(self.site)


def events(recorded: Recorded) -> Events:
    """Return the events of a recorded run."""
    log = recorded.record.log
    heads, words = log.heads, log.words
    what, number = heads["tag"] & (1 << TAG_BITS) - 1, heads["tag"] >> TAG_BITS
    block_of, position_of = _places(recorded.blocks, len(recorded.code))
    sizes = np.array([len(block) for block in recorded.blocks])

    enters = what == ENTER
    visit = np.cumsum(enters) - 1  # of the latest visit, by any warp
    visited = np.flatnonzero(enters)
    # The result of a barrier that votes comes when its warp goes on, within another's visit: its own event.
    late = ~enters & (block_of[np.where(enters, 0, number)] != number[visited][np.maximum(visit, 0)])
    late |= ~enters & (heads["warp"] != heads["warp"][visited][np.maximum(visit, 0)])
    begins = enters | late
    length = np.where(enters, sizes[np.where(enters, number, 0)], 1)[begins]
    first = np.cumsum(length) - length
    part = np.cumsum(begins) - 1
    of_head = first[part] + np.where(begins, 0, position_of[np.where(enters, 0, number)])

    owner = np.flatnonzero(begins)
    total = int(length.sum())
    index = np.repeat(np.arange(len(owner)), length)
    offset = np.arange(total) - first[index]
    flat = np.array([site for block in recorded.blocks for site in block] or [0])
    starts = np.cumsum(sizes) - sizes
    is_visit, own = enters[owner][index], number[owner][index]
    site = np.where(is_visit, flat[np.where(is_visit, starts[np.where(is_visit, own, 0)] + offset, 0)], own)
    warp = heads["warp"][owner][index]
    mask = heads["mask"][owner][index].copy()
    valued = ~enters
    mask[of_head[valued]] = heads["mask"][valued]

    end = total
    is_early = recorded.error is not None or log.total > len(heads)
    if is_early and total and not _ends(recorded, int(site[-1])):
        end = int(of_head[-1]) + 1
    kept = valued & (of_head < end)
    before = np.cumsum(heads["words"].astype(np.int64)) - heads["words"]
    vectors = Vectors(of_head[kept], what[kept], before[kept], (heads["words"] > WARP)[kept], words)
    return Events(site[:end], warp[:end], mask[:end], vectors, len(heads), log.total)


def _ends(recorded: Recorded, site: int) -> bool:
    """Say whether the last instruction ended the run by itself: a trap, a barrier or a branch."""
    finding = getattr(recorded.error, "finding", None)
    last = recorded.code[site]
    return finding is not None and finding.kind not in ("out of bounds", "misaligned") and last.ends_block


def _places(blocks: Sequence[Sequence[int]], sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the basic block of each instruction, and its place there."""
    block_of, position_of = np.full(sites, -1), np.zeros(sites, np.int64)
    for number, block in enumerate(blocks):
        block_of[block] = number
        position_of[block] = np.arange(len(block))
    return block_of, position_of


def kind_of(instruction: Instruction) -> str:
    """Return what an instruction does, in one word."""
    if instruction.is_access:
        if instruction.family.is_atomic:
            return "atomic"
        return "load" if instruction.family.reads else "store"
    if instruction.is_barrier:
        return "barrier"
    return {"branch": "branch", "leave": "exit", "trap": "exit"}.get(instruction.family.end, "compute")


def items_of(instruction: Instruction) -> int:
    """Return how many items each lane moves in an access."""
    return 1 if instruction.family.is_atomic else instruction.moved_bytes // TYPE_BYTES[instruction.type]


def lanes_in(mask: int) -> list[int]:
    """Return the lanes in a mask."""
    return [lane for lane in range(WARP) if mask >> lane & 1]
