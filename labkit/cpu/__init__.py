"""Matrix kernels in C on this machine's processor.

cpu.check(kernel)            is it right, on sizes that trip the usual mistakes
cpu.measure(kernel, problem) how long it takes, honestly
cpu.peak_gflops, cpu.copy_gbytes_per_s   what this machine could do at most
cpu.rung(name), cpu.ladder   the rungs from three loops to BLAS speed, and their times; cpu.ladder_picture
"""

from importlib import import_module

from labkit.cpu.blas import Blas
from labkit.cpu.measure import check, copy_gbytes_per_s, measure, peak_gflops
from labkit.cpu.products import BLAS, RUNGS, block_sweep, ladder, rung, time_rung
from labkit.kernels.in_c import CpuKernel
from simt.common.processor import caches, cores, cpu_name

__all__ = [
    "BLAS",
    "RUNGS",
    "Blas",
    "CpuKernel",
    "block_sweep",
    "caches",
    "check",
    "copy_gbytes_per_s",
    "cores",
    "cpu_name",
    "ladder",
    "ladder_picture",
    "measure",
    "peak_gflops",
    "rung",
    "time_rung",
]


def __getattr__(name: str) -> object:
    """Import `cpu.ladder_picture` when it is used: drawing belongs to a room above this one."""
    if name == "ladder_picture":
        return import_module("labkit.figures.cpu_ladder").ladder_picture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
