"""The explorer of tiles: what a block brings to shared memory, round by round."""

from labkit.figures.pictures import product
from labkit.widgets.explorer import Choices, Explorer, View, plain, selection, slider, steps
from simt.common.text import counted


def tile_walk(M: int = 10, N: int = 14) -> Explorer:
    """Show the tiles that a block brings to shared memory, round by round, for C (M, N).

    Sliders set K, TILE, a block and the round of its loop over K.
    """

    def offer(M: int, N: int, K: int, tile: int, **_: object) -> dict[str, Choices]:
        grid = product.grid_of(M, N, (tile, tile))
        return {
            "block_x": plain(range(grid[0])),
            "block_y": plain(range(grid[1])),
            "step": _steps(K, tile),
        }

    controls = {
        "step": steps("step", _steps(11, 4)),
        "tile": slider("TILE", 1, 16, 4, group="tiles"),
        "block_x": selection("block x", plain([0]), 0, group="block"),
        "block_y": selection("block y", plain([0]), 0, group="block"),
        "M": slider("rows M", 1, 20, M, group="matrices"),
        "N": slider("columns N", 1, 20, N, group="matrices"),
        "K": slider("K", 1, 20, 11, group="matrices"),
    }
    return Explorer(tile_walk_view, controls, offer, "What a block brings to shared memory, step by step")


def _steps(K: int, tile: int) -> Choices:
    return [
        (f"k0 = {k0}: {part}", (k0, part))
        for k0 in range(0, K, tile)
        for part in (product.LOAD, product.BARRIER, product.MULTIPLY)
    ]


def tile_walk_view(
    M: int, N: int, K: int, tile: int, block_x: int, block_y: int, step: tuple[int, str]
) -> View:
    """Draw a step (k0, part) of the tiled kernel in one block: what it brings to shared memory, and uses."""
    k0, part = step
    picture = product.tile_walk(M, N, K, tile, k0, (block_x, block_y), part)
    now = product.tile_round(M, N, K, tile, k0, (block_x, block_y))
    row, col = now.starts["C"]
    conclusion = {
        product.LOAD: f"thread (x, y) loads A[{row} + y, {k0} + x] and B[{k0} + y, {col} + x]",
        product.BARRIER: "__syncthreads(): all threads wait until both tiles are complete",
        product.MULTIPLY: f"each thread adds {counted(tile, 'product')}, A_tile[y][k] * B_tile[k][x]",
    }[part]
    details = (
        f"A ({M}, {K}) times B ({K}, {N}): thread (x, y) stores what it loads in A_tile[y][x] and "
        f"B_tile[y][x]. In this round {product.padding(now)}.",
        f"So an element is fetched once from global memory and used {counted(tile, 'time')}.",
        "A second barrier follows the products: no thread may overwrite a tile that another still reads.",
        f"{now.inside['C']} of the block's {counted(tile * tile, 'thread')} have an element of C to write.",
    )
    return View(
        (picture,),
        f"Round {now.number} of {now.rounds}: {conclusion}.",
        "\n".join(details),
        "Play the steps; click a tile of C to choose another block.",
    )
