"""Run blocks that wait for each other: those that a GPU holds at once take turns.

A block runs until it ends, waits at a barrier of the whole grid, or only waits for other blocks: all its
warps are at barriers or in loops that may spin (lowering/spinning.py). Then another has its turn. Blocks
begin in order, as on a GPU, and no more of them than it holds are under way.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from simt.code.jit import Library
from simt.run.observer import LaunchRun, Observer
from simt.run.thread_pool import run_all
from simt.run.worker import Worker

QUIET_TURNS, QUIET_SECONDS = 4, 1.0  # of each block in which nothing changes: they wait for blocks not begun


class Residents:
    """The blocks of a launch that are under way.

    `most` may be at once. `workers` is a worker per block so far, to which `new_worker` adds, and `waiting`
    are the workers of blocks that wait at the grid's barrier. `is_stuck`: all that are under way wait for
    others, which cannot begin.
    """

    def __init__(
        self,
        workers: list[Worker],
        new_worker: Callable[[], Worker],
        most: int,
        library: Library,
        run: LaunchRun,
        observer: Observer[Any],
    ) -> None:
        self.waiting, self.workers, self.is_stuck, self.ended = list[Worker](), workers, False, 0
        self._new_worker, self._most, self._turns = new_worker, most, run.compiled.turns
        self._library, self._launch, self._observer = library, run.launch, observer
        self._free, self._lock = list(workers), threading.Lock()
        self._under_way = self._quiet = 0
        self._quiet_since = 0.0
        for worker in workers:
            worker.number = -1

    def run(self, threads: int, timeout: float) -> bool:
        """Run until all blocks have ended, or some have while others wait. Return True if in time."""
        end = time.monotonic() + timeout
        turns = [deque[Worker]() for _ in range(max(1, min(threads, self._launch.block_count)))]
        while True:
            jobs = [partial(self._take_turns, each) for each in turns]
            in_time = run_all(jobs, self._launch, max(0, end - time.monotonic()))
            if not in_time or self._launch.stop or self._launch.error:
                return in_time
            if not self.waiting or self.ended:
                return True
            self._observer.meet()
            for number, worker in enumerate(self.waiting):
                turns[number % len(turns)].append(worker)
            self.waiting = []

    def _begun(self) -> Worker | None:
        """Begin the next block, if there is one and the GPU has room."""
        launch = self._launch
        with self._lock:
            if launch.next_block >= launch.block_count or self._under_way >= self._most:
                return None
            if not self._free:
                self._free.append(self._new_worker())
                self.workers.append(self._free[0])
            worker = self._free.pop()
            worker.number = worker.heads[0].x = launch.next_block
            worker.states.clear()
            worker.heads[0].resume = 0
            launch.next_block += 1
            self._under_way += 1
            self._quiet = 0
            return worker

    def _take_turns(self, turns: deque[Worker]) -> None:
        """Run blocks on one thread of the host until all have ended or wait at the grid's barrier."""
        launch, had_turn = self._launch, False
        while not (launch.stop or launch.error):
            # A block that has waited and one that begins take turns: neither is then kept from the other.
            worker = self._begun() if had_turn or not turns else None
            had_turn = worker is None
            if worker is None:
                if not turns:
                    return
                worker = turns.popleft()
            self._run(worker)
            if launch.stop or launch.error:
                turns.append(worker)
            elif not any(head.resume > 0 for head in worker.heads):
                with self._lock:
                    self.ended += 1
                    self._under_way -= 1
                    self._quiet = 0
                    self._free.append(worker)
            elif any(head.resume in self._turns for head in worker.heads):
                turns.append(worker)
                self._look_whether_stuck(worker)
            else:
                with self._lock:
                    self._quiet = 0
                    self.waiting.append(worker)
        if launch.stop and launch.stopped_at < 0 and turns:
            turns[0].run(self._library, launch)  # it notes where it waits

    def _run(self, worker: Worker) -> None:
        """Give a block its turn."""
        self._observer.begin_turn(worker)
        worker.run(self._library, self._launch)
        self._observer.end_turn(worker)

    def _look_whether_stuck(self, worker: Worker) -> None:
        """Stop the launch if the GPU is full of blocks that wait, and nothing has changed for a while."""
        launch = self._launch
        if launch.next_block >= launch.block_count or self._under_way < self._most:
            return
        state = hash((worker.frames.tobytes(), worker.shared.tobytes()))
        with self._lock:
            if state not in worker.states:  # while it waits a block goes through a few states again and again
                worker.states.add(state)
                self._quiet = 0
            self._quiet += 1
            if self._quiet == 1:
                self._quiet_since = time.monotonic()
            is_long = time.monotonic() > self._quiet_since + QUIET_SECONDS
            if is_long and self._quiet > QUIET_TURNS * self._under_way:
                self.is_stuck, launch.stop = True, 1
