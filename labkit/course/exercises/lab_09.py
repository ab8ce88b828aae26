"""Exercises of 05b_when_kernels_break and 09_name_the_limit: broken kernels and programs, then slow ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria import host, kernels, predicted
from labkit.course.criteria.launches import Given, Launch, all_of, of_vector
from labkit.course.criteria.python import called, number_of, shown
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.course.mystery_kernels import FIRST, cases
from labkit.model.sampled import Argument, Contents
from simt import AnyKernel, Profile
from simt.common.limits import WARP
from simt.counters.profile import loads

THREADS = 256  # of a block, for vectors
SIDE = 16  # of a square block
WHOLE = 256  # divides the small sizes of kernels without a name
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


PADDED = "A thread without an element adds a 0 in the tree, and writes nothing."
WAIT = kernels.Hints(
    "In each step of the tree a thread adds the sum that another thread computed in the step before.",
    PADDED,
    "A thread that reads what another thread wrote must wait for it: put a __syncthreads() between the two, "
    "which all threads of the block reach.",
    edges=PADDED,
)
TREE = (
    "In a tree, half of the threads add in the first step, a quarter in the second, and so on: 8 steps for "
    "256 elements, not 256."
)

BARRIERS = 9  # before the tree of 256 elements, and after each of its 8 steps
ONLY = (
    "One barrier before the tree and one after each step are enough: then all threads have added, and the "
    "next step reads complete sums."
)


@criterion(f"barriers only where they are needed: at most {BARRIERS} for a block of 256")
def _few_barriers(kernel: AnyKernel) -> None:
    ((n,),) = fresh_inputs.instead([(THREADS,)], THREADS)
    launch = _shares(n)
    profile = kernels.profiled(kernel, launch)
    met = [site for site in profile.sites if site.instruction.is_barrier]
    warps = n // WARP
    if sum(site.instructions for site in met) > BARRIERS * warps:
        lines: dict[int, int] = {}
        for site in met:
            lines[site.line] = lines.get(site.line, 0) + site.instructions // warps
        rows = "\n".join(
            f"{line:>5} | {profile.source_line(line).strip()}    {times} times"
            for line, times in lines.items()
        )
        raise Unmet(
            f"{launch}\neach thread reaches {sum(lines.values())} barriers; the goal is at most {BARRIERS}\n"
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
    "Each element is the sum of its four neighbours, divided by 4: a neighbour outside the matrix counts as "
    "0. The element before the first of a row is the last of the "
    "row above: it is inside the array, but it is no neighbour.",
    "Each of the four reads needs its own condition: is that neighbour inside the matrix? A thread without "
    "an element does nothing.",
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
    "The block needs three elements before its first and three after its last. Where the array has none, "
    "the tile must hold a 0: shared memory holds no number until a thread writes one.",
    "The tile has 128 + 6 elements. Compare the index in the array with 0 and n before you read.",
    "Put a barrier between filling the tile and reading what other threads filled.",
)

# 09.5: the running sum of each block.


def _running(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = _whole(rng, n)
        return x, np.concatenate([np.cumsum(part) for part in np.split(x, range(THREADS, n, THREADS))])

    return of_vector(make, THREADS, n)


EVERYONE = kernels.Hints(
    out_of_bounds="A thread without an element reads and writes no array. It still reaches the barriers.",
    race="Use two barriers per step: after the first, all threads have read the old sums; after the second, "
    "all threads have written the new ones.",
    sync="Every thread of the block must reach every barrier, also a thread that has nothing to add or no "
    "element. Put only the work into the branch.",
)
STEPS = (
    "Each step adds the sum d elements before, for d = 1, 2, 4, … 128: all threads work together, and no "
    "thread goes through the elements alone."
)

LOST = "one element lacks one term"  # 09.6

# 09.8: what makes each kernel without a name slow, by the figure that shows it.


@dataclass(frozen=True)
class Cause:
    """A cause that a kernel is slow: the `figure` that shows it, and `where` to read that."""

    figure: str
    where: str


LINES = "`.profile.lines` has them by source line, and `.costs` shows them beside the source."
WARPS = "`.warps` is the number of warps, and `.small` has the rounds."
CAUSES = {
    "scattered loads": Cause("sectors per request, all global loads together", LINES),
    "bank conflicts": Cause("conflicts per request of the worst line", LINES),
    "divergence": Cause("active threads per instruction", "`.profile.ptx` has threads_per_instruction."),
    "conversions": Cause(
        "instructions of the pipe XU per warp and round of the loop",
        f"`.profile.metrics` has sm__inst_executed_pipe_xu.sum, of all warps and rounds. {WARPS}",
    ),
    "instructions": Cause(
        "machine instructions per warp and round of the loop",
        f"`.profile.metrics` has smsp__inst_executed.sum, of all warps and rounds. {WARPS}",
    ),
    "few warps": Cause(
        "warps per warp scheduler in the large launch",
        "Divide the blocks over 132 SMs. A block's warps are divided over the 4 schedulers of its SM.",
    ),
    "spilled registers": Cause(
        "bytes of spilled registers per thread", "`.kernel.sass()` has them in its first line."
    ),
    "atomic operations": Cause("atomic requests per warp", LINES),
    "nothing to gain": Cause(
        "bytes that the launch has to move per element of the output",
        "Count the elements of 4 bytes that are read and written for one element of the output.",
    ),
}
# The cause of each kernel, its figure, and how far off an answer may be, as a share.
DIAGNOSES = {
    "A": ("scattered loads", 32.0, 0.01),
    "B": ("conversions", 2.0, 0.05),
    "C": ("few warps", 2.0, 0.05),  # 128 blocks of 8 warps: one block on an SM, or 0.97 on average
    "D": ("bank conflicts", 31.0, 0.01),
    "E": ("instructions", 19.6, 0.1),
    "F": ("divergence", 16.2, 0.03),
    "G": ("nothing to gain", 12.0, 0.01),
}


@criterion("kernel {letter}: the cause, and the figure that shows it")
def _diagnosed(diagnosis: Callable[..., Any], letter: str) -> None:
    got, told = called(diagnosis, letter), f"diagnosis({letter!r})"
    cause, figure, margin = DIAGNOSES[letter]
    said = list(got) if isinstance(got, tuple | list) else []
    value = number_of(said[1]) if len(said) == 2 else None
    if value is None or said[0] not in CAUSES:
        raise Unmet(
            f"{told} returns {shown(got)}.\nReturn a cause and a figure, such as "
            f'("bank conflicts", 3). The causes are {", ".join(CAUSES)}.'
        )
    chosen = CAUSES[said[0]]
    if said[0] != cause:
        raise Unmet(
            f"{told} returns {said[0]!r}: that is not what makes the kernel slow.\nWhich part of the GPU is "
            "its lowest limit, by `.predicted`? What keeps that part busy?"
        )
    if abs(value - figure) > margin * figure:
        raise Unmet(
            f"{told} has the right cause, and {value:.4g} is not its figure: {chosen.figure}.\n{chosen.where}"
        )


# 09.9 to 09.14: each kernel without a name, fixed.

ROUNDING = 2.0**-13  # of some hundred rounds with other roundings, as a share of the result


def _launch(letter: str, *sizes: int) -> Launch:
    case = cases()[letter]

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return case.make(rng, *sizes)

    given = Given(case.told(sizes), make, case.takes(sizes), sum(sizes), 0 if letter in "AD" else ROUNDING)
    return Launch(given, case.grid(sizes), case.block)


# What is right for element i of the output, by letter, of the input `x` and the sizes; in float64.
Element = Callable[..., np.ndarray]


def _row(i: np.ndarray, x: Contents, rows: int, cols: int) -> np.ndarray:
    return x.at(i[:, None] * cols + np.arange(cols)).sum(1)


def _towards_one(v: np.ndarray, rounds: int) -> np.ndarray:
    """Return what so many rounds of 0.999 v + 0.001 make of v."""
    return 1 + (v - 1) * 0.999**rounds


def _damped(i: np.ndarray, x: Contents, rounds: int, n: int) -> np.ndarray:
    return _towards_one(x.at(i), rounds)


def _starts(i: np.ndarray, x: Contents, rounds: int, n: int) -> np.ndarray:
    return np.sum([_towards_one(x.at(i) + start, rounds) for start in range(4)], 0)


def _column(i: np.ndarray, x: Contents, tiles: int) -> np.ndarray:
    tops = i // 1024 * 1024 + i % 32
    return x.at(i) * x.at(tops[:, None] + 32 * np.arange(32)).sum(1)


def _ring(i: np.ndarray, x: Contents, length: int, rounds: int, n: int) -> np.ndarray:
    v = np.zeros(len(i))
    for k in range(rounds):
        v = 0.999 * v + x.at((i + k) % length)
    return v


def _two_ways(i: np.ndarray, x: Contents, rounds: int, n: int) -> np.ndarray:
    return np.where(i % 2, _towards_one(x.at(i), rounds), (x.at(i) + 1) * 1.001**rounds - 1)


# What an element is, and which of the sizes time grows with.
LARGE: dict[str, tuple[Element, int]] = {
    "A": (_row, 0), "B": (_damped, 0), "C": (_starts, 0),
    "D": (_column, 0), "E": (_ring, 1), "F": (_two_ways, 0),
}  # fmt: skip


def _large(letter: str, times: float) -> predicted.Large:
    """Make the large launch of a kernel without a name, with so many times its work."""
    case, (element, grows) = cases()[letter], LARGE[letter]
    sizes = tuple(round(times * size) if at == grows else size for at, size in enumerate(case.large))
    given, out = case.shapes(*sizes)
    low = 1 if letter in "ADE" else 0
    x = Contents(given, fresh_inputs.fresh(0, letter), low, 9 if low else 1, whole=bool(low))

    def right(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = element(places, x, *sizes)
        return values, (0 if letter in "AD" else ROUNDING) * np.abs(values)

    args: tuple[Argument, ...] = (x, Contents(out), *map(np.int32, case.takes(sizes)))
    return predicted.Large(case.told(sizes), case.grid(sizes), case.block, args, right)


def _within(letter: str, most: float, hint: str) -> Criterion:
    """Require that the large launch is predicted to take at most this many ms."""
    work = predicted.HALF_THE_WORK if letter == "D" else predicted.MORE_WORK
    growing = 2 / 3 if letter == "C" else 1  # its launch is short: a third of its time is no work
    return predicted.within(most, partial(_large, letter), hint, work, growing)


@criterion("at most {most:,.0f} {what}")
def _counted(
    kernel: AnyKernel,
    letter: str,
    most: float,
    what: str,
    count: Callable[[Profile], float],
    hint: str,
    grows: bool = False,
) -> None:
    """Limit a figure of the small launch; `most` may grow with the work. Other sizes are drawn."""
    case = cases()[letter]
    (grown,) = fresh_inputs.instead([case.small[-2:]], WHOLE)
    sizes = (*case.small[:-2], *grown)  # the ring's length stays: shared memory has room for 1024
    launch = _launch(letter, *sizes)
    found = count(kernels.profiled(kernel, launch))
    if grows:
        most *= math.prod(sizes) / math.prod(case.small)
    if found > most:
        raise Unmet(f"{launch}\nit has {found:,.6g} {what}; the goal is at most {most:,.0f}\n{hint}")


def _sectors(profile: Profile) -> float:
    return float(loads(profile.lines, "global").sectors.sum())


def _in_double(profile: Profile) -> float:
    """Count the instructions that a warp runs on doubles."""
    return sum(site.instructions for site in profile.sites if "f64" in site.instruction.parts)


def _conflicts(profile: Profile) -> float:
    return float(profile.lines.conflicts.sum())


def _divisions(profile: Profile) -> float:
    """Count the divisions of a thread, and remainders."""
    sites = (site for site in profile.sites if site.instruction.parts[0] in ("div", "rem"))
    warps = math.prod(profile.launch.grid) * len(profile.by_warp)
    return sum(site.instructions for site in sites) / warps


def _idle(profile: Profile) -> float:
    return float(32 - profile.ptx["threads_per_instruction"])


def _fixed(
    letter: str,
    sizes: Sequence[tuple[int, ...]],
    hints: kernels.Hints,
    within: Criterion,
    *counted: Criterion,
) -> Exercise:
    """Make the exercise that asks for a faster kernel with the results of kernel `letter`."""
    number, make = FIRST + [*cases()].index(letter), partial(_launch, letter)
    more = letter not in CORE_FIXES
    return Exercise(f"09.{number}", f"Kernel {letter}, faster", 2, given=2, practice=more).asks(
        kernels.right_in("right results, as before", all_of(make, *sizes), hints),
        kernels.clean_in(all_of(make, sizes[-1]), hints),
        *counted,
        within,
    )


CORE_FIXES = "AB"
PAIRS = ((1, 300), (7, 256), (100, 33))  # rounds, n
SAME = "The fixed kernel computes what the slow one does, in the same launch: see the source above."
IN_A_ROW = (
    "The lanes of a warp should read neighbours in a row. Bring 32 columns of the block's 128 rows into "
    "shared memory, as in notebook 05, and let each thread add up its own row from there."
)
FLOATS = "0.999 is a double, and 0.999f a float. A float times a double is worked out in double precision."
CHAINS = (
    "Each multiply-add waits for the one before, and 2 warps per scheduler are too few to fill the 4 cycles. "
    "The four start values do not depend on each other: work on all four in each round."
)
PAD = "A column of the tile lies in one bank. With 33 words per row it lies in 32 banks, as in notebook 05."
WRAP = "The place grows by 1 in each round. Work out the remainder once, before the loop, and wrap around."
SELECT = (
    "The two loops differ in a factor alone. Choose the factor before one loop that all lanes go through "
    "together; or give even elements to some warps and odd ones to others."
)
UNNAMED = (
    _fixed(
        "A", ((128, 32), (300, 45), (1, 1), (129, 100)),
        kernels.Hints(
            f"{SAME} Each row's sum has all its columns, and no others.",
            "Compare the row with rows and the column with cols before you read; a tile holds 0 elsewhere.",
            "Put a barrier between filling a tile and reading what other threads filled, and another before "
            "it is filled again. All threads of the block must reach both, also those without a row.",
        ),
        _within("A", 0.056, IN_A_ROW),
        _counted("A", 1.1 * 512 * 256 * 4 / 32, "sectors of global loads", _sectors, IN_A_ROW, grows=True),
    ),
    _fixed(
        "B", PAIRS, kernels.Hints(SAME), _within("B", 0.02, FLOATS),
        _counted("B", 0, "instructions on doubles", _in_double, FLOATS),
    ),
    _fixed("C", PAIRS, kernels.Hints(SAME), _within("C", 0.0165, CHAINS)),
    _fixed(
        "D", ((1,), (3,)), kernels.Hints(SAME), _within("D", 0.18, PAD),
        _counted("D", 0, "bank conflicts", _conflicts, PAD),
    ),
    _fixed(
        "E", ((700, 7, 300), (5, 12, 256), (1, 3, 40), (800, 100, 1100)),
        kernels.Hints(f"{SAME} The element after the last of the ring is its first."),
        _within("E", 0.08, WRAP),
        _counted("E", 4, "divisions and remainders per thread", _divisions, WRAP),
    ),
    _fixed(
        "F", PAIRS, kernels.Hints(SAME), _within("F", 0.105, SELECT),
        _counted("F", 3, "idle threads per instruction", _idle, SELECT),
    ),
)  # fmt: skip


def _sound(make: Callable[[int], Launch], hints: kernels.Hints) -> tuple[Criterion, ...]:
    """Ask for right results for any n, and for the right reason."""
    return (
        kernels.right_in("right for whole blocks", all_of(make, 256, 1024, whole=THREADS), hints),
        kernels.right_in("right for n = 1, 33, 300", all_of(make, 1, 33, 300), hints),
        kernels.clean_in(all_of(make, 300), hints),
    )


EXERCISES = (
    Exercise("09.1", "Shares of a total", 2).asks(
        *_sound(_shares, WAIT),
        kernels.loads_in(
            *(170, "still a tree: a block of 256 loads at most 170 times", _shares, (256,), (512,)),
            whole=THREADS,
            hint=TREE,
        ),
        _few_barriers(),
    ),
    Exercise("09.2", "Neighbours that are not there", 2).asks(
        kernels.shared_out(
            kernels.right_in(
                "right where blocks cover the matrix",
                all_of(_heat, (16, 16), (32, 48), whole=SIDE),
                NEIGHBOURS,
            ),
            kernels.Shares(lambda _: _heat(3 * SIDE, 4 * SIDE)),
        ),
        kernels.right_in(
            "right where they stick out", all_of(_heat, (1, 1), (1, 40), (40, 1), (31, 33)), NEIGHBOURS
        ),
        kernels.clean_in(all_of(_heat, (31, 33)), NEIGHBOURS),
    ),
    Exercise("09.3", "Right, wrong or refused", 2, magic="answer", function="verdict", practice=True).asks(
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
    Exercise("09.4", "A tile with both its edges", 2, practice=True).asks(
        kernels.right_in("right inside the array", all_of(_smooth, 1024, whole=128), EDGES),
        kernels.right_in("right for n = 1, 5, 127, 129, 300", all_of(_smooth, 1, 5, 127, 129, 300), EDGES),
        kernels.clean_in(all_of(_smooth, 129, 300), EDGES),
        kernels.loads_in(
            64,
            "from global memory a warp loads its elements once: at most 64 requests for n = 1024",
            _smooth,
            *((1024,), (640,)),
            whole=128,
            spaces=("global",),
            hint="Neighbouring threads need the same elements. Load each into the tile once, and add up from "
            "there.",
        ),
    ),
    Exercise("09.5", "A barrier for everyone", 2).asks(
        *_sound(_running, EVERYONE),
        kernels.loads_in(
            *(200, "still 8 steps: a block of 256 loads at most 200 times", _running, (256,), (512,)),
            whole=THREADS,
            hint=STEPS,
        ),
    ),
    Exercise(
        "09.6", "Where a product is wrong", 2, magic="answer", function="wrong_tiles", practice=True
    ).asks(
        host.locates(
            "[] for right products, summed in any order, from small elements to large",
            *host.right(host.Factors(K=1), *(host.Factors(scale=scale) for scale in (1, 1000, 0.001))),
            *host.right(host.Factors(K=40_000, rows=7, cols=9, positive=True)),
            *host.right(host.Factors(K=20_000, rows=7, cols=9, positive=True, alike=True))[:1],
            *host.right(host.Factors(), tile=6)[:1],
            *host.WRONG,
        ),
        host.locates("also where the terms cancel", *host.right(host.Factors(cancels=True)), *host.WRONG),
        host.locates(
            "the tile of a lost term",
            *host.wrong(host.lost_term, LOST, *(host.Factors(scale=scale) for scale in (1, 1000, 0.01))),
            *host.wrong(partial(host.lost_term, sign=-1), LOST, host.Factors(), host.Factors(scale=0.01)),
            *host.wrong(host.lost_term, LOST, host.Factors(small_row=True), host.Factors(positive=True)),
            *host.wrong(host.lost_term, LOST, host.Factors(K=2, small_term=True), tile=4),
            *host.RIGHT,
        ),
        host.locates(
            "the tile of NaN or infinity",
            *host.wrong(partial(host.with_one, np.nan), "one element is NaN", host.Factors()),
            *host.wrong(partial(host.with_one, np.inf), "one element is infinite", host.Factors()),
            *host.RIGHT,
        ),
        host.locates(
            "every tile, where sums are kept in half precision, and a row or column of tiles",
            *host.wrong(host.half_sum, "sums are kept in 16 bits", host.Factors(), tile=6),
            *host.wrong(partial(host.without, 0), "a row of tiles is 0", host.Factors(), tile=6),
            *host.wrong(partial(host.without, 1), "a column of tiles is 0", host.Factors(), tile=3),
            *host.RIGHT,
        ),
        host.locates(
            "tiles that stick out",
            *host.wrong(host.lost_term, LOST, host.Factors(), at_edge=True),
            *host.wrong(host.lost_term, LOST, host.Factors(rows=15), at_edge=True),
            *host.wrong(host.lost_term, LOST, host.Factors(), tile=6, at_edge=True),
            *host.wrong(
                host.lost_term,
                f"{LOST}, and the tile is larger than the product",
                host.Factors(),
                tile=32,
                at_edge=True,
            ),
            *host.wrong(
                partial(host.without, 1), "the last column of tiles is 0", host.Factors(), at_edge=True
            ),
            *host.RIGHT,
        ),
    ),
    Exercise("09.7", "A clock that waits", 2, magic="answer", function="time_ms", practice=True).asks(
        host.times("it waits for the kernel", host.EARLIER, {"kernel_ms": 4}, {"kernel_ms": 22}),
        host.times("what was in the queue is not counted", host.EARLIER, {"kernel_ms": 4, "queued_ms": 50}),
        host.times(
            "nor is what only the first launch takes",
            host.FIRST,
            {"kernel_ms": 4, "first_ms": 100},
            {"kernel_ms": 3, "first_ms": 40, "queued_ms": 20},
        ),
    ),
    Exercise("09.8", "Seven diagnoses", 4, magic="answer", function="diagnosis").asks(
        *map(_diagnosed, DIAGNOSES)
    ),
    *UNNAMED,
)
