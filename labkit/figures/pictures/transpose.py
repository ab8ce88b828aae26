"""A picture of the transpose through a tile in shared memory, from the index rules of kernels/transpose."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from labkit.figures.pictures.product import headline
from labkit.figures.style import Plot

_READ, _WRITTEN, _OTHERS = "#56B4E9", "#E69F00", "#F2F2F2"
_LEFT, _BELOW, _ABOVE = 0.65, 0.95, 0.9  # inches: labels; legend and labels; titles


def through_a_tile(rows: int, cols: int, tile: int, block: tuple[int, int], y: int) -> Plot:
    """Draw what the threads with threadIdx.y = `y` of block (x, y) read and write; numbers are threadIdx.x.

    They read a row of in (rows, cols) and store it as row y of the tile. After all threads have filled the
    tile, they read its column y and write it as a row of out (cols, rows). Raises ValueError where any of
    that lies outside.
    """
    corners = {
        "in": (block[1] * tile, block[0] * tile),
        "tile": (0, 0),
        "out": (block[0] * tile, block[1] * tile),
    }
    shapes = {"in": (rows, cols), "tile": (tile, tile), "out": (cols, rows)}
    if not (0 <= y < tile and corners["in"][0] + tile <= rows and corners["in"][1] + tile <= cols):
        raise ValueError(
            f"row {y} of block {block} is no row of a whole {tile} x {tile} tile of in {shapes['in']}."
        )
    scale, highest = min(3 / max(rows, cols), 6.5 / (cols + tile + rows)), max(rows, cols)
    figure = Plot(figsize=(3 * _LEFT + 0.3 + scale * (cols + tile + rows), _BELOW + scale * highest + _ABOVE))
    left = _LEFT
    for name, (height, width) in shapes.items():
        bottom = _BELOW + scale * (highest - height)
        axes = _inches(figure, left, bottom, scale * width, scale * height)
        left += scale * width + _LEFT
        axes.imshow(np.full((height, width, 3), to_rgb(_OTHERS)))
        axes.vlines(np.arange(1, width) - 0.5, -0.5, height - 0.5, color="white", linewidth=0.8)
        axes.hlines(np.arange(1, height) - 0.5, -0.5, width - 0.5, color="white", linewidth=0.8)
        row, col = corners[name]
        for x in range(tile):
            if name != "in":
                place = (row + y, col + x) if name == "out" else (x, y)
                _cell(axes, place, x, _WRITTEN)
            if name != "out":
                _cell(axes, (row + y, col + x), x, _READ, rim=0.18 if name == "tile" and x == y else 0)
        frame = Rectangle(
            (col - 0.5, row - 0.5), tile, tile, fill=False, linewidth=2, clip_on=False, zorder=3
        )
        axes.add_patch(frame)
        axes.set_title(
            f"{name} {(height, width)}" if name != "tile" else "tile[y][x], shared", fontsize=10, y=1
        )
        axes.set(xlabel="column", ylabel="row")
        axes.set_xticks(range(0, width, tile))
        axes.set_yticks(range(0, height, tile))
    (row, col), (out_row, out_col) = corners["in"], corners["out"]
    headline(
        figure,
        f"Block {block}, threads with y = {y}: a row in, a row out; the turn is in the tile",
        f"read in[{row + y}, {col} + x], written out[{out_row + y}, {out_col} + x]",
    )
    handles = [
        Patch(color=_READ, label="read from in, stored in the tile"),
        Patch(color=_WRITTEN, label="read from the tile, written to out"),
    ]
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.03, 0), ncols=2, fontsize=9, frameon=False
    )
    return figure


def _inches(figure: Plot, left: float, bottom: float, width: float, height: float) -> Axes:
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def _cell(axes: Axes, place: tuple[int, int], x: int, color: str, rim: float = 0) -> None:
    """Draw an element with its thread; a `rim` leaves visible what was drawn there before."""
    row, col = place
    side, corner = 1 - 2 * rim, (col - 0.5 + rim, row - 0.5 + rim)
    axes.add_patch(Rectangle(corner, side, side, color=color, linewidth=0))
    axes.text(col, row, str(x), ha="center", va="center", fontsize=8)
