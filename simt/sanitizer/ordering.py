"""Find accesses to shared memory that nothing orders, where mbarriers, copies and wgmma work by themselves.

Each warp has a vector clock, and so has what works for it: the copies that complete at an mbarrier, the wgmma
of a warp, its bulk stores. An access keeps its agent's time. A warp that arrives at a barrier leaves its
clock there, and one that waits takes over the clocks of all that arrived; the end of a phase adds the time
of the copies that belong to it. So an access is in order if the warp's clock has reached the time of the one
before.

A second clock per warp holds what the asynchronous proxy sees of ordinary writes: `fence.proxy.async` brings
it up to date. Reference: PTX ISA, chapter 8 (memory consistency model), 9.7.9.25 and 9.7.15 (wgmma);
FastTrack (Flanagan and Freund, 2009) for vector clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simt.analysis.layout import STRIDE, granules
from simt.asynchronous.cluster import Call, Cluster, Host, Mbarrier, Meeting
from simt.common.limits import WARP
from simt.findings import UNFENCED_INIT, Access, Diagnosis, Finding
from simt.lowering.wgmma import Role, misaligned, misfit, reads_other_swizzle, shared_bytes
from simt.ptx import TYPE_BYTES, Kernel, Vector

NOBODY = UNKNOWN = -1
ROLES: tuple[Role, ...] = ("a", "b")
KEPT_PHASES = 4
STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
Clock = np.ndarray  # the time of each agent, as far as it is known


@dataclass
class Left:
    """What the warps that arrived at a barrier have left there for those that wait."""

    clock: Clock
    fenced: Clock


@dataclass
class Agent:
    """What works for warps by itself: the copies of an mbarrier, or the wgmma or bulk stores of a warp.

    `time` counts its groups; `number` is its place in clocks.
    """

    number: int
    time: int = 0


@dataclass
class TooSoon:
    """A read of granules that nobody had written; `passed` are the waits of its warp until then."""

    access: Access
    places: np.ndarray
    passed: dict[int, tuple[int, int, bool]]


@dataclass
class State:
    """The order of one cluster's accesses, and who touched each granule of its shared memory last."""

    clocks: np.ndarray  # one row per warp
    fenced: np.ndarray
    writer: np.ndarray  # by granule, of all blocks: the agent
    write_time: np.ndarray
    write_site: np.ndarray
    is_generic: np.ndarray  # written by ordinary stores, not by a copy
    atomic_writer: np.ndarray  # of the last atomic operation, and when and where
    atomic_time: np.ndarray
    atomic_site: np.ndarray
    swizzle: np.ndarray  # of the tensor map by which a tile was written; UNKNOWN for others
    agents: int
    left: dict[int, Left] = field(default_factory=dict)  # by barrier: of the phase that runs
    released: dict[tuple[int, int], Left] = field(default_factory=dict)  # by barrier and phase
    copies: dict[int, Agent] = field(default_factory=dict)  # by barrier
    products: dict[int, Agent] = field(default_factory=dict)  # by warp
    stores: dict[int, Agent] = field(default_factory=dict)
    reads: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # by agent: time, site
    # by warp and barrier: the last phase that it waited for, where, and whether it had done so before
    passed: dict[tuple[int, int], tuple[int, int, bool]] = field(default_factory=dict)
    barriers: dict[int, Mbarrier | Meeting] = field(default_factory=dict)  # keeps each while its id is used
    too_soon: list[TooSoon] = field(default_factory=list)  # reads of what nobody had written
    # by mbarrier: the warp that initialised it, when and where
    inits: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    # by mbarrier: fences after its initialisation, each as the warp and when
    published: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    # by warp, other block of the cluster, and site: the last access to the block's memory, and when
    remote: dict[tuple[int, int, int], tuple[int, Access]] = field(default_factory=dict)
    # by warp and register: the group of the last product that writes it, and where
    sums: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)


class Ordering:
    """Watches a launch, and collects what it finds: each mistake of two lines once."""

    def __init__(
        self, kernel: Kernel, diagnosis: Diagnosis, shared_bytes: int, asks_for_fenced_inits: bool
    ) -> None:
        self._asks_for_fenced_inits = asks_for_fenced_inits
        self.kernel, self.diagnosis = kernel, diagnosis
        self.granule = granules(kernel)["shared"]
        self.per_block = -(-shared_bytes // self.granule)
        self.blocks = kernel.blocks_together
        self.findings: dict[tuple[object, ...], Finding] = {}
        self._states: dict[int, State] = {}
        self._said: set[tuple[str, int, int]] = set()  # kinds and sites of what was found
        self._read_before: dict[tuple[int, Role, int], tuple[str, np.ndarray]] = {}  # by site

    def watched(self, host: Host, call: Call) -> None:
        """Take what generated code tells of accesses, products and fences (asynchronous.py)."""
        parts = call.instruction.parts
        if parts[:2] == ("wgmma", "mma_async"):
            self._product(host, call)
        elif parts[0] == "fence":
            self._fence(call)
        else:
            self._access(call)

    # what the host tells

    def begin(self, cluster: Cluster) -> None:
        """Forget what an earlier cluster did."""
        self._end(cluster)
        warps, size = len(cluster.heads), self.per_block * self.blocks
        clocks = np.zeros((warps, warps + 8), np.int32)
        clocks[np.arange(warps), np.arange(warps)] = 1
        self._states[id(cluster)] = State(
            clocks,
            np.zeros_like(clocks),
            np.full(size, NOBODY, np.int16),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, bool),
            np.zeros(size, np.int16),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
            np.full(size, UNKNOWN, np.int16),
            warps,
        )

    def _end(self, cluster: Cluster) -> None:
        """Report reads of what nobody ever wrote."""
        if state := self._states.pop(id(cluster), None):
            self._finish(state)

    def finish(self) -> list[Finding]:
        """Return what was found; a race may look like a read of memory that was never written."""
        for state in self._states.values():
            self._finish(state)
        races = {f.line for f in self.findings.values() if f.tool == "racecheck"}
        return [f for f in self.findings.values() if f.tool != "initcheck" or f.line not in races]

    def _finish(self, state: State) -> None:
        """Report what only the end of a cluster shows."""
        for each in state.too_soon:
            self._unwritten(each)
        if not self.findings:  # after another mistake, warps may not have come to their end
            for (warp, rank, site), (time, access) in state.remote.items():
                warps = len(state.clocks) // self.blocks
                if (state.clocks[rank * warps : (rank + 1) * warps, warp] < time).all():
                    self._after_end(access, site)

    def init(self, call: Call, lane: int, barrier: Mbarrier) -> None:
        """Note who initialises an mbarrier."""
        state, warp = self._state(call), call.number
        state.barriers[id(barrier)] = barrier
        state.inits[id(barrier)] = warp, int(state.clocks[warp, warp]), call.site
        state.published.pop(id(barrier), None)

    def uses(self, call: Call, lane: int, address: int, barrier: Mbarrier) -> None:
        """Check that an mbarrier has been initialised before its use."""
        state = self._state(call)
        warp, time, site = state.inits.get(id(barrier), (call.number, 0, 0))
        if state.clocks[call.number, warp] < time and warp != call.number:
            access = _by_lane(call, lane, address)
            message = (
                f"uses the mbarrier {self.diagnosis.place_in_shared(access)}, which "
                f"{self._what(state, warp, site)} initialises in {self._line(site)}; no barrier lies between "
                "them"
            )
            self._found("racecheck", "mbarrier used before its init", access, site, message)

    def arrive(self, call: Call, what: Mbarrier | Meeting) -> None:
        """Add the warp's clocks to those at a barrier, then advance its own."""
        state, warp = self._state(call), call.number
        left = state.left.get(id(what))
        state.barriers[id(what)] = what
        if left is None:
            state.left[id(what)] = Left(state.clocks[warp].copy(), state.fenced[warp].copy())
        else:
            left.clock, left.fenced = (
                _joined(left.clock, state.clocks[warp]),
                _joined(left.fenced, state.fenced[warp]),
            )
        state.clocks[warp, warp] += 1

    def complete(self, cluster: Cluster, what: Mbarrier | Meeting) -> None:
        """Release a phase: the clocks of all that arrived, and the copies that it waited for."""
        state = self._states[id(cluster)]
        left = state.left.pop(id(what), None) or Left(np.zeros(1, np.int32), np.zeros(1, np.int32))
        phase = (what.phase if isinstance(what, Mbarrier) else what.rounds) - 1
        copies = state.copies.get(id(what))
        if copies:
            left.clock = _joined(left.clock, _at(copies.number, phase + 1))
        state.released[id(what), phase] = left
        state.released.pop((id(what), phase - KEPT_PHASES), None)

    def pass_(self, call: Call, what: Mbarrier | Meeting, phase: int) -> None:
        """Take over what was left at a phase of a barrier."""
        state, warp = self._state(call), call.number
        state.barriers[id(what)] = what
        last = state.passed.get((warp, id(what)), (-1, 0, False))[0]
        state.passed[warp, id(what)] = phase, call.site, phase == last
        if left := state.released.get((id(what), phase)):
            self._take(state, warp, left)

    def _take(self, state: State, warp: int, left: Left) -> None:
        for mine, other in ((state.clocks[warp], left.clock), (state.fenced[warp], left.fenced)):
            np.maximum(mine[: len(other)], other, out=mine[: len(other)])

    # accesses

    def _access(self, call: Call) -> None:
        """Check a load, a store or an atomic operation of ordinary code."""
        instruction, state = call.instruction, self._state(call)
        size = instruction.moved_bytes if not instruction.family.is_atomic else TYPE_BYTES[instruction.type]
        starts = np.array(call.column(0), np.int64)
        places, lanes = self._granules(call, starts, size)
        if not len(places):
            return
        if self.blocks > 1:
            self._note_remote(call, state, places, lanes)
        if instruction.family.is_atomic or not STRONG.isdisjoint(instruction.parts):
            if instruction.family.is_atomic:
                self._atomic(call, state, places, lanes)
            self._synchronise(call, state, places)
            return
        if instruction.family.writes:
            self._write(call, state, places, call.number, int(state.clocks[call.number, call.number]), lanes)
        else:
            self._read(call, state, places, call.number, int(state.clocks[call.number, call.number]), lanes)

    def _note_remote(self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray) -> None:
        """Note accesses to other blocks' memory: those must not end before."""
        ranks = places // self.per_block
        for rank in np.unique(ranks[ranks != call.head.rank]).tolist():
            access = self._accessing(call, places, lanes, int(np.argmax(ranks == rank)))
            time = int(state.clocks[call.number, call.number])
            state.remote[call.number, rank, call.site] = time, access

    def copy_in(
        self, call: Call, lane: int, start: int, size: int, barrier: Mbarrier, swizzle: int | None
    ) -> None:
        """Check the write of a copy that completes at an mbarrier."""
        state = self._state(call)
        if self._asks_for_fenced_inits and "cp" in call.instruction.parts:
            self._check_published(call, state, lane, start, barrier)
        agent = self._agent_of(state, state.copies, id(barrier))
        state.barriers[id(barrier)] = barrier
        places, lanes = self._granules(call, np.array([start]), size, [lane])
        if state.too_soon:
            self._comes_late(call, state, places, barrier)
        self._write(call, state, places, agent.number, barrier.phase + 1, lanes, barrier)
        state.swizzle[places] = UNKNOWN if swizzle is None else swizzle

    def copy_out(self, call: Call, lane: int, start: int, size: int, barrier: Mbarrier | None = None) -> None:
        """Check the read of a copy out of shared memory, which belongs to the warp's bulk group."""
        state = self._state(call)
        if barrier is not None:
            agent = self._agent_of(state, state.copies, id(barrier))
            time = barrier.phase + 1
        else:
            agent = self._agent_of(state, state.stores, call.number)
            time = agent.time + 1
        places, lanes = self._granules(call, np.array([start]), size, [lane])
        self._read(call, state, places, agent.number, time, lanes, by_proxy=True)

    def commit_copies(self, call: Call) -> None:
        """End a bulk group."""
        self._agent_of(self._state(call), self._state(call).stores, call.number).time += 1

    def wait_copies(self, call: Call, left: int) -> None:
        """Wait until at most `left` bulk groups still read."""
        state = self._state(call)
        agent = self._agent_of(state, state.stores, call.number)
        self._reach(state, call.number, agent, agent.time - left)

    def commit_products(self, call: Call) -> None:
        """End a group of a warp's products."""
        self._agent_of(self._state(call), self._state(call).products, call.number).time += 1

    def wait_products(self, call: Call, left: int, warps: Sequence[int]) -> None:
        """Wait until at most `left` groups of the warpgroup's products still read."""
        state = self._state(call)
        time = self._agent_of(state, state.products, call.number).time - left
        for warp in warps:
            self._reach(state, call.number, self._agent_of(state, state.products, warp), time)

    def _product(self, host: Host, call: Call) -> None:
        """Check the descriptors of a wgmma, and what it reads of shared memory."""
        state, lane = self._state(call), call.lanes[0]
        agent = self._agent_of(state, state.products, call.number)
        described = [
            role
            for role, each in zip(ROLES, call.instruction.operands[1:3], strict=False)
            if not isinstance(each, Vector)
        ]
        for number, role in enumerate(described):
            descriptor = call.operand(number, lane)
            key = call.site, role, descriptor
            why, pieces = self._read_before.get(key) or self._read_before.setdefault(
                key, self._described(call, role, descriptor)
            )
            if why:
                self._found("memcheck", "descriptor", host.access(call, lane), -1, why)
                continue
            if role == "a":  # a warp reads its own 16 of the 64 rows
                pieces = pieces[2 * (call.head.warp % 4) :][:2]
            starts = pieces.ravel() + (call.head.shared or 0)
            places, lanes = self._granules(call, starts, 16, [lane] * starts.size)
            self._check_layout(host.access(call, lane), state, role, descriptor, places)
            self._read(call, state, places, agent.number, agent.time + 1, lanes, by_proxy=True)
        for register in call.instruction.results:
            state.sums[call.number, register.name] = agent.time + 1, call.site

    def _described(self, call: Call, role: Role, descriptor: int) -> tuple[str, np.ndarray]:
        """Return why a descriptor cannot be right, and where the pieces lie that a product reads by it."""
        # reads beyond the block's memory are reported where they are made (code/warpgroup.py)
        why = misfit(call.instruction, role, descriptor, STRIDE)
        return why, shared_bytes(call.instruction, role, descriptor)

    def _check_layout(
        self, access: Access, state: State, role: Role, descriptor: int, places: np.ndarray
    ) -> None:
        """Check that a matrix is read as it was written, as far as that is known."""
        is_generic = state.is_generic[places]
        if is_generic.any() and (why := misaligned(role, descriptor)):
            self._found("memcheck", "descriptor", access, -1, why)
        of_tiles = places[~is_generic & (state.swizzle[places] != UNKNOWN)]
        if len(of_tiles) and (why := reads_other_swizzle(role, descriptor, int(state.swizzle[of_tiles[0]]))):
            site = int(state.write_site[of_tiles[0]])
            message = f"{why} as the tensor map of the copy of {self._line(site)}"
            self._found("memcheck", "descriptor", access, site, message)

    def read_registers(self, host: Host, call: Call) -> None:
        """Check that the products are complete whose sums an instruction reads; `mov` only passes them on."""
        state, warp, instruction = self._state(call), call.number, call.instruction
        agent = self._agent_of(state, state.products, warp)
        given = [state.sums.get((warp, register.name)) for register in instruction.sources]
        pending = [each for each in given if each and each[0] > state.clocks[warp, agent.number]]
        for register in instruction.results:
            state.sums.pop((warp, register.name), None)
            if pending and instruction.parts[0] == "mov":
                state.sums[warp, register.name] = pending[0]
        if pending and instruction.parts[0] != "mov":
            site = pending[0][1]
            message = (
                f"reads a sum of the wgmma of {self._line(site)}, which need not be complete: wait before "
                "with wgmma.commit_group and wgmma.wait_group"
            )
            access = host.access(call, call.lanes[0])
            self._found("racecheck", "read before wgmma completes", access, site, message)

    def _fence(self, call: Call) -> None:
        """Make what the warp knows of ordinary writes visible to the asynchronous proxy.

        `fence.mbarrier_init` does so for the initialisation of mbarriers alone, and `fence.proxy.async` too.
        """
        state, warp = self._state(call), call.number
        for barrier, (by, time, _) in state.inits.items():
            if state.clocks[warp, by] >= time:
                state.published.setdefault(barrier, []).append((warp, int(state.clocks[warp, warp])))
        if call.instruction.parts[1] == "mbarrier_init":
            return
        np.maximum(state.fenced[warp], state.clocks[warp], out=state.fenced[warp])
        state.clocks[warp, warp] += 1

    # the order

    def _state(self, call: Call) -> State:
        return self._states[id(call.cluster)]

    def _agent(self, state: State) -> Agent:
        agent = Agent(state.agents)
        state.agents += 1
        if state.agents > state.clocks.shape[1]:
            more = ((0, 0), (0, state.agents))
            state.clocks, state.fenced = np.pad(state.clocks, more), np.pad(state.fenced, more)
        return agent

    def _agent_of(self, state: State, agents: dict[int, Agent], owner: int) -> Agent:
        """Return what works for a warp or an mbarrier."""
        return agents.get(owner) or agents.setdefault(owner, self._agent(state))

    def _reach(self, state: State, warp: int, agent: Agent, time: int) -> None:
        state.clocks[warp, agent.number] = max(state.clocks[warp, agent.number], time)

    def _granules(
        self, call: Call, starts: np.ndarray, size: int, lanes: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the granules of accesses to shared memory, of all blocks, and the lane that makes each."""
        base = (call.head.shared or 0) - call.head.rank * STRIDE
        ranks, offsets = np.divmod(starts - base, STRIDE)
        inside = (ranks >= 0) & (ranks < self.blocks) & (offsets < self.per_block * self.granule)
        of = np.asarray(call.lanes if lanes is None else lanes)[inside]
        first = ranks[inside] * self.per_block + offsets[inside] // self.granule
        count = -(-size // self.granule)
        places = (first[:, None] + np.arange(count)).ravel()
        return places, np.repeat(of, count)

    def _synchronise(self, call: Call, state: State, places: np.ndarray) -> None:
        """Order strong accesses to one place: each sees what those before it left there."""
        warp, reads, writes = call.number, call.instruction.family.reads, call.instruction.family.writes
        for place in np.unique(places).tolist():
            key = -1 - place
            if reads and (left := state.left.get(key)):
                self._take(state, warp, left)
            if writes:
                old = state.left.get(key)
                mine = Left(state.clocks[warp].copy(), state.fenced[warp].copy())
                if old:
                    mine = Left(_joined(mine.clock, old.clock), _joined(mine.fenced, old.fenced))
                state.left[key] = mine
        if writes and not call.instruction.family.is_atomic:
            state.writer[places], state.write_time[places] = warp, 0
            state.write_site[places] = call.site
        if writes:
            state.clocks[warp, warp] += 1

    def _atomic(self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray) -> None:
        """Check that barriers lie between an atomic operation and plain accesses of its place."""
        warp, clock = call.number, state.clocks[call.number]
        time = int(clock[warp])
        early = (state.writer[places] != NOBODY) & self._is_early(state, places, clock, warp, time)
        if early.any():
            self._read_early(call, state, places, lanes, int(np.argmax(early)))
        else:
            self._check_readers(call, state, places, lanes, None)
        state.atomic_writer[places], state.atomic_time[places] = warp, time
        state.atomic_site[places] = call.site

    def _is_mixed(
        self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray, verb: str, kind: str
    ) -> bool:
        """Find a plain access after an atomic operation without a barrier between."""
        early = state.atomic_time[places] > state.clocks[call.number][state.atomic_writer[places]]
        if not early.any():
            return False
        first = int(np.argmax(early))
        access, site = self._accessing(call, places, lanes, first), int(state.atomic_site[places[first]])
        message = (
            f"race ({kind}) on {self.diagnosis.place_in_shared(access)}: {verb} what "
            f"{self._what(state, int(state.atomic_writer[places[first]]), site)} changes atomically in "
            f"{self._line(site)}; no barrier lies between them"
        )
        self._found("racecheck", kind, access, site, message)
        return True

    def _read(
        self,
        call: Call,
        state: State,
        places: np.ndarray,
        agent: int,
        time: int,
        lanes: np.ndarray,
        by_proxy: bool = False,
    ) -> None:
        clock, writer = state.clocks[call.number], state.writer[places]
        unwritten = (writer == NOBODY) & (state.atomic_time[places] == 0)
        if unwritten.any():
            access = self._accessing(call, places, lanes, int(np.argmax(unwritten)))
            passed = {b: waited for (warp, b), waited in state.passed.items() if warp == call.number}
            state.too_soon.append(TooSoon(access, places[unwritten], passed))
        early = (writer != NOBODY) & self._is_early(state, places, clock, agent, time)
        if self._is_mixed(call, state, places, lanes, "reads", "read after write"):
            pass
        elif early.any():
            self._read_early(call, state, places, lanes, int(np.argmax(early)))
        elif by_proxy:
            unseen = (writer != NOBODY) & state.is_generic[places]
            unseen &= state.write_time[places] > state.fenced[call.number][writer]
            if unseen.any():
                self._unfenced(call, state, places, lanes, int(np.argmax(unseen)))
        if agent not in state.reads:
            state.reads[agent] = np.zeros(state.writer.size, np.int32), np.zeros(state.writer.size, np.int32)
        times, sites = state.reads[agent]
        times[places], sites[places] = time, call.site

    def _is_early(self, state: State, places: np.ndarray, clock: Clock, agent: int, time: int) -> np.ndarray:
        """Say of which granules the last write is not known to be over; a group's own writes do not count."""
        writer, written = state.writer[places], state.write_time[places]
        return (written > clock[writer]) & ((writer != agent) | (written != time))

    def _write(
        self,
        call: Call,
        state: State,
        places: np.ndarray,
        agent: int,
        time: int,
        lanes: np.ndarray,
        barrier: Mbarrier | None = None,
    ) -> None:
        """Check a write: of ordinary code, or of a copy that completes at `barrier`."""
        clock, writer = state.clocks[call.number], state.writer[places]
        early = (writer != NOBODY) & self._is_early(state, places, clock, agent, time)
        if self._is_mixed(call, state, places, lanes, "writes", "write after write"):
            pass
        elif early.any():
            self._written_early(call, state, places, lanes, int(np.argmax(early)))
        self._check_readers(call, state, places, lanes, barrier)
        state.writer[places], state.write_time[places] = agent, time
        state.write_site[places], state.is_generic[places] = call.site, barrier is None

    def _check_readers(
        self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray, barrier: Mbarrier | None
    ) -> None:
        """Find reads that need not be over when a place is written; `barrier` is that of a copy."""
        clock = state.clocks[call.number]
        for reader, (times, sites) in state.reads.items():
            if reader == call.number:
                continue
            early = times[places] > clock[reader]
            if early.any():
                first = int(np.argmax(early))
                self._overwritten(
                    call, state, places, lanes, first, reader, int(sites[places[first]]), barrier
                )
                break

    # findings

    def _accessing(self, call: Call, places: np.ndarray, lanes: np.ndarray, first: int) -> Access:
        rank, granule = divmod(int(places[first]), self.per_block)
        shared = (call.head.shared or 0) - (call.head.rank - rank) * STRIDE
        return _by_lane(call, int(lanes[first]), shared + granule * self.granule)

    def _found(self, tool: str, kind: str, access: Access, other: int, message: str) -> None:
        if (kind, access.site, other) in self._said:
            return
        self._said.add((kind, access.site, other))
        finding = self.diagnosis.found(tool, kind, access, message)
        line = self.kernel.code[other].line if other >= 0 else 0
        key = (kind, finding.line, finding.calls, line)
        self.findings.setdefault(key, replace(finding, other_line=line, other_site=other))

    def _line(self, site: int) -> str:
        instruction = self.kernel.code[site]
        return f"line {instruction.line}" + (
            f" (called in line {instruction.calls[-1]})" if instruction.calls else ""
        )

    def _what(self, state: State, agent: int, site: int) -> str:
        """Say who made an access."""
        instruction = self.kernel.code[site]
        if agent < len(state.clocks):
            return (
                f"warp {agent}"
                if self.blocks == 1
                else f"a warp of block {agent * self.blocks // len(state.clocks)} of the cluster"
            )
        return "the wgmma" if instruction.parts[0] == "wgmma" else "the copy"

    def _comes_late(self, call: Call, state: State, places: np.ndarray, barrier: Mbarrier) -> None:
        """Find reads of what a copy brings only now."""
        for each in list(state.too_soon):
            if np.isin(each.places, places).any():
                state.too_soon.remove(each)
                self._before_copy(each.access, call.site, barrier.phase, each.passed.get(id(barrier)))
                for times, _ in state.reads.values():  # the write is not a second mistake
                    times[places] = 0

    def _unwritten(self, read: TooSoon) -> None:
        """Report a read of what nobody wrote, perhaps because a wait asked for the wrong parity."""
        message = (
            f"reads {self.diagnosis.place_in_shared(read.access)}, which nobody has written yet in this block"
        )
        at_once = [waited for phase, waited, _ in read.passed.values() if phase < 0]
        if at_once:
            message += f": the wait in {self._line(at_once[-1])} was for {_phase(-1)}"
            self._found("racecheck", "wrong parity", read.access, at_once[-1], message)
        else:
            self._found("initcheck", "uninitialised shared read", read.access, -1, message)

    def _before_copy(
        self, access: Access, copy: int, phase: int, passed: tuple[int, int, bool] | None
    ) -> None:
        """Report a read of what a copy brings in a phase; `passed` is the last wait at that mbarrier."""
        where = self.diagnosis.place_in_shared(access)
        message = f"reads {where} before the copy of {self._line(copy)} is complete: "
        kind = "read before copy completes"
        if passed is None:
            message += "the warp has not waited for the phase of its mbarrier"
        else:
            last, waited, had_before = passed
            if had_before or last < 0:
                kind = "wrong parity"
            message += (
                f"that belongs to phase {phase} of its mbarrier (parity {phase & 1}), and the last wait, in "
                f"{self._line(waited)}, was for {_phase(last)}"
            )
        self._found("racecheck", kind, access, copy, message)

    def _read_early(
        self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray, first: int
    ) -> None:
        place = int(places[first])
        agent, site = int(state.writer[place]), int(state.write_site[place])
        access = self._accessing(call, places, lanes, first)
        barrier = next((b for b, copies in state.copies.items() if copies.number == agent), None)
        if barrier is not None:
            phase = int(state.write_time[place]) - 1
            self._before_copy(access, site, phase, state.passed.get((call.number, barrier)))
            return
        message = (
            f"race (read after write) on {self.diagnosis.place_in_shared(access)}: reads what "
            f"{self._what(state, agent, site)} writes in {self._line(site)}; no barrier lies between them"
        )
        self._found("racecheck", "read after write", access, site, message)

    def _unfenced(self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray, first: int) -> None:
        place = int(places[first])
        site, access = int(state.write_site[place]), self._accessing(call, places, lanes, first)
        message = (
            f"reads {self.diagnosis.place_in_shared(access)} through the asynchronous proxy, which need not "
            f"see the ordinary write of {self._line(site)}: let each thread that writes run "
            "fence.proxy.async before the barrier"
        )
        self._found("racecheck", "missing proxy fence", access, site, message)

    def _check_published(self, call: Call, state: State, lane: int, start: int, barrier: Mbarrier) -> None:
        """Check that a copy's mbarrier was initialised where the asynchronous proxy sees it."""
        _, _, site = state.inits.get(id(barrier), (0, 0, -1))
        fences = state.published.get(id(barrier), [])
        if site < 0 or any(state.clocks[call.number, warp] >= time for warp, time in fences):
            return
        access = _by_lane(call, lane, start)
        message = (
            "completes a copy at an mbarrier through the asynchronous proxy, which need not see that "
            f"{self._line(site)} initialises it: let the thread that initialises it then run "
            "fence.mbarrier_init (cuda::ptx::fence_mbarrier_init) before the barrier"
        )
        self._found("racecheck", UNFENCED_INIT, access, site, message)

    def _after_end(self, access: Access, site: int) -> None:
        message = (
            f"accesses {self.diagnosis.place_in_shared(access)}, which may have ended: nothing makes it "
            "wait. End the kernel with cluster.sync()"
        )
        self._found("racecheck", "access after a block ends", access, site, message)

    def _written_early(
        self, call: Call, state: State, places: np.ndarray, lanes: np.ndarray, first: int
    ) -> None:
        place = int(places[first])
        agent, site = int(state.writer[place]), int(state.write_site[place])
        access = self._accessing(call, places, lanes, first)
        message = (
            f"race (write after write) on {self.diagnosis.place_in_shared(access)}: writes what "
            f"{self._what(state, agent, site)} writes in {self._line(site)}; no barrier lies between them"
        )
        self._found("racecheck", "write after write", access, site, message)

    def _overwritten(
        self,
        call: Call,
        state: State,
        places: np.ndarray,
        lanes: np.ndarray,
        first: int,
        reader: int,
        site: int,
        barrier: Mbarrier | None,
    ) -> None:
        access = self._accessing(call, places, lanes, first)
        passed = state.passed.get((reader, id(barrier)))
        if (
            barrier and passed and passed[2]
        ):  # it waited again for a phase that was over: these bytes are those
            early = replace(access, site=site, thread=WARP * (reader % (len(state.clocks) // self.blocks)))
            self._before_copy(early, call.site, barrier.phase, passed)
            return
        where, what = self.diagnosis.place_in_shared(access), self._what(state, reader, site)
        kind = "write after read"
        if reader >= len(state.clocks):
            kind = (
                "overwritten while wgmma reads" if what == "the wgmma" else "overwritten while a copy reads"
            )
        message = (
            f"race ({kind}) on {where}: overwrites what {what} of {self._line(site)} reads; nothing says "
            "that it has finished"
        )
        self._found("racecheck", kind, access, site, message)


def _by_lane(call: Call, lane: int, address: int) -> Access:
    """Return the access that a lane makes by a call."""
    head = call.head
    thread = WARP * head.warp + lane
    return Access(call.site, address, head.shared or 0, (head.x, head.y, head.z), thread)


def _phase(number: int) -> str:
    """Name a phase that a warp waited for; a new mbarrier is in phase 0, as if one before had ended."""
    if number < 0:
        return f"the one before the first (parity {number & 1}), so it passed at once"
    return f"phase {number} (parity {number & 1})"


def _joined(a: Clock, b: Clock) -> Clock:
    """Return the later time of each agent; a shorter clock knows nothing of the others."""
    if len(a) < len(b):
        a, b = b, a
    result = a.copy()
    np.maximum(result[: len(b)], b, out=result[: len(b)])
    return result


def _at(agent: int, time: int) -> Clock:
    clock = np.zeros(agent + 1, np.int32)
    clock[agent] = time
    return clock
