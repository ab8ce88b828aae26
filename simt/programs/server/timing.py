"""How long a launch would take on the GPU: predicted, and remembered for launches that look the same."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass

from simt.common.errors import SimtError
from simt.common.occupancy import Gpu, occupancy
from simt.kernel import Launch
from simt.module import Kernel
from simt.programs.server.memory import POINTER_BYTES, arguments
from simt.programs.server.words import shown

MOST_SECONDS = 60.0  # spent on predictions; after that, launches take over times, which is told
ALIGNMENT = 512  # bytes: arrays from cudaMalloc begin at multiples of it


@dataclass(frozen=True)
class _Predicted:
    """One launch: its shape (grid, block, bytes of shared memory), its seconds, its waves of blocks."""

    shape: tuple[object, ...]
    seconds: float
    waves: float


class Timing:
    """Predicts launches for one GPU.

    Launches that differ in their grid, their scalars or how their pointers are aligned are predicted each.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._known: dict[tuple[object, ...], float] = {}
        self._predictions: dict[int, list[_Predicted]] = {}
        self._resident: dict[tuple[object, ...], float] = {}
        self._told: set[str] = set()  # kernels of which something was told
        self._spent = 0.0

    def of(self, kernel: Kernel, launch: Launch) -> tuple[float, float]:
        """Return the predicted seconds (NaN: unknown), and the share of the GPU that the launch fills.

        When MOST_SECONDS are spent, a launch gets the time of the one most like it, times the ratio of their
        waves of blocks.
        """
        shape = (launch.grid, launch.block, launch.shared_mem)
        waves = math.prod(launch.grid) / self._resident_blocks(kernel, launch)
        key = (id(kernel), shape, _told_apart(kernel, launch))
        if key not in self._known:
            made = self._predictions.setdefault(id(kernel), [])
            if made and self._spent > MOST_SECONDS:
                like = min(made, key=lambda each: (each.shape != shape, abs(math.log(each.waves / waves))))
                self._known[key] = like.seconds * max(1.0, waves) / max(1.0, like.waves)
                self._tell(
                    kernel,
                    f"predicting times has taken {self._spent:.0f} s. From now on a launch of "
                    f"`{shown(kernel)}` gets the time of the most similar earlier one",
                )
            else:
                start = time.perf_counter()
                self._known[key] = self._predicted(kernel, launch)
                self._spent += time.perf_counter() - start
                made.append(_Predicted(shape, self._known[key], waves))
        return self._known[key], min(1.0, waves)

    def _predicted(self, kernel: Kernel, launch: Launch) -> float:
        from simt.timing.prediction import predict_launch

        try:
            return predict_launch(kernel, launch, self.gpu.name).seconds
        except (SimtError, ValueError) as error:
            self._tell(
                kernel,
                f"no time can be predicted for `{shown(kernel)}`: {error.__cause__ or error}. "
                "The simulator's own time is used instead",
            )
        return math.nan

    def _tell(self, kernel: Kernel, text: str) -> None:
        """Write a line to the program's stderr, once for a kernel."""
        if kernel.name not in self._told:
            self._told.add(kernel.name)
            print(f"labkit: {text}", file=sys.stderr, flush=True)

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


def _told_apart(kernel: Kernel, launch: Launch) -> bytes:
    """Return a launch's parameters, of each address only how it is aligned."""
    packed, addresses = arguments(kernel, launch)
    params = bytearray(packed)
    for place, address in addresses.items():
        params[place : place + POINTER_BYTES] = (address % ALIGNMENT).to_bytes(POINTER_BYTES, "little")
    return bytes(params)
