"""A launch that is predicted, and the blocks that the prediction goes by, run on drawn numbers.

A time is predicted for a launch that is too large to run whole. So the blocks from whose work it follows, and
some others, run on the very arrays for which it is predicted, each alone as for a prediction. What they leave
in the output is handed out element by element, and a sandbox gets seeds: no array crosses its border.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np

from simt import AnyKernel, Kernel
from simt.common.errors import SimtError
from simt.common.occupancy import gpu as find_gpu
from simt.kernel import PATIENCE_SECONDS, Launch, Predicted, Size, launch_of
from simt.launch.sample import choose_sample
from simt.run.observer import Observer
from simt.timing import work
from simt.timing.prediction import predict_launch
from simt.timing.sample import plan

PERIOD = 1_048_573  # numbers of a table: a prime, so that rows and tiles do not begin alike
PART = 2**18  # elements of an output that are looked at together
MOST_WRITTEN = 2**24  # elements of an output that are handed out


@dataclass(frozen=True)
class Contents:
    """The float32 numbers of an array, drawn from a seed; without a seed, zeros, for an output.

    They lie between `low` and `high`, and are whole numbers if `whole`. Each depends on its place alone, so a
    few numbers of a large array cost little.
    """

    shape: tuple[int, ...]
    seed: int | None = None
    low: float = 0
    high: float = 1
    whole: bool = False

    @cached_property
    def _table(self) -> np.ndarray:
        rng, size = np.random.default_rng(self.seed), min(PERIOD, math.prod(self.shape))
        if self.whole:
            return rng.integers(int(self.low), int(self.high), size, endpoint=True).astype(np.float32)
        return rng.uniform(self.low, self.high, size).astype(np.float32)

    def array(self) -> np.ndarray:
        """Make the array; zeros take no memory until somebody writes to them."""
        return np.zeros(self.shape, np.float32) if self.seed is None else np.resize(self._table, self.shape)

    def is_in(self, array: np.ndarray) -> bool:
        """Say whether an array still has these numbers."""
        parts = np.split(array.reshape(-1), range(PERIOD, array.size, PERIOD))
        return all(np.array_equal(part, self._table[: len(part)]) for part in parts)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers at these places of the flattened array, in float64."""
        return self._table[places % len(self._table)].astype(np.float64)


Argument = Contents | np.generic


@dataclass(frozen=True)
class Tried:
    """A predicted launch, and what the blocks with these numbers did when they ran.

    They wrote `values`, none of which is 0, to these `places` of the flattened output. A block that ran twice
    has its elements there twice.
    """

    predicted: Predicted
    blocks: Sequence[int]
    places: np.ndarray
    values: np.ndarray


@singledispatch
def tried(
    kernel: AnyKernel, grid: Size, block: Size, args: Sequence[Argument], blocks: Sequence[int], gpu: str
) -> Tried:
    """Predict a launch on a GPU; run these `blocks` of it, and then those that the prediction goes by.

    One of `args` is the output, without a seed. No block sees what another has left, as in a prediction.
    Raises what `predict` and a launch raise.
    """
    here = kernel.simulated
    assert isinstance(here, Kernel)
    drawn = {at: each for at, each in enumerate(args) if isinstance(each, Contents)}
    arrays = {at: each.array() for at, each in drawn.items()}
    launch = launch_of(
        grid, block, [arrays.get(at, each) for at, each in enumerate(args)], 0, PATIENCE_SECONDS
    )
    (out,) = (arrays[at].reshape(-1) for at, each in drawn.items() if each.seed is None)
    here.module.restart()
    predicted = predict_launch(here, launch, gpu)
    alone, together = _of_prediction(here, launch, gpu, np.random.default_rng(blocks))
    written, count = [], 0
    for group in (blocks, *([number] for number in alone), together):
        here.module.restart()
        here.bind(launch).run(Observer(), choose_sample(group, launch.grid))
        places = _written(out)
        written.append((places, out[places]))
        out[places] = 0
        count += len(places)
        if count > MOST_WRITTEN:
            raise SimtError(f"a few of its blocks write {count:,} elements of the output")
    if not all(each.is_in(arrays[at]) for at, each in drawn.items() if each.seed is not None):
        raise SimtError("it writes to its input")
    places, values = map(np.concatenate, zip(*written, strict=True))
    return Tried(predicted, sorted({*blocks, *alone, *together}), places, values)


def _written(out: np.ndarray) -> np.ndarray:
    """Return the places of what is not 0; most parts of a large array are all 0."""
    bits = out.view(np.uint32)
    parts = np.split(bits, range(PART, len(bits), PART))
    return np.concatenate(
        [at * PART + np.flatnonzero(part) for at, part in enumerate(parts) if part.max()]
        or [np.empty(0, np.int64)]
    )


def _of_prediction(
    kernel: Kernel, launch: Launch, gpu: str, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return blocks that a prediction runs each alone, with half of those far apart, and all run together."""
    on_gpu, registers = find_gpu(gpu), kernel.sass(gpu).registers
    on = work.launched(on_gpu, launch.grid, launch.block, registers, kernel.shared_size_bytes)
    wanted = plan(launch.grid, on.fits.blocks, on_gpu)
    spread = rng.permutation(wanted.spread)[: -(-len(wanted.spread) // 2)].tolist()
    return list(dict.fromkeys([wanted.first, *wanted.beside, *spread])), list(wanted.together)
