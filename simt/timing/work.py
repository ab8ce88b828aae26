"""What a launch does, counted from a sample of its blocks: the quantities that its time follows from."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from simt.common.limits import WARP, Dim3
from simt.common.occupancy import Gpu, Occupancy, carve_out, occupancy
from simt.common.text import counted
from simt.compiler.machine_code import Instruction, KernelCode
from simt.counters.notes import LINE_BYTES
from simt.sass.control_slice import NoCounts
from simt.sass.issued import Traffic
from simt.sass.opcodes import accesses, known
from simt.sass.program import blocks
from simt.timing.caches import in_step
from simt.timing.footprint import Footprint
from simt.timing.memory import ATOMICS, LOADS, Memory, hit_share, memory_of
from simt.timing.registers import bank_cycles
from simt.timing.sample import Plan, plan

LOCAL_LOADS, LOCAL_STORES = accesses("load", "local"), accesses("store", "local")
MUCH_LOCAL = 0.02  # of the issued instructions: more accesses to local memory are not modelled
ALIKE = 8  # blocks far apart that all do the same stand for the rest of the grid
FEW_LINES = 1000  # atomic operations on fewer lines wait for each other: how long is not modelled
MOST_KEPT = 64  # kernels of which what follows from the code alone is kept
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


def run(launched: Launched, traffic: Callable[[Sequence[int], bool], Traffic]) -> Sampled:
    """Run the blocks of a plan with `traffic`, which takes their numbers, and whether order counts."""
    wanted = plan(launched.grid, launched.fits.blocks, launched.gpu)
    alone = {wanted.first: traffic([wanted.first], True)}
    wanted = wanted.within(int(alone[wanted.first].issued.sum()))
    for number in wanted.beside:
        alone[number] = traffic([number], False)
    for ran, number in enumerate(wanted.spread):
        if ran == ALIKE and all_alike([alone[each] for each in wanted.spread[:ran]]):
            wanted = replace(wanted, spread=wanted.spread[:ran])
            break
        alone[number] = alone.get(number) or traffic([number], False)
    is_one = len(wanted.together) == 1
    together = alone[wanted.first] if is_one else traffic(wanted.together, True)
    return Sampled(launched, wanted, together, alone)


def all_alike(blocks: Sequence[Traffic]) -> bool:
    """Say whether blocks issue the same, and ask for as many sectors with each instruction."""
    first, *others = blocks
    return all(
        np.array_equal(each.issued, first.issued) and np.array_equal(each.sectors, first.sectors)
        for each in others
    )


@dataclass(frozen=True)
class Work:
    """What a launch does. Counts are of an average block, by instruction of machine code.

    `hits` is the share of a load's sectors that the L1 has, `lines` how many a request touches. `uneven` is
    the load imbalance: the work of the busiest multiprocessor over the average.
    """

    launched: Launched
    resident: int
    code: KernelCode
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
        return self.code.opcodes

    @property
    def instructions(self) -> Sequence[Instruction]:
        """Return the instructions of the machine code."""
        return self.code.instructions

    @cached_property
    def bank_cycles(self) -> np.ndarray:
        """Return the cycles of the register file that each instruction takes."""
        return _bank_cycles(self.code)

    def total(self, what: str, group: Sequence[str]) -> float:
        """Sum a count over the instructions with these opcodes."""
        return float(getattr(self, what)[np.isin(self.opcodes, group)].sum())


@lru_cache(maxsize=MOST_KEPT)
def _bank_cycles(code: KernelCode) -> np.ndarray:
    return bank_cycles(code.instructions)


def work_of(sampled: Sampled) -> Work:
    """Return what a launch does. Raises NoCounts where its time is a matter of luck."""
    code = sampled.together.sass.code
    instructions, names = code.instructions, code.opcodes
    stream = in_step(sampled.together.touches, batches(code))
    part = len(sampled.plan.together) / sampled.plan.resident
    hits = hit_share(instructions, names, stream, sampled.launched.l1_bytes * part)
    requests, lines = sampled.mean("requests"), sampled.mean("lines")
    found = Work(
        launched=sampled.launched,
        resident=sampled.plan.resident,
        code=code,
        issued=sampled.mean("issued"),
        requests=requests,
        wavefronts=sampled.mean("wavefronts"),
        sectors=sampled.mean("sectors"),
        meeting=sampled.mean("meeting"),
        hits=hits,
        lines=np.divide(lines, requests, out=np.ones(len(lines)), where=requests > 0),
        memory=memory_of(sampled, names, stream, hits),
        uneven=_uneven(sampled),
        local_bytes=code.resources.local_bytes,
    )
    _refuse(sampled, found)
    return found


def _refuse(sampled: Sampled, found: Work) -> None:
    """Raise NoCounts where something takes the time that the model does not have."""
    if beside := sorted({name for name in found.opcodes.tolist() if known(name).is_warpgroup}):
        raise NoCounts(
            f"its products of warpgroups ({', '.join(beside)}) run beside the warps that issue them: how "
            "long these wait is not modelled"
        )
    if found.total("issued", (*LOCAL_LOADS, *LOCAL_STORES)) > MUCH_LOCAL * found.issued.sum():
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
            f"its atomic operations go to {counted(max(1, round(lines)), 'line')} of memory only, so that "
            "threads wait for each other: how long is not known"
        )


@lru_cache(maxsize=MOST_KEPT)
def batches(code: KernelCode) -> np.ndarray:
    """Number the loads that a warp issues one after the other, without waiting for one of them, alike."""
    instructions = code.instructions
    found = np.arange(len(instructions))
    for first, end in blocks(code):
        current, awaited = -1, set[int]()
        for number in range(first, end):
            control = instructions[number].control
            if awaited & set(control.waits):
                current, awaited = -1, set()
            if code.opcodes[number] in LOADS:
                current = number if current < 0 else current
                found[number] = current
                if control.write_barrier is not None:
                    awaited.add(control.write_barrier)
    return found


def _uneven(sampled: Sampled) -> float:
    """Return the load imbalance: the work of the busiest multiprocessor over that with equal blocks."""
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
