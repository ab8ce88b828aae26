"""Exercises of 07_roofline_and_occupancy: rates, bytes, warps on an SM, room for more, the lowest limit."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import isclose, prod
from typing import Any

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import Hints, global_loads, missed, no_finding, profiled, right_on
from labkit.course.criteria.launches import as_said, tiled
from labkit.course.criteria.occupancy import loads_at_most, occupied, resident
from labkit.course.criteria.products import right_as_launched
from labkit.course.criteria.python import called, number_of, off_by_form, returns, right_for, shown
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.model.roofline import SECTOR
from simt import AnyKernel
from simt.common.limits import WARP
from simt.counters.profile import loads, stores

# 07.1: functions that return rates.

Sizes = tuple[int, int, int]  # M, N, K
CUBES: list[tuple[Sizes, float]] = [
    ((1024, 1024, 1024), 1.0),
    ((680, 680, 680), 0.154),
    ((16, 16, 16), 0.002),
]
SHAPES: list[tuple[Sizes, float]] = [((640, 320, 480), 0.154), ((32, 4096, 100), 0.25), ((7, 3, 1), 0.5)]
UNITS = "ms is a time in milliseconds; 1 GFLOP/s is 10^9 operations a second, 1 GB/s is 10^9 bytes a second."
BINARY = "1 GFLOP is 10^9 operations and 1 GB is 10^9 bytes, not 2^30."
ORDER = "The two rates are exchanged: return GFLOP/s first, then GB/s."
WORK = "Work over time: 2 M N K operations, 4 (M K + K N + M N) bytes, and the time in seconds."


def _operations(M: int, N: int, K: int) -> dict[str, float]:
    """Return the operations of a product; and other counts, by what is wrong with each."""
    return {
        "": 2 * M * N * K,
        "A multiply-add is two operations, a multiplication and an addition.": M * N * K,
        "That is 2 N over the time: but the work grows with the cube of the side.": 2 * N,
        "That is the elements of C. Each of them is a sum of K products.": 2 * M * N,
        "That takes all three sizes to be N: each of M, N and K counts once.": 2 * N**3,
        "That takes all three sizes to be M: each of M, N and K counts once.": 2 * M**3,
        "Count K additions for K products: the first is an addition to 0.": M * N * (2 * K - 1),
    }


def _bytes(M: int, N: int, K: int) -> dict[str, float]:
    """Return the bytes that a product must move; and other counts, by what is wrong with each."""
    a, b, c = M * K, K * N, M * N
    return {
        "": 4 * (a + b + c),
        "These are elements. A float32 has 4 bytes.": a + b + c,
        "C is part of it: it is written once.": 4 * (a + b),
        "C is written and not read, as beta is 0.": 4 * (a + b + 2 * c),
        "That is what naive asks for: but each element of A and B is needed once.": 8 * M * N * K,
        "That takes C for all three matrices: A is M x K, and B is K x N.": 12 * c,
        "A is M x K, and B is K x N.": 8 * b + 4 * c,
        "B is K x N, and A is M x K.": 8 * a + 4 * c,
        "That is bits. A byte has 8 of them.": 32 * (a + b + c),
        "That takes all sizes to be N: A is M x K, B is K x N, and C is M x N.": 12 * N * N,
        "That adds up sides. A matrix of M x K has M K elements.": 4 * (M + N + K),
    }


def _drawn(rng: np.random.Generator, base: tuple[Sizes, float]) -> tuple[Sizes, float]:
    """Draw another product, square or not like `base`, that takes another time."""
    M, N, K = fresh_inputs.like(rng, base[0], [base[0]])
    return (M, N, K), round(rng.uniform(0.01, 2), 3)


@criterion("{text}")
def _rate(
    function: Callable[..., Any],
    text: str,
    at: int,
    counts: Callable[..., dict[str, float]],
    cases: list[tuple[Sizes, float]],
) -> None:
    """Ask that `rates(M, N, K, ms)[at]` is the right rate; a usual mistake is told by its name."""
    what = ("GFLOP/s", "GB/s")[at]

    def ask(case: tuple[Sizes, float]) -> None:
        sizes, ms = case
        told, named = f"{_call(function, case)} returns", counts(*sizes)
        pair = _pair(called(function, *sizes, ms), told)
        rate, expected = pair[at], named[""] / ms / 1e6
        if not isclose(rate, expected, rel_tol=1e-4):
            is_other = isclose(pair[1 - at], expected, rel_tol=1e-4)
            why = ORDER if is_other else _mistake(rate * ms * 1e6, named)
            why = off_by_form(rate, expected) if why == WORK else why
            why = why or WORK
            raise Unmet(f"{told} {rate:.6g} {what}; it should be {expected:.6g}.\n{why}")

    def should(case: tuple[Sizes, float]) -> str:
        sizes, ms = case
        return f"{_call(function, case)} should return {counts(*sizes)[''] / ms / 1e6:.6g} {what}.\n{WORK}"

    right_for(cases, _drawn, ask, should)


def _call(function: Callable[..., Any], case: tuple[Sizes, float]) -> str:
    sizes, ms = case
    return f"{function.__name__}({', '.join(map(str, (*sizes, ms)))})"


def _pair(got: Any, told: str) -> tuple[float, float]:
    try:
        first, second = map(number_of, got)
        if first is None or second is None:
            raise TypeError
    except (TypeError, ValueError):
        raise Unmet(f"{told} {shown(got)}. Return two numbers: GFLOP/s, then GB/s.") from None
    return first, second


def _mistake(count: float, named: dict[str, float]) -> str:
    """Say what was counted, and in which units."""
    for why, each in named.items():
        for power in range(-5, 6):
            if isclose(count, each * 1000.0**power, rel_tol=1e-5):
                size = f"1000^{abs(power)}" if abs(power) > 1 else "1000"
                unit = f"It is {size} times too {'large' if power > 0 else 'small'}. {UNITS}" if power else ""
                return " ".join(filter(None, (why, unit)))
            if isclose(count, each * 1000.0**power * 1e9 / 2**30, rel_tol=1e-5):
                return " ".join(filter(None, (why, BINARY)))
    return WORK


# 07.2: bytes asked for.

WIDE = {"tile": 32, "rows": 8}  # blocks of 32 x 8 threads on tiles of 32 x 32 elements
FLOP_A_BYTE = 0.9
ROWS = Hints(
    "Thread (x, y) of a block computes column x of its tile, in the rows y, y + 8, y + 16 and y + 24: each "
    "with a sum of its own that starts at 0.",
    "Row i of A begins at index i * K, and row k of B at k * N. Where the tile sticks out over the edge of "
    "C, rows from M on and columns from N on are neither read nor written.",
    "Each element of C is the work of one thread alone.",
)
ROWS_INSIDE = (
    "An element of B that is loaded once can serve all four rows of a thread: then the loop over the rows "
    "stands inside that over k."
)
CUBE, EVEN = Matmul(64, 64, 64), Matmul(80, 80, 80)
COUNTED = (CUBE, Matmul(32, 96, 40))  # what is asked for is no matter of one size
MOST_SECTORS = 10_000  # of loads for EVEN: tiles of 16 x 16 ask for 8000, those of 8 x 8 for twice as many


@criterion("at least {least:g} FLOP per byte asked of the L1 caches")
def _intensity(kernel: AnyKernel, least: float) -> None:
    for stated in COUNTED:
        problem = fresh_inputs.problem_instead(stated, WIDE["tile"])
        counted = profiled(kernel, tiled(problem, **WIDE))
        sectors = sum(side(counted.lines, "global").sectors.sum() for side in (loads, stores))
        intensity = problem.flops / (SECTOR * sectors)
        if intensity < least:
            found = f"{problem}, blocks of 32 x 8: {intensity:.2f} FLOP per byte"
            raise missed(found, f"at least {least:g}", *global_loads(counted), ROWS_INSIDE)


# 07.3: GPUs, threads of a block, registers of a thread, bytes of shared memory.

BY_WARPS = (
    ("H200", 256, 32, 0), ("H200", 32, 16, 0), ("RTX 4060", 1024, 16, 0), ("RTX 4060", 33, 16, 0),
    ("H200", 200, 16, 0),
)  # fmt: skip
BY_REGISTERS = (
    ("H200", 256, 128, 0), ("H200", 256, 33, 0), ("RTX 4060", 512, 41, 0), ("H200", 96, 100, 0),
    ("H200", 1024, 72, 0),
)  # fmt: skip
BY_SHARED = (
    ("T4", 128, 32, 16384), ("H200", 128, 32, 45 * 1024), ("RTX 4060", 64, 32, 13576),
    ("A100-SXM4-40GB", 256, 32, 40 * 1024), ("H200", 64, 32, 6476),
)  # fmt: skip

# 07.4: long rounds.

DEEP = Matmul(32, 32, 600)
ROUND_STEPS = 150  # are enough for a round of two barriers
MOST_BARRIERS = 8  # of a warp, for DEEP
LONGER = (
    "Each round has two barriers. The longest round that leaves room for enough blocks follows from the "
    "bytes: (shared memory of an SM / blocks that you need - 1 KB for the driver) / bytes per step of k."
)


@criterion(f"at most {MOST_BARRIERS} barriers per warp for K = {DEEP.K}")
def _few_barriers(kernel: AnyKernel) -> None:
    problem = replace(DEEP, K=ROUND_STEPS * fresh_inputs.one_of(4, (3, 4, 5)))
    most = 2 * problem.K // ROUND_STEPS
    launch = as_said(kernel, problem)
    profile = profiled(kernel, launch)
    barriers = sum(site.instructions for site in profile.sites if site.instruction.opcode.startswith("bar"))
    warps = prod(launch.grid) * -(-prod(launch.block) // WARP)
    if barriers > most * warps:
        raise Unmet(
            f"{launch}\na warp comes to {barriers / warps:.4g} barriers; the goal is at most {most}\n{LONGER}"
        )


# 07.5: the lowest limit of an SM.

Counts = tuple[float, float, float, float, int, float]  # of a warp in a step, then SMs and GHz
OF_SM = (
    "Per clock an SM issues 4 instructions, one per sub-partition, its L1 cache looks up one line, and its "
    "shared memory delivers one wavefront. The part that needs most clocks decides. A multiply-add of a warp "
    "is 64 FLOP."
)
ISSUED: tuple[Counts, ...] = ((1, 1.11, 0.07, 0.2, 132, 1.98), (4, 9.0, 0.5, 1.0, 132, 1.98))
LOOKED_UP: tuple[Counts, ...] = ((1, 4.61, 2, 0, 132, 1.98), (1, 4.61, 33, 0, 132, 1.98))
FROM_SHARED: tuple[Counts, ...] = ((1, 3.8, 0.5, 1.3, 132, 1.98), (2, 5, 0.9, 2.5, 132, 1.98))
ELSEWHERE: tuple[Counts, ...] = ((1, 3.8, 0.5, 1.3, 40, 1.59), (16, 25, 1, 2, 128, 2.52))


def _attainable(
    fmas: float, instructions: float, lines: float, wavefronts: float, sms: int, ghz: float
) -> float:
    """Return what 07.5 asks for, in TFLOP/s."""
    return 64 * fmas / max(instructions / 4, lines, wavefronts) * sms * ghz / 1e3


def _counts(rng: np.random.Generator, base: Counts) -> Counts:
    """Draw other counts with the same lowest limit; they are for another GPU unless `base` is an H200."""
    while True:
        fmas = int(rng.integers(1, 17))
        instructions, lines, wavefronts = fmas * rng.uniform(1.05, 5), rng.uniform(0, 8), rng.uniform(0, 8)
        sms, ghz = base[4:] if base[4] == 132 else (int(rng.integers(20, 150)), round(rng.uniform(1, 3), 2))
        case = fmas, round(instructions, 2), round(lines, 2), round(wavefronts, 2), sms, ghz
        if _most_clocks(case) == _most_clocks(base):
            return case


def _most_clocks(counts: Counts) -> int:
    """Return which of the three limits is the lowest."""
    return int(np.argmax([counts[1] / 4, counts[2], counts[3]]))


EXERCISES = (
    Exercise("07.1", "Rates of a product", 2, magic="answer", function="rates").asks(
        _rate("GFLOP/s of square products", 0, _operations, CUBES),
        _rate("GFLOP/s where M, N and K differ", 0, _operations, SHAPES),
        _rate("GB/s where A and B are read once and C is written once", 1, _bytes, [*CUBES, *SHAPES]),
    ),
    Exercise("07.2", "More work per byte", 3, given=3).asks(
        right_on("right where the tiles fit", CUBE, Matmul(32, 96, 40), **WIDE, hints=ROWS),
        right_on(
            "right where they stick out, for 1 to 70 rows and columns",
            *(Matmul(*size) for size in ((1, 1, 1), (31, 33, 5), (45, 29, 67), (70, 40, 9))),
            **WIDE,
            hints=ROWS,
        ),
        no_finding(Matmul(45, 40, 12), **WIDE, hints=ROWS),
        _intensity(FLOP_A_BYTE),
    ),
    Exercise("07.3", "Warps on an SM", 3, magic="answer", given=1, function="warps").asks(
        resident(
            "limited by warp slots or by blocks",
            "A block takes whole warps, and an SM whole blocks: count blocks, and multiply at the end.",
            *BY_WARPS,
        ),
        resident(
            "limited by registers",
            "A warp's registers, 32 times those of a thread, are rounded up to whole units. Each "
            "sub-partition of an SM has a quarter of the registers, and takes whole warps.",
            *BY_REGISTERS,
        ),
        resident(
            "limited by shared memory",
            "The driver's bytes come on top of the block's own; the sum is rounded up to whole units.",
            *BY_SHARED,
        ),
        resident(
            "right for other GPUs and blocks, where the fewest blocks decide",
            "Each resource allows a number of blocks, and the smallest of the four holds.",
            *product(
                ("V100", "T4", "A100-SXM4-80GB", "RTX 3060", "RTX 4090", "H100 SXM5"),
                (32, 64, 100, 256, 384, 1024),
                (24, 40, 63, 64),
                (0, 3000, 17000, 40000),
            ),
        ),
    ),
    Exercise("07.4", "Room for more warps", 3, given=4, practice=True).asks(
        right_as_launched(
            "right for any shape, and for the right reason",
            *(Matmul(*size) for size in ((64, 64, 64), (1, 1, 1), (33, 20, 45), (45, 70, 200))),
            hint="TILE is the side of the block and of its tile of C, ROUND what a round brings along K: "
            "does every loop end at the right one?",
        ),
        loads_at_most(
            MOST_SECTORS,
            EVEN,
            "More warps are no gain where each asks for more bytes: keep tiles of at least 16 x 16.",
        ),
        _few_barriers(),
        *(occupied(name, EVEN) for name in ("T4", "RTX 4060", "H200")),
    ),
    Exercise("07.5", "The lowest limit", 3, magic="answer", given=1, practice=True).asks(
        returns("limited by issue slots", *ISSUED, of=_attainable, draw=_counts, hint=OF_SM),
        returns("limited by L1 requests", *LOOKED_UP, of=_attainable, draw=_counts, hint=OF_SM),
        returns("limited by shared memory", *FROM_SHARED, of=_attainable, draw=_counts, hint=OF_SM),
        returns("other GPUs", *ELSEWHERE, of=_attainable, draw=_counts, hint=OF_SM),
    ),
)
