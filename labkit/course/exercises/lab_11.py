"""Exercises of 11 and 11b: a tile per warp, a swizzle, phases of a pipeline, wgmma, what feeds them."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.criteria.kernels import SOUND, Hints, clean_in, listed, no_finding_in, profiled, right_in
from labkit.course.criteria.launches import Given, Launch, Wrong, all_of
from labkit.course.criteria.python import returns
from labkit.course.exercise import Criterion, Exercise, Unmet, criterion
from labkit.model.doubled import doubled
from simt import AnyKernel, Finding, Profile
from simt.common.errors import SimtError
from simt.counters.profile import Site, loads
from simt.findings import UNFENCED_INIT
from simt.lowering.fragments import matrices

SIDE = 16  # rows and columns of a tile of 11.1, and rows of one of 11.2
CHUNKS, WORDS = 8, 4  # of a row of 11.2, and of a chunk

# 11.1: a product by wmma, one warp per tile.

BY_WMMA = Hints(
    "sum begins at 0. In each round of 16 along K, load_matrix_sync brings the piece of A from "
    "&A[row * K + k] and that of B from &B[col * K + k], both with K elements from row to row, and mma_sync "
    "adds their product to sum.",
    "A piece begins at row (of B: col) and k, and its rows are K elements apart.",
)


def _product(
    M: int, N: int, K: int, times: int = 1, rows: int = SIDE, cols: int = SIDE, threads: int = 32
) -> Launch:
    """Make a launch that leaves so many times the product, with tiles of rows x cols per block."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        a, b = (rng.integers(-4, 5, (lines, K)).astype(np.float16) for lines in (M, N))
        return a, b, times * (a.astype(np.float32) @ b.astype(np.float32).T)

    task = Given(f"M={M}, N={N}, K={K}", make, (M, N, K), M + N + K)
    return Launch(task, (N // cols, M // rows), (threads,))


@criterion("the tensor cores do each multiply-add once")
def _on_tensor_cores(kernel: AnyKernel) -> None:
    ((M, N, K),) = fresh_inputs.instead([(32, 48, 64)], SIDE)
    launch = _product(M, N, K)
    done = 0
    for site in profiled(kernel, launch).sites:
        parts = tuple(site.instruction.opcode.split("."))
        shape = matrices(parts) if "mma" in parts else None
        done += site.instructions * shape.m * shape.n * shape.k if shape else 0
    if done != M * N * K:
        raise Unmet(
            f"{launch}\nthe tensor cores do {done} multiply-adds; the product has {M * N * K}.\n"
            "wmma::mma_sync(sum, a, b, sum) does 16 x 16 x 16 of them: once per round of 16 along K."
        )
    _stored(kernel, launch, _product(M, N, K, times=2), "mma_sync leaves in sum")


NOT_TWICE = (
    "the product does not come from the tensor cores: where they multiply twice as much, the output is not "
    "twice as large."
)


def _stored(kernel: AnyKernel, launch: Launch, twice: Launch, what: str) -> None:
    """Raise Unmet where the output is not what the tensor cores work out: in `twice`, twice as much."""
    try:
        twice.run(doubled(kernel))
    except Wrong:
        raise Unmet(f"{launch}\n{NOT_TWICE}\nStore what {what}, and nothing else.") from None
    except SimtError as error:
        raise Unmet(f"{launch}\n{error}") from None


# 11.2: where chunks of 16 bytes lie in shared memory.

TILE_BYTES = SIDE * CHUNKS * 4 * WORDS
IN_PLACE = Hints(
    "Write and read a chunk at the same place.",
    "The places of a row are 0 to 7.",
    twice="Two chunks share a place. For each row, place(row, chunk) must give each of 0 to 7 once.",
)


def _fragments(rows: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.integers(-(2**31), 2**31, (rows, CHUNKS * WORDS), dtype=np.int32)
        # Lane 4 g + w gets word w of row g of each of four matrices of 8 rows: upper, lower; left, right.
        parts = x.reshape(rows // SIDE, 2, 8, CHUNKS // 2, 2, WORDS)  # tile, half, g, pair, side, w
        return x, parts.transpose(0, 3, 2, 5, 4, 1).reshape(-1, 4)

    return Launch(Given(f"rows={rows}", make, (rows,), rows), (1,), (32,))


@criterion("no bank conflict, and no more shared memory than the tile")
def _without_conflicts(kernel: AnyKernel) -> None:
    if kernel.shared_size_bytes > TILE_BYTES:
        raise Unmet(
            f"the kernel takes {kernel.shared_size_bytes} bytes of shared memory; the tile {TILE_BYTES}.\n"
            "Padding would do, too, but TMA and wgmma know no padding. Exchange places within a row."
        )
    ((rows,),) = fresh_inputs.instead([(2 * SIDE,)], SIDE)
    launch = _fragments(rows)
    lines = profiled(kernel, launch).lines.query("space == 'shared'")
    if loads(lines, "shared").useful_bytes.sum() < rows // SIDE * TILE_BYTES:
        raise Unmet(f"{launch}\nthe fragments do not come from the tile: read it with ldmatrix.")
    if lines.conflicts.sum():
        costs = (f"{row.passes} passes of {row.requests} requests" for row in lines.itertuples())
        raise Unmet(
            f"{launch}\n{lines.conflicts.sum()} bank conflicts; the goal is 0\n"
            f"{listed(lines, costs)}\n"
            "ldmatrix asks for the same chunk of 8 rows at a time. A row is as long as all 32 banks, so a "
            "place is always in the same 4 banks. The 8 rows need 8 different places."
        )


# 11.3 and 11.4: tiles that come, and go, while threads work.


def _tiles(tile: int, threads: int, factor: int, is_reversed: bool, steps: int) -> Launch:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = rng.integers(-1000, 1000, tile * steps).astype(np.float32)
        tiles = x.reshape(steps, tile)
        return x, factor * (tiles[:, ::-1] if is_reversed else tiles).ravel()

    return Launch(Given(f"steps={steps}", make, (steps,), steps), (1,), (threads,))


_reversed, _tripled = partial(_tiles, 64, 96, 1, True), partial(_tiles, 32, 32, 3, False)

PARITY = (
    "The phases of an mbarrier are numbered 0, 1, 2, …, and a wait names the parity of the phase that must "
    "be over. Stage s is filled for the first time in phase 0, for the second time in phase 1, and so on: in "
    "step i it is phase i / 2."
)
# Until edition 3 the kernels handed out for 11.3 and 11.4 had no such fence, and answers were made of them.
HANDED_OUT = (UNFENCED_INIT,)
PHASES = Hints(
    "A stage is read too early, or filled again too early.",
    race="A consumer touches tile[s] after a wait for full[s]. The producer fills it again after a wait for "
    f"empty[s]. {PARITY}",
    sync=f"{PARITY} The producer waits for the phase before, which in the first round is over from the "
    "start: parity 1. If it does not wait at all, phases pass before a consumer has seen them.",
    ignores=HANDED_OUT,
)
MENDED = Hints(
    "A tile is changed before it has come, or sent before it is changed.",
    race="Ask of each tile: who wrote it last, and by which proxy? TMA reads through the asynchronous proxy: "
    "what threads wrote needs fence_proxy_async before the barrier. A stage is filled again only when the "
    "copy that left it has read it: cp_async_bulk_wait_group_read, in the thread that committed the group.",
    sync=PARITY,
    ignores=HANDED_OUT,
)


def _ask_again(launch: Launch, profile: Profile) -> None:
    """Raise Unmet where the answer of a try_wait decides nothing: then nobody asks again."""
    for line in profile.unasked_waits:
        raise Unmet(
            f"{launch}\nline {line}: {profile.source_line(line).strip()}\n"
            "A wait by mbarrier_try_wait_parity may end early, with false. So ask again until it is "
            "true, as `while (!mbarrier_try_wait_parity(…));` does."
        )


def _send_whole_tiles(launch: Launch, profile: Profile) -> None:
    """Raise Unmet where threads do not meet in each step, and where the last copy may outlive the block."""
    meetings = sum(
        site.instructions
        for site in profile.sites
        for parts in (site.instruction.parts,)
        if parts[0] in ("shfl", "vote")
        or ("bar" in parts and "await" not in parts)
        or ({"mbarrier", "arrive"} <= set(parts) and "expect_tx" not in parts)
    )
    (steps,) = launch.task.sizes  # type: ignore[attr-defined]  # it is Given
    if meetings < steps:
        raise Unmet(
            f"{launch}\nthread 0 sends a tile while other threads may still change it.\n"
            "Lanes of a warp need not run in step: __syncthreads() or __syncwarp() stands between."
        )
    parts = [site.instruction.parts for site in profile.sites]
    commits, waits = (
        [at for at, each in enumerate(parts) if what in each] for what in ("commit_group", "wait_group")
    )
    if commits and (not waits or waits[-1] < commits[-1]):
        raise Unmet(
            f"{launch}\nthe block may end while its last copy still reads the tile.\n"
            "Shared memory ends with the block: wait for all groups behind the loop, by "
            "cp_async_bulk_wait_group_read(n32_t<0>())."
        )


@criterion("each element goes through a stage in shared memory, and no thread copies by itself")
def _by_copies(
    kernel: AnyKernel, make: Callable[[int], Launch], stated: int, loaded: bool, stored: bool
) -> None:
    ((steps,),) = fresh_inputs.instead([(stated,)])
    launch = make(steps)
    profile = profiled(kernel, launch)
    _ask_again(launch, profile)
    if stored:
        _send_whole_tiles(launch, profile)
    lines = profile.lines
    by_threads = lines[(lines.space == "global") & lines.op.isin(["ld"] * loaded + ["st"] * stored)]
    if len(by_threads):
        costs = (f"{count} requests" for count in by_threads.requests)
        raise Unmet(
            f"{launch}\nthreads go to global memory themselves\n{listed(by_threads, costs)}\n"
            "cp_async_bulk brings tiles and takes them away; threads work in shared memory."
        )
    if loads(lines, "shared").useful_bytes.sum() < 4 * launch.task.output(launch.task.args(np)).size:
        raise Unmet(f"{launch}\nnot every element is read from a tile in shared memory.")


# 11.5: what feeding the tensor cores allows.

Fed = tuple[int, int, int, int, float]  # rows, cols, bytes of an element, multiply-adds and bytes per cycle
SIDES = (16, 32, 64, 128, 192, 256)


def _most(rows: int, cols: int, size: int, fma: int, bandwidth: float) -> float:
    return min(1.0, rows * cols / fma / ((rows + cols) * size / bandwidth))


def _drawn(rng: np.random.Generator, base: Fed) -> Fed:
    """Draw another case with the same limit."""
    while True:
        size = int(rng.choice([1, 2, 4]))
        rows, cols = (int(rng.choice(SIDES)) for _ in range(2))
        case = rows, cols, size, 4096 // size, float(rng.integers(20, 200))
        if (_most(*case) < 1) == (_most(*base) < 1):
            return case


FED_HINT = (
    "Per step along K, the tile takes rows * cols multiply-adds, fma of them per cycle, and brings "
    "rows + cols elements of size bytes, bandwidth bytes per cycle. "
    "The longer of the two times counts; both run at once."
)


def _fed(text: str, *cases: Fed) -> Criterion:
    return returns(text, *cases, of=_most, draw=_drawn, hint=FED_HINT)


# 11.6: a product by wgmma, one warpgroup per tile.

ROWS, COLUMNS, DEPTH, PIECE = 64, 16, 64, 16  # of a tile of C; of a tile of A or B along K; and of a wgmma
WARPGROUP = 4  # warps
WGMMA = (
    "In each round: fence and barrier, then wgmma_fence, four times wgmma along K, commit, wait, barrier. "
    "A descriptor holds the tile's shared address / 16, 1024 / 16 from bit 32 on, and 1 in bit 62."
)
PLACES = (
    "The sums of each tile are right, but not where they belong. Warp w has rows 16 w to 16 w + 15. "
    "Sum i of a lane: row lane / 4, and 8 more where i / 2 is odd; column lane % 4 * 2 + i % 2, and 8 more "
    "from i = 4 on."
)
UNSTORED = "Some elements are never written. Each of the 128 threads stores all 8 sums."
NOT_ALONG = (
    "Each wgmma multiplies the first 16 elements of the tiles' rows. One takes 32 bytes of each row: the "
    "next begins 32 bytes further, which are 2 in a descriptor."
)
ONCE_PER_TILE = "Only the first 16 of each 64 steps along K are multiplied: a tile takes four wgmma."
ANEW = "The sums hold the last tiles of K alone: set them to 0 once, before the loop."
ENDS = "The last 64 steps of K are missing: go on while k0 < K."
BEGINS = "Only the first 64 steps of K are multiplied: go on while k0 < K."
DESCRIPTOR = (
    "Addresses and distances in a descriptor are divided by 16. Bits 0 to 13: where the tile begins. "
    "Bits 32 to 45: 1024, from 8 rows to the next 8. Bit 62: the swizzle of 128 bytes."
)
FENCED = (
    "Threads have set the sums to 0, and wgmma adds to them by itself: wgmma_fence(sum) stands before the "
    "first wgmma, and every warp runs it."
)
ROUNDS = (
    "Warps share the tiles. A barrier stands between the copies of a round and its wgmma. Tiles are "
    "overwritten when the wgmma that read them are committed and waited for; a barrier ends the round."
)
OF_WGMMA = {  # kinds of findings
    "missing proxy fence": "Threads wrote the tiles, and wgmma reads them through another proxy: each thread "
    "runs fence_proxy_async() after its writes, and before the barrier.",
    "read before wgmma completes": "wgmma only begins the work. sum may be read when the group is committed, "
    "by wgmma_commit_group(), and then waited for, by wgmma_wait_all(sum).",
    "overwritten while wgmma reads": ROUNDS,
    "read after write": ROUNDS,
    "descriptor": DESCRIPTOR,
    "unset variable": "wgmma adds to sum: set it to 0 once, before the loop.",
}


class _OfWgmma(Hints):
    """The hints of 11.6, by the kind of a finding, and by what wrong results have in common."""

    def for_finding(self, finding: Finding, launch: Launch) -> str:
        return OF_WGMMA.get(finding.kind) or super().for_finding(finding, launch)

    def for_results(self, wrong: Wrong, launch: Launch) -> str:
        a, b = (each.astype(np.float32) for each in wrong.task.args(np)[:2])
        out, right = wrong.output, a @ b.T
        written = ~np.isnan(out)
        if not out[written].any():
            return self.usual
        if not written.all():
            return UNSTORED
        for told, steps, times in _some_steps(a.shape[1]):
            if np.array_equal(out, times * (a[:, steps] @ b[:, steps].T)):
                return told
        return PLACES if np.array_equal(_sorted_tiles(out), _sorted_tiles(right)) else self.usual


def _some_steps(K: int) -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield usual mistakes: in words, which steps along K the sums then have, and how many times each."""
    k = np.arange(K)
    yield NOT_ALONG, k % DEPTH < PIECE, DEPTH // PIECE
    yield ONCE_PER_TILE, k % DEPTH < PIECE, 1
    yield ANEW, k >= K - DEPTH, 1
    yield BEGINS, k < DEPTH, 1
    yield ENDS, k < K - DEPTH, 1


def _sorted_tiles(c: np.ndarray) -> np.ndarray:
    """Return the elements of each tile of C, sorted."""
    tiles = c.reshape(c.shape[0] // ROWS, ROWS, -1, COLUMNS).swapaxes(1, 2)
    return np.sort(tiles.reshape(-1, ROWS * COLUMNS))


BY_WGMMA = _OfWgmma(WGMMA, DESCRIPTOR)
_by_warpgroups = partial(_product, rows=ROWS, cols=COLUMNS, threads=32 * WARPGROUP)
COUNTED, ONE_ROUND = (64, 48, 192), (64, 16, 64)  # M, N and K


@criterion("wgmma does each multiply-add once, and its sums are what is stored")
def _by_wgmma(kernel: AnyKernel) -> None:
    launch, (M, N, K), sites = _counted(kernel)
    done = 0
    for site in sites:
        if site.instruction.opcode.startswith("wgmma.mma_async"):
            shape = matrices(site.instruction.parts)
            done += site.instructions // WARPGROUP * shape.m * shape.n * shape.k if shape else 0
    if done != M * N * K:
        raise Unmet(
            f"{launch}\nwgmma does {done} multiply-adds; the product has {M * N * K}.\n"
            "wgmma(sum, a, b) does 64 x 16 x 16 of them: four times per round of 64 along K."
        )
    _stored(kernel, launch, _by_warpgroups(M, N, K, times=2), "wgmma leaves in sum")


@criterion("wgmma_fence stands between the threads' work on the sums and wgmma")
def _fenced(kernel: AnyKernel) -> None:
    _ask_for_fences(*_counted(kernel)[::2])
    once = _by_warpgroups(*ONE_ROUND)
    _ask_for_fences(once, profiled(kernel, once, WGMMA).sites)


def _ask_for_fences(launch: Launch, sites: list[Site]) -> None:
    """Raise Unmet where fewer fences than warps run in the code before the first wgmma.

    A fence of later rounds counts as well, so ask for one round, too.
    """
    names = [site.instruction.parts[:2] for site in sites]
    begin = names.index(("wgmma", "mma_async"))
    fences = sum(
        site.instructions for site in sites[:begin] if site.instruction.parts[:2] == ("wgmma", "fence")
    )
    warps = math.prod(launch.grid) * WARPGROUP
    if fences < warps:
        raise Unmet(
            f"{launch}\nwgmma.fence runs {fences} times before the wgmma of line {sites[begin].line}; "
            f"the launch has {warps} warps.\n{FENCED}"
        )


def _counted(kernel: AnyKernel) -> tuple[Launch, tuple[int, ...], list[Site]]:
    """Return the launch that 11.6 is counted in, its sizes, and what each instruction did in it."""
    (size,) = fresh_inputs.instead([COUNTED], ROWS)
    launch = _by_warpgroups(*size)
    return launch, size, profiled(kernel, launch, WGMMA).sites


EXERCISES = (
    Exercise("11.1", "A tile per warp", 2).asks(
        right_in("right for one tile", all_of(_product, (16, 16, 16), (16, 16, 48), whole=SIDE), BY_WMMA),
        right_in(
            "right for several tiles",
            all_of(_product, (32, 48, 64), (48, 16, 32), (16, 32, 160), whole=SIDE),
            BY_WMMA,
        ),
        no_finding_in(SOUND, all_of(_product, (32, 48, 32), whole=SIDE), BY_WMMA),
        _on_tensor_cores(),
    ),
    Exercise("11.2", "A swizzle", 2, given=2).asks(
        right_in("right for 16 and 48 rows", all_of(_fragments, 16, 48, whole=SIDE), IN_PLACE),
        clean_in(all_of(_fragments, 32, whole=SIDE), IN_PLACE),
        _without_conflicts(),
    ),
    Exercise("11.3", "The phases of a pipeline", 3).asks(
        clean_in(all_of(_reversed, 1, 2), PHASES),
        right_in("right for 3, 4 and 9 steps", all_of(_reversed, 3, 4, 9), PHASES),
        clean_in(all_of(_reversed, 7), PHASES),
        _by_copies(_reversed, 5, loaded=True, stored=False),
    ),
    Exercise("11.4", "A broken pipeline", 4).asks(
        clean_in(all_of(_tripled, 1), MENDED),
        right_in("right for 2, 3 and 8 steps", all_of(_tripled, 2, 3, 8), MENDED),
        no_finding_in(SOUND, all_of(_tripled, 7), MENDED),
        _by_copies(_tripled, 5, loaded=True, stored=True),
    ),
    Exercise("11.5", "What feeds the tensor cores", 2, magic="answer", function="most").asks(
        _fed(
            "tiles that bring too much",
            (64, 32, 2, 2048, 128), (16, 16, 2, 2048, 128), (64, 32, 4, 1024, 64), (128, 256, 2, 2048, 39),
        ),
        _fed(
            "tiles that are fed in time",
            (64, 256, 2, 2048, 128), (128, 128, 1, 4096, 128),
            (256, 256, 2, 2048, 39), (64, 64, 4, 1024, 128),
        ),
    ),
    Exercise("11.6", "A product with wgmma", 4).asks(
        clean_in(all_of(_by_warpgroups, (64, 16, 64), whole=ROWS), BY_WGMMA),
        right_in(
            "right for several tiles",
            all_of(_by_warpgroups, (64, 32, 192), (128, 48, 128), (64, 16, 320), whole=ROWS),
            BY_WGMMA,
        ),
        clean_in(all_of(_by_warpgroups, (64, 32, 128), whole=ROWS), BY_WGMMA),
        _by_wgmma(),
        _fenced(),
    ),
)  # fmt: skip
