"""A picture of the three levels of tiles in a matrix product: of a block, of a warp and of a thread.

It follows the index rules of kernels/matmul/8_warp_tile: a thread's rows come four at a time, y to y + 3 and
then 4 ROWS further on, and so do its columns. Elements are counted per step of k.
"""

from dataclasses import dataclass

import numpy as np

from labkit.figures.svg import BLUE, GREEN, ORANGE, SKY, Svg
from simt.common.limits import WARP

TILE_M, TILE_N, WARP_M, WARP_N, THREAD_M, THREAD_N = 128, 128, 32, 64, 8, 8  # elements of C
TOGETHER = 4  # rows, and columns, of a thread that follow each other
WARPS_ACROSS, LANES_ACROSS = TILE_N // WARP_N, WARP_N // THREAD_N
_STRIP, _GAP, _TOP = 14.0, 6.0, 108.0  # pixels: the slices of A and B, their distance, the tiles' top
_LEFTS, _CELLS = (30.0, 278.0, 566.0), (1.25, 3.0, 12.0)  # per level: the left of its tile, an element
_A: dict[str, object] = {"fill": ORANGE}
_B: dict[str, object] = {"fill": SKY}
_TILES: list[dict[str, object]] = [{"class_": "mid"}, {"fill": GREEN}, {"fill": BLUE}]
_FRAME: dict[str, object] = {"class_": "line", "stroke_width": 2}


@dataclass(frozen=True)
class Level:
    """A tile of C: whose it is, its rows and its columns."""

    name: str
    rows: int
    columns: int

    @property
    def size(self) -> str:
        """Return its rows and columns in words."""
        return f"{self.rows} × {self.columns}"

    @property
    def sums(self) -> int:
        """Return its elements of C, which are its multiply-adds per step of k."""
        return self.rows * self.columns

    @property
    def reads(self) -> int:
        """Return the elements of A and B that it reads per step of k."""
        return self.rows + self.columns


LEVELS = Level("block", TILE_M, TILE_N), Level("warp", WARP_M, WARP_N), Level("thread", THREAD_M, THREAD_N)


def warp_corner(warp: int) -> tuple[int, int]:
    """Return the first row and column of a warp's tile in that of the block."""
    return warp // WARPS_ACROSS * WARP_M, warp % WARPS_ACROSS * WARP_N


def thread_elements(warp: int, lane: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of the block's tile that a thread computes."""
    row, col = warp_corner(warp)
    i, j = np.arange(THREAD_M), np.arange(THREAD_N)
    lanes_down = WARP_M // THREAD_M
    rows = row + lane // LANES_ACROSS * TOGETHER + i // TOGETHER * TOGETHER * lanes_down + i % TOGETHER
    cols = col + lane % LANES_ACROSS * TOGETHER + j // TOGETHER * TOGETHER * LANES_ACROSS + j % TOGETHER
    return rows, cols


def tile_levels(warp: int = 3, lane: int = 9) -> Svg:
    """Draw a block's tile of C, in it that of a warp and in that the sums of a thread, with what each reads.

    Raises ValueError for a thread that the block does not have.
    """
    block, of_warp, of_thread = LEVELS
    warps = block.sums // of_warp.sums
    if not (0 <= warp < warps and 0 <= lane < WARP):
        raise ValueError(
            f"there is no lane {lane} of warp {warp}. Choose warps below {warps}, lanes below {WARP}."
        )
    finding = (
        f"A block's {block.size} sums: {warps} warps of {of_warp.size}, "
        f"each {WARP} threads of {of_thread.size}"
    )
    reads = "; ".join(f"a {level.name} reads {level.reads} for {level.sums} sums" for level in LEVELS)
    picture = Svg(720, _BELOW + 72, f"{finding}. Per step of k: {reads}.")
    picture.title(finding)
    names = [("slice of A", _A), ("slice of B", _B), (f"warp {warp}", _TILES[1]), (f"lane {lane}", _TILES[2])]
    picture.legend(8, 36, [*names, ("part of the next level", _FRAME)])
    rows, cols = thread_elements(warp, lane)
    top, left = warp_corner(warp)
    for place in range(len(LEVELS)):
        _draw_level(picture, place)
    _draw_grid(picture, 0, (WARP_M, WARP_N))
    _draw_grid(picture, 1, (TOGETHER, TOGETHER))
    _draw_grid(picture, 2, (1, 1))
    _draw_part(picture, 0, np.arange(WARP_M) + top, np.arange(WARP_N) + left)
    _draw_part(picture, 1, rows - top, cols - left)
    _name_warps(picture, warps, warp)
    _draw_zooms(picture, (top, left), (rows - top, cols - left))
    _tell_places(picture, rows, cols)
    return picture


_BELOW = _TOP + TILE_M * _CELLS[0] + 22  # where the lines under the tiles begin


def _draw_level(picture: Svg, place: int) -> None:
    """Draw a level's tile with its slices of A and B, and below what it reads."""
    level, left, cell = LEVELS[place], _LEFTS[place], _CELLS[place]
    wide, high, off = level.columns * cell, level.rows * cell, _STRIP + _GAP
    name = f"{level.name}: {level.size} sums"
    picture.text(left - off, _TOP - off - 15, name, font_weight="600")
    picture.rect(left, _TOP - off, wide, _STRIP, **_B)
    picture.rect(left - off, _TOP, _STRIP, high, **_A)
    picture.rect(left, _TOP, wide, high, **_TILES[place])
    for line, text in enumerate(
        (
            f"per k: {level.rows} of A + {level.columns} of B",
            f"for {level.sums:,} multiply-adds:",
            f"{level.sums / level.reads:.3g} per element read",
        )
    ):
        picture.text(left - off, _BELOW + 17 * line, text)


def _draw_part(picture: Svg, place: int, rows: np.ndarray, cols: np.ndarray) -> None:
    """Mark the part of the next level, by its rows and columns, in a tile and in its slices."""
    left, cell, off = _LEFTS[place], _CELLS[place], _STRIP + _GAP
    down, across = _runs(rows), _runs(cols)
    for row, high in down:
        picture.rect(left - off, _TOP + row * cell, _STRIP, high * cell, **_FRAME)
        for col, wide in across:
            x, y = left + col * cell, _TOP + row * cell
            for look in (_TILES[place + 1], _FRAME):
                picture.rect(x, y, wide * cell, high * cell, **look)
    for col, wide in across:
        picture.rect(left + col * cell, _TOP - off, wide * cell, _STRIP, **_FRAME)


def _runs(numbers: np.ndarray) -> list[tuple[int, int]]:
    """Return the numbers that follow each other as (first, how many)."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [(int(part[0]), len(part)) for part in parts]


def _draw_grid(picture: Svg, place: int, part: tuple[int, int]) -> None:
    """Part a level's tile into pieces of (rows, columns)."""
    level, left, cell = LEVELS[place], _LEFTS[place], _CELLS[place]
    across = (
        f"M{left:g} {_TOP + row * cell:g}h{level.columns * cell:g}" for row in _inner(level.rows, part[0])
    )
    down = (
        f"M{left + col * cell:g} {_TOP:g}v{level.rows * cell:g}" for col in _inner(level.columns, part[1])
    )
    picture.path("".join([*across, *down]), class_="hole", stroke_width=1 if place else 2)
    if part == (1, 1):  # single elements of A and B, too
        off = _STRIP + _GAP
        rows = (f"M{left - off:g} {_TOP + row * cell:g}h{_STRIP:g}" for row in _inner(level.rows, 1))
        cols = (f"M{left + col * cell:g} {_TOP - off:g}v{_STRIP:g}" for col in _inner(level.columns, 1))
        picture.path("".join([*rows, *cols]), class_="hole")


def _inner(count: int, each: int) -> range:
    return range(each, count, each)


def _name_warps(picture: Svg, warps: int, chosen: int) -> None:
    """Number the warps of the block."""
    cell = _CELLS[0]
    for warp in range(warps):
        row, col = warp_corner(warp)
        x, y = _LEFTS[0] + (col + WARP_N / 2) * cell, _TOP + (row + WARP_M / 2) * cell
        picture.text(x, y, f"warp {warp}", "middle", class_="on" if warp == chosen else None)


def _draw_zooms(picture: Svg, corner: tuple[int, int], of_thread: tuple[np.ndarray, np.ndarray]) -> None:
    """Join each level's part to its tile, which the next level shows larger."""
    rows, cols = of_thread
    edges = [
        (corner[0], corner[0] + WARP_M, corner[1] + WARP_N),
        (int(rows[0]), int(rows[-1]) + 1, int(cols[-1]) + 1),
    ]
    for place, (first, end, right) in enumerate(edges):
        x, cell = _LEFTS[place] + right * _CELLS[place], _CELLS[place]
        to, high = _LEFTS[place + 1] - _STRIP - _GAP - 4, LEVELS[place + 1].rows * _CELLS[place + 1]
        for begin, stop in ((first, 0.0), (end, high)):
            picture.line(x, _TOP + begin * cell, to, _TOP + stop, class_="line", stroke_dasharray="3 3")


def _tell_places(picture: Svg, rows: np.ndarray, cols: np.ndarray) -> None:
    """Write below the thread's sums which rows and columns of the block's tile they are."""
    for line, (name, numbers) in enumerate((("rows", rows), ("columns", cols))):
        parts = ", ".join(f"{first}…{first + count - 1}" for first, count in _runs(numbers))
        y = _TOP + THREAD_M * _CELLS[2] + 18 + 17 * line
        picture.text(_LEFTS[2] - _STRIP - _GAP, y, f"{name} {parts}", class_="soft")
