"""Exercises of 04_coalescing: a copy, a transpose and an array of structs that move no byte in vain."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import (
    SOUND,
    Hints,
    Shares,
    clean_in,
    missed,
    no_finding_in,
    profiled,
    right_in,
    shared_out,
)
from labkit.course.criteria.launches import Given, Launch, Launches, all_of, of_vector
from labkit.course.criteria.python import Lanes, of_lanes
from labkit.course.exercise import Exercise, criterion
from labkit.kernels.transpose.family import Transpose
from simt import AnyKernel
from simt.counters.profile import loads, stores
from simt.counters.sectors import SECTOR_BYTES, touched_sectors

BLOCK = 32, 8  # threads along x and y of a block that covers a part of out

SHARE = (
    "Thread number t of all T = gridDim.x * blockDim.x threads may take elements t, t + T, t + 2 T and so "
    "on, as long as they are < n. Each element belongs to one thread, whatever the grid."
)
LANES = (
    "In one round of the loop the lanes of a warp should stand on neighbouring elements, and in the whole "
    "launch an element should be copied by one thread."
)
PLACES = (
    "Element (row, col) of in is element (col, row) of out: in has cols elements per row, out has rows. "
    "The blocks cover out: blockIdx.x counts blocks of its columns, which are the rows of in."
)
GUARD = "A thread outside out must do nothing. out has cols rows and rows columns."
ALONG = (
    "Neighbours along threadIdx.x must write neighbours of a row of out. Which of row and col counts along a "
    "row of out?"
)
FIELDS = "Field f of particle i is particles[4 * i + f], and belongs to out[f * n + i]."
LAST = "The last block has threads without a particle: they must do nothing."
ONCE = (
    "Four loads of 4 bytes each touch all the sectors of the particles again. Let a lane ask for the 16 "
    "bytes of its particle at once, or let neighbouring lanes ask for neighbouring floats. "
    "(A struct of your own comes in one load if it is declared __align__(16).)"
)
NEIGHBOURS = "Neighbouring lanes should write neighbouring floats of a field."


def _copied(n: int, blocks: int = 2, threads: int = 128) -> Launch:
    """Make a launch of copy(in, out, n)."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        values = rng.uniform(-1, 1, n).astype(np.float32)
        return values, values

    return Launch(Given(f"n={n}", make, (n,), n), (blocks,), (threads,))


def _split(n: int) -> Launch:
    """Make a launch of split(particles, out, n) with one thread per particle of 4 floats."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        particles = rng.uniform(-1, 1, (n, 4)).astype(np.float32)
        return particles.ravel(), particles.T.ravel()

    return of_vector(make, 128, n)


def _over_out(problem: Transpose) -> Launch:
    """Make a launch of a transpose whose blocks cover out, which has as many columns as `in` has rows."""
    x, y = BLOCK
    return Launch(problem, (-(-problem.rows // x), -(-problem.cols // y)), BLOCK)


def _turned(*stated: Transpose) -> Launches:
    return lambda _: [_over_out(problem) for problem in fresh_inputs.problems(stated, max(BLOCK))]


@criterion("global {many} of at most {most} sectors for {told}: each once")
def _each_once(
    kernel: AnyKernel,
    many: str,
    make: Callable[..., Launch],
    stated: tuple[int, ...],
    most: int,
    told: str,
    hint: str,
) -> None:
    """Ask for loads or stores that touch each sector once.

    `most` is for the stated size. All lines count together, so that wide accesses, other loops and shared
    memory may do it too.
    """
    (size,) = fresh_inputs.instead([stated], BLOCKS)
    launch, most = make(*size), most * math.prod(size) // math.prod(stated)
    lines = {"loads": loads, "stores": stores}[many](profiled(kernel, launch).lines, "global")
    if lines.sectors.sum() > most:
        costs = (
            f"{requests} requests of {each:.3g} sector{'' if each == 1 else 's'}"
            for requests, each in zip(lines.requests, lines.sectors_per_request, strict=True)
        )
        found = f"{launch}\nglobal {many} touch {lines.sectors.sum()} sectors"
        raise missed(found, f"at most {most}", lines, costs, hint)


COPY = Hints(SHARE, SHARE, SHARE)
TURN = Hints(PLACES, PLACES, PLACES, guard=GUARD, untouched=PLACES)
SPLIT = Hints(FIELDS, FIELDS, FIELDS, guard=LAST)
RAGGED = 4003  # elements, which neither a warp nor the grid divides
LARGE, WIDE = 4096, Transpose(64, 96)
BLOCKS = 128  # what is counted is for whole blocks
COPIED = _copied, (LARGE,), 4 * LARGE // SECTOR_BYTES, f"n={LARGE}"
TURNED = (
    *(lambda rows, cols: _over_out(Transpose(rows, cols)), (WIDE.rows, WIDE.cols)),
    *(WIDE.bytes // 2 // SECTOR_BYTES, f"{WIDE.rows} x {WIDE.cols}"),
)
MANY = _split, (1024,), 4 * 4 * 1024 // SECTOR_BYTES, "n=1024"

# 04.4: the efficiency of a request.

WHOLE = "A request moves each sector that holds one of its addresses: sector address // 32, of 32 bytes."
USED_ONCE = "An element that several lanes ask for is moved once, and counts once."
OTHER_SIZES = "The lanes use `size` bytes each; with 8 or 16 bytes they use more, and touch more sectors."


def _addresses(elements: list[int], size: int) -> tuple[list[int], int]:
    return [size * element for element in elements], size


def _efficiency(elements: list[int], size: int) -> float:
    addresses, _ = _addresses(elements, size)
    return len(set(elements)) * size / (SECTOR_BYTES * len(touched_sectors(addresses, size)))


_efficient = partial(of_lanes, of=_efficiency, called_with=_addresses)

EXERCISES = (
    Exercise("04.1", "A copy, shared out among lanes", 2, given=4).asks(
        right_in("right for 4096 elements and 256 threads", all_of(_copied, LARGE, whole=256), COPY),
        right_in(
            "right for any n, from 1 to 5000",
            all_of(_copied, 1, 31, 33, 127, 1000, 5000),
            COPY,
        ),
        right_in(
            "right for any grid, of 1 to 20 blocks",
            all_of(_copied, (1000, 1, 128), (1000, 3, 96), (1000, 20, 96), (1000, 5, 20), (100, 2, 7)),
            COPY,
        ),
        clean_in(all_of(_copied, 700), COPY),
        _each_once("loads", *COPIED, LANES),
        shared_out(
            _each_once("stores", *COPIED, LANES),
            Shares(lambda _: _copied(RAGGED, 5, 64), loads=RAGGED, once=SHARE),
        ),
    ),
    Exercise("04.2", "Write along the rows", 2, given=1).asks(
        right_in("right for square matrices", _turned(Transpose(32, 32), Transpose(64, 64)), TURN),
        right_in("right for wide and tall ones", _turned(WIDE, Transpose(96, 32)), TURN),
        right_in(
            "right where blocks stick out, 1 to 100 rows and columns",
            _turned(*(Transpose(*size) for size in ((1, 1), (31, 33), (45, 67), (100, 20)))),
            TURN,
        ),
        no_finding_in(SOUND, _turned(Transpose(45, 33)), TURN),
        shared_out(_each_once("stores", *TURNED, ALONG), Shares(lambda _: _over_out(WIDE))),
    ),
    Exercise("04.3", "From structs to fields", 3, given=3).asks(
        right_in("right for 128 and 512 particles", all_of(_split, 128, 512, whole=128), SPLIT),
        right_in(
            "right for any number, from 1 to 1000",
            all_of(_split, 1, 31, 33, 129, 1000),
            SPLIT,
        ),
        clean_in(all_of(_split, 33, 200), SPLIT),
        _each_once("loads", *MANY, ONCE),
        shared_out(_each_once("stores", *MANY, NEIGHBOURS), Shares(lambda _: _split(1024))),
    ),
    Exercise("04.4", "The efficiency of a request", 2, magic="answer", given=1, practice=True).asks(
        _efficient("right for floats side by side", (Lanes(1), 4), hint=WHOLE),
        _efficient(
            "right for strides, shifts and rows",
            *((Lanes(step), 4) for step in (2, 3, 7, 8, 32)),
            *((lanes, 4) for lanes in (Lanes(1, first=3), Lanes(1, 16, 100), Lanes(1, 8, 64, first=5))),
            hint=WHOLE,
        ),
        _efficient(
            "right where several lanes ask for one element, in any order",
            *((lanes, 4) for lanes in (Lanes(0), Lanes(0, 16, 50), Lanes(1, 8, 0), Lanes(5, shuffle=1))),
            hint=USED_ONCE,
        ),
        _efficient(
            "right for elements of 8 and 16 bytes",
            *((lanes, size) for lanes in (Lanes(1), Lanes(3, first=1), Lanes(0, 4, 40)) for size in (8, 16)),
            hint=OTHER_SIZES,
        ),
    ),
)
