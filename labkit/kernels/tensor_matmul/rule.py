"""A rule that chooses the tile of `tensor_matmul/9_stream_k` for a shape.

A large tile needs the fewest bytes per product; a small one gives every multiprocessor of the GPU work. The
rule estimates the time of each tile: steps of k that one block takes, times the time of a step. A step takes
128 bytes of each row of A and B, and as long in every type: fewer products of more bits.
"""

from math import ceil
from typing import NamedTuple

from labkit.kernels import source_with_includes
from labkit.kernels.tensor_matmul.family import TensorMatmul
from simt.compiler.macros import names_of

RUNG = "tensor_matmul/9_stream_k"
STEP_BYTES = 128  # of each row


class Tile(NamedTuple):
    """A tile of C, the stages of A and B that fit beside it, and the time of one step, in microseconds.

    Times are those of an H200 at its limit of power; that of 192 columns lies between its neighbours'.
    """

    rows: int
    columns: int
    stages: int
    step: float


TILES = (
    Tile(128, 256, 4, 0.80),
    Tile(128, 192, 4, 0.62),
    Tile(128, 128, 5, 0.42),
    Tile(64, 128, 8, 0.27),
    Tile(64, 64, 8, 0.22),
)


def tile_for(problem: TensorMatmul, multiprocessors: int = 132) -> dict[str, int]:
    """Return the macros that suit `problem`: `load(RUNG, DTYPE=problem.ctype, **tile_for(problem))`."""
    tile = min(TILES, key=lambda each: estimate(each, problem, multiprocessors))
    return {
        "TILE_M": tile.rows,
        "TILE_N": tile.columns,
        "STAGES": tile.stages,
        "CLUSTER": _cluster(tile, problem),
        "SMS": multiprocessors,
    }


def estimate(tile: Tile, problem: TensorMatmul, multiprocessors: int) -> float:
    """Return the estimated time, in microseconds, without the launch."""
    least = names_of(source_with_includes(RUNG), {}).whole(
        "LEAST"
    )  # steps, as long as it takes to hand sums over
    steps = ceil(problem.K * problem.array_dtypes()["A"].itemsize / STEP_BYTES)
    cluster = _cluster(tile, problem)
    clusters = multiprocessors // cluster
    tiles = ceil(ceil(problem.M / tile.rows) / cluster) * ceil(problem.N / tile.columns)
    waves = ceil(tiles / clusters)
    if (waves * clusters - tiles) * steps < least * clusters:
        return waves * steps * tile.step
    share = max(tiles * steps / clusters, least)
    hand_overs = max(1, ceil(steps / share) - 1)  # one after another
    return (share + hand_overs * least) * tile.step


def _cluster(tile: Tile, problem: TensorMatmul) -> int:
    """Return the blocks of a cluster: two share a tile of B where C has two tiles below each other."""
    return 2 if tile.rows < problem.M else 1
