"""The explorer of tiling: naive against tiled in times, speed-up and traffic."""

from functools import lru_cache
from math import prod

import pandas as pd

from labkit.figures import curves
from labkit.figures.svg import stacked
from labkit.kernels.matmul.family import Matmul
from labkit.widgets import local_counts
from labkit.widgets.explorer import Explorer, View
from labkit.widgets.local_counts import Size
from labkit.widgets.report_sweeps import (
    NAMES,
    Plotted,
    machine,
    plotted,
    predicted_beside,
    sides_of,
    size_label,
    sizes_of,
    sweep,
    timed_here,
    times_of,
    told,
)


def tiling() -> Explorer:
    """Compare naive with tiled: times, speed-up and traffic.

    Menus choose the report and the GPU of the predicted times; sliders set the tile and, as
    does a click in a plot, the matrix size.
    """
    return sweep(tiling_view, "tile", "tile", "What tiling gains")


def tiling_view(report: str, size: Size, tile: int, gpu: str = "") -> View:
    """Draw a report's times of naive and tiled over the sizes, at one tile; tell what tiling gains.

    A report that has run a kernel with one block only is compared with that. `gpu` is the one for which times
    are predicted, "" for none.
    """
    Matmul(*size).launch(tile)
    frame = _at_tile(report, tile)
    plots = _plots(report, tile, timed_here(size, sizes_of(report)[0]), gpu)
    places = [prod(each) ** (1 / 3) for each in sizes_of(report)]
    gain, *more = _gain(frame, size)
    lines = [*more, *told(predicted_beside(frame, gpu), size, tile)]
    lines += [*machine(NAMES, size, tile, frame["dtype"].iloc[0]), _traffic(size, tile)]
    return View(
        (stacked([each.at("size", places, prod(size) ** (1 / 3)) for each in plots]),),
        gain,
        "\n".join(lines),
        "Point at a plot to see its numbers; click to choose the matrix size.",
    )


@lru_cache(maxsize=64)
def _at_tile(report: str, tile: int) -> pd.DataFrame:
    """Return a report's times with one tile, and of a kernel that it ran with one block only."""
    frame = times_of(report)
    only = frame.groupby("kernel").block_x.transform("nunique") == 1
    frame = frame[(frame.block_x == tile) | only]
    if "tiled" not in set(frame.kernel):
        sides = ", ".join(map(str, sides_of(report)))
        raise ValueError(f"report {report} has no time with TILE={tile}. Choose one of {sides}.")
    return frame


@lru_cache(maxsize=64)
def _plots(report: str, tile: int, size: Size, gpu: str) -> list[Plotted]:
    """Plot the report's and predicted times, how many times as fast tiled is, and how much less it loads."""
    frame = _at_tile(report, tile)
    mine = local_counts.rows(NAMES, sizes_of(report), [tile], (size, tile), frame["dtype"].iloc[0])
    times, loads = mine[mine.quantity == "time"], mine[mine.quantity == local_counts.LOADS]
    guess = predicted_beside(frame, gpu, "block_x")
    both = [times, guess] if set(guess.kernel) == set(NAMES) else [times]
    # Predicted times need room for their part of the legend; all three plots together fit a screen.
    heights = (2.4, 2.3, 2.2) if guess.empty else (2.7, 2.4, 1.85)  # inches
    return [
        plotted(curves.time_by_size(frame, guess), pd.concat([frame, guess]), _place, heights[0]),
        plotted(curves.speedup_by_size(frame, both), pd.concat([frame, *both]), _place, heights[1]),
        plotted(curves.speedup_by_size(loads), loads, _place, heights[2]),
    ]


def _place(rows: pd.DataFrame) -> pd.Series:
    return pd.Series((rows.m * rows.n * rows.k).astype(float) ** (1 / 3))


def _gain(frame: pd.DataFrame, size: Size) -> list[str]:
    """Compare naive with tiled at one size: a sentence, and what there is to know of it."""
    at_size = frame[(frame.m == size[0]) & (frame.n == size[1]) & (frame.k == size[2])]
    rows = at_size.set_index("kernel").T.to_dict("series")
    missing = [name for name in NAMES if name not in rows]
    if missing:
        return [f"{size_label(size)}: the report has no time of {' and '.join(missing)} with this block."]
    naive, tiled = (rows[name] for name in NAMES)
    times = f"{naive.value / tiled.value:.3g}× as fast"
    took = (
        f"{size_label(size)} ({tiled.source}): naive with {naive.block_x}×{naive.block_x} blocks takes "
        f"{naive.value:.4g} ms, tiled with TILE = {tiled.tile} takes {tiled.value:.4g} ms."
    )
    note = f" Probably a {tiled.note}." if tiled.note.startswith("misprint") else ""
    return [f"{size_label(size)}, TILE = {tiled.tile}: tiled is {times} as naive.{note}", took]


def _traffic(size: Size, tile: int) -> str:
    """Say how much less tiled reads, and why it is not TILE times less."""
    if tile == 1:
        return "With TILE = 1 every element is used once: tiled reads as much as naive, and has more to do."
    naive, tiled = (local_counts.count(name, size, tile) for name in NAMES)
    fewer = naive.per_multiply_add / tiled.per_multiply_add
    return (
        f"Tiled makes {tile}× (TILE) fewer requests and reads {fewer:.3g}× fewer sectors: a request of naive "
        f"touches {naive.per_request:.3g} sectors, as lanes of one row share an element of A, one of tiled "
        f"{tiled.per_request:.3g}. The tiles take {2 * 4 * tile**2} bytes of shared memory per block."
    )
