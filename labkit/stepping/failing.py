"""The block and the moment at which a launch went wrong, for a check that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.core.compare import Mismatch
from labkit.core.kernel import SECONDS, TOOLS, Size, launch_of
from labkit.core.limits import Dim3
from labkit.simt.module import Kernel
from labkit.simt.sanitizer.findings import Finding
from labkit.stepping.record import Recording, copied, record
from labkit.stepping.sides import seen
from labkit.stepping.tables import Trace

MOST_BLOCKS = 256  # that are searched for the one that writes a wrong element, or that does a mistake


@dataclass(frozen=True)
class Failure:
    """A launch that went wrong, and how: the error that told so."""

    kernel: Any
    grid: Size
    block: Size
    args: Sequence[object]
    shared_mem: int
    error: Exception

    def recorded(self) -> tuple[Recording, int]:
        """Record the block that went wrong; return it with the number of events until then."""
        wrong = self._wrong_array()
        at = self._block(wrong)
        found = record(self.kernel, self.grid, self.block, self.args, at=at, shared_mem=self.shared_mem)
        sides = [each for each in seen(found) if each.events]
        if sides:
            return found, sides[0].events[-1] + 1
        if wrong is not None:
            return found, self._written(found, wrong) or len(found.events)
        return found, len(found.events) if found.error else 0

    def _wrong_array(self) -> int | None:
        """Return the position of the argument that has a wrong element, if that is what went wrong."""
        if not isinstance(self.error, Mismatch):
            return None
        shape = self.error.where.shape
        fitting = [i for i, each in enumerate(self.args) if getattr(each, "shape", None) == shape]
        return fitting[-1] if fitting else None

    def _block(self, wrong: int | None) -> Dim3:
        """Return the block that went wrong; the first one where that is not known."""
        finding = getattr(self.error, "finding", None)
        kernel: Kernel = self.kernel.simulated
        if isinstance(finding, Finding):
            return finding.block
        launch = launch_of(self.grid, self.block, copied(self.args), self.shared_mem, SECONDS)
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        numbers = range(min(total, MOST_BLOCKS))
        if wrong is None:
            findings = kernel._check(launch, TOOLS, numbers)
            return findings[0].block if findings else (0, 0, 0)
        assert isinstance(self.error, Mismatch)
        output = launch.args[wrong]
        assert isinstance(output, np.ndarray)
        place = output[self.error.index]
        for number in numbers:
            mark = np.bitwise_not(place.view(f"u{place.itemsize}")).view(place.dtype)
            output[self.error.index] = mark
            kernel.run_blocks(launch, [number])
            if output[self.error.index].tobytes() != mark.tobytes():
                return _place(number, launch.grid)
        return 0, 0, 0

    def _written(self, found: Recording, wrong: int) -> int:
        """Return how many events there are up to the last one that writes the wrong element, or 0."""
        assert isinstance(self.error, Mismatch)
        trace = Trace(found)
        name = found.memory.name_of(wrong)
        index = "".join(f"[{each}]" for each in self.error.index)
        frame = trace.accesses
        writes = frame[(frame.element == name + index) & (frame.kind != "load")] if len(frame) else frame
        return int(writes.event.max()) + 1 if len(writes) else 0


def _place(number: int, grid: Dim3) -> Dim3:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
