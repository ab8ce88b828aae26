"""What the host does for warps during a launch: mbarriers, barriers of some threads, clusters, bulk copies.

Generated code calls `Services` with the operands of an instruction (lowering/services.py). A copy is complete
at once. So a plain run never waits for data, only for other warps; whether a kernel waits as it must, a
checked run finds out (sanitizer/ordering.py).

A warp that cannot go on gives way. When all warps that have not ended wait, and nothing has happened since
each last looked, they would wait for ever: that is an error, which says what is missing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from labkit.core.errors import BarrierError, InvalidAccess, SimtError
from labkit.core.limits import WARP
from labkit.simt.analysis.layout import STRIDE
from labkit.simt.code import abi
from labkit.simt.ptx import Instruction, Kernel
from labkit.simt.sanitizer.findings import Access, Diagnosis, Finding

CALLBACK = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64),
)
MOST_PENDING = (1 << 20) - 1  # of an mbarrier: arrivals, and bytes
PATIENCE = 1000  # looks by `test_wait`, which need not wait, until a warp counts as waiting


@dataclass
class Mbarrier:
    """The state of an mbarrier: how many arrivals complete a phase, and what the phase still waits for."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    def complete(self) -> bool:
        """End the phase if nothing is pending, and say whether it has ended."""
        if self.pending or self.tx:
            return False
        self.phase, self.pending = self.phase + 1, self.expected
        return True


@dataclass
class Meeting:
    """A barrier of some threads: how many have arrived, and how often it was complete."""

    arrived: int = 0
    rounds: int = 0
    voted: int = 0
    votes: tuple[int, int] = (0, 0)  # of the last round: threads whose predicate held, and threads


@dataclass
class Wait:
    """What a warp waits for, as of its last look: `progress` is the cluster's then."""

    call: Call
    what: str
    progress: int
    looks: int = 0


@dataclass
class Cluster:
    """What the blocks of a cluster that run together share; a block alone is a cluster of one."""

    heads: Sequence[abi.Frame]
    place: tuple[int, int, int] = (-1, -1, -1)
    mbarriers: dict[int, Mbarrier] = field(default_factory=dict)  # by address
    meetings: dict[tuple[int, int], Meeting] = field(default_factory=dict)  # by rank and number; -1: cluster
    waits: dict[int, Wait] = field(default_factory=dict)  # by the number of a warp
    arrivals: dict[int, int] = field(default_factory=dict)  # by warp: rounds of the cluster's barrier
    progress: int = 0


class Watcher(Protocol):
    """What a checked run adds: it is told what happens, in order."""

    def begin(self, cluster: Cluster) -> None:
        """Note that a cluster starts."""

    def arrive(self, call: Call, what: object) -> None:
        """Note that a warp arrives at a barrier."""

    def complete(self, cluster: Cluster, what: object) -> None:
        """Note that a phase of a barrier is complete."""

    def pass_(self, call: Call, what: object, phase: int) -> None:
        """Note that a warp goes on after a phase of a barrier."""


class Call:
    """One call: the instruction, the warp and its lanes, and the operands of each lane."""

    __slots__ = ("cluster", "head", "instruction", "lanes", "number", "operands", "results", "site")

    def __init__(
        self,
        instruction: Instruction,
        site: int,
        agent: tuple[Cluster, int, abi.Frame],
        mask: int,
        operands: ctypes._Pointer[ctypes.c_uint64],
        results: ctypes._Pointer[ctypes.c_uint64],
    ) -> None:
        self.instruction, self.site = instruction, site
        self.cluster, self.number, self.head = agent
        self.lanes = _lanes(mask)
        self.operands, self.results = operands, results

    def operand(self, number: int, lane: int) -> int:
        """Return an operand of a lane, without sign."""
        return self.operands[WARP * number + lane]

    def signed(self, number: int, lane: int) -> int:
        """Return an operand of 32 bits with its sign."""
        return _signed(self.operands[WARP * number + lane])

    def column(self, number: int) -> list[int]:
        """Return an operand of the lanes that take part."""
        values = self.operands[WARP * number : WARP * (number + 1)]
        return values if len(self.lanes) == WARP else [values[lane] for lane in self.lanes]

    def is_same(self, number: int) -> bool:
        """Say whether an operand is the same in all lanes that take part."""
        values = self.column(number)
        return values.count(values[0]) == len(values)

    def give(self, value: int, lanes: Sequence[int] | None = None, number: int = 0) -> None:
        """Set a result, of all lanes unless some are given."""
        for lane in range(WARP) if lanes is None else lanes:
            self.results[WARP * number + lane] = value

    def shared(self, number: int, lane: int) -> int:
        """Return the host's address of shared memory: an offset, or in code without a space an address."""
        value = self.operand(number, lane)
        if self.instruction.space == "generic" and "shared::cluster" not in self.instruction.parts:
            return value
        return (self.head.shared or 0) + _signed(value)


Handler = Callable[[Call], None]


class Services:
    """Serves the calls of one launch. `error` is the first mistake, after which the launch ends."""

    def __init__(
        self,
        kernel: Kernel,
        launch: abi.Launch,
        workers: Sequence[Sequence[abi.Frame]],
        diagnosis: Diagnosis,
        watcher: Watcher | None = None,
    ) -> None:
        self.kernel, self.launch, self.diagnosis, self.watcher = kernel, launch, diagnosis, watcher
        self.error: BaseException | None = None
        self._agents: dict[int, tuple[Cluster, int, abi.Frame]] = {}
        for heads in workers:
            cluster = Cluster(heads)
            self._agents |= {ctypes.addressof(head): (cluster, i, head) for i, head in enumerate(heads)}
        self.warps = len(workers[0]) // kernel.blocks_together  # of a block
        threads = diagnosis.block[0] * diagnosis.block[1] * diagnosis.block[2]
        self.threads, self._last = threads, threads % WARP
        self._handlers: dict[int, Handler] = {}
        self._callback = CALLBACK(self._serve)
        launch.serve = ctypes.cast(self._callback, ctypes.c_void_p)

    def _serve(self, frame, site, mask, operands, results) -> None:  # type: ignore[no-untyped-def]
        """Serve a call; no error may leave it, as the caller is machine code."""
        if self.error:
            return
        try:
            instruction = self.kernel.code[site]
            call = Call(instruction, site, self._agents[frame], mask, operands, results)
            cluster, first = call.cluster, call.cluster.heads[0]
            if cluster.place != (place := (first.x, first.y, first.z)):
                self._begin(cluster, place)
            handler = self._handlers.get(site) or self._handlers.setdefault(site, self._handler(instruction))
            handler(call)
        except BaseException as error:
            self.error = error
            self.launch.stop = 1

    def _begin(self, cluster: Cluster, place: tuple[int, int, int]) -> None:
        """Start a cluster with nothing of the one before."""
        fresh = Cluster(cluster.heads, place)
        cluster.__dict__.update(fresh.__dict__)
        if self.watcher:
            self.watcher.begin(cluster)

    def _handler(self, instruction: Instruction) -> Handler:
        """Return what serves an instruction. Raises SimtError for one that is not known."""
        for length in (3, 2):
            if found := HANDLERS.get(instruction.parts[1 : 1 + length]):
                return partial(found, self)
        opcode = ".".join(instruction.parts[1:])
        raise SimtError(f"line {instruction.line}: the simulator does not know the PTX instruction `{opcode}`")

    # mbarriers

    def _mbarrier_init(self, call: Call) -> None:
        for lane in call.lanes:
            count = call.operand(1, lane)
            if not 1 <= count <= MOST_PENDING:
                raise self.mistake(
                    call, lane, "mbarrier", f"an mbarrier takes 1 to {MOST_PENDING} arrivals per phase, not {count}"
                )
            address = self._own(call, lane, 8)
            call.cluster.mbarriers[address] = Mbarrier(count, count)

    def _mbarrier_inval(self, call: Call) -> None:
        for lane in call.lanes:
            self._mbarrier(call, lane)
            del call.cluster.mbarriers[call.shared(0, lane)]

    def _mbarrier_arrive(self, call: Call) -> None:
        """Serve `arrive` and `arrive_drop`, perhaps with `expect_tx`: the lanes arrive one after the other."""
        parts = call.instruction.parts
        has_count = len(call.instruction.operands) > 2
        for lane in call.lanes:
            barrier, amount = self._mbarrier(call, lane), call.operand(1, lane) if has_count else 1
            call.give(barrier.phase << 32 | barrier.pending, [lane])
            if "expect_tx" in parts:
                self._expect(call, lane, barrier, amount)
                amount = 1
            if "arrive_drop" in parts:
                barrier.expected -= amount
            self._arrive(call, lane, barrier, amount)

    def _mbarrier_expect_tx(self, call: Call) -> None:
        for lane in call.lanes:
            self._expect(call, lane, self._mbarrier(call, lane), call.operand(1, lane))

    def _mbarrier_complete_tx(self, call: Call) -> None:
        for lane in call.lanes:
            self.complete_tx(call, lane, call.shared(0, lane), call.operand(1, lane))

    def _mbarrier_pending_count(self, call: Call) -> None:
        for lane in call.lanes:
            call.give(call.operand(0, lane) & MOST_PENDING, [lane])

    def _mbarrier_test_wait(self, call: Call) -> None:
        self._look(call, PATIENCE)

    def _mbarrier_try_wait(self, call: Call) -> None:
        self._look(call, 1)

    def _look(self, call: Call, patience: int) -> None:
        """Answer whether a phase is complete: one by its parity, or the one of a token."""
        waiting = ""
        lanes = call.lanes[:1] if call.is_same(0) and call.is_same(1) else call.lanes
        for lane in lanes:
            barrier, asked = self._mbarrier(call, lane), call.operand(1, lane)
            if "parity" in call.instruction.parts:
                phase = barrier.phase if (barrier.phase & 1) == (asked & 1) else barrier.phase - 1
            else:
                phase = asked >> 32
            is_over = phase < barrier.phase
            call.give(is_over, [lane] if lanes is call.lanes else None)
            if not is_over:
                waiting = self._describe(call, lane, barrier)
            elif self.watcher:
                self.watcher.pass_(call, barrier, phase)
        if waiting:
            self._wait(call, waiting, patience)
        else:
            self._go_on(call)

    def _arrive_after_copies(self, call: Call) -> None:
        """Serve `cp.async.mbarrier.arrive`: the copies of each lane are complete already."""
        for lane in call.lanes:
            barrier = self._mbarrier(call, lane)
            if "noinc" in call.instruction.parts:
                self._arrive(call, lane, barrier, 1)

    def _expect(self, call: Call, lane: int, barrier: Mbarrier, amount: int) -> None:
        barrier.tx += amount
        if barrier.tx > MOST_PENDING:
            raise self.mistake(
                call,
                lane,
                "mbarrier",
                f"{self.named(call, call.shared(0, lane), lane)} expects {barrier.tx} bytes; a phase takes at most "
                f"{MOST_PENDING}",
            )

    def _arrive(self, call: Call, lane: int, barrier: Mbarrier, count: int) -> None:
        if count > barrier.pending:
            raise self.mistake(
                call,
                lane,
                "mbarrier",
                f"{count} arrive at {self.named(call, call.shared(0, lane), lane)}, whose phase waits for "
                f"{barrier.pending} more of {barrier.expected}: no phase takes more arrivals than mbarrier.init says",
            )
        barrier.pending -= count
        if self.watcher:
            self.watcher.arrive(call, barrier)
        self._progress(call.cluster, barrier)

    def complete_tx(self, call: Call, lane: int, address: int, count: int) -> None:
        """Note that a copy has brought bytes for which the mbarrier at an address waits."""
        barrier = call.cluster.mbarriers.get(address)
        if barrier is None:
            raise self._no_mbarrier(call, lane, address)
        barrier.tx -= count
        self._progress(call.cluster, barrier)

    def _progress(self, cluster: Cluster, barrier: Mbarrier) -> None:
        cluster.progress += 1
        if barrier.complete() and self.watcher:
            self.watcher.complete(cluster, barrier)

    def _mbarrier(self, call: Call, lane: int) -> Mbarrier:
        """Return the mbarrier at the address of the first operand."""
        address = call.shared(0, lane)
        barrier = call.cluster.mbarriers.get(address)
        if barrier is None:
            raise self._no_mbarrier(call, lane, address)
        return barrier

    def _no_mbarrier(self, call: Call, lane: int, address: int) -> SimtError:
        self.own(call, lane, address, 8)
        return self.mistake(
            call,
            lane,
            "mbarrier",
            f"{self.named(call, address, lane)} is no mbarrier: nothing has initialised it (mbarrier.init), or it "
            "was invalidated",
        )

    def _describe(self, call: Call, lane: int, barrier: Mbarrier) -> str:
        """Say what the phase of an mbarrier waits for."""
        name = self.named(call, call.shared(0, lane), lane)
        missing = []
        if barrier.pending:
            missing.append(f"{barrier.pending} of {barrier.expected} arrivals are missing")
        if barrier.tx > 0:
            missing.append(f"{barrier.tx} bytes that it expects are missing (expect_tx)")
        if barrier.tx < 0:
            missing.append(f"copies have brought {-barrier.tx} bytes more than it expects (expect_tx)")
        return f"a phase of {name} never completes: {' and '.join(missing)}"

    # barriers of the block and of the cluster

    def _bar_arrive(self, call: Call) -> None:
        """Serve an arrival at a barrier of the block: (number, threads or 0, vote); give the round."""
        head, lane = call.head, call.lanes[0]
        number, threads = call.operand(0, lane), call.operand(1, lane)
        meeting = call.cluster.meetings.setdefault((head.rank, number), Meeting())
        everyone = self._last if head.warp == self.warps - 1 and self._last else WARP
        arrived = WARP if len(call.lanes) == everyone else len(call.lanes)
        if threads % WARP:
            raise self.mistake(
                call, lane, "barrier", f"barrier {number} takes {threads} threads; choose a multiple of {WARP}"
            )
        call.give(meeting.rounds)
        meeting.voted += sum(call.operand(2, each) for each in call.lanes)
        self._meet(call, meeting, arrived, threads or self.warps * WARP)

    def _meet(self, call: Call, meeting: Meeting, arrived: int, needed: int) -> None:
        """Note that threads arrive at a barrier; the last of `needed` complete a round."""
        meeting.arrived += arrived
        call.cluster.progress += 1
        if self.watcher:
            self.watcher.arrive(call, meeting)
        if meeting.arrived >= needed:
            meeting.votes, meeting.voted = (meeting.voted, min(needed, self.threads)), 0
            meeting.arrived, meeting.rounds = 0, meeting.rounds + 1
            if self.watcher:
                self.watcher.complete(call.cluster, meeting)

    def _bar_wait(self, call: Call) -> None:
        """Answer whether the barrier's round is complete, and what the votes come to: (number, round)."""
        number, round_ = call.operand(0, call.lanes[0]), call.operand(1, call.lanes[0])
        meeting = call.cluster.meetings[call.head.rank, number]
        what = f"barrier {number} of the block never completes: {meeting.arrived} threads wait there"
        if self._passes(call, meeting, round_, what):
            voted, voters = meeting.votes
            results = {"popc": voted, "and": voted == voters, "or": voted > 0}
            call.give(results.get(call.instruction.parts[2], 0), number=1)

    def _passes(self, call: Call, meeting: Meeting, round_: int, what: str) -> bool:
        """Answer whether a round of a barrier is over; if it is not, the warp waits."""
        is_over = meeting.rounds > round_
        call.give(is_over)
        if not is_over:
            self._wait(call, what)
            return False
        if self.watcher:
            self.watcher.pass_(call, meeting, round_)
        self._go_on(call)
        return True

    def _cluster_arrive(self, call: Call) -> None:
        meeting = call.cluster.meetings.setdefault((-1, 0), Meeting())
        everyone = self._last if call.head.warp == self.warps - 1 and self._last else WARP
        call.cluster.arrivals[call.number] = meeting.rounds
        arrived = WARP if len(call.lanes) == everyone else len(call.lanes)
        self._meet(call, meeting, arrived, WARP * self.warps * self.kernel.blocks_together)

    def _cluster_wait(self, call: Call) -> None:
        meeting = call.cluster.meetings.get((-1, 0))
        arrived = call.cluster.arrivals.get(call.number)
        if meeting is None or arrived is None:
            lane = call.lanes[0]
            raise self.mistake(call, lane, "barrier", "barrier.cluster.wait without barrier.cluster.arrive before it")
        what = f"the barrier of the cluster never completes: {meeting.arrived} threads wait there"
        self._passes(call, meeting, arrived, what)

    # waiting

    def _go_on(self, call: Call) -> None:
        call.cluster.waits.pop(call.number, None)

    def _wait(self, call: Call, what: str, patience: int = 1) -> None:
        """Note that a warp waits. Raises BarrierError where all wait for ever."""
        cluster = call.cluster
        wait = cluster.waits.get(call.number)
        if wait is None or wait.progress != cluster.progress:
            cluster.waits[call.number] = Wait(call, what, cluster.progress, 1 - patience)
            return
        wait.looks += 1
        running = [i for i, head in enumerate(cluster.heads) if head.resume != abi.ENDED]
        waits = [cluster.waits.get(i) for i in running]
        if all(each and each.progress == cluster.progress and each.looks >= 0 for each in waits):
            ended = len(cluster.heads) - len(running)
            gone = f". {ended} of {len(cluster.heads)} warps have ended" if ended else ""
            raise self.mistake(call, call.lanes[0], "hang", f"{what}{gone}")

    # memory

    def _own(self, call: Call, lane: int, size: int) -> int:
        """Return the address of the first operand, which must be in shared memory."""
        address = call.shared(0, lane)
        self.own(call, lane, address, size)
        return address

    def own(self, call: Call, lane: int, address: int, size: int) -> None:
        """Check that bytes lie in the shared memory of a block of the cluster. Raises InvalidAccess."""
        start = (call.head.shared or 0) - call.head.rank * STRIDE
        rank, offset = divmod(address - start, STRIDE)
        is_inside = 0 <= rank < self.kernel.blocks_together and offset + size <= self.launch.shared_bytes
        if not is_inside or address % min(size, 8):
            raise self.invalid(call, lane, address)

    def invalid(self, call: Call, lane: int, address: int) -> InvalidAccess:
        """Return the error for an address outside all memory, or one that is not aligned."""
        access = self.access(call, lane, address)
        message = (
            f"address {address - access.shared:#x} is not in the block's {self.launch.shared_bytes} bytes of shared "
            "memory, or not aligned as this instruction needs it"
        )
        finding = self.diagnosis.found("memcheck", "out of bounds", access, message)
        return InvalidAccess(str(finding), finding)

    def access(self, call: Call, lane: int, address: int = 0) -> Access:
        """Return the access of a lane, for the words of a finding."""
        head = call.head
        place = (head.x, head.y, head.z)
        return Access(call.site, address, head.shared or 0, place, WARP * head.warp + lane)

    def named(self, call: Call, address: int, lane: int) -> str:
        """Name a place in shared memory."""
        return self.diagnosis.place_in_shared(self.access(call, lane, address))

    def mistake(self, call: Call, lane: int, kind: str, message: str) -> SimtError:
        """Return the error for a mistake at a barrier or in a copy."""
        finding: Finding = self.diagnosis.found("synccheck", kind, self.access(call, lane), message)
        return BarrierError(str(finding), finding)


def _lanes(mask: int) -> list[int]:
    return [lane for lane in range(WARP) if mask >> lane & 1]


def _signed(value: int) -> int:
    """Read 32 bits with their sign."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


HANDLERS: dict[tuple[str, ...], Callable[[Services, Call], None]] = {
    ("mbarrier", "init"): Services._mbarrier_init,
    ("mbarrier", "inval"): Services._mbarrier_inval,
    ("mbarrier", "arrive"): Services._mbarrier_arrive,
    ("mbarrier", "arrive_drop"): Services._mbarrier_arrive,
    ("mbarrier", "expect_tx"): Services._mbarrier_expect_tx,
    ("mbarrier", "complete_tx"): Services._mbarrier_complete_tx,
    ("mbarrier", "pending_count"): Services._mbarrier_pending_count,
    ("mbarrier", "test_wait"): Services._mbarrier_test_wait,
    ("mbarrier", "try_wait"): Services._mbarrier_try_wait,
    ("cp", "async", "mbarrier"): Services._arrive_after_copies,
    ("bar", "arrive"): Services._bar_arrive,
    ("bar", "sync"): Services._bar_wait,
    ("bar", "popc"): Services._bar_wait,
    ("bar", "and"): Services._bar_wait,
    ("bar", "or"): Services._bar_wait,
    ("cluster", "arrive"): Services._cluster_arrive,
    ("cluster", "wait"): Services._cluster_wait,
}
