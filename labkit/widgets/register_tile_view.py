"""The explorer of tiles in registers: what a thread and a block read and hold, how many blocks there are."""

from math import prod

import numpy as np

from labkit.figures.pictures.register_tile import MULTIPROCESSORS, RegisterTile, register_tile_picture
from labkit.widgets.explorer import Choices, Explorer, View, plain, selection
from simt.common.text import counted

REGISTERS = 65536  # of a multiprocessor, of an H200 and most others
_SIDES, _PARTS = (32, 64, 128, 256), (1, 2, 4, 8, 16)
_SIZES = (256, 512, 1024, 2048, 4096, 8192)


def register_tile() -> Explorer:
    """Show what a tile in registers reads, holds and leaves idle, by its sides and the matrix size.

    Sliders set the tile of a block and of a thread, the thread that is shown, and N. Pointing at the tile of
    C chooses the thread, too.
    """

    def offer(tile_m: int, tile_n: int, thread_m: int, thread_n: int, **_: object) -> dict[str, Choices]:
        return {"x": plain(range(tile_n // thread_n)), "y": plain(range(tile_m // thread_m))}

    controls = {
        "thread_m": selection("THREAD_M", plain(_PARTS), 4, group="elements of each thread"),
        "thread_n": selection("THREAD_N", plain(_PARTS), 4, group="elements of each thread"),
        "tile_m": selection("TILE_M", plain(_SIDES), 64, group="tiles of a block"),
        "tile_n": selection("TILE_N", plain(_SIDES), 64, group="tiles of a block"),
        "tile_k": selection("TILE_K", plain((4, 8, 16, 32)), 8, group="tiles of a block"),
        "x": selection("x = threadIdx.x % COLS", plain(range(16)), 5, group="the thread that is shown"),
        "y": selection("y = threadIdx.x / COLS", plain(range(16)), 2, group="the thread that is shown"),
        "N": selection("M = N", plain(_SIZES), 1024),
    }
    return Explorer(
        register_tile_view, controls, offer, "Tiles in registers: what they read, hold and leave idle"
    )


def register_tile_view(
    tile_m: int, tile_n: int, tile_k: int, thread_m: int, thread_n: int, x: int, y: int, N: int
) -> View:
    """Draw a block's tile of C with thread (x, y)'s elements; tell its loads, its registers and idle SMs."""
    tile = RegisterTile(tile_m, tile_n, tile_k, thread_m, thread_n)
    thread = y * tile.across + x
    return View(
        (register_tile_picture(tile, thread, N),),
        f"Each multiply-add takes {tile.loads:.4g} loads from shared memory.",
        "\n".join(
            (_thread(tile, thread), _loads(tile), _block(tile), _registers(tile), _blocks(tile, N)),
        ),
        "Point at C to see whose an element is, or at a blue element of A_tile or B_tile.",
    )


def _thread(tile: RegisterTile, thread: int) -> str:
    rows, cols = tile.elements(thread)
    return (
        f"Thread {thread} of the block computes {_listed('row', rows)} and {_listed('column', cols)} of the "
        "block's tile of C."
    )


def _listed(what: str, numbers: np.ndarray) -> str:
    """Write the first two numbers and the last one."""
    shown = [str(number) for number in numbers]
    if len(shown) > 3:
        shown[2:-1] = ["…"]
    return f"{what} {shown[0]}" if len(shown) == 1 else f"{what}s {', '.join(shown)}"


def _loads(tile: RegisterTile) -> str:
    return (
        f"For each k it reads {tile.m} elements of A_tile and {tile.n} of B_tile, and does "
        f"{tile.m} × {tile.n} = {counted(tile.m * tile.n, 'multiply-add')}: {tile.loads:.4g} loads for each. "
        "A thread with a single element needs 2."
    )


def _block(tile: RegisterTile) -> str:
    return (
        f"The block has {tile.threads} threads. Its two tiles take {tile.shared_bytes} bytes of shared "
        f"memory. An element of A from global memory serves {tile.tile_n} columns, one of B {tile.tile_m} "
        f"rows: {tile.sectors:.3g} sectors per multiply-add of a warp."
    )


def _registers(tile: RegisterTile) -> str:
    room = REGISTERS // (tile.registers * tile.threads)
    blocks = "1 block" if room == 1 else f"{room} blocks"
    return (
        f"A thread keeps {tile.m * tile.n} sums and {tile.m} + {tile.n} elements in registers: at least "
        f"{tile.registers}, of 255. Of such blocks the registers of an SM ({REGISTERS}) hold at "
        f"most {blocks}."
    )


def _blocks(tile: RegisterTile, N: int) -> str:
    across, down = tile.grid(N, N)
    rounds, busy = tile.rounds(N, N)
    share = 100 * prod((across, down)) / (rounds * MULTIPROCESSORS)
    taken = "one wave" if rounds == 1 else f"{rounds} waves"
    last = "" if rounds == 1 else " in the last wave"
    return (
        f"For M = N = {N} there are {across} × {down} = {across * down} blocks for the {MULTIPROCESSORS} "
        f"SMs of an H200. If each takes one at a time, that is {taken}, and {busy} have "
        f"work{last}: {share:.0f} % of the machine is in use."
    )
