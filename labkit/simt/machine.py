"""Run a compiled kernel: blocks on all cores of the host, a time limit, mistakes turned into errors."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from labkit.simt.abi import Counter, Frame, Launch
from labkit.simt.arguments import Range
from labkit.simt.codegen import warp_function
from labkit.simt.driver import add_driver
from labkit.simt.findings import Diagnosis, Dim3
from labkit.simt.flow import Flow
from labkit.simt.jit import Library, object_code
from labkit.simt.layout import Layout, Storage
from labkit.simt.printing import Printer
from labkit.simt.ptx import Kernel
from labkit.simt.shapes import ShapeRules

POLL_SECONDS = 0.05
_pool: ThreadPoolExecutor | None = None


def host_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Sample:
    """Which blocks a counted run looks at, of how many."""

    numbers: np.ndarray
    total: int


class Program:
    """A kernel compiled for one block shape; `counted` code adds up what each memory instruction costs."""

    def __init__(self, kernel: Kernel, storage: Storage, block: Dim3, counted: bool, ptx: str) -> None:
        self.kernel = kernel
        rules = ShapeRules(block, storage.local_bytes, frozenset(storage.local))
        self.layout = Layout(storage, block, Flow(kernel, rules))

        def make() -> ir.Module:
            module = ir.Module(name=kernel.name)
            add_driver(module, warp_function(module, self.layout.flow, self.layout, counted), self.layout)
            return module

        self.library = Library(object_code([ptx, kernel.name, repr(block), repr(counted)], make))

    def run(
        self,
        grid: Dim3,
        params: bytes,
        ranges: Sequence[Range],
        shared_bytes: int,
        timeout: float,
        source: Sequence[str],
        sample: Sample | None = None,
    ) -> np.ndarray:
        """Run all blocks (or a sample). Gives the counters: a row an instruction, zeros in plain code.

        Raises the error of the first mistake, or Timeout; what was written until then stays written.
        """
        blocks = len(sample.numbers) if sample else grid[0] * grid[1] * grid[2]
        threads = max(1, min(host_threads(), blocks))
        workers = [_Worker(self.layout, len(self.kernel.code), shared_bytes) for _ in range(threads)]
        printer = Printer([(r.start, r.start + r.size) for r in ranges])
        table = np.array([[r.start, r.start + r.size, r.shift] for r in ranges], np.uint64).reshape(-1)
        data = np.frombuffer(params or b"\0", np.uint8)
        launch = Launch(
            params=data.ctypes.data,
            ranges=table.ctypes.data if table.size else None,
            range_count=len(ranges),
            shared_bytes=shared_bytes,
            block_count=blocks,
            print=ctypes.cast(printer.callback, ctypes.c_void_p),
            blocks=sample.numbers.ctypes.data if sample else None,
            grid_x=grid[0],
            grid_y=grid[1],
            grid_z=grid[2],
            stopped_at=-1,
        )
        in_time = self._wait(
            [_executor().submit(worker.run, self.library, launch) for worker in workers], launch, timeout
        )
        print(printer.text, end="")
        diagnosis = Diagnosis(self.kernel, source, self.layout.block, shared_bytes, self._barrier_lines())
        if launch.error:
            raise diagnosis.error(launch, ranges)
        if not in_time:
            raise diagnosis.timeout(launch, timeout)
        return np.sum([worker.counters for worker in workers], axis=0)

    def _wait(self, futures: Sequence[Future[None]], launch: Launch, timeout: float) -> bool:
        """Wait for all; stop them when the time is over, or at Ctrl-C."""
        end = time.monotonic() + timeout
        try:
            while time.monotonic() < end:
                if not wait(futures, timeout=min(POLL_SECONDS, max(0.0, end - time.monotonic()))).not_done:
                    return True
            return False
        finally:
            if any(not future.done() for future in futures):
                launch.stop = 1
                wait(futures)

    def _barrier_lines(self) -> list[int]:
        blocks = self.layout.flow.blocks
        return [blocks[index].code[-1].line for index in self.layout.barriers]


class _Worker:
    """Memory of one thread of the host: the frames of a block's warps, its shared memory, counters."""

    def __init__(self, layout: Layout, sites: int, shared_bytes: int) -> None:
        self.frames = _aligned(layout.warps * layout.frame_bytes)
        self.shared = _aligned(shared_bytes)
        self.counters = np.zeros((sites, len(Counter._fields_)), np.int64)
        for warp in range(layout.warps):
            frame = Frame.from_address(self.frames.ctypes.data + warp * layout.frame_bytes)
            frame.warp, frame.shared = warp, self.shared.ctypes.data
            frame.counters = self.counters.ctypes.data

    def run(self, library: Library, launch: Launch) -> None:
        library.run(ctypes.addressof(launch), self.frames.ctypes.data, self.shared.ctypes.data)


def _aligned(size: int, alignment: int = 256) -> np.ndarray:
    """Bytes that start at a multiple of `alignment`, as shared memory does on a GPU."""
    memory = np.zeros(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]


def _executor() -> ThreadPoolExecutor:
    """Threads that stay between launches; a launch is over before the next begins."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(host_threads(), thread_name_prefix="labkit-simt")
    return _pool
