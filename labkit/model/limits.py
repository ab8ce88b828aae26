"""What keeps each rung of the products below the peak of an H200, as the model of `simt.timing` has it.

The model says how long each part of the GPU would take for a launch that needs nothing else: its issue slots,
its CUDA cores, the requests to its L1 caches, and so on. The work divided by such a time is a limit, the rate
that the part allows. data/limits_of_rungs.csv has these times for all rungs at the sizes of the explorer of
the roofline; benchmarks/limits_of_rungs.py writes it.
"""

from functools import lru_cache
from math import ceil, prod

import pandas as pd

from labkit import kernels, records
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model.roofline import DRAM, L1_BYTES, SECTORS, count_sectors, intensities
from labkit.paths import shipped
from simt.common import occupancy

MACHINE = "h200"
MODEL = shipped("data") / "limits_of_rungs.csv"
COUNTED = 1024  # M, N and K of the products whose counters are recorded
ROOFS = ("peak_performance", "performance", "peak_bandwidth", "bandwidth", "peak_l1_bandwidth")
# The parts of the GPU, as `Prediction.limits` calls them.
NAMES = (
    "issue slots",
    "FP32",
    "integer",
    "FP64",
    "special functions",
    "L1 requests",
    "shared memory",
    "L1 stores",
    "latency",
    "starting blocks",
    "L2",
    "DRAM",
)
CYCLES = {"L1 requests": "L1 cycles", "shared memory": "shared cycles"}  # columns of the table, for all SMs
LINE = 128  # bytes that an L1 cache, or shared memory, can deliver per clock


def bounds(problem: Matmul, *rungs: str) -> pd.DataFrame:
    """Return what each part of an H200 allows rungs on `problem`, and what was measured.

    All are rates in 10^12 operations per second. Rows: `rungs`, or all that were timed and that the model
    knows; it refuses stream_k, where a block's work depends on when others arrive. Columns: NAMES, each
    with the rate that the part alone allows; what the model predicts, in `predicted`, `low` and `high`; and
    `measured`. A part that a rung does not use allows an infinite rate. Raises ValueError where no time of
    the problem or a rung is recorded.
    """
    rows = times_of(problem)
    rows = rows[rows.kernel != Matmul.reference_name]
    times = dict(zip(rows.kernel, rows.value, strict=True))
    missing = [rung for rung in rungs if rung not in times]
    if missing or not times:
        raise ValueError(f"no time of {' and '.join(missing) or 'a rung'} on {problem} is recorded.")
    known = _of_problem(problem)
    chosen = pd.Index(rungs or [rung for rung in times if rung in known.index], name="kernel")
    model = known.reindex(chosen)
    table = problem.flops / 1e9 / model[[*NAMES, "predicted", "high", "low"]]
    table = table.rename(columns={"high": "low", "low": "high"})  # of the rates: a long time is a low rate
    return table.assign(measured=[problem.gflops(times[rung] / 1e3) / 1e3 for rung in chosen])


def lowest(table: pd.DataFrame) -> pd.Series:
    """Return the name of each rung's lowest limit, from the rows of `bounds`."""
    return table[list(NAMES)].idxmin(axis=1)


def intensity_at(level: str, problem: Matmul) -> dict[str, float]:
    """Return the FLOP per byte of each rung at a level of memory.

    L1 bytes       32 per sector of global loads and stores
    L1 requests    128 for each clock that they keep an L1 cache busy: it delivers one line per clock, however
                   few bytes of it are wanted
    shared memory  128 for each clock that its banks are busy
    DRAM           those that really come from the device memory, or go there

    Rungs without such bytes are left out.
    """
    if level == L1_BYTES:
        return dict(intensity_of(problem.dtype))
    model = _of_problem(problem)
    moved = model["DRAM bytes"] if level == DRAM else LINE * model[CYCLES[level]]
    used = moved[moved > 0]
    return {str(rung): problem.flops / float(used[rung]) for rung in used.index}


@lru_cache
def _of_problem(problem: Matmul) -> pd.DataFrame:
    """Return the rows of the model's table for one problem, by rung."""
    table = _model()
    rows = table[(table.dtype == problem.dtype) & (table.n == problem.N)]
    return rows.set_index("kernel") if problem.M == problem.N == problem.K else rows[:0].set_index("kernel")


@lru_cache
def _model() -> pd.DataFrame:
    return pd.read_csv(MODEL)


def fill_share(blocks: int, multiprocessors: int) -> float:
    """Return the share of the peak left when equal blocks are spread over the SMs: 1 if all get as many."""
    return blocks / (multiprocessors * ceil(blocks / multiprocessors))


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


def gpu() -> occupancy.Gpu:
    """Return the recorded GPU, a row of gpus.csv."""
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
