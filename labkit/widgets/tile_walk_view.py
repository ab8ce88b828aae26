"""The explorer of tiles: what a block brings to shared memory, round by round."""

from labkit.core.text import counted
from labkit.figures.pictures import product
from labkit.widgets.explorer import Choices, Explorer, View, plain, selection, slider


def tile_walk(M: int = 10, N: int = 14) -> Explorer:
    """Show the tiles that a block brings to shared memory, round by round, for C (M, N).

    Sliders set K, TILE, a block and the round of its loop over K.
    """

    def offer(M: int, N: int, K: int, tile: int, **_: object) -> dict[str, Choices]:
        grid = product.grid_of(M, N, (tile, tile))
        return {
            "block_x": plain(range(grid[0])),
            "block_y": plain(range(grid[1])),
            "k0": plain(range(0, K, tile)),
        }

    controls = {
        "M": slider("rows M", 1, 20, M),
        "N": slider("columns N", 1, 20, N),
        "K": slider("K", 1, 20, 11),
        "tile": slider("TILE", 1, 16, 4),
        "block_x": selection("block x", plain([0]), 0),
        "block_y": selection("block y", plain([0]), 0),
        "k0": selection("k0", plain([0]), 0),
    }
    return Explorer(tile_walk_view, controls, offer)


def tile_walk_view(M: int, N: int, K: int, tile: int, block_x: int, block_y: int, k0: int) -> View:
    """Draw one round of the tiled kernel in one block: what it brings to shared memory, and what is 0."""
    figure = product.tile_walk(M, N, K, tile, k0, (block_x, block_y))
    now = product.tile_round(M, N, K, tile, k0, (block_x, block_y))
    row, col = now.starts["C"]
    lines = (
        f"A ({M}, {K}) times B ({K}, {N}), round {now.number} of {now.rounds}: "
        f"thread (x, y) brings A[{row} + y, {k0} + x] to A_tile[y][x] "
        f"and B[{k0} + y, {col} + x] to B_tile[y][x]. Here {product.padding(now)}.",
        f"Then every thread adds {counted(tile, 'product')}, A_tile[y][k] * B_tile[k][x]. So an element is "
        f"fetched once from global memory and used {counted(tile, 'time')}.",
        f"{now.inside['C']} of the block's {counted(tile * tile, 'thread')} have an element of C to write.",
    )
    return View((figure,), "\n".join(lines))
