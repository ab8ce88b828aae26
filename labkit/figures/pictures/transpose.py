"""A picture of the transpose through a tile in shared memory, from the index rules of kernels/transpose."""

import numpy as np

from labkit.figures.pictures.product import matrix
from labkit.figures.svg import ORANGE, SKY, Svg

_LOOKS: list[dict[str, object]] = [
    {"class_": "empty"},
    {"fill": SKY},
    {"fill": ORANGE, "stroke": "#000", "stroke_width": 1.2},
]
_READ, _WRITTEN = 1, 2
_INSET = 4  # pixels: what of an element that was read stays visible where it is written, too
_LEFT, _TOP, _GAP = 40.0, 112.0, 48.0


def through_a_tile(rows: int, cols: int, tile: int, block: tuple[int, int], y: int) -> Svg:
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
    (row, col), (out_row, out_col) = corners["in"], corners["out"]
    finding = f"Block {block}, threads with y = {y}: a row in, a row out; the tile is read by column"
    places = f"read in[{row + y}, {col} + x], written out[{out_row + y}, {out_col} + x]"
    cell = min(24.0, 500 / (cols + tile + rows))
    picture = Svg(640, _TOP + max(rows, cols) * cell + 12, f"{finding}: {places}")
    picture.title(finding)
    picture.text(8, 32, f"{places}; numbers are x")
    names = ("read from in, stored as a row of the tile", "read as a column of it, written to out")
    picture.legend(8, 56, list(zip(names, _LOOKS[1:], strict=True)))
    left = _LEFT
    for name, shape in shapes.items():
        row, col = corners[name]
        kinds = np.zeros(shape, int)
        if name != "out":
            kinds[row + y, col : col + tile] = _READ
        if name == "tile":
            kinds[:, y] = _WRITTEN
        if name == "out":
            kinds[row + y, col : col + tile] = _WRITTEN
        title = f"{name} {shape}" if name != "tile" else "tile[y][x], shared"
        matrix(picture, kinds, _LOOKS, (left, _TOP), cell, title)
        if name == "tile":
            inset = cell - 1 - 2 * _INSET
            picture.rect(left + y * cell + _INSET, _TOP + y * cell + _INSET, inset, inset, **_LOOKS[_READ])
        for i, j in np.argwhere(kinds).tolist():
            x = i if name == "tile" and j == y else j - col
            picture.text(left + (j + 0.5) * cell, _TOP + (i + 0.5) * cell, str(x), "middle", class_="on")
        picture.rect(
            *(left + col * cell, _TOP + row * cell, tile * cell, tile * cell), class_="line", stroke_width=2.5
        )
        left += shape[1] * cell + _GAP
    return picture
