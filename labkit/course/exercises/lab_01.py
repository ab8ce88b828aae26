"""Exercises of 01_cpu_baseline: the matrix product in C, with SIMD, in blocks, with independent sums."""

import math
import re

from labkit import cpu
from labkit.c.function import CFunction
from labkit.course.criteria.c_functions import (
    ANY_SHAPE,
    YOURS,
    faster_in_c,
    fastest,
    fetched,
    named,
    right_in_c,
    rung_beside,
)
from labkit.course.criteria.kernels import Hints
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from simt.common.errors import CompileError

SIMD = Hints(
    "A vector of sums holds C[i, j] to C[i, j + 7]: each step of k adds A[i, k] times B[k, j] to "
    "B[k, j + 7], and the sums begin at 0.",
    "A vector at column j takes columns j to j + 7, and all of them must be < N. The fewer than 8 columns "
    "that are left at the end of a row are done one by one.",
)
ALL_BLOCKS = (
    "Nothing is written there. Do the loops over blocks begin a block that is not full, too, and does i end "
    "at M and j at N?"
)
BLOCKS = Hints(
    "Each element of C gets all K terms, once: the loops over blocks go in steps of BLOCK and those inside "
    "end at the next block or at the edge, whichever comes first. The first term replaces what is in C.",
    "A loop runs over the edge: i ends at M, j at N, k at K.",
    untouched=ALL_BLOCKS,
)
LIMITS = Hints(
    "i counts rows of A and C (M), j columns of B and C (N), k columns of A and rows of B (K). Which limit "
    "takes the wrong one? A square matrix does not tell.",
    "The last block is not full: a loop from j0 ends at j0 + BLOCK or at N, whichever comes first. Which of "
    "the three loops runs past its size?",
    untouched=ALL_BLOCKS,
)
INSIDE = Hints(  # where blocks fit, an index takes the wrong size
    LIMITS.usual,
    "Row i of A begins at i * K, row k of B at k * N, row i of C at i * N; and i ends at M, j at N, k at K. "
    "Which index or limit takes another size? A square matrix does not tell.",
)
SEVERAL = Hints(
    f"{SIMD.usual} Each of the vectors has its own columns or its own row.",
    "Several vectors take as many columns (or rows) at once: all of them must be < N (or < M). What is left "
    "is for the loop with one vector, and then for single columns.",
)

RUNG, OTHERS = "cpu_avx_blocked", (32, 64, 128, 256)
SLACK = 128  # bytes: a few variables
LINE, ROW, MORE = 64, 16, 8  # bytes and floats of a cache line; lines that a cache may have on top
# B has 256 KiB. A time with larger matrices is that of memory, for which all that runs on a machine competes.
SMALL = Matmul(128, 256, 256)
# Here a column of B does not push itself out of the first cache, so that vectors of other rows help as well.
UNEVEN = Matmul(128, 264, 256)
L2_BYTES = 256 * 2**10  # where the system does not tell
TIMES = 2
WRITTEN = ", with SIMD that you write"
_STEP = re.compile(r"\b(\w+)\s*(?:\+=|=\s*\w+\s*\+)\s*BLOCK\b")  # loops that go in steps of BLOCK
NO_BLOCK = "Keep the name BLOCK, with the number of rows and columns of a block: the check asks for it."
TOO_SMALL = (
    "So small a block is used up after a few steps, and C is loaded and stored for each. Try a larger one."
)
TOO_LARGE = (
    "It may fit, and yet: the cache has only a few places for lines whose addresses differ by a power of "
    "two, as those of a column of B do here, and the first cache is smaller still. Try a smaller one."
)
# What working_set() leaves out, or counts and should not.
OF_B = (
    "The loops over i, j and k go through BLOCK rows of B again for each i, BLOCK floats of each row. A "
    "float has 4 bytes. The parts of a row of A and of C come on top."
)
OF_A_AND_C = (
    "That is too little for BLOCK rows of B with BLOCK floats each, and for the parts of a row of A and of a "
    "row of C that go with them: BLOCK floats of each. A float has 4 bytes."
)
ALL_OF_IT = (
    "That is more than a block each of A, B and C. Count only what one round of the loops over i, j and k "
    "uses again and again; a float has 4 bytes."
)
USED_ONCE = (
    "That is more than the block of B and a part of one row of A and of C. The next i takes other rows of A "
    "and C, and so has no use for these again. A float has 4 bytes."
)
NO_NUMBER = "working_set() returns no number. Declare it as long working_set(void)."
NOT_AGAIN = (
    "they do not use again what is counted. Do the loops over j and over k both stay within a block while "
    "i goes on?"
)


@criterion("working_set() counts what the loops over i, j and k use again and again")
def _working_set(function: CFunction) -> None:
    """Ask that `working_set()` counts a block of B and parts of a row of A and of C.

    It may count a block of each where the loop over i goes through blocks, too.
    """
    block, counted = _block(function), _counted(function)
    one, three = 4 * (block * block + 2 * block), 12 * block * block
    in_blocks = len(set(_STEP.findall(function.source))) > 2
    if any(right <= counted <= right + SLACK for right in ((one, three) if in_blocks else (one,))):
        return _stays(function, block, counted)
    if counted < one:
        why = OF_B if counted < 4 * block * block else OF_A_AND_C
    else:
        why = ALL_OF_IT if counted > three + SLACK else USED_ONCE
    raise Unmet(f"working_set() returns {counted:,} with BLOCK = {block}.\n{why}")


@criterion("it fits in the second cache of this machine")
def _fits(function: CFunction) -> None:
    counted, cache = _counted(function), cpu.caches().get("L2", L2_BYTES)
    if counted > cache:
        raise Unmet(
            f"working_set() returns {counted:,} bytes; the second cache (L2) here holds {cache:,}.\n"
            "What does not fit has gone from the cache when the next row of C wants it again. "
            "Half the BLOCK takes a quarter of the bytes."
        )


@criterion(f"at most {TIMES} times as slow as {RUNG} with the best BLOCK of this machine")
def _best_block(function: CFunction) -> None:
    """Ask that the answer is not much slower than a rung with the best of OTHERS.

    The goal is this machine's own, and nothing of the answer has a part in it.
    """
    block, matmul = _block(function), named(function, "matmul")
    rungs = {f"BLOCK = {each}": rung_beside(function, RUNG, f"-DBLOCK={each}") for each in OTHERS}
    times = fastest(
        {YOURS: matmul, **rungs}, SMALL, lambda times: times[YOURS] <= TIMES * min(times.values())
    )
    best = min(rungs, key=times.__getitem__)
    if times[YOURS] <= TIMES * times[best]:
        return
    hint = TOO_SMALL if block < OTHERS[list(rungs).index(best)] else TOO_LARGE
    raise Unmet(
        f"{SMALL}: {times[YOURS]:.3g} ms with your loops and BLOCK = {block}, {times[best]:.3g} ms with "
        f"{RUNG} and {best}\n{hint}"
    )


def _stays(function: CFunction, block: int, counted: int) -> None:
    """Ask that a cache with what is counted keeps a block of B from one row of C to the next."""
    M, side = 6, ROW * -(-block * 3 // (2 * ROW))
    # On top: the next row's parts of A and C; and where blocks do not end with cache lines, a line per row.
    more = MORE + block // 4 + (block if block % ROW else 0)
    fetches = fetched(named(function, "matmul"), Matmul(M, side, side), counted // LINE + more)
    if fetches.of_b > M / 2 * fetches.lines_of_b:
        raise Unmet(
            f"For N = K = {side}, B has {fetches.lines_of_b:,} cache lines. With a cache of {counted:,} "
            f"bytes, which working_set() returns, your loops fetch {fetches.of_b:,} for {M} rows of C: "
            f"{NOT_AGAIN}"
        )


def _counted(function: CFunction) -> int:
    counted = named(function, "working_set")()
    if not isinstance(counted, int | float) or not math.isfinite(counted):
        raise Unmet(NO_NUMBER)
    return int(counted)


def _block(function: CFunction) -> int:
    """Return BLOCK, as the compiler sees it."""
    try:
        block = int(named(function, "labkit_block", "\nlong labkit_block(void) { return BLOCK; }\n")())
    except CompileError:
        raise Unmet(NO_BLOCK) from None
    if block < 1:
        raise Unmet(f"BLOCK is {block}. A block has at least one row and column.")
    return block


def _any_shape(hints: Hints) -> Criterion:
    return right_in_c("right for any shape, and nothing outside the arrays", *ANY_SHAPE, hints=hints)


EXERCISES = (
    Exercise("01.1", "Eight at a time", 2, magic="c", given=2).asks(
        right_in_c("right where N is a multiple of 8", (8, 8, 8), (64, 64, 64), (5, 24, 7), hints=SIMD),
        _any_shape(SIMD),
        faster_in_c(
            3,
            "cpu_naive",
            "the three loops",
            SMALL,
            hint="One element of C at a time leaves seven eighths of a SIMD instruction unused. Are "
            "there 8 neighbours of a row of C in one vector, which stays in a variable while k runs?",
            simd=WRITTEN,
        ),
    ),
    Exercise("01.2", "Choose a block", 3, magic="c", given=1).asks(
        _any_shape(BLOCKS),
        _working_set(),
        _fits(),
        # What blocks gain over none depends on the machine: on some it is nothing.
        faster_in_c(
            0.4,
            "cpu_avx",
            "the SIMD loop without blocks",
            SMALL,
            hint="A vector of 8 sums stays in a variable while k runs through a block. Is it still a "
            "vector, and is the block large enough that it is seldom loaded and stored?",
        ),
        _best_block(),
    ),
    Exercise("01.3", "The edge of a block", 3, magic="c", given=1).asks(
        right_in_c(
            "right for square matrices that the blocks fill", (32, 32, 32), (64, 64, 64), hints=BLOCKS
        ),
        right_in_c(
            "right where M, N and K differ, multiples of 32",
            (64, 96, 32),
            (32, 64, 96),
            (96, 32, 64),
            hints=INSIDE,
        ),
        _any_shape(LIMITS),
    ),
    Exercise("01.4", "Sums that do not wait", 4, magic="c", given=2).asks(
        right_in_c("right where 32 divides M and N", (32, 32, 32), (64, 96, 40), hints=SEVERAL),
        _any_shape(SEVERAL),
        faster_in_c(
            1.5,
            "cpu_avx",
            "the SIMD loop with one vector of sums",
            UNEVEN,
            hint="A multiply-add takes about 4 cycles, and the next one for the same sums waits for it. "
            "In the loop over k there must be several vectors of sums, each in a variable of its own, "
            "that do not need each other.",
            simd=WRITTEN,
        ),
    ),
)
