"""The launch that was timed, as far as it takes to predict its time; it keeps no array alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit import simt
from labkit.core.kernel import Predicted
from labkit.core.launches import Seen
from labkit.core.tensor_map import Geometry, TensorMap, in_simulator


@dataclass(frozen=True)
class Array:
    """An array of a launch: its shape and dtype, and the array itself while somebody else keeps it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    itself: Callable[[], object]

    @property
    def zeros(self) -> np.ndarray:
        """Return zeros of that shape, which take no memory until somebody writes to them."""
        return np.zeros(self.shape, self.dtype)


@dataclass(frozen=True)
class Map:
    """A tensor map of a launch, without its array."""

    geometry: Geometry

    @property
    def zeros(self) -> TensorMap:
        """Return the simulator's tensor map of zeros, which take no memory until somebody writes to them."""
        geometry = self.geometry
        zeros = np.zeros(geometry.extent, np.uint8)
        return in_simulator(geometry, zeros)


@dataclass(frozen=True)
class Launched:
    """A launch of a kernel; arrays among its arguments are an `Array`, tensor maps a `Map`."""

    kernel: simt.AnyKernel
    grid: Any
    block: Any
    args: tuple[object, ...]
    shared_mem: int

    def predict(self, gpu: str) -> Predicted | None:
        """Predict its time on a GPU; None where the arrays' contents decide what runs, and they are gone.

        Raises what `kernel.predict` raises.
        """
        on = self.grid, self.block
        if not contents_decide(self.kernel.simulated, gpu):
            zeros = [each.zeros if isinstance(each, Array | Map) else each for each in self.args]
            return self.kernel.simulated.predict(*on, zeros, self.shared_mem, gpu)
        kept = [each.itself() if isinstance(each, Array) else each for each in self.args]
        if any(each is None or isinstance(each, Map) for each in kept):
            return None
        return self.kernel.predict(*on, kept, self.shared_mem, gpu)


def contents_decide(kernel: simt.AnyKernel, gpu: str) -> bool:
    """Say whether the contents of arrays decide which machine code runs, or where."""
    if not isinstance(kernel, simt.Kernel):
        return True
    return kernel._lifted(kernel.sass(gpu).code, keeps_traffic=True).needs_contents


def launched(seen: Seen, calls: int) -> Launched | None:
    """Return the launch that each of so many calls made; None where a call made none, or several."""
    if seen.last is None or seen.count != calls:
        return None
    kernel, grid, block, args, shared_mem = seen.last
    return Launched(kernel, grid, block, tuple(map(_kept, args)), shared_mem)


def _kept(arg: Any) -> object:
    """Return what to keep of an argument."""
    if isinstance(arg, TensorMap):
        return Map(arg.geometry)
    if not isinstance(arg, np.ndarray) and not hasattr(arg, "__cuda_array_interface__"):
        return arg
    try:
        itself: Callable[[], object] = weakref.ref(arg)
    except TypeError:  # this library's arrays cannot be referred to without keeping them
        itself = _gone
    return Array(arg.shape, arg.dtype, itself)


def _gone() -> None:
    return None
