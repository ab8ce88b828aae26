"""Run a compiled kernel on all cores of the host, with a time limit, and turn mistakes into errors."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from typing import Literal

import numpy as np
from llvmlite import ir

from simt.analysis.convergence import Groups
from simt.analysis.flow import Flow
from simt.analysis.indices import thread_indices
from simt.analysis.layout import Layout, Storage, granules
from simt.analysis.pointees import written_ranges
from simt.analysis.shapes import ShapeRules
from simt.analysis.strides import strides
from simt.asynchronous.cluster import Host
from simt.asynchronous.ordering import Ordering
from simt.asynchronous.services import Services
from simt.code import abi
from simt.code.abi import Launch
from simt.code.codegen import warp_function
from simt.code.compiled import Compiled
from simt.code.driver import add_driver
from simt.code.jit import Library, host_key, machine_code
from simt.code.observe import Observer
from simt.common.errors import BarrierError
from simt.common.limits import Dim3
from simt.counters.counting import Counting
from simt.counters.counts import NO_TOTALS, Reader, Totals
from simt.counters.recording import Log, Recording
from simt.counters.tracing import MOST, Tracing
from simt.counters.traffic import Traffic
from simt.counters.wavefronts import Issues
from simt.disk_cache import disk_cached
from simt.launch.arguments import Range, array_range
from simt.launch.sample import Sample, clusters_of
from simt.ptx import Kernel
from simt.run.printing import Printer
from simt.run.residents import Residents
from simt.run.thread_pool import can_run_here, run_all, run_here
from simt.run.worker import Worker
from simt.sanitizer.asynchronous import AsynchronousChecking
from simt.sanitizer.checking import Checking
from simt.sanitizer.element_types import first_uses
from simt.sanitizer.findings import Diagnosis, Finding
from simt.sanitizer.sanitizer import Sanitizer
from simt.sanitizer.warp_look import LookKind, look_module
from simt.texture import Table

SECONDS_A_THREAD = 4e-4  # of work; waking a thread costs about 50 microseconds, and its cache is cold
SHORT_SECONDS = 2 * SECONDS_A_THREAD  # less than this runs on one thread


def host_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Mode = Literal["plain", "counted", "issued", "traffic", "traced", "recorded", "checked"]
_OBSERVERS: dict[Mode, type[Observer]] = {
    "plain": Observer,
    "counted": Counting,
    "issued": Issues,
    "traffic": Traffic,
    "traced": Tracing,
    "recorded": Recording,
    "checked": Checking,
}

_COUNTING: tuple[Mode, ...] = ("counted", "issued", "traffic")  # they fill each instruction's counters
_OF_MACHINE_CODE: tuple[Mode, ...] = ("issued", "traffic")
MOST_RESIDENTS = 1024  # blocks, where nobody knows the GPU
RECORDS = 1 << 18  # of accesses to global memory that a launch keeps


def compile_kernel(
    kernel: Kernel, storage: Storage, block: Dim3, mode: Mode, is_huge: bool, is_brief: bool
) -> Compiled:
    """Compile a kernel for blocks of one shape.

    `is_huge` is for grids in which thread indices may wrap round, `is_brief` for few threads (see jit.py).
    Raises SimtError for an instruction that the simulator does not know.
    """
    indices = frozenset[str]() if is_huge else thread_indices(kernel)
    rules = ShapeRules(block, storage.local_bytes, frozenset(storage.local), indices)
    flow = (Groups if mode in _OF_MACHINE_CODE else Flow)(kernel, rules)
    layout = Layout(storage, block, flow, is_checked=mode == "checked")
    module = ir.Module(name=kernel.name)
    observer = AsynchronousChecking() if mode == "checked" and kernel.is_asynchronous else _OBSERVERS[mode]()
    warp = warp_function(module, flow, layout, observer)
    add_driver(module, warp, layout, is_checked=mode == "checked", is_ordered=mode == "recorded")
    site = {id(instruction): i for i, instruction in enumerate(kernel.code)}
    blocks = [[site[id(instruction)] for instruction in each.code] for each in flow.blocks]
    return Compiled(
        machine_code(module, is_brief),
        layout.warps,
        layout.frame_bytes,
        [blocks[index][-1] for index in layout.barriers],
        blocks,
        first_uses(layout) if mode == "checked" else {},
        written_ranges(kernel, storage.ranges) if mode == "checked" else None,
        observer.known if isinstance(observer, Counting) else np.empty(0),
        strides(kernel, flow) if mode == "counted" else [None] * len(kernel.code),
        layout.local_start,
        kernel.blocks_together,
        frozenset(layout.turn_states),
        tuple(observer.look_kinds) if isinstance(observer, Checking) else (),
    )


@lru_cache
def _look(kind: LookKind) -> Library:
    """Return the machine code of a look, which all checked kernels share."""
    code = disk_cached(
        "look", [repr(kind), *host_key()], lambda: machine_code(look_module(kind), is_brief=False)
    )
    return Library(code)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector, which takes a fifth of the time in which LLVM code is written."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


class Program:
    """A kernel compiled for one block shape; `mode` says what its code does besides computing."""

    def __init__(
        self,
        kernel: Kernel,
        storage: Storage,
        block: Dim3,
        mode: Mode,
        is_huge: bool,
        is_brief: bool,
        ptx: str,
    ) -> None:
        self.kernel, self.storage, self.block, self.mode = kernel, storage, block, mode
        how = (block, mode, is_huge, is_brief)
        key = [ptx, kernel.name, *map(repr, how), *host_key()]
        with collector_paused():
            self.compiled = disk_cached("native", key, lambda: compile_kernel(kernel, storage, *how))
        self.library = Library(self.compiled.code)
        looks = [_look(kind).address for kind in self.compiled.looks]
        self._looks = (ctypes.c_void_p * len(looks))(*looks)
        self.is_cooperative = kernel.waits_for_grid
        self.takes_turns = self.is_cooperative or kernel.waits_for_blocks
        self.granules = granules(kernel) if mode == "checked" else {}
        self.has_textures = any(i.is_texture for i in kernel.code)
        self._idle: list[Worker] = []
        self._block_seconds = math.inf

    def run(
        self,
        grid: Dim3,
        params: bytes,
        ranges: Sequence[Range],
        shared_bytes: int,
        timeout: float,
        source: Sequence[str],
        sample: Sample | None = None,
        findings: list[Finding] | None = None,
        record: Record | None = None,
        alike: np.ndarray | None = None,
        residents: Callable[[], int] = lambda: MOST_RESIDENTS,
    ) -> Totals:
        """Run all blocks, or a sample of them, and return the totals of a counted run.

        Raises the error of the first mistake, or Timeout; what was written until then stays written. A
        checked run adds to `findings`, and a recorded one fills `record`; both run one block after the other.
        A run that records traffic keeps all accesses in order, unless `alike` says which stand for others.
        Where blocks wait for each other, `residents` says how many of them the GPU holds at once.
        """
        textures = Table() if self.has_textures else None
        if textures:
            ranges = [*ranges, *map(array_range, textures.arrays())]
        diagnosis = Diagnosis(self.kernel, source, self.block, shared_bytes, self.storage.shared, ranges)
        # A whole program's arrays are no parameters of the kernel: any of them may be written.
        written = None if len(ranges) > len(self.storage.ranges) else self.compiled.written
        sanitizer = None if findings is None else Sanitizer(diagnosis, written, self.granules)
        if sample and self.kernel.blocks_together > 1:
            sample = clusters_of(sample, grid, self.kernel.cluster)
        blocks = len(sample.numbers) if sample else math.prod(grid) // self.kernel.blocks_together
        threads = 1 if sanitizer or record else self._worthwhile_threads(blocks)
        most = blocks if self.is_cooperative or not self.takes_turns else min(blocks, residents())
        begun = threads if not self.takes_turns else most if self.kernel.is_asynchronous else 1
        workers = [self._take_worker(shared_bytes) for _ in range(begun)]
        printer = Printer([(r.start, r.start + r.size) for r in ranges])
        table = (abi.Range * max(1, len(ranges)))(
            *(abi.Range(r.start, r.start + r.size, r.shift, r.is_constant) for r in ranges)
        )
        data = np.frombuffer(params or b"\0", np.uint8)
        launch = Launch(
            params=data.ctypes.data,
            ranges=ctypes.addressof(table),
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
        if self.mode == "traffic":
            for worker in workers:
                worker.record(blocks, RECORDS if blocks == 1 else RECORDS // 2, alike)
        if record:
            record.begin(launch, workers[0], self.compiled)
        if textures:
            launch.textures, launch.texture_count = (
                ctypes.addressof(textures.pointers),
                len(textures.pointers),
            )
        if sanitizer:
            sanitizer.prepare(launch, table)
            launch.looks = ctypes.addressof(self._looks)
        services, ordering = None, None
        if self.kernel.is_asynchronous:
            frames = [(worker.frames.ctypes.data, worker.frames.nbytes) for worker in workers]
            if findings is not None:
                ordering = Ordering(self.kernel, diagnosis, shared_bytes)
            host = Host(self.kernel, launch, diagnosis, frames, self.compiled.warps, ordering)
            watched = ordering.watched if ordering else None
            services = Services(host, [worker.heads for worker in workers], watched)
        start = time.perf_counter()
        jobs = [partial(worker.run, self.library, launch) for worker in workers]
        gone: BarrierError | None = None
        grid_run: Residents | None = None
        if self.takes_turns:
            new_worker = partial(self._take_worker, shared_bytes)
            grid_run = Residents(workers, new_worker, most, self.library, self.compiled, launch, sanitizer)
            in_time = grid_run.run(1 if record else host_threads(), timeout)
            if grid_run.is_stuck:
                gone = diagnosis.blocks_do_not_fit(launch, most)
            elif grid_run.waiting and in_time and not launch.error:
                worker = grid_run.waiting[0]
                site = self.compiled.barriers[worker.waits_at - 1]
                gone = diagnosis.blocks_gone(grid_run.ended, site, worker.place)
            self._idle = workers[:begun]
        else:
            in_time = (run_here if self._is_short(blocks) else run_all)(jobs, launch, timeout)
            self._idle = workers
        self._block_seconds = threads * (time.perf_counter() - start) / blocks
        if printer.text:
            print(printer.text, end="")
        if findings is not None and sanitizer:
            findings += sanitizer.finish()
            findings += ordering.finish() if ordering else []
        if services and services.error:
            raise services.error
        if launch.error:
            raise diagnosis.error(launch, self.compiled.barriers)
        if gone:
            raise gone
        if not in_time:
            ended = grid_run.ended if grid_run else max(0, launch.next_block - len(workers))
            raise diagnosis.timeout(launch, timeout, ended)
        if self.mode not in (*_COUNTING, "traced"):
            return NO_TOTALS
        return Totals(
            np.sum([worker.counters for worker in workers], axis=0),
            np.sum([worker.visits for worker in workers], axis=0),
            [worker.counters[:, -1].copy() for worker in workers] if self.mode == "counted" else [],
            np.concatenate([trace.records for worker in workers if (trace := worker.trace)])
            if self.mode == "traffic"
            else None,
            sum(worker.trace.recorded for worker in workers if worker.trace),
        )

    @cached_property
    def reader(self) -> Reader:
        """Return what computes the counts of this program's runs."""
        return Reader(self.kernel.code, self.compiled)

    def _worthwhile_threads(self, blocks: int) -> int:
        """Return how many threads of the host have enough to do, judging by the last launch."""
        needed = self._block_seconds * blocks / SECONDS_A_THREAD
        return max(1, min(host_threads(), blocks, int(min(needed, blocks))))

    def _is_short(self, blocks: int) -> bool:
        """Say whether this launch, judging by the last one, ends before another thread would be awake."""
        return self._block_seconds * blocks < SHORT_SECONDS and can_run_here()

    def _take_worker(self, shared_bytes: int) -> Worker:
        """Return an earlier launch's worker, if it fits, or a new one, with its counters at zero."""
        worker = self._idle.pop() if self._idle else None
        if worker is None or worker.shared_bytes != shared_bytes:
            sites = len(self.kernel.code) * (self.mode in _COUNTING)
            tables = self.compiled.warps if self.mode == "counted" else 1
            visits = 1 + MOST if self.mode == "traced" else len(self.compiled.blocks)
            return Worker(self.compiled, sites, (tables, visits), shared_bytes)
        worker.counters.fill(0)
        worker.visits.fill(0)
        return worker


class Record:
    """What a recorded run fills: `log`, and where shared and local memory lie.

    `order` has a row per round: the numbers of the block's warps, in the order in which they run.
    """

    def __init__(self, log: Log, order: np.ndarray) -> None:
        self.log, self.order = log, np.ascontiguousarray(order, np.int32)
        self.shared_start, self.local_starts = 0, list[int]()

    def begin(self, launch: Launch, worker: Worker, compiled: Compiled) -> None:
        """Have a launch fill the log."""
        launch.order, launch.rounds = self.order.ctypes.data, len(self.order)
        self.shared_start = worker.shared.ctypes.data
        start = worker.frames.ctypes.data + compiled.local_start
        self.local_starts = [start + warp * compiled.frame_bytes for warp in range(compiled.warps)]
        for head in worker.heads:
            head.trace = self.log.address
