"""Run a compiled kernel on all cores of the host, with a time limit, and turn mistakes into errors."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from simt.analysis.indices import MOST_BLOCKS
from simt.analysis.layout import Storage
from simt.asynchronous.cluster import Host
from simt.asynchronous.services import Services
from simt.code import abi
from simt.code.jit import Library, host_key
from simt.common.errors import BarrierError
from simt.common.limits import Dim3
from simt.disk_cache import disk_cached
from simt.findings import Diagnosis
from simt.kernel import Launch
from simt.launch.arguments import Range, array_range
from simt.launch.sample import Sample, clusters_of
from simt.ptx import Kernel
from simt.run.compile import collector_paused, compile_kernel
from simt.run.observer import LaunchRun, Observer
from simt.run.printing import Printer
from simt.run.residents import Residents
from simt.run.thread_pool import can_run_here, run_all, run_here
from simt.run.worker import Worker
from simt.texture import Table

SECONDS_A_THREAD = 4e-4  # of work; waking a thread costs about 50 microseconds, and its cache is cold
SHORT_SECONDS = 2 * SECONDS_A_THREAD  # less than this runs on one thread
# A launch of so few threads ends before optimising would pay off, so it gets brief code: see jit.py.
FEW_THREADS = 1 << 14
R = TypeVar("R")


def host_threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class BoundLaunch:
    """A launch that any GPU would accept, with its arguments as bytes and valid memory.

    It runs any number of times, with any observer. `shared_bytes` is the shared memory of one block, static
    and dynamic. Where blocks wait for each other, `residents` says how many of them the GPU holds at once.
    """

    code: NativeCode
    launch: Launch
    params: bytes
    ranges: Sequence[Range]
    shared_bytes: int
    residents: Callable[[], int]

    def run(self, observer: Observer[R], sample: Sample | None = None) -> R:
        """Run all blocks, or a sample of them, and return what the observer has seen.

        Raises the error of the first mistake, or Timeout. What was written until then stays written, and
        `observer.result` has what was seen until then.
        """
        blocks = math.prod(self.launch.grid) if sample is None else len(sample.numbers)
        self.code.program(self.launch, type(observer), blocks).run(self, observer, sample)
        return observer.result


class NativeCode:
    """A kernel's code, compiled when a launch needs it: for its shape of blocks and its observer.

    `text` is what the code was made from, which tells it from other code in the cache; `source` are the lines
    of the source that messages show.
    """

    def __init__(self, kernel: Kernel, storage: Storage, text: str, source: Sequence[str]) -> None:
        self.kernel, self.storage, self.text, self.source = kernel, storage, text, source
        self._programs: dict[tuple[object, ...], Program] = {}

    def program(self, launch: Launch, observer: type[Observer[Any]], blocks: int) -> Program:
        """Return what runs `blocks` blocks of a launch. Raises SimtError for an unknown instruction."""
        is_brief = observer.may_be_brief and blocks * math.prod(launch.block) <= FEW_THREADS
        key = launch.block, observer, max(launch.grid) > MOST_BLOCKS, is_brief
        if key not in self._programs:
            self._programs[key] = Program(self, *key)
        return self._programs[key]


@dataclass(frozen=True)
class _End:
    """How the blocks of a launch ended: the errors of what serves them and of blocks that wait for others."""

    served: BaseException | None
    gone: BarrierError | None
    in_time: bool
    blocks: int  # that have ended


class Program:
    """A kernel compiled for one shape of blocks and one kind of observer."""

    def __init__(
        self, code: NativeCode, block: Dim3, observer: type[Observer[Any]], is_huge: bool, is_brief: bool
    ) -> None:
        self.code, self.kernel, self.block = code, code.kernel, block
        kernel, storage = code.kernel, code.storage
        key = [code.text, kernel.name, *map(repr, (block, observer.name, is_huge, is_brief)), *host_key()]
        with collector_paused():
            self.compiled = disk_cached(
                "native", key, lambda: compile_kernel(kernel, storage, block, observer, is_huge, is_brief)
            )
        self.library = Library(self.compiled.code)
        self.is_cooperative = kernel.waits_for_grid
        self.takes_turns = self.is_cooperative or kernel.waits_for_blocks
        self.has_textures = any(i.is_texture for i in kernel.code)
        self._memo: dict[str, Any] = {}
        self._idle: list[Worker] = []
        self._block_seconds = math.inf

    def run(self, bound: BoundLaunch, observer: Observer[Any], sample: Sample | None = None) -> None:
        """Run all blocks of a launch, or a sample of them; see `BoundLaunch.run`."""
        textures = Table() if self.has_textures else None
        ranges = [*bound.ranges, *map(array_range, textures.arrays())] if textures else bound.ranges
        if sample and self.kernel.blocks_together > 1:
            sample = clusters_of(sample, bound.launch.grid, self.kernel.cluster)
        grid, together = bound.launch.grid, self.kernel.blocks_together
        blocks = len(sample.numbers) if sample else math.prod(grid) // together
        printer = Printer([(each.start, each.start + each.size) for each in ranges])
        data, table = np.frombuffer(bound.params or b"\0", np.uint8), _table(ranges)
        launch = abi.Launch(
            params=data.ctypes.data,
            ranges=ctypes.addressof(table),
            range_count=len(ranges),
            shared_bytes=bound.shared_bytes,
            block_count=blocks,
            print=ctypes.cast(printer.callback, ctypes.c_void_p),
            blocks=sample.numbers.ctypes.data if sample else None,
            grid_x=grid[0],
            grid_y=grid[1],
            grid_z=grid[2],
            stopped_at=-1,
        )
        if textures:
            launch.textures = ctypes.addressof(textures.pointers)
            launch.texture_count = len(textures.pointers)
        shared, source, storage = bound.shared_bytes, self.code.source, self.code.storage
        diagnosis = Diagnosis(self.kernel, source, self.block, shared, storage.shared, ranges)
        run = LaunchRun(
            self.kernel, storage, self.compiled, launch, ranges, table, diagnosis, blocks, self._memo
        )
        observer.begin(run)
        end = self._run_blocks(run, bound, observer)
        if printer.text:
            print(printer.text, end="")
        observer.finish(run)
        if end.served:
            raise end.served
        if launch.error:
            raise diagnosis.error(launch, self.compiled.barriers)
        if end.gone:
            raise end.gone
        if not end.in_time:
            raise diagnosis.timeout(launch, bound.launch.timeout, end.blocks)

    def _run_blocks(self, run: LaunchRun, bound: BoundLaunch, observer: Observer[Any]) -> _End:
        """Run the blocks until all have ended, one has failed, or the time is over."""
        threads = 1 if observer.one_by_one else self._worthwhile_threads(run.blocks)
        new_worker = partial(self._take_worker, run, observer)
        workers, at_once = self._begin_workers(run.blocks, threads, bound.residents, new_worker)
        run.workers = workers
        services = self._services(run, observer) if self.kernel.is_asynchronous else None
        begun, timeout, start = len(workers), bound.launch.timeout, time.perf_counter()
        gone = None
        if self.takes_turns:
            residents = Residents(workers, new_worker, at_once, self.library, run, observer)
            in_time = residents.run(1 if observer.one_by_one else host_threads(), timeout)
            gone, ended = self._gone(run, residents, at_once, in_time), residents.ended
        else:
            jobs = [partial(worker.run, self.library, run.launch) for worker in workers]
            in_time = (run_here if self._is_short(run.blocks) else run_all)(jobs, run.launch, timeout)
            ended = max(0, run.launch.next_block - len(workers))
        self._idle = workers[:begun]
        self._block_seconds = threads * (time.perf_counter() - start) / run.blocks
        return _End(services.error if services else None, gone, in_time, ended)

    def _begin_workers(
        self, blocks: int, threads: int, residents: Callable[[], int], new_worker: Callable[[], Worker]
    ) -> tuple[list[Worker], int]:
        """Return the workers that a launch begins with, and how many blocks may be under way at once."""
        at_once = blocks if self.is_cooperative or not self.takes_turns else min(blocks, residents())
        begun = threads if not self.takes_turns else at_once if self.kernel.is_asynchronous else 1
        return [new_worker() for _ in range(begun)], at_once

    def _services(self, run: LaunchRun, observer: Observer[Any]) -> Services:
        """Return what serves barriers of some threads, copies and products."""
        frames = [(worker.frames.ctypes.data, worker.frames.nbytes) for worker in run.workers]
        watcher = observer.watcher(run)
        host = Host(self.kernel, run.launch, run.diagnosis, frames, self.compiled.warps, watcher)
        watched = watcher.watched if watcher else None
        return Services(host, [worker.heads for worker in run.workers], watched)

    def _gone(self, run: LaunchRun, residents: Residents, at_once: int, in_time: bool) -> BarrierError | None:
        """Return the error of blocks that wait for others which have ended, or cannot begin."""
        if residents.is_stuck:
            return run.diagnosis.blocks_do_not_fit(run.launch, at_once)
        if residents.waiting and in_time and not run.launch.error:
            worker = residents.waiting[0]
            site = self.compiled.barriers[worker.waits_at - 1]
            return run.diagnosis.blocks_gone(residents.ended, site, worker.place)
        return None

    def _worthwhile_threads(self, blocks: int) -> int:
        """Return how many threads of the host have enough to do, judging by the last launch."""
        needed = self._block_seconds * blocks / SECONDS_A_THREAD
        return max(1, min(host_threads(), blocks, int(min(needed, blocks))))

    def _is_short(self, blocks: int) -> bool:
        """Say whether this launch, judging by the last one, ends before another thread would be awake."""
        return self._block_seconds * blocks < SHORT_SECONDS and can_run_here()

    def _take_worker(self, run: LaunchRun, observer: Observer[Any]) -> Worker:
        """Return an earlier launch's worker, if it fits, or a new one, with what the observer gives it."""
        worker = self._idle.pop() if self._idle else None
        if worker is None or worker.shared_bytes != run.launch.shared_bytes:
            worker = Worker(self.compiled, run.launch.shared_bytes)
        observer.attach(run, worker)
        return worker


def _table(ranges: Sequence[Range]) -> Any:
    """Return the record of valid memory that generated code reads."""
    rows = (abi.Range(each.start, each.start + each.size, each.shift, each.is_constant) for each in ranges)
    return (abi.Range * max(1, len(ranges)))(*rows)
