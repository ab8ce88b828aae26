"""Pictures of the machine: which thread computes what, and which elements a block brings to shared memory.

They follow the index rules of kernels/matmul: row = blockIdx.y * blockDim.y + threadIdx.y, and likewise col.
A block's threads are numbered along x first, and each 32 of them are a warp. Matrices are A (M,K), B (K,N), C
(M,N), in elements; blocks and threads are (x, y). The colours are Okabe and Ito's.
Errors: ValueError for a position outside, LaunchError for a block that no GPU accepts.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from labkit.core.limits import WARP, as_dim3, check_launch
from labkit.figures.style import Plot

LARGEST = 64  # a picture of more rows or columns no longer shows single elements

_WARP_COLORS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00", "#999999")
_COLORS = {"A": "#E69F00", "B": "#56B4E9", "C": "#009E73"}
_UNTOUCHED, _OUTSIDE = "#F2F2F2", "#FFFFFF"
_EARLIER = 0.35  # colour strength of what was read earlier

# Panels have fixed positions, in inches: matplotlib's layout engines take longer than all the drawing.
MARGIN, GAP = 0.65, 0.75  # around a figure, and between its panels: room for labels
_TITLE = 0.75


@dataclass(frozen=True)
class Worker:
    """The thread that computes an element of C, and its position in its block."""

    block: tuple[int, int]
    thread: tuple[int, int]
    warp: int
    lane: int


def worker(row: int, col: int, block: tuple[int, int]) -> Worker:
    """Find the thread that computes C[row, col] when blocks have `block` = (x, y) threads."""
    x, y = col % block[0], row % block[1]
    warp, lane = divmod(y * block[0] + x, WARP)
    return Worker((col // block[0], row // block[1]), (x, y), warp, lane)


def grid_of(M: int, N: int, block: tuple[int, int]) -> tuple[int, int]:
    """Return how many blocks in x and y cover C (M,N)."""
    return -(-N // block[0]), -(-M // block[1])


def thread_map(M: int, N: int, block: tuple[int, int], row: int = 0, col: int = 0) -> Plot:
    """Draw C (M,N) in blocks, coloured by warp; C[row, col] is framed, threads without an element hatched."""
    _check_sizes(M=M, N=N)
    check_launch("matmul", (1, 1, 1), as_dim3(block, "block"))
    _check_inside(f"C ({M}, {N})", row=(row, M), col=(col, N))
    who, grid = worker(row, col, block), grid_of(M, N, block)
    width, height = grid[0] * block[0], grid[1] * block[1]
    figure = Plot(figsize=(7.5, 5.5))
    scale = min(5 / width, 4 / height)
    axes = panel(figure, MARGIN, 5.5 - _TITLE - scale * height, width, height, scale)
    axes.imshow(_warp_colors(width, height, block))
    _hatch_outside(axes, (M, N), (height, width))
    _lines(axes, width, height, (1, 1), "white", 0.5)
    _lines(axes, width, height, block, "black", 1.5)
    _frame(axes, (row, col), 1, 1, 3)
    _name_warps(axes, M, N, block, who.block)
    axes.set(xlabel="column of C (elements)", ylabel="row of C (elements)")
    headline(
        figure,
        f"C[{row}, {col}]: thread {who.thread} of block {who.block}, warp {who.warp}, lane {who.lane}",
        _idle(M, N, width, height),
    )
    return figure


def naive_reads(M: int, N: int, K: int, row: int = 0, col: int = 0) -> Plot:
    """Draw what the naive kernel reads for C[row, col], and who needs that row of A again."""
    _check_sizes(M=M, N=N, K=K)
    _check_inside(f"C ({M}, {N})", row=(row, M), col=(col, N))
    strength = {"A": np.zeros((M, K)), "B": np.zeros((K, N)), "C": np.zeros((M, N))}
    strength["A"][row, :] = strength["B"][:, col] = 1
    strength["C"][row, :] = _EARLIER
    strength["C"][row, col] = 1
    figure = Plot(figsize=(7, 5.5))
    for name, axes in _product_panels(figure, M, N, K).items():
        _draw_matrix(axes, name, strength[name], strength[name].shape)
    headline(
        figure,
        f"C[{row}, {col}] needs row {row} of A and column {col} of B; all of row {row} of C needs that row:",
        f"the naive kernel reads each element of A {N} times (N) and each element of B {M} times (M)",
    )
    return figure


@dataclass(frozen=True)
class Round:
    """One round of the tiled kernel's loop in one block.

    It is `number` of `rounds`, from 1. `starts` says where its tiles of A and B and the block's tile of C
    begin, as (row, col), and `inside` how many of their elements exist.
    """

    tile: int
    number: int
    rounds: int
    starts: dict[str, tuple[int, int]]
    inside: dict[str, int]


def tile_round(M: int, N: int, K: int, tile: int, k0: int, block: tuple[int, int] = (0, 0)) -> Round:
    """Return the round in which the loop variable is `k0`, in block (x, y); raises as `tile_walk` does."""
    _check_sizes(M=M, N=N, K=K, TILE=tile)
    check_launch("matmul", (1, 1, 1), (tile, tile, 1))
    grid = grid_of(M, N, (tile, tile))
    _check_inside(f"the grid {grid}", **{"block x": (block[0], grid[0]), "block y": (block[1], grid[1])})
    if k0 not in range(0, K, tile):
        raise ValueError(
            f"k0={k0} is no round of TILE={tile}, K={K}. Choose 0, {tile}, {2 * tile}, … below {K}."
        )
    row, col = block[1] * tile, block[0] * tile
    starts = {"A": (row, k0), "B": (k0, col), "C": (row, col)}
    inside = {
        name: min(tile, rows - starts[name][0]) * min(tile, cols - starts[name][1])
        for name, (rows, cols) in _shapes(M, N, K).items()
    }
    return Round(tile, k0 // tile + 1, -(-K // tile), starts, inside)


def tile_walk(M: int, N: int, K: int, tile: int, k0: int, block: tuple[int, int] = (0, 0)) -> Plot:
    """Draw the tiles that block (x, y) brings to shared memory in round `k0`, for its tile of C.

    Beside the matrices are the two tiles as they lie in shared memory; what lies past an edge is 0 there.
    """
    now, shapes = tile_round(M, N, K, tile, k0, block), _shapes(M, N, K)
    figure = Plot(figsize=(10, 5.5))
    for name, axes in _product_panels(figure, M, N, K, tile).items():
        _draw_matrix(axes, name, _walked(name, shapes[name], now), shapes[name])
        height, width = _covered(shapes[name], tile)
        _lines(axes, width, height, (tile, tile), "0.4", 0.8)
        _frame(axes, now.starts[name], tile, tile, 2)
    for name, bottom in (("B", MARGIN + 1.7 + GAP), ("A", MARGIN)):
        _draw_tile(panel(figure, 7.7, bottom, tile, tile, 1.7 / tile), name, shapes[name], now)
    headline(figure, f"block {block}, k0 = {k0}: round {now.number} of {now.rounds}", padding(now))
    return figure


def padding(now: Round) -> str:
    """Say how much of the round's two tiles lies past the edge."""
    elements = now.tile**2
    padded = [
        f"{elements - now.inside[name]} of the {elements} elements of {name}_tile"
        for name in "AB"
        if now.inside[name] < elements
    ]
    return f"{' and '.join(padded)} lie past the edge and are 0" if padded else "both tiles lie inside"


# Checks.


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if not 1 <= size <= LARGEST:
            raise ValueError(f"{name}={size} cannot be drawn element by element. Choose 1 to {LARGEST}.")


def _check_inside(where: str, **positions: tuple[int, int]) -> None:
    for name, (position, count) in positions.items():
        if not 0 <= position < count:
            raise ValueError(f"{name} {position} is outside {where}. Choose 0 to {count - 1}.")


# Layout.


def _shapes(M: int, N: int, K: int) -> dict[str, tuple[int, int]]:
    return {"A": (M, K), "B": (K, N), "C": (M, N)}


def panel(figure: Plot, left: float, bottom: float, width: int, height: int, scale: float) -> Axes:
    """Add axes for width x height elements of `scale` inches, with their corner at (left, bottom) inches."""
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width * scale / w, height * scale / h))


def _product_panels(figure: Plot, M: int, N: int, K: int, tile: int = 1) -> dict[str, Axes]:
    """Add A left of C and B above it, to one scale, so that a row and a column meet at their element of C."""
    (rows, inner), (_, cols) = _covered((M, K), tile), _covered((M, N), tile)
    across, up = 6.7 - MARGIN - GAP, 5.5 - _TITLE - MARGIN - GAP
    scale = min(across / (inner + cols), up / (inner + rows))
    left, bottom = MARGIN + inner * scale + GAP, MARGIN + rows * scale + GAP
    return {
        "A": panel(figure, MARGIN, MARGIN, inner, rows, scale),
        "B": panel(figure, left, bottom, cols, inner, scale),
        "C": panel(figure, left, MARGIN, cols, rows, scale),
    }


def _covered(shape: tuple[int, int], tile: int) -> tuple[int, int]:
    """Round rows and columns up to whole tiles."""
    return -(-shape[0] // tile) * tile, -(-shape[1] // tile) * tile


# Drawing. As in imshow, element (row, col) covers the unit square around (x, y) = (col, row).


def headline(figure: Plot, *lines: str) -> None:
    """Write the finding above the panels."""
    figure.suptitle("\n".join(lines), fontsize=10, x=0.01, y=0.99, ha="left", va="top")


def _lines(axes: Axes, width: int, height: int, pitch: tuple[int, int], color: str, linewidth: float) -> None:
    """Draw lines between columns and rows, one every pitch = (x, y) elements."""
    x, y = np.arange(pitch[0], width, pitch[0]) - 0.5, np.arange(pitch[1], height, pitch[1]) - 0.5
    axes.vlines(x, -0.5, height - 0.5, color=color, linewidth=linewidth)
    axes.hlines(y, -0.5, width - 0.5, color=color, linewidth=linewidth)


def _frame(axes: Axes, start: tuple[int, int], height: int, width: int, linewidth: float) -> None:
    """Draw a black frame around height x width elements from (row, col)."""
    corner = (start[1] - 0.5, start[0] - 0.5)
    axes.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor="black", linewidth=linewidth, clip_on=False)
    )


def _hatch_outside(axes: Axes, shape: tuple[int, int], covered: tuple[int, int]) -> None:
    """Hatch what the tiles or blocks cover beyond the matrix, and frame the matrix."""
    (rows, cols), (height, width) = shape, covered
    for x, y, w, h in ((cols, 0, width - cols, height), (0, rows, cols, height - rows)):
        if w and h:
            outside = Rectangle((x - 0.5, y - 0.5), w, h, facecolor="white", edgecolor="0.6", alpha=0.8)
            outside.set_hatch("////")
            axes.add_patch(outside)
    _frame(axes, (0, 0), rows, cols, 1.5)


def _warp_colors(width: int, height: int, block: tuple[int, int]) -> np.ndarray:
    """Return the RGB colour of each thread's element, (height, width, 3)."""
    y, x = np.indices((height, width))
    warps = (y % block[1] * block[0] + x % block[0]) // WARP
    return np.array([to_rgb(color) for color in _WARP_COLORS])[warps % len(_WARP_COLORS)]


def _name_warps(axes: Axes, M: int, N: int, block: tuple[int, int], at: tuple[int, int]) -> None:
    """Add a legend of the warps of block `at` that have an element of C: the first of each colour."""
    rows, cols = min(block[1], M - at[1] * block[1]), min(block[0], N - at[0] * block[0])
    y, x = np.indices((rows, cols))
    warps = np.unique((y * block[0] + x) // WARP)
    names = [
        Patch(color=color, label=f"warp {warp}") for warp, color in zip(warps, _WARP_COLORS, strict=False)
    ]
    if len(warps) > len(names):
        names.append(Patch(color="none", label=f"… to warp {warps[-1]},\nagain in these colours"))
    axes.legend(
        handles=names,
        title=f"block {at}",
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        fontsize=9,
        frameon=False,
    )


def _idle(M: int, N: int, width: int, height: int) -> str:
    idle = width * height - M * N
    if not idle:
        return f"all {width * height} threads have an element of C"
    return f"{idle} of {width * height} threads have none: their blocks stick out over the edge of C"


def _walked(name: str, shape: tuple[int, int], now: Round) -> np.ndarray:
    """Return each element's colour strength, in whole tiles: 1 in this round, less in earlier ones."""
    strength = np.zeros(_covered(shape, now.tile))
    row, col = now.starts[name]
    rows, cols = slice(row, row + now.tile), slice(col, col + now.tile)
    if name == "A":
        strength[rows, :col] = _EARLIER
    if name == "B":
        strength[:row, cols] = _EARLIER
    strength[rows, cols] = 1
    return strength


def _draw_matrix(axes: Axes, name: str, strength: np.ndarray, shape: tuple[int, int]) -> None:
    color, base = np.array(to_rgb(_COLORS[name])), np.array(to_rgb(_UNTOUCHED))
    axes.imshow(base + strength[..., None] * (color - base))
    _hatch_outside(axes, shape, (strength.shape[0], strength.shape[1]))
    _lines(axes, strength.shape[1], strength.shape[0], (1, 1), "white", 0.8)
    down, across = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}[name]
    axes.set_title(f"{name} {shape}", fontsize=10, y=1)  # a given y avoids a search for room
    axes.set(xlabel=f"{across} (elements)", ylabel=f"{down} (elements)")
    _whole_ticks(axes)


def _draw_tile(axes: Axes, name: str, shape: tuple[int, int], now: Round) -> None:
    """Draw a tile as it lies in shared memory: each element's row and column, or 0 past the edge."""
    tile = now.tile
    row, col = np.indices((tile, tile)) + np.array(now.starts[name])[:, None, None]
    inside = (row < shape[0]) & (col < shape[1])
    axes.imshow(np.where(inside[..., None], to_rgb(_COLORS[name]), to_rgb(_OUTSIDE)))
    _lines(axes, tile, tile, (1, 1), "0.8", 0.5)
    _frame(axes, (0, 0), tile, tile, 2)
    if tile <= 5:  # smaller cells have no room for text
        for y, x in np.ndindex(tile, tile):
            content = f"{row[y, x]},{col[y, x]}" if inside[y, x] else "0"
            axes.text(x, y, content, ha="center", va="center", fontsize=8)
    axes.set_title(f"{name}_tile in shared memory", fontsize=10, y=1)
    axes.set(xlabel="x (threads)", ylabel="y (threads)")
    _whole_ticks(axes)


def _whole_ticks(axes: Axes) -> None:
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
