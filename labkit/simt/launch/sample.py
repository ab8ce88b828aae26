"""Choose which blocks of a grid run."""

import math
from dataclasses import dataclass

import numpy as np

from labkit.core.kernel import Blocks
from labkit.core.limits import Dim3


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
