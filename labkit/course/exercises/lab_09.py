"""Exercises of 09_when_kernels_break: eight broken kernels and programs, to be mended."""

from collections.abc import Callable
from functools import partial

import numpy as np

from labkit.core.limits import WARP
from labkit.course.criteria import host, kernels
from labkit.course.criteria.launches import Given, Launch, each, of_vector, tiled
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.simt import AnyKernel
from labkit.simt.counters.profile import loads, stores

THREADS = 256  # of a block, for vectors
SIDE = 16  # of a square block
RADIUS = 3  # neighbours on each side in 09.4


def _whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return whole numbers from 1 to 9, whose sums are exact."""
    return rng.integers(1, 9, shape, endpoint=True).astype(np.float32)


# 09.1: each element's share of the total of its block.


def _shares(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _whole(rng, n)
        totals = np.add.reduceat(x, range(0, n, THREADS))
        return x, x / np.repeat(totals, THREADS)[:n]

    return of_vector(make, THREADS, n, unit=2**-21)


PADDED = "A thread without an element brings a 0 to the tree, and writes nothing."
WAIT = kernels.Hints(
    "In each step of the tree a thread adds what another has summed up in the step before.",
    PADDED,
    "Who reads what another thread has written must wait for it: between the two must stand a "
    "__syncthreads(), which all threads of the block reach.",
    edges=PADDED,
)
TREE = (
    "In a tree half of the threads add in the first step, a quarter in the second, and so on: 8 steps for "
    "256 elements, not 256."
)

BARRIERS = 9  # before the tree of 256 elements, and after each of its 8 steps
ONLY = (
    "One barrier before the tree and one after each step are enough: all threads have then added, and the "
    "next step reads what this one has written."
)


@criterion(f"barriers only where they are needed: at most {BARRIERS} for a block of 256")
def _few_barriers(kernel: AnyKernel) -> None:
    launch = _shares(THREADS)
    profile = kernels.profiled(kernel, launch)
    met = [site for site in profile.sites if site.instruction.is_barrier]
    warps = THREADS // WARP
    if sum(site.instructions for site in met) > BARRIERS * warps:
        lines: dict[int, int] = {}
        for site in met:
            lines[site.line] = lines.get(site.line, 0) + site.instructions // warps
        rows = "\n".join(
            f"{line:>5} | {profile.source_line(line).strip()}    {times} times"
            for line, times in lines.items()
        )
        raise Unmet(
            f"{launch}\na thread comes to {sum(lines.values())} barriers; the goal is at most {BARRIERS}\n"
            f"{rows}\n{ONLY}"
        )


# 09.2: the mean of the four neighbours in a matrix.


def _heat(rows: int, cols: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _whole(rng, rows, cols)
        padded = np.pad(x, 1)
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return x, around / 4

    grid = -(-cols // SIDE), -(-rows // SIDE)
    given = Given(f"rows={rows}, cols={cols}", make, (rows, cols), rows * cols)
    return Launch(given, grid, (SIDE, SIDE))


NEIGHBOURS = kernels.Hints(
    "Outside the matrix counts as 0. Before the first of a row lies the last of the row above: that is "
    "inside the array, and no neighbour.",
    "Each of the four reads needs a condition of its own: is that neighbour inside the matrix? And a thread "
    "without an element does nothing.",
)

# 09.4: the sum of an element and three neighbours on each side, through shared memory.


def _smooth(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _whole(rng, n)
        long = n > 2 * RADIUS
        return x, np.convolve(x, np.ones(2 * RADIUS + 1, np.float32), "same") if long else _sums(x)

    return of_vector(make, 128, n)


def _sums(x: np.ndarray) -> np.ndarray:
    return np.array([x[max(0, i - RADIUS) : i + RADIUS + 1].sum() for i in range(len(x))])


EDGES = kernels.Hints(
    "The block needs three elements before its first and three behind its last. Where the array has none, "
    "the tile must hold a 0: shared memory holds nothing of its own accord.",
    "The tile has 128 + 6 elements. Compare the index in the array with 0 and n before you read.",
    "A barrier must stand between filling the tile and reading what others have filled.",
)

# 09.5: the running sum of each block.


def _running(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _whole(rng, n)
        return x, np.concatenate([np.cumsum(part) for part in np.split(x, range(THREADS, n, THREADS))])

    return of_vector(make, THREADS, n)


EVERYONE = kernels.Hints(
    out_of_bounds="A thread without an element reads and writes no array. It still comes to the barriers.",
    race="Two barriers a step: all have read the sums of the last step before anyone changes one, and all "
    "have changed theirs before anyone reads on.",
    sync="Every thread of the block must come to every barrier, also one that has nothing to add and one "
    "that has no element. Put only the work into the branch.",
)
STEPS = (
    "Each step adds what lies d elements before, for d = 1, 2, 4, … 128: all threads together, and none goes "
    "through the elements alone."
)

LOST = "one element lacks one term."  # 09.6

# 09.8: a sum in a register.

REGISTER = (
    "An element of C is loaded or stored in every round of the loop. Add up in a variable of the thread, "
    "which lives in a register, and go to C once, behind the loop."
)
ONCE = "Each element of C is stored once, behind the loop, and loaded once at most: where beta is not 0."
UNREAD = kernels.Hints(
    guard="A thread outside C must neither read nor write: compare row with M and col with N.",
    owner="Each element of C is the work of one thread alone.",
    unread="0 * NaN is NaN. With beta = 0 the old C must not be read: nobody has put anything there.",
)


@criterion("at most {most:g} requests to global memory for each multiply-add of a warp, and one store")
def _requests(kernel: AnyKernel, most: float, *problems: Matmul) -> None:
    """Limit the requests to global memory, loads and stores, for each multiply-add of a warp.

    Each element of C is stored once, and loaded once where beta is not 0.
    """
    for problem in problems:
        lines = kernels.profiled(kernel, tiled(problem, SIDE)).lines.query("space == 'global'")
        each = lines.requests / (problem.flops / 2 / 32)
        if each.sum() > most:
            costs = (f"{op} {number:.2f}" for op, number in zip(lines.op, each, strict=True))
            found = f"{problem}: {each.sum():.2f} requests a multiply-add"
            raise kernels.missed(found, f"at most {most:g}", lines, costs, REGISTER)
        of_c = problem.M * problem.N
        for rows, what, goal in (
            (stores(lines, "global"), "stores", 1),
            (loads(lines, "global"), "loads", 2 * problem.K + (problem.beta != 0)),
        ):
            times = rows.threads / of_c
            if times.sum() > goal:
                found = f"{problem}: {times.sum():.4g} {what} for each element of C"
                told = f"{goal}: {2 * problem.K} of A and B" if what == "loads" else f"{goal}"
                raise kernels.missed(found, told, rows, (f"{count:.4g}" for count in times), ONCE)


def _sound(make: Callable[[int], Launch], hints: kernels.Hints) -> tuple[Criterion, ...]:
    """Ask for right results for any n, and for the right reason."""
    return (
        kernels.right_in("right for whole blocks", each(make, 256, 1024, whole=THREADS), hints),
        kernels.right_in("right for n = 1, 33, 300", each(make, 1, 33, 300), hints),
        kernels.clean_in(each(make, 300), hints),
    )


SCALED = Matmul(33, 20, 17, alpha=3, beta=-2)
APART = Matmul(33, 20, 17, alpha=3), Matmul(20, 33, 18, beta=-2)

EXERCISES = (
    Exercise("09.1", "Shares of a total", 2).asks(
        *_sound(_shares, WAIT),
        kernels.loads_in(
            170, "still a tree: a block of 256 loads at most 170 times", partial(_shares, 256), hint=TREE
        ),
        _few_barriers(),
    ),
    Exercise("09.2", "Neighbours that are not there", 2).asks(
        kernels.shared_out(
            kernels.right_in(
                "right where blocks cover the matrix", each(_heat, (16, 16), (32, 48), whole=SIDE), NEIGHBOURS
            ),
            kernels.Shares(lambda _: _heat(3 * SIDE, 4 * SIDE)),
        ),
        kernels.right_in(
            "right where they stick out", each(_heat, (1, 1), (1, 40), (40, 1), (31, 33)), NEIGHBOURS
        ),
        kernels.clean_in(each(_heat, (31, 33)), NEIGHBOURS),
    ),
    Exercise("09.3", "Right, wrong or refused", 2, magic="answer").asks(
        host.verdicts(
            "a launch that is refused is 'refused'",
            host.Trial("a kernel that writes everything", "copy", "right", host.WRITTEN, is_fresh=True),
            host.Trial(
                "a launch of 1089 threads a block, which is refused; out holds an earlier, right result",
                *("copy", "refused", host.ASK),
                threads=1089,
            ),
        ),
        host.verdicts(
            "a kernel that writes nothing is 'wrong', whatever was there before",
            host.Trial(
                "a kernel that writes nothing; out holds an earlier, right result",
                *("idle", "wrong", host.STALE),
            ),
            *(
                host.Trial(
                    f"a kernel that writes nothing, where every right element is {each}",
                    *("idle", "wrong", f"{host.STALE} {each} can be a result; NaN cannot."),
                    each=each,
                )
                for each in (0, 1, -1)
            ),
            host.Trial("a kernel that writes zeros", "copy", "right", host.WRITTEN, each=0),
            *(
                host.Trial(f"a kernel that {what}", kernel, "wrong", host.ELEMENTS)
                for kernel, what in (
                    ("one_off", "writes one wrong element"),
                    ("turned", "writes the right elements to wrong places"),
                    ("part", "leaves the last element out; out holds an earlier, right result"),
                )
            ),
        ),
        host.others_get_through(),
    ),
    Exercise("09.4", "A tile with both its edges", 2).asks(
        kernels.right_in("right inside the array", each(_smooth, 1024, whole=128), EDGES),
        kernels.right_in("right for n = 1, 5, 127, 129, 300", each(_smooth, 1, 5, 127, 129, 300), EDGES),
        kernels.clean_in(each(_smooth, 129, 300), EDGES),
        kernels.loads_in(
            64,
            "from global memory a warp loads its elements once: at most 64 requests for n = 1024",
            partial(_smooth, 1024),
            spaces=("global",),
            hint="Neighbours want the same elements. Bring each into the tile once, and add up there.",
        ),
    ),
    Exercise("09.5", "A barrier for everyone", 2).asks(
        *_sound(_running, EVERYONE),
        kernels.loads_in(
            200, "still 8 steps: a block of 256 loads at most 200 times", partial(_running, 256), hint=STEPS
        ),
    ),
    Exercise("09.6", "When two products agree", 2, magic="answer").asks(
        host.tells(
            "right results pass, summed in any order, from small elements to large",
            *host.right(host.Factors(K=1), *(host.Factors(scale=scale) for scale in (1, 1000, 0.001))),
            *host.right(host.Factors(K=40_000, positive=True)),
            *host.WRONG,
        ),
        host.tells("also where the terms cancel", *host.right(host.Factors(cancels=True)), *host.WRONG),
        host.tells(
            "a lost term does not pass",
            *host.wrong(host.lost_term, LOST, *(host.Factors(scale=scale) for scale in (1, 1000, 0.01))),
            *host.wrong(partial(host.lost_term, sign=-1), LOST, host.Factors(), host.Factors(scale=0.01)),
            *host.wrong(host.lost_term, LOST, host.Factors(small_row=True), host.Factors(positive=True)),
            *host.wrong(host.lost_term, LOST, host.Factors(K=2, small_term=True)),
            *host.RIGHT,
        ),
        host.tells(
            "a sum kept in half precision does not",
            *host.wrong(host.half_sum, "sums are kept in 16 bits.", host.Factors()),
            *host.RIGHT,
        ),
        host.tells(
            "nor does NaN",
            *host.wrong(partial(host.with_one, np.nan), "one element is NaN.", host.Factors()),
            *host.wrong(partial(host.with_one, np.inf), "one element is infinite.", host.Factors()),
            *host.RIGHT,
        ),
    ),
    Exercise("09.7", "A clock that waits", 2, magic="answer").asks(
        host.times("it waits for the kernel", host.EARLIER, {"kernel_ms": 4}, {"kernel_ms": 22}),
        host.times("what was in the queue is not counted", host.EARLIER, {"kernel_ms": 4, "queued_ms": 50}),
        host.times(
            "nor is what only the first launch takes",
            host.FIRST,
            {"kernel_ms": 4, "first_ms": 100},
            {"kernel_ms": 3, "first_ms": 40, "queued_ms": 20},
        ),
    ),
    Exercise("09.8", "A sum in a register", 2).asks(
        kernels.right_on("right for beta = 0, where C holds NaN before", Matmul(33, 20, 17), hints=UNREAD),
        kernels.right_on(
            "right for alpha = 3, beta = -2, and for either alone", SCALED, *APART, hints=UNREAD
        ),
        kernels.no_finding(Matmul(33, 20, 17), SCALED, APART[0], hints=UNREAD),
        _requests(2.1, Matmul(32, 32, 64), Matmul(32, 32, 64, alpha=3, beta=-2)),
    ),
)
