"""Exercises of 04_coalescing: a copy, a transpose and an array of structs that move no byte in vain."""

from collections.abc import Callable
from functools import partial

import numpy as np

from labkit.course.criteria.kernels import (
    Hints,
    Shares,
    clean_in,
    missed,
    no_finding,
    profiled,
    right_in,
    right_on,
    shared_out,
)
from labkit.course.criteria.launches import Given, Launch, each, of_vector, tiled
from labkit.course.exercise import Exercise, criterion
from labkit.kernels.transpose.family import Transpose
from labkit.simt import AnyKernel
from labkit.simt.counters.profile import loads, stores
from labkit.simt.counters.sectors import SECTOR_BYTES

SIDE = 32  # of the square blocks of a transpose

SHARE = (
    "Thread number t of all T = gridDim.x * blockDim.x threads may take elements t, t + T, t + 2 T and so "
    "on, as long as they are < n. Each element belongs to one thread, whatever the grid."
)
LANES = (
    "In one round of the loop the lanes of a warp should stand on neighbouring elements, and in the whole "
    "launch an element should be copied by one thread."
)
PLACES = (
    "Element (row, col) of in is element (col, row) of out: in has cols elements a row, out has rows. "
    "The blocks cover in: blockIdx.x counts blocks of its columns, blockIdx.y of its rows."
)
GUARD = "A thread outside in must do nothing: compare row with rows and col with cols."
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


@criterion("global {many} of at most {most} sectors for {told}: each once")
def _each_once(
    kernel: AnyKernel, many: str, make: Callable[[], Launch], most: int, told: str, hint: str
) -> None:
    """Ask for loads or stores that touch each sector once.

    All lines count together, so that wide accesses, other loops and shared memory may do it too.
    """
    launch = make()
    lines = {"loads": loads, "stores": stores}[many](profiled(kernel, launch).lines, "global")
    if lines.sectors.sum() > most:
        costs = (
            f"{requests} requests of {each:.3g} sector{'' if each == 1 else 's'}"
            for requests, each in zip(lines.requests, lines.sectors_per_request, strict=True)
        )
        found = f"{launch}\nglobal {many} touch {lines.sectors.sum()} sectors"
        raise missed(found, f"at most {most}", lines, costs, hint)


COPY = Hints(SHARE, SHARE, SHARE)
TURN = Hints(PLACES, PLACES, PLACES, guard=GUARD)
SPLIT = Hints(FIELDS, FIELDS, FIELDS, guard=LAST)
RAGGED = 4003  # elements, which neither a warp nor the grid divides
LARGE, WIDE = 4096, Transpose(64, 96)
COPIED = partial(_copied, LARGE), 4 * LARGE // SECTOR_BYTES, f"n={LARGE}"
TURNED = partial(tiled, WIDE, SIDE), WIDE.bytes // 2 // SECTOR_BYTES, f"{WIDE.rows} x {WIDE.cols}"
MANY = partial(_split, 1024), 4 * 4 * 1024 // SECTOR_BYTES, "n=1024"

EXERCISES = (
    Exercise("04.1", "A copy, shared out among lanes", 2, given=4).asks(
        right_in("right for 4096 elements and 256 threads", each(_copied, LARGE, whole=256), COPY),
        right_in(
            "right for any n, from 1 to 5000",
            each(_copied, 1, 31, 33, 127, 1000, 5000),
            COPY,
        ),
        right_in(
            "right for any grid, of 1 to 20 blocks",
            each(_copied, (1000, 1, 128), (1000, 3, 96), (1000, 20, 96), (1000, 5, 20), (100, 2, 7)),
            COPY,
        ),
        clean_in(each(_copied, 700), COPY),
        _each_once("loads", *COPIED, LANES),
        shared_out(
            _each_once("stores", *COPIED, LANES),
            Shares(lambda _: _copied(RAGGED, 5, 64), loads=RAGGED, once=SHARE),
        ),
    ),
    Exercise("04.2", "Write along the rows", 2, given=4).asks(
        right_on("right for square matrices", Transpose(32, 32), Transpose(64, 64), tile=SIDE, hints=TURN),
        right_on("right for wide and tall ones", WIDE, Transpose(96, 32), tile=SIDE, hints=TURN),
        right_on(
            "right where blocks stick out, 1 to 100 rows and columns",
            *(Transpose(*size) for size in ((1, 1), (31, 33), (45, 67), (100, 20))),
            tile=SIDE,
            hints=TURN,
        ),
        no_finding(Transpose(45, 33), tile=SIDE, hints=TURN),
        shared_out(_each_once("stores", *TURNED, ALONG), Shares(lambda _: tiled(WIDE, SIDE))),
    ),
    Exercise("04.3", "From structs to fields", 3, given=3).asks(
        right_in("right for 128 and 512 particles", each(_split, 128, 512, whole=128), SPLIT),
        right_in(
            "right for any number, from 1 to 1000",
            each(_split, 1, 31, 33, 129, 1000),
            SPLIT,
        ),
        clean_in(each(_split, 33, 200), SPLIT),
        _each_once("loads", *MANY, ONCE),
        shared_out(_each_once("stores", *MANY, NEIGHBOURS), Shares(lambda _: _split(1024))),
    ),
)
