"""Matrix kernels in C on this machine's processor.

cpu.check(kernel)            is it right, on sizes that trip the usual mistakes
cpu.measure(kernel, problem) how long it takes, honestly
cpu.ceilings(threads)        what this machine could do at most
cpu.rung(name), cpu.ladder   the rungs from three loops to BLAS speed, and their times beside the reports'
"""

from labkit.cpu.kernel import Blas, CpuKernel
from labkit.cpu.machine import caches, cores, cpu_name
from labkit.cpu.measure import (
    BLAS,
    RUNGS,
    Ceilings,
    ceilings,
    check,
    ladder,
    measure,
    rung,
    time_rung,
)

__all__ = [
    "BLAS",
    "RUNGS",
    "Blas",
    "Ceilings",
    "CpuKernel",
    "caches",
    "ceilings",
    "check",
    "cores",
    "cpu_name",
    "ladder",
    "measure",
    "rung",
    "time_rung",
]
