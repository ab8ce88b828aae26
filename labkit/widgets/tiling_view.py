"""The explorer of tiling: naive against tiled in times, speed-up and traffic."""

from math import prod

import pandas as pd

from labkit.figures import curves
from labkit.kernels.matmul.family import Matmul
from labkit.widgets import here
from labkit.widgets.explorer import Explorer, View
from labkit.widgets.here import Size
from labkit.widgets.report_sweeps import (
    NAMES,
    machine,
    mark,
    sides_of,
    size_label,
    sizes_of,
    sweep,
    times_of,
)


def tiling() -> Explorer:
    """Compare naive with tiled: times, speed-up and traffic.

    A menu chooses the report; sliders set the matrix size and the tile.
    """
    return sweep(tiling_view, "tile", "tile")


def tiling_view(report: str, size: Size, tile: int) -> View:
    """Draw a report's times of naive and tiled over the sizes, at one tile; tell what tiling gains.

    A report that has run a kernel with one block only is compared with that.
    """
    Matmul(*size).launch(tile)
    frame = times_of(report)
    only = frame.groupby("kernel").block_x.transform("nunique") == 1
    dtype, frame = frame["dtype"].iloc[0], frame[(frame.block_x == tile) | only]
    if "tiled" not in set(frame.kernel):
        sides = ", ".join(map(str, sides_of(report)))
        raise ValueError(f"report {report} has no time with TILE={tile}. Choose one of {sides}.")
    mine = here.rows(NAMES, sorted({size, *sizes_of(report)}), [tile], (size, tile), dtype)
    figures = curves.time_by_size(frame), curves.speedup_by_size(frame, mine)
    figures[0].set_size_inches(7, 3)  # both should fit a screen
    for figure in figures:
        mark(figure, prod(size) ** (1 / 3))
    lines = [_speedup(frame, size), *machine(NAMES, size, tile, dtype), _traffic(size, tile)]
    return View(figures, "\n".join(lines))


def _speedup(frame: pd.DataFrame, size: Size) -> str:
    """Compare naive with tiled at one size."""
    at_size = frame[(frame.m == size[0]) & (frame.n == size[1]) & (frame.k == size[2])]
    rows = at_size.set_index("kernel").T.to_dict("series")
    missing = [name for name in NAMES if name not in rows]
    if missing:
        return f"{size_label(size)}: the report has no time of {' and '.join(missing)} with this block."
    naive, tiled = (rows[name] for name in NAMES)
    text = (
        f"{size_label(size)} ({tiled.source}): naive with {naive.block_x}×{naive.block_x} blocks takes "
        f"{naive.value:.4g} ms, tiled with TILE = {tiled.tile} takes {tiled.value:.4g} ms: "
        f"{naive.value / tiled.value:.3g}× as fast."
    )
    return f"{text} Probably a {tiled.note}." if tiled.note.startswith("misprint") else text


def _traffic(size: Size, tile: int) -> str:
    """Say how much less tiled reads, and why it is not TILE times less."""
    if tile == 1:
        return "With TILE = 1 every element is used once: tiled reads as much as naive, and has more to do."
    naive, tiled = (here.count(name, size, tile) for name in NAMES)
    fewer = naive.per_multiply_add / tiled.per_multiply_add
    return (
        f"Tiled makes {tile}× (TILE) fewer requests and reads {fewer:.3g}× fewer sectors: a request of naive "
        f"touches {naive.per_request:.3g} sectors, as lanes of one row share an element of A, one of tiled "
        f"{tiled.per_request:.3g}. The tiles take {2 * 4 * tile**2} bytes of shared memory a block."
    )
