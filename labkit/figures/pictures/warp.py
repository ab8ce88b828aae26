"""A picture of a warp's time: its 32 lanes side by side, its instructions in rows, idle lanes pale.

It shows a run of the compiled kernel in the simulator (simt/trace.py), at PTX level. A GPU's assembler may
merge or reorder instructions, and turn a short branch into instructions that some lanes ignore.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from labkit.core.limits import WARP
from labkit.figures.pictures.product import MARGIN, headline
from labkit.figures.style import Plot
from labkit.simt.module import Kernel
from labkit.simt.trace import Step, trace

# Okabe and Ito's, and three of Tol's: one per line of the source.
_COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    *("#F0E442", "#999999", "#882255", "#44AA99", "#332288"),
)
_IDLE = 0.13  # colour strength of a lane that waits
_WIDTH, _HEIGHT, _TITLE = 4.6, 3.9, 0.75  # inches: the picture of lanes, and the title above it
_LISTING = MARGIN + _WIDTH + 0.35  # where the source begins
_ROOM = 4.6  # width of the source
_LINE = 0.21  # inches per line of the source


@dataclass(frozen=True)
class Rows:
    """What a warp ran: the source line of each instruction, and its active lanes, (instructions, 32)."""

    lines: np.ndarray
    active: np.ndarray

    @property
    def mean(self) -> float:
        """Return the active lanes per instruction, on average."""
        return float(self.active.sum() / len(self.active))

    def lanes_at(self, line: int) -> float:
        """Return the active lanes per instruction of a source line, on average."""
        return float(self.active[self.lines == line].sum(1).mean())


def rows_of(steps: Sequence[Step], warp: int) -> Rows:
    """Collect one row per instruction of a warp. Raises ValueError for a warp that has run nothing."""
    own = [(i.line, step.lanes) for step in steps if step.warp == warp for i in step.instructions]
    if not own:
        raise ValueError(f"the block has no warp {warp}. Choose 0 to {max(s.warp for s in steps)}.")
    return Rows(np.array([line for line, _ in own]), np.array([lanes for _, lanes in own]))


def warp_time(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    number: int = 0,
    warp: int = 0,
) -> Plot:
    """Draw one warp of block `number` of a launch in the simulator, with NumPy arguments.

    Raises ValueError for a warp that the block does not have, and what a launch raises.
    """
    return drawn(rows_of(trace(kernel, grid, block, args, number=number), warp), warp, kernel.module.lines)


def drawn(rows: Rows, warp: int, source: Sequence[str], *lines_above: str) -> Plot:
    """Draw lanes across and time downwards, in one colour per source line, beside the source."""
    executed = sorted({int(line) for line in rows.lines if line})
    colors = {line: to_rgb(_COLORS[i % len(_COLORS)]) for i, line in enumerate(executed)}
    colors[0] = to_rgb("0.6")
    width, height = _LISTING + _ROOM, MARGIN + _HEIGHT + _TITLE
    figure = Plot(figsize=(width, height))
    axes = figure.add_axes((MARGIN / width, MARGIN / height, _WIDTH / width, _HEIGHT / height))
    full = np.array([colors[int(line)] for line in rows.lines])[:, None, :]
    strength = np.where(rows.active, 1, _IDLE)[:, :, None]
    axes.imshow(1 - strength * (1 - full), aspect="auto", interpolation="nearest")
    axes.vlines(np.arange(WARP - 1) + 0.5, -0.5, len(rows.lines) - 0.5, color="white", linewidth=1)
    changes = _changes(rows)
    axes.hlines(changes, -0.5, WARP - 0.5, color="white", linewidth=min(1, 40 / (1 + len(changes))))
    axes.set_xticks(range(0, WARP, 4), [str(WARP * warp + lane) for lane in range(0, WARP, 4)])
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set(xlabel=f"thread (a lane of warp {warp} each)", ylabel="time (PTX instructions)")
    _list(figure, rows, source, colors)
    found = f"warp {warp}: {len(rows.lines)} instructions, on average {rows.mean:.3g} of {WARP} lanes active"
    headline(figure, found, *(lines_above or ("full colour: active; pale: the lane waits, or has ended",)))
    return figure


def _changes(rows: Rows) -> np.ndarray:
    """Find where the next instruction has another source line or other lanes."""
    other = (rows.lines[1:] != rows.lines[:-1]) | (rows.active[1:] != rows.active[:-1]).any(1)
    return np.flatnonzero(other) + 0.5


def _list(figure: Plot, rows: Rows, source: Sequence[str], colors: dict[int, Any]) -> None:
    """Draw the source; each line that ran has its colour before it, and its number of lanes after it."""
    width, height = figure.get_size_inches()
    first = next((i for i, line in enumerate(source) if line.strip()), 0)
    for row, number in enumerate(range(first + 1, len(source) + 1)):
        y = (height - _TITLE - _LINE * (row + 0.7)) / height
        text = f"{number:>2}  {source[number - 1].replace(chr(9), '    ')}"
        figure.text((_LISTING + 0.2) / width, y, text, fontsize=8.5, family="monospace", va="center")
        if number not in colors:
            continue
        box = Rectangle(
            (_LISTING / width, y - 0.06 / height),
            0.13 / width,
            0.12 / height,
            facecolor=colors[number],
            transform=figure.transFigure,
            figure=figure,
        )
        figure.patches.append(box)
        lanes = f"{rows.lanes_at(number):.3g}"
        figure.text((width - 0.15) / width, y, lanes, fontsize=8.5, ha="right", va="center")
    figure.text((width - 0.15) / width, (height - _TITLE + 0.08) / height, "lanes", fontsize=8.5, ha="right")
