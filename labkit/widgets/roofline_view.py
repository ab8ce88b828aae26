"""The explorer of the roofline: one rung under the roofs of the recorded H200, and what holds it back."""

from math import ceil, isnan
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from labkit.figures.roofline import roofline as draw
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits as bounds
from labkit.model.roofline import intensities
from labkit.widgets.explorer import Choices, Explorer, View, menu, plain, selection

SIZES = (256, 512, 1024, 2048, 4096, 8192)
DTYPES = ("float32", "float64", "int32")
_MARK = "#D55E00"
_SHORT = 0.03  # ms: of a shorter launch start and end are a good part
# Nsight Compute's measures of how busy a part of the SM was, in percent of what it can do.
_L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"
_FULL = 85
_NEARLY = 0.9
_BUSY = {
    _L1: "the L1 cache with shared memory",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "the start of instructions",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": "the multiply-add lanes",
}
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
_CURES = {
    "peak": "The multiply-add lanes themselves are the limit.",
    "L1 bytes": "What helps: fewer bytes for each multiply-add, by tiles, or by several sums a thread.",
    "instructions": "What helps: more multiply-adds for each load, by more sums a thread and wider loads.",
    "blocks": "What helps: more blocks, by smaller tiles; or larger matrices.",
}


def roofline() -> Explorer:
    """Show one rung under the roofs of a recorded H200, and what limits it.

    A menu chooses the dtype; sliders set the matrix size and the rung.
    """

    def offer(dtype: str, **_: object) -> dict[str, Choices]:
        return {"rung": _rungs(dtype)}

    controls = {
        "dtype": menu("dtype", plain(DTYPES)),
        "n": selection("matrix size", plain(SIZES), 4096),
        "rung": selection("rung", _rungs("float32"), "tiled"),
    }
    return Explorer(roofline_view, controls, offer)


def roofline_view(dtype: str, n: int, rung: str) -> View:
    """Draw all rungs timed at size n on the recorded H200; `rung` stands out, with its lowest limit."""
    problem = Matmul(n, n, n, dtype=dtype)
    counters, times = bounds.counters(dtype), bounds.times_of(problem)
    limits = {str(name): float(each) for name, each in bounds.bounds(problem, rung).iloc[0].items()}
    rate, of_rung = limits.pop("measured"), times[times.kernel == rung].iloc[0]
    intensity = intensities(counters)[rung]
    figure = draw(times, counters, bounds.ceilings(), rung)
    _mark(figure, intensity, rate, limits)
    kind = "theoretical" if dtype == "float32" else "measured"
    unit = "TOP/s" if dtype == "int32" else "TFLOP/s"
    lines = [
        f"{rung}, N = {n}, {dtype}: {rate:.3g} {unit}, {_percent(rate / limits['peak'])} of the {kind} peak "
        f"of {limits['peak']:.3g} ({of_rung.source}).",
        _lowest(limits, rate, of_rung.value),
        _bytes(limits, intensity),
        _instructions(limits) + _blocks(problem, rung, limits),
        *(_busy(rung) if dtype == "float32" else []),
        *_tensor_cores(times, problem, limits["peak"]),
        *_here(rung, problem, rate, unit),
    ]
    return View((figure,), "\n".join(lines))


def _mark(figure: Figure, intensity: float, rate: float, limits: dict[str, float]) -> None:
    """Draw a line from the rung up to its lowest limit, with the limit's name."""
    axes, lowest = figure.axes[0], _lowest_of(limits)
    limit = limits[lowest]
    axes.plot([intensity, intensity], [rate, limit], color=_MARK, linewidth=1, linestyle=":")
    axes.plot([intensity / 1.35, intensity * 1.35], [limit, limit], color=_MARK, linewidth=2)
    look: dict[str, Any] = {"fontsize": 8, "color": _MARK}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    if lowest == "L1 bytes" or limit > 0.95 * limits["peak"]:  # on a roof, which has its name above it
        axes.text(intensity * 1.08, 0.93 * limit, lowest, ha="left", va="top", **look)
    else:
        axes.text(intensity / 1.45, limit, lowest, ha="right", va="center", **look)


def _lowest_of(limits: dict[str, float]) -> str:
    return min((name for name in limits if not isnan(limits[name])), key=limits.__getitem__)


# Sentences. `limits` are rates in 10^12 a second, by what sets them.


def _lowest(limits: dict[str, float], rate: float, milliseconds: float) -> str:
    """Say which limit is the lowest, and what lifts it."""
    lowest = _lowest_of(limits)
    name = {"peak": "the peak", "L1 bytes": "the bandwidth of the L1 caches"}.get(lowest, f"its {lowest}")
    found = f"The lowest limit is {name}: at most {limits[lowest]:.3g}, of which it reaches "
    found += f"{_percent(rate / limits[lowest])}."
    if milliseconds < _SHORT:
        return (
            f"{found} But the launch takes {1e3 * milliseconds:.0f} µs, and one that does next to nothing "
            f"{1e3 * _least():.0f}: so little work is over before the GPU is busy."
        )
    if isnan(limits["instructions"]) and limits[lowest] > _NEARLY * limits["peak"]:
        return f"{found} That is nearly the peak. Its instructions, which may be the limit, were not counted."
    return f"{found} {_CURES[lowest]}"


def _least() -> float:
    """Return the milliseconds of the smallest recorded launch, a naive product of 32 x 32 matrices."""
    return float(bounds.times_of(Matmul(32, 32, 32)).value.min())


def _bytes(limits: dict[str, float], intensity: float) -> str:
    """Say which roof lies above the rung."""
    does = f"It does {intensity:.3g} operations for each byte that it asks of the L1 caches"
    if limits["L1 bytes"] > limits["peak"]:
        return f"{does}: so many that the peak is its roof, and not their bandwidth."
    return f"{does}, whose bandwidth is its roof: at most {limits['L1 bytes']:.3g}."


def _instructions(limits: dict[str, float]) -> str:
    if isnan(limits["instructions"]):
        return ""
    share = limits["instructions"] / limits["peak"]
    return f"{_percent(share)} of its instructions are multiply-adds: at most {limits['instructions']:.3g}. "


def _blocks(problem: Matmul, rung: str, limits: dict[str, float]) -> str:
    blocks, sms = bounds.block_count(rung, problem), bounds.gpu().multiprocessors
    share = f"{sms - blocks} of which have none" if blocks < sms else f"up to {ceil(blocks / sms):,} to one"
    return f"Its {blocks:,} blocks go to {sms} SMs, {share}: at most {limits['blocks']:.3g}."


def _busy(rung: str) -> list[str]:
    """Say what Nsight Compute saw while the rung ran."""
    seen = bounds.counted(rung)
    busiest = max(_BUSY, key=lambda name: float(seen[name]))
    told = (
        f"At N = {bounds.COUNTED} Nsight Compute saw {_BUSY[busiest]} busiest, at {seen[busiest]:.0f} %, and "
        f"{seen[_WARPS]:.3g} % of an SM's places for warps taken."
    )
    if busiest == _L1 and seen[_L1] > _FULL:
        told += " So many requests leave it no time, whatever their bytes."
    return [told]


def _tensor_cores(times: pd.DataFrame, problem: Matmul, peak: float) -> list[str]:
    """Say why cuBLAS may be above the peak of the CUDA cores."""
    fastest = max((problem.gflops(ms / 1e3) / 1e3 for ms in times[times.kernel == "cublas"].value), default=0)
    if fastest <= peak:
        return []
    return [
        f"cuBLAS has {fastest:.3g}, above this peak, which is that of the multiply-add lanes: in "
        f"{problem.dtype} it uses the tensor cores, which have a peak of their own."
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


def _rungs(dtype: str) -> Choices:
    """Offer the rungs that were timed with the dtype."""
    n = SIZES[-1]
    timed = set(bounds.times_of(Matmul(n, n, n, dtype=dtype)).kernel)
    return [(rung, rung) for rung in running.rungs("matmul") if rung in timed]
