"""The roofline: how fast each rung is, and how far below what memory, caches and arithmetic allow.

A kernel that does I operations per byte can do no more than I x bandwidth, nor more than the peak (Williams,
Waterman, Patterson 2009, "Roofline"). Bytes differ by level, and so does I. Here they are those that the
kernel asks of the L1 caches, 32 per sector of its global loads and stores, as in the hierarchical roofline
(Yang, Kurth, Williams 2020, "Hierarchical Roofline Analysis for GPUs"). Larger tiles ask for less, and the
rung moves to the right. What the caches answer never reaches the device memory, so a rung may stand above the
memory's roof, but never above that of the L1 caches.
"""

from dataclasses import dataclass
from math import atan, degrees, isnan, log10
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.figures.style import Plot, sign
from labkit.kernels.problem import Problem, problem_of
from labkit.ladder.running import row_dicts
from labkit.model.roofline import count_sectors, intensities
from labkit.records.tables import sizes_of

__all__ = ["Roof", "count_sectors", "intensities", "roofline"]

_RUNG, _BEST = "#0072B2", "#D55E00"  # Okabe and Ito's, which colour-blind readers can distinguish
# Of the figure: left, bottom, width, height. Set by hand, as matplotlib's layout engines draw everything
# twice.
_AXES = (0.064, 0.125, 0.713, 0.78)
NAME = 0.047  # of the height of the axes: room for a name
_SMALL: dict[str, Any] = {"fontsize": 8, "color": "0.3"}


def roofline(times: pd.DataFrame, counters: pd.DataFrame, roofs: pd.DataFrame, chosen: str = "") -> Plot:
    """Draw rungs timed at one size and dtype under the roofs of their GPU; both axes are logarithmic.

    The kernel `chosen` stands out, or otherwise the fastest of ours.

    All three tables have the columns of `records.load`, and rows other than these are left out: `times` holds
    the times; `counters` the sectors of each rung at any one size, from Nsight Compute or `count_sectors`;
    `roofs` the rates of `ceilings.table()`. A kernel that was not counted, such as cublas, is a line at the
    edge. The plot is not for tensor cores, whose peak differs. Raises ValueError for times of several sizes
    or dtypes, for several counts of a kernel or none of any, for roofs without a peak of that dtype or a
    memory, and for a kernel `chosen` that was not both timed and counted.
    """
    problem, rungs = _rungs(times, counters)
    shown = _shown(rungs, chosen)
    peak, memory = _roofs(roofs, problem.dtype)
    figure = Plot(figsize=(9.8, 5.5))
    axes = figure.add_axes(_AXES)
    left = min(rungs.intensity.min(), _ridge(peak, memory)) / 2
    axes.set(xscale="log", xlim=(left, 1.6 * problem.flops / problem.bytes))
    axes.set(yscale="log", ylim=(rungs.rate.min() / 3, 2 * peak.highest))
    _draw_roofs(axes, peak, memory)
    _draw_limit(axes, problem, rungs, peak)
    _draw_rungs(axes, rungs, str(shown.kernel))
    axes.set_xlabel("FLOP for each byte asked of the L1 caches (global loads and stores: sectors × 32 B)")
    axes.set_ylabel(peak.unit)
    low, high = axes.get_ylim()
    if high < 100 * low:  # the powers of ten alone would give only one or two ticks
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_title(_finding(rungs, shown, problem, peak), loc="left", fontsize=10, y=1)
    axes.grid(alpha=0.25)
    sources = pd.concat([each[["source"]] for each in (rungs, counters, roofs)])
    sign(figure, sources, start="Solid: measured, dashed: theoretical. ")
    return figure


@dataclass(frozen=True)
class Roof:
    """The GPU's highest rate, in 10^12 operations or bytes per second; None: there is no figure."""

    name: str
    unit: str
    theoretical: float | None
    measured: float | None

    @property
    def lines(self) -> list[tuple[str, float]]:
        """Return the figures that exist, each with the style of its line."""
        both = (("--", self.theoretical), ("-", self.measured))
        return [(style, rate) for style, rate in both if rate is not None]

    @property
    def highest(self) -> float:
        """Return the theoretical rate if there is one, which is above what was measured."""
        return max(rate for _, rate in self.lines)

    def __str__(self) -> str:
        words = {"--": "theoretical", "-": "measured"}
        figures = ", ".join(f"{words[style]} {rate:.3g}" for style, rate in self.lines)
        return f"{self.name}: {figures} {self.unit}"


def _rungs(times: pd.DataFrame, counters: pd.DataFrame) -> tuple[Problem, pd.DataFrame]:
    """Return the problem, and per kernel its rate (TFLOP/s), intensity (missing: not known) and source."""
    timed = times[times.quantity == "time"]
    timed = timed[[bool(problem_of(row, "float32").flops) for row in row_dicts(timed)]]
    problems = timed[["problem", *sizes_of(timed), "dtype"]].drop_duplicates()
    if len(problems) != 1:
        raise ValueError(
            f"the frame has times of {len(problems)} matrix sizes and dtypes; choose one: "
            "frame[(frame.n == 4096) & (frame.dtype == 'float32')]."
        )
    problem = problem_of(row_dicts(problems)[0])
    intensity = intensities(counters[counters.problem == problem.family])
    rungs = timed[["kernel", "source"]].assign(
        rate=[problem.gflops(ms / 1e3) / 1e3 for ms in timed.value],
        intensity=timed.kernel.map(intensity).astype(float),
    )
    if rungs.intensity.isna().all():
        raise ValueError(
            f"no sectors were counted of {', '.join(rungs.kernel)}, only of {', '.join(intensity) or 'none'}."
        )
    return problem, rungs.sort_values("rate")


def _roofs(roofs: pd.DataFrame, dtype: str) -> tuple[Roof, list[Roof]]:
    """Read the peak of the dtype, and the bandwidths, from rows of `ceilings.table`."""

    def figure(quantity: str, **wanted: str) -> float | None:
        rows = roofs[roofs.quantity == quantity]
        for column, value in wanted.items():
            rows = rows[rows[column] == value]
        return None if rows.empty else float(rows.value.iloc[0]) / 1e3

    peak = Roof(
        "multiply-adds",
        "TOP/s" if dtype == "int32" else "TFLOP/s",
        figure("peak_performance", dtype=dtype),
        figure("performance", dtype=dtype, kernel="peak"),
    )
    memory = Roof("memory", "TB/s", figure("peak_bandwidth"), figure("bandwidth", kernel="memcpy"))
    for roof in (peak, memory):
        if not roof.lines:
            raise ValueError(
                f"the roofs have no figure of {roof.name} ({dtype}): take those of ceilings.table()."
            )
    caches = Roof("L1 caches", "TB/s", figure("peak_l1_bandwidth"), None)
    return peak, [roof for roof in (caches, memory) if roof.lines]


def _ridge(peak: Roof, memory: list[Roof]) -> float:
    """Return the FLOP per byte at which the highest bandwidth is enough for the peak."""
    return peak.highest / max(roof.highest for roof in memory)


def _draw_roofs(axes: Axes, peak: Roof, memory: list[Roof]) -> None:
    """Draw each roof, with its name above the higher line."""
    (left, right), low = axes.get_xlim(), axes.get_ylim()[0]
    ridge = _ridge(peak, memory)
    look: dict[str, Any] = {"color": "0.25", "linewidth": 1.2}
    for style, rate in peak.lines:
        axes.plot([ridge, right], [rate, rate], style, **look)
    axes.text(ridge, 1.05 * peak.highest, str(peak), va="bottom", **_SMALL)
    for roof in memory:
        for style, rate in roof.lines:
            axes.plot([left, peak.highest / rate], [left * rate, peak.highest], style, **look)
        x = 1.3 * max(left, low / roof.highest)
        y = 1.1 * x * roof.highest
        name = axes.text(x, y, str(roof), va="bottom", rotation_mode="anchor", **_SMALL)
        name.set(rotation=degrees(atan(y / x)), transform_rotates_text=True)  # along the line


def _draw_limit(axes: Axes, problem: Problem, rungs: pd.DataFrame, peak: Roof) -> None:
    """Mark the intensity of a kernel that asks for each element once; the name goes where no point is."""
    most = problem.flops / problem.bytes
    axes.axvline(most, color="0.5", linestyle=":")
    text = f"each element once: {most:.0f} FLOP/B"
    below = not rungs.intensity.between(most / 2, most).any()
    y, va = (axes.get_ylim()[0] * 1.1, "bottom") if below else (0.95 * peak.highest, "top")
    axes.text(0.94 * most, y, text, rotation=90, ha="right", va=va, **_SMALL)


def _draw_rungs(axes: Axes, rungs: pd.DataFrame, chosen: str) -> None:
    """Draw one point per rung, or a line at the edge, and its name in a column at the right."""
    low, high = map(log10, axes.get_ylim())
    heights = _apart([(log10(rate) - low) / (high - low) for rate in rungs.rate])
    left, right = axes.get_xlim()
    column = right * (right / left) ** 0.025
    for kernel, rate, x, height in zip(rungs.kernel, rungs.rate, rungs.intensity, heights, strict=True):
        color, known = _BEST if kernel == chosen else _RUNG, not isnan(x)
        if known:
            axes.plot(x, rate, "o", color=color, markersize=7, zorder=3)
        else:
            color, x = "0.35", right
            axes.plot([right / 4, right], [rate, rate], color=color, linestyle="-.", linewidth=1)
        y = 10 ** (low + height * (high - low))
        axes.plot([x, column], [rate, y], color="0.75", linewidth=0.7, clip_on=False, zorder=1)
        weight = "bold" if kernel == chosen else "normal"
        name = f" {kernel} {rate:.3g}"
        axes.text(column, y, name, va="center", color=color, fontsize=9, fontweight=weight)


def _apart(rising: list[float]) -> list[float]:
    """Move the heights down so that neighbours have room for a name; there is most room below the points."""
    heights: list[float] = []
    for height in reversed(rising):
        heights.append(min(height, heights[-1] - NAME) if heights else height)
    return heights[::-1]


def _shown(rungs: pd.DataFrame, chosen: str) -> pd.Series:
    """Return the rung that stands out: `chosen`, or the fastest of ours. The rungs have rising rates."""
    ours = rungs[rungs.intensity.notna()]
    if not chosen:
        return ours.iloc[-1]
    if chosen not in set(ours.kernel):
        raise ValueError(f"{chosen} was not both timed and counted. Choose one of {', '.join(ours.kernel)}.")
    return ours[ours.kernel == chosen].iloc[0]


def _finding(rungs: pd.DataFrame, shown: pd.Series, problem: Problem, peak: Roof) -> str:
    first = rungs[rungs.intensity.notna()].iloc[0]
    size = _size(problem)
    kind = "theoretical" if peak.theoretical else "measured"
    found = f"{size}: {shown.kernel} reaches {_percent(shown.rate / peak.highest)} % of the {kind} peak"
    if shown.kernel != first.kernel:
        speed, gain = shown.rate / first.rate, shown.intensity / first.intensity
        found += f", {speed:.3g}× {first.kernel}, with {gain:.3g}× its FLOP a byte"
    return fill(found, 105)


def _in_a_row(name: str) -> int:
    """Return a sort key: M, K, N, the sides of A, then of B; other sizes keep their order."""
    return "MKN".find(name)


def _size(problem: Problem) -> str:
    """Write the sizes for a title: one if all are equal, else the sides of the inputs in a row."""
    if len(set(problem.sizes.values())) == 1:
        name = "N" if "N" in problem.sizes else problem.size_names[0]
        return f"{name} = {problem.sizes[name]}"
    return "×".join(str(problem.sizes[name]) for name in sorted(problem.sizes, key=_in_a_row))


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.095 else f"{100 * share:.0f}"
