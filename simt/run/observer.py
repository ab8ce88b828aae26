"""What watches a kernel run: the half of an observer that allocates, prepares and collects.

An observer has two halves. Its emitter (`simt.code.emitter`) adds to the code of a kernel, once per kernel
and shape of its blocks. The observer itself works around a launch: it makes room for what that code writes,
and reads it afterwards. Nothing here, in `code` or in `analysis` names any observer, as the core of Valgrind
names no tool. To add one, write both classes into one file, and run it: `bound.run(MyObserver())`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from simt.analysis.layout import Storage
from simt.asynchronous.cluster import Watcher
from simt.code.abi import Launch
from simt.code.compiled import Compiled
from simt.code.emitter import Emitter
from simt.findings import Diagnosis
from simt.launch.arguments import Range
from simt.ptx import Kernel
from simt.run.worker import Worker

Result_co = TypeVar("Result_co", covariant=True)


@dataclass
class LaunchRun:
    """A launch that is about to run, or has run.

    `record` is the record of `ranges` that generated code reads, `blocks` the number of blocks that run (of
    clusters, where these run together), and `workers` the memory that they run in. `memo` is the observer's
    own, and outlives the launch: every run of the same code gets it.
    """

    kernel: Kernel
    storage: Storage
    compiled: Compiled
    launch: Launch
    ranges: Sequence[Range]
    table: Any
    diagnosis: Diagnosis
    blocks: int
    memo: dict[str, Any]
    workers: list[Worker] = field(default_factory=list)


class Observer(Generic[Result_co]):
    """Watches one run of a launch; this one sees nothing. `result` is there once the launch has ended.

    Methods are called in the order in which they stand here. A launch that fails also comes to `finish`.
    """

    name = "plain"  # in the key under which the code is cached
    emitter: type[Emitter] = Emitter
    one_by_one = False  # must blocks run one after the other?
    may_be_brief = True  # may the code of small launches be optimised less?
    result: Any = None  # of the type `Result_co`

    @classmethod
    def emitter_for(cls, kernel: Kernel) -> Emitter:
        """Return what adds to the code of a kernel."""
        return cls.emitter()

    def begin(self, run: LaunchRun) -> None:
        """Prepare a launch; no worker is there yet."""

    def attach(self, run: LaunchRun, worker: Worker) -> None:
        """Prepare a worker, which may have run earlier launches of the same code with such an observer."""

    def watcher(self, run: LaunchRun) -> Watcher | None:
        """Return what is told of copies, barriers of some threads and products (`simt.asynchronous`)."""
        return None

    def begin_turn(self, worker: Worker) -> None:
        """Note that a block begins or goes on, where blocks take turns."""

    def end_turn(self, worker: Worker) -> None:
        """Note that a block's turn is over."""

    def meet(self) -> None:
        """Note that all blocks have met at a barrier of the grid."""

    def finish(self, run: LaunchRun) -> None:
        """Collect the result: all blocks have ended, or one has failed."""
