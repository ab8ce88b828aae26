"""A block's tile of C, and the elements of it that one thread and its warp keep in registers.

The picture follows the index rules of kernels/matmul/5_register_tile: thread t of a block has y = t / COLS
and x = t % COLS, and computes rows y, y + ROWS, … and columns x, x + COLS, … of the tile, with ROWS = TILE_M
/ THREAD_M and COLS = TILE_N / THREAD_N. The colours are Okabe and Ito's.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from labkit.core.limits import MAX_THREADS, WARP
from labkit.figures.pictures.product import headline, panel
from labkit.figures.style import Plot

FLOAT = 4  # bytes
MAX_SHARED = 48 * 1024  # bytes of shared memory that a block has by default
MAX_REGISTERS = 255  # per thread
MULTIPROCESSORS = 132  # in an H200

_NONE, _WARP, _THREAD = "#F2F2F2", "#F0C987", "#D55E00"
_BUSY, _IDLE = "#56B4E9", "#FFFFFF"
_SMS_ACROSS = 12
# In inches: the larger side of the tile of C, its left and top, and the thickness of its neighbours, whatever
# TILE_K is.
_SIDE, _LEFT, _TOP, _STRIP = 3.5, 2.0, 4.15, 0.6
_SEEN = 3.5  # points
MAX_STRIP = 32  # elements: the largest TILE_K


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
        rows, cols = self.tile_m // self.m, self.tile_n // self.n
        y, x = divmod(thread, cols)
        return y + rows * np.arange(self.m), x + cols * np.arange(self.n)

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """Return how many blocks in x and y cover C (M,N)."""
        return -(-N // self.tile_n), -(-M // self.tile_m)

    def rounds(self, M: int, N: int) -> tuple[int, int]:
        """Return the waves that C (M,N) takes at one block per SM, and the number of blocks in the last."""
        blocks = prod(self.grid(M, N))
        rounds = -(-blocks // MULTIPROCESSORS)
        return rounds, blocks - (rounds - 1) * MULTIPROCESSORS


def register_tile_picture(tile: RegisterTile, thread: int, N: int) -> Plot:
    """Draw the block's tile of C with the elements of `thread` and its warp, and the tiles of A and B.

    It also shows the multiprocessors of an H200, with those that have a block in the last wave of a product
    with M = N. Raises ValueError for a thread that the block does not have.
    """
    if not 0 <= thread < tile.threads:
        raise ValueError(f"there is no thread {thread}. Choose one from 0 to {tile.threads - 1}.")
    figure = Plot(figsize=(10, 6))
    scale = _SIDE / max(tile.tile_m, tile.tile_n)
    width, height = scale * tile.tile_n, scale * tile.tile_m
    warp = range(thread // WARP * WARP, min(tile.threads, (thread // WARP + 1) * WARP))
    reads = [tile.elements(lane) for lane in warp]
    warp_rows, warp_cols = (np.unique(np.concatenate(each)) for each in zip(*reads, strict=True))
    rows, cols = tile.elements(thread)
    in_c = np.zeros((tile.tile_m, tile.tile_n), bool)
    for lane_rows, lane_cols in reads:
        in_c[np.ix_(lane_rows, lane_cols)] = True
    first = np.array([0])
    panels = (
        ("A_tile", (tile.tile_m, tile.tile_k), (_LEFT - 1.3, _TOP - height, _STRIP, height), (rows, first)),
        ("B_tile", (tile.tile_k, tile.tile_n), (_LEFT, _TOP + 0.55, width, _STRIP), (first, cols)),
        ("tile of C", (tile.tile_m, tile.tile_n), (_LEFT, _TOP - height, width, height), (rows, cols)),
    )
    for name, shape, place, marked in panels:
        strength = np.zeros(shape, bool)
        if name == "tile of C":
            strength = in_c
        elif name == "A_tile":
            strength[warp_rows, 0] = True
        else:
            strength[0, warp_cols] = True
        axes = figure.add_axes(_of_figure(figure, *place))
        _draw(axes, strength, marked, 72 * scale)
        axes.set_title(f"{name} {shape[0]} × {shape[1]}", fontsize=9, y=1, loc="left")
        axes.set_xlabel("k" if name == "A_tile" else "column (elements)", fontsize=8, labelpad=1)
        axes.set_ylabel("k" if name == "B_tile" else "row (elements)", fontsize=8, labelpad=0)
    _draw_multiprocessors(figure, tile, N)
    headline(
        figure,
        f"a thread of {tile.m} × {tile.n} elements (dark) reads {tile.m} + {tile.n} elements for "
        f"{tile.m * tile.n} multiply-adds: {tile.loads:.3g} loads from shared memory a multiply-add",
        f"thread {thread} of {tile.threads}; pale: its warp of {len(warp)}, in the first step along k",
    )
    return figure


def _of_figure(
    figure: Plot, left: float, bottom: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """Convert inches to fractions of the figure."""
    w, h = figure.get_size_inches()
    return left / w, bottom / h, width / w, height / h


def _draw(axes: Axes, of_warp: np.ndarray, of_thread: tuple[np.ndarray, np.ndarray], points: float) -> None:
    """Draw a tile with the warp's elements coloured, and those of the thread, (rows, columns), on top.

    `points` is the size of an element; one too small to see is drawn larger.
    """
    axes.imshow(
        np.where(of_warp[..., None], to_rgb(_WARP), to_rgb(_NONE)), aspect="auto", interpolation="nearest"
    )
    rows, cols = np.meshgrid(*of_thread, indexing="ij")
    size = max(_SEEN, points)
    axes.plot(cols.ravel(), rows.ravel(), "s", color=_THREAD, markersize=size, markeredgewidth=0)
    for axis, count in ((axes.xaxis, of_warp.shape[1]), (axes.yaxis, of_warp.shape[0])):
        axis.set_ticks([0, count // 2, count - 1] if count > MAX_STRIP else [0, count - 1])
    axes.tick_params(labelsize=8)


def _draw_multiprocessors(figure: Plot, tile: RegisterTile, N: int) -> None:
    rounds, busy = tile.rounds(N, N)
    down = MULTIPROCESSORS // _SMS_ACROSS
    axes = panel(figure, 6.6, 1.2, _SMS_ACROSS, down, 0.25)
    has_block = (np.arange(MULTIPROCESSORS) < busy).reshape(down, _SMS_ACROSS)
    axes.imshow(np.where(has_block[..., None], to_rgb(_BUSY), to_rgb(_IDLE)))
    axes.set_xticks(np.arange(0.5, _SMS_ACROSS - 1), minor=True)
    axes.set_yticks(np.arange(0.5, down - 1), minor=True)
    axes.grid(which="minor", color="0.6", linewidth=0.6)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    which = "the only round" if rounds == 1 else f"the last of {rounds} rounds"
    axes.set_title(
        f"N = {N}: {busy} of {MULTIPROCESSORS} multiprocessors\nhave a block in {which}",
        fontsize=9,
        y=1,
        loc="left",
    )
