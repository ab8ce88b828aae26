"""How long a launch would take on the GPU: predicted, and remembered for launches that look the same."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from labkit.core.errors import SimtError
from labkit.core.kernel import Launch
from labkit.core.occupancy import Gpu, occupancy
from labkit.simt.launch.arguments import Packed
from labkit.simt.module import Kernel

MOST_PREDICTIONS = 6  # of a kernel; a prediction takes up to seconds
MOST_OF_A_SHAPE = 2  # that differ in their arguments alone


@dataclass(frozen=True)
class _Predicted:
    """One launch: its shape (grid, block, bytes of shared memory), its seconds, its waves of blocks."""

    shape: tuple[object, ...]
    seconds: float
    waves: float


class Timing:
    """Predicts launches for one GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._known: dict[tuple[object, ...], float] = {}
        self._predictions: dict[int, list[_Predicted]] = {}
        self._resident: dict[tuple[object, ...], float] = {}
        self._unpredicted: set[str] = set()

    def of(self, kernel: Kernel, launch: Launch) -> tuple[float, float]:
        """Return the predicted seconds (NaN: unknown), and the share of the GPU that the launch fills.

        A program that launches a kernel with ever new arguments or grids gets, after a few predictions, those
        of the launch most like it, times the ratio of their waves of blocks.
        """
        packed = launch.args[0]
        assert isinstance(packed, Packed)
        shape = (launch.grid, launch.block, launch.shared_mem)
        waves = math.prod(launch.grid) / self._resident_blocks(kernel, launch)
        key = (id(kernel), shape, packed.params)
        if key not in self._known:
            made = self._predictions.setdefault(id(kernel), [])
            of_shape = [each for each in made if each.shape == shape]
            if len(of_shape) >= MOST_OF_A_SHAPE or len(made) >= MOST_PREDICTIONS:
                like = min(of_shape or made, key=lambda each: abs(math.log(each.waves / waves)))
                self._known[key] = like.seconds * max(1.0, waves) / max(1.0, like.waves)
            else:
                self._known[key] = self._predicted(kernel, launch)
                made.append(_Predicted(shape, self._known[key], waves))
        return self._known[key], min(1.0, waves)

    def _predicted(self, kernel: Kernel, launch: Launch) -> float:
        from labkit.model.time.prediction import predict_launch

        try:
            return predict_launch(kernel, launch, self.gpu.name).seconds
        except (SimtError, ValueError) as error:
            if kernel.name not in self._unpredicted:
                self._unpredicted.add(kernel.name)
                from labkit.programs.server.words import shown

                print(
                    f"labkit: no time is predicted for `{shown(kernel)}`: {error}. The simulator's own "
                    "time stands in its place",
                    file=sys.stderr,
                    flush=True,
                )
        return math.nan

    def _resident_blocks(self, kernel: Kernel, launch: Launch) -> float:
        """Return how many blocks of a launch the GPU holds at a time, at least 1."""
        key = (id(kernel), launch.block, launch.shared_mem)
        if key not in self._resident:
            try:
                registers = kernel.resources_for(self.gpu.arch).registers
                shared = kernel.shared_size_bytes + launch.shared_mem
                blocks = occupancy(self.gpu, math.prod(launch.block), registers, shared).blocks
            except (SimtError, ValueError):
                blocks = 1
            self._resident[key] = max(1, blocks * self.gpu.multiprocessors)
        return self._resident[key]
