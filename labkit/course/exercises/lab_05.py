"""Exercises of 05_bank_conflicts: the transpose through a tile, its columns without conflicts, a sum."""

from functools import partial

import numpy as np
import pandas as pd

from labkit.course import fresh_inputs
from labkit.course.criteria import kernels
from labkit.course.criteria.hints import Hints
from labkit.course.criteria.launches import Launch, all_of, of_vector, tiled
from labkit.course.criteria.python import Lanes, of_lanes
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.kernels.transpose.family import Transpose
from simt import AnyKernel
from simt.counters.banks import BANK_BYTES, bank_conflicts
from simt.counters.profile import loads, stores
from simt.counters.sectors import SECTOR_BYTES

PLURALS = {"sector": "sectors", "conflict": "conflicts", "lane": "lanes", "pass": "passes"}
TILE = 32
WIDE, UNEVEN = Transpose(64, 96), Transpose(45, 67)
MOST = WIDE.bytes // 2 // SECTOR_BYTES
PLACES = (
    "Thread (x, y) brings in[blockIdx.y * 32 + y, blockIdx.x * 32 + x] to the tile, and writes "
    "out[blockIdx.x * 32 + y, blockIdx.y * 32 + x]. Which element of the tile is that?"
)
AGREE = (
    "Every element of the tile needs a place of its own, and the load must look for it where the store has "
    "put it. One rule for both: thread (x, y) stores row y, element x, and loads row x, element y."
)
RACE = (
    "Two threads meet at one word of the tile. Either two elements have the same place, or nothing keeps the "
    "load waiting for the store."
)
INSIDE = (
    "A row of in has cols elements, a row of out has rows, and a row of the tile what it is declared with. "
    "Which index runs past the end?"
)
EDGE = (
    "A thread may have an element to bring and none to write, or the other way round. in has rows rows and "
    "cols columns, out has cols rows and rows columns: two guards, and the barrier between them for all."
)
BARRIER = (
    "What a thread reads from the tile another thread has stored: all of them must have stored before anyone "
    "reads. Between the store and the load belongs a __syncthreads()."
)
ROWS = (
    "Lanes have neighbouring threadIdx.x. For both in and out that must be the index that runs along a row; "
    "the turn is in the tile, which one side uses by rows and the other by columns."
)
BANKS = (
    "Which words do the 32 lanes ask for in this line, and in which banks (word % 32) are they? "
    "labkit.widgets.banks() draws it."
)
TURNS = (
    "There are no conflicts because few lanes of a warp are active at a time. Let all 32 lanes of a warp "
    "store at once, and load at once."
)
SMALLER = (
    "A row of the tile may not be longer than its 32 elements. Let each row keep its elements in another "
    "order, so that those of one column are in different banks."
)
SUM = (
    "out[blockIdx.x] is the sum of elements blockIdx.x * 256 to blockIdx.x * 256 + 255, as far as they are "
    "below n."
)
ENDS = "There is no in[n], and part ends with element 255. Which thread reads what is not there?"
PAIRS = (
    "Between two steps belongs a barrier, and in one step no thread may read what another one writes: what "
    "is added to and what is added must be two separate parts."
)
FEW = (
    "Each pass over the banks can serve 32 lanes. Let all threads of a few warps add at once, and in the "
    "next step those of half as many."
)
ATOMIC = "Atomic additions to one word are made one after the other."
NEIGHBOURS = "Each thread brings one element; neighbours bring neighbours."
ADDING = Hints(
    SUM,
    ENDS,
    PAIRS,
    owner="One thread of a block writes its sum to out, when all is added.",
    unfilled="A thread without an element brings a 0 to part.",
)


@criterion(f"global loads and stores of at most {MOST} sectors each for 64 x 96: 4 per request")
def _both_sides_coalesced(kernel: AnyKernel) -> None:
    """Ask for global loads and stores that touch each sector once, all lines together.

    Where rows begin anywhere, those of a tile may touch one more; where tiles stick out, too.
    """
    uneven, wide = fresh_inputs.problems([UNEVEN])[-1], fresh_inputs.problem_instead(WIDE, TILE)
    rows, cols = uneven.rows, uneven.cols
    goals = rows * -(-cols // TILE) * 5, cols * -(-rows // TILE) * 5
    for problem, most in ((wide, (wide.bytes // 2 // SECTOR_BYTES,) * 2), (uneven, goals)):
        lines = _profile(kernel, problem)
        sides = ("loads", loads(lines, "global")), ("stores", stores(lines, "global"))
        for (what, own), goal in zip(sides, most, strict=True):
            if own.sectors.sum() > goal:
                found = f"{problem}\nglobal {what} touch {own.sectors.sum()} sectors"
                costs = _costs(own, "sectors_per_request", "sector", "per request")
                raise kernels.missed(found, f"at most {goal}", own, costs, ROWS)


@criterion("no bank conflict, neither in stores nor in loads")
def _no_conflicts(kernel: AnyKernel) -> None:
    """Ask for no bank conflict in whole warps: one that is taken apart has none either, and gains nothing."""
    wide = fresh_inputs.problem_instead(WIDE, TILE)
    most = 2 * (2 * wide.rows * wide.cols // 32)  # twice what a store and a load per element take
    for problem in (wide, fresh_inputs.problem_instead(UNEVEN)):
        lines = _profile(kernel, problem)
        shared = lines[lines.space == "shared"]
        if shared.conflicts.any():
            worst = shared[shared.conflicts_per_request == shared.conflicts_per_request.max()]
            found = f"{problem}\n{shared.conflicts.sum()} bank conflicts"
            costs = _costs(worst, "conflicts_per_request", "conflict", "per request")
            raise kernels.missed(found, "none", worst, costs, BANKS)
    lines = _profile(kernel, wide)
    shared = lines[lines.space == "shared"]
    if shared.passes.sum() > most:
        found = f"{wide}\n{shared.passes.sum()} passes over the banks"
        costs = _costs(shared, "threads_per_request", "lane", "per request")
        raise kernels.missed(found, f"at most {most}", shared, costs, TURNS)


@criterion("at most {most} bytes of shared memory")
def _shared_bytes(kernel: AnyKernel, most: int) -> None:
    if kernel.shared_size_bytes > most:
        raise Unmet(
            f"the kernel takes {kernel.shared_size_bytes} bytes of shared memory per block; the goal is at "
            f"most {most}, 32 * 32 floats\n{SMALLER}"
        )


def _profile(kernel: AnyKernel, problem: Transpose) -> pd.DataFrame:
    lines = kernels.profiled(kernel, tiled(problem, TILE)).lines
    return lines.assign(threads_per_request=lines.threads / lines.requests)


def _costs(lines: pd.DataFrame, column: str, what: str, per: str) -> list[str]:
    """Write how many of `what` each line has."""
    return [f"{count:.3g} {what if count == 1 else PLURALS[what]} {per}" for count in lines[column]]


# Sums of blocks.

THREADS = 256
MOST_SECTORS = THREADS * 4 // 32
MOST_PASSES = 64  # per block; a tree of pairs in neighbouring words takes 45


def _summed_up(n: int) -> Launch:
    """Make a launch of sum(in, out, n): the sum of each block's numbers."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        given = rng.integers(-1000, 1000, n, dtype=np.int32)
        return given, np.add.reduceat(given, range(0, n, THREADS), dtype=np.int32)

    return of_vector(make, THREADS, n)


def _counted(kernel: AnyKernel) -> pd.DataFrame:
    """Count the lines of a sum, per block."""
    ((blocks,),) = fresh_inputs.instead([(4,)])
    lines = kernels.profiled(kernel, _summed_up(blocks * THREADS)).lines
    counts = ["requests", "threads", "sectors", "passes", "conflicts"]
    return lines.assign(**{name: lines[name] / blocks for name in counts})


@criterion("no bank conflict")
def _without_conflicts(kernel: AnyKernel) -> None:
    lines = _counted(kernel)
    if lines.conflicts.any():
        worst = lines[lines.conflicts == lines.conflicts.max()]
        costs = _costs(worst, "conflicts", "conflict", "per block")
        raise kernels.missed(
            f"{lines.conflicts.sum():g} bank conflicts per block", "none", worst, costs, BANKS
        )


@criterion(f"at most {MOST_PASSES} passes over the banks and {MOST_SECTORS} sectors of loads per block")
def _in_few_passes(kernel: AnyKernel) -> None:
    lines = _counted(kernel)
    # Additions that are atomic wait for each other, where they are to one word.
    is_atomic = lines.op.isin(["atom", "red"])
    lines = lines.assign(passes=lines.passes.where(~is_atomic, lines.threads))
    own = loads(lines, "global")
    if own.sectors.sum() > MOST_SECTORS:
        found = f"global loads touch {own.sectors.sum():g} sectors per block"
        costs = _costs(own, "sectors", "sector", "per block")
        raise kernels.missed(found, f"{MOST_SECTORS}", own, costs, NEIGHBOURS)
    passes = lines[(lines.space == "shared") | is_atomic]
    if passes.passes.sum() > MOST_PASSES:
        found = f"{passes.passes.sum():g} passes over the banks per block"
        costs = _costs(passes, "passes", "pass", "per block")
        hint = f"{ATOMIC} {FEW}" if is_atomic.any() else FEW
        raise kernels.missed(found, f"at most {MOST_PASSES}", passes, costs, hint)


def _turned_right(places: str = PLACES, race: str = BARRIER) -> tuple[Criterion, ...]:
    """Ask what every transpose of this notebook must be: right for the right reason, and coalesced."""
    hints = Hints(places, INSIDE, race, PLACES, guard=EDGE, twice=RACE)
    return (
        kernels.shared_out(
            kernels.right_on("right where the tiles fit", Transpose(32, 32), WIDE, tile=TILE, hints=hints),
            kernels.Shares(lambda _: tiled(Transpose(64, 64), TILE)),
        ),
        kernels.right_on(
            "right where they stick out, 1 to 100 rows and columns",
            *(Transpose(*size) for size in ((1, 1), (31, 33), (45, 67), (100, 20))),
            tile=TILE,
            hints=hints,
        ),
        kernels.no_finding(Transpose(45, 33), WIDE, tile=TILE, hints=hints),
        _both_sides_coalesced(),
    )


# 05.5: the wavefronts of a request.

BUSIEST = (
    "Word w is in bank w % 32. A request takes as many wavefronts as its busiest bank has words to give: "
    "count the words in each bank, and take the largest count."
)
DIFFERENT = "A word that several lanes ask for is given once, to all of them: count different words."


def _words(elements: list[int], _: int) -> tuple[list[int]]:
    return (elements,)


def _wavefronts(elements: list[int], size: int) -> int:
    return 1 + bank_conflicts([size * element for element in elements], size)


_in_wavefronts = partial(of_lanes, of=_wavefronts, called_with=_words)


def _as_words(*lanes: Lanes) -> list[tuple[Lanes, int]]:
    return [(each, BANK_BYTES) for each in lanes]


EXERCISES = (
    Exercise("05.1", "Through a tile", 3, given=3).asks(*_turned_right()),
    Exercise("05.2", "Columns without conflicts", 2, given=4).asks(
        *_turned_right(),
        _no_conflicts(),
    ),
    Exercise("05.3", "No word wasted", 3, given=4).asks(
        *_turned_right(AGREE, RACE),
        _shared_bytes(4 * TILE * TILE),
        _no_conflicts(),
    ),
    Exercise("05.4", "A sum without conflicts", 3, given=3, practice=True).asks(
        kernels.right_in(
            "right for whole blocks, n = 256 and 1024", all_of(_summed_up, 256, 1024, whole=THREADS), ADDING
        ),
        kernels.right_in(
            "right for any n, from 1 to 1000", all_of(_summed_up, 1, 31, 255, 257, 1000), ADDING
        ),
        kernels.no_finding_in(kernels.SOUND, all_of(_summed_up, 300), ADDING),
        _without_conflicts(),
        _in_few_passes(),
    ),
    Exercise("05.5", "The wavefronts of a request", 2, magic="answer", given=1, practice=True).asks(
        _in_wavefronts("right for a row of words", *_as_words(Lanes(1), Lanes(1, first=40)), hint=BUSIEST),
        _in_wavefronts(
            "right for columns and strides",
            # The last has fewer words in most banks than in its busiest one.
            *_as_words(*map(Lanes, (32, 33, 34, 2, 3, 12)), Lanes(1, 8, 33)),
            hint=BUSIEST,
        ),
        _in_wavefronts(
            "right for the two rows and the two columns of a tile of 16",
            *_as_words(
                Lanes(1, 16, 16), Lanes(1, 16, 17), Lanes(16, 16, 1), Lanes(17, 16, 1), Lanes(18, 16, 1)
            ),
            hint=BUSIEST,
        ),
        _in_wavefronts(
            "right where several lanes ask for one word, in any order",
            *_as_words(Lanes(0), Lanes(0, 16, 32), Lanes(1, 16, 0), Lanes(64, 8, 0), Lanes(6, shuffle=1)),
            hint=DIFFERENT,
        ),
    ),
)
