"""What keeps a rung below the peak of the recorded H200: bytes, instructions and blocks, each as a rate.

- Bytes: a kernel with I operations for each byte asked of the L1 caches does no more than I times their
  bandwidth (`roofline`).
- Instructions: an SM begins one instruction a clock in each of its four quarters, and a quarter has lanes
  for one warp (`ceilings.fma_share`). So the share of multiply-adds among the instructions is the most of the
  peak that is left. Nsight Compute counts the instructions; a product's multiply-adds are M N K / 32.
- Blocks: one SM works at a block. Of b equal blocks on s SMs one SM gets ceil(b / s), and the others wait for
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
    """What the GPU allows rungs on `problem`, and what was measured: 10^12 operations a second.

    Rows: `rungs`, or all that were timed. Columns: `peak`, `L1 bytes`, `instructions`, `blocks`, `measured`;
    missing where no count was recorded. Raises ValueError where there is no time of the problem or a rung.
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
    intensity = pd.Series(intensities(counters(problem.dtype)))
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
    """Share of the peak that is left where equal blocks go round the SMs: 1 if all get as many."""
    return blocks / (multiprocessors * ceil(blocks / multiprocessors))


def _fill(rung: str, problem: Matmul) -> float:
    return fill_share(block_count(rung, problem), gpu().multiprocessors)


def block_count(rung: str, problem: Matmul) -> int:
    """Blocks that a rung with its defaults launches on `problem`."""
    case = running.case(rung, problem)
    return prod(kernels.launch(case.kernel, problem, **dict(case.macros))[0])


def peak_rate(dtype: str) -> float:
    """Most operations of the GPU, 10^12 a second: in theory or, where that has no figure, measured."""
    roofs = ceilings()
    of_dtype = roofs[roofs.quantity.isin(["peak_performance", "performance"]) & (roofs.dtype == dtype)]
    return float(of_dtype.value.max()) / 1e3


def counted(rung: str) -> pd.Series:
    """Nsight Compute's counters of a rung in float32, by their names."""
    runs = _runs()
    rows = runs[(runs.kernel == rung) & (runs.n == COUNTED) & (runs.dtype == "float32")]
    return rows.set_index("quantity").value


def multiply_add_shares(dtype: str = "float32") -> pd.Series:
    """By rung: multiply-adds among the instructions that warps executed, as Nsight Compute counted them."""
    runs = _runs()
    executed = runs[(runs.quantity == INSTRUCTIONS) & (runs.n == COUNTED) & (runs.dtype == dtype)]
    return COUNTED**3 / WARP / executed.set_index("kernel").value


def gpu() -> occupancy.Gpu:
    """The recorded GPU, a row of data/gpus.csv."""
    return occupancy.gpu(str(ceilings().machine.iloc[0]))


@lru_cache
def times_of(problem: Matmul) -> pd.DataFrame:
    """`ladder.recorded`, read once."""
    return running.recorded(problem, MACHINE)


@lru_cache
def counters(dtype: str) -> pd.DataFrame:
    """Sectors of each rung's global loads and stores, in the columns of `records.load`.

    Of float32 those that Nsight Compute counted on the machine, and they are those of int32, whose addresses
    are the same. Of float64 what the simulator counts.
    """
    if dtype != "float64":
        runs = _runs()
        rungs = runs.kernel.isin(list(running.rungs("matmul"))) & (runs.dtype == "float32")
        return runs[rungs & runs.quantity.isin(SECTORS) & (runs.n == COUNTED)]
    problem = Matmul(COUNTED, COUNTED, COUNTED, dtype=dtype)
    timed = times_of(problem).kernel.drop_duplicates()
    return count_sectors([rung for rung in timed if rung in running.rungs("matmul")], problem)


def ceilings() -> pd.DataFrame:
    """The ceilings that `roofline` draws, as `ceilings.table` gives those of this machine's GPU."""
    runs = _runs()
    return runs[runs.quantity.isin(ROOFS) & runs.kernel.isin(["", "peak", "memcpy"])]


@lru_cache
def _runs() -> pd.DataFrame:
    return records.recorded(MACHINE)
