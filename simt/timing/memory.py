"""Bytes of a launch that cross each border of the memory, estimated from a sample of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simt.compiler.machine_code import Instruction
from simt.counters.notes import SECTORS_OF_LINE
from simt.sass.opcodes import accesses, width
from simt.timing.caches import SECTOR_BYTES, Stream, reused
from simt.timing.footprint import GRANULE, Footprint

if TYPE_CHECKING:
    from simt.timing.work import Sampled

LOADS, STORES, ATOMICS = (accesses(each, "global", "generic") for each in ("load", "store", "atomic"))
WORD_BYTES = 4
WHOLE = 0.9  # sectors of which stores write at least this share are taken to be written whole
# The L1 merges stores of a warp that follow each other to the same few lines, such as fields of structures
# (l2_written of aos_update in data/h200/timed/counters.csv).
MERGED_LINES, MERGED = 7, 0.4
MOSTLY = 0.5  # of the sectors that a block writes to are filled by it: the L2 need not wait for other blocks
LEFT_OPEN = 8e6  # bytes of sectors written in part that the L2 holds without reading the rest
KEPT = 0.5  # of the L2 holds what is used again: the other half may hold the same lines (two partitions)


@dataclass(frozen=True)
class Memory:
    """Bytes of a launch that cross each border of the memory: totals of the grid.

    `requested` is what loads ask the L1 for, `l2_read` what it does not have and so asks of the L2, which
    moves `l2_moved` for it: 64 bytes also where 32 are asked for (`gather` in data/h200/limits.csv).
    `l2_written` what stores send there, `l2_atomic` what atomic operations do. `fetched` is what the L2 reads
    from memory, `written` what will have to be written back; `scattered` are those of both whose neighbours
    nobody asks for. `filled` is the share of its sectors that a request to store writes.
    """

    requested: float
    l2_read: float
    l2_moved: float
    l2_written: float
    l2_atomic: float
    fetched: float
    scattered: float
    written: float
    filled: float

    @property
    def empty(self) -> float:
        """Return how empty the sectors of requests to store are: 1 where each gets one word of 4 bytes."""
        return min(1.0, (1 - self.filled) * SECTOR_BYTES / (SECTOR_BYTES - WORD_BYTES))

    @property
    def l2_hit_share(self) -> float:
        """Return the share of what the L1 asks for that the L2 has."""
        return 1 - min(1.0, self.fetched / self.l2_read) if self.l2_read else 1.0


def memory_of(sampled: Sampled, names: np.ndarray, stream: Stream, hits: np.ndarray) -> Memory:
    """Return the bytes that cross each border of the memory.

    `names` are the opcodes, `stream` is what one multiprocessor accesses, and `hits` comes from `hit_share`.
    """
    sectors, scale = sampled.mean("sectors"), sampled.launched.blocks * SECTOR_BYTES
    of_loads, of_stores, of_atomics = (np.isin(names, group) for group in (LOADS, STORES, ATOMICS))
    missed = float((sectors * (1 - hits))[of_loads].sum()) * scale
    atomic, asked = (float(sectors[each].sum()) * scale for each in (of_atomics, of_stores))
    stores = _stores(sampled, names, asked)
    fetched, scattered, written = _beyond_l2(sampled, names, stream, missed, atomic, stores)
    return Memory(
        requested=float(sectors[of_loads].sum()) * scale,
        l2_read=missed,
        l2_moved=missed * _rounding(stream.where(np.isin(names[stream.site], LOADS))),
        l2_written=min(asked, max(written, MERGED * asked)) if stores.are_merged else asked,
        l2_atomic=atomic,
        fetched=fetched,
        scattered=scattered,
        written=written,
        filled=1.0 if stores.are_merged or not asked else min(1.0, stores.stored / asked),
    )


@dataclass(frozen=True)
class _Stores:
    """The stores of a launch, in bytes of the grid.

    `stored` is what its threads write, `asked` the sectors of all requests, and `written` the different ones.
    `are_whole` says that the L2 reads none of these sectors, `are_merged` that the L1 joins these requests.
    """

    stored: float
    asked: float
    written: float
    are_whole: bool
    are_merged: bool


def _stores(sampled: Sampled, names: np.ndarray, asked: float) -> _Stores:
    of_stores, lanes = np.isin(names, STORES), sampled.mean("lanes")
    instructions = sampled.together.sass.instructions
    stored = sum(lanes[i] * width(each.opcode) / 8 for i, each in enumerate(instructions) if of_stores[i])
    requests, lines = sampled.mean("requests")[of_stores].sum(), sampled.mean("lines")[of_stores].sum()
    places = Footprint(sampled, names, STORES, unit=SECTOR_BYTES)
    written = places.bytes(sampled.launched.blocks)
    return _Stores(
        stored=stored * sampled.launched.blocks,
        asked=asked,
        written=written,
        are_whole=_are_whole(sampled, stored, written, places),
        are_merged=bool(lines <= MERGED_LINES * requests),
    )


def _are_whole(sampled: Sampled, stored: float, written: float, places: Footprint) -> bool:
    """Say whether the L2 can do without reading the sectors that stores write.

    Either loads bring nearly all of them anyway, or stores fill them while the L2 has them. A block stores
    `stored` bytes, and the grid writes to `written` bytes of sectors.
    """
    blocks = sampled.launched.blocks
    unread = places.without(LOADS).bytes(blocks) if written else 0.0
    if unread < (1 - WHOLE) * written:
        return True
    by_block = stored >= MOSTLY * len(places.sets[sampled.plan.first]) * SECTOR_BYTES
    return stored * blocks >= WHOLE * written and bool(by_block or written < KEPT * _l2_bytes(sampled))


def _beyond_l2(
    sampled: Sampled,
    names: np.ndarray,
    stream: Stream,
    missed: float,
    atomic: float,
    stores: _Stores,
) -> tuple[float, float, float]:
    """Return the bytes that the L2 fetches, those that stand alone, and those that it must write back."""
    fetched, alone = _fetched(sampled, names, stream, LOADS, missed, GRANULE)
    scattered, written = fetched * alone, stores.written
    in_part = bool(stores.asked) and not stores.are_whole
    filling = [*(ATOMICS if atomic else ()), *(STORES if in_part else ())]
    if filling:  # what is written in part must be there first
        asked = atomic + (0.0 if stores.are_whole else stores.asked)
        filled, alone = _fetched(sampled, names, stream, filling, asked, SECTOR_BYTES)
        scattered += 2 * filled * alone
        fetched += max(0.0, filled - LEFT_OPEN)
        written = filled + (written if stores.are_whole else 0.0)
    return fetched, scattered, written


def hit_share(
    instructions: Sequence[Instruction], names: np.ndarray, stream: Stream, l1_bytes: float
) -> np.ndarray:
    """Return the share of the sectors of each load that the L1 has; stores take room in it, too."""
    bypasses = np.array(["BYPASS" in each.opcode or "STRONG" in each.opcode for each in instructions])
    cached = stream.where((np.isin(names, [*LOADS, *STORES]) & ~bypasses)[stream.site])
    hits = reused(cached, l1_bytes)
    asked = np.bincount(cached.site, _count(cached.sectors), len(instructions))
    found = np.zeros(len(instructions))
    np.divide(np.bincount(cached.site, hits, len(instructions)), asked, out=found, where=asked > 0)
    return np.where(np.isin(names, LOADS), found, 0.0)


def _rounding(loads: Stream) -> float:
    """Return how many bytes move in pairs of sectors for each byte in sectors."""
    pairs = (loads.sectors & 0b0011 > 0).sum() + (loads.sectors & 0b1100 > 0).sum()
    return 2 * float(pairs) / max(1, int(_count(loads.sectors).sum())) if len(loads) else 1.0


def _count(sectors: np.ndarray) -> np.ndarray:
    return np.bitwise_count(sectors.astype(np.uint8)).astype(np.int64)


def _fetched(
    sampled: Sampled, names: np.ndarray, stream: Stream, group: Sequence[str], asked: float, unit: int
) -> tuple[float, float]:
    """Return the bytes that the L2 fetches from memory, and the share of them that stands alone.

    An array that fits the L2 is fetched once, and so is one that blocks far apart share nothing of. Of others
    each wave of blocks fetches what it uses, and what a multiprocessor uses again after too much else, again.
    """
    launched = sampled.launched
    accesses = stream.where(np.isin(names[stream.site], group))
    if not len(accesses):
        return 0.0, 0.0
    in_wave = min(launched.blocks, launched.gpu.multiprocessors * sampled.plan.resident)
    waves = launched.blocks / in_wave
    footprint = Footprint(sampled, names, group, unit)
    once, per_wave = footprint.by_range(launched.blocks), footprint.by_range(in_wave)
    l2_bytes = _l2_bytes(sampled)
    own = footprint.count(accesses)
    sharing = max(1.0, launched.gpu.multiprocessors * own / max(1.0, float(per_wave.sum())))
    kept = reused(accesses, l2_bytes / launched.gpu.multiprocessors, 1 / sharing)
    fresh = _count(accesses.sectors).sum() - kept.sum()
    sectors = max(1, _distinct_sectors(accesses))
    again = max(1.0, float(fresh) / sectors)
    room, total = KEPT * l2_bytes, 0.0
    is_local = footprint.is_local() & (float(per_wave.sum()) * unit < l2_bytes)
    for whole, wave, near in zip(once * unit, per_wave * unit, is_local, strict=True):
        again_and_again = max(0.0, waves * wave * again - whole)
        total += whole + (again_and_again * (1 - room / whole) if whole > room and not near else 0.0)
    rounding = max(1.0, own * unit / (sectors * SECTOR_BYTES))
    return min(total, asked * rounding), footprint.alone()


def _distinct_sectors(stream: Stream) -> int:
    """Count the different sectors of a stream."""
    of_bit = (stream.line[stream.sectors >> bit & 1 > 0] for bit in range(SECTORS_OF_LINE))
    return sum(len(np.unique(lines)) for lines in of_bit)


def _l2_bytes(sampled: Sampled) -> float:
    return (sampled.launched.gpu.l2_mb or 0) * 2**20
