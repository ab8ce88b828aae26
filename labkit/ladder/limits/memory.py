"""Bandwidths and atomic operations of the whole GPU: L2 cache and device memory."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from labkit.ladder.limits.machine import MIB, Limit, Machine

ELEMENT, SECTOR, BLOCK = 16, 32, 256  # bytes, bytes, threads
EACH, ADDS = 4, 16  # as in memory.cu
NEVER = np.uint32(0x9E3779B9)
FOOTPRINTS = (4, 8, 16, 24, 32, 40, 48, 64)
ARRAYS = (64, 128, 256, 512, 1024)
STREAMS = {"dram_read": (1, 0), "dram_write": (0, 1), "dram_copy": (1, 1), "dram_triad": (2, 1)}
WARPS = (1, 2, 4, 8, 16, 32, 64)
L2_BYTES = 2**33  # read in all, per measurement
# Variant: threads per one that adds, elements from one that adds to the next.
ADDITIONS = {
    "32 lanes per request, distinct addresses": (1, 1),
    "32 lanes per request, one address": (1, 0),
    "1 lane per request, distinct sectors": (32, 8),
    "1 lane per request, one address": (32, 0),
}
INSTANCES = [
    *(f"stream<{reads}, {writes}>" for reads, writes in STREAMS.values()),
    "sectors<true>",
    "sectors<false>",
    "add<S32>",
    "add<F32>",
]


def limits() -> Iterator[Limit]:
    """Yield the rates of the whole GPU."""
    for size in FOOTPRINTS:
        yield Limit("l2_read", f"{size} MiB", "GB/s", partial(_l2_read, size * MIB))
    for size in (4, 16):
        yield Limit("l2_write", f"{size} MiB", "GB/s", partial(_l2_write, size * MIB))
    for quantity, (reads, writes) in STREAMS.items():
        for size in ARRAYS:
            yield Limit(quantity, f"{size} MiB", "GB/s", partial(_stream, reads, writes, size * MIB))
    for warps in WARPS:
        yield Limit("dram_in_flight", f"{warps} warps/SM", "GB/s", partial(_in_flight, warps))
    for apart in (64, 128, 256):
        yield Limit("sectors", f"one per {apart} bytes", "GB/s", partial(_sectors, apart))
    for size in (16, 1024):
        yield Limit("gather", f"{size} MiB", "GB/s", partial(_gather, size * MIB))
    for kind, instance in (("int", "S32"), ("float", "F32")):
        for name, (every, stride) in ADDITIONS.items():
            measure = partial(_additions, instance, every, stride)
            yield Limit("atomics", f"{kind}, {name}", "10^9/s", measure)


def _l2_read(size: int, machine: Machine) -> float:
    size, grid = machine.size(size), machine.multiprocessors
    passes = max(1, machine.rounds(L2_BYTES) // (size * grid))
    args = (machine.array(size), _sink(machine), size // ELEMENT, passes, NEVER)
    seconds = machine.seconds(machine.kernel("memory", "read_all"), grid, 1024, args)
    return size * grid * passes / seconds / 1e9


def _l2_write(size: int, machine: Machine) -> float:
    size = machine.size(size)
    passes = max(1, machine.rounds(L2_BYTES // 2) // size)
    args = (machine.array(size), size // ELEMENT, passes)
    kernel, grid = machine.kernel("memory", "write_all"), 2 * machine.multiprocessors
    return size * passes / machine.seconds(kernel, grid, 1024, args) / 1e9


def _stream(reads: int, writes: int, size: int, machine: Machine) -> float:
    size = machine.size(size)
    # An array that is not used is as good as any other.
    first, second = machine.array(size), machine.array(size, 1 if reads > 1 else 0)
    out = machine.array(size, 2) if writes else first
    args = (first, second, out, _sink(machine), size // ELEMENT, NEVER)
    kernel = machine.kernel("memory", f"stream<{reads}, {writes}>")
    seconds = machine.seconds(kernel, size // (ELEMENT * EACH * BLOCK), BLOCK, args)
    return (reads + writes) * size / seconds / 1e9


def _in_flight(warps: int, machine: Machine) -> float:
    """Copy with so many warps per SM, each of whose threads waits for its element."""
    size, blocks = machine.size(128 * MIB), -(-warps // 32)
    args = (machine.array(size), machine.array(size, 2), size // ELEMENT)
    kernel, grid = machine.kernel("memory", "copy_one_by_one"), blocks * machine.multiprocessors
    return 2 * size / machine.seconds(kernel, grid, 32 * warps // blocks, args) / 1e9


def _sectors(apart: int, machine: Machine) -> float:
    size = machine.size(1024 * MIB)
    return _sector_rate("sectors<false>", size // apart, apart // SECTOR, size, machine)


def _gather(size: int, machine: Machine) -> float:
    size = machine.size(size)
    return _sector_rate("sectors<true>", machine.size(1024 * MIB) // 64, 1, size, machine)


def _sector_rate(instance: str, count: int, stride: int, size: int, machine: Machine) -> float:
    """Read `count` sectors of an array of `size` bytes and return the GB/s of what was asked for."""
    args = (machine.array(size), _sink(machine), np.uint32(size // SECTOR), stride, NEVER)
    grid = max(1, 2 * count // (EACH * BLOCK))
    seconds = machine.seconds(machine.kernel("memory", instance), grid, BLOCK, args)
    return grid * EACH * BLOCK * ELEMENT / seconds / 1e9


def _additions(instance: str, every: int, stride: int, machine: Machine) -> float:
    """Add to an array of 16 MiB; few threads where many would wait for one address."""
    size = machine.size(16 * MIB)
    threads = size // 4 // (1 if stride else 8)
    args = (machine.array(size), np.uint32(size // 4), every, stride)
    seconds = machine.seconds(machine.kernel("memory", f"add<{instance}>"), threads // BLOCK, BLOCK, args)
    return threads // every * ADDS / seconds / 1e9


def _sink(machine: Machine) -> Any:
    """Return where kernels would store what they have read, if they did."""
    return machine.array(ELEMENT, 3)
