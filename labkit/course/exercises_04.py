"""Exercises of 04_coalescing: a copy, a transpose and an array of structs that move no byte in vain."""

from typing import Any

import numpy as np

from labkit import checks, simt
from labkit.course.exercise import Criterion, Exercise, Hints, Unmet, listed, no_finding, right_in, right_on
from labkit.course.launches import Given, clean_in
from labkit.problems import Transpose
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


def _copied(n: int, blocks: int = 2, threads: int = 128) -> Given:
    "A launch of copy(in, out, n)."
    values = np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32)
    return Given(f"n={n}", (blocks,), (threads,), (values,), (n,), values)


def _split(n: int) -> Given:
    "A launch of split(particles, out, n) with a thread a particle of 4 floats."
    particles = np.random.default_rng(n).uniform(-1, 1, (n, 4)).astype(np.float32)
    fields = particles.T.ravel()
    return Given(f"n={n}", (-(-n // 128),), (128,), (particles.ravel(),), (n,), fields)


def _each_once(op: str, launch: Given | Transpose, hint: str) -> Criterion:
    """Loads (op "ld") or stores ("st") that touch each sector once, in a launch on whole sectors.

    All lines count together, so that wide accesses, other loops and shared memory may do it too.
    """
    many = {"ld": "loads", "st": "stores"}[op]
    size = launch.expected.nbytes if isinstance(launch, Given) else launch.bytes // 2
    most = size // SECTOR_BYTES

    def test(kernel: simt.Kernel) -> None:
        lines = _profile(kernel, launch).lines
        lines = lines[(lines.space == "global") & (lines.op == op)]
        if lines.sectors.sum() > most:
            costs = (
                f"{row.requests} requests of {row.sectors_per_request:.3g} "
                f"sector{'' if row.sectors == row.requests else 's'}"
                for row in lines.itertuples()
            )
            raise Unmet(
                f"{launch}\nglobal {many} touch {lines.sectors.sum()} sectors; the goal is at most {most}\n"
                f"{listed(lines, costs)}\n{hint}"
            )

    told = launch.told if isinstance(launch, Given) else f"{launch.rows} x {launch.cols}"
    return Criterion(f"global {many} of at most {most} sectors for {told}: each once", test)


def _profile(kernel: simt.Kernel, launch: Given | Transpose) -> Any:
    if isinstance(launch, Transpose):
        return checks.profile(kernel, launch, SIDE)
    return kernel.profile(launch.grid, launch.block, launch.args(), timeout=checks.TIMEOUT)


COPY = Hints(SHARE, SHARE, SHARE)
TURN, EDGES = Hints(PLACES, GUARD, PLACES), Hints(GUARD, GUARD, PLACES)
SPLIT, ENDS = Hints(FIELDS, LAST, FIELDS), Hints(LAST, LAST, FIELDS)
LARGE, WIDE = _copied(4096), Transpose(64, 96)

EXERCISES = (
    Exercise(
        "04.1",
        "A copy, shared out among lanes",
        2,
        (
            right_in("right for 4096 elements and 256 threads", LARGE, hints=COPY),
            right_in(
                "right for any n, from 1 to 5000",
                *(_copied(n) for n in (1, 31, 33, 127, 1000, 5000)),
                hints=COPY,
            ),
            right_in(
                "right for any grid, of 1 to 20 blocks",
                *(_copied(1000, *launch) for launch in ((1, 128), (3, 96), (20, 96))),
                hints=COPY,
            ),
            clean_in(_copied(700), hints=COPY),
            _each_once("ld", LARGE, LANES),
            _each_once("st", LARGE, LANES),
        ),
    ),
    Exercise(
        "04.2",
        "Write along the rows",
        2,
        (
            right_on(
                "right for square matrices", Transpose(32, 32), Transpose(64, 64), tile=SIDE, hints=TURN
            ),
            right_on("right for wide and tall ones", WIDE, Transpose(96, 32), tile=SIDE, hints=TURN),
            right_on(
                "right where blocks stick out, 1 to 100 rows and columns",
                *(Transpose(*size) for size in ((1, 1), (31, 33), (45, 67), (100, 20))),
                tile=SIDE,
                hints=EDGES,
            ),
            no_finding(Transpose(45, 33), tile=SIDE, hints=EDGES),
            _each_once("st", WIDE, ALONG),
        ),
    ),
    Exercise(
        "04.3",
        "From structs to fields",
        3,
        (
            right_in("right for 128 and 512 particles", _split(128), _split(512), hints=SPLIT),
            right_in(
                "right for any number, from 1 to 1000",
                *(_split(n) for n in (1, 31, 33, 129, 1000)),
                hints=ENDS,
            ),
            clean_in(_split(33), _split(200), hints=ENDS),
            _each_once("ld", _split(1024), ONCE),
            _each_once("st", _split(1024), NEIGHBOURS),
        ),
    ),
)
