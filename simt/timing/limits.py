"""How long each part of a GPU would take for a launch if it had nothing to wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simt.common.limits import WARP
from simt.common.occupancy import Gpu
from simt.compiler.machine_code import Instruction, KernelCode
from simt.sass.opcodes import OPCODES, OTHER_LATENCY, accesses, known, pipe
from simt.timing.chain import chain
from simt.timing.constants import Constants
from simt.timing.memory import LOADS, STORES
from simt.timing.work import LOCAL_LOADS, LOCAL_STORES, MOST_KEPT, Work

QUARTERS = 4  # sub-partitions of a multiprocessor: each issues one instruction per clock
UNIFORM_CLOCKS = 2  # of the pipe for a warp at once
WIDE = ("WIDE", "HI")  # integer products of 64 bits take twice as long
BARRIERS = 1.5  # per warp: the warps of a block then go through the same instructions together
FEW_WAVES = 3  # up to so many, the last one counts as a whole one
BLOCK_BARRIERS = tuple(name for name, row in OPCODES.items() if row.waits == "block")
SHARED = accesses("load", "shared") + accesses("store", "shared")
SHARED_ATOMICS = accesses("atomic", "shared")
ATOMIC_CLOCKS = 200  # an atomic operation takes longer than a load from the L2 by this


@dataclass(frozen=True)
class Limit:
    """What one part of the GPU takes: `seconds` for `count` of `unit`, at `rate` of them per second."""

    name: str
    seconds: float
    count: float
    unit: str

    @property
    def rate(self) -> float:
        """Return the count per second."""
        return self.count / self.seconds if self.seconds else math.inf


def limits(work: Work, code: KernelCode, constants: Constants) -> list[Limit]:
    """Return the limits of a launch. The GPU of `work` needs the figures that `missing` names."""
    memory, cores = _of_memory(work, constants), _of_multiprocessors(work, constants)
    idle = _latency(work, code, constants, 0.0)
    busy = max(each.seconds for each in memory) / max(each.seconds for each in (idle, *memory, *cores))
    return [*cores, _latency(work, code, constants, busy), *memory]


def _busiest(work: Work) -> float:
    """Return the blocks of the busiest multiprocessor; parts of blocks where there are many."""
    per_sm = work.launched.blocks / work.launched.gpu.multiprocessors
    return (math.ceil(per_sm) if per_sm <= FEW_WAVES * work.resident else per_sm) * work.uneven


def _latency(work: Work, code: KernelCode, constants: Constants, busy: float) -> Limit:
    """Return how long waves of blocks take whose warps wait for each result; `busy` is the memory's share."""
    launched, clock = work.launched, 1e6 * (work.launched.gpu.boost_mhz or 0)
    waves = launched.blocks / (launched.gpu.multiprocessors * work.resident)
    waves = math.ceil(waves) if waves <= FEW_WAVES else waves + constants.tail
    visits = work.issued / launched.warps
    cycles = chain(code, visits, latencies(work, constants, busy).__getitem__)
    cycles += constants.block_clocks + constants.warp_clocks * launched.warps
    if visits[np.isin(work.opcodes, BLOCK_BARRIERS)].sum() >= BARRIERS:
        queue = max(0.0, 1 - QUARTERS / launched.warps)
        cycles += constants.barrier_queue * queue * _issue_cycles(work, constants) / QUARTERS
    uneven = work.uneven if waves == 1 else 1.0
    return Limit(LATENCY_LIMIT, waves * cycles * uneven / clock, waves, "waves of blocks")


def seconds(found: Sequence[Limit], constants: Constants) -> float:
    """Return the time of a launch with these limits, by CUDA's events.

    The limits add up as a norm: the longest counts most, and others the more, the nearer they are to it.
    """
    within = [each.seconds for each in found if each.name in OF_CORES]
    within.append(sum(each.seconds for each in found if each.name in DATA_PIPE))
    others = [each.seconds for each in found if each.name not in (*OF_CORES, *DATA_PIPE)]
    cores = _norm(within, constants.power_of_cores)
    return constants.start_us * 1e-6 + _norm([cores, *others], constants.power)


def _norm(terms: Sequence[float], power: float) -> float:
    most = max(terms)
    return most * sum((each / most) ** power for each in terms) ** (1 / power) if most else 0.0


L1, SHARED_MEMORY, L1_STORES = "L1 requests", "shared memory", "L1 stores"
ISSUE, LATENCY_LIMIT, DEALING, L2, DRAM = "issue slots", "latency", "starting blocks", "L2", "DRAM"
DATA_PIPE = (L1, SHARED_MEMORY)  # both take the cycles of one pipe
PIPES = ("FP32", "integer", "FP64", "special functions", "uniform", "tensor cores")
OF_CORES = (ISSUE, *PIPES)
PRODUCTS = "integer products"  # by the pipe for FP32


def _of_multiprocessors(work: Work, constants: Constants) -> list[Limit]:
    launched, gpu = work.launched, work.launched.gpu
    clock = 1e6 * (gpu.boost_mhz or 0)
    busiest = _busiest(work)

    def limit(name: str, cycles: float, unit: str, share: int = 1) -> Limit:
        """Return the limit of a part that takes `cycles` per block; a multiprocessor has `share` of it."""
        return Limit(name, busiest * cycles / share / clock, launched.blocks * cycles, unit)

    pipes = _pipe_cycles(work, gpu)
    found = [limit(ISSUE, _issue_cycles(work, constants), "slots", QUARTERS)]
    found += [limit(name, cycles, "cycles", QUARTERS) for name, cycles in pipes.items()]
    barriers, shuffles = (work.total("issued", names) for names in (BLOCK_BARRIERS, ("SHFL",)))
    missed = float((work.sectors * (1 - work.hits))[np.isin(work.opcodes, LOADS)].sum())
    local = work.total("issued", (*LOCAL_LOADS, *LOCAL_STORES))
    loads = work.total("wavefronts", LOADS) + constants.miss_cycles * missed + local
    shared = work.total("wavefronts", SHARED) + work.total("meeting", SHARED_ATOMICS) + shuffles
    stores = work.total("sectors", STORES)
    found += [
        limit(L1, loads, "cycles"),
        limit(SHARED_MEMORY, shared + constants.barrier_cycles * barriers, "cycles"),
        limit(L1_STORES, stores + 4 * work.total("issued", LOCAL_STORES), "sectors"),
    ]
    dealt = constants.deal_clocks * launched.blocks / clock
    return [*found, Limit(DEALING, dealt, launched.blocks, "blocks")]


def _issue_cycles(work: Work, constants: Constants) -> float:
    """Return the issue slots per block, with part of the cycles in which the register file is not ready."""
    return float(work.issued @ (1 + constants.register_banks * (work.bank_cycles - 1)))


def _pipe_cycles(work: Work, gpu: Gpu) -> dict[str, float]:
    """Return the cycles of each pipe per block, summed over sub-partitions, by a student's name for it."""
    cycles: dict[str, float] = {"FP32": 0.0, "integer": 0.0, "FP64": 0.0, "special functions": 0.0}
    names, clocks = _pipes(work.code, gpu)
    for name in dict.fromkeys(names[(work.issued > 0) & (names != "")].tolist()):
        of_it = names == name
        cycles[name] = float(clocks[of_it] @ work.issued[of_it])
    products = cycles.pop(PRODUCTS, 0.0)
    # Hopper's FP32 pipe has two halves; one of them does the integer products.
    cycles["FP32"] = max(cycles["FP32"] + products / 2, products)
    return cycles


@lru_cache(maxsize=MOST_KEPT)
def _pipes(code: KernelCode, gpu: Gpu) -> tuple[np.ndarray, np.ndarray]:
    """Return what `pipe_clocks` says of each instruction."""
    names, clocks = zip(*(pipe_clocks(each, gpu) for each in code.instructions), strict=True)
    return np.array(names), np.array(clocks)


def pipe_clocks(instruction: Instruction, gpu: Gpu) -> tuple[str, float]:
    """Return the pipe of an instruction, or PRODUCTS, and for how many clocks it keeps a sub-partition's."""
    name, parts = pipe(instruction), instruction.opcode.split(".")

    def clocks(lanes_per_sm: int | None) -> float:
        return WARP * QUARTERS / (lanes_per_sm or WARP)

    if name == "fma":
        if parts[0] == "IMAD":
            return PRODUCTS, (2 if any(part in WIDE for part in parts) else 1) * clocks(gpu.int32_per_clock)
        return "FP32", clocks(gpu.fp32_cores_per_sm)
    if name == "alu":
        return "integer", clocks(gpu.int32_per_clock)
    if name == "fp64":
        return "FP64", clocks(gpu.fp64_per_clock)
    if name == "xu":
        return "special functions", clocks(gpu.special_per_clock)
    if name == "uniform":
        return "uniform", UNIFORM_CLOCKS
    if tensor := known(instruction.opcode).tensor_clocks:
        return "tensor cores", tensor * 4096 / (gpu.tensor_fp16_flop_per_clock or 4096)
    return "", 0.0


def latencies(work: Work, constants: Constants, busy: float) -> list[float]:
    """Return the clocks until the result of each instruction is there, in a launch like this."""
    gpu, hit = work.launched.gpu, work.memory.l2_hit_share
    l2 = (1 + constants.loaded_l2 * busy) * (gpu.l2_latency or 0)
    beyond = hit * l2 + (1 - hit) * (constants.cold + constants.loaded_dram * busy) * (gpu.dram_latency or 0)
    cycles = np.divide(work.wavefronts, work.requests, out=np.ones(len(work.issued)), where=work.requests > 0)
    found = []
    for i, name in enumerate(work.opcodes.tolist()):
        row = known(name)
        if row.latency is not None:
            found.append(row.latency)
        elif name in LOADS:
            first = work.hits[i] * (gpu.l1_latency or 0) + (1 - work.hits[i]) * beyond
            found.append(first + constants.line_clocks * max(0.0, work.lines[i] - 1))
        elif row.access == "atomic":
            found.append(l2 + ATOMIC_CLOCKS)
        elif row.access == "load" and row.space == "shared":
            found.append(constants.shared_clocks * (gpu.shared_latency or 0) + max(0.0, cycles[i] - 1))
        elif row.access == "load":
            found.append(gpu.l1_latency or 0)
        elif row.waits == "block":
            warps = constants.barrier_warp_clocks * work.launched.warps
            found.append(constants.barrier_clocks + warps)
        else:
            found.append(OTHER_LATENCY)
    return found


def _of_memory(work: Work, constants: Constants) -> list[Limit]:
    gpu, memory = work.launched.gpu, work.memory
    local_read, local_written, spilled = _local(work)
    l2_rate, l2_bytes = 1e9 * (gpu.l2_gb_s or 0), (gpu.l2_mb or 0) * 2**20
    took = (memory.l2_moved + local_read) / (l2_rate * constants.l2_read)
    words = memory.l2_written * memory.empty
    took += (memory.l2_written - words + local_written) / (l2_rate * constants.l2_write)
    took += words / (l2_rate * constants.l2_words)
    took += memory.l2_atomic / 32 / (constants.atomic_gs * 1e9)
    moved = memory.l2_read + memory.l2_written + memory.l2_atomic + local_read + local_written

    fetched, written = memory.fetched + spilled * local_read, memory.written + spilled * local_written
    # A launch finds the L2 full of others' data. A share of it must be written back before it makes room, and
    # as much of what the launch itself writes stays behind.
    dirty = constants.dirty * min(fetched + written, l2_bytes)
    evicted = dirty + max(0.0, written - constants.dirty * l2_bytes)
    both = fetched + evicted
    mixed = min(1.0, 4 * min(fetched, evicted) / both) if both else 0.0
    rate = 1e9 * (gpu.dram_gb_s or 0) * (constants.read_gain + (1 - constants.read_gain) * mixed)
    alone = constants.scattered * memory.scattered
    return [Limit(L2, took, moved, "bytes"), Limit(DRAM, (both + alone) / rate, both, "bytes")]


def _local(work: Work) -> tuple[float, float, float]:
    """Return the bytes of local memory that are read from and written to the L2, and the share beyond it."""
    if not work.local_bytes:
        return 0.0, 0.0, 0.0
    launched = work.launched
    request = launched.blocks * WARP * 4.0
    resident = work.resident * launched.warps * WARP * work.local_bytes
    missed = max(0.0, 1 - launched.l1_bytes / resident)
    everywhere = resident * launched.gpu.multiprocessors
    beyond = max(0.0, 1 - 0.5 * (launched.gpu.l2_mb or 0) * 2**20 / everywhere)
    read, written = (work.total("issued", names) for names in (LOCAL_LOADS, LOCAL_STORES))
    return read * request * missed, written * request, beyond


NEEDED = {
    "boost_mhz": "its clock",
    "l1_kb": "the size of its L1",
    "l2_mb": "the size of its L2",
    "l1_latency": "the latency of its L1",
    "shared_latency": "the latency of its shared memory",
    "l2_latency": "the latency of its L2",
    "dram_latency": "the latency of its memory",
    "l2_gb_s": "the bandwidth of its L2",
    "dram_gb_s": "the measured bandwidth of its memory",
    "int32_per_clock": "its integer operations per clock",
    "special_per_clock": "its special functions per clock",
}


def missing(gpu: Gpu) -> list[str]:
    """Return what is not known of a GPU, and a prediction needs."""
    return [what for field, what in NEEDED.items() if getattr(gpu, field) is None]
