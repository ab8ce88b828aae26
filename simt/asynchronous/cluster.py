"""What the host knows of a cluster of blocks that runs, and the call of a warp that it serves."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from simt.analysis.layout import STRIDE
from simt.code import abi
from simt.common.errors import BarrierError, InvalidAccess, SimtError
from simt.common.limits import WARP
from simt.findings import Access, Diagnosis
from simt.ptx import Instruction, Kernel


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
    """What a warp waits for, as of its last look: `progress` is the cluster's then.

    `tells` is larger, the more the wait says of the cause when all wait for ever.
    """

    call: Call
    what: str
    tells: int
    progress: int
    looks: int = 0
    kind: str = "hang"


@dataclass
class Cluster:
    """What the blocks of a cluster that run together share; a block alone is a cluster of one."""

    heads: Sequence[abi.Frame]
    place: tuple[int, int, int] = (-1, -1, -1)
    mbarriers: dict[int, Mbarrier] = field(default_factory=dict)  # by address
    meetings: dict[tuple[int, int], Meeting] = field(default_factory=dict)  # by rank and number; -1: cluster
    waits: dict[int, Wait] = field(default_factory=dict)  # by the number of a warp
    arrivals: dict[int, int] = field(default_factory=dict)  # by warp: rounds of the cluster's barrier
    seen: dict[tuple[int, int], int] = field(default_factory=dict)  # by warp and mbarrier: the last phase
    groups: dict[int, int] = field(default_factory=dict)  # by warp: groups of products that it has committed
    progress: int = 0


class Watcher(Protocol):
    """What an observer may add: it is told what happens, in order."""

    def watched(self, host: Host, call: Call) -> None:
        """Take what generated code tells of accesses, products and fences."""

    def begin(self, cluster: Cluster) -> None:
        """Note that a cluster starts."""

    def init(self, call: Call, lane: int, barrier: Mbarrier) -> None:
        """Note that a thread initialises an mbarrier."""

    def uses(self, call: Call, lane: int, address: int, barrier: Mbarrier) -> None:
        """Note that a thread uses an mbarrier at an address."""

    def read_registers(self, host: Host, call: Call) -> None:
        """Note that an instruction reads registers to which a product may still add."""

    def copy_in(
        self, call: Call, lane: int, start: int, size: int, barrier: Mbarrier, swizzle: int | None
    ) -> None:
        """Note that a copy writes shared memory, and completes at an mbarrier; tiles have a swizzle."""

    def copy_out(self, call: Call, lane: int, start: int, size: int, barrier: Mbarrier | None) -> None:
        """Note that a copy reads shared memory, for an mbarrier or in a bulk group."""

    def commit_copies(self, call: Call) -> None:
        """Note that a bulk group ends."""

    def wait_copies(self, call: Call, left: int) -> None:
        """Note that a warp waits until at most `left` bulk groups read."""

    def commit_products(self, call: Call) -> None:
        """Note that a group of products ends."""

    def wait_products(self, call: Call, left: int, warps: Sequence[int]) -> None:
        """Note that at most `left` groups of a warpgroup's products are incomplete."""

    def arrive(self, call: Call, what: Mbarrier | Meeting) -> None:
        """Note that a warp arrives at a barrier."""

    def complete(self, cluster: Cluster, what: Mbarrier | Meeting) -> None:
        """Note that a phase of a barrier is complete."""

    def pass_(self, call: Call, what: Mbarrier | Meeting, phase: int) -> None:
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

    def give(self, value: int, lanes: Sequence[int] = range(WARP), number: int = 0) -> None:
        """Set a result, of all lanes unless some are given."""
        for lane in lanes:
            self.results[WARP * number + lane] = value

    def shared(self, number: int, lane: int) -> int:
        """Return the host's address of shared memory: an offset, or in code without a space an address."""
        value = self.operand(number, lane)
        if self.instruction.space == "generic" and "shared::cluster" not in self.instruction.parts:
            return value
        return (self.head.shared or 0) + _signed(value)


class Host:
    """What serves the calls of one launch share: the kernel, its memory, and the words for mistakes.

    `frames` are the first address and the size of the memory of each worker's warps.
    """

    def __init__(
        self,
        kernel: Kernel,
        launch: abi.Launch,
        diagnosis: Diagnosis,
        frames: Sequence[tuple[int, int]],
        warps: int,
        watcher: Watcher | None,
    ) -> None:
        self.kernel, self.launch, self.diagnosis, self.watcher = kernel, launch, diagnosis, watcher
        self.frames, self.warps = frames, warps  # warps of a block
        self.threads = diagnosis.block[0] * diagnosis.block[1] * diagnosis.block[2]

    def arrived(self, call: Call) -> int:
        """Return how many threads arrive: a whole warp counts 32, also where the block does not fill it."""
        in_last = self.threads % WARP
        everyone = in_last if call.head.warp == self.warps - 1 and in_last else WARP
        return WARP if len(call.lanes) == everyone else len(call.lanes)

    def go_on(self, call: Call) -> None:
        """Note that a warp need not wait any more."""
        call.cluster.waits.pop(call.number, None)

    def wait(self, call: Call, what: str, tells: int = 0, patience: int = 1, kind: str = "hang") -> None:
        """Note that a warp waits. Where all wait for ever, raise BarrierError for what tells most."""
        cluster = call.cluster
        wait = cluster.waits.get(call.number)
        if wait is None or wait.progress != cluster.progress:
            cluster.waits[call.number] = Wait(call, what, tells, cluster.progress, 1 - patience, kind)
            return
        wait.looks += 1
        running = [i for i, head in enumerate(cluster.heads) if head.resume != abi.ENDED]
        waits = [each for i in running if (each := cluster.waits.get(i))]
        if len(waits) == len(running) and all(w.progress == cluster.progress and w.looks >= 0 for w in waits):
            ended = len(cluster.heads) - len(running)
            gone = f". {ended} of {len(cluster.heads)} warps have ended" if ended else ""
            cause = max(waits, key=lambda each: each.tells)
            raise self.mistake(cause.call, cause.call.lanes[0], cause.kind, f"{cause.what}{gone}")

    def place(self, call: Call, lane: int, address: int) -> tuple[int, int]:
        """Return the rank of the block and the offset of an address in shared memory."""
        start = (call.head.shared or 0) - call.head.rank * STRIDE
        rank, offset = divmod(address - start, STRIDE)
        if not 0 <= rank < self.kernel.blocks_together or offset >= self.launch.shared_bytes:
            raise self.invalid(call, lane, self._outside(call, address))
        return rank, offset

    def own(self, call: Call, lane: int, address: int, size: int) -> None:
        """Check that bytes lie in the shared memory of a block of the cluster. Raises InvalidAccess."""
        _, offset = self.place(call, lane, address)
        if offset + size > self.launch.shared_bytes:
            raise self.invalid(call, lane, self._outside(call, address))
        if address % min(size, 8):
            raise self.invalid(
                call, lane, f"byte {offset} of shared memory is not a multiple of {min(size, 8)}"
            )

    def _outside(self, call: Call, address: int) -> str:
        offset = address - (call.head.shared or 0)
        return f"byte {offset} of shared memory: the block has {self.launch.shared_bytes} bytes"

    def shared_of(self, call: Call, rank: int) -> np.ndarray:
        """Return the shared memory of a block of the cluster as bytes."""
        start = (call.head.shared or 0) + (rank - call.head.rank) * STRIDE
        return memory(start, self.launch.shared_bytes)

    def in_arrays(self, call: Call, lane: int, address: int, size: int) -> None:
        """Check that bytes lie in one array or variable of the launch. Raises InvalidAccess."""
        ranges = self.diagnosis.ranges
        if not any(r.start <= address and address + size <= r.start + r.size for r in ranges):
            raise self.invalid(call, lane, self.diagnosis.outside(address, size))

    def readable(self, call: Call, lane: int, address: int, size: int) -> None:
        """Check that bytes lie in memory that the kernel may read, of any kind. Raises InvalidAccess."""
        start = (call.head.shared or 0) - call.head.rank * STRIDE
        blocks = [(start + i * STRIDE, self.launch.shared_bytes) for i in range(self.kernel.blocks_together)]
        if not any(low <= address and address + size <= low + room for low, room in (*blocks, *self.frames)):
            self.in_arrays(call, lane, address, size)

    def access(self, call: Call, lane: int, address: int = 0) -> Access:
        """Return the access of a lane, for the words of a finding."""
        head = call.head
        place = (head.x, head.y, head.z)
        return Access(call.site, address, head.shared or 0, place, WARP * head.warp + lane)

    def named(self, call: Call, address: int, lane: int) -> str:
        """Name a place in shared memory."""
        return self.diagnosis.place_in_shared(self.access(call, lane, address))

    def invalid(self, call: Call, lane: int, message: str) -> InvalidAccess:
        """Return the error for an access outside all memory, or for a copy that no GPU makes."""
        finding = self.diagnosis.found("memcheck", "invalid access", self.access(call, lane), message)
        return InvalidAccess(str(finding), finding)

    def mistake(self, call: Call, lane: int, kind: str, message: str) -> SimtError:
        """Return the error for a mistake at a barrier."""
        finding = self.diagnosis.found("synccheck", kind, self.access(call, lane), message)
        return BarrierError(str(finding), finding)


def memory(address: int, size: int) -> np.ndarray:
    """Return bytes of the host's memory, without a copy."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


@lru_cache(maxsize=1024)
def _lanes(mask: int) -> Sequence[int]:
    return [lane for lane in range(WARP) if mask >> lane & 1]


def _signed(value: int) -> int:
    """Read 32 bits with their sign."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
