"""What the explorers show, as plain functions: figures and the text that says what follows from them.

Times are a report's; what this machine has stands beside them. All raise ValueError or LaunchError, with the
way out, for choices that do not go together.
"""

from math import prod

import pandas as pd
from matplotlib.figure import Figure

from labkit import records
from labkit.core.limits import WARP
from labkit.device.select import device
from labkit.figures import curves
from labkit.figures.pictures import product
from labkit.kernels.matmul.family import Matmul
from labkit.widgets import here
from labkit.widgets.explorer import View
from labkit.widgets.here import Size

BOTH = "both"
_NAMES = list(here.KERNELS)


def sizes_of(report: str) -> list[Size]:
    """Matrix sizes (m, n, k) for which a report has times of GPU kernels by block side, smallest first."""
    found = _times(report)[["m", "n", "k"]].drop_duplicates().astype(int).itertuples(index=False, name=None)
    return sorted(found, key=lambda size: size[0] * size[1] * size[2])


def sides_of(report: str) -> list[int]:
    """Block sides that a report has tried."""
    return sorted(int(side) for side in _times(report).block_x.unique())


def size_label(size: Size) -> str:
    """N = 512, or m×k×n where they differ, as in `plots`."""
    m, n, k = size
    return f"N = {n}" if m == n == k else f"{m}×{k}×{n}"


def block_sweep_view(report: str, kernel: str, size: Size, side: int) -> View:
    """A report's times against the block side, and the same sweep on this machine; `side` is marked.

    `kernel` is naive, tiled or both; `size` is (m, n, k).
    """
    names = _named(kernel)
    Matmul(*size).launch(side)  # a block that no GPU takes is the first thing to say
    frame = _times(report, kernel=names, m=size[0], n=size[1], k=size[2])
    dtype, sides = frame["dtype"].iloc[0], sorted({side, *sides_of(report)})
    figure = curves.time_by_block(frame, here.rows(names, [size], sides, (size, side), dtype))
    _mark(figure, side)
    times = [_time_at(frame[frame.kernel == name], name, side) for name in names]
    return View((figure,), "\n".join([*times, *_machine(names, size, side, dtype), _block(side, side)]))


def tiling_view(report: str, size: Size, tile: int) -> View:
    """A report's times of naive and tiled over the sizes, at one tile; what tiling gains, there and here.

    A report that has run a kernel with one block only is compared with that.
    """
    Matmul(*size).launch(tile)
    frame = _times(report)
    only = frame.groupby("kernel").block_x.transform("nunique") == 1
    dtype, frame = frame["dtype"].iloc[0], frame[(frame.block_x == tile) | only]
    if "tiled" not in set(frame.kernel):
        sides = ", ".join(map(str, sides_of(report)))
        raise ValueError(f"report {report} has no time with TILE={tile}. Choose one of {sides}.")
    machine = here.rows(_NAMES, sorted({size, *sizes_of(report)}), [tile], (size, tile), dtype)
    figures = curves.time_by_size(frame), curves.speedup_by_size(frame, machine)
    figures[0].set_size_inches(7, 3)  # both should fit a screen
    for figure in figures:
        _mark(figure, prod(size) ** (1 / 3))
    lines = [_speedup(frame, size), *_machine(_NAMES, size, tile, dtype), _traffic(size, tile)]
    return View(figures, "\n".join(lines))


def thread_map_view(M: int, N: int, block_x: int, block_y: int, row: int, col: int) -> View:
    """Which block, warp and lane compute C[row, col], and which threads have no element."""
    block = (block_x, block_y)
    figure = product.thread_map(M, N, block, row, col)
    who, grid = product.worker(row, col, block), product.grid_of(M, N, block)
    lines = (
        "row = blockIdx.y * blockDim.y + threadIdx.y = "
        f"{who.block[1]} * {block_y} + {who.thread[1]} = {row}; "
        "col = blockIdx.x * blockDim.x + threadIdx.x = "
        f"{who.block[0]} * {block_x} + {who.thread[0]} = {col}.",
        f"Thread (x, y) = {who.thread} has number y * {block_x} + x = {who.warp * WARP + who.lane} in its "
        f"block, so it is lane {who.lane} of warp {who.warp}.",
        f"The grid {grid} covers C ({M}, {N}) with {_counted(grid[0] * grid[1], 'block')}. {_block(*block)}",
    )
    return View((figure,), "\n".join(lines))


def tile_walk_view(M: int, N: int, K: int, tile: int, block_x: int, block_y: int, k0: int) -> View:
    """One round of the tiled kernel in one block: what it brings to shared memory, and what is 0 there."""
    figure = product.tile_walk(M, N, K, tile, k0, (block_x, block_y))
    now = product.tile_round(M, N, K, tile, k0, (block_x, block_y))
    row, col = now.starts["C"]
    lines = (
        f"A ({M}, {K}) times B ({K}, {N}), round {now.number} of {now.rounds}: "
        f"thread (x, y) brings A[{row} + y, {k0} + x] to A_tile[y][x] "
        f"and B[{k0} + y, {col} + x] to B_tile[y][x]. Here {product.padding(now)}.",
        f"Then every thread adds {_counted(tile, 'product')}, A_tile[y][k] * B_tile[k][x]. So an element is "
        f"fetched once from global memory and used {_counted(tile, 'time')}.",
        f"{now.inside['C']} of the block's {_counted(tile * tile, 'thread')} have an element of C to write.",
    )
    return View((figure,), "\n".join(lines))


# Records.


def _times(report: str, **filters: object) -> pd.DataFrame:
    """Times of the report's GPU kernels."""
    return records.load(report, "time", **{"problem": "matmul", "kernel": _NAMES} | filters)


def _named(kernel: str) -> list[str]:
    if kernel not in (*_NAMES, BOTH):
        raise ValueError(f"there is no kernel {kernel!r}. Choose {', '.join(_NAMES)} or {BOTH}.")
    return _NAMES if kernel == BOTH else [kernel]


def _mark(figure: Figure, place: float) -> None:
    """Show in each panel where the slider stands."""
    for axes in figure.axes:
        axes.axvline(place, color="0.3", linestyle=":", zorder=0)


# Sentences.


def _time_at(line: pd.DataFrame, name: str, side: int) -> str:
    """A kernel's time with one block side, against its smallest."""
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


def _speedup(frame: pd.DataFrame, size: Size) -> str:
    """Naive against tiled at one size."""
    at_size = frame[(frame.m == size[0]) & (frame.n == size[1]) & (frame.k == size[2])]
    rows = at_size.set_index("kernel").T.to_dict("series")
    missing = [name for name in _NAMES if name not in rows]
    if missing:
        return f"{size_label(size)}: the report has no time of {' and '.join(missing)} with this block."
    naive, tiled = (rows[name] for name in _NAMES)
    text = (
        f"{size_label(size)} ({tiled.source}): naive with {naive.block_x}×{naive.block_x} blocks takes "
        f"{naive.value:.4g} ms, tiled with TILE = {tiled.tile} takes {tiled.value:.4g} ms: "
        f"{naive.value / tiled.value:.3g}× as fast."
    )
    return f"{text} Probably a {tiled.note}." if tiled.note.startswith("misprint") else text


def _machine(names: list[str], size: Size, side: int, dtype: str) -> list[str]:
    """What this machine has for each kernel."""
    lines = []
    for name in names:
        if device().kind == "gpu":
            timing = here.measure(name, size, side, dtype)
            lines.append(f"{name} takes {timing.median:.4g} ms ({timing.source}).")
        count = here.count(name, size, side)
        lines.append(
            f"{name} reads {count.per_multiply_add:.5g} sectors per multiply-add, "
            f"{count.per_request:.3g} per request of a warp ({count.label})."
        )
    return lines


def _traffic(size: Size, tile: int) -> str:
    """How much less tiled reads, and why it is not TILE times less."""
    if tile == 1:
        return "With TILE = 1 every element is used once: tiled reads as much as naive, and has more to do."
    naive, tiled = (here.count(name, size, tile) for name in _NAMES)
    fewer = naive.per_multiply_add / tiled.per_multiply_add
    return (
        f"Tiled makes {tile}× (TILE) fewer requests and reads {fewer:.3g}× fewer sectors: a request of naive "
        f"touches {naive.per_request:.3g} sectors, as lanes of one row share an element of A, one of tiled "
        f"{tiled.per_request:.3g}. The tiles take {2 * 4 * tile**2} bytes of shared memory a block."
    )


def _block(x: int, y: int) -> str:
    """What a block is made of."""
    threads, warps = x * y, -(-x * y // WARP)
    text = (
        f"A block of {x}×{y} has {_counted(threads, 'thread')} in {_counted(warps, 'warp')} of {WARP} lanes"
    )
    idle = warps * WARP - threads
    return f"{text}, {_counted(idle, 'lane')} of them idle." if idle else f"{text}."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
