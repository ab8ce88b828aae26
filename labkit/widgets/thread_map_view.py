"""The explorer of threads: which thread computes which element of C."""

from labkit.figures.pictures import product
from labkit.widgets.explorer import Choices, Explorer, View, plain, selection, slider
from simt.common.limits import WARP
from simt.common.text import counted


def thread_map() -> Explorer:
    """Show which thread computes which element of C.

    Sliders set the shapes of C and of a block, and an element of C.
    """

    def offer(M: int, N: int, **_: object) -> dict[str, Choices]:
        return {"row": plain(range(M)), "col": plain(range(N))}

    controls = {
        "row": selection("row", plain(range(20)), 9, group="element of C"),
        "col": selection("column", plain(range(30)), 20, group="element of C"),
        "M": slider("rows M", 1, 48, 20, group="shape of C"),
        "N": slider("columns N", 1, 48, 30, group="shape of C"),
        "block_x": slider("block x", 1, 40, 16, group="block"),  # some pairs have more than 1024 threads
        "block_y": slider("block y", 1, 40, 8, group="block"),
    }
    return Explorer(thread_map_view, controls, offer, "Which thread computes which element of C")


def thread_map_view(M: int, N: int, block_x: int, block_y: int, row: int, col: int) -> View:
    """Draw which block, warp and lane compute C[row, col], and which threads have no element."""
    block = (block_x, block_y)
    who, grid = product.worker(row, col, block), product.grid_of(M, N, block)
    details = (
        "row = blockIdx.y * blockDim.y + threadIdx.y = "
        f"{who.block[1]} * {block_y} + {who.thread[1]} = {row}; "
        "col = blockIdx.x * blockDim.x + threadIdx.x = "
        f"{who.block[0]} * {block_x} + {who.thread[0]} = {col}.",
        f"Thread (x, y) = {who.thread} has number y * {block_x} + x = {who.warp * WARP + who.lane} in its "
        f"block, so it is lane {who.lane} of warp {who.warp}.",
        f"The grid {grid} covers C ({M}, {N}) with {counted(grid[0] * grid[1], 'block')}: "
        f"{product.idle_threads(M, N, block)}. {about_block(*block)}",
    )
    return View(
        (product.thread_map(M, N, block, row, col),),
        f"C[{row}, {col}] belongs to thread {who.thread} of block {who.block}: warp {who.warp}, "
        f"lane {who.lane}.",
        "\n".join(details),
        "Point at an element to see its thread; click to keep it.",
    )


def about_block(x: int, y: int) -> str:
    """Say how many threads and warps a block has."""
    threads, warps = x * y, -(-x * y // WARP)
    text = f"A block of {x}×{y} has {counted(threads, 'thread')} in {counted(warps, 'warp')} of {WARP} lanes"
    idle = warps * WARP - threads
    return f"{text}, {counted(idle, 'lane')} of them idle." if idle else f"{text}."
