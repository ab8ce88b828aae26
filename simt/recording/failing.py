"""The block and the moment at which a launch went wrong, for a check that failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simt.common.compare import Mismatch
from simt.common.limits import Dim3
from simt.findings import Finding
from simt.kernel import SECONDS, Size, launch_of
from simt.launch.sample import choose_sample
from simt.launch.twins import copies
from simt.module import Kernel
from simt.recording.record import Recording, record
from simt.recording.tables import Trace
from simt.run.observer import Observer

MOST_BLOCKS = 1024  # searched for the one that writes a wrong element
Why = Exception | Finding | None  # a wrong result, an error or a finding


@dataclass(frozen=True)
class Failure:
    """A launch that went wrong, and how: its wrong result, its error or its finding."""

    kernel: Any
    grid: Size
    block: Size
    args: Sequence[object]
    shared_mem: int
    why: Exception | Finding

    def recorded(self) -> tuple[Recording, int]:
        """Record the block that went wrong; return it with the number of events until then."""
        wrong = self._wrong_array()
        at = self._block(wrong)
        found = record(self.kernel, self.grid, self.block, self.args, at=at, shared_mem=self.shared_mem)
        sides = [each for each in found.seen if each.events]
        if sides:
            return found, sides[0].events[-1] + 1
        if wrong is not None:
            return found, self._written(found, wrong) or len(found.events)
        return found, len(found.events) if found.error else 0

    def _wrong_array(self) -> int | None:
        """Return the position of the argument that has a wrong element, if that is what went wrong."""
        if not isinstance(self.why, Mismatch):
            return None
        shape = self.why.where.shape
        fitting = [i for i, each in enumerate(self.args) if getattr(each, "shape", None) == shape]
        return fitting[-1] if fitting else None

    def _block(self, wrong: int | None) -> Dim3:
        """Return the block that went wrong; the first one where that is not known."""
        finding = self.why if isinstance(self.why, Finding) else getattr(self.why, "finding", None)
        if isinstance(finding, Finding):
            return finding.block
        if wrong is None or not isinstance(self.why, Mismatch):
            return 0, 0, 0
        kernel: Kernel = self.kernel.simulated
        launch = launch_of(self.grid, self.block, copies(self.args), self.shared_mem, SECONDS)
        bound = kernel.bind(launch)
        output, index = launch.args[wrong], self.why.index
        assert isinstance(output, np.ndarray)
        bits = output.view(f"u{output.itemsize}")
        with kernel.undisturbed():
            for number in range(min(math.prod(launch.grid), MOST_BLOCKS)):
                before = bits[index] = ~bits[index]  # a value that no block leaves there by chance
                bound.run(Observer(), choose_sample([number], launch.grid))
                if bits[index] != before:
                    return _place(number, launch.grid)
        return 0, 0, 0

    def _written(self, found: Recording, wrong: int) -> int:
        """Return how many events there are up to the last one that writes the wrong element, or 0."""
        assert isinstance(self.why, Mismatch)
        name = found.memory.name_of(wrong)
        index = "".join(f"[{each}]" for each in self.why.index)
        frame = Trace(found).accesses
        writes = frame[(frame.element == name + index) & (frame.kind != "load")] if len(frame) else frame
        return int(writes.event.max()) + 1 if len(writes) else 0


def _place(number: int, grid: Dim3) -> Dim3:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
