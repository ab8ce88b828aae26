"""Exercises of 10_capstone: your own matrix product, launched as its own line says.

Right, then frugal with global memory, with shared memory and with instructions, then fast: for a large
product, and for a small one.
"""

from labkit.course.criteria import products
from labkit.course.criteria.kernels import Shares, shared_out
from labkit.course.criteria.launches import as_said
from labkit.course.criteria.predicted import quicker
from labkit.course.exercise import Exercise
from labkit.figures.own_product import LARGE
from labkit.kernels.matmul.family import Matmul

EXACT = (Matmul(64, 64, 64), Matmul(128, 64, 32))
SIZES = (
    *((1, 1, 1), (31, 31, 31), (33, 33, 33), (45, 29, 67), (1, 70, 20), (70, 1, 20), (40, 50, 3)),
    *((130, 70, 19), (70, 140, 9)),  # several blocks with tiles of 64 and of 128, more down or more across
    *((20, 36, 7), (20, 35, 8)),  # rows of B, or of A, begin at 16 bytes, and the others do not
    *((1100, 1, 2), (1, 1100, 2)),  # more blocks than the others: a grid of fixed size falls short
)
RAGGED = tuple(Matmul(*size) for size in SIZES)
SCALED = tuple(Matmul(*size, alpha=3, beta=-2) for size in SIZES)
UNREAD = Matmul(33, 20, 17, alpha=3)

CUBE = EXACT[0]
SHARES = Shares(
    lambda kernel: as_said(kernel, CUBE), factor=4, elements=64, loads=4 * CUBE.M * CUBE.N * CUBE.K
)
ANY = products.right_as_launched(
    "right for any shape, alpha and beta, and for the right reason", *EXACT, *RAGGED, *SCALED, UNREAD
)
# What is stored goes out once, when all rounds are over: a thread may store four neighbours one by one.
TIDY = (products.coalesced(4, 16), products.few_conflicts(10), products.in_registers())

SMALL = Matmul(512, 512, 512)
NEXT_LIMIT = "The first of these limits is the one to work on. A change that shortens another gains nothing."
MORE_BLOCKS = (
    "How many blocks are there for 132 SMs? Smaller tiles make more of them. And where latency is the limit, "
    "a warp waits: #pragma unroll lets more loads leave before the first is needed."
)

EXERCISES = (
    Exercise("10.1", "Right for any shape", 4, given=1).asks(
        shared_out(products.right_as_launched("right where tiles of 16, 32 or 64 fit", *EXACT), SHARES),
        products.launches("the launch has blocks for any shape, 1 to 1100", *RAGGED),
        products.right_as_launched("right for any shape, 1 to 1100", *RAGGED),
        products.right_as_launched("right for alpha = 3, beta = -2", *SCALED),
        products.right_as_launched("right for alpha = 3, beta = 0: C is not read", UNREAD),
    ),
    Exercise("10.2", "Frugal with global memory", 4).asks(
        ANY,
        products.reuse(128),
        products.coalesced(4, 4),
        products.few_conflicts(10),
    ),
    Exercise("10.3", "Frugal with shared memory", 4, practice=True).asks(
        ANY,
        products.reuse(128),
        products.shared(0.5),
        *TIDY,
    ),
    Exercise("10.4", "Few instructions, many warps", 4, practice=True).asks(
        ANY,
        products.reuse(128),
        products.shared(0.5),
        *TIDY,
        products.loads(0.3),
        products.warps(16),
    ),
    Exercise("10.5", "Fast", 4, practice=True).asks(
        ANY,
        products.reuse(256),
        products.shared(0.4),
        *TIDY,
        products.loads(0.3),
        quicker(4, "tiled", LARGE, "M = N = K = 2048", NEXT_LIMIT, others=(1792, 1920, 2176, 2304)),
        products.faster("tiled", 2.5),
    ),
    Exercise("10.6", "Fast for a small product", 3, practice=True).asks(
        ANY,
        products.in_registers(),
        quicker(1.3, "tiled_unrolled", SMALL, "M = N = K = 512", MORE_BLOCKS, others=(448, 576, 640)),
    ),
)
