"""Choose which blocks of a grid run."""

import math
from dataclasses import dataclass

import numpy as np

from simt.common.limits import Dim3
from simt.kernel import Blocks


@dataclass(frozen=True)
class Sample:
    """The numbers of the blocks that a launch runs, and how many blocks its grid has."""

    numbers: np.ndarray
    total: int


def choose_sample(blocks: Blocks, grid: Dim3) -> Sample | None:
    """Return the requested blocks, or None for all. Raises ValueError for a block that the grid lacks."""
    total = math.prod(grid)
    if isinstance(blocks, np.integer):
        blocks = int(blocks)
    if blocks is None or (isinstance(blocks, int) and blocks >= total):
        return None
    if isinstance(blocks, int):
        numbers = np.unique(np.linspace(0, total - 1, max(blocks, 0)).astype(np.int64))
    else:
        numbers = np.array(blocks, np.int64)
    if not numbers.size or numbers.min() < 0 or numbers.max() >= total:
        raise ValueError(f"blocks={blocks}: choose at least one, from blocks 0 to {total - 1} of the grid")
    return Sample(numbers, total)


def whole_clusters(sample: Sample, grid: Dim3, cluster: Dim3) -> Sample:
    """Return the sample with all blocks of the clusters that it touches."""
    places = np.unravel_index(sample.numbers, grid[::-1])
    touched = {
        tuple(int(i) // side for i, side in zip(at, cluster[::-1], strict=True))
        for at in zip(*places, strict=True)
    }
    numbers = [
        np.ravel_multi_index(
            tuple(c * side + i for c, side, i in zip(at, cluster[::-1], inside, strict=True)), grid[::-1]
        )
        for at in touched
        for inside in np.ndindex(cluster[::-1])
    ]
    return Sample(np.sort(np.array(numbers, np.int64)), sample.total)


def clusters_of(sample: Sample, grid: Dim3, cluster: Dim3) -> Sample:
    """Return the numbers of the clusters of a sample that has whole clusters."""
    places = np.unravel_index(sample.numbers, grid[::-1])
    together = [place // side for place, side in zip(places, cluster[::-1], strict=True)]
    counts = [n // side for n, side in zip(grid[::-1], cluster[::-1], strict=True)]
    return Sample(np.unique(np.ravel_multi_index(together, counts)), math.prod(counts))
