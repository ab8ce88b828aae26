"""Exercises of 12_reductions: a tree in whole warps, shuffles, a histogram, turns of atomics, softmax."""

from dataclasses import replace
from functools import partial

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import (
    SOUND,
    Hints,
    clean_in,
    global_loads,
    listed,
    loads_in,
    missed,
    no_finding_in,
    profiled,
    right_in,
)
from labkit.course.criteria.launches import Given, Launch, Make, all_of
from labkit.course.criteria.python import returns
from labkit.course.exercise import Exercise, Unmet, criterion
from simt import AnyKernel, Profile
from simt.common.errors import SimtError
from simt.common.limits import WARP
from simt.counters.sectors import SECTOR_BYTES
from simt.sass.control_slice import WAITS
from simt.timing.prediction import NoPrediction

THREADS = 256  # of a block of 12.2 to 12.5
WARPS = THREADS // WARP

# 12.1: which warps have work in a round of a tree.

Round = tuple[int, int, bool]  # threads of the block, those that add, and whether they are the first ones


def _warps(threads: int, adders: int, first: bool) -> int:
    return -(-adders // WARP) if first else min(adders, threads // WARP)


def _drawn_round(rng: np.random.Generator, base: Round) -> Round:
    threads = int(2 ** rng.integers(6, 11))
    return threads, threads >> int(rng.integers(1, threads.bit_length())), base[2]


WARPS_HINT = (
    "A warp is 32 neighbouring threads. If the adding threads are the first ones, they fill warp after warp. "
    "If they are spread evenly, each lies threads / adders after the one before: is there one in every warp?"
)

# 12.2 and 12.3: where each block's largest element lies, and its value.

PADDED = "A thread without an element brings a value below all others, such as -1e30f: all may be below 0."
TREE = Hints(
    "Thread t has element i = blockIdx.x * 256 + t, and i is its index in x. A value and its index move "
    "together: who takes the one takes the other.",
    "Load x[i] only where i < n. " + PADDED,
    race="In each round a thread reads what another has written in the round before. A __syncthreads() must "
    "stand between the rounds, for all threads of the block.",
    sync="Every thread of the block must come to every barrier: put __syncthreads() after the if, not in it.",
    unfilled="Fill all 256 pairs, also those of threads without an element.",
)
PAST = replace(TREE, usual=PADDED)
TIES = replace(
    TREE,
    usual="Of two equal values keep the one with the smaller index, whichever thread has it: after the first "
    "round thread 0 may hold element 128, and thread 64 element 64.",
)
SHUFFLES = Hints(
    "The largest element of a warp is in lane 0 after five shuffles, with 16, 8, 4, 2 and 1 lanes between. "
    "Those of the 8 warps meet in shared memory, and one warp compares them in the same way. All elements "
    "may be below 0.",
    "Load x[i] only where i < n, and mosts[t] only where there is a warp t. Else the thread brings -1e30f.",
    race="One __syncthreads() must stand between the stores of the warps' largest elements and the loads.",
    sync="All 32 lanes that the mask names must come to a shuffle. A shuffle inside an if that some lanes "
    "skip waits for them.",
    unfilled="There are 8 warps, so only 8 numbers in shared memory. Other lanes bring -1e30f.",
)


def _of_blocks(n: int, make: Make) -> Launch:
    return Launch(Given(f"n={n}", make, (n,), n), (-(-n // THREADS),), (THREADS,))


def _largest(n: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.integers(-2000, -1, n, endpoint=True).astype(np.float32)
        return x, np.maximum.reduceat(x, np.arange(0, n, THREADS))

    return _of_blocks(n, make)


def _where(n: int, different: int = 4000) -> Launch:
    """Make a launch that finds where each block's largest element lies; x has values that differ, at most.

    All are below 0. Where n is larger than `different`, values come several times.
    """

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = (rng.permutation(max(n, different)) % different - different).astype(np.float32)[:n]
        return x, np.array(
            [first + x[first : first + THREADS].argmax() for first in range(0, n, THREADS)], np.int32
        )

    return _of_blocks(n, make)


MOST_BYTES = THREADS * 8  # of shared memory: a value and an index per thread
MOST_LOADS = 100  # of a block's warps: in 12 comparisons of warps up to 6 each, and 9 more
FEW_LOADS = WARP  # of shared memory: after shuffles the warps' pairs may be compared one by one
LEAST_LANES = 8  # at work in a load: 21 in a tree of whole warps, 5 where threads are spread over all warps
AS_TREE = (
    "In a tree, half of the threads compare in the first round, a quarter in the second, and so on. Threads "
    "that meet in one place, as by atomicMax, take turns, and a thread that goes through the elements works "
    "alone."
)


@criterion("in each round whole warps work or rest, without bank conflicts")
def _in_whole_warps(kernel: AnyKernel) -> None:
    """Count lanes at work in loads. Branches do not tell: lanes part where only some find a larger value."""
    ((n,),) = fresh_inputs.instead([(5 * THREADS,)], THREADS)
    launch = _where(n)
    blocks, lines = launch.grid[0], profiled(kernel, launch).lines
    shared = lines.query("space == 'shared'")
    own = shared[shared.op == "ld"]
    lanes = own.threads.sum() / max(1, own.requests.sum())
    if lanes < LEAST_LANES and own.requests.sum() > FEW_LOADS * blocks:
        costs = (f"{each:.3g} lanes" for each in own.threads / own.requests)
        raise Unmet(
            f"{launch}\nin a load from shared memory {lanes:.3g} of 32 lanes are at work on average; the "
            f"goal is at least {LEAST_LANES}\n{listed(own, costs)}\n"
            "Let the first threads of the block compare: in the round with `apart` pairs left, threads 0 to "
            "apart - 1. Thread t takes the pair t + apart."
        )
    worst = shared[shared.conflicts > 0]
    if len(worst):
        costs = (f"{each} bank conflicts" for each in worst.conflicts)
        raise Unmet(
            f"{launch}\n{worst.conflicts.sum()} bank conflicts; the goal is 0\n{listed(worst, costs)}\n"
            "Neighbouring threads should read neighbouring words: values in one array, indices in another. "
            "Where `apart` pairs will be left, take the one that lies `apart` further on, not the next one."
        )
    atomics = lines.op.isin(["atom", "red"])
    each_loads = lines.requests.where(~atomics, lines.threads)[atomics | (lines.op == "ld")] / blocks
    if each_loads.sum() > MOST_LOADS:
        costs = (f"{count:.4g} times per block" for count in each_loads)
        raise Unmet(
            f"{launch}\nwarps load {each_loads.sum():.4g} times per block; the goal is at most {MOST_LOADS}\n"
            f"{listed(lines.loc[each_loads.index], costs)}\n{AS_TREE}"
        )


@criterion(f"at most {MOST_BYTES} bytes of shared memory: a value and an index per thread")
def _of_pairs(kernel: AnyKernel) -> None:
    if kernel.shared_size_bytes > MOST_BYTES:
        raise Unmet(
            f"the kernel takes {kernel.shared_size_bytes} bytes of shared memory; the goal is at most "
            f"{MOST_BYTES}: 256 pairs of 8 bytes. A round may write over the pairs of the one before."
        )


@criterion("one barrier, and at most 32 words of shared memory")
def _one_barrier(kernel: AnyKernel) -> None:
    ((n,),) = fresh_inputs.instead([(4 * THREADS,)], THREADS)
    launch = _largest(n)
    if kernel.shared_size_bytes > 4 * WARP:
        raise Unmet(
            f"the kernel takes {kernel.shared_size_bytes} bytes of shared memory; the goal is at most "
            f"{4 * WARP}: one float per warp of the largest block."
        )
    sites = profiled(kernel, launch).sites
    waits = sum(each.instructions for each in sites if each.instruction.parts[0] in ("bar", "barrier"))
    warps = launch.grid[0] * WARPS
    if waits > warps:
        raise Unmet(
            f"{launch}\neach warp waits at {waits / warps:.3g} barriers; the goal is 1\n"
            "Lanes of a warp exchange values by __shfl_down_sync without a barrier. Only between the warps "
            "one is needed."
        )


# 12.4: one sum of all blocks, in one launch.

FINISH = Hints(
    "Each block stores its sum in parts[blockIdx.x] and counts itself. The block whose count says that all "
    "others have counted adds up parts, and it alone writes *out. All of its 32 lanes need to know that "
    "theirs is the last block. And the count must be back at 0 for the next launch.",
    "There are gridDim.x blocks, and as many elements of parts.",
    owner="Threads of different blocks meet here, in no order. Count with an atomic operation. Between the "
    "store of a block's sum and the count stands __threadfence(), so that who sees the count sees the sum. "
    "Only the last block reads parts.",
    sync="All 32 lanes must come to a shuffle: those that know nothing yet, too.",
)


def _total(n: int, blocks: int, times: int = 1) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.integers(-1000, 1001, n).astype(np.float32)
        return x, x.sum(keepdims=True)

    return Launch(Given(f"n={n}", make, (n,), n + blocks), (blocks,), (WARP,), times=times)


WAITING = (
    "Blocks run in any order, and those that have no room yet begin when others end: no block may wait for "
    "another. Each counts itself and goes on; the one that finds all others counted does the rest."
)
FENCED = (
    "Between the store of a block's sum and the count stands __threadfence(): without it others may see them "
    "in another order, atomic operations, too."
)


@criterion("right for 1 to 64 blocks")
def _waits_for_nobody(kernel: AnyKernel, *sizes: tuple[int, int]) -> None:
    """Ask for right results, and before that, that no loop goes on until another block lets it end."""
    launch = _total(*sizes[0])
    try:
        kernel.predict(launch.grid, launch.block, launch.task.args(np))
    except SimtError as error:  # what else is wrong with it a launch tells
        if isinstance(error, NoPrediction) and WAITS in str(error):
            raise Unmet(f"{str(error).partition(': ')[2]}\n{WAITING}") from None
    right_in("", all_of(_total, *sizes), FINISH).test(kernel)


def _in_order(launch: Launch, profile: Profile) -> None:
    """Raise Unmet where a block's sum and its count are written in no order."""
    each_block = [
        (site.instruction, site.op, site.space)
        for site in profile.sites
        if site.instructions >= launch.grid[0]
        and (site.op in ("st", "atom", "red") or site.instruction.family.is_fence)
    ]
    writes = [
        at
        for at, (_, op, space) in enumerate(each_block)
        if op in ("st", "atom", "red") and space == "global"
    ]
    counts = [at for at in writes if each_block[at][1] != "st"]
    fences = [
        at
        for at, (instruction, _, _) in enumerate(each_block)
        if instruction.family.is_fence or set(instruction.parts) & {"release", "acq_rel"}
    ]
    if counts and writes[0] < counts[-1] and not any(writes[0] < at <= counts[-1] for at in fences):
        line = each_block[counts[-1]][0].line
        raise Unmet(f"{launch}\nline {line}: {profile.source_line(line).strip()}\n{FENCED}")


@criterion("each block adds its share")
def _shared_by_blocks(kernel: AnyKernel) -> None:
    ((n, blocks),) = fresh_inputs.instead([(4000, 8)])
    launch = _total(n, blocks)
    _in_order(launch, profiled(kernel, launch))
    _each_its_share(kernel, launch, n)


def _each_its_share(kernel: AnyKernel, launch: Launch, n: int) -> None:
    """Raise Unmet where a block loads much more than its share of the n elements."""
    loaded, blocks = launch.loaded_by_block(kernel), launch.grid[0]
    if max(loaded) > 2 * n / blocks:
        most = loaded.index(max(loaded))
        raise Unmet(
            f"{launch}\nblock {most} loads {max(loaded)} elements; its share is {n // blocks}. Leave the "
            "loop over the elements as it is: each block takes its own."
        )


# 12.5: a histogram, in dynamic shared memory.

BINS = Hints(
    "Each block counts its own elements in shared memory: element i of the grid's threads, then gridDim.x * "
    "blockDim.x further on. At the end it adds each of its bins to counts.",
    "Bins are numbered 0 to bins - 1, and elements 0 to n - 1. Let each thread go over bins in steps of "
    "blockDim.x.",
    race="A block's counts must be 0 before anyone adds, and complete before anyone reads them: a "
    "__syncthreads() after each. Threads that add to one bin at the same time need atomicAdd.",
    owner="Blocks add to counts at the same time: use atomicAdd there, too.",
    unfilled="Set all bins of the block to 0 first, and wait at a barrier.",
    twice="Threads that add to the same bin at the same time lose counts: use atomicAdd.",
)


def _histogram(n: int, bins: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = (bins * rng.random(n) ** 3).astype(np.int32)  # the first bins have most
        return x, np.bincount(x, minlength=bins).astype(np.int32)

    given = Given(f"n={n}, bins={bins}", make, (n, bins), n, starts_at_0=True)
    return Launch(given, (3,), (THREADS,), 4 * bins)


@criterion("blocks count in dynamic shared memory, and add each bin to the result once")
def _counted_in_blocks(kernel: AnyKernel) -> None:
    ((n, bins),) = fresh_inputs.instead([(20_000, 100)])
    if kernel.shared_size_bytes:
        raise Unmet(
            f"the kernel declares {kernel.shared_size_bytes} bytes of shared memory, for a number of bins "
            "that it cannot know. Declare `extern __shared__ int mine[];` without a size: the launch gives "
            "4 * bins bytes."
        )
    launch = _histogram(n, bins)
    atomics = profiled(kernel, launch).lines.query("op in ('atom', 'red')")
    own, result = (atomics[atomics.space == space] for space in ("shared", "global"))
    most = launch.grid[0] * bins
    if result.threads.sum() > most:
        costs = (f"{count} additions" for count in result.threads)
        raise missed(
            f"{launch}\n{result.threads.sum()} atomic additions to global memory",
            f"at most {most}, one per block and bin",
            result,
            costs,
            "Count in shared memory first. Add the block's bins to counts at the end.",
        )
    if own.threads.sum() < n:
        raise Unmet(
            f"{launch}\n{own.threads.sum()} atomic additions to shared memory; each of the {n} elements "
            "needs one."
        )
    ((n,),) = fresh_inputs.instead([(3000,)])
    _each_its_share(kernel, _histogram(n, bins), n)


# 12.6: turns of atomic operations.


def _turns(bins: np.ndarray) -> int:
    return sum(int(np.bincount(bins[first : first + WARP]).max()) for first in range(0, len(bins), WARP))


def _skewed(warps: int, bins: int, power: float, seed: int) -> np.ndarray:
    """Return the bins of so many warps' elements; the greater `power`, the more the first bins have."""
    return (bins * np.random.default_rng(seed).random(WARP * warps) ** power).astype(np.int32)


Bins = tuple[np.ndarray]


def _drawn_bins(rng: np.random.Generator, base: Bins) -> Bins:
    warps, bins = int(rng.integers(1, 9)), int(rng.choice([1, 2, 7, 32, 100, 1000]))
    return (_skewed(warps, bins, float(rng.choice([1, 3])), int(rng.integers(2**31))),)


TURNS_HINT = (
    "Take the elements 32 at a time, as warps do. Lanes with the same bin take turns, and different bins are "
    "served together: so a warp takes as many turns as its commonest bin has lanes. Add that up."
)

# 12.7: softmax, with the largest element and the sum from one pass.

ONLINE = Hints(
    "Where an element, or another lane's part, has a larger maximum, the sum so far was taken with a smaller "
    "one: multiply it by expf(old - new) before you add. Both parts of a merge need that.",
    "A row has cols elements; lane l takes l, l + 32, and so on.",
    sync="All 32 lanes must come to each shuffle: keep it outside of the loop over the row's elements, whose "
    "rounds differ between lanes.",
    race="A row belongs to one warp.",
    nan="expf of more than 88 is infinite, and so is no number: take expf of differences from a maximum, and "
    "begin with a finite one below all elements.",
)


def _softmax(rows: int, cols: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = (rng.uniform(-6, 6, (rows, cols)) + rng.choice([-200, 0, 200], (rows, 1))).astype(np.float32)
        wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return x, (wide / wide.sum(axis=1, keepdims=True)).astype(np.float32)

    given = Given(f"rows={rows}, cols={cols}", make, (rows, cols), rows * cols, unit=5e-5)
    return Launch(given, (-(-rows // 4),), (128,))


FLOATS = 8  # of a sector: rows begin with one
LONG = (1, 140_000)  # twice what the registers of a multiprocessor hold
NO_ROW = (
    "Keep no row in shared or local memory, or registers: it may have any length. Two numbers are enough."
)


@criterion("each row is read twice")
def _two_passes(kernel: AnyKernel) -> None:
    for size in (*fresh_inputs.instead([(8, 512), (2, 3008)], FLOATS), *fresh_inputs.instead([LONG], FLOATS)):
        _reads_twice(kernel, *size)


def _reads_twice(kernel: AnyKernel, rows: int, cols: int) -> None:
    launch = _softmax(rows, cols)
    counted = profiled(kernel, launch, NO_ROW)
    if kernel.shared_size_bytes or kernel.local_size_bytes:
        raise Unmet(NO_ROW)
    most = 2 * rows * cols * 4 // SECTOR_BYTES
    lines, costs = global_loads(counted)
    if lines.sectors.sum() > most:
        raise missed(
            f"{launch}\n{lines.sectors.sum()} sectors of global loads",
            f"at most {most}, twice the elements",
            lines,
            costs,
            "Find the maximum and the sum in the same pass: most and sum change together.",
        )


EXERCISES = (
    Exercise("12.1", "Warps at work", 2, magic="answer").asks(
        returns(
            "the first threads add", (256, 128, True), (256, 16, True), (1024, 64, True), (64, 32, True),
            of=_warps, draw=_drawn_round, hint=WARPS_HINT,
        ),
        returns(
            "every second, fourth, … thread adds",
            (256, 128, False), (256, 8, False), (256, 4, False), (1024, 1, False), (1024, 256, False),
            of=_warps, draw=_drawn_round, hint=WARPS_HINT,
        ),
    ),
    Exercise("12.2", "Where the largest element lies", 3).asks(
        right_in("right for 256 and 1024 elements", all_of(_where, 256, 1024, whole=THREADS), TREE),
        right_in("right for any number of elements", all_of(_where, 1, 100, 700), PAST),
        right_in("of equal elements the first", all_of(partial(_where, different=9), 256, 700), TIES),
        no_finding_in(SOUND, all_of(_where, 300, 513), TREE),
        _in_whole_warps(),
        _of_pairs(),
    ),
    Exercise("12.3", "Shuffles in the place of barriers", 3, given=2).asks(
        right_in("right for 1 to 1000 elements", all_of(_largest, 256, 1, 31, 257, 1000), SHUFFLES),
        no_finding_in(SOUND, all_of(_largest, 300, 513), SHUFFLES),
        _one_barrier(),
        loads_in(
            2 * WARPS * 4, "an element is loaded once, and each warp's largest once",
            _largest, (4 * THREADS,), whole=THREADS,
            hint="What a warp finds stays in registers; 8 numbers per block go through shared memory.",
        ),
    ),
    Exercise("12.4", "The last block", 3).asks(
        _waits_for_nobody((100, 1), (1000, 5), (5000, 40), (3000, 64)),
        no_finding_in(SOUND, all_of(_total, (1000, 6), (3000, 40)), FINISH),
        right_in("right for launches in a row", lambda _: [_total(900, 7, 2), _total(900, 7, 3)], FINISH),
        _shared_by_blocks(),
    ),
    Exercise("12.5", "A histogram in shared memory", 3, given=2).asks(
        right_in(
            "right for 10, 100 and 3000 bins", all_of(_histogram, (1000, 10), (5000, 100), (9001, 3000)), BINS
        ),
        no_finding_in(SOUND, all_of(_histogram, (2000, 10), (5000, 700)), BINS),
        _counted_in_blocks(),
    ),
    Exercise("12.6", "Turns", 3, magic="answer").asks(
        returns(
            "all lanes of a warp at one bin, and all at different ones",
            (np.zeros(32, int),), (np.arange(64),), (np.arange(96) // 6,),
            of=_turns, draw=_drawn_bins, hint=TURNS_HINT,
        ),
        returns(
            "bins of a histogram",
            (_skewed(8, 100, 1, 1),), (_skewed(4, 1000, 3, 2),), (_skewed(6, 7, 1, 3),),
            of=_turns, draw=_drawn_bins, hint=TURNS_HINT,
        ),
    ),
    Exercise("12.7", "Softmax, online", 3, given=3).asks(
        right_in("right for rows of 32 to 1000", all_of(_softmax, (5, 32), (3, 300), (4, 1000)), ONLINE),
        right_in("right for rows shorter than a warp", all_of(_softmax, (5, 1), (9, 20)), ONLINE),
        clean_in(all_of(_softmax, (6, 70)), ONLINE),
        _two_passes(),
    ),
)  # fmt: skip
