"""Exercises of 03_shared_memory_tiling: the matrix product through tiles in shared memory."""

import re

from labkit.core.errors import CompileError
from labkit.course.criteria.kernels import Hints, few_sectors, no_finding, recompiled, right_on
from labkit.course.criteria.launches import tiled
from labkit.course.drawn import further
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.simt import AnyKernel

CUBE = Matmul(64, 64, 64)
STATED = 16  # TILE of the cell
LARGEST = 32  # TILE of a block that a GPU takes
BARRIERS = (
    "Between the stores to the tiles and the reads from them must stand a __syncthreads(), and another "
    "between those reads and the stores of the next round."
)
PLACES = "In the round of k0, thread (x, y) brings A[row, k0 + x] and B[k0 + y, col]."
EDGE = (
    "Every thread of the block goes through all rounds and brings its elements, also one without an element "
    "of C; what lies past the edge of A or B is 0 in the tile."
)
GUARD = "Compare each index with the size that bounds it: the row of A with M, its column with K, and so on."
ASSERT = 'Put a static_assert(condition, "what to do instead") above the kernel.'
ONCE = "An element should come from global memory once a block, and from shared memory after that."
MACRO = "Does every 16 of the kernel say TILE?"


@criterion("global loads of at most {most} sectors for M = N = K = 64")
def _sectors(kernel: AnyKernel, most: int, tile: int = 16) -> None:
    """Limit the sectors of global loads, all lines together, for CUBE."""
    few_sectors(kernel, tiled(CUBE, tile), most, f"{CUBE}, blocks of {tile} x {tile}", ONCE)


def _with_tile(kernel: AnyKernel, tile: int) -> AnyKernel:
    try:
        return recompiled(kernel, TILE=tile)
    except CompileError as error:
        raise Unmet(f"With TILE={tile} the cell does not compile:\n{error.log}") from None


@criterion("right with -D TILE={tiles}")
def _any_tile(kernel: AnyKernel, *tiles: int) -> None:
    for tile in further(tiles, lambda rng, _: int(rng.integers(1, LARGEST, endpoint=True)), 2):
        right = right_on("", CUBE, Matmul(33, 20, 45), tile=tile, hints=RAGGED if tile == STATED else OF_TILE)
        right.test(_with_tile(kernel, tile))


@criterion("twice the TILE, half the sectors of global loads")
def _traffic_by_tile(kernel: AnyKernel, *tiles: int) -> None:
    """Ask for the best that tiles can do: A and B are read once for each tile's side of C."""
    for tile in tiles:
        most = 2 * CUBE.M * CUBE.K * (CUBE.N // tile) * 4 // 32
        _sectors(most, tile).test(_with_tile(kernel, tile))


@criterion("-D TILE={tile} does not compile: a static_assert says why")
def _refuses(kernel: AnyKernel, tile: int) -> None:
    for each in further([tile], lambda rng, least: int(rng.integers(least + 1, 2 * least))):
        try:
            recompiled(kernel, TILE=each)
        except CompileError as error:
            told = re.search(r"static assertion failed(.*)", error.log)
            if told is None:
                raise Unmet(f"With TILE={each} something else fails:\n{error.log}\n{ASSERT}") from None
            if not re.search(r"\w", told[1].removeprefix(" with")):
                raise Unmet(
                    f"With TILE={each} the static_assert fails without a message:\n{error.log}\n{ASSERT}"
                ) from None
        else:
            raise Unmet(
                f"With TILE={each} the cell compiles, and its launch fails: a block holds at most 1024 "
                f"threads.\n{ASSERT}"
            )


OF_TILE = Hints(MACRO, MACRO, MACRO, MACRO, MACRO, sync=MACRO)  # the kernel is right with STATED
FITTING = Hints(PLACES, PLACES, BARRIERS)
RAGGED = Hints(PLACES, PLACES, BARRIERS, edges=EDGE, sync=EDGE, guard=GUARD)

EXERCISES = (
    Exercise("03.1", "The tiled product", 4, given=3).asks(
        right_on("right for square matrices", Matmul(16, 16, 16), CUBE, hints=FITTING),
        right_on("right where M, N and K differ", Matmul(32, 48, 64), Matmul(64, 16, 32), hints=FITTING),
        no_finding(Matmul(32, 16, 48), Matmul(16, 32, 80), CUBE, hints=FITTING),
        _sectors(4096),
    ),
    Exercise("03.2", "Tiles that stick out", 3, given=1).asks(
        right_on("right where the tiles fit", CUBE, hints=FITTING),
        right_on("right where they stick out over C: M = 45, N = 29", Matmul(45, 29, 64), hints=RAGGED),
        right_on("right where they stick out along K: K = 67", Matmul(64, 64, 67), hints=RAGGED),
        right_on(
            "right for any shape, 1 to 67",
            *(Matmul(*size) for size in ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67))),
            hints=RAGGED,
        ),
        no_finding(Matmul(29, 20, 35), Matmul(20, 29, 51), CUBE, hints=RAGGED),
        _sectors(4096),
    ),
    Exercise("03.3", "One kernel for every tile", 3).asks(
        _any_tile(16, 4, 8, 32, 1, 5, 12),
        no_finding(Matmul(29, 20, 35), hints=RAGGED),
        _traffic_by_tile(8, 16, 32),
        _refuses(33),
    ),
)
