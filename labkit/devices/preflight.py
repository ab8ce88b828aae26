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
from typing import Any

import numpy as np

import simt
from simt.analysis.deciders import find_deciders
from simt.common.errors import BarrierError, InvalidAccess, LaunchError, SimtError, Timeout
from simt.common.limits import Dim3
from simt.common.tensor_map import TensorMap
from simt.kernel import TOOLS, Launch
from simt.launch.arguments import GPU_ALIGNMENT
from simt.launch.twins import arrays, is_array, placed

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
        size = sum(array.nbytes for array in arrays(args))
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
        if is_array(arg):
            return arg.shape, arg.dtype.str, placed(arg).shift % 16
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
        findings = kernel.check_launch(replace(launch, timeout=SECONDS), TOOLS, blocks)
        if [finding.tool for finding in findings] == ["timeout"]:
            if kernel.is_cooperative:  # all blocks of the grid ran, and have seen no mistake so far
                return
            (x, y, _), (i, j, k) = launch.grid, findings[0].block
            number = i + x * (j + y * k)
            findings = kernel.check_launch(launch, TOOLS, [number])
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
