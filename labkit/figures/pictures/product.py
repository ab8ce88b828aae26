"""Pictures of the machine: which thread computes what, and which elements a block brings to shared memory.

They follow the index rules of kernels/matmul: row = blockIdx.y * blockDim.y + threadIdx.y, and likewise col.
A block's threads are numbered along x first, and each 32 of them are a warp. Matrices are A (M,K), B (K,N), C
(M,N), in elements; blocks and threads are (x, y). The colours are Okabe and Ito's.
Errors: ValueError for a position outside, LaunchError for a block that no GPU accepts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labkit.figures.svg import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW, Svg, grid, ink_on
from simt.common.limits import WARP, as_dim3, check_launch

LARGEST = 64  # a picture of more rows or columns no longer shows single elements

_WARP_COLORS = (SKY, ORANGE, GREEN, YELLOW, PURPLE, BLUE, RED, GREY)
_COLORS = {"A": ORANGE, "B": SKY, "C": GREEN}
_EARLIER = 0.35  # colour strength of what was read earlier


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


def thread_map(M: int, N: int, block: tuple[int, int], row: int = 0, col: int = 0) -> Svg:
    """Draw C (M,N) in blocks, coloured by warp; C[row, col] is framed, threads without an element are grey.

    In an explorer a click or an arrow key moves the controls `row` and `col`.
    """
    _check_sizes(M=M, N=N)
    check_launch("matmul", (1, 1, 1), as_dim3(block, "block"))
    _check_inside(f"C ({M}, {N})", row=(row, M), col=(col, N))
    who, blocks = worker(row, col, block), grid_of(M, N, block)
    width, height = blocks[0] * block[0], blocks[1] * block[1]
    cell = min(22.0, 600 / width, 400 / height)
    left, top, right, bottom = 46, 34, 46 + width * cell, 34 + height * cell
    told = f"C[{row}, {col}]: thread {who.thread} of block {who.block}, warp {who.warp}, lane {who.lane}"
    picture = Svg(max(right + 12, 620), bottom + 66, f"C in blocks, coloured by warp. {told}")
    y, x = np.indices((height, width))
    warps = (y % block[1] * block[0] + x % block[0]) // WARP % len(_WARP_COLORS)
    looks: list[dict[str, object]] = [{"fill": color} for color in _WARP_COLORS]
    inside = (y < M) & (x < N)
    gap = 1 if cell > 6 else 0.4
    picture.cells(left, top, (cell, cell), np.where(inside, warps, -1), looks, gap)
    outside: list[dict[str, object]] = [{"class_": "empty"}]
    picture.cells(left, top, (cell, cell), np.where(inside, -1, 0), outside, gap)
    _number_axes(picture, (left, top, cell), (M, N), ("column of C", "row of C"))
    edges = [f"M{left + i * block[0] * cell:g} {top:g}V{bottom:g}" for i in range(blocks[0] + 1)]
    edges += [f"M{left:g} {top + i * block[1] * cell:g}H{right:g}" for i in range(blocks[1] + 1)]
    picture.path("".join(edges), class_="line", stroke_width=1.5)
    place = left + col * cell, top + row * cell, cell, cell
    picture.rect(*place, fill="none", stroke="#000", stroke_width=4)
    picture.rect(*place, fill="none", stroke="#fff", stroke_width=1.5)
    tip = f"C, {M} rows and {N} columns; arrow keys move. {told}"
    acts = grid("elements", tip, x=("col", N), y=("row", M), hover=True)
    picture.rect(left, top, N * cell, M * cell, fill="transparent", **acts)
    _name_warps(picture, (left, bottom + 20), (M, N), block, who.block)
    return picture


def naive_reads(M: int, N: int, K: int, row: int = 0, col: int = 0) -> Svg:
    """Draw what the naive kernel reads for C[row, col], and who needs that row of A again."""
    _check_sizes(M=M, N=N, K=K)
    _check_inside(f"C ({M}, {N})", row=(row, M), col=(col, N))
    strength = {"A": np.zeros((M, K)), "B": np.zeros((K, N)), "C": np.zeros((M, N))}
    strength["A"][row, :] = strength["B"][:, col] = 1
    strength["C"][row, :] = _EARLIER
    strength["C"][row, col] = 1
    cell, left, top = min(22.0, 540 / (K + N), 330 / (K + M)), 40.0, 96.0
    middle, below = left + K * cell + 46, top + K * cell + 46
    times = f"The naive kernel reads each element of A {N} times (N), of B {M} times (M)"
    needs = (
        f"C[{row}, {col}] needs row {row} of A and column {col} of B; all of row {row} of C needs that row"
    )
    picture = Svg(max(middle + N * cell + 12, 640), below + M * cell + 12, f"{times}. {needs}.")
    picture.title(times)
    picture.text(8, 32, needs, class_="soft")
    for name, corner in {"A": (left, below), "B": (middle, top), "C": (middle, below)}.items():
        _draw_cells(picture, name, strength[name], corner, cell, strength[name].shape)
    return picture


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


LOAD, BARRIER, MULTIPLY = "load", "barrier", "multiply"


def tile_walk(
    M: int, N: int, K: int, tile: int, k0: int, block: tuple[int, int] = (0, 0), part: str = LOAD
) -> Svg:
    """Draw the tiles that block (x, y) brings to shared memory in round `k0`, for its tile of C.

    Beside the matrices are the two tiles as they lie in shared memory; what lies past an edge is 0 there.
    `part` is what the block is doing: LOAD, BARRIER or MULTIPLY. In an explorer a click on C moves the
    controls `block_x` and `block_y`.
    """
    now, shapes = tile_round(M, N, K, tile, k0, block), _shapes(M, N, K)
    covered = {name: _covered(shape, tile) for name, shape in shapes.items()}
    across, up = covered["A"][1] + covered["C"][1], covered["B"][0] + covered["C"][0]
    cell = min(20.0, 400 / across, 330 / up)
    left, top = 40.0, 40.0
    middle, below = left + covered["A"][1] * cell + 46, top + covered["B"][0] * cell + 46
    corners = {"A": (left, below), "B": (middle, top), "C": (middle, below)}
    right, bottom = middle + covered["C"][1] * cell + 40, below + covered["C"][0] * cell
    shared = 150 / tile
    picture = Svg(
        right + 190,
        max(bottom + 30, 420),
        f"A {shapes['A']} and B {shapes['B']} with the tiles of round {now.number} of {now.rounds} marked "
        f"for block {block}, and these tiles in shared memory. {_PARTS[part]}",
    )
    for name, corner in corners.items():
        _draw_cells(picture, name, _walked(name, shapes[name], now), corner, cell, shapes[name])
        row, col = now.starts[name]
        for each in range(0, covered[name][0] + 1, tile):
            _rule(picture, corner, cell, (each, 0), (each, covered[name][1]))
        for each in range(0, covered[name][1] + 1, tile):
            _rule(picture, corner, cell, (0, each), (covered[name][0], each))
        busy = part == (MULTIPLY if name == "C" else LOAD)
        box = corner[0] + col * cell, corner[1] + row * cell, tile * cell, tile * cell
        picture.rect(*box, fill="none", class_="line", stroke_width=4 if busy else 2)
    across, down = grid_of(M, N, (tile, tile))
    tip = f"C in {down} x {across} tiles; arrow keys choose a block. Block {block}."
    acts = grid("blocks", tip, x=("block_x", across), y=("block_y", down))
    wide, high = covered["C"][1] * cell, covered["C"][0] * cell
    picture.rect(middle, below, wide, high, fill="transparent", **acts)
    for name, y in (("A", 40.0), ("B", 240.0)):
        _draw_shared(picture, name, (right + 16, y), shared, shapes[name], now, part)
    return picture


_PARTS = {
    LOAD: "All threads load one element of A and one of B.",
    BARRIER: "All threads wait until both tiles are complete.",
    MULTIPLY: "Each thread adds the products of a row of A_tile and a column of B_tile.",
}


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


def _covered(shape: tuple[int, int], tile: int) -> tuple[int, int]:
    """Round rows and columns up to whole tiles."""
    return -(-shape[0] // tile) * tile, -(-shape[1] // tile) * tile


# Drawing.


def _name_warps(
    picture: Svg,
    place: tuple[float, float],
    shape: tuple[int, int],
    block: tuple[int, int],
    at: tuple[int, int],
) -> None:
    """Add a legend of the warps of block `at` that have an element of C: the first of each colour."""
    rows, cols = min(block[1], shape[0] - at[1] * block[1]), min(block[0], shape[1] - at[0] * block[0])
    y, x = np.indices((rows, cols))
    warps = np.unique((y * block[0] + x) // WARP)
    picture.text(*place, f"block {at}, warps", class_="soft")
    left, top = place[0] + 126, place[1]
    for warp, color in zip(warps, _WARP_COLORS, strict=False):
        picture.rect(left, top - 8, 26, 16, fill=color)
        picture.text(left + 13, top, str(warp), "middle", class_=ink_on(color))
        left += 32
    if len(warps) > len(_WARP_COLORS):
        picture.text(left + 4, top, f"… to {warps[-1]}, in the same colours", class_="soft")
    picture.rect(place[0], top + 16, 12, 12, class_="empty")
    picture.text(place[0] + 20, top + 22, "a thread without an element of C", class_="soft")


def _number_axes(
    picture: Svg, at: tuple[float, float, float], shape: tuple[int, int], names: tuple[str, str]
) -> None:
    """Number columns above and rows on the left of a grid of cells at = (left, top, size of a cell)."""
    left, top, cell = at
    for count, across in ((shape[1], True), (shape[0], False)):
        each = next(step for step in (1, 2, 4, 8, 16) if step * cell >= (24 if across else 14))
        for i in range(0, count, each):
            middle = (i + 0.5) * cell
            x, y, anchor = (left + middle, top - 8, "middle") if across else (left - 6, top + middle, "end")
            picture.text(x, y, str(i), anchor, class_="soft")
    picture.text(left, top - 24, names[0])
    picture.text(12, top, names[1], "end", transform=f"rotate(-90 12 {top})")


def idle_threads(M: int, N: int, block: tuple[int, int]) -> str:
    """Say how many threads have no element of C (M,N)."""
    grid = grid_of(M, N, block)
    width, height = grid[0] * block[0], grid[1] * block[1]
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


def _rule(
    picture: Svg, corner: tuple[float, float], cell: float, start: tuple[int, int], end: tuple[int, int]
) -> None:
    """Draw a line between two corners of elements, (row, col) each."""
    (x, y), ((row, col), (last_row, last_col)) = corner, (start, end)
    picture.line(x + col * cell, y + row * cell, x + last_col * cell, y + last_row * cell, class_="grid")


def _draw_cells(
    picture: Svg,
    name: str,
    strength: np.ndarray,
    corner: tuple[float, float],
    cell: float,
    shape: tuple[int, int],
) -> None:
    """Draw a matrix: in full colour this round's elements, paler those before, hollow those outside."""
    row, col = np.indices(strength.shape)
    inside = (row < shape[0]) & (col < shape[1])
    kinds = np.where(strength == 1, 2, np.where(strength > 0, 1, 0))
    color = _COLORS[name]
    looks: list[dict[str, object]] = [
        {"class_": "empty"},
        {"fill": color, "fill_opacity": _EARLIER},
        {"fill": color},
        {"class_": "grid", "stroke_dasharray": "2 2"},
    ]
    across, down = {"A": ("k=", "i="), "B": ("j=", "k="), "C": ("j=", "i=")}[name]
    kinds = np.where(inside, kinds, 3)
    matrix(picture, kinds, looks, corner, cell, f"{name} {shape}", shape, (down, across))


def matrix(
    picture: Svg,
    kinds: np.ndarray,
    looks: Sequence[dict[str, object]],
    corner: tuple[float, float],
    cell: float,
    title: str,
    shape: tuple[int, ...] = (),
    names: tuple[str, str] = ("", ""),
) -> None:
    """Draw a matrix of square cells from `corner`, with numbers of rows and columns, and a title above.

    A cell of kind k has the attributes `looks[k]`. Numbers go as far as `shape`, all of it if not given; the
    first of the rows and of the columns is written after its name.
    """
    picture.cells(*corner, (cell, cell), kinds, looks, 1 if cell > 6 else 0.5)
    picture.text(corner[0], corner[1] - 26, title, font_weight="600")
    each = 4 if cell >= 7 else 8
    rows, columns = shape or kinds.shape
    for i in range(0, columns, each):
        label = str(i) if i else f"{names[1]}0"
        picture.text(corner[0] + (i + 0.5) * cell, corner[1] - 9, label, "middle", class_="soft")
    for i in range(0, rows, each):
        label = str(i) if i else f"{names[0]}0"
        picture.text(corner[0] - 6, corner[1] + (i + 0.5) * cell, label, "end", class_="soft")


def _draw_shared(
    picture: Svg,
    name: str,
    corner: tuple[float, float],
    cell: float,
    shape: tuple[int, int],
    now: Round,
    part: str,
) -> None:
    """Draw a tile as it lies in shared memory: each element's row and column, or 0 past the edge."""
    tile, (x, y) = now.tile, corner
    row, col = np.indices((tile, tile)) + np.array(now.starts[name])[:, None, None]
    inside = (row < shape[0]) & (col < shape[1])
    color = _COLORS[name]
    looks: list[dict[str, object]] = [
        {"class_": "empty"},
        {"fill": color, "fill_opacity": _EARLIER if part == LOAD else 1},
    ]
    picture.text(x, y - 26, f"{name}_tile in shared memory", font_weight="600")
    picture.text(
        x, y - 9, {LOAD: "being filled", BARRIER: "complete", MULTIPLY: "being read"}[part], class_="soft"
    )
    picture.cells(x, y, (cell, cell), inside.astype(int), looks)
    if tile <= 5:  # smaller cells have no room for text
        for i, k in np.ndindex(tile, tile):
            content = f"{row[i, k]},{col[i, k]}" if inside[i, k] else "0"
            look = "on" if inside[i, k] and part != LOAD else None
            picture.text(x + (k + 0.5) * cell, y + (i + 0.5) * cell, content, "middle", class_=look)
    if part == MULTIPLY:  # what thread (1, 1) reads, or the last one of a smaller block
        at = min(1, tile - 1)
        strip = (
            (x, y + at * cell, tile * cell, cell) if name == "A" else (x + at * cell, y, cell, tile * cell)
        )
        picture.rect(*strip, fill="none", class_="line", stroke_width=3)
