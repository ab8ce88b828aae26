"""What a launch does, counted from a sample of its blocks: the quantities that its time follows from."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from labkit.compiler.machine_code import Instruction, KernelCode
from labkit.core.limits import WARP, Dim3
from labkit.core.occupancy import Gpu, Occupancy, carve_out, occupancy
from labkit.model.time.caches import SECTOR_BYTES, Stream, in_step, reused
from labkit.model.time.footprint import GRANULE, Footprint
from labkit.model.time.registers import bank_cycles
from labkit.model.time.sample import Plan, plan
from labkit.simt.counters.traffic import LINE_BYTES, SECTORS_OF_LINE
from labkit.simt.sass.issued import Traffic
from labkit.simt.sass.kinds import width
from labkit.simt.sass.program import blocks
from labkit.simt.sass.slice import NoCounts

LOADS = ("LDG", "LD", "LDGSTS")
STORES = ("STG", "ST")
ATOMICS = ("ATOMG", "ATOM", "REDG", "RED")
SHARED = ("LDS", "STS", "LDSM")
LOCAL = ("LDL", "STL")
MUCH_LOCAL = 0.02  # of the issued instructions: more accesses to local memory are not modelled
WORD_BYTES = 4
WHOLE = 0.9  # sectors of which stores write at least this share are taken to be written whole
ALIKE = 8  # blocks far apart that all do the same stand for the rest of the grid
FEW_LINES = 1000  # atomic operations on fewer lines wait for each other: how long is not modelled
MANY_ATOMICS = 0.01  # of them per issued instruction are many


@dataclass(frozen=True)
class Launched:
    """A launch on a GPU: its grid and block, its shared memory per block, and the blocks that fit an SM."""

    gpu: Gpu
    grid: Dim3
    block: Dim3
    shared_bytes: int
    fits: Occupancy

    @cached_property
    def blocks(self) -> int:
        """Return the blocks of the grid."""
        return math.prod(self.grid)

    @cached_property
    def warps(self) -> int:
        """Return the warps per block."""
        return -(-math.prod(self.block) // WARP)

    @property
    def l1_bytes(self) -> int:
        """Return what the driver leaves to the L1 of what it shares with shared memory."""
        return 1024 * (self.gpu.l1_kb or 0) - carve_out(self.fits, self.shared_bytes)


def launched(gpu: Gpu, grid: Dim3, block: Dim3, registers: int, shared_bytes: int) -> Launched:
    """Return a launch with its occupancy."""
    return Launched(gpu, grid, block, shared_bytes, occupancy(gpu, math.prod(block), registers, shared_bytes))


@dataclass(frozen=True)
class Sampled:
    """What runs of a launch's blocks found: those of one multiprocessor together, and others alone."""

    launched: Launched
    plan: Plan
    together: Traffic
    alone: Mapping[int, Traffic]

    @cached_property
    def typical(self) -> list[Traffic]:
        """Return blocks that stand for all: those far apart, where there are enough of them."""
        spread = [self.alone[number] for number in self.plan.spread]
        enough = spread and len(spread) >= min(8, self.launched.blocks - 1)
        return spread if enough else list(self.alone.values())

    def mean(self, what: str) -> np.ndarray:
        """Return a count of `Traffic`, by instruction, of an average block."""
        return np.mean([getattr(each, what) for each in self.typical], axis=0)


def run(launched: Launched, traffic: Callable[[Sequence[int]], Traffic]) -> Sampled:
    """Run the blocks of a plan with `traffic`, which takes the numbers of blocks."""
    wanted = plan(launched.grid, launched.fits.blocks, launched.gpu)
    alone = {wanted.first: traffic([wanted.first])}
    wanted = wanted.within(int(alone[wanted.first].issued.sum()))
    for number in wanted.beside:
        alone[number] = traffic([number])
    for ran, number in enumerate(wanted.spread):
        if ran == ALIKE and all_alike([alone[each] for each in wanted.spread[:ran]]):
            wanted = replace(wanted, spread=wanted.spread[:ran])
            break
        alone[number] = alone.get(number) or traffic([number])
    together = alone[wanted.first] if len(wanted.together) == 1 else traffic(wanted.together)
    return Sampled(launched, wanted, together, alone)


def all_alike(blocks: Sequence[Traffic]) -> bool:
    """Say whether blocks issue the same, and ask for as many sectors with each instruction."""
    first, *others = blocks
    return all(
        np.array_equal(each.issued, first.issued) and np.array_equal(each.sectors, first.sectors)
        for each in others
    )


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

    def cost_of_write(self, partial: float) -> float:
        """Return how long the L2 takes for a sector that a request writes: `partial` for one word of it."""
        empty = (1 - self.filled) * SECTOR_BYTES / (SECTOR_BYTES - WORD_BYTES)
        return 1 + (partial - 1) * min(1.0, empty)

    @property
    def l2_hit_share(self) -> float:
        """Return the share of what the L1 asks for that the L2 has."""
        return 1 - min(1.0, self.fetched / self.l2_read) if self.l2_read else 1.0


@dataclass(frozen=True)
class Work:
    """What a launch does. Counts are of an average block, by instruction of machine code.

    `hits` is the share of a load's sectors that the L1 has, `lines` how many a request touches. `uneven` is
    how much longer the busiest multiprocessor works than it would if all blocks did as much as the average.
    """

    launched: Launched
    resident: int
    instructions: Sequence[Instruction]
    issued: np.ndarray
    requests: np.ndarray
    wavefronts: np.ndarray
    sectors: np.ndarray
    meeting: np.ndarray
    hits: np.ndarray
    lines: np.ndarray
    memory: Memory
    uneven: float
    local_bytes: int

    @cached_property
    def opcodes(self) -> np.ndarray:
        """Return the first part of each instruction's opcode."""
        return opcodes(self.instructions)

    @cached_property
    def bank_cycles(self) -> np.ndarray:
        """Return the cycles of the register file that each instruction takes."""
        return bank_cycles(self.instructions)

    def total(self, what: str, group: Sequence[str]) -> float:
        """Sum a count over the instructions with these opcodes."""
        return float(getattr(self, what)[np.isin(self.opcodes, group)].sum())


def opcodes(instructions: Sequence[Instruction]) -> np.ndarray:
    """Return the first part of each instruction's opcode."""
    return np.array([each.opcode.partition(".")[0] for each in instructions])


def work_of(sampled: Sampled) -> Work:
    """Return what a launch does. Raises NoCounts where its time is a matter of luck."""
    instructions = sampled.together.sass.instructions
    names = opcodes(instructions)
    stream = in_step(sampled.together.touches, batches(instructions, sampled.together.sass.code))
    part = len(sampled.plan.together) / sampled.plan.resident
    hits = _hit_share(instructions, stream, sampled.launched.l1_bytes * part)
    requests, lines = sampled.mean("requests"), sampled.mean("lines")
    found = Work(
        launched=sampled.launched,
        resident=sampled.plan.resident,
        instructions=instructions,
        issued=sampled.mean("issued"),
        requests=requests,
        wavefronts=sampled.mean("wavefronts"),
        sectors=sampled.mean("sectors"),
        meeting=sampled.mean("meeting"),
        hits=hits,
        lines=np.divide(lines, requests, out=np.ones(len(lines)), where=requests > 0),
        memory=_memory(sampled, names, stream, hits),
        uneven=_uneven(sampled),
        local_bytes=sampled.together.sass.code.resources.local_bytes,
    )
    _refuse(sampled, found)
    return found


def _refuse(sampled: Sampled, found: Work) -> None:
    """Raise NoCounts where local memory or atomic operations that wait for each other take the time."""
    if found.total("issued", LOCAL) > MUCH_LOCAL * found.issued.sum():
        raise NoCounts(
            f"it keeps {found.local_bytes} bytes per thread in local memory, in arrays or in registers that "
            "were spilled: how much of that the L1 keeps is not modelled"
        )
    atomics = found.total("requests", ATOMICS)
    if atomics < MANY_ATOMICS * found.issued.sum():
        return
    lines = Footprint(sampled, found.opcodes, ATOMICS).bytes(found.launched.blocks) / LINE_BYTES
    if lines < FEW_LINES:
        raise NoCounts(
            f"its atomic operations go to some {lines:.0f} lines of memory only, so that threads wait for "
            "each other: how long is not known"
        )


def batches(instructions: Sequence[Instruction], code: KernelCode) -> np.ndarray:
    """Number the loads that a warp issues one after the other, without waiting for one of them, alike."""
    found = np.arange(len(instructions))
    for first, end in blocks(code):
        current, awaited = -1, set[int]()
        for number in range(first, end):
            control = instructions[number].control
            if awaited & set(control.waits):
                current, awaited = -1, set()
            if instructions[number].opcode.partition(".")[0] in LOADS:
                current = number if current < 0 else current
                found[number] = current
                if control.write_barrier is not None:
                    awaited.add(control.write_barrier)
    return found


def _hit_share(instructions: Sequence[Instruction], stream: Stream, l1_bytes: float) -> np.ndarray:
    """Return the share of the sectors of each load that the L1 has; stores take room in it, too."""
    names = opcodes(instructions)
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


def _memory(sampled: Sampled, names: np.ndarray, stream: Stream, hits: np.ndarray) -> Memory:
    launched, sectors = sampled.launched, sampled.mean("sectors")
    of_loads, of_stores, of_atomics = (np.isin(names, group) for group in (LOADS, STORES, ATOMICS))
    scale = launched.blocks * SECTOR_BYTES
    missed = float((sectors * (1 - hits))[of_loads].sum()) * scale
    written_to = Footprint(sampled, names, STORES, unit=SECTOR_BYTES)
    written = written_to.bytes(launched.blocks)
    lanes = sampled.mean("lanes")
    stored = sum(
        lanes[i] * width(each.opcode) / 8
        for i, each in enumerate(sampled.together.sass.instructions)
        if of_stores[i]
    )
    unread = written_to.without(LOADS).bytes(launched.blocks) if written else 0.0
    l2_bytes = (launched.gpu.l2_mb or 0) * 2**20
    is_whole = unread < (1 - WHOLE) * written or (
        stored * launched.blocks >= WHOLE * written
        and (
            stored >= MOSTLY * len(written_to.sets[sampled.plan.first]) * SECTOR_BYTES
            or written < KEPT * l2_bytes
        )
    )
    fetched, alone = _fetched(sampled, names, stream, LOADS, missed, GRANULE)
    scattered = fetched * alone
    atomic = float(sectors[of_atomics].sum()) * scale
    l2_written = l2_sectors = float(sectors[of_stores].sum()) * scale
    filling = [*(ATOMICS if atomic else ()), *(STORES if l2_written and not is_whole else ())]
    if filling:  # what is written in part must be there first
        asked = atomic + (0.0 if is_whole else l2_written)
        filled, alone = _fetched(sampled, names, stream, filling, asked, SECTOR_BYTES)
        scattered += 2 * filled * alone
        fetched += max(0.0, filled - LEFT_OPEN)
        written = filled + (written if is_whole else 0.0)
    requests, lines = sampled.mean("requests")[of_stores].sum(), sampled.mean("lines")[of_stores].sum()
    merged = lines <= MERGED_LINES * requests
    if merged:
        l2_written = min(l2_written, max(written, MERGED * l2_written))
    return Memory(
        requested=float(sectors[of_loads].sum()) * scale,
        l2_read=missed,
        l2_moved=missed * _rounding(stream.where(np.isin(names[stream.site], LOADS))),
        l2_written=l2_written,
        l2_atomic=atomic,
        fetched=fetched,
        scattered=scattered,
        written=written,
        filled=1.0 if merged or not l2_sectors else min(1.0, stored * launched.blocks / l2_sectors),
    )


# The L1 merges stores of a warp that follow each other to the same few lines, such as fields of structures
# (l2_written of aos_update in data/h200/timed/counters.csv).
MERGED_LINES, MERGED = 7, 0.4
MOSTLY = 0.5  # of the sectors that a block writes to are filled by it: the L2 need not wait for other blocks
LEFT_OPEN = 8e6  # bytes of sectors written in part that the L2 holds without reading the rest


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
    l2_bytes = (launched.gpu.l2_mb or 0) * 2**20
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


KEPT = 0.5  # of the L2 holds what is used again: the other half may hold the same lines (two partitions)


def _uneven(sampled: Sampled) -> float:
    """Return how much longer the busiest multiprocessor works than with blocks that are all alike."""
    launched = sampled.launched
    if len(sampled.plan.spread) < 4:
        return 1.0
    numbers = np.array(sorted(sampled.plan.spread))
    costs = np.array([sampled.alone[int(number)].issued.sum() for number in numbers], float)
    if costs.max() <= 1.02 * costs.min() or launched.blocks > MOST_DEALT:
        return 1.0
    each = np.interp(np.arange(launched.blocks), numbers, costs)
    sms, resident = launched.gpu.multiprocessors, sampled.plan.resident
    free = np.zeros(sms)  # when each multiprocessor has room for a block: it works on `resident` at once
    if launched.blocks <= sms * resident:
        for first in range(0, launched.blocks, sms):
            row = each[first : first + sms]
            free[: len(row)] += row
        return float(free.max() / (math.ceil(launched.blocks / sms) * each.mean()))
    slots = sms * resident
    heap = each[:slots].tolist()
    heapq.heapify(heap)
    for cost in each[slots:].tolist():
        heapq.heapreplace(heap, heap[0] + cost)
    waves = launched.blocks / slots
    even = math.ceil(waves) if waves <= 3 else waves
    return max(1.0, max(heap) / (even * float(each.mean())))


MOST_DEALT = 200_000  # blocks of unequal work that are dealt out one by one
