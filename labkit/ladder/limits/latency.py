"""Latencies: clocks per step of a chain in which each step waits for the one before."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from labkit.ladder.limits.machine import MIB, Limit, Machine

UNROLLED, MEMORY_STEPS = 256, 16  # as in latency.cu
OPERATIONS = {"FFMA": np.float32, "DFMA": np.float64, "IMAD": np.int32, "MUFU": np.float32, "SHFL": np.int32}
SHARED = {"shared": "LDS", "shared atomic": "ATOMS"}
# Name: kernel, bytes of the ring, bytes from one address to the next, whether it is walked before.
RINGS: dict[str, tuple[str, int, int, bool]] = {
    "L1": ("L1", 8 * 2**10, 64, True),
    "L2": ("L2", MIB, 256, True),
    "DRAM": ("L2", 4 * MIB, 1024, False),
    "DRAM, spread": ("L2", 1024 * MIB, MIB // 4, False),
    "global atomic": ("ATOMIC", 4096, 4096, True),
}
BARRIERS = (32, 256, 1024)
INSTANCES = [
    *(f"chain<{name}>" for name in OPERATIONS),
    *(f"chase<{name}>" for name in ("L1", "L2", "ATOMIC")),
    *(f"chase_shared<{name}>" for name in SHARED.values()),
]


def limits() -> Iterator[Limit]:
    """Yield the latencies."""
    made: dict[str, Any] = {name: partial(_ring, name) for name in RINGS}
    made |= {name: partial(_shared, kernel) for name, kernel in SHARED.items()}
    made |= {name: partial(_operation, name) for name in OPERATIONS}
    made |= {f"barrier {threads}": partial(_barrier, threads) for threads in BARRIERS}
    for name, measure in made.items():
        yield Limit("latency", name, "clocks", measure)


def _operation(name: str, machine: Machine) -> float:
    one, rounds = OPERATIONS[name], machine.rounds(16)
    kernel = machine.kernel("latency", f"chain<{name}>")
    return machine.cycles_of_thread(kernel, 32, (one(1), one(1), rounds, 0)) / (rounds * UNROLLED)


def _shared(name: str, machine: Machine) -> float:
    rounds = machine.rounds(16)
    kernel = machine.kernel("latency", f"chase_shared<{name}>")
    return machine.cycles_of_thread(kernel, 1, (np.uint32(0), rounds, 0)) / (rounds * UNROLLED)


def _ring(name: str, machine: Machine) -> float:
    """Link a ring of addresses and walk it once, after a walk that fills the cache or after a flush."""
    instance, size, stride, is_warm = RINGS[name]
    count = size // stride
    if not machine.is_gpu:
        count, stride = min(count, 64), min(stride, 256)
    ring = machine.array(count * stride).view(np.uint64)
    jump = 1021 % count or 1  # prime: the walk meets each address before it begins again
    link = machine.kernel("latency", "link")
    machine.launch(link, -(-count // 256), 256, (ring, count, stride // 8, jump))
    if not is_warm:
        machine.flush()
    steps = max(count, MEMORY_STEPS) if not is_warm else machine.rounds(64) * MEMORY_STEPS
    warm = max(count, MEMORY_STEPS) if is_warm else 0
    kernel = machine.kernel("latency", f"chase<{instance}>")
    return machine.cycles_of_thread(kernel, 1, (ring, np.uint64(0), warm, steps, 0)) / steps


def _barrier(threads: int, machine: Machine) -> float:
    rounds = machine.rounds(64)
    kernel = machine.kernel("latency", "barriers")
    return machine.cycles_of_thread(kernel, threads, (rounds,)) / (rounds * MEMORY_STEPS)
