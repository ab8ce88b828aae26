"""The host's side of a checked run: it makes the shadow memory, and words what generated code finds.

Rules of the four tools: checking.py and shadow.py. Wrong types of arrays: element_types.py.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simt.code import abi
from simt.code.emitter import Emitter
from simt.code.jit import Library, host_key, machine_code
from simt.common.buffer_names import Named, shown
from simt.common.limits import WARP
from simt.disk_cache import disk_cached
from simt.findings import Access, Finding
from simt.launch.arguments import Range
from simt.launch.unwritten import may_be_unwritten
from simt.ptx import Kernel
from simt.run.observer import LaunchRun, Observer
from simt.run.worker import Worker
from simt.sanitizer.asynchronous import AsynchronousEmitter
from simt.sanitizer.checking import CheckingEmitter, Facts
from simt.sanitizer.element_types import mismatch
from simt.sanitizer.ordering import Ordering
from simt.sanitizer.shadow import SEVERAL, STAMP_STEP
from simt.sanitizer.shadow_memory import ShadowMemory
from simt.sanitizer.touched import Shadow, Spans, touched
from simt.sanitizer.warp_look import LookKind, look_module
from simt.texture import CUDAarray

CALLBACK = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    *[ctypes.c_int32] * 3,
    ctypes.c_int64,
    *[ctypes.c_int32] * 3,
)
_RACES = {
    abi.READ_AFTER_WRITE: ("read after write", "reads what {other} {wrote}"),
    abi.WRITE_AFTER_READ: ("write after read", "writes what {other} {read}"),
    abi.WRITE_AFTER_WRITE: ("write after write", "writes another value than {other}, which {wrote}"),
}
INTERVALS = 1 << 22  # of a launch whose blocks take turns, of which it is known whose they are
OTHERS = (1 << 32) - 1  # no block's number
ALWAYS_LOOKED_AT = 1 << 16  # bytes of an array
_shadows = ShadowMemory()


def wrong_types(
    declared: Sequence[str], lines: Mapping[int, int], ranges: Sequence[Range], source: Sequence[str]
) -> list[Finding]:
    """Report each array whose dtype is not what the kernel reads; `lines` says where, by its number."""
    findings = []
    for number, (type_, range_) in enumerate(zip(declared, ranges, strict=False)):
        array = range_.owner
        if isinstance(array, np.ndarray) and (reason := mismatch(array.dtype, type_)):
            line, nobody = lines.get(number, 0), (0, 0, 0)
            text = source[line - 1].strip() if 0 < line <= len(source) else ""
            message = (
                f"{shown(array, range_.position, range_.parameter)} is not what the kernel reads: {reason}"
            )
            findings.append(Finding("memcheck", "wrong dtype", line, nobody, nobody, message, text))
    return findings


@dataclass
class _SharedShadow:
    """The shadow of a block's shared memory, the first stamp there, and whether a fence has run."""

    start: int
    stamp: int = 0
    fenced: int = 0


class Sanitizer(Observer[list[Finding]]):
    """Checks a launch; the result is what it does wrong.

    `declared` are the types of the parameters. With `asks_for_fenced_inits`, an mbarrier at which bulk copies
    complete must be fenced after its initialisation.
    """

    name = "checked"
    one_by_one = True

    def __init__(self, declared: Sequence[str] = (), asks_for_fenced_inits: bool = True) -> None:
        self._declared, self._asks_for_fenced_inits = declared, asks_for_fenced_inits
        self._found_at: dict[tuple[str, int, int, str], Finding] = {}
        self._callback = CALLBACK(self._found)
        self._ordering: Ordering | None = None
        self.result: list[Finding] = []

    @classmethod
    def emitter_for(cls, kernel: Kernel) -> Emitter:
        """Return what adds checks to the code of a kernel."""
        return AsynchronousEmitter() if kernel.is_asynchronous else CheckingEmitter()

    def begin(self, run: LaunchRun) -> None:
        """Compare the types of arrays, and give the launch its shadow memory."""
        facts = run.compiled.facts
        assert isinstance(facts, Facts)
        self.diagnosis, self.ranges, self._granules = run.diagnosis, run.ranges, facts.granules
        self._wrong_types = wrong_types(self._declared, facts.first_uses, run.ranges, run.diagnosis.source)
        # A whole program's arrays are no parameters of the kernel: any of them may be written.
        written = None if len(run.ranges) > len(run.storage.ranges) else facts.written
        launch = self._launch = run.launch
        self._looks = _looks(facts.looks)
        launch.looks = ctypes.addressof(self._looks)
        launch.sites = len(run.kernel.code)
        launch.found = ctypes.cast(self._callback, ctypes.c_void_p)
        self._muted = np.zeros(abi.KINDS * len(run.kernel.code), np.uint8)
        launch.muted = self._muted.ctypes.data
        launch.stamp = launch.launch_stamp = self._first_stamp = _shadows.begin()
        self._kept: list[Shadow] = []
        granule = self._granules["global"]
        for first, end, members in _overlapping(self.ranges):
            may_be_empty = may_be_unwritten(first, end) or any(
                isinstance(self.ranges[number].owner, CUDAarray | Named) for number in members
            )
            poisoned = may_be_empty and _has_poison(first, end)
            shadow, plane_bytes = 0, _plane_bytes(end - first, granule)
            if written is None or written.intersection(members):
                shadow = _shadows.lend(plane_bytes)
            if shadow:
                self._kept.append(Shadow(first, end, granule, shadow, plane_bytes))
            for number in members:
                record, start = run.table[number], self.ranges[number].start
                record.poisoned, record.plane_bytes = poisoned, plane_bytes
                record.shadow = shadow and shadow + 4 * (start // granule - first // granule)

    def attach(self, run: LaunchRun, worker: Worker) -> None:
        """Lend a worker a shadow for its shared memory."""
        size = _plane_bytes(run.launch.shared_bytes, self._granules["shared"])
        worker.observed = _SharedShadow(_shadows.lend(size))
        run.launch.shared_shadow = worker.observed.start

    def watcher(self, run: LaunchRun) -> Ordering | None:
        """Keep the order of accesses, copies and products."""
        size, asks = run.launch.shared_bytes, self._asks_for_fenced_inits
        self._ordering = Ordering(run.kernel, run.diagnosis, size, asks)
        return self._ordering

    def touched(self, pointers: Iterable[int]) -> list[tuple[Spans, Spans]]:
        """Return what the launch has read and written of each array, once it has ended.

        Large arrays that none of the `pointers` points into are left out, for time.
        """
        places = sorted(pointers)
        return [
            touched(each, self._first_stamp)
            for each in self._kept
            if each.end - each.first <= ALWAYS_LOOKED_AT
            or bisect_left(places, each.first) < bisect_left(places, each.end)
        ]

    def begin_turn(self, worker: Worker) -> None:
        """Note whose the next intervals between barriers are."""
        launch, shadow = self._launch, worker.observed
        launch.shared_shadow, launch.shared_stamp = shadow.start, shadow.stamp
        launch.fenced = shadow.fenced if worker.heads[0].resume else 0
        if not launch.owners:
            self._owners = np.zeros(INTERVALS, np.uint32)
            self._owners[0] = OTHERS
            launch.owners, launch.owner_count = self._owners.ctypes.data, INTERVALS
        launch.owner, self._turn = worker.number + 1, self._interval()

    def end_turn(self, worker: Worker) -> None:
        """Note which intervals between barriers were a block's."""
        launch, shadow = self._launch, worker.observed
        shadow.start, shadow.stamp, shadow.fenced = launch.shared_shadow, launch.shared_stamp, launch.fenced
        self._owners[self._turn + 1 : self._interval() + 1] = worker.number + 1

    def _interval(self) -> int:
        return (self._launch.stamp - self._launch.launch_stamp) // STAMP_STEP

    def meet(self) -> None:
        """Note that the whole grid has met at a barrier: what was before it is as of an earlier launch."""
        if self._launch.owners:
            self._owners[1 : self._interval() + 1] = 0
        self._launch.stamp += STAMP_STEP
        self._launch.launch_stamp = self._launch.stamp

    def _found(
        self,
        frame: int,
        kind: int,
        site: int,
        lane: int,
        address: int,
        other_site: int,
        other_place: int,
        other_stamp: int,
    ) -> None:
        head = abi.Frame.from_address(frame)
        access = Access(site, address, head.shared or 0, (head.x, head.y, head.z), WARP * head.warp + lane)
        if kind == abi.OUT_OF_BOUNDS:
            finding = self.diagnosis.access(access)
        elif kind == abi.UNWRITTEN:
            finding = self.diagnosis.unwritten(access)
        elif kind == abi.UNSET:
            finding = self.diagnosis.unset(access)
        elif kind == abi.EXITED:
            finding = self.diagnosis.exited(access)
        elif kind == abi.SYNC_MASK:
            finding = self.diagnosis.sync_mask(access)
        else:
            other = self._other(other_place, other_stamp & 0xFFFFFFFF)
            finding = self.diagnosis.race(access, *_RACES[kind], other_site, other)
        key = (finding.kind, finding.line, finding.other_line, self.diagnosis.variable(access))
        self._found_at.setdefault(key, finding)

    def finish(self, run: LaunchRun) -> None:
        """Collect what was found, each mistake of a line only once.

        Warps run one after the other, so a race may look like a read of memory that was never written.
        """
        _shadows.end(self._launch.stamp)
        races = {
            (line, variable)
            for (_, *lines, variable), finding in self._found_at.items()
            if finding.tool == "racecheck"
            for line in lines
        }
        found = [
            finding
            for (_, line, _, variable), finding in self._found_at.items()
            if finding.tool != "initcheck" or (line, variable) not in races
        ]
        asynchronous = self._ordering.finish() if self._ordering else []
        self.result = [*self._wrong_types, *found, *asynchronous]

    def _other(self, place: int, stamp: int) -> str:
        """Describe the thread of the other access."""
        warp, lane = stamp % STAMP_STEP, place % STAMP_STEP
        if stamp < self._launch.block_stamp:
            return "a thread of another block"
        if warp == SEVERAL or lane == SEVERAL:
            return "another thread"
        return f"thread {self.diagnosis.thread(WARP * warp + lane)}"


@lru_cache
def _looks(kinds: tuple[LookKind, ...]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of the looks that checked code calls."""
    return (ctypes.c_void_p * len(kinds))(*(_look(kind).address for kind in kinds))


@lru_cache
def _look(kind: LookKind) -> Library:
    """Return the machine code of a look, which all checked kernels share."""
    code = disk_cached(
        "look", [repr(kind), *host_key()], lambda: machine_code(look_module(kind), is_brief=False)
    )
    return Library(code)


def _plane_bytes(size: int, granule: int) -> int:
    return (size + 4) // granule * 4


def _overlapping(ranges: Sequence[Range]) -> list[tuple[int, int, set[int]]]:
    """Merge ranges that overlap into (first address, end, numbers of the ranges)."""
    merged: list[tuple[int, int, set[int]]] = []
    for number in sorted((n for n, r in enumerate(ranges) if r.size), key=lambda n: ranges[n].start):
        start, end = ranges[number].start, ranges[number].start + ranges[number].size
        if merged and start < merged[-1][1]:
            first, last, members = merged[-1]
            merged[-1] = (first, max(last, end), members | {number})
        else:
            merged.append((start, end, {number}))
    return merged


def _has_poison(first: int, end: int) -> bool:
    """Say whether any word is still unwritten."""
    first &= -4
    count = -(-(end - first) // 4)  # `empty` made whole words
    words = np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(first))
    return bool(np.any(words == abi.POISON))
