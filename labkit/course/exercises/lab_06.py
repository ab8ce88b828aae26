"""Exercises of 06_unrolling: several rows per thread, an unrolled loop, one guard per block, early loads."""

from dataclasses import replace

import numpy as np
import pandas as pd

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import (
    SOUND,
    Hints,
    Shares,
    missed,
    no_finding,
    no_finding_in,
    profiled,
    recompiled,
    right_in,
    right_on,
    shared_out,
)
from labkit.course.criteria.launches import Given, Launch, all_of, tiled
from labkit.course.criteria.predicted import Large, limited_by
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.transpose.family import Transpose
from labkit.model.sampled import Contents
from simt import AnyKernel, Profile
from simt.counters.profile import loads, stores

TILE, ROWS = 32, 8  # of the transposes: a block has TILE x ROWS threads
WIDE = Transpose(64, 96)
CUBE, SIDE = Matmul(64, 64, 64), 16
RAGGED = Matmul(64, 64, 65)  # one step is left for the last round
FEW_BRANCHES = 8  # of a warp in a round of k0, where two guards, the loop and what is before and after take 4

ROWS_OF = (
    "A block of 32 x 8 threads covers a tile of 32 x 32. Thread (x, y) moves rows y, y + 8, y + 16 and "
    "y + 24 of the tile, both when it is filled and when it is written out. in has rows rows of cols "
    "elements, out has cols rows of rows elements."
)
PLACES = (
    "Each element of out is the work of one thread alone. Block (x, y) writes rows x * 32 to x * 32 + 31 and "
    "columns y * 32 to y * 32 + 31 of out."
)
EACH_ROW = (
    "Each of the four rows needs its own guard: row + i against rows when the tile is filled, out_row + i "
    "against cols when it is written, and the column for both."
)
BARRIER = (
    "The loads from the tile want what other threads have stored, in all four rows: one __syncthreads() "
    "between the two loops, which every thread of the block reaches."
)
ALONG = (
    "Neighbouring lanes should stand on neighbouring elements of a row, of in and of out: the turn is in the "
    "tile."
)
PADDED = "A tile whose rows are one element longer than 32 has the elements of a column in 32 banks."
TURNS = (
    "Let all 32 lanes of a warp store at once, and load at once: a request with few lanes is a pass wasted."
)
ZEROS = (
    "What lies past the edge of A or B is 0 in the tile. So a round may always take TILE steps: the last "
    "ones add zeros."
)
ANY = "TILE may be any number: {tile} is a multiple of neither 2 nor 4."
MACRO = "Does the kernel count with TILE alone? The cell is compiled again with other values."
SHARED = "Let each element come from global memory once per block, through the tiles, as in notebook 03."
KNOWN = (
    "The compiler writes a loop out where it knows the number of steps when it compiles: from a constant to "
    "a constant, with nothing in between that ends it early."
)
EACH_STEP = (
    "Written out with a question in each step is hardly better. Let every step do the same, whatever k0 is; "
    "zeros in the tiles cost nothing more."
)
WHOLE = (
    "A block is whole if its last row and its last column still lie inside: then none of its threads needs a "
    "guard, for in or for out. blockIdx says so for all threads of the block alike. If guards are asked even "
    "then, write both versions down: if (whole) { ... } else { ... }."
)
BOTH_WAYS = (
    "Compare the end of the block's rows with rows and that of its columns with cols. A block that only just "
    "fits is whole, too."
)

NOT_WHOLE = "In a block that is not whole each of the four rows keeps its own guard, as in 06.1."

# 06.4: four loads per thread, none of which waits for a store.

PER_BLOCK, THREADS = 1024, 256  # elements and threads of a block
LARGE = 1 << 24  # elements for which the time is predicted
LARGER = tuple(LARGE + part * LARGE // 16 for part in range(1, 5))
FOUR_EACH = Hints(
    "Thread t of a block doubles elements t, t + 256, t + 512 and t + 768 of its 1024.",
    "Compare each of the four indices with n.",
)
EARLY = (
    "in and out may be the same memory, for all that the compiler knows: then a store can change what the "
    "next load reads, and no load may move ahead of it. Load all four elements into registers before the "
    "first store, or declare with __restrict__ that the arrays do not overlap."
)


def _doubled(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.integers(-1000, 1000, n).astype(np.float32)
        return x, 2 * x

    return Launch(Given(f"n={n}", make, (n,), n), (-(-n // PER_BLOCK),), (THREADS,))


def _doubled_in(large: int) -> Large:
    """Make the launch of so many elements whose time is predicted."""
    x = Contents((large,), fresh_inputs.fresh(0, "doubled"), 1, 1000, whole=True)
    args = x, Contents((large,)), np.int32(large)
    return Large(f"n={large}", (large // PER_BLOCK,), (THREADS,), args, lambda places: (2 * x.at(places), 0))


@criterion("each sector of in is loaded once, each of out stored once")
def _each_once(kernel: AnyKernel) -> None:
    ((n,),) = fresh_inputs.instead([(1 << 14,)], PER_BLOCK)
    launch, most = _doubled(n), n * 4 // 32
    lines = profiled(kernel, launch).lines
    for what, own in (("loads", loads(lines, "global")), ("stores", stores(lines, "global"))):
        if own.sectors.sum() > most:
            found = f"{launch}\n{own.sectors.sum()} sectors of global {what}"
            counts = (f"{count} sectors" for count in own.sectors)
            raise missed(found, f"at most {most}", own, counts, ALONG_N)


ALONG_N = "Neighbouring lanes should load neighbouring elements, and store them."


def _turned(inside: Hints, edges: Hints) -> tuple[Criterion, ...]:
    """Ask for right results for the right reason, launched with 32 x 8 threads."""
    return (
        shared_out(
            right_on(
                "right where the tiles fit, with blocks of 32 x 8",
                *(Transpose(32, 32), WIDE, Transpose(128, 96)),
                tile=TILE,
                rows=ROWS,
                hints=inside,
            ),
            Shares(lambda _: tiled(Transpose(64, 64), TILE, ROWS)),
        ),
        right_on(
            "right where they stick out, 1 to 100 rows and columns",
            *(Transpose(*size) for size in ((1, 1), (31, 33), (45, 67), (63, 64), (64, 63), (100, 20))),
            tile=TILE,
            rows=ROWS,
            hints=edges,
        ),
        no_finding(Transpose(45, 67), Transpose(70, 33), tile=TILE, rows=ROWS, hints=edges),
    )


@criterion(
    f"{WIDE.rows * WIDE.cols * 4 // 32} sectors each of global loads and stores for 64 x 96, no bank conflict"
)
def _moved_once(kernel: AnyKernel) -> None:
    """Ask for each sector of in and out once, and no bank conflict, in whole warps."""
    problem = fresh_inputs.problem_instead(WIDE, TILE)
    sectors, passes = _sectors(problem), _passes(problem)
    lines = profiled(kernel, tiled(problem, TILE, ROWS)).lines
    shared = lines[lines.space == "shared"]
    for what, own in (("loads", loads(lines, "global")), ("stores", stores(lines, "global"))):
        _at_most(problem, own, "sectors", sectors, f"sectors of global {what}", ALONG)
    _at_most(problem, shared, "conflicts", 0, "bank conflicts", PADDED)
    _at_most(problem, shared, "passes", passes, "passes over the banks", TURNS)


def _sectors(problem: Transpose) -> int:
    """Return the sectors of one matrix."""
    return problem.rows * problem.cols * 4 // 32


def _passes(problem: Transpose) -> int:
    """Return twice the passes of a store and a load per element, by whole warps."""
    return 2 * (2 * problem.rows * problem.cols // 32)


def _at_most(problem: Transpose, lines: pd.DataFrame, what: str, most: int, named: str, hint: str) -> None:
    """Raise Unmet where the lines together have more than `most` of column `what`."""
    if lines[what].sum() > most:
        found = f"{problem}\n{lines[what].sum()} {named}"
        raise missed(found, f"at most {most}", lines, map(str, lines[what]), hint)


@criterion("{text}")
def _few_instructions(
    kernel: AnyKernel, text: str, most: int, *stated: Transpose, all_whole: bool = False
) -> None:
    """Limit the PTX instructions per element; where blocks are whole, also for matrices that are drawn."""
    for problem in fresh_inputs.problems(stated, TILE) if all_whole else map(_mostly_whole, stated):
        profile = profiled(kernel, tiled(problem, TILE, ROWS))
        elements = problem.rows * problem.cols / 32  # as a warp's instruction is for 32
        count = profile.ptx["instructions"] / elements
        if count > most:
            lines = profile.ptx_lines.nlargest(4, "instructions").sort_values("line")
            costs = (f"{number:.3g}" for number in lines.instructions / elements)
            found = f"{problem}\n{count:.4g} PTX instructions per element"
            raise missed(found, f"at most {most}", lines, costs, f"{WHOLE}\n{BOTH_WAYS}")


def _mostly_whole(stated: Transpose) -> Transpose:
    """Return the problem; inside `drawn` a larger one in its place, of which as large a part is whole."""
    rng = fresh_inputs.generator("mostly whole", stated)
    more = (0, 0) if rng is None else rng.integers(1, 4, 2)
    return Transpose(stated.rows + TILE * int(more[0]), stated.cols + TILE * int(more[1]))


@criterion("global loads of at most {most} sectors for M = N = K = 64")
def _few_sectors(kernel: AnyKernel, most: int) -> None:
    """Ask that shared memory is used, with as much traffic as in 03.1."""
    problem = fresh_inputs.problem_instead(CUBE, SIDE)
    most = most * problem.flops // CUBE.flops
    sectors = loads(profiled(kernel, tiled(problem, SIDE)).lines, "global").sectors.sum()
    if sectors > most:
        raise Unmet(f"{problem}\n{sectors} sectors of global loads; the goal is at most {most}\n{SHARED}")


@criterion("{text}")
def _written_out(kernel: AnyKernel, tile: int, text: str) -> None:
    """Ask that no branch runs for each multiply-add, neither one that jumps back nor one that asks."""
    kernel = recompiled(kernel, TILE=tile)
    # A run that is counted spares one that is not.
    profiled(kernel, tiled(Matmul(33, 20, 45), tile), MACRO)
    for problem in (fresh_inputs.problem_instead(CUBE, TILE), _one_step_more()):
        _no_loop_left(profiled(kernel, tiled(problem, tile), MACRO), problem, tile)


@criterion("right with -D TILE={tile}")
def _right_with(kernel: AnyKernel, tile: int) -> None:
    """Ask for a right result with another tile, such as one that 2 and 4 do not divide."""
    try:
        profiled(recompiled(kernel, TILE=tile), tiled(Matmul(33, 20, 46), tile), MACRO)
    except Unmet as unmet:
        raise Unmet(f"{unmet}\n{ANY.format(tile=tile)}") from None


def _one_step_more() -> Matmul:
    """Return RAGGED; inside `drawn` another that leaves one step for the last round."""
    whole = fresh_inputs.problem_instead(replace(RAGGED, K=RAGGED.K - 1), TILE)
    return replace(whole, K=whole.K + 1)


def _no_loop_left(profile: Profile, problem: Matmul, tile: int) -> None:
    """Raise Unmet where a branch runs for each multiply-add."""
    warp_rounds = (problem.M // tile) * (problem.N // tile) * -(-problem.K // tile) * (tile * tile // 32)
    branches = [site for site in profile.sites if site.branches]
    worst = max(branches, key=lambda site: site.branches, default=None)
    if worst and worst.branches > 1.5 * warp_rounds:  # a loop may ask once more than it runs
        raise Unmet(
            f"{problem}, TILE = {tile}\na branch of line {worst.line} runs "
            f"{worst.branches / warp_rounds:.3g} times in a round of k0; the goal is once: there is a "
            f"loop left\n{worst.line:>5} | {profile.source_line(worst.line).strip()}\n{KNOWN}"
        )
    count = sum(site.branches for site in branches) / warp_rounds
    if count > FEW_BRANCHES:
        raise Unmet(
            f"{problem}, TILE = {tile}\na warp comes to {count:.3g} branches in a round of k0; the goal is "
            f"at most {FEW_BRANCHES}\n{EACH_STEP}"
        )


FITTING, EDGES = Hints(ROWS_OF, ROWS_OF, BARRIER, PLACES), Hints(EACH_ROW, EACH_ROW, BARRIER, PLACES)
INNER = Hints(
    out_of_bounds="Guard the loads as in 03.2.", race="Two barriers per round, as in 03.1.", edges=ZEROS
)
PAST = Hints(WHOLE, f"{BOTH_WAYS} {NOT_WHOLE}", BARRIER, PLACES)

EXERCISES = (
    Exercise("06.1", "Four rows per thread", 3).asks(
        *_turned(FITTING, EDGES),
        _moved_once(),
    ),
    Exercise("06.2", "A loop of known length", 3, given=3).asks(
        right_on(
            "right for any shape, with blocks of 16 x 16",
            *(Matmul(*size) for size in ((16, 16, 16), (32, 48, 64), (1, 1, 1), (33, 33, 33), (45, 29, 67))),
            hints=INNER,
        ),
        no_finding(Matmul(29, 20, 35), hints=INNER),
        _few_sectors(4096),
        _written_out(16, "no branch for each multiply-add, at PTX level"),
        _written_out(32, "the same with -D TILE=32: right, and no branch for each multiply-add"),
        _right_with(15),
    ),
    Exercise("06.3", "One guard for a whole block", 3, given=4, practice=True).asks(
        *_turned(FITTING, PAST),
        _moved_once(),
        _few_instructions(
            "at most 18 instructions per element for 128 x 96 and 64 x 160, at PTX level",
            18,
            *(Transpose(128, 96), Transpose(64, 160)),
            all_whole=True,
        ),
        _few_instructions(
            "at most 25 for 200 x 300, where most blocks are whole, at PTX level",
            25,
            Transpose(200, 300),
        ),
    ),
    Exercise("06.4", "Loads before stores", 2, given=3).asks(
        right_in("right for 1 to 5000 elements", all_of(_doubled, 1, 255, 1024, 5000), FOUR_EACH),
        no_finding_in(SOUND, all_of(_doubled, 1500), FOUR_EACH),
        _each_once(),
        limited_by(
            "predicted for an H200: for 2^24 elements the device memory is the lowest limit",
            "DRAM",
            lambda: _doubled_in(fresh_inputs.one_of(LARGE, LARGER)),
            EARLY,
        ),
    ),
)
