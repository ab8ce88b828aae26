"""The GPU that a program sees: figures of gpus.csv, and how long copies and launches take."""

from __future__ import annotations

import os
import sys

from simt.common.occupancy import Gpu

# Data sheets: PCI Express of each generation with 16 lanes, in GB/s per direction.
_PCI_GB_S = {6: 15.8, 7: 15.8, 8: 31.5, 9: 63.0, 10: 63.0, 12: 63.0}
# Data sheets: the width of the memory's bus in bits. Its clock follows from that and the bandwidth.
_BUS_BITS = {
    "P100": 4096, "GTX 1080": 256, "V100": 4096, "GTX 1650": 128, "T4": 256, "RTX 2080 Ti": 352,
    "A100-SXM4-40GB": 5120, "A100-SXM4-80GB": 5120, "RTX 3060": 192, "RTX 3090": 384, "A10": 384,
    "RTX 4060": 128, "RTX 4090": 384, "L4": 192, "L40S": 384, "H100 PCIe": 5120, "H100 SXM5": 5120,
    "H200": 6144, "GH200": 6144, "B200": 8192, "RTX 5070": 192, "RTX 5090": 512,
}  # fmt: skip
# An H200 (benchmarks/copies.cu, data/h200/copies.txt): 55 GB/s of 63 from pinned memory and 14 from pageable;
# 2.5 and 6 µs for a copy to begin; the host gives out a launch every 3.5 µs.
USED, PAGEABLE = 0.87, 0.22
LAUNCH_SECONDS, COPY_SECONDS, PAGEABLE_COPY_SECONDS = 3.5e-6, 2.5e-6, 6e-6


def described(gpu: Gpu) -> str:
    """Return lines "key value" as runtime/device.c reads them; rates are in bytes per second."""
    major, minor = (int(part) for part in gpu.compute_capability.split("."))
    link = pinned_rate(gpu)
    memory = min(gpu.memory_gb * 10**9, _available())
    bandwidth = (gpu.dram_gb_s or 0.9 * (gpu.bandwidth_gb_s or 500)) * 1e9
    bus = _BUS_BITS.get(gpu.name, 0)
    clock = int((gpu.bandwidth_gb_s or 0) * 1e6 / (2 * bus / 8)) if bus else 0  # two transfers per cycle
    known = {
        "name": gpu.name,
        "major": major,
        "minor": minor,
        "multiprocessors": gpu.multiprocessors,
        "threads_per_sm": gpu.threads_per_sm,
        "blocks_per_sm": gpu.blocks_per_sm,
        "registers_per_sm": gpu.registers_per_sm,
        "shared_per_sm": gpu.shared_bytes_per_sm,
        "shared_per_block": gpu.shared_bytes_per_block,
        "reserved_shared": gpu.reserved_shared_bytes,
        "l2_bytes": int((gpu.l2_mb or 0) * 2**20),
        "clock_khz": (gpu.boost_mhz or 0) * 1000,
        "bus_bits": bus,
        "memory_clock_khz": clock,
        "single_to_double": gpu.fp32_cores_per_sm // (gpu.fp64_per_clock or 2),
        "memory_bytes": memory,
        "launch_seconds": LAUNCH_SECONDS,
        "copy_seconds": COPY_SECONDS,
        "pageable_copy_seconds": PAGEABLE_COPY_SECONDS,
        "pinned_rate": link,
        "pageable_rate": PAGEABLE * link,
        "device_rate": bandwidth / 2,
    }
    return "".join(f"{key} {value}\n" for key, value in known.items())


def pinned_rate(gpu: Gpu) -> float:
    """Return the bytes per second of a copy between pinned memory and the GPU, as predicted."""
    major = int(gpu.compute_capability.partition(".")[0])
    return _PCI_GB_S.get(major, 31.5) * 1e9 * USED


def _available() -> int:
    """Return how much memory this machine has left, in bytes: device memory is a part of it."""
    if sys.platform == "win32":  # where no program runs
        return 1 << 34
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 1 << 34
