"""How long a launch would take on the GPU: predicted, and remembered for launches that look the same."""

from __future__ import annotations

import math
import sys

from labkit.core.errors import SimtError
from labkit.core.kernel import Launch
from labkit.core.occupancy import Gpu, occupancy
from labkit.simt.launch.arguments import Packed
from labkit.simt.module import Kernel


class Timing:
    """Predicts launches for one GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._known: dict[tuple[object, ...], tuple[float, float]] = {}
        self._unpredicted: set[str] = set()

    def of(self, kernel: Kernel, launch: Launch) -> tuple[float, float]:
        """Return the predicted seconds (NaN: unknown), and the share of the GPU that the launch fills."""
        packed = launch.args[0]
        assert isinstance(packed, Packed)
        key = (kernel.module.ptx, kernel.name, launch.grid, launch.block, launch.shared_mem, packed.params)
        if key not in self._known:
            self._known[key] = self._predicted(kernel, launch)
        return self._known[key]

    def _predicted(self, kernel: Kernel, launch: Launch) -> tuple[float, float]:
        from labkit.model.time.prediction import predict_launch

        try:
            seconds = predict_launch(kernel, launch, self.gpu.name).seconds
        except (SimtError, ValueError) as error:
            seconds = math.nan
            if kernel.name not in self._unpredicted:
                self._unpredicted.add(kernel.name)
                from labkit.programs.server.words import shown

                print(
                    f"labkit: no time is predicted for `{shown(kernel)}`: {error}. The simulator's own "
                    "time stands in its place",
                    file=sys.stderr,
                    flush=True,
                )
        return seconds, self._share(kernel, launch)

    def _share(self, kernel: Kernel, launch: Launch) -> float:
        """Return the blocks of a launch over those that the GPU holds at a time, at most 1."""
        try:
            registers = kernel.resources_for(self.gpu.arch).registers
            shared = kernel._storage.static_shared_bytes + launch.shared_mem
            blocks = occupancy(self.gpu, math.prod(launch.block), registers, shared).blocks
        except (SimtError, ValueError):
            return 1.0
        return min(1.0, math.prod(launch.grid) / max(1, blocks * self.gpu.multiprocessors))
