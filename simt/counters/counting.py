"""A counted run counts sectors, bank conflicts, visits of basic blocks, and branches that part a warp.

Most costs follow from constant lane offsets. Bank conflicts and different addresses of one base are then
known when code is made, and are multiplied by the visits. Sectors depend only on where in its sector the base
lies, so a table of 32 entries holds them. Careful code that runs for a whole warp subtracts what the visits
already count.
Rules: Nsight Compute documentation, "Memory Tables"; CUDA C++ Programming Guide, "Shared Memory".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.blocks import Block
from simt.analysis.lanes import absorbed
from simt.analysis.strides import strides
from simt.code import abi
from simt.code.addresses import where
from simt.code.checked_access import LANES_64, defined_once, shared_bounds
from simt.code.emitter import Emitter, ObservedAccess
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import broadcast, element, expanded, reshaped
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.counters.banks import BANK_BYTES, BANKS, bank_conflicts, count_bank_conflicts
from simt.counters.counts import Facts, Reader, Totals
from simt.counters.sectors import (
    FIVE,
    ONE,
    SECTOR_BYTES,
    add,
    delta,
    scattered_function,
    sector_places,
    sector_table,
)
from simt.counters.visits_per_line import meeting
from simt.ptx import Instruction
from simt.run.observer import LaunchRun, Observer
from simt.run.worker import Worker


class CountingEmitter(Emitter):
    """Adds to the counters of each instruction and to the visits of each basic block."""

    whole_warps = True

    def attach(self, w: Warp) -> None:
        """Take the warp whose code is being written, and find its counters."""
        super().attach(w)
        self.usual = abi.table(w.function.module, "usual")
        self.known = np.zeros((len(w.kernel.code), len(abi.Usual._fields_)), np.int64)

    def alike(self, instruction: Instruction, first: Instruction) -> None:
        """Note that the usual accesses of an instruction cost the same as those of another."""
        self.known[self.w.sites[id(instruction)]] = self.known[self.w.sites[id(first)]]

    def _counter(self, instruction: Instruction) -> abi.Value:
        counters = self.w.field(abi.Frame, "counters")
        return self.w.b.gep(counters, [self.w.site(instruction)], source_etype=abi.TYPES[abi.Counter])

    def finish(self) -> None:
        """Fill in the table of what the usual accesses cost."""
        abi.fill(self.usual, abi.I8, bytearray(self.known.tobytes()))

    def facts(self) -> Facts:
        """Return what the usual accesses cost, and the strides between lanes."""
        return Facts(self.known, strides(self.w.kernel, self.w.flow))

    def enter(self, block: Block, whole: bool) -> None:
        """Count that a warp enters a block, whole or in part."""
        b = self.w.b
        visits = self.w.field(abi.Frame, "visits")
        row = b.gep(visits, [ir.Constant(abi.I32, self.w.index)], source_etype=abi.TYPES[abi.Visits])
        if whole:
            add(b, abi.Visits, row, "full", ONE)
        else:
            mask = self.w.active()
            add(b, abi.Visits, row, "partial", ONE)
            add(b, abi.Visits, row, "lanes", b.zext(intrinsic(b, "ctpop", abi.I32, mask), abi.I64))

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Count an access that a whole warp makes in its fast form."""
        counter, site = self._counter(instruction), self.w.sites[id(instruction)]
        if access.space == "shared":
            self._shared(access, counter, site)
        elif access.space in ("global", "generic"):  # an access with a range is global
            self._global(access, counter, site)

    def careful(self, look: ObservedAccess) -> None:
        """Count an access lane by lane."""
        space, size = look.access.space, ir.Constant(abi.I64, look.access.alignment)
        if space in ("shared", "global", "generic"):
            function = _count_function(look.b.module, space)
            look.b.call(function, [look.launch, look.frame, look.addresses, look.mask, look.site, size])
        if look.access.is_atomic:  # atomic operations have no fast form
            counters = abi.load_field(look.b, abi.Frame, look.frame, "counters")
            counter = look.b.gep(counters, [look.site], source_etype=abi.TYPES[abi.Counter])
            add(look.b, abi.Counter, counter, "turns", meeting(look.b, look.addresses, look.mask))

    def step(self, instruction: Instruction) -> None:
        """Count a fetch from a texture that some lanes skip; visits of the block count the others."""
        if instruction.is_texture and instruction.guard is not None:
            b, mask, counter = self.w.b, self.w.active(instruction), self._counter(instruction)
            some = b.icmp_unsigned("!=", mask, abi.ZERO)
            add(b, abi.Counter, counter, "requests", b.zext(some, abi.I64))
            add(b, abi.Counter, counter, "threads", b.zext(intrinsic(b, "ctpop", abi.I32, mask), abi.I64))

    def part(self, instruction: Instruction, taken: abi.Value, other: abi.Value) -> None:
        """Count a branch that parts the lanes of a warp."""
        b = self.w.b
        both = b.and_(b.icmp_unsigned("!=", taken, abi.ZERO), b.icmp_unsigned("!=", other, abi.ZERO))
        add(b, abi.Counter, self._counter(instruction), "divergent", b.zext(both, abi.I64))

    def _shared(self, access: Access, counter: abi.Value, site: int) -> None:
        """Add the extra passes over the banks, unless they are always the same."""
        b, shape = self.w.b, access.shape
        address = where(self.w, access).base
        if shape.bases == 1 and access.alignment >= BANK_BYTES:
            self.known[site] = 0, bank_conflicts(shape.lane_offsets(), access.alignment)
            return
        if shape.bases == 2 and shape.offsets is None and access.alignment == BANK_BYTES:
            distance = b.sub(element(b, address, 0), element(b, address, 1))
            same_bank = b.and_(distance, ir.Constant(abi.I64, BANKS * BANK_BYTES - 1))
            differ = b.icmp_unsigned("!=", distance, ir.Constant(abi.I64, 0))
            collide = b.and_(differ, b.icmp_unsigned("==", same_bank, ir.Constant(abi.I64, 0)))
            conflicts = b.zext(collide, abi.I64)
        else:
            lanes = expanded(b, reshaped(b, address, shape, absorbed(shape)), WARP)
            conflicts = count_bank_conflicts(
                b, lanes, ir.Constant(abi.I32, -1), ir.Constant(abi.I64, access.alignment)
            )
        add(b, abi.Counter, counter, "conflicts", conflicts)

    def _global(self, access: Access, counter: abi.Value, site: int) -> None:
        """Add the distinct sectors and addresses."""
        b, shape = self.w.b, access.shape
        assert access.range is not None
        base, delta = where(self.w, access).base, self._delta(access.range)
        base = b.add(base, constant(base, access.offsets[0]))
        if shape.bases == 1:
            self.known[site] = len(set(shape.lane_offsets())), 0
            table = sector_table(b.module, shape.lane_offsets(), access.alignment)
            place = b.and_(b.add(base, delta), ir.Constant(abi.I64, SECTOR_BYTES - 1))
            entry = b.gep(table, [ir.Constant(abi.I64, 0), place], source_etype=table.value_type)
            add(b, abi.Counter, counter, "sectors", b.zext(b.load(entry, typ=abi.I8), abi.I64))
            return
        if shape.bases == 2 and shape.offsets is None:
            raw = [
                element(b, where(self.w, access).base, i) for i in (0, 1)
            ]  # scalars, as the load takes them
            shift = b.add(delta, ir.Constant(abi.I64, access.offsets[0]))
            differ = b.icmp_unsigned("!=", *raw)
            sectors_differ = b.icmp_unsigned("!=", *(b.lshr(b.add(x, shift), FIVE) for x in raw))
            add(b, abi.Counter, counter, "sectors", b.add(ONE, b.zext(sectors_differ, abi.I64)))
            add(b, abi.Counter, counter, "distinct", b.add(ONE, b.zext(differ, abi.I64)))
            return
        base = b.add(base, broadcast(b, delta, shape.bases))
        if shape.bases <= 4 and _is_gapless(access):
            self._groups(access, base, counter)
        else:
            lanes = expanded(b, reshaped(b, base, shape, absorbed(shape)), WARP)
            b.call(scattered_function(b.module), [lanes, ir.Constant(abi.I32, -1), counter])

    def _groups(self, access: Access, bases: abi.Value, counter: abi.Value) -> None:
        """Add the sectors and addresses of a few groups of lanes, each of which has no gaps.

        This is exact where the groups go up in memory (two groups may also go down); otherwise each lane is
        examined.
        """
        b, shape, size = self.w.b, access.shape, access.alignment
        low, high = [], []
        for index in range(shape.bases):
            lanes = shape.lane_offsets()[index * shape.group : (index + 1) * shape.group]
            base = element(b, bases, index)
            low.append(b.add(base, ir.Constant(abi.I64, min(lanes))))
            high.append(b.add(base, ir.Constant(abi.I64, max(lanes) + size)))
        if shape.bases == 2:
            swapped = b.icmp_signed("<", low[1], low[0])
            low = [b.select(swapped, low[1], low[0]), b.select(swapped, low[0], low[1])]
            high = [b.select(swapped, high[1], high[0]), b.select(swapped, high[0], high[1])]
        ascending: abi.Value = ir.Constant(abi.I1, 1)
        if shape.bases > 2:
            for previous, following in pairwise(low):
                ascending = b.and_(ascending, b.icmp_signed(">=", following, previous))
        with b.if_else(ascending) as (simple, scattered):
            with simple:
                first = [b.ashr(address, FIVE) for address in low]
                end = [b.add(b.ashr(b.sub(address, ONE), FIVE), ONE) for address in high]
                add(b, abi.Counter, counter, "sectors", _union(b, first, end))
                shift = ir.Constant(abi.I64, size.bit_length() - 1)
                add(b, abi.Counter, counter, "distinct", b.lshr(_union(b, low, high), shift))
            with scattered:
                lanes = expanded(b, reshaped(b, bases, shape, absorbed(shape)), WARP)
                b.call(scattered_function(b.module), [lanes, ir.Constant(abi.I32, -1), counter])

    def _delta(self, number: int) -> abi.Value:
        """Return what to add to a host address so that sectors begin where they would on a GPU (0 to 31)."""
        shift, start = self.w.range(number, "shift"), self.w.range(number, "start")
        return self.w.once(("delta", number), lambda b: delta(b, shift, start))


def _is_gapless(access: Access) -> bool:
    """Say whether each group of lanes touches all bytes between its first and its last."""
    shape = access.shape
    for start in range(0, WARP, shape.group):
        offsets = sorted(set(shape.lane_offsets()[start : start + shape.group]))
        if any(b - a != access.alignment for a, b in pairwise(offsets)):
            return False
    return True


def _union(b: ir.IRBuilder, low: Sequence[abi.Value], high: Sequence[abi.Value]) -> abi.Value:
    """Emit the length of the union of intervals whose lower ends go up."""
    total, end = b.sub(high[0], low[0]), high[0]
    for first, last in zip(low[1:], high[1:], strict=True):
        begin = intrinsic(b, "smax", abi.I64, first, end)
        total = b.add(total, intrinsic(b, "smax", abi.I64, b.sub(last, begin), ir.Constant(abi.I64, 0)))
        end = intrinsic(b, "smax", abi.I64, last, end)
    return total


def _count_function(module: ir.Module, space: str) -> ir.Function:
    """Define void count(launch, frame, <32 x i64> addresses, i32 mask, i32 site, i64 bytes)."""
    name = f"count_{space}"
    arguments = [abi.POINTER, abi.POINTER, LANES_64, abi.I32, abi.I32, abi.I64]

    def emit(function: ir.Function) -> None:
        launch, frame, addresses, mask, site, size = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        with b.if_then(b.icmp_unsigned("==", mask, abi.ZERO)):
            b.ret_void()
        counter = b.gep(
            abi.load_field(b, abi.Frame, frame, "counters"), [site], source_etype=abi.TYPES[abi.Counter]
        )
        add(b, abi.Counter, counter, "requests", ONE)
        add(b, abi.Counter, counter, "threads", b.zext(intrinsic(b, "ctpop", abi.I32, mask), abi.I64))
        start, end = shared_bounds(b, launch, frame)
        first = b.extract_element(addresses, intrinsic(b, "cttz", abi.I32, mask, ir.Constant(abi.I1, 1)))
        in_shared = b.and_(b.icmp_signed(">=", first, start), b.icmp_signed("<", first, end))
        if space != "generic":
            in_shared = ir.Constant(abi.I1, space == "shared")
        with b.if_else(in_shared) as (shared, elsewhere):
            with shared:
                places = b.sub(addresses, broadcast(b, start, WARP))
                add(b, abi.Counter, counter, "conflicts", count_bank_conflicts(b, places, mask, size))
            with elsewhere:
                b.call(scattered_function(module), [sector_places(b, launch, addresses), mask, counter])
        with b.if_then(b.icmp_unsigned("==", mask, ir.Constant(abi.I32, -1))):
            usual = b.gep(module.globals["usual"], [site], source_etype=abi.TYPES[abi.Usual])
            for what in ("distinct", "conflicts"):
                counted = b.load(abi.field(b, abi.Usual, usual, what), typ=abi.I64)
                add(b, abi.Counter, counter, what, b.sub(ir.Constant(abi.I64, 0), counted))
        b.ret_void()

    return defined_once(module, name, ir.FunctionType(ir.VoidType(), arguments), emit)


@dataclass(frozen=True)
class Tables:
    """What one worker's counted code fills; `visits` has one table for all warps, or one for each."""

    counters: np.ndarray
    visits: np.ndarray


class Counting(Observer[Totals]):
    """Counts a run; the result is its totals."""

    name = "counted"
    emitter: type[Emitter] = CountingEmitter
    by_warp = True  # does each warp of a block have visits of its own?

    def attach(self, run: LaunchRun, worker: Worker) -> None:
        """Give a worker counters at zero."""
        if worker.observed is None:
            worker.observed = self._tables(run, worker)
        tables: Tables = worker.observed
        tables.counters.fill(0)
        tables.visits.fill(0)

    def _tables(self, run: LaunchRun, worker: Worker) -> Tables:
        """Make a worker's counters, and tell its warps where they are."""
        warps = run.compiled.warps if self.by_warp else 1
        counters = np.zeros((len(run.kernel.code), len(abi.Counter._fields_)), np.int64)
        visits = np.zeros((warps, len(run.compiled.blocks), len(abi.Visits._fields_)), np.int64)
        for head in worker.heads:
            head.counters = counters.ctypes.data
            head.visits = visits[head.warp % warps].ctypes.data
        return Tables(counters, visits)

    def finish(self, run: LaunchRun) -> None:
        """Add up what the workers have counted."""
        self.result = self.totals(run)

    def totals(self, run: LaunchRun) -> Totals:
        """Return the sums over all workers."""
        if "reader" not in run.memo:
            run.memo["reader"] = Reader(run.kernel.code, run.compiled)
        tables: list[Tables] = [worker.observed for worker in run.workers]
        return Totals(
            run.memo["reader"],
            np.sum([each.counters for each in tables], axis=0),
            np.sum([each.visits for each in tables], axis=0),
            [each.counters[:, -1].copy() for each in tables] if self.by_warp else [],
        )
