"""The launch that was timed, as far as it takes to predict its time; it keeps no array alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import simt
from simt.common.launches import LaunchLog
from simt.common.tensor_map import TensorMap
from simt.kernel import Predicted
from simt.launch.twins import described, is_array, zeros


@dataclass(frozen=True)
class Launched:
    """A launch of a kernel.

    `args` describe its arrays; `itself` returns each argument, or None where it was an array that is gone.
    """

    kernel: simt.AnyKernel
    grid: Any
    block: Any
    args: tuple[object, ...]
    itself: tuple[Callable[[], object], ...]
    shared_mem: int

    def predict(self, gpu: str) -> Predicted | None:
        """Predict its time on a GPU; None where the arrays' contents decide what runs, and they are gone.

        Raises what `kernel.predict` raises.
        """
        on = self.grid, self.block
        if not contents_decide(self.kernel.simulated, gpu):
            return self.kernel.simulated.predict(*on, zeros(self.args), self.shared_mem, gpu)
        kept = [each() for each in self.itself]
        if any(each is None for each in kept):
            return None
        return self.kernel.predict(*on, kept, self.shared_mem, gpu)


def contents_decide(kernel: simt.AnyKernel, gpu: str) -> bool:
    """Say whether the contents of arrays decide which machine code runs, or where."""
    if not isinstance(kernel, simt.Kernel):
        return True
    return kernel.lifted(kernel.sass(gpu).code, keeps_traffic=True).needs_contents


def launched(seen: LaunchLog, calls: int) -> Launched | None:
    """Return the launch that each of so many calls made; None where a call made none, or several."""
    if seen.last is None or seen.count != calls:
        return None
    kernel, grid, block, args, shared_mem = seen.last
    return Launched(kernel, grid, block, described(args), tuple(map(_itself, args)), shared_mem)


def _itself(arg: Any) -> Callable[[], object]:
    """Return what finds an argument later, without keeping an array alive."""
    if not is_array(arg) and not isinstance(arg, TensorMap):
        return lambda: arg
    try:
        return weakref.ref(arg)
    except TypeError:  # this library's arrays cannot be referred to without keeping them
        return lambda: None
