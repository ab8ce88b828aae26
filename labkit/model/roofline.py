"""FLOP per byte at the levels of a GPU's memory; here those that a kernel asks of the L1 caches.

These are 32 bytes per sector of its loads and stores. `labkit.model.limits` has the other levels of the
recorded rungs, and `labkit.figures.roofline` draws them.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from labkit import kernels, records
from labkit.kernels.problem import Problem, problem_of
from labkit.ladder import running
from simt.kernel import PATIENCE_SECONDS

SECTOR = 32  # bytes
COUNTED = "counted by the simulator in some blocks, scaled"
# The levels that deliver bytes, each with a roof of its own.
L1_BYTES, L1_REQUESTS, SHARED, DRAM = "L1 bytes", "L1 requests", "shared memory", "DRAM"
SECTORS = tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))


def count_sectors(rungs: Iterable[str], problem: Problem, blocks: int = 4) -> pd.DataFrame:
    """Count the sectors that rungs of `labkit.ladder` ask for on `problem`, in the simulator.

    It runs a sample of `blocks` blocks on arrays of zeros, since the addresses do not depend on the values.
    Columns are those of `records.load`, and the quantities Nsight Compute's.
    """
    return records.frame_of(
        row for rung in rungs for row in _sector_rows(running.case(rung, problem), blocks)
    )


def _sector_rows(case: running.Case, blocks: int) -> list[dict[str, Any]]:
    problem, macros = case.problem, dict(case.macros)
    kernel = kernels.load(case.kernel, DTYPE=problem.ctype, **macros)
    launch = case.launch((*problem.zeros(), *problem.scalars()))
    profile = kernel.profile(*launch, blocks=blocks, timeout=PATIENCE_SECONDS)
    place = case.place() | {"machine": "", "unit": "sectors", "source": COUNTED}
    return [place | {"quantity": sectors, "value": profile.metrics[sectors]} for sectors in SECTORS]


def intensities(counters: pd.DataFrame) -> dict[str, float]:
    """Return the FLOP per byte asked of the L1 caches, by kernel, from counts of SECTORS in records.

    It hardly depends on the size, as both grow alike. Kernels that compute nothing are left out. Raises
    ValueError for several counts of a kernel.
    """
    counted = counters[counters.quantity.isin(SECTORS)]
    again = counted[counted.duplicated(["problem", "kernel", "quantity"])]
    if len(again):
        raise ValueError(f"several counts of {again.kernel.iloc[0]}: choose one size, block and dtype.")
    found = {}
    for kernel, rows in counted.groupby("kernel", sort=False):
        flops = problem_of(running.row_dicts(rows)[0]).flops
        if flops:
            found[str(kernel)] = flops / SECTOR / float(rows.value.sum())
    return found
