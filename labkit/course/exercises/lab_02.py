"""Exercises of 02_naive_cuda: the matrix product with one thread per element of C."""

from dataclasses import replace

from labkit.course.criteria.kernels import (
    Hints,
    Shares,
    at_most,
    no_finding,
    other_blocks,
    profiled,
    right_on,
    shared_out,
)
from labkit.course.criteria.launches import in_blocks, tiled
from labkit.course.exercise import Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.simt import AnyKernel
from labkit.simt.counters.profile import loads

MAPPING = (
    "x counts columns of C and y counts rows. Row i of A begins at index i * K, row k of B at k * N, "
    "row i of C at i * N."
)
GUARD = "A thread outside C must neither read nor write: compare row with M and col with N."
OWNER = "Each element of C is the work of one thread alone. Is its index right, with N elements a row?"
UNREAD = "With beta = 0 the kernel must not read C: nothing was put there, and 0 * NaN is NaN."
EMPTY = "C holds nothing before the kernel writes to it: add up in a variable of the thread."
MAPPED = Hints(MAPPING, MAPPING, OWNER, unread=EMPTY)
GUARDED = Hints("", MAPPING, OWNER, unread=EMPTY, guard=GUARD)
SCALED = replace(GUARDED, unread=UNREAD)
SMALL = Matmul(33, 20, 17)
EXACT = Matmul(32, 48, 64)  # for blocks of 16 x 16
RAGGED = [Matmul(*size) for size in ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67), (20, 70, 5))]

# Three times three blocks; a thread loads a row of A and a column of B.
SHARED = Matmul(48, 48, 48)
SHARES = Shares(
    lambda _: tiled(SHARED),
    loads=4 * SHARED.M * SHARED.N * SHARED.K,
    beside="x counts columns of C: neighbours along threadIdx.x have neighbouring elements of a row.",
)

BLOCK = 32, 8  # threads along x and y, in the place of 16 x 16

CUBE = Matmul(64, 64, 64)
# Two loads per multiply-add, 32 lanes per request; and as many again.
REQUESTS = 2 * 2 * CUBE.K * CUBE.M * CUBE.N // 32


@criterion(f"at most {REQUESTS:,} requests to load, for M = N = K = 64")
def _all_lanes_work(kernel: AnyKernel) -> None:
    """Ask for few requests: few sectors per request are no gain where most lanes of a warp are idle."""
    requests = int(loads(profiled(kernel, tiled(CUBE)).lines, "global").requests.sum())
    if requests > REQUESTS:
        raise Unmet(
            f"{CUBE}: warps load {requests:,} times; the goal is at most {REQUESTS:,}\n"
            "Each thread should have an element of C to compute, so that a request serves 32 of them."
        )


EXERCISES = (
    Exercise("02.1", "The naive product", 2).asks(
        shared_out(
            right_on("right for square matrices", Matmul(16, 16, 16), Matmul(64, 64, 64), hints=MAPPED),
            replace(SHARES, once="Add up in a variable of the thread, and write it to C behind the loop."),
        ),
        right_on("right where M, N and K differ", EXACT, Matmul(64, 16, 32), hints=MAPPED),
        no_finding(EXACT, hints=MAPPED),
    ),
    Exercise("02.2", "Any shape", 2).asks(
        shared_out(right_on("right where the blocks cover C exactly", EXACT, hints=GUARDED), SHARES),
        right_on("right where they stick out, for 1 to 70 rows and columns", *RAGGED, hints=GUARDED),
        no_finding(SMALL, hints=GUARDED),
    ),
    Exercise("02.3", "Scale and add, as BLAS does", 2).asks(
        shared_out(
            right_on("right for alpha = 1, beta = 1", Matmul(33, 20, 17, alpha=1, beta=1), hints=SCALED),
            replace(SHARES, launch=lambda _: tiled(replace(SHARED, beta=1))),
        ),
        right_on("right for alpha = 3, beta = -2", Matmul(33, 20, 17, alpha=3, beta=-2), hints=SCALED),
        right_on(
            "right for beta = 0, where C holds NaN before",
            Matmul(33, 20, 17, alpha=3, beta=0),
            hints=SCALED,
        ),
        no_finding(SMALL, Matmul(33, 20, 17, alpha=3, beta=-2), hints=SCALED),
    ),
    Exercise("02.4", "Neighbours read neighbours", 3, given=2).asks(
        right_on(
            "right for any shape",
            EXACT,
            *RAGGED,
            hints=GUARDED,
        ),
        no_finding(SMALL, hints=GUARDED),
        at_most(
            4,
            "sectors_per_request",
            "no line needs more than 4 sectors a request, with blocks of 16 x 16",
            CUBE,
            hint="Threads with neighbouring threadIdx.x are in one warp. Which index of A, B and C "
            "differs between them, and how far apart are those elements in memory?",
        ),
        other_blocks(
            _all_lanes_work(),
            *(in_blocks(EXACT, *BLOCK), in_blocks(EXACT, *reversed(BLOCK)), in_blocks(SMALL, *BLOCK)),
        ),
    ),
)
