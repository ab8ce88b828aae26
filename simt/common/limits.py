"""The limits that GPUs set for a launch, and the messages about them.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", the same for 7.5 to
12.x.
"""

from collections.abc import Sequence

import numpy as np

from simt.common.buffer_names import shown
from simt.common.errors import LaunchError

WARP = 32
MAX_THREADS = 1024  # per block
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_STATIC_SHARED_BYTES = 48 * 1024
REGISTERS_PER_BLOCK = 65536
REGISTER_UNIT = 8  # registers per thread are allocated in multiples of this
Dim3 = tuple[int, int, int]


def as_dim3(size: int | Sequence[int], name: str) -> Dim3:
    """Return an int or a tuple of 1 to 3 ints as (x, y, z)."""
    given = tuple(size) if isinstance(size, Sequence) else (size,)
    if not 1 <= len(given) <= 3 or not all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given
    ):
        raise LaunchError(f"{name} {size!r} must be an int or a tuple of 1 to 3 ints, such as (16, 16)")
    x, y, z = (*(int(n) for n in given), 1, 1)[:3]
    return x, y, z


def check_launch(kernel: str, grid: Dim3, block: Dim3, max_threads: int = MAX_THREADS) -> None:
    """Raise LaunchError if no GPU would take this launch."""
    threads = block[0] * block[1] * block[2]
    shown = _shown(block)
    if min(block) < 1:
        raise LaunchError(f"block {shown} has no threads; every size must be at least 1")
    if threads > MAX_THREADS:
        square = " Choose TILE ≤ 32." if block[0] == block[1] and block[2] == 1 else ""
        raise LaunchError(
            f"block {shown} has {threads} threads; a block holds at most {MAX_THREADS}.{square}"
        )
    if any(n > limit for n, limit in zip(block, MAX_BLOCK, strict=True)):
        raise LaunchError(f"block {shown} is too large in one direction; the limits are {MAX_BLOCK}")
    if threads > max_threads:
        raise LaunchError(
            f"block {shown} has {threads} threads; kernel `{kernel}` was compiled with "
            f"__launch_bounds__({max_threads})"
        )
    if min(grid) < 1:
        raise LaunchError(f"grid {_shown(grid)} has no blocks; every size must be at least 1")
    if any(n > limit for n, limit in zip(grid, MAX_GRID, strict=True)):
        raise LaunchError(f"grid {_shown(grid)} is too large; the limits are {MAX_GRID}")


def max_threads_for(registers: int) -> int:
    """Return how many threads' registers fit a multiprocessor, in whole warps."""
    each = -(-max(registers, 1) // REGISTER_UNIT) * REGISTER_UNIT
    return min(MAX_THREADS, REGISTERS_PER_BLOCK // each // WARP * WARP)


def _shown(size: Dim3) -> str:
    """Return a size as the student wrote it, without trailing ones."""
    if size[2] != 1:
        return str(size)
    return str(size[:2]) if size[1] != 1 else f"({size[0]},)"


def check_array(array: np.ndarray, position: int, reader: str) -> None:
    """Refuse an array that `reader`, such as "a kernel", cannot take by its address: raise LaunchError."""
    if not array.flags.c_contiguous:
        raise LaunchError(
            f"{shown(array, position)} is not contiguous, row after row. Pass np.ascontiguousarray(...), "
            "and copy the result back if it is an output"
        )
    if not array.flags.writeable:
        raise LaunchError(
            f"{shown(array, position)} is read-only, and {reader} may write wherever it has a pointer. "
            "Pass a copy"
        )
