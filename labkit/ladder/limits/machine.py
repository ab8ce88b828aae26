"""What the benchmarks of limits share: kernels, arrays, cycles and seconds on the device in use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from labkit.devices.select import device
from labkit.devices.timing import time_kernel

MIB = 2**20
SECONDS = 0.1  # measuring time of a limit of the whole GPU
LEAST_BYTES = 2**16  # of an array in the simulator
SHRUNK = 2**12  # times: an array in the simulator


@dataclass(frozen=True)
class Limit:
    """A figure to measure; the module `limits` explains the quantities."""

    quantity: str
    variant: str
    unit: str
    measure: "Callable[[Machine], float]"

    def __str__(self) -> str:
        return f"{self.quantity}, {self.variant}"


@dataclass
class Machine:
    """The device in use. In the simulator, where figures mean nothing, all is small."""

    modules: dict[str, Any] = field(default_factory=dict)
    arrays: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def is_gpu(self) -> bool:
        """Say whether figures mean something."""
        return device().kind == "gpu"

    @cached_property
    def multiprocessors(self) -> int:
        """Return the number of SMs; 2 in the simulator."""
        return device().multiprocessors or 2

    def rounds(self, count: int) -> int:
        """Return how often a kernel repeats its work: once in the simulator."""
        return count if self.is_gpu else 1

    def size(self, size: int) -> int:
        """Return the bytes of an array: in the simulator a small part."""
        return size if self.is_gpu else max(LEAST_BYTES, size // SHRUNK)

    def array(self, size: int, place: int = 0) -> Any:
        """Return the first `size` bytes of array number `place`; what they hold is not known, but is set."""
        from labkit.devices.select import xp

        if place not in self.arrays or self.arrays[place].nbytes < size:
            self.arrays.pop(place, None)  # frees it first
            self.arrays[place] = xp.zeros(size // 4, xp.uint32)
        return self.arrays[place][: size // 4]

    def kernel(self, file: str, name: str) -> Any:
        """Return a kernel of the file, which is compiled once with all of its kernels."""
        if file not in self.modules:
            from labkit.devices.select import RawModule

            self.modules[file] = RawModule(code=source(file), name_expressions=names(file))
        kernel = self.modules[file].get_function(name)
        kernel.rehearse = False
        return kernel

    def launch(self, kernel: Any, grid: int, block: int, args: tuple[Any, ...]) -> None:
        """Launch a kernel; Python's integers become 32-bit ones."""
        kernel((grid,), (block,), _typed(args))

    def seconds(self, kernel: Any, grid: int, block: int, args: tuple[Any, ...]) -> float:
        """Return the seconds of a launch after an L2 flush; see `time_kernel`."""
        typed = _typed(args)
        return time_kernel(lambda: kernel((grid,), (block,), typed), seconds=SECONDS).seconds

    def cycles_of_thread(self, kernel: Any, block: int, args: tuple[Any, ...]) -> int:
        """Return the cycles that one block notes in its first argument."""
        from labkit.devices.select import xp

        noted = xp.zeros(2, xp.int64)
        self.launch(kernel, 1, block, (noted, *args))
        return int(noted[0])

    def cycles_of_block(self, kernel: Any, block: int, args: tuple[Any, ...]) -> int:
        """Return the cycles from the first warp's first to the last warp's last, which one block notes."""
        from labkit.devices.select import xp

        starts, ends = xp.zeros(block // 32, xp.int64), xp.zeros(block // 32, xp.int64)
        self.launch(kernel, 1, block, (starts, ends, *args))
        return span(starts, ends)

    def flush(self) -> None:
        """Fill the L2 cache with something else."""
        from labkit.devices.select import xp

        xp.zeros(self.size(max(2 * device().l2_bytes, 512 * MIB)), xp.uint8).fill(1)


def span(starts: Any, ends: Any) -> int:
    """Return the cycles from the first start to the last end; an SM's warps have one clock."""
    return int(ends.max()) - int(starts.min())


@cache
def source(file: str) -> str:
    """Return the source of a file of kernels, such as "rates"."""
    return (Path(__file__).parent / f"{file}.cu").read_text(encoding="utf-8")


def names(file: str) -> tuple[str, ...]:
    """Return the template instances that are measured of a file."""
    from labkit.ladder.limits import latency, launches, memory, rates

    modules = {"latency": latency, "rates": rates, "memory": memory, "launches": launches}
    return tuple(modules[file].INSTANCES)


def _typed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.int32(arg) if isinstance(arg, int) else arg for arg in args)
