"""The explorer of block sides: a report's times, what this machine has, and what is predicted for a GPU."""

from functools import lru_cache

import pandas as pd

from labkit.figures import curves
from labkit.figures.svg import stacked
from labkit.kernels.matmul.family import Matmul
from labkit.widgets import local_counts
from labkit.widgets.explorer import Explorer, View, menu, plain
from labkit.widgets.local_counts import Size
from labkit.widgets.report_sweeps import (
    NAMES,
    Plotted,
    machine,
    plotted,
    predicted_beside,
    sides_of,
    sweep,
    timed_here,
    times_of,
    told,
)
from labkit.widgets.thread_map_view import about_block

BOTH = "both"


def block_sweep() -> Explorer:
    """Show a report's times by block side, beside what this machine has and what is predicted.

    Menus choose the report, the kernel and the GPU of the predicted times; sliders, or a click in a plot, set
    the matrix size and the block side.
    """
    return sweep(
        *(block_sweep_view, "side", "block side", "A report's times by block side"),
        kernel=menu("kernel", plain((BOTH, *NAMES))),
    )


def block_sweep_view(report: str, kernel: str, size: Size, side: int, gpu: str = "") -> View:
    """Draw a report's times against the block side, and the same sweep on this machine; `side` is marked.

    `kernel` is naive, tiled or both; `size` is (m, n, k); `gpu` is the one for which times are predicted, ""
    for none.
    """
    names = _named(kernel)
    Matmul(*size).launch(side)  # a block that no GPU takes is the first thing to say
    frame = _at_size(report, kernel, size)
    sides, dtype = sorted({side, *sides_of(report)}), frame["dtype"].iloc[0]
    plots = _plots(report, kernel, size, tuple(sides), timed_here(side, sides[0]), gpu)
    lines = [_time_at(frame[frame.kernel == name], name, side) for name in names]
    return View(
        (stacked([each.at("side", sides, side) for each in plots]),),
        _conclusion(frame[frame.block_x == side], side),
        "\n".join(
            [
                *lines,
                *told(predicted_beside(frame, gpu), size, side),
                *machine(names, size, side, dtype),
                about_block(side, side),
            ]
        ),
        "Point at a plot to see its numbers; click to choose the block side.",
    )


@lru_cache(maxsize=64)
def _at_size(report: str, kernel: str, size: Size) -> pd.DataFrame:
    return times_of(report, kernel=_named(kernel), m=size[0], n=size[1], k=size[2])


@lru_cache(maxsize=64)
def _plots(
    report: str, kernel: str, size: Size, sides: tuple[int, ...], side: int, gpu: str
) -> list[Plotted]:
    """Plot the report's and predicted times, and what this machine counts and, on a GPU, measures."""
    frame, names = _at_size(report, kernel, size), _named(kernel)
    mine = local_counts.rows(names, [size], sides, (size, side), frame["dtype"].iloc[0])
    times, loads = mine[mine.quantity == "time"], mine[mine.quantity == local_counts.LOADS]
    guess = predicted_beside(frame, gpu)
    guess = guess[guess.block_x.isin(sides)]
    return [
        plotted(
            curves.time_by_block(frame, [times, guess]),
            pd.concat([frame, times, guess]),
            lambda rows: rows.block_x,
            3.1 if guess.empty else 3.6,  # room for its part of the legend
        ),
        plotted(curves.time_by_block(loads), loads, lambda rows: rows.block_x, 3.1),
    ]


def _conclusion(rows: pd.DataFrame, side: int) -> str:
    if rows.empty:
        return f"The report has no time with {side}×{side} blocks at this size."
    times = ", ".join(f"{row.kernel} {row.value:.4g} ms" for row in rows.itertuples())
    return f"With {side}×{side} blocks: {times}."


def _named(kernel: str) -> list[str]:
    if kernel not in (*NAMES, BOTH):
        raise ValueError(f"there is no kernel {kernel!r}. Choose {', '.join(NAMES)} or {BOTH}.")
    return NAMES if kernel == BOTH else [kernel]


def _time_at(line: pd.DataFrame, name: str, side: int) -> str:
    """Say how long a kernel takes with one block side, and compare that with its smallest block."""
    chosen = line[line.block_x == side]
    if chosen.empty:
        tried = ", ".join(f"{each}×{each}" for each in line.block_x) or "none"
        return f"{name}: no time with {side}×{side} blocks in the report for this size; with others: {tried}."
    at, first = chosen.iloc[0], line.sort_values("block_x").iloc[0]
    text = f"{name} with {side}×{side} blocks: {at.value:.4g} ms ({at.source})"
    if at.note.startswith("misprint"):
        return f"{text}. Probably a {at.note}."
    if at.block_x == first.block_x:
        return f"{text}."
    return f"{text}, {first.value / at.value:.3g}× as fast as with {first.block_x}×{first.block_x}."
