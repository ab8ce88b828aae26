"""Exercises of 03_shared_memory_tiling: the matrix product through tiles in shared memory."""

import re

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import (
    SOUND,
    Hints,
    Shares,
    few_sectors,
    loads_in,
    no_finding,
    no_finding_in,
    recompiled,
    right_in,
    right_on,
    shared_out,
)
from labkit.course.criteria.launches import Given, Launch, all_of, tiled
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from simt import AnyKernel
from simt.common.errors import CompileError

CUBE, UNEVEN = Matmul(64, 64, 64), Matmul(45, 29, 67)
STATED = 16  # TILE of the cell
FLOATS = 8  # of a sector
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
ONCE = "An element should come from global memory once per block, and from shared memory after that."
MACRO = "Does every 16 of the kernel say TILE?"


def _most_sectors(problem: Matmul, tile: int) -> int:
    """Return the sectors of global loads where each block reads the rows of each tile once."""
    is_aligned = problem.N % FLOATS == problem.K % FLOATS == 0
    row = tile // FLOATS + (not is_aligned)
    blocks_down, blocks_across, rounds = (-(-size // tile) for size in (problem.M, problem.N, problem.K))
    return blocks_down * blocks_across * rounds * 2 * tile * row


@criterion("{text}")
def _sectors(
    kernel: AnyKernel, text: str, *problems: Matmul, tile: int = STATED, rows: int | None = None
) -> None:
    """Limit the sectors of global loads, all lines together; what tiles fit stays so where it is drawn."""
    for stated in problems:
        for problem in fresh_inputs.problems([stated], tile):
            told = f"{problem}, blocks of {tile} x {rows or tile}"
            few_sectors(kernel, tiled(problem, tile, rows), _most_sectors(problem, tile), told, ONCE)


def _with_tile(kernel: AnyKernel, tile: int) -> AnyKernel:
    try:
        return recompiled(kernel, TILE=tile)
    except CompileError as error:
        raise Unmet(f"With TILE={tile} the cell does not compile:\n{error.log}") from None


@criterion("right with -D TILE={tiles}")
def _any_tile(kernel: AnyKernel, *tiles: int) -> None:
    for tile in fresh_inputs.further(tiles, lambda rng, _: int(rng.integers(1, LARGEST, endpoint=True)), 2):
        right = right_on("", CUBE, Matmul(33, 20, 45), tile=tile, hints=RAGGED if tile == STATED else OF_TILE)
        right.test(_with_tile(kernel, tile))


@criterion(SOUND)
def _sound_with_tile(kernel: AnyKernel, *tiles: int) -> None:
    """Ask for no finding also where a block is no more than one warp, which needs its barriers, too."""
    for tile in tiles:
        no_finding(Matmul(29, 20, 35), tile=tile, hints=RAGGED).test(_with_tile(kernel, tile))


@criterion("twice the TILE, half the sectors of global loads")
def _traffic_by_tile(kernel: AnyKernel, *tiles: int) -> None:
    """Ask for the best that tiles can do: A and B are read once for each tile's side of C."""
    for tile in tiles:
        _sectors("", CUBE, UNEVEN, tile=tile).test(_with_tile(kernel, tile))


@criterion("-D TILE={tile} does not compile: a static_assert says why")
def _refuses(kernel: AnyKernel, tile: int) -> None:
    further = fresh_inputs.further([tile], lambda rng, least: int(rng.integers(least + 1, 2 * least)))
    for larger in (*further, 2 * LARGEST):
        try:
            recompiled(kernel, TILE=larger)
        except CompileError as error:
            told = re.search(r"static assertion failed(.*)", error.log)
            if told is None:
                raise Unmet(f"With TILE={larger} something else fails:\n{error.log}\n{ASSERT}") from None
            if not re.search(r"\w", told[1].removeprefix(" with")):
                raise Unmet(
                    f"With TILE={larger} the static_assert fails without a message:\n{error.log}\n{ASSERT}"
                ) from None
        else:
            raise Unmet(
                f"With TILE={larger} the cell compiles, and its launch fails: a block holds at most 1024 "
                f"threads.\n{ASSERT}"
            )


OF_TILE = Hints(MACRO, MACRO, MACRO, MACRO, MACRO, sync=MACRO)  # the kernel is right with STATED
FEW = Matmul(32, 32, 32)  # four blocks: what each warp and each block does of it is counted
SHARES = Shares(lambda _: tiled(FEW))
FITTING = Hints(PLACES, PLACES, BARRIERS)
RAGGED = Hints(PLACES, PLACES, BARRIERS, edges=EDGE, sync=EDGE, guard=GUARD)

# 03.4: A times B transposed, with tiles of 16 x 16.


def _by_rows(M: int, N: int, K: int) -> Launch:
    """Make a launch of matmul_bt(A, BT, C, M, N, K): C = A times BT transposed; BT has N rows."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        a, bt = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((M, K), (N, K)))
        return a, bt, a @ bt.T  # whole numbers: every order of adding gives the same

    given = Given(f"M={M} N={N} K={K}", make, (M, N, K), M + N + K)
    return Launch(given, (-(-N // STATED), -(-M // STATED)), (STATED, STATED))


BY_ROWS = (
    "Element (i, j) of C is row i of A times row j of BT: both are read along k. Row j of BT begins at index "
    "j * K."
)
BROUGHT = (
    "The block needs 16 rows of BT. Thread (x, y) brings BT[blockIdx.x * 16 + y, k0 + x] to row y of its "
    "tile, and adds up with row x of that tile."
)
BT_GUARD = (
    "The row of BT that a thread brings is not the thread's column of C: compare it with N, and k0 + x with "
    "K."
)
OF_BT = Hints(f"{BY_ROWS} {BROUGHT}", BY_ROWS, BARRIERS, edges=EDGE, sync=EDGE, guard=BT_GUARD)


@criterion("global loads of few sectors: neighbours along x bring neighbours of a row of A and of BT")
def _along_rows(kernel: AnyKernel) -> None:
    for size in fresh_inputs.sizes([(64, 64, 64), (45, 29, 67)], STATED):
        M, N, K = size
        row = STATED // FLOATS + (K % FLOATS > 0)
        blocks = -(-M // STATED) * -(-N // STATED)
        most = blocks * -(-K // STATED) * 2 * STATED * row
        few_sectors(kernel, _by_rows(*size), most, f"M={M} N={N} K={K}", f"{ONCE} {BROUGHT}")


# 03.5: two elements of C per thread: blocks of 16 x 8 threads, tiles of 16 x 16.

HALF = {"tile": STATED, "rows": STATED // 2}
LOADED = CUBE.M * CUBE.N * CUBE.K // 32  # multiply-adds of a warp
TWO_ROWS = (
    "Thread (x, y) has the elements of C in rows y and y + 8 of the tile, with a sum of its own for each. It "
    "brings two elements of each tile: those of rows y and y + 8."
)
KEPT = (
    "For one k the two sums need two elements of A_tile and one of B_tile: load that one into a variable and "
    "use it twice."
)
OF_TWO = Hints(TWO_ROWS, TWO_ROWS, BARRIERS, edges=EDGE, sync=EDGE, guard=GUARD, untouched=TWO_ROWS)

EXERCISES = (
    Exercise("03.1", "The tiled product", 4, given=3).asks(
        shared_out(right_on("right for square matrices", Matmul(16, 16, 16), CUBE, hints=FITTING), SHARES),
        right_on("right where M, N and K differ", Matmul(32, 48, 64), Matmul(64, 16, 32), hints=FITTING),
        no_finding(Matmul(32, 16, 48), Matmul(16, 32, 80), CUBE, hints=FITTING),
        _sectors("global loads of at most 4096 sectors for M = N = K = 64", CUBE),
    ),
    Exercise("03.2", "Tiles that stick out", 3, given=1).asks(
        shared_out(right_on("right where the tiles fit", CUBE, hints=FITTING), SHARES),
        right_on("right where they stick out over C: M = 45, N = 29", Matmul(45, 29, 64), hints=RAGGED),
        right_on("right where they stick out along K: K = 67", Matmul(64, 64, 67), hints=RAGGED),
        right_on(
            "right for any shape, 1 to 67",
            *(Matmul(*size) for size in ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67))),
            hints=RAGGED,
        ),
        no_finding(Matmul(29, 20, 35), Matmul(20, 29, 51), CUBE, hints=RAGGED),
        _sectors("global loads of few sectors, where tiles fit and where they stick out", CUBE, UNEVEN),
    ),
    Exercise("03.3", "One kernel for every tile", 3, practice=True).asks(
        _any_tile(16, 4, 8, 32, 1, 5, 12),
        _sound_with_tile(STATED, 4),
        _traffic_by_tile(8, 16, 32),
        _refuses(33),
    ),
    Exercise("03.4", "A times B transposed", 3, given=3, practice=True).asks(
        shared_out(
            right_in(
                "right where the tiles fit", all_of(_by_rows, (16, 16, 16), (64, 32, 48), whole=STATED), OF_BT
            ),
            Shares(lambda _: _by_rows(*FEW.sizes.values())),
        ),
        right_in(
            "right for any shape, 1 to 67",
            all_of(_by_rows, (1, 1, 1), (31, 33, 5), (45, 29, 67), (20, 50, 33)),
            OF_BT,
        ),
        no_finding_in(SOUND, all_of(_by_rows, (29, 20, 35), (20, 29, 51)), OF_BT),
        _along_rows(),
    ),
    Exercise("03.5", "Two elements per thread", 4, practice=True).asks(
        shared_out(
            right_on("right where the tiles fit", Matmul(16, 16, 16), CUBE, **HALF, hints=OF_TWO),
            Shares(lambda _: tiled(FEW, **HALF)),
        ),
        right_on(
            "right for any shape, 1 to 67",
            *(Matmul(*size) for size in ((1, 1, 1), (31, 33, 5), (45, 29, 67), (9, 40, 20))),
            **HALF,
            hints=OF_TWO,
        ),
        no_finding(Matmul(29, 20, 35), Matmul(20, 29, 51), **HALF, hints=OF_TWO),
        _sectors("global loads of at most 4096 sectors for M = N = K = 64", CUBE, rows=HALF["rows"]),
        loads_in(
            3 * LOADED // 2,
            f"at most {3 * LOADED // 2:,} requests to load from shared memory for M = N = K = 64: three for "
            "two multiply-adds",
            lambda *size: tiled(Matmul(*size), **HALF),
            (64, 64, 64),
            whole=STATED,
            spaces=("shared",),
            hint=KEPT,
        ),
    ),
)
