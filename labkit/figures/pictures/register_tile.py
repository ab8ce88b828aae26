"""A block's tile of C, and the elements of it that one thread and its warp keep in registers.

The picture follows the index rules of kernels/matmul/5_register_tile: thread t of a block has y = t / COLS
and x = t % COLS, and computes rows y, y + ROWS, … and columns x, x + COLS, … of the tile, with ROWS = TILE_M
/ THREAD_M and COLS = TILE_N / THREAD_N.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from labkit.figures.svg import BLUE, ORANGE, SKY, Svg, grid
from simt.common.limits import MAX_THREADS, WARP
from simt.common.text import counted

FLOAT = 4  # bytes
MAX_SHARED = 48 * 1024  # bytes of shared memory that a block has by default
MAX_REGISTERS = 255  # per thread
MULTIPROCESSORS = 132  # in an H200

_THREAD: dict[str, object] = {"fill": BLUE, "stroke": "#fff", "stroke_width": 0.8}
_OF_WARP: dict[str, object] = {"fill": ORANGE}
_BUSY: dict[str, object] = {"fill": SKY}
_IDLE: dict[str, object] = {"class_": "line", "stroke_width": 0.8}
# In pixels: the larger side of the tile of C, its corner, the thickness of its neighbours, whatever TILE_K
# is, and the space between them; the least side of an element of the thread; the multiprocessors.
_SIDE, _LEFT, _TOP, _STRIP, _GAP, _SEEN = 296.0, 124.0, 152.0, 40.0, 24.0, 7.0
_SMS, _SM, _SMS_ACROSS = 444.0, 15.0, 12


@dataclass(frozen=True)
class RegisterTile:
    """The tiles of a block and of a thread, in elements: C's tile is tile_m x tile_n, a thread's m x n.

    Raises ValueError where no GPU accepts such a block, or a thread's sums do not fit its registers.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    m: int
    n: int

    def __post_init__(self) -> None:
        for tile, part, side in ((self.tile_m, self.m, "M"), (self.tile_n, self.n, "N")):
            if tile % part:
                raise ValueError(
                    f"THREAD_{side}={part} does not divide TILE_{side}={tile}. Choose one that does."
                )
        if self.threads > MAX_THREADS:
            raise ValueError(
                f"{self.tile_m} x {self.tile_n} elements in parts of {self.m} x {self.n} take {self.threads} "
                f"threads; a block holds at most {MAX_THREADS}. Choose a larger THREAD_M or THREAD_N."
            )
        if self.shared_bytes > MAX_SHARED:
            raise ValueError(
                f"The tiles take {self.shared_bytes} bytes of shared memory; a block has {MAX_SHARED}. "
                "Choose a smaller TILE_K."
            )
        if self.registers > MAX_REGISTERS:
            raise ValueError(
                f"{self.m} x {self.n} sums and what a k needs take {self.registers} registers; a thread has "
                f"at most {MAX_REGISTERS}. Choose a smaller THREAD_M or THREAD_N."
            )

    @property
    def threads(self) -> int:
        """Return the threads per block."""
        return self.tile_m * self.tile_n // (self.m * self.n)

    @property
    def across(self) -> int:
        """Return COLS, the threads side by side; below them stand the next as many."""
        return self.tile_n // self.n

    @property
    def loads(self) -> float:
        """Return the elements read from shared memory per multiply-add."""
        return (self.m + self.n) / (self.m * self.n)

    @property
    def sectors(self) -> float:
        """Return the sectors of global loads per multiply-add of a warp, if every byte of them is used."""
        return WARP * FLOAT / 32 * (1 / self.tile_m + 1 / self.tile_n)

    @property
    def registers(self) -> int:
        """Return the registers for a thread's sums and one k's elements, without addresses and counters."""
        return self.m * self.n + self.m + self.n

    @property
    def shared_bytes(self) -> int:
        """Return the shared memory of a block: a tile of A and one of B."""
        return FLOAT * self.tile_k * (self.tile_m + self.tile_n)

    def elements(self, thread: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of the block's tile that a thread computes, (m,) and (n,)."""
        y, x = divmod(thread, self.across)
        return y + self.tile_m // self.m * np.arange(self.m), x + self.across * np.arange(self.n)

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """Return how many blocks in x and y cover C (M,N)."""
        return -(-N // self.tile_n), -(-M // self.tile_m)

    def rounds(self, M: int, N: int) -> tuple[int, int]:
        """Return the waves that C (M,N) takes at one block per SM, and the number of blocks in the last."""
        blocks = prod(self.grid(M, N))
        rounds = -(-blocks // MULTIPROCESSORS)
        return rounds, blocks - (rounds - 1) * MULTIPROCESSORS


def register_tile_picture(tile: RegisterTile, thread: int, N: int) -> Svg:
    """Draw the block's tile of C with the elements of `thread` and its warp, and the tiles of A and B.

    It also shows the multiprocessors of an H200, with those that have a block in the last wave of a product
    with M = N. In an explorer pointing at C moves the controls `x` and `y`. Raises ValueError for a thread
    that the block does not have.
    """
    if not 0 <= thread < tile.threads:
        raise ValueError(f"there is no thread {thread}. Choose one from 0 to {tile.threads - 1}.")
    warp = range(thread // WARP * WARP, min(tile.threads, (thread // WARP + 1) * WARP))
    told = f"Thread {thread} of {tile.threads} has {tile.m} × {tile.n} elements of C"
    picture = Svg(
        640,
        _TOP + _SIDE + 28,
        f"{told}: the tile of C, {tile.tile_m} × {tile.tile_n} elements, with those of the thread and of its "
        f"warp marked; beside it what they need of A_tile and B_tile. {_in_words(tile, N)}",
    )
    picture.title(f"{told} and, for each k, reads {tile.m} of A and {tile.n} of B")
    of_warp = f"its warp, threads {warp[0]} to {warp[-1]}"
    picture.legend(8, 34, [(f"thread {thread}", _THREAD), (of_warp, _OF_WARP)])
    _draw_tiles(picture, tile, thread, warp)
    _draw_multiprocessors(picture, tile, N)
    return picture


def _draw_tiles(picture: Svg, tile: RegisterTile, thread: int, warp: range) -> None:
    """Draw the tile of C, and above and beside it what it needs of B and A in the first step along k."""
    cell, thin = _SIDE / max(tile.tile_m, tile.tile_n), _STRIP / tile.tile_k
    width, height = cell * tile.tile_n, cell * tile.tile_m
    above, beside = _TOP - _GAP - _STRIP, _LEFT - _GAP - _STRIP
    picture.text(8, _TOP - 12, f"A_tile {tile.tile_m} × {tile.tile_k}", font_weight="600")
    picture.text(_LEFT, above - 26, f"B_tile {tile.tile_k} × {tile.tile_n}", font_weight="600")
    picture.text(_LEFT, _TOP + height + 14, f"tile of C {tile.tile_m} × {tile.tile_n}", font_weight="600")
    for count, across in ((tile.tile_n, True), (tile.tile_m, False)):
        for i in (0, count // 2, count - 1) if count * cell > 60 else (0,):
            at = (i + 0.5) * cell
            place = (_LEFT + at, above - 9, "middle") if across else (beside - 6, _TOP + at, "end")
            picture.text(place[0], place[1], str(i), place[2], class_="soft")
    for box in (
        (beside, _TOP, _STRIP, height),
        (_LEFT, above, width, _STRIP),
        (_LEFT, _TOP, width, height),
    ):
        picture.rect(*box, class_="empty")
    in_c = np.zeros((tile.tile_m, tile.tile_n), bool)
    for lane in warp:
        in_c[np.ix_(*tile.elements(lane))] = True
    _draw_runs(picture, in_c, (_LEFT, _TOP), (cell, cell))
    _draw_runs(picture, np.array(in_c.any(axis=1))[:, None], (beside, _TOP), (max(thin, _SEEN), cell))
    _draw_runs(picture, np.array(in_c.any(axis=0))[None], (_LEFT, above), (cell, max(thin, _SEEN)))
    rows, cols = (each.tolist() for each in tile.elements(thread))
    # An element too small to see is drawn larger, and yet apart from the next one of its thread.
    least = min(_SEEN, 0.7 * width / tile.n), min(_SEEN, 0.7 * height / tile.m)
    with picture.group(**_THREAD):
        for row in rows:
            for col in cols:
                link = f"row{row} col{col}"
                _mark(picture, (_LEFT, _TOP), (col, row), (cell, cell), least, data_link=link)
        for row in rows:
            tip = f"A_tile[{row}][k] is read once, for {counted(tile.n, 'multiply-add')}: row {row} of C."
            told = _pointed(f"row{row}", tip)
            _mark(picture, (beside, _TOP), (0, row), (thin, cell), (_SEEN, least[1]), **told)
        for col in cols:
            tip = f"B_tile[k][{col}] is read once, for {counted(tile.m, 'multiply-add')}: column {col} of C."
            told = _pointed(f"col{col}", tip)
            _mark(picture, (_LEFT, above), (col, 0), (cell, thin), (least[0], _SEEN), **told)
    _add_grids(picture, tile, thread, cell)


def _pointed(link: str, tip: str) -> dict[str, object]:
    return {
        "data_link": link,
        "data_tip": tip,
        "aria_label": tip,
        "role": "img",
        "tabindex": 0,
        "data_key": link,
    }


def _draw_runs(
    picture: Svg, marked: np.ndarray, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    """Draw the marked elements of a tile in the warp's colour: those side by side in a row as one box."""
    edges = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(int), axis=1)
    (rows, starts), (_, stops) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    boxes = (
        f"M{corner[0] + start * size[0]:g} {corner[1] + row * size[1]:g}"
        f"h{(stop - start) * size[0]:g}v{size[1]:g}h{(start - stop) * size[0]:g}z"
        for row, start, stop in zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True)
    )
    picture.path("".join(boxes), **_OF_WARP)


def _mark(
    picture: Svg,
    corner: tuple[float, float],
    at: tuple[int, int],
    size: tuple[float, float],
    least: tuple[float, float],
    **attributes: object,
) -> None:
    """Draw an element of the thread, at = (column, row), at least as large as `least`."""
    x, y = (start + (i + 0.5) * side for start, i, side in zip(corner, at, size, strict=True))
    width, height = max(size[0], least[0]), max(size[1], least[1])
    picture.rect(max(x - width / 2, corner[0]), max(y - height / 2, corner[1]), width, height, **attributes)


def _add_grids(picture: Svg, tile: RegisterTile, thread: int, cell: float) -> None:
    """Let each part of C that has one element of every thread set `x` and `y`; the first, by keys too."""
    y, x = divmod(thread, tile.across)
    told = f"Tile of C; arrow keys choose a thread. x = {x}, y = {y}: thread {thread}."
    down = tile.tile_m // tile.m
    width, height = tile.across * cell, down * cell
    acts = grid("elements", told, x=("x", tile.across), y=("y", down), hover=True)
    by_pointer = {name: acts[name] for name in ("data_x", "data_y", "data_cols", "data_rows", "data_hover")}
    for place_y, place_x in np.ndindex(tile.m, tile.n):
        x_at, y_at = _LEFT + place_x * width, _TOP + place_y * height
        first = (place_y, place_x) == (0, 0)
        picture.rect(x_at, y_at, width, height, fill="transparent", **(acts if first else by_pointer))


def _draw_multiprocessors(picture: Svg, tile: RegisterTile, N: int) -> None:
    """Draw a box for each multiprocessor: full if it has a block in the last round, hollow if not."""
    rounds, busy = tile.rounds(N, N)
    down = MULTIPROCESSORS // _SMS_ACROSS
    which = "the only wave" if rounds == 1 else f"the last of {rounds} waves"
    picture.text(_SMS, _TOP - 48, f"M = N = {N}: {prod(tile.grid(N, N))} blocks", font_weight="600")
    picture.text(_SMS, _TOP - 30, f"{busy} of {MULTIPROCESSORS} SMs")
    picture.text(_SMS, _TOP - 12, f"work in {which}")
    has_block = np.arange(MULTIPROCESSORS).reshape(down, _SMS_ACROSS) < busy
    with picture.group(**_pointed("multiprocessors", _in_words(tile, N)) | {"data_link": None}):
        picture.cells(_SMS, _TOP, (_SM, _SM), np.where(has_block, 0, 1), [_BUSY, _IDLE], 3)
    picture.legend(_SMS, _TOP + down * _SM + 14, [("has a block", _BUSY), ("idle", _IDLE)])


def _in_words(tile: RegisterTile, N: int) -> str:
    rounds, busy = tile.rounds(N, N)
    return (
        f"In the last of {counted(rounds, 'wave')} {busy} of {MULTIPROCESSORS} SMs have a "
        "block, if each takes one at a time."
    )
