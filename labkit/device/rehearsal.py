"""Rehearse a launch: try it in the simulator before it goes to the GPU.

On a GPU, an access outside the arrays ends all work of the process, and nothing stops an endless loop. So the
blocks in which kernels usually fail (at the corners and in the middle of the grid, and some between) run
first in the simulator, with all its checks, on arrays with the same shapes and relative addresses. Their
contents are copied from the GPU if they are small, or if an address or a branch depends on them
(analysis.deciders). Otherwise they hold zeros, which take no memory until they are touched.

A rehearsal does not see mistakes that only other blocks make, races between blocks that were not chosen, or
array contents that change after the rehearsal in an otherwise similar launch.
"""

import warnings
from collections.abc import Callable, Hashable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import product
from math import prod
from mmap import mmap
from typing import Any, TypeGuard

import numpy as np

from labkit import simt
from labkit.core.errors import BarrierError, InvalidAccess, LaunchError, SimtError, Timeout
from labkit.core.kernel import TOOLS, Launch
from labkit.core.limits import Dim3
from labkit.core.tensor_map import TensorMap, extent, in_simulator
from labkit.simt.analysis.deciders import find_deciders
from labkit.simt.launch.arguments import GPU_ALIGNMENT

SECONDS = 1.0  # time after which the checks have seen enough
BETWEEN = 8  # blocks spread evenly over the grid
SMALL_BYTES = 32 << 20  # arrays of a launch are copied if all together are smaller: milliseconds
MOST_BYTES = 1 << 30  # larger arrays are never copied
ERRORS = {  # by a finding's kind; the others are SimtErrors
    "out of bounds": InvalidAccess,
    "misaligned": InvalidAccess,
    "divergent barrier": BarrierError,
    "time limit": Timeout,
    "wrong dtype": LaunchError,
}
NOT_LAUNCHED = (
    "This is from the simulator, where the launch was tried first (blocks: {tried} of {total}). Nothing has "
    "run on the GPU."
)
LONG = (
    "A kernel that must take so long gets a longer timeout=…; one that waits for other blocks goes to the "
    "GPU untried with kernel.rehearse = False."
)


class Rehearsals:
    """The rehearsals of one kernel: the first launch of each kind is tried.

    Launches are of the same kind if grid, block, shared memory, the shapes, types and alignments of the
    arrays, and all numbers that an address or a branch depends on are the same.
    """

    def __init__(self, kernel: simt.Kernel) -> None:
        self.kernel, self._deciders, self._tried = kernel, find_deciders(kernel.parsed), set[Hashable]()

    def first(self, launch: Launch, on_host: Callable[[bool], Sequence[object]]) -> bool:
        """Try a launch unless a similar one was tried, and return whether it was the first.

        `on_host(contents)` returns the arguments with NumPy arrays instead of those on the GPU, with their
        contents or with zeros. Raises the error of the first finding. Where the simulator cannot run the
        kernel, a warning says that it goes to the GPU untried.
        """
        args = launch.args
        key = launch.grid, launch.block, launch.shared_mem, *map(self._sign, range(len(args)), args)
        if key in self._tried:
            return False
        size = sum(array.nbytes for array in _arrays(args))
        if self._deciders.contents and size > MOST_BYTES:
            reason = f"what its arrays hold decides where it goes, and {size / 1e9:.3g} GB are much to copy"
            warn_untried(self.kernel.name, reason)
        else:
            try:
                given = on_host(self._deciders.contents or size <= SMALL_BYTES)
                rehearse(self.kernel, replace(launch, args=given))
            except (
                Exception
            ) as error:  # also what the simulator stumbles over: a right kernel must not be kept
                if isinstance(error, LaunchError) or getattr(error, "finding", None):
                    raise
                warn_untried(self.kernel.name, error)
        self._tried.add(key)
        return True

    def _sign(self, position: int, arg: Any) -> Hashable:
        """Return what arguments of similar launches have in common."""
        if _is_array(arg):
            return arg.shape, arg.dtype.str, arg.data.ptr % 16 if hasattr(arg.data, "ptr") else 0
        if isinstance(arg, TensorMap):
            return replace(arg.geometry, address=arg.geometry.address % GPU_ALIGNMENT)
        if position not in self._deciders.arguments:
            return None
        return arg.tobytes() if isinstance(arg, np.generic) else repr(arg)


def rehearse(kernel: simt.Kernel, launch: Launch) -> None:
    """Run some blocks of a launch in the simulator with all checks; its arrays are changed.

    Raises InvalidAccess, BarrierError, Timeout or SimtError, with the finding. The checks end after SECONDS.
    What they have found by then counts, provided that the current block ends within the time limit of the
    launch.
    """
    blocks = choose_blocks(launch.grid)
    with redirect_stdout(StringIO()):  # the kernel prints only on the GPU
        findings = kernel._check(replace(launch, timeout=SECONDS), TOOLS, blocks)
        if [finding.tool for finding in findings] == ["timeout"]:
            if kernel.is_cooperative:  # all blocks of the grid ran, and have seen no mistake so far
                return
            (x, y, _), (i, j, k) = launch.grid, findings[0].block
            number = i + x * (j + y * k)
            findings = kernel._check(launch, TOOLS, [number])
    if not findings:
        return
    first, error = findings[0], ERRORS.get(findings[0].kind, SimtError)
    told = [str(first), NOT_LAUNCHED.format(tried=len(blocks), total=prod(launch.grid))]
    raise error("\n".join([*told, LONG] if error is Timeout else told), first)


def choose_blocks(grid: Dim3) -> list[int]:
    """Return the blocks to try: the last, the first, then the other corners, middles and some between."""
    x, y, _ = grid
    places = product(*({0, size // 2, size - 1} for size in grid))
    numbers, last = {i + x * (j + y * k) for i, j, k in places}, prod(grid) - 1
    numbers.update(last * part // (BETWEEN - 1) for part in range(BETWEEN))
    return list(dict.fromkeys([last, 0, *sorted(numbers, reverse=True)]))


def warn_untried(kernel: str, reason: object) -> None:
    """Say that a kernel goes to the GPU without a rehearsal."""
    warnings.warn(
        f"kernel `{kernel}` goes to the GPU untried ({reason}): if it fails there, restart Python",
        stacklevel=2,
    )


def twins(args: Sequence[Any], contents: bool) -> list[Any]:
    """Return a launch's arguments with NumPy arrays instead of CuPy's, with the same contents or zeros.

    They share memory and are aligned as those on the GPU are, and so are those of tensor maps. Zeros take no
    memory until they are touched.
    """
    spans: dict[int, tuple[int, int]] = {}  # of the GPU memory that the arrays occupy
    for array in _arrays(args):
        owner, first = array.data.mem.ptr, array.data.ptr
        start, end = spans.get(owner, (first, first))
        spans[owner] = min(start, first), max(end, first + _bytes(array))
    memory = {owner: _zeros(end - start, start) for owner, (start, end) in spans.items()}

    def twin(array: Any) -> np.ndarray:
        offset = array.data.ptr - spans[array.data.mem.ptr][0]
        made = np.ndarray(array.shape, array.dtype, memory[array.data.mem.ptr], offset, array.strides)
        if contents:
            made[...] = array.get()
        return made

    def on_host(arg: Any) -> Any:
        if isinstance(arg, TensorMap):
            return in_simulator(arg.geometry, twin(arg.array))
        return twin(arg) if _is_array(arg) else arg

    return [on_host(arg) for arg in args]


def _arrays(args: Sequence[Any]) -> list[Any]:
    """Return the arrays of a launch, those behind tensor maps included."""
    given = [arg.array if isinstance(arg, TensorMap) else arg for arg in args]
    return [array for array in given if _is_array(array)]


def _bytes(array: Any) -> int:
    """Return the bytes from an array's first element to the end of its last."""
    return extent(array.shape, array.strides, array.dtype.itemsize)


def _zeros(size: int, address: int) -> np.ndarray:
    """Return that many zero bytes, which lie in an array as `address` lies after a boundary of 256 bytes."""
    pages = np.frombuffer(mmap(-1, size + GPU_ALIGNMENT), np.uint8)  # begin at such a boundary
    first = address % GPU_ALIGNMENT
    return pages[first : first + size]


def _is_array(arg: object) -> TypeGuard[Any]:
    """Return whether it is an array of NumPy or CuPy."""
    return hasattr(arg, "shape") and not isinstance(arg, np.generic)
