"""What the explorers of reports share: a report's times, what this machine has, and predicted times.

Both explorers compare naive with tiled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from textwrap import fill
from typing import Any, TypeVar

import pandas as pd
from matplotlib.axes import Axes

from labkit import records
from labkit.devices.select import device
from labkit.figures.style import PIXELS, Plot, titled
from labkit.figures.svg import Svg, button
from labkit.model import predicted
from labkit.widgets import local_counts
from labkit.widgets.explorer import Choices, Control, Explorer, View, menu, plain, selection
from labkit.widgets.local_counts import Size

_T = TypeVar("_T")
NAMES = list(local_counts.KERNELS)
_FITS = 80  # characters of two columns of a legend together
REPORTS = ("int-matmul", "cpu-gpu-matmul", "tiled-matmul-ko")  # those with sweeps over the block side


def times_of(report: str, **filters: object) -> pd.DataFrame:
    """Return the times of a report's GPU kernels."""
    return records.load(report, "time", **{"problem": "matmul", "kernel": NAMES} | filters)


@lru_cache
def sizes_of(report: str) -> tuple[Size, ...]:
    """Return the matrix sizes (m, n, k) for which a report has times by block side, smallest first."""
    found = times_of(report)[["m", "n", "k"]].drop_duplicates().astype(int).itertuples(index=False, name=None)
    return tuple(sorted(found, key=prod))


@lru_cache
def sides_of(report: str) -> tuple[int, ...]:
    """Return the block sides that a report has tried."""
    return tuple(sorted(int(side) for side in times_of(report).block_x.unique()))


def size_label(size: Size) -> str:
    """Write a size as N = 512, or as m×k×n where they differ, as in `plots`."""
    m, n, k = size
    return f"N = {n}" if m == n == k else f"{m}×{k}×{n}"


def sweep(view: Callable[..., View], side: str, label: str, title: str, **menus: Any) -> Explorer:
    """Make an explorer of reports, with further `menus`; `side` names the slider of the block side."""

    def sizes(report: str) -> Choices:
        return [(size_label(size), size) for size in sizes_of(report)]

    def sides(report: str) -> Choices:
        return [(f"{side}×{side}", side) for side in sides_of(report)]

    def offer(report: str, **_: object) -> dict[str, Choices]:
        return {"size": sizes(report), side: sides(report)}

    controls = {
        "report": menu("report", plain(REPORTS)),
        **menus,
        "gpu": predicted_menu(),
        "size": selection("matrix size", sizes(REPORTS[0]), (1024, 1024, 1024)),
        side: selection(label, sides(REPORTS[0]), 16),
    }
    return Explorer(view, controls, offer, title)


def predicted_menu(group: str = "") -> Control:
    """Make the menu of the GPUs for which times are predicted; on a GPU, at first none."""
    choices = [*plain(predicted.gpus()), ("no GPU", "")]
    return menu("predicted for", choices, "" if device().kind == "gpu" else None, group)


def predicted_beside(frame: pd.DataFrame, gpu: str, *columns: str) -> pd.DataFrame:
    """Return the times predicted for a GPU beside those of a report; none without a GPU.

    With further `columns`, such as "block_x", these are the report's.
    """
    return predicted.beside(frame, gpu, *columns) if gpu else frame.iloc[:0]


def told(predictions: pd.DataFrame, size: Size, side: int) -> list[str]:
    """Say what is predicted for one size and block side: a line, or none."""
    m, n, k = size
    rows = predictions[(predictions.m == m) & (predictions.n == n) & (predictions.k == k)]
    rows = rows[rows.block_x == side]
    if rows.empty:
        return []
    each = [
        f"{row.kernel} {row.value:.3g} ms ({row.low:.3g} to {row.high:.3g}; lowest limit: {row.limit})"
        for row in rows.itertuples()
    ]
    name = rows.source.iloc[0].partition(",")[0]
    return [f"{name[0].upper()}{name[1:]}, with {side}×{side} blocks: {', '.join(each)}."]


@dataclass(frozen=True)
class Plotted:
    """A plot, drawn, and what stands at each place across it."""

    plot: Plot
    picture: Svg
    tips: Mapping[float, str]

    def at(self, control: str, offered: Sequence[float], chosen: float) -> Svg:
        """Return the picture with a line at `chosen`; a click chooses the nearest value that is offered."""
        (axes,) = self.plot.axes
        left, right = axes.get_window_extent().intervalx / self.plot.dpi * PIXELS
        low, high = (self.plot.place(axes, 1, y)[1] for y in axes.get_ylim())
        marked = Svg(
            self.picture.width, self.picture.height, f"{self.picture.alt}. {self.tips.get(chosen, '')}"
        )
        places = [self.plot.place(axes, value, 1)[0] for value in offered]
        ends = [left, *((one + next_) / 2 for one, next_ in pairwise(places)), right]
        line = places[list(offered).index(chosen)]
        marked.rect(line - 7, high, 14, low - high, class_="mid")
        marked.include(self.picture)
        for position, (value, (start, end)) in enumerate(zip(offered, pairwise(ends), strict=True)):
            tip = self.tips.get(value, "The report has no time here.")
            acts = button(f"{self.picture.alt} {value}", tip, {control: position}, value == chosen)
            marked.rect(start, high, end - start, low - high, fill="transparent", **acts)
        return marked


def timed_here(chosen: _T, other: _T) -> _T:
    """Return what is chosen if it is timed here, and otherwise `other`: counts do not depend on it."""
    return chosen if device().kind == "gpu" else other


def plotted(
    plot: Plot, frame: pd.DataFrame, x: Callable[[pd.DataFrame], pd.Series], inches: float
) -> Plotted:
    """Draw a plot for an explorer, `inches` high; `x` returns the place of each row of `frame`."""
    plot.set_size_inches(6.6, inches)
    (axes,) = plot.axes
    axes.set_ylabel(fill(axes.get_ylabel(), int(9 * inches)))
    plot.set_layout_engine("none")  # to look for room takes a third of the time; and so plots are in line
    above = 0.3 + 0.18 * _legend_above(axes)
    axes.set_position((0.14, 0.75 / inches, 0.84, 1 - (0.75 + above) / inches))
    tips = {
        float(place): "; ".join(
            f"{row.kernel}: {row.value:.4g} {row.unit} ({row.source})" for row in rows.itertuples()
        )
        for place, rows in frame.groupby(x(frame))
    }
    picture = plot.svg()
    return Plotted(plot, picture, tips)


def _legend_above(axes: Axes) -> int:
    """Move the legend to between title and axes, where no line meets it; return how many rows it has."""
    if not (legend := axes.get_legend()):
        return 0
    lengths = [len(text.get_text()) for text in legend.texts]
    half = -(-len(lengths) // 2)
    columns = 2 if max(lengths[:half]) + max(lengths[half:], default=0) <= _FITS else 1
    rows = -(-len(lengths) // columns)
    style: dict[str, Any] = {"frameon": False, "fontsize": 8, "borderaxespad": 0.2, "labelspacing": 0.3}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, **style)
    titled(axes, axes.get_title(loc="left"), pad=6 + 13 * rows)
    return rows


def machine(names: list[str], size: Size, side: int, dtype: str) -> list[str]:
    """Say what this machine has for each kernel."""
    lines = []
    for name in names:
        if device().kind == "gpu":
            timing = local_counts.measure(name, size, side, dtype)
            lines.append(f"{name} takes {timing.median:.4g} ms ({timing.source}).")
        count = local_counts.count(name, size, side)
        lines.append(
            f"{name} reads {count.per_multiply_add:.5g} sectors per multiply-add, "
            f"{count.per_request:.3g} per request of a warp ({count.label})."
        )
    return lines
