"""The explorer of the roofline: one rung under the roofs of the recorded H200, and what holds it back."""

from functools import lru_cache
from math import ceil, isnan

import pandas as pd

from labkit.device.select import device
from labkit.figures.axes import Scale
from labkit.figures.roofline import Choice, Scene, draw, scene_of, scene_with
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits as bounds
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection

SIZES = (256, 512, 1024, 2048, 4096, 8192)
DTYPES = ("float32", "float64", "int32")
# All that was recorded is inside; the roofs stay where they are while the size changes.
_WINDOW = Scale(0.025, 2500, log=True), Scale(0.07, 140, log=True)
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

    Menus choose the dtype, and whether a GPU that is here times the rung, too; sliders, or a click in the
    picture, set the matrix size and the rung.
    """

    def offer(dtype: str, **_: object) -> dict[str, Choices | Offer]:
        why = "" if device().kind == "gpu" else "This machine has no GPU that CuPy finds."
        return {"rung": _rungs(dtype), "timed": Offer(why=why)}

    controls = {
        "rung": selection("rung", _rungs("float32"), "tiled", group="kernel"),
        "n": selection("matrix size", [(f"N = {n}", n) for n in SIZES], 4096, group="problem"),
        "dtype": menu("dtype", plain(DTYPES), group="problem"),
        "timed": menu("on this GPU", [("not timed", False), ("timed", True)], group="here"),
    }
    return Explorer(roofline_view, controls, offer, "The roofline: what limits a kernel")


def roofline_view(dtype: str, n: int, rung: str, timed: bool = False) -> View:
    """Draw all rungs timed at size n on the recorded H200; `rung` stands out, with its lowest limit.

    If it is to be `timed` here, which takes a second or two, the text compares that.
    """
    problem = Matmul(n, n, n, dtype=dtype)
    times, scene = bounds.times_of(problem), _scene(problem)
    limits = _limits(problem, rung)
    rate, lowest = limits.pop("measured"), _lowest_of(limits)
    of_rung = times[times.kernel == rung].iloc[0]
    names = [name for _, name in _rungs(dtype)]
    picture = draw(scene, rung, Choice(names, lowest, limits[lowest], _WINDOW))
    kind, unit = "theoretical" if dtype == "float32" else "measured", scene.peak.unit
    lines = [
        f"{rung}, N = {n}, {dtype}: {rate:.3g} {unit}, {_percent(rate / limits['peak'])} of the {kind} peak "
        f"of {limits['peak']:.3g} ({of_rung.source}).",
        _lowest(limits, rate, of_rung.value),
        _bytes(limits, scene.intensity[rung]),
        _instructions(limits) + _blocks(problem, rung, limits),
        *(_busy(rung) if dtype == "float32" else []),
        *_tensor_cores(times, problem, limits["peak"]),
        *(_here(rung, problem, rate, unit) if timed else []),
    ]
    return View(
        (picture,),
        _conclusion(rung, limits, rate, unit, of_rung.value),
        "\n".join(lines),
        "Point at a rung to see its numbers; click it, or its name, to choose it.",
    )


@lru_cache
def _scene(problem: Matmul) -> Scene:
    first = Matmul(SIZES[0], SIZES[0], SIZES[0], dtype=problem.dtype)
    times = bounds.times_of(problem)
    if problem == first:
        return scene_of(times, bounds.counters(problem.dtype), bounds.ceilings())
    return scene_with(_scene(first), times)


def _limits(problem: Matmul, rung: str) -> dict[str, float]:
    """Return the rung's limits by what sets them, and the rate that was measured."""
    table = _bounds(problem)
    return {str(name): float(table[name][rung]) for name in table.columns}


@lru_cache
def _bounds(problem: Matmul) -> pd.DataFrame:
    return bounds.bounds(problem, *(rung.kernel for rung in _scene(problem).ours))


def _lowest_of(limits: dict[str, float]) -> str:
    return min((name for name in limits if not isnan(limits[name])), key=limits.__getitem__)


# Sentences. `limits` are rates in 10^12 a second, by what sets them.


def _conclusion(rung: str, limits: dict[str, float], rate: float, unit: str, milliseconds: float) -> str:
    """Say how near the rung comes to its lowest limit."""
    if milliseconds < _SHORT:
        return f"{rung} takes {1e3 * milliseconds:.0f} µs: so little work is over before the GPU is busy."
    lowest = _lowest_of(limits)
    most = f"{rung} reaches {rate:.3g} of at most {limits[lowest]:.3g} {unit}"
    if isnan(limits["instructions"]) and limits[lowest] > _NEARLY * limits["peak"]:
        return f"{most}, nearly the peak: its instructions, which may be the limit, were not counted."
    name = {
        "peak": "the peak is its lowest limit",
        "L1 bytes": "the bandwidth of the L1 caches is its lowest limit",
    }.get(lowest, f"its {lowest} are the lowest limit")
    return f"{most}: {name}."


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


@lru_cache
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


@lru_cache
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


@lru_cache
def _rungs(dtype: str) -> Choices:
    """Offer the rungs that were timed with the dtype."""
    n = SIZES[-1]
    timed = set(bounds.times_of(Matmul(n, n, n, dtype=dtype)).kernel)
    return [(rung, rung) for rung in running.rungs("matmul") if rung in timed]
