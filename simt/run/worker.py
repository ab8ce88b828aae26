"""The memory of a block that runs, or of one after the other: frames, shared memory and counters."""

import ctypes

import numpy as np

from simt.analysis.layout import STRIDE
from simt.code.abi import Counter, Frame, Launch, Visits
from simt.code.compiled import Compiled
from simt.code.jit import Library
from simt.common.limits import Dim3
from simt.counters.traffic import Trace

SHARED_ALIGN = STRIDE  # the low bits of a generic address are the offset, as on a GPU: descriptors take them


class Worker:
    """One host thread's memory: the frames of a block's warps, its shared memory, and the counters."""

    def __init__(self, compiled: Compiled, sites: int, visits: tuple[int, int], shared_bytes: int) -> None:
        together, warps = compiled.blocks_together, compiled.warps
        self.frames = _aligned(together * warps * compiled.frame_bytes)
        self.shared = _aligned((together - 1) * STRIDE + shared_bytes, SHARED_ALIGN)
        self.shared_bytes = shared_bytes
        self.counters = np.zeros((sites, len(Counter._fields_)), np.int64)
        self.visits = np.zeros((*visits, len(Visits._fields_)), np.int64)  # or Visit, of the same size
        self.trace: Trace | None = None
        # Where blocks wait for each other: the block's number, and hashes of its states while it waited; in a
        # checked run the shadow of its shared memory and the first stamp there, and whether a fence has run.
        self.number, self.states, self.shadow, self.fenced = -1, set[int](), (0, 0), 0
        self.heads = [
            Frame.from_address(self.frames.ctypes.data + number * compiled.frame_bytes)
            for number in range(together * warps)
        ]
        for number, frame in enumerate(self.heads):
            frame.rank, frame.warp = divmod(number, warps)
            frame.shared = self.shared.ctypes.data + frame.rank * STRIDE
            frame.counters = self.counters.ctypes.data
            frame.visits = self.visits[frame.warp % len(self.visits)].ctypes.data

    def record(self, blocks: int, room: int, alike: np.ndarray | None) -> None:
        """Make room for records of where this many blocks access global memory."""
        self.trace = self.trace or Trace(len(self.counters))
        start = self.trace.begin(blocks, len(self.heads), room, alike)
        for head in self.heads:
            head.trace, head.traced_block = start, -1

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
