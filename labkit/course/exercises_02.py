"""Exercises of 02_naive_cuda: the matrix product with one thread an element of C."""

from labkit.course.exercise import Exercise, at_most, right_on
from labkit.problems import Matmul

MAPPING = (
    "x counts columns of C and y counts rows. Row i of A begins at index i * K, row k of B at k * N, "
    "row i of C at i * N."
)
GUARD = "A thread outside C must neither read nor write: compare row with M and col with N."
SCALARS = "alpha scales the sum alone, beta the old element of C."
EXACT = Matmul(32, 48, 64)  # for blocks of 16 x 16
RAGGED = [Matmul(*size) for size in ((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67), (20, 70, 5))]

EXERCISES = (
    Exercise(
        "02.1",
        "The naive product",
        (
            right_on("right for square matrices", Matmul(16, 16, 16), Matmul(64, 64, 64), hint=MAPPING),
            right_on("right where M, N and K differ", EXACT, Matmul(64, 16, 32), hint=MAPPING),
        ),
    ),
    Exercise(
        "02.2",
        "Any shape",
        (
            right_on("right where the blocks cover C exactly", EXACT, hint=GUARD),
            right_on("right where they stick out, for 1 to 70 rows and columns", *RAGGED, hint=GUARD),
        ),
    ),
    Exercise(
        "02.3",
        "Scale and add, as BLAS does",
        (
            right_on("right for alpha = 1, beta = 1", Matmul(33, 20, 17, alpha=1, beta=1), hint=SCALARS),
            right_on("right for alpha = 3, beta = -2", Matmul(33, 20, 17, alpha=3, beta=-2), hint=SCALARS),
            right_on(
                "right for beta = 0, where C holds NaN before",
                Matmul(33, 20, 17, alpha=3, beta=0),
                hint="0 * NaN is NaN. With beta = 0 the kernel must not read C: nothing was put there.",
            ),
        ),
    ),
    Exercise(
        "02.4",
        "Neighbours read neighbours",
        (
            right_on(
                "right for any shape", EXACT, *RAGGED, hint="Every element of C needs a thread of its own."
            ),
            at_most(
                4,
                "sectors_per_request",
                "no line needs more than 4 sectors a request, with blocks of 16 x 16",
                Matmul(64, 64, 64),
                hint="Threads with neighbouring threadIdx.x are in one warp. Which index of A, B and C "
                "differs between them, and how far apart are those elements in memory?",
            ),
        ),
    ),
)
