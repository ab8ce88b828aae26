"""The explorer of the roofline: one rung under the roofs of the recorded H200, and what holds it back.

Its limits are those of the model of a launch's time (`labkit.model.limits`), its rate is recorded.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, isinf

import pandas as pd

from labkit.devices.select import device
from labkit.figures.axes import Scale
from labkit.figures.limit_bars import limit_bars
from labkit.figures.roofline import Choice, Scene, draw, scene_at
from labkit.figures.svg import stacked
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits as bounds
from labkit.model.roofline import DRAM, L1_BYTES, L1_REQUESTS, SHARED
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection
from simt.timing.prediction import ADVICE

Row = Mapping[str, float]
SIZES = (256, 512, 1024, 2048, 4096, 8192)
DTYPES = ("float32", "float64", "int32")
LEVELS = {
    L1_REQUESTS: "L1 requests",
    L1_BYTES: "L1 bytes",
    SHARED: "shared memory",
    DRAM: "device memory",
}
# All that was recorded is inside; the roofs stay where they are while the size changes.
_WINDOW = Scale(0.01, 2600, log=True), Scale(0.07, 140, log=True)
_SHORT = 0.03  # ms: of a shorter launch start and end are a good part
_PLURAL = ("issue slots", "special functions", "L1 requests", "L1 stores", "starting blocks")
# Nsight Compute's measures of how busy a part of the SM was, in percent of what it can do.
_BUSY = {
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "the L1 cache with shared memory",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "the issue slots",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": "the CUDA cores",
}
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"


def roofline() -> Explorer:
    """Show one rung under the roofs of a recorded H200, and what limits it.

    Menus choose the dtype, which bytes are counted, and whether a GPU that is here times the rung, too;
    sliders, or a click in the picture, set the matrix size and the rung.
    """

    def offer(dtype: str, **_: object) -> dict[str, Choices | Offer]:
        why = "" if device().kind == "gpu" else "This machine has no GPU that CuPy finds."
        return {"rung": _rungs(dtype), "timed": Offer(why=why)}

    controls = {
        "rung": selection("rung", _rungs("float32"), "tiled", group="kernel"),
        "n": selection("matrix size", [(f"N = {n}", n) for n in SIZES], 4096, group="problem"),
        "dtype": menu("dtype", plain(DTYPES), group="problem"),
        "level": menu("roof of", [(name, level) for level, name in LEVELS.items()], group="bytes"),
        "timed": menu("on this GPU", [("not timed", False), ("timed", True)], group="here"),
    }
    return Explorer(roofline_view, controls, offer, "The roofline: what limits a kernel")


def roofline_view(dtype: str, n: int, rung: str, level: str = L1_REQUESTS, timed: bool = False) -> View:
    """Draw all rungs timed at size n on the recorded H200; `rung` stands out, with its lowest limit.

    `level` says which bytes are counted. If the rung is to be `timed` here, which takes a second or two, the
    text compares that.
    """
    problem = Matmul(n, n, n, dtype=dtype)
    times, scene = bounds.times_of(problem), _scene(problem, level)
    row = _bounds(problem)[rung]
    limits = {name: row[name] for name in bounds.NAMES if not isinf(row[name])}
    lowest = min(limits, key=limits.__getitem__)
    of_rung = times[times.kernel == rung].iloc[0]
    rate, peak, unit = row["measured"], bounds.peak_rate(dtype), scene.peak.unit
    choice = Choice([name for _, name in _rungs(dtype)], lowest, limits[lowest], _WINDOW)
    kind = "theoretical" if dtype == "float32" else "measured"
    conclusion = _conclusion(rung, row, lowest, unit, of_rung.value)
    lines = [
        f"{rung}, N = {n}, {dtype}: {rate:.3g} {unit}, {_percent(rate / peak)} of the {kind} "
        f"peak of {peak:.3g} ({of_rung.source}).",
        _cure(lowest, of_rung.value),
        _predicted(row, unit),
        _place(scene, rung, level),
        _blocks(problem, rung),
        *(_busy(rung) if dtype == "float32" else []),
        *_tensor_cores(times, problem, peak),
        *(_here(rung, problem, rate, unit) if timed else []),
    ]
    seconds = {name: problem.flops / 1e12 / rate for name, rate in limits.items()}
    ends = tuple(problem.flops / 1e12 / row[name] for name in ("high", "predicted", "low"))
    alt = f"How long each part of an H200 would take alone for {rung}, N = {n}: {conclusion}"
    bars = limit_bars(seconds, (ends[0], ends[1], ends[2]), of_rung.value / 1e3, alt)
    return View(
        (stacked((draw(scene, rung, choice), bars)),),  # one picture, so that the controls stand beside it
        conclusion,
        "\n".join(lines),
        "Point at a rung or a bar to see its numbers; click a rung, or its name, to choose it.",
    )


@lru_cache
def _scene(problem: Matmul, level: str) -> Scene:
    intensity = bounds.intensity_at(level, problem)
    counted = level == L1_BYTES
    source = str(bounds.counters(problem.dtype).source.iloc[0]) if counted else "bytes: predicted"
    return scene_at(level, bounds.times_of(problem), intensity, bounds.ceilings(), source)


@lru_cache
def _bounds(problem: Matmul) -> dict[str, Row]:
    return {str(rung): dict(row) for rung, row in bounds.bounds(problem).iterrows()}


# Sentences. `row` has the rates of one rung in 10^12 a second, as `bounds.bounds` returns them.


def _conclusion(rung: str, row: Row, lowest: str, unit: str, milliseconds: float) -> str:
    """Say how near the rung comes to its lowest limit."""
    if milliseconds < _SHORT:
        return (
            f"{rung} takes {1e3 * milliseconds:.0f} µs, and the start and end of the launch are a good part "
            f"of that; of the rest {_is_first(lowest)}."
        )
    return f"{rung} reaches {row['measured']:.3g} of at most {row[lowest]:.3g} {unit}: {_is_first(lowest)}."


def _is_first(lowest: str) -> str:
    return f"{lowest} {'are' if lowest in _PLURAL else 'is'} the lowest limit"


def _cure(lowest: str, milliseconds: float) -> str:
    """Say what the lowest limit is, and what lifts it."""
    told = f"{lowest}: {ADVICE[lowest]}."
    if milliseconds >= _SHORT:
        return told
    return f"{told} But a launch that does next to nothing takes {1e3 * _least():.0f} µs already."


def _predicted(row: Row, unit: str) -> str:
    """Say what the model expects, and whether the recorded rate is within its interval."""
    told = f"Predicted for an H200: {row['predicted']:.3g} {unit}"
    told += f", in most cases {row['low']:.3g} to {row['high']:.3g}"
    if row["measured"] < row["low"]:
        return f"{told}. The recorded rate is lower: the model misses something that the kernel waits for."
    if row["measured"] > row["high"]:
        return f"{told}. The recorded rate is higher: the model takes something for slower than it is."
    return f"{told}; recorded: {row['measured']:.3g}."


@lru_cache
def _least() -> float:
    """Return the milliseconds of the smallest recorded launch, a naive product of 32 x 32 matrices."""
    return float(bounds.times_of(Matmul(32, 32, 32)).value.min())


def _place(scene: Scene, rung: str, level: str) -> str:
    """Say what the rung's place across means."""
    if rung not in scene.intensity:
        return f"{rung} does not use shared memory, so it has no place across."
    intensity = scene.intensity[rung]
    roof = scene.roof_at(intensity)
    does = {
        L1_BYTES: f"It does {intensity:.3g} FLOP per byte that it asks of the L1 caches",
        L1_REQUESTS: (
            f"Its requests keep an L1 cache busy for one clock per {128 * intensity:.3g} FLOP. In a clock "
            f"the cache can deliver 128 bytes, so these are {intensity:.3g} FLOP per byte"
        ),
        SHARED: (
            f"It keeps the banks of shared memory busy for one clock per {128 * intensity:.3g} FLOP. In a "
            f"clock they can deliver 128 bytes, so these are {intensity:.3g} FLOP per byte"
        ),
        DRAM: f"It does {intensity:.3g} FLOP per byte that comes from the device memory, or goes there",
    }[level]
    if roof == scene.peak.highest:
        return f"{does}: there the roof is the peak."
    return f"{does}: there the roof is at {roof:.3g}."


def _blocks(problem: Matmul, rung: str) -> str:
    blocks, sms = bounds.block_count(rung, problem), bounds.gpu().multiprocessors
    share = f"{sms - blocks} of which have none" if blocks < sms else f"up to {ceil(blocks / sms):,} to one"
    return f"Its {blocks:,} blocks go to {sms} SMs, {share}; each limit counts the SM with the most."


@lru_cache
def _busy(rung: str) -> list[str]:
    """Say what Nsight Compute saw while the rung ran; nothing where it was not there."""
    seen = bounds.counted(rung)
    if not seen.index.isin(_BUSY).any():
        return []
    busiest = max(_BUSY, key=lambda name: float(seen[name]))
    return [
        f"At N = {bounds.COUNTED} Nsight Compute saw {_BUSY[busiest]} busiest, at {seen[busiest]:.0f} %, and "
        f"{seen[_WARPS]:.3g} % of an SM's warp slots taken."
    ]


def _tensor_cores(times: pd.DataFrame, problem: Matmul, peak: float) -> list[str]:
    """Say why cuBLAS may be above the peak of the CUDA cores."""
    fastest = max((problem.gflops(ms / 1e3) / 1e3 for ms in times[times.kernel == "cublas"].value), default=0)
    if fastest <= peak:
        return []
    return [
        f"cuBLAS has {fastest:.3g}, above this peak, which is that of the CUDA cores: in {problem.dtype} it "
        "uses the tensor cores, which have a peak of their own."
    ]


def _here(rung: str, problem: Matmul, recorded: float, unit: str) -> list[str]:
    """Compare with the same launch on this machine's GPU."""
    rows = running.here(problem, rung)
    if rows.empty:
        return []
    rate = problem.gflops(float(rows.value.iloc[0]) / 1e3) / 1e3
    return [f"Here: {rate:.3g} {unit}, {rate / recorded:.3g} times as much ({rows.source.iloc[0]})."]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.095 else f"{100 * share:.0f} %"


@lru_cache
def _rungs(dtype: str) -> Choices:
    """Offer the rungs that were timed with the dtype, and that the model predicts."""
    n = SIZES[-1]
    known = set(bounds.bounds(Matmul(n, n, n, dtype=dtype)).index)
    return [(rung, rung) for rung in running.rungs("matmul") if rung in known]
