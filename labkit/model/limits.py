"""What keeps a rung below the peak of the recorded H200: bytes, instructions and blocks, each as a rate.

- Bytes: a kernel with I operations per byte asked of the L1 caches does no more than I times their
  bandwidth (`roofline`).
- Instructions: an SM issues one instruction per clock in each of its four sub-partitions, and a sub-partition
  has CUDA cores for one warp (`ceilings.fma_share`). So the share of multiply-adds among the instructions
  bounds the share of the peak. Nsight Compute counts the instructions; a product has M N K / 32
  multiply-adds.
- Blocks: a block runs on one SM. Of b equal blocks on s SMs, one SM gets ceil(b / s), and the others wait for
  it: b / (s ceil(b / s)) of the peak.

The recorded counts are those of one size. Shares and intensities hardly depend on it.
"""

from functools import lru_cache
from math import ceil, prod

import pandas as pd

from labkit import kernels, records
from labkit.core import occupancy
from labkit.core.limits import WARP
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model.roofline import SECTORS, count_sectors, intensities

MACHINE = "h200"
INSTRUCTIONS = "smsp__inst_executed.sum"
COUNTED = 1024  # M, N and K of the products whose counters are recorded
ROOFS = ("peak_performance", "performance", "peak_bandwidth", "bandwidth", "peak_l1_bandwidth")


def bounds(problem: Matmul, *rungs: str) -> pd.DataFrame:
    """Return what the GPU allows rungs on `problem`, and what was measured, in 10^12 operations per second.

    Rows: `rungs`, or all that were timed. Columns: `peak`, `L1 bytes`, `instructions`, `blocks`, `measured`;
    values are missing where no count was recorded. Raises ValueError where there is no time of the problem or
    a rung.
    """
    rows = times_of(problem)
    rows = rows[rows.kernel != Matmul.reference_name]
    times = dict(zip(rows.kernel, rows.value, strict=True))
    missing = [rung for rung in rungs if rung not in times]
    if missing or not times:
        raise ValueError(f"no time of {' and '.join(missing) or 'a rung'} on {problem} is recorded.")
    chosen = pd.Index(rungs or list(times), name="kernel")
    peak, roofs = peak_rate(problem.dtype), ceilings()
    (l1_gb_s,) = roofs[roofs.quantity == "peak_l1_bandwidth"].value
    intensity = pd.Series(intensity_of(problem.dtype))
    return pd.DataFrame(
        {
            "peak": peak,
            "L1 bytes": intensity.reindex(chosen) * l1_gb_s / 1e3,
            "instructions": multiply_add_shares(problem.dtype).reindex(chosen) * peak,
            "blocks": [_fill(rung, problem) * peak for rung in chosen],
            "measured": [problem.gflops(times[rung] / 1e3) / 1e3 for rung in chosen],
        },
        index=chosen,
    )


def fill_share(blocks: int, multiprocessors: int) -> float:
    """Return the share of the peak left when equal blocks are spread over the SMs: 1 if all get as many."""
    return blocks / (multiprocessors * ceil(blocks / multiprocessors))


def _fill(rung: str, problem: Matmul) -> float:
    return fill_share(block_count(rung, problem), gpu().multiprocessors)


def block_count(rung: str, problem: Matmul) -> int:
    """Return the blocks that a rung with its defaults launches on `problem`."""
    case = running.case(rung, problem)
    return prod(kernels.launch(case.kernel, problem, **dict(case.macros))[0])


@lru_cache
def intensity_of(dtype: str) -> dict[str, float]:
    """Return the FLOP per byte asked of the L1 caches, by rung."""
    return intensities(counters(dtype))


@lru_cache
def peak_rate(dtype: str) -> float:
    """Return the GPU's peak in 10^12 operations per second: theoretical, or measured if there is no other."""
    roofs = ceilings()
    of_dtype = roofs[roofs.quantity.isin(["peak_performance", "performance"]) & (roofs.dtype == dtype)]
    return float(of_dtype.value.max()) / 1e3


def counted(rung: str) -> pd.Series:
    """Return Nsight Compute's counters of a rung in float32, by their names."""
    runs = _runs()
    rows = runs[(runs.kernel == rung) & (runs.n == COUNTED) & (runs.dtype == "float32")]
    return rows.set_index("quantity").value


@lru_cache
def multiply_add_shares(dtype: str = "float32") -> pd.Series:
    """Return, by rung, the share of multiply-adds in the instructions that Nsight Compute counted."""
    runs = _runs()
    executed = runs[(runs.quantity == INSTRUCTIONS) & (runs.n == COUNTED) & (runs.dtype == dtype)]
    return COUNTED**3 / WARP / executed.set_index("kernel").value


def gpu() -> occupancy.Gpu:
    """Return the recorded GPU, a row of data/gpus.csv."""
    return occupancy.gpu(str(ceilings().machine.iloc[0]))


@lru_cache
def times_of(problem: Matmul) -> pd.DataFrame:
    """Read `ladder.recorded` once."""
    return running.recorded(problem, MACHINE)


@lru_cache
def counters(dtype: str) -> pd.DataFrame:
    """Return the sectors of each rung's global loads and stores, in the columns of `records.load`.

    For float32, Nsight Compute counted them on the machine; they hold for int32, whose addresses are the
    same. For float64, the simulator counts them.
    """
    if dtype != "float64":
        runs = _runs()
        rungs = runs.kernel.isin(list(running.rungs("matmul"))) & (runs.dtype == "float32")
        return runs[rungs & runs.quantity.isin(SECTORS) & (runs.n == COUNTED)]
    problem = Matmul(COUNTED, COUNTED, COUNTED, dtype=dtype)
    timed = times_of(problem).kernel.drop_duplicates()
    return count_sectors([rung for rung in timed if rung in running.rungs("matmul")], problem)


@lru_cache
def ceilings() -> pd.DataFrame:
    """Return the ceilings that `roofline` draws, as `ceilings.table` gives those of this machine's GPU."""
    runs = _runs()
    return runs[runs.quantity.isin(ROOFS) & runs.kernel.isin(["", "peak", "memcpy"])]


@lru_cache
def _runs() -> pd.DataFrame:
    return records.recorded(MACHINE)
