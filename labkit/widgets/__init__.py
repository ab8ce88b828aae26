"""Explorers for the notebooks: sliders with a picture and a text that answer when a slider is released.

widgets.block_sweep()    a report's times by block side, beside what this machine has
widgets.tiling()         naive against tiled: times, speed-up, traffic
widgets.thread_map()     which thread computes which element of C
widgets.tile_walk()      the tiles that a block brings to shared memory, round by round
widgets.cpu_ladder()     how fast each rung of the CPU's product is here, by size and block
widgets.cache()          how often each cache line of A, B and C is fetched, for each order of the loops
widgets.sectors()        which sectors of memory a warp's request moves, and what of them it uses
widgets.banks()          which banks of shared memory a warp's lanes ask, and how many passes that takes
widgets.occupancy()      how many warps an SM holds, which resource limits them, and what would let more in
widgets.roofline()       a rung under the roofs of a recorded H200, and what holds it back
widgets.divergence()     which lanes of a warp work and which wait, where they take different ways
widgets.register_tile()  what a tile in registers reads, holds and leaves idle, by its sides and the size
widgets.unrolling()      what several elements a thread save, and how many bytes they keep on their way
"""

from labkit.figures.pictures import product
from labkit.widgets import views
from labkit.widgets.banks_view import banks
from labkit.widgets.cache_view import cache
from labkit.widgets.cpu_view import cpu_ladder
from labkit.widgets.divergence_view import divergence
from labkit.widgets.explorer import Choices, Explorer, View, menu, selection, slider
from labkit.widgets.occupancy_view import occupancy
from labkit.widgets.register_tile_view import register_tile
from labkit.widgets.roofline_view import roofline
from labkit.widgets.sectors_view import sectors
from labkit.widgets.unrolling_view import unrolling

__all__ = [
    "Explorer",
    "View",
    "banks",
    "block_sweep",
    "cache",
    "cpu_ladder",
    "divergence",
    "occupancy",
    "register_tile",
    "roofline",
    "sectors",
    "thread_map",
    "tile_walk",
    "tiling",
    "unrolling",
]

_REPORTS = ("int-matmul", "cpu-gpu-matmul", "tiled-matmul-ko")  # those with sweeps over the block side


def block_sweep() -> Explorer:
    """Sliders for report, kernel, matrix size and block side."""

    def offer(report: str, **_: object) -> dict[str, Choices]:
        return {"size": _sizes(report), "side": _sides(report)}

    controls = {
        "report": menu("report", [(name, name) for name in _REPORTS]),
        "kernel": menu("kernel", [(name, name) for name in (views.BOTH, "naive", "tiled")]),
        "size": selection("matrix size", _sizes(_REPORTS[0]), (1024, 1024, 1024)),
        "side": selection("block side", _sides(_REPORTS[0]), 16),
    }
    return Explorer(views.block_sweep_view, controls, offer)


def tiling() -> Explorer:
    """Sliders for report, matrix size and tile."""

    def offer(report: str, **_: object) -> dict[str, Choices]:
        return {"size": _sizes(report), "tile": _sides(report)}

    controls = {
        "report": menu("report", [(name, name) for name in _REPORTS]),
        "size": selection("matrix size", _sizes(_REPORTS[0]), (1024, 1024, 1024)),
        "tile": selection("tile", _sides(_REPORTS[0]), 16),
    }
    return Explorer(views.tiling_view, controls, offer)


def thread_map() -> Explorer:
    """Sliders for the shapes of C and of a block, and for an element of C."""

    def offer(M: int, N: int, **_: object) -> dict[str, Choices]:
        return {"row": _numbers(0, M - 1), "col": _numbers(0, N - 1)}

    controls = {
        "M": slider("rows M", 1, 48, 20),
        "N": slider("columns N", 1, 48, 30),
        "block_x": slider("block x", 1, 40, 16),  # some pairs have more than 1024 threads: the text says so
        "block_y": slider("block y", 1, 40, 8),
        "row": selection("row", _numbers(0, 19), 9),
        "col": selection("column", _numbers(0, 29), 20),
    }
    return Explorer(views.thread_map_view, controls, offer)


def tile_walk(M: int = 10, N: int = 14) -> Explorer:
    """Sliders for K, TILE, a block and the round of its loop over K, for C (M,N)."""

    def offer(M: int, N: int, K: int, tile: int, **_: object) -> dict[str, Choices]:
        grid = product.grid_of(M, N, (tile, tile))
        return {
            "block_x": _numbers(0, grid[0] - 1),
            "block_y": _numbers(0, grid[1] - 1),
            "k0": _numbers(0, K - 1, tile),
        }

    controls = {
        "M": slider("rows M", 1, 20, M),
        "N": slider("columns N", 1, 20, N),
        "K": slider("K", 1, 20, 11),
        "tile": slider("TILE", 1, 16, 4),
        "block_x": selection("block x", _numbers(0, 0), 0),
        "block_y": selection("block y", _numbers(0, 0), 0),
        "k0": selection("k0", _numbers(0, 0), 0),
    }
    return Explorer(views.tile_walk_view, controls, offer)


def _sizes(report: str) -> Choices:
    return [(views.size_label(size), size) for size in views.sizes_of(report)]


def _sides(report: str) -> Choices:
    return [(f"{side}×{side}", side) for side in views.sides_of(report)]


def _numbers(first: int, last: int, step: int = 1) -> Choices:
    return [(str(number), number) for number in range(first, last + 1, step)]
