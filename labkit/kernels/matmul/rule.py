"""Which kernel computes a float32 product of any shape soonest: the least of many estimates.

There are three kinds of kernels. Tiles of C in shared memory (`10_any_tile`, `11_stream_k`) read the least,
and need many rows and columns. Where C has few of either, or K is short, `12_few_rows` and `13_few_columns`
do without shared memory. Each comes in several forms: sizes of what a block or a thread computes, and how
many blocks or warps share K. `candidates` yields those that a shape can use, with an estimate of their times.
It is a sum: the launch, each byte of the matrices once, the waits that follow one another in the busiest
multiprocessor (SM), and its work. `choose` takes the shortest.

The constants in COSTS are those of an H200: `python benchmarks/any_shape_rule.py` measures shapes that are
drawn at random, and fits them. docs/measurements.md has the times of other shapes, which the fit never saw.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from math import ceil, log
from typing import NamedTuple

from simt.common.limits import MAX_GRID, Dim3
from simt.common.occupancy import DEFAULT_GPU, gpu

DEFAULT_SMS = gpu(DEFAULT_GPU).multiprocessors
MACROS = ("TILE_M", "TILE_N", "TILE_K", "THREAD_M", "THREAD_N", "STAGES", "PER_SM")
OF_PARTS = ("THREAD_M", "THREAD_N", "TILE_K", "PARTS", "CLUSTER")
WARPS = 8  # of a block of few_rows and few_columns
VECTOR = 4  # floats that are read and written at once, where rows begin at 16 bytes
FAN = 16  # most shares that one block of stream_k adds, at each level


class TileCosts(NamedTuple):
    """Microseconds of a block: a step along K alone on its SM, a step's share of a busy SM, and the rest."""

    latency: float
    work: float
    fixed: float


class PartCosts(NamedTuple):
    """Microseconds of a warp of few_rows or few_columns.

    Of a step along K: the wait for its loads, and for each load of A, of B, and of 4 floats of B at once, a
    share of the SM's time; of a multiply-add likewise. Then the sum over a block's warps and over a
    cluster's blocks, and each element that is written.
    """

    wait: float
    load_a: float
    load_b: float
    load_4_of_b: float
    multiply_add: float
    in_block: float
    in_cluster: float
    element: float


@dataclass(frozen=True)
class Costs:
    """Everything that was fitted: microseconds, and bytes in a microsecond."""

    launch: float
    read: float
    written: float
    unaligned: float  # times the work of a tile, where rows of B and C do not begin at 16 bytes
    share: float  # to hand over the shares of a tile, at each level of their sum
    share_element: float  # and each 1024 elements of each share
    tiles: dict[tuple[int, ...], TileCosts]
    rows: PartCosts
    columns: PartCosts


COSTS = Costs(
    launch=2.24,
    read=7.7e6,
    written=4.9e6,
    unaligned=1.13,
    share=1.24,
    share_element=0.116,
    tiles={
        (128, 256, 8, 8, 16, 3, 1): TileCosts(0.84, 1.23, 2.49),
        (64, 128, 16, 8, 8, 2, 3): TileCosts(0.752, 0.653, 0.959),
        (64, 64, 16, 4, 8, 3, 4): TileCosts(0.521, 0.412, 0.446),
        (32, 64, 16, 4, 4, 3, 6): TileCosts(0.359, 0.263, 0.226),
        (32, 32, 32, 4, 4, 3, 8): TileCosts(0.491, 0.322, 0.459),
        (128, 32, 16, 8, 4, 3, 4): TileCosts(0.547, 0.441, 0.5),
        (32, 128, 16, 4, 8, 3, 4): TileCosts(0.499, 0.406, 0.458),
    },
    rows=PartCosts(0.013, 0.00062, 0.001, 0.0023, 0.00011, 0.17, 0.87, 0.018),
    columns=PartCosts(0.037, 0, 0.0001, 0.00023, 0.00065, 0.2, 0.69, 0.031),
)
# Rows and columns of a thread or warp, and terms that it reads at a time.
FORMS_OF_ROWS = (
    *((1, 1, 8), (1, 1, 32), (1, 4, 8), (2, 1, 16), (2, 4, 8), (4, 1, 8), (4, 4, 4), (4, 4, 8), (8, 4, 4)),
)
FORMS_OF_COLUMNS = (
    *((1, 1, 32), (1, 1, 128), (1, 1, 512), (4, 1, 32), (4, 1, 128), (1, 2, 32), (1, 2, 128), (1, 2, 512)),
    *((4, 2, 32), (4, 2, 128), (1, 4, 32), (1, 4, 128), (4, 4, 128), (1, 8, 32), (1, 8, 128), (4, 8, 128)),
)
SHARED_BY = (  # warps of a block and blocks of a cluster that share K
    *((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (8, 8)),
)
MOST_COLUMNS = 16  # that few_columns is asked for
MOST_SINGLE = 1500  # columns, up to which a thread of few_rows may have one


class Choice(NamedTuple):
    """A kernel with the macros that differ from no other call of its form, and its launch."""

    kernel: str
    macros: tuple[tuple[str, int], ...]
    grid: Dim3
    block: Dim3


class Shape(NamedTuple):
    """The sizes of a product, and the multiprocessors of the GPU that computes it."""

    m: int
    n: int
    k: int
    sms: int

    @property
    def is_aligned(self) -> bool:
        """Return whether each row of B and C begins at 16 bytes, if the first does."""
        return self.n % VECTOR == 0


def choose(m: int, n: int, k: int, multiprocessors: int = DEFAULT_SMS, clusters: bool = True) -> Choice:
    """Choose the kernel for C (m,n) = A (m,k) B (k,n); `clusters`: whether the GPU has clusters of blocks."""
    shape = Shape(m, n, k, multiprocessors)
    _, chosen = min(candidates(shape, COSTS, clusters), key=lambda each: each[0])
    return chosen


def candidates(shape: Shape, costs: Costs, clusters: bool = True) -> Iterator[tuple[float, Choice]]:
    """Yield what can compute a product, each with the estimate of its time in microseconds."""
    m, n, k, _ = shape
    least = costs.launch + 4 * ((m * k + k * n) / costs.read + m * n / costs.written)
    for time, choice in (
        *_tiles(shape, costs),
        *_rows(shape, costs.rows, clusters),
        *_columns(shape, costs.columns, clusters),
    ):
        yield least + time, choice


def _tiles(shape: Shape, costs: Costs) -> Iterator[tuple[float, Choice]]:
    m, n, k, sms = shape
    slower = 1 if shape.is_aligned else costs.unaligned
    for form, (latency, work, fixed) in costs.tiles.items():
        tile_m, tile_n, tile_k, thread_m, thread_n, _, per_sm = form
        down, across, steps = ceil(m / tile_m), ceil(n / tile_n), ceil(k / tile_k)
        macros = tuple(zip(MACROS, form, strict=True))
        block = (tile_m // thread_m * tile_n // thread_n, 1, 1)
        tiles, places = down * across, per_sm * sms
        step = partial(_step, latency * slower, work * slower, sms)
        if down <= MAX_GRID[1]:
            full, rest = divmod(tiles, places)
            time = full * (fixed + steps * step(places)) + (fixed + steps * step(rest) if rest else 0)
            yield time, Choice("matmul/10_any_tile", macros, (across, down, 1), block)
        shared = (*macros, ("BLOCKS", places))
        for blocks in _grids(tiles, steps, per_sm, sms):
            parts = blocks / tiles  # of a tile
            levels = ceil(log(max(parts, 2), FAN))
            elements = tile_m * tile_n  # of a share, which is written and read again
            handed = levels * costs.share + costs.share_element * elements / 1024 * min(parts, FAN)
            handed += 2 * 4 * elements * blocks / costs.written
            time = max(1, 1 / parts) * fixed + steps / parts * step(blocks) + handed
            yield time, Choice("matmul/11_stream_k", shared, (blocks, 1, 1), block)


def _step(latency: float, work: float, sms: int, blocks: int) -> float:
    """Return the time of a step of blocks that run at the same time."""
    return max(latency, ceil(blocks / sms) * work)


def _grids(tiles: int, steps: int, per_sm: int, sms: int) -> set[int]:
    """Return how many blocks may share the steps of all tiles: full waves, or equal parts of each tile."""
    even = {
        tiles * parts for parts in (2, 4, 8, 16, 32) if tiles * parts <= per_sm * sms and 2 * parts <= steps
    }
    return even | {min(sms * blocks, tiles * steps) for blocks in range(1, per_sm + 1)}


def _rows(shape: Shape, costs: PartCosts, clusters: bool) -> Iterator[tuple[float, Choice]]:
    m, n, *_ = shape
    for rows, columns, tile_k in FORMS_OF_ROWS:
        if rows > _power(m) or (columns == 1 and n > MOST_SINGLE):
            continue
        teams = ceil(n / (32 * columns)) * ceil(m / rows)
        loads_b = costs.load_4_of_b if columns == VECTOR and shape.is_aligned else columns * costs.load_b
        step = tile_k * (rows * costs.load_a + loads_b + rows * columns * costs.multiply_add)
        yield from _shared(shape, "matmul/12_few_rows", (rows, columns, tile_k), teams, step, costs, clusters)


def _columns(shape: Shape, costs: PartCosts, clusters: bool) -> Iterator[tuple[float, Choice]]:
    m, n, *_ = shape
    width = min(_power(n), FORMS_OF_COLUMNS[-1][1])
    for rows, columns, tile_k in FORMS_OF_COLUMNS if n <= MOST_COLUMNS else ():
        if columns != width or rows > _power(m):
            continue
        teams = ceil(n / columns) * ceil(m / rows)
        together = n % min(columns, VECTOR) == 0  # else each load of a column touches all the rows' sectors
        loads_b = columns * (costs.load_4_of_b if together else min(columns, n) * costs.load_b)
        step = tile_k / 32 * (rows * costs.load_a + loads_b + rows * columns * costs.multiply_add)
        yield from _shared(
            shape, "matmul/13_few_columns", (rows, columns, tile_k), teams, step, costs, clusters
        )


def _shared(
    shape: Shape,
    kernel: str,
    form: tuple[int, int, int],
    teams: int,
    step: float,
    costs: PartCosts,
    clusters: bool,
) -> Iterator[tuple[float, Choice]]:
    """Yield a form with all numbers of warps and blocks that may share K; `step` is a warp's work in one."""
    rows, columns, tile_k = form
    resident = 2 if rows * columns > 8 else 4  # blocks on an SM, by their registers
    for parts, cluster in SHARED_BY if clusters else SHARED_BY[:4]:
        blocks = ceil(teams * parts / WARPS) * cluster
        if (parts * cluster > 1 and 2 * shape.k <= parts * cluster * tile_k) or blocks > MAX_GRID[0]:
            continue
        steps, on_sm = ceil(shape.k / (tile_k * parts * cluster)), ceil(blocks / shape.sms)
        add = costs.in_block * (parts > 1) + costs.in_cluster * (cluster > 1)
        time = ceil(on_sm / resident) * (steps * costs.wait + costs.element * rows * columns + add)
        time += on_sm * WARPS * steps * step
        macros = tuple(zip(OF_PARTS, (*form, parts, cluster), strict=True))
        yield time, Choice(kernel, macros, (blocks, 1, 1), (32, WARPS, 1))


@cache
def _power(size: int) -> int:
    """Return the least power of 2 that is not below a size."""
    return 1 << (size - 1).bit_length()
