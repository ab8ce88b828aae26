"""A picture of how often each cache line of A, B and C is fetched, and what the cache holds at a moment.

Errors: ValueError for a moment outside the product.
"""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm

from labkit.cpu.cache_lines import (
    LINE,
    VECTOR,
    VERSIONS,
    Cache,
    Count,
    Loops,
    Numbers,
    contents,
    count_misses,
)
from labkit.figures.pictures.product import GAP, MARGIN, headline, panel
from labkit.figures.style import Plot

_FRAME = "#D55E00"
_SIDE, _SCALE, _TITLE = 2.45, 1.15, 0.95  # inches: a matrix, the colour scale beside it, the title above
_FAR = MARGIN + _SIDE + GAP  # where the second row and column of matrices begin


def cache_picture(loops: Loops, cache: Cache, moment: int = 40) -> Plot:
    """Draw how often each line of A, B and C is fetched, in one colour scale for all versions of one N.

    Frames mark the lines in the cache after `moment` percent of the accesses, 1 to 100; dots mark the
    elements in use then. Beside them are the misses of every version with this N, BLOCK and cache.
    """
    if not 1 <= moment <= 100:
        raise ValueError(f"moment {moment} is no part of the product. Choose 1 to 100 percent.")
    counted = count_misses(loops, cache)
    accesses = loops.accesses()
    accesses = accesses[: -(-len(accesses) * moment // 100)]
    present = np.zeros(loops.compulsory, bool)
    present[contents(accesses // LINE, cache)] = True
    i, j, k = loops.position(accesses)
    in_use = (i, k), (j, k) if loops.matrices[1] == "BT" else (k, j), (i, j)
    figure = Plot(figsize=(_FAR + _SIDE + _SCALE, _FAR + _SIDE + _TITLE))
    corners = (MARGIN, MARGIN), (_FAR, _FAR), (_FAR, MARGIN)  # A left of C, B above it
    for number, (corner, (row, col)) in enumerate(zip(corners, in_use, strict=True)):
        axes = panel(figure, *corner, loops.N, loops.N, _SIDE / loops.N)
        boxes = _draw_lines(axes, loops.N, counted.fetched[number], present.reshape(3, -1)[number])
        axes.plot(col, row, "o", color=_FRAME, markeredgecolor="white", markersize=6)
        _name(axes, loops, number, counted.fetched[number])
    _draw_scale(figure, boxes, LINE * loops.N)
    _compare(figure, counted)
    most = int(counted.fetched.sum(axis=1).argmax())
    headline(
        figure,
        f"{loops.version}: {counted.misses:,} misses, {counted.per_multiply_add:.2g} a multiply-add; "
        f"each line of {loops.matrices[most]} is fetched {_times(counted.fetched[most])}",
        f"framed: lines in the cache after {moment} % of the accesses; dots: i = {i}, j = {j}, k = {k}",
    )
    return figure


def _draw_lines(axes: Axes, N: int, fetched: Numbers, present: npt.NDArray[np.bool_]) -> PolyCollection:
    """Draw each cache line as a box in its colour, in parts where it continues in the next row."""
    element = np.arange(N * N)
    first = element[(element % N == 0) | (element % LINE == 0)]
    x, y, width = first % N - 0.5, first // N - 0.5, np.diff(first, append=N * N)
    boxes = np.stack([[x, y], [x + width, y], [x + width, y + 1], [x, y + 1]]).transpose(2, 0, 1)
    lines = first // LINE
    # An element is used N times, so a line is fetched at most 16 N times.
    fetches = PolyCollection(
        list(boxes), array=fetched[lines], cmap="cividis", norm=LogNorm(1, LINE * N), edgecolors="white"
    )
    framed = PolyCollection(list(boxes[present[lines]]), facecolors="none", edgecolors=_FRAME)
    for collection, linewidth in ((fetches, 0.5), (framed, 48 / N)):
        collection.set_linewidth(linewidth)
        axes.add_collection(collection, autolim=False)
    axes.set(xlim=(-0.5, N - 0.5), ylim=(N - 0.5, -0.5))
    return fetches


def _name(axes: Axes, loops: Loops, number: int, fetched: Numbers) -> None:
    name = loops.matrices[number]
    down, across = {"A": ("i", "k"), "B": ("k", "j"), "BT": ("j", "k"), "C": ("i", "j")}[name]
    axes.set_title(f"{name}: {fetched.sum():,} misses, each line {_times(fetched)}", fontsize=10, y=1)
    ticks = range(0, loops.N, VECTOR)
    axes.set(xlabel=f"{across} (elements)", ylabel=f"{down} (elements)", xticks=ticks, yticks=ticks)


def _times(fetched: Numbers) -> str:
    """Say how often lines are fetched: once; 3 times; 1 to 48 times."""
    low, high = int(fetched.min()), int(fetched.max())
    if low < high:
        return f"{low:,} to {high:,} times"
    return "once" if low == 1 else f"{low:,} times"


def _axes(figure: Plot, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a position in inches."""
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def _draw_scale(figure: Plot, fetches: PolyCollection, most: int) -> None:
    """Draw the colour scale, right of C."""
    axes = _axes(figure, _FAR + _SIDE + 0.2, MARGIN, 0.15, _SIDE)
    bar = figure.colorbar(fetches, cax=axes, label="times fetched")
    powers = [4**power for power in range(6) if 4**power <= most]
    bar.set_ticks(powers, labels=[f"{power:,}" for power in powers])
    bar.minorticks_off()


def _compare(figure: Plot, counted: Count) -> None:
    """Draw the misses of all versions, above A."""
    loops, cache = counted.loops, counted.cache
    axes = _axes(figure, 1.5, _FAR + 0.5, MARGIN + _SIDE - 1.5, _SIDE - 0.9)
    for row, version in enumerate(VERSIONS):
        each = count_misses(Loops(version, loops.N, loops.block), cache).per_multiply_add
        color = _FRAME if version == loops.version else "0.5"
        axes.plot(each, row, "o", color=color)
        axes.annotate(f"{each:.2g}", (each, row), (6, -3), textcoords="offset points", fontsize=8)
    axes.axvline(loops.compulsory / loops.N**3, color="0.5", linewidth=1, linestyle=":")
    axes.set_title("every version (dotted: each line once)", fontsize=8, y=1, x=1, ha="right")
    axes.set_xscale("log")
    axes.set(xlim=(0.002, 12), ylim=(len(VERSIONS) - 0.5, -0.5), xlabel="misses per multiply-add")
    axes.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.minorticks_off()
    axes.set_yticks(range(len(VERSIONS)), VERSIONS, fontsize=8)
