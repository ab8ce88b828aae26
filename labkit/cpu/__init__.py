"""Matrix kernels in C on this machine's processor.

cpu.check(kernel)            is it right, on sizes that trip the usual mistakes
cpu.measure(kernel, problem) how long it takes, honestly
cpu.peak_gflops, cpu.copy_gbytes_per_s   what this machine could do at most
cpu.rung(name), cpu.ladder   the rungs from three loops to BLAS speed, and their times; cpu.ladder_picture
"""

from labkit.core.processor import caches, cores, cpu_name
from labkit.cpu.kernel import Blas, CpuKernel
from labkit.cpu.ladder_picture import ladder_picture
from labkit.cpu.measure import (
    BLAS,
    RUNGS,
    block_sweep,
    check,
    copy_gbytes_per_s,
    ladder,
    measure,
    peak_gflops,
    rung,
    time_rung,
)

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
