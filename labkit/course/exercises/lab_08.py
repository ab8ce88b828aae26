"""Exercises of 08_to_cublas: several elements per thread, four per request, and what to expect of a tile."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import ceil, prod

import numpy as np
import pandas as pd

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import SOUND, Hints, listed, missed, no_finding_in, profiled, right_in
from labkit.course.criteria.launches import Launches, as_said
from labkit.course.criteria.predicted import product, quicker, verified
from labkit.course.criteria.products import OWNER
from labkit.course.criteria.python import returns
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from simt import AnyKernel, Profile
from simt.common.limits import WARP
from simt.counters.profile import Site, loads, stores

# What loads are counted for, which is no matter of one size; and what may be drawn in its place, where tiles
# of 64 fit, and rows of 128.
COUNTED = {
    Matmul(128, 128, 32): tuple(
        Matmul(*size) for size in ((128, 256, 32), (192, 128, 48), (64, 128, 64), (256, 128, 16))
    ),
    Matmul(64, 256, 16): tuple(
        Matmul(*size) for size in ((64, 384, 16), (128, 256, 48), (192, 256, 32), (64, 512, 32))
    ),
}
SHAPES = ((1, 1, 1), (31, 33, 5), (45, 29, 67), (70, 40, 9))

# Of 08.4: M, N, the tile's rows and columns, blocks on an SM, a rate, and the SMs.
Expected = tuple[int, int, int, int, int, float, int]
SIDES = (16, 32, 64, 128, 256)

FOURFOLD = " A float4 counts as four loads here: it brings four elements."
ONCE = (
    "An element should come from global memory once per block, through the tiles. Neighbouring threads "
    "should bring neighbouring elements of a row, at least 8 of them: a sector."
)
BARRIERS = "Two barriers per round: complete before it is read, read before it is overwritten."
INSIDE = "Compare each index with the size that bounds it: rows of A and C with M, columns of B and C with N."
FILLED = "All threads together fill both tiles in every round, past the edges of A and B with 0."
EDGES = (
    "Where tiles stick out: the last round along K is like any other, with 0 for what A and B lack, and each "
    "element inside C is stored, also one whose neighbours are outside."
)
COLUMN = Hints(
    "A thread's sums belong to different rows of C and start at 0 once, before the first round. In the round "
    "of k0 the block needs A[row, k0 …] of all its rows, and B[k0 …, col].",
    INSIDE,
    BARRIERS,
    OWNER,
    EDGES,
    unfilled=FILLED,
)
SQUARE = Hints(
    "Which rows and columns does a thread compute? The same numbers y and x must stand in the reads from the "
    "tiles and in the store to C, and all threads together must cover the 32 x 32 elements once.",
    INSIDE,
    BARRIERS,
    OWNER,
    EDGES,
    unfilled=FILLED,
)
FOUR = Hints(
    "Element j of the four belongs to column col + j, in B, in the sums and in C: also where N is not a "
    "multiple of 4.",
    "Compare row with M, k with K, and each of the four columns, col + j, with N.",
    owner="Each element of C is the work of one thread alone: columns from N on belong to the next row.",
    misaligned="A load or store of 16 bytes wants an address that is a multiple of 16 bytes. Rows begin at "
    "one only if N is a multiple of 4. What of other N?",
)


def _right(text: str, *sizes: tuple[int, int, int], hints: Hints) -> Criterion:
    """Ask for right results, launched as the cell says."""
    return right_in(text, _said(*sizes), hints)


def _clean(size: tuple[int, int, int], hints: Hints) -> Criterion:
    """Ask that `kernel.check` finds nothing, launched likewise."""
    return no_finding_in(SOUND, _said(size), hints)


def _said(*sizes: tuple[int, int, int]) -> Launches:
    return lambda kernel: [
        as_said(kernel, Matmul(M, N, K)) for M, N, K in fresh_inputs.sizes(sizes, fresh_inputs.TILES)
    ]


@lru_cache(maxsize=len(COUNTED))
def _counted(kernel: AnyKernel, problem: Matmul, seed: int) -> Profile:
    return profiled(kernel, as_said(kernel, problem))


def _profiles(kernel: AnyKernel) -> Iterator[tuple[Matmul, int, Profile]]:
    """Yield what is counted: the problem, the multiply-adds of its warps, and the profile.

    All goals that are judged with one seed share the profiles.
    """
    for stated, others in COUNTED.items():
        problem = fresh_inputs.one_of(stated, others)
        yield (
            problem,
            problem.M * problem.N * problem.K // WARP,
            _counted(kernel, problem, fresh_inputs.fresh(0)),
        )


@criterion("at most {most:g} loads from {space} memory per multiply-add")
def _loads(kernel: AnyKernel, most: float, space: str, hint: str) -> None:
    """Limit the requests to load per multiply-add of a warp, all lines together.

    A request for float4 to shared memory counts as four, as it brings four elements.
    """
    for problem, multiply_adds, profile in _profiles(kernel):
        lines, told = loads(profile.lines, space), hint
        if space == "shared":
            width = lines.useful_bytes / lines.threads / 4
            lines = lines.assign(requests=lines.requests * width)
            told += FOURFOLD if (width > 1).any() else ""
        each = lines.requests.sum() / multiply_adds
        if each > most:
            found = f"{problem}: {each:.4g} loads from {space} memory per multiply-add"
            lines = lines.assign(loads=lines.requests / multiply_adds)
            raise missed(found, f"at most {most:g}", lines, _costs(lines, "loads"), told)


@criterion("the tiles come from global memory once per block, in whole sectors")
def _traffic(kernel: AnyKernel) -> None:
    for problem, multiply_adds, profile in _profiles(kernel):
        lines, most = loads(profile.lines, "global"), multiply_adds * WARP // 128  # as tiles of 32 x 32 need
        if lines.sectors.sum() > most:
            found = f"{problem}: {lines.sectors.sum()} sectors"
            raise missed(found, f"at most {most}", lines, _costs(lines, "sectors"), ONCE)


@criterion("the sums stay in registers")
def _in_registers(kernel: AnyKernel) -> None:
    for problem, _, profile in _profiles(kernel):
        lines = profile.lines.query("space == 'local'")
        if len(lines):
            raise Unmet(
                f"{problem}: an array lies in local memory, which is a part of global memory\n"
                f"{listed(lines, _costs(lines, 'requests'))}\n"
                "An array is only kept in registers if the compiler knows each index. Give the loops over it "
                "constant bounds, such as i < 4, so that they can be unrolled."
            )


@criterion("four elements of B per load, four of C per store")
def _wide(kernel: AnyKernel) -> None:
    """Ask that B and C are moved by 16 bytes per lane."""
    for problem, _, profile in _profiles(kernel):
        lines = profile.lines
        lines = lines.assign(bytes=lines.useful_bytes / lines.threads)
        loaded, stored = loads(lines, "global"), stores(lines, "global")
        if not (loaded.bytes == 16).any():
            raise Unmet(
                f"{problem}: no load moves 16 bytes per thread\n{listed(loaded, _costs(loaded, 'bytes'))}\n"
                "*(const float4*)&B[index] is one load of four neighbouring floats."
            )
        most = problem.M * problem.N // 4 // WARP
        if stored.requests.sum() > most:
            found, costs = f"{problem}: {stored.requests.sum()} requests to store", _costs(stored, "requests")
            hint = "*(float4*)&C[index] = … is one store of four neighbouring floats."
            raise missed(found, f"at most {most}", stored, costs, hint)


def _costs(lines: pd.DataFrame, what: str) -> list[str]:
    """Write what each line costs."""
    return [f"{number:.4g} {what}" for number in lines[what]]


def _rate(M: int, N: int, tile_m: int, tile_n: int, per_sm: int, rate: float, sms: int) -> float:
    """Return what 08.4 asks for."""
    blocks, slots = ceil(M / tile_m) * ceil(N / tile_n), per_sm * sms
    return rate * blocks / (slots * ceil(blocks / slots))


def _expects(text: str, hint: str, *cases: Expected) -> Criterion:
    return returns(text, *cases, of=_rate, draw=_drawn, hint=hint, relative=1e-6)


def _drawn(rng: np.random.Generator, base: Expected) -> Expected:
    """Draw another product and GPU, of the same _kind."""
    while True:
        tile_m, tile_n, per_sm = int(rng.choice(SIDES)), int(rng.choice(SIDES)), int(rng.integers(1, 9))
        M, N = (
            int(rng.integers(1, 5000)) if size % side else tile * int(rng.integers(1, 33))
            for size, side, tile in ((base[0], base[2], tile_m), (base[1], base[3], tile_n))
        )
        sms = base[6] if base[6] == 132 else int(rng.integers(20, 150))
        case = M, N, tile_m, tile_n, per_sm, round(rng.uniform(5, 60), 1), sms
        if _kind(*case) == _kind(*base):
            return case


def _kind(M: int, N: int, tile_m: int, tile_n: int, per_sm: int, rate: float, sms: int) -> tuple[bool, ...]:
    """Tell whether M, and whether N, sticks out of the tiles, and whether one wave of blocks is enough."""
    return M % tile_m > 0, N % tile_n > 0, ceil(M / tile_m) * ceil(N / tile_n) <= per_sm * sms


def _sound(hints: Hints) -> tuple[Criterion, ...]:
    """Ask for right results for any shape, for the right reason, with the sums in registers."""
    return (
        _right("right where the tiles fit", (64, 64, 64), (32, 96, 40), hints=hints),
        _right("right for any shape, 1 to 70", *SHAPES, hints=hints),
        _clean((45, 40, 19), hints),
        _in_registers(),
    )


# 08.4: see Expected.
WITHIN = (512, 512, 128, 256, 1, 52.0, 132), (1024, 512, 64, 64, 3, 20.0, 132)
SEVERAL = (
    (2048, 2048, 64, 64, 3, 20.0, 132), (4096, 4096, 128, 256, 1, 52.0, 132),
    (1056, 1024, 32, 32, 2, 9.0, 132), (1088, 1024, 32, 32, 2, 9.0, 132),
    (768, 704, 64, 64, 1, 9.0, 132),
)  # fmt: skip
RAGGED = (
    (500, 300, 128, 256, 1, 50.0, 132), (129, 4096, 128, 64, 2, 30.0, 132),
    (100, 5000, 64, 128, 2, 30.0, 132), (1, 1, 16, 16, 8, 8.0, 132),
)  # fmt: skip
SMALLER = (1024, 1024, 128, 128, 2, 10.0, 40), (777, 555, 64, 32, 4, 6.5, 24)

# 08.5: the square of 08.2, four elements per request.

LARGE = Matmul(2048, 2048, 2048)
TURNED = (
    "Four rows of one k are neighbours in a tile of A that is stored turned, A_tile[k][row]; four columns "
    "are neighbours in B_tile[k]. One float4 from each serves 16 multiply-adds."
)
FOURS = Hints(
    "A thread's four rows are now neighbours, and so are its four columns: the store to C has to name the "
    "same ones as the reads from the tiles.",
    INSIDE,
    BARRIERS,
    OWNER,
    EDGES,
    unfilled=FILLED,
    misaligned="A float4 in shared memory begins at a multiple of 16 bytes: alignas(16) for the tile, and "
    "rows whose length is a multiple of 4.",
)


@criterion("at most {most:g} requests to shared memory per multiply-add")
def _few_requests(kernel: AnyKernel, most: float) -> None:
    """Limit the requests to load, however wide, per multiply-add of a warp."""
    for problem, multiply_adds, profile in _profiles(kernel):
        lines = loads(profile.lines, "shared")
        each = lines.requests.sum() / multiply_adds
        if each > most:
            found = f"{problem}: {each:.4g} requests to shared memory per multiply-add"
            lines = lines.assign(requests=lines.requests / multiply_adds)
            raise missed(found, f"at most {most:g}", lines, _costs(lines, "requests"), TURNED)


@criterion("at most {most:g} bank conflicts per multiply-add, stores included")
def _few_conflicts(kernel: AnyKernel, most: float) -> None:
    for problem, multiply_adds, profile in _profiles(kernel):
        lines = profile.lines.query("space == 'shared'")
        each = lines.conflicts.sum() / multiply_adds
        if each > most:
            found = f"{problem}: {each:.3g} bank conflicts per multiply-add"
            hint = (
                "Neighbouring lanes bring neighbours of a row of A, and the turned tile has them below each "
                "other. Make its rows a little longer, by a multiple of 4, "
                "so that these lie in different banks."
            )
            raise missed(found, f"at most {most:g}", lines, _costs(lines, "conflicts"), hint)


# 08.6: the next tile is on its way while this one is multiplied.

DEEP = Matmul(64, 64, 128)
OTHER_DEEP = tuple(Matmul(*size) for size in ((64, 96, 160), (96, 64, 128), (32, 128, 192), (128, 32, 96)))
STEPS = 8  # of k, in a tile of 08.5
AHEAD = 1 / 4  # of the loads may fill the first tiles, before there is anything to multiply
TWO_TILES = 4608  # bytes: two pairs of tiles, and room for padding
NEXT_FIRST = (
    "Begin a round by loading the next tile into registers. Then come the multiply-adds, and only then the "
    "stores to the other buffer. What cp.async starts, the simulator loads and stores at once: use registers."
)
ONE_BARRIER = (
    "Where a round reads one buffer and fills the other, a single barrier at its end does both: the other "
    "is complete, and this one may be overwritten."
)
SMALLER_TILES = "Two buffers with 8 steps of k each are enough."
BUFFERS = Hints(
    "In the round of k0 the multiply-adds need the tile of k0, and the registers hold that of k0 + 8. Which "
    "buffer has which?",
    INSIDE,
    "A round reads one buffer and fills the other; the barrier between two rounds is for all threads, and "
    "the first tile needs one, too.",
    OWNER,
    EDGES,
    unfilled="The first tile is loaded and stored before the loop. Each round fills all of the other buffer.",
    misaligned=FOURS.misaligned,
)


@lru_cache(maxsize=1)
def _deep(kernel: AnyKernel, problem: Matmul, seed: int) -> Profile:
    return profiled(kernel, as_said(kernel, problem))


def _counted_deep(kernel: AnyKernel) -> tuple[Matmul, int, Profile]:
    """Return a deep problem, the warps of its launch, and its profile, which two goals share."""
    problem = fresh_inputs.one_of(DEEP, OTHER_DEEP)
    launch = as_said(kernel, problem)
    warps = prod(launch.grid) * -(-prod(launch.block) // WARP)
    return problem, warps, _deep(kernel, problem, fresh_inputs.fresh(0))


@criterion("the next tile is loaded before this one is multiplied, and stored after that")
def _loads_ahead(kernel: AnyKernel) -> None:
    """Ask that half a tile's multiply-adds stand between most loads and the next store to shared memory.

    They are counted in the order of the code. Behind the last store, the loop's next turn counts.
    """
    problem, warps, profile = _counted_deep(kernel)
    least = problem.M * problem.N * STEPS / WARP / warps / 2
    sites = profile.sites
    numbers = [i for i, site in enumerate(sites) if _is_access(site, "ld", "global")]
    lines = pd.DataFrame(
        {
            "line": [sites[i].line for i in numbers],
            "source": [profile.source_line(sites[i].line).strip() for i in numbers],
            "requests": [sites[i].requests for i in numbers],
            "behind": [_multiply_adds_behind(sites, i, warps) for i in numbers],
        }
    )
    late = lines[lines.behind < least].sort_values("requests", ascending=False)
    if late.requests.sum() > AHEAD * lines.requests.sum():
        found = f"{problem}: {late.behind.iloc[0]:.4g} multiply-adds between a load and the next store"
        late = late.drop_duplicates("line")
        costs = (f"{count:.4g} multiply-adds" for count in late.behind)
        raise missed(found, f"at least {least:g}, half a tile", late, costs, NEXT_FIRST)


def _is_access(site: Site, op: str, space: str) -> bool:
    return site.op == op and site.space in (space, "generic") and site.requests > 0


def _multiply_adds_behind(sites: list[Site], load: int, warps: int) -> float:
    """Count the multiply-adds between a load and the next store to shared memory, per visit of the load."""
    count, visits = 0, sites[load].instructions
    next_turn = (site for site in sites[:load] if site.instructions > max(warps, visits / 2))
    for site in chain(sites[load + 1 :], next_turn):
        if _is_access(site, "st", "shared"):
            break
        count += site.instructions * (site.instruction.parts[0] == "fma")
    return count / visits


@criterion(f"at most one barrier per {STEPS} steps of k, and one for the first tile")
def _one_barrier(kernel: AnyKernel) -> None:
    problem, warps, profile = _counted_deep(kernel)
    barriers = sum(site.instructions for site in profile.sites if site.instruction.parts[0].startswith("bar"))
    most = problem.K // STEPS + 1
    if barriers > most * warps:
        raise Unmet(
            f"{problem}: a warp comes to {barriers / warps:.4g} barriers; the goal is at most {most}\n"
            f"{ONE_BARRIER}"
        )


@criterion("at most {most} bytes of shared memory")
def _shared_bytes(kernel: AnyKernel, most: int) -> None:
    if kernel.shared_size_bytes > most:
        raise Unmet(
            f"the kernel takes {kernel.shared_size_bytes} bytes of shared memory; "
            f"the goal is at most {most}\n{SMALLER_TILES}"
        )


# 08.7: which lanes of a warp read the same.

PATCH = Matmul(1024, 1024, 512)
OTHER_DEPTHS = (448, 480, 576, 640)
ELEMENTS = 16  # of C per thread
NO_MORE = (
    "Larger squares need fewer loads, too, as in 08.2. Here the square stays 4 x 4: change which thread of "
    "the warp has which square."
)
PAIRED = (
    "A load with 16 bytes per lane takes four wavefronts, and two where lanes read in pairs: each lane reads "
    "what the lane beside it reads (t and t ^ 1), or each what the lane two further on reads (t and t ^ 2). "
    "Let lanes of one kind of pair share rows, and those of the other columns."
)
SQUARES = replace(
    FOURS,
    usual="All threads together must cover the 32 x 32 elements once: each pair of one y and one x, of 0, 4, "
    "… to 28, belongs to one thread.",
)


@criterion("predicted for an H200: at most {most:g} wavefronts of shared memory per multiply-add")
def _few_wavefronts(kernel: AnyKernel, most: float) -> None:
    """Limit the wavefronts of loads and stores, bank conflicts included, as a prediction counts them."""
    problem = replace(PATCH, K=fresh_inputs.one_of(PATCH.K, OTHER_DEPTHS))
    launch = product(kernel, problem)
    elements = problem.M * problem.N / (prod(launch.grid) * prod(launch.block))
    if elements > ELEMENTS:
        raise Unmet(f"{problem}: {elements:g} elements per thread; the goal is {ELEMENTS}\n{NO_MORE}")
    counts = verified(kernel, launch).limits["count"]
    each = counts.get("shared memory", 0) / (problem.M * problem.N * problem.K / WARP)
    if each > most:
        raise Unmet(
            f"{problem}: {each:.3g} wavefronts per multiply-add; the goal is at most {most:g}\n{PAIRED}"
        )


EXERCISES = (
    Exercise("08.1", "A column of elements", 3, given=4).asks(
        *_sound(COLUMN),
        _traffic(),
        _loads(
            1.25,
            "shared",
            "An element of B in a register can serve four rows of A_tile: a thread then needs four "
            "sums at once, and the tile of A all rows that they belong to.",
        ),
    ),
    Exercise("08.2", "A square of elements", 3, given=5).asks(
        *_sound(SQUARE),
        _traffic(),
        _loads(
            0.5,
            "shared",
            "With m rows and n columns a thread reads m + n elements for m n multiply-adds: 16 + 1 for a "
            "column of 16. Which m and n have the smallest sum?",
        ),
    ),
    Exercise("08.3", "Four elements per request", 3, given=4, practice=True).asks(
        _right("right where N is a multiple of 4", (16, 128, 20), (9, 36, 7), (3, 260, 5), hints=FOUR),
        _right("right where it is not", (8, 129, 6), (5, 130, 9), (9, 131, 4), (1, 1, 1), hints=FOUR),
        _clean((9, 70, 5), FOUR),
        _in_registers(),
        _wide(),
        _loads(
            0.5,
            "global",
            "One load of A and one of B serve all four elements of a thread: two for four multiply-adds.",
        ),
    ),
    Exercise(
        "08.4", "What to expect of a tile", 2, magic="answer", given=1, function="expected", practice=True
    ).asks(
        _expects(
            "a part of the block slots taken, in one wave",
            "So many blocks of so many block slots have work.",
            *WITHIN,
        ),
        _expects(
            "several waves, of which the last may be short",
            "The block slots are filled anew in every wave, and the last wave takes as long as the others, "
            "however few blocks it has. Share the blocks among all slots of all waves.",
            *SEVERAL,
        ),
        _expects(
            "tiles that stick out over the edges of C",
            "A tile that sticks out is a block, too: the numbers of tiles along M and along N are each "
            "rounded up. TILE_M counts rows, of which there are M.",
            *RAGGED,
        ),
        _expects(
            "other GPUs",
            "sms says how many SMs there are, per_sm how many blocks each of them holds.",
            *SMALLER,
        ),
    ),
    Exercise("08.5", "A square of fours", 3, given=5, practice=True).asks(
        *_sound(FOURS),
        _traffic(),
        _few_requests(0.2),
        _few_conflicts(0.05),
        quicker(
            *(2.5, "tiled", LARGE, "M = N = K = 2048"),
            others=(1792, 1920, 2176, 2304),
            hint="The first of these limits is the one to work on. Latency: do all loads of a round leave "
            "before the first of them is needed? A loop whose steps the compiler can count is unrolled.",
        ),
    ),
    Exercise("08.6", "A double buffer", 3, given=5, practice=True).asks(
        *_sound(BUFFERS), _traffic(), _loads_ahead(), _one_barrier(), _shared_bytes(TWO_TILES)
    ),
    Exercise("08.7", "The lanes of a warp tile", 3, given=5, practice=True).asks(
        *_sound(SQUARES), _traffic(), _few_wavefronts(0.36)
    ),
)
