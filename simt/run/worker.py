"""The memory of a block that runs, or of one after the other: frames and shared memory."""

import ctypes
from typing import Any

import numpy as np

from simt.analysis.layout import STRIDE
from simt.code.abi import Frame, Launch
from simt.code.compiled import Compiled
from simt.code.jit import Library
from simt.common.limits import Dim3

SHARED_ALIGN = STRIDE  # the low bits of a generic address are the offset, as on a GPU: descriptors take them


class Worker:
    """One host thread's memory: the frames of a block's warps, and its shared memory.

    `observed` is what an observer keeps with it. Where blocks wait for each other, `number` is the block's,
    and `states` are hashes of its states while it waited.
    """

    def __init__(self, compiled: Compiled, shared_bytes: int) -> None:
        together, warps = compiled.blocks_together, compiled.warps
        self.frames = _aligned(together * warps * compiled.frame_bytes)
        self.shared = _aligned((together - 1) * STRIDE + shared_bytes, SHARED_ALIGN)
        self.shared_bytes = shared_bytes
        self.observed: Any = None
        self.number, self.states = -1, set[int]()
        self.heads = [
            Frame.from_address(self.frames.ctypes.data + number * compiled.frame_bytes)
            for number in range(together * warps)
        ]
        for number, frame in enumerate(self.heads):
            frame.rank, frame.warp = divmod(number, warps)
            frame.shared = self.shared.ctypes.data + frame.rank * STRIDE

    @property
    def waits_at(self) -> int:
        """Return the number of the barrier at which the block's warps wait; 0: all have ended."""
        return max(0, *(head.resume for head in self.heads))

    @property
    def place(self) -> Dim3:
        """Return the coordinates of the block."""
        return self.heads[0].x, self.heads[0].y, self.heads[0].z

    def run(self, library: Library, launch: Launch) -> None:
        """Run blocks, or the one that the frames are for."""
        library.run(ctypes.addressof(launch), self.frames.ctypes.data, self.shared.ctypes.data)


def _aligned(size: int, alignment: int = 256) -> np.ndarray:
    """Return bytes that start at a multiple of `alignment`, as shared memory does on a GPU."""
    memory = np.zeros(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
