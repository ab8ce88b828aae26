"""Record where a launch's machine code accesses global memory: which lines and sectors, in which order.

Each request leaves one `Touch` per line of 128 bytes, as long as its warp has room for records. The counters
of the instruction hold the totals of these requests: `sectors`; as `distinct` the lines; as `conflicts` the
cycles of the L1; as `divergent` how many lanes meet at one address, summed; and as `stride` the requests that
found no room. In a cycle the L1 delivers a word per bank, as shared memory does, and looks for four lines at
most (`load_clocks` in data/h200/limits.csv). Of an atomic operation on shared memory, `distinct` sums how
many lanes meet at one address. `simt.timing` makes a prediction of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from llvmlite import ir

from simt.analysis.accesses import Access
from simt.code import abi
from simt.code.abi import I1, I32, I64, POINTER, Frame, Launch, Touch, Value, field, load_field
from simt.code.addresses import lane_addresses
from simt.code.checked_access import LANES_64, counted_loop, defined_once, entry_slot, shared_bounds
from simt.code.emitter import ObservedAccess
from simt.code.instructions import intrinsic
from simt.counters import notes
from simt.counters.counting import Tables
from simt.counters.counts import Totals
from simt.counters.notes import LINE_BITS, SECTORS_OF_LINE, Note
from simt.counters.sectors import ONE, add
from simt.counters.visits_per_line import meeting
from simt.counters.wavefronts import Issues, IssuesEmitter
from simt.launch.arguments import GPU_ALIGNMENT
from simt.launch.arguments import Range as Memory
from simt.ptx import Instruction
from simt.run.observer import LaunchRun
from simt.run.worker import Worker

RECORDS = 1 << 18  # of accesses to global memory that a launch keeps
ENOUGH = 4096
TAGS = 4  # lines that the L1 looks for in a cycle
# Numbers of 64 bits before the records: how many records there are; how many each warp may write in a block;
# where the notes are; the number of the run; how many records there would be if none was left out; and where
# those seen are, or 0.
COUNT, MOST, NOTES, EPOCH, RECORDED, SEEN = range(6)
HEADER = 6
SEEN_BITS = 15  # of the number of places for records that were seen: those that meet in one are written again
KEY_SHIFT = 28  # of the line in what stands for a record; below are the instruction's kind and the sectors
GOLDEN = 0x9E3779B97F4A7C15  # spreads numbers over places (Knuth, TAOCP 3, 6.4)
LINE, BLOCK, WHAT = range(3)  # the columns of records
FIRST, WARP_SHIFT, SITE_SHIFT = 1 << SECTORS_OF_LINE, 8, 24
NONE = ir.Constant(I64, 0)
ATOMIC = "atomic"  # a part of our own: a load that stands for an atomic operation


class TrafficEmitter(IssuesEmitter):
    """Records what an `Issues` run counts, and each access to global memory.

    The wavefronts of an instruction are counted ENOUGH times, and requests of a warp until it has no more
    room for records. `stride` then says how many were counted, or were not.
    """

    def count(self, access: Access, counter: Value, site: Value) -> None:
        """Count the wavefronts of an access to shared memory, unless enough of its kind were counted."""
        b = self.w.b
        done = load_field(b, abi.Counter, counter, "stride")
        with b.if_then(b.icmp_signed("<", done, ir.Constant(I64, ENOUGH))):
            super().count(access, counter, site)
            add(b, abi.Counter, counter, "stride", ONE)

    def wavefronts(
        self, b: ir.IRBuilder, frame: Value, site: Value, places: Value, mask: Value, access: Access
    ) -> Value:
        """Emit how many wavefronts an access to shared memory takes; those of one like the last are noted."""
        sizes = ir.Constant(I64, access.alignment), ir.Constant(I1, not access.is_store)
        return b.call(_fronts_function(b.module), [frame, site, places, mask, *sizes])

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Record an access that a whole warp makes."""
        super().fast(instruction, access)
        b = self.w.b
        if access.space == "shared" and ATOMIC not in instruction.parts:
            return
        if access.space not in ("shared", "global", "generic"):
            return
        lanes = lane_addresses(self.w, access)
        everyone = ir.Constant(I32, -1)
        if access.space == "shared":
            add(b, abi.Counter, self._counter(instruction), "distinct", meeting(b, lanes, everyone))
            return
        site = self.w.site(instruction)
        size = ir.Constant(I64, access.alignment)
        b.call(_function(b.module), [self.w.launch, self.w.frame, lanes, everyone, site, size])

    def careful(self, look: ObservedAccess) -> None:
        """Record an access of some lanes."""
        super().careful(look)
        b = look.b
        if look.access.space == "shared":
            counters = load_field(b, Frame, look.frame, "counters")
            counter = b.gep(counters, [look.site], source_etype=abi.TYPES[abi.Counter])
            add(b, abi.Counter, counter, "distinct", meeting(b, look.addresses, look.mask))
        elif look.access.space in ("global", "generic"):
            size = ir.Constant(I64, look.access.alignment)
            b.call(_function(b.module), [look.launch, look.frame, look.addresses, look.mask, look.site, size])


def _function(module: ir.Module) -> ir.Function:
    """Define void touch(launch, frame, <32 x i64> addresses, i32 mask, i32 site, i64 bytes)."""
    arguments = [POINTER, POINTER, LANES_64, I32, I32, I64]
    return defined_once(module, "touch", ir.FunctionType(ir.VoidType(), arguments), _emit)


def _fronts_function(module: ir.Module) -> ir.Function:
    """Define i64 fronts(frame, i32 site, <32 x i64> places, i32 mask, i64 bytes, i1 is_load)."""
    arguments = [POINTER, I32, LANES_64, I32, I64, I1]
    return defined_once(module, "fronts", ir.FunctionType(I64, arguments), _emit_fronts)


def _emit_fronts(function: ir.Function) -> None:
    frame, site, places, mask, size, is_load = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with b.if_then(b.icmp_unsigned("==", mask, abi.ZERO)):
        b.ret(NONE)
    b.ret(_note(b, frame, site, mask).fronts(places, size, is_load))


def _note(b: ir.IRBuilder, frame: Value, site: Value, mask: Value) -> Note:
    notes_ = b.load(_at(b, load_field(b, Frame, frame, "trace"), NOTES), typ=POINTER)
    return Note(b, notes_, site, mask)


def _emit(function: ir.Function) -> None:
    launch, frame, addresses, mask, site, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with b.if_then(b.icmp_unsigned("==", mask, abi.ZERO)):
        b.ret_void()
    counters = load_field(b, Frame, frame, "counters")
    counter = b.gep(counters, [site], source_etype=abi.TYPES[abi.Counter])
    start, end = shared_bounds(b, launch, frame)
    one = b.extract_element(addresses, intrinsic(b, "cttz", I32, mask, ir.Constant(I1, 1)))
    with b.if_then(b.and_(b.icmp_signed(">=", one, start), b.icmp_signed("<", one, end))):
        b.ret_void()  # a generic address of shared memory
    add(b, abi.Counter, counter, "requests", ONE)
    block = _block(b, launch, frame)
    with b.if_then(_is_full(b, frame, block)):
        add(b, abi.Counter, counter, "stride", ONE)
        b.ret_void()
    head = load_field(b, Frame, frame, "trace")
    note = _note(b, frame, site, mask)
    places = note.places(launch, b.load(_at(b, head, EPOCH), typ=I64), addresses, one)
    first = note.look(places, size)
    lines, fronts = note.read(notes.COUNT), note.read(notes.FRONTS)
    tags = b.udiv(b.add(lines, ir.Constant(I64, TAGS - 1)), ir.Constant(I64, TAGS))
    counted = (
        ("divergent", note.read(notes.MET)),
        ("sectors", note.read(notes.SECTORS)),
        ("distinct", lines),
        ("conflicts", intrinsic(b, "umax", I64, fronts, tags)),
    )
    for name, value in counted:
        add(b, abi.Counter, counter, name, value)
    line = b.lshr(first, ir.Constant(I64, LINE_BITS))
    _write(b, frame, head, note, line, block, site)
    b.ret_void()


def _block(b: ir.IRBuilder, launch: Value, frame: Value) -> Value:
    """Emit the block's number in the grid; x counts fastest."""
    x, y, z = (b.sext(load_field(b, Frame, frame, axis), I64) for axis in "xyz")
    width, height = (b.sext(load_field(b, Launch, launch, f"grid_{axis}"), I64) for axis in "xy")
    return b.add(x, b.mul(width, b.add(y, b.mul(height, z))))


def _is_full(b: ir.IRBuilder, frame: Value, block: Value) -> Value:
    """Emit a test whether the warp has written all the records that it may in this block."""
    is_same = b.icmp_signed("==", load_field(b, Frame, frame, "traced_block"), block)
    most = b.load(b.gep(load_field(b, Frame, frame, "trace"), [ONE], source_etype=I64), typ=I64)
    return b.and_(is_same, b.icmp_signed(">=", load_field(b, Frame, frame, "traced"), most))


def _write(
    b: ir.IRBuilder, frame: Value, head: Value, note: Note, first: Value, block: Value, site: Value
) -> None:
    """Emit records of the lines of a request, as many as the warp may still write in this block."""
    lines = note.read(notes.COUNT)
    is_new = b.icmp_signed("!=", load_field(b, Frame, frame, "traced_block"), block)
    written = b.select(is_new, ir.Constant(I64, 0), load_field(b, Frame, frame, "traced"))
    b.store(block, field(b, Frame, frame, "traced_block"))
    b.store(b.add(written, lines), field(b, Frame, frame, "traced"))
    room = b.sub(b.load(_at(b, head, MOST), typ=I64), written)
    count = intrinsic(b, "smin", I64, room, lines)
    _add(b, _at(b, head, RECORDED), count)
    warp = b.zext(load_field(b, Frame, frame, "warp"), I64)
    place = b.shl(b.zext(site, I64), ir.Constant(I64, SITE_SHIFT))
    what = b.or_(place, b.shl(warp, ir.Constant(I64, WARP_SHIFT)))
    seen = b.load(_at(b, head, SEEN), typ=I64)
    with counted_loop(b, count) as index:
        distance, sectors = note.line(index)
        line = b.add(first, distance)
        with b.if_then(_is_fresh(b, seen, line, note.read(notes.KIND), sectors)):
            number = _add(b, _at(b, head, COUNT), ONE)
            records = b.gep(head, [ir.Constant(I64, HEADER)], source_etype=I64)
            record = b.gep(records, [number], source_etype=abi.TYPES[Touch])
            begins = b.select(b.icmp_signed("==", index, NONE), ir.Constant(I64, FIRST), NONE)
            row = (line, block, b.or_(b.or_(what, sectors), begins))
            for name, value in zip(("line", "block", "what"), row, strict=True):
                b.store(value, field(b, Touch, record, name))


def _is_fresh(b: ir.IRBuilder, seen: Value, line: Value, kind: Value, sectors: Value) -> Value:
    """Emit a test whether to write a record: all, or those that were not `seen` lately, by whatever warp."""
    fresh = entry_slot(b, I1)
    b.store(ir.Constant(I1, 1), fresh)
    with b.if_then(b.icmp_signed("!=", seen, NONE)):
        access = b.or_(b.shl(kind, ir.Constant(I64, SECTORS_OF_LINE)), sectors)
        key = b.or_(b.shl(line, ir.Constant(I64, KEY_SHIFT)), access)
        place = b.lshr(b.mul(key, ir.Constant(I64, GOLDEN)), ir.Constant(I64, 64 - SEEN_BITS))
        slot = b.gep(b.inttoptr(seen, POINTER), [place], source_etype=I64)
        b.store(b.icmp_signed("!=", key, b.load(slot, typ=I64)), fresh)
        b.store(key, slot)
    return b.load(fresh, typ=I1)


def _at(b: ir.IRBuilder, head: Value, number: int) -> Value:
    """Emit the address of a number before the records."""
    return b.gep(head, [ir.Constant(I64, number)], source_etype=I64)


def _add(b: ir.IRBuilder, place: Value, amount: Value) -> Value:
    """Emit code that adds to a number in memory; return what was there."""
    before = b.load(place, typ=I64)
    b.store(b.add(before, amount), place)
    return before


def placed(ranges: Sequence[Memory]) -> list[Memory]:
    """Return the memory of a launch with, as `shift`, an address that it might have on a GPU.

    It depends on the sizes alone: where this process has its arrays must not decide which share lines.
    """
    found, end = list[Memory](), 0
    for each in ranges:
        start = -(-end // GPU_ALIGNMENT) * GPU_ALIGNMENT + each.shift
        found.append(replace(each, shift=start))
        end = start + each.size + GPU_ALIGNMENT  # neighbours share nothing
    return found


class Trace:
    """The records of one thread of the host, and its notes."""

    def __init__(self, sites: int) -> None:
        self._notes = np.zeros((sites, notes.NOTE), np.int64)  # they know of no request yet
        self._seen = np.zeros(1 << SEEN_BITS, np.int64)
        self._memory = np.empty(0, np.int64)
        self._epoch, self._alike = 0, np.empty(0, np.int64)

    def begin(self, blocks: int, warps: int, room: int, alike: np.ndarray | None) -> int:
        """Make room for `room` records of so many blocks of `warps` warps, and for 64 per warp at least.

        A record like an earlier one may be left out, also of another instruction for which `alike` has the
        same number; None: all are kept in order. Return the records' address.
        """
        each = max(64, room // max(1, blocks * warps))
        size = HEADER + len(Touch._fields_) * each * blocks * warps
        if len(self._memory) < size:
            self._memory = np.empty(size, np.int64)
        if alike is not None and alike is not self._alike:
            self._notes[:, notes.KIND] = self._alike = alike
        self._seen.fill(0)
        self._epoch += 1
        seen = 0 if alike is None else self._seen.ctypes.data
        self._memory[:HEADER] = 0, each, self._notes.ctypes.data, self._epoch, 0, seen
        return int(self._memory.ctypes.data)

    @property
    def recorded(self) -> int:
        """Return how many records there would be if none was left out."""
        return int(self._memory[RECORDED])

    @property
    def records(self) -> np.ndarray:
        """Return the records, one row each: line, block, what."""
        width = len(Touch._fields_)
        return self._memory[HEADER : HEADER + width * self._memory[COUNT]].reshape(-1, width)


@dataclass(frozen=True)
class _Tables(Tables):
    trace: Trace


class TrafficRecorder(Issues):
    """Counts as `Issues` does, and records where blocks access global memory.

    All accesses stay, in order, unless `alike` says by a number per instruction which stand for others.
    """

    name = "traffic"
    emitter = TrafficEmitter
    may_be_brief = False

    def __init__(self, alike: np.ndarray | None = None) -> None:
        self._alike = alike

    def attach(self, run: LaunchRun, worker: Worker) -> None:
        """Give a worker room for the records of all blocks."""
        super().attach(run, worker)
        tables: _Tables = worker.observed
        room = RECORDS if run.blocks == 1 else RECORDS // 2
        start = tables.trace.begin(run.blocks, len(worker.heads), room, self._alike)
        for head in worker.heads:
            head.trace, head.traced_block = start, -1

    def _tables(self, run: LaunchRun, worker: Worker) -> _Tables:
        made = super()._tables(run, worker)
        return _Tables(made.counters, made.visits, Trace(len(made.counters)))

    def totals(self, run: LaunchRun) -> Totals:
        """Return the sums over all workers, and their records one after the other."""
        traces = [worker.observed.trace for worker in run.workers]
        return replace(
            super().totals(run),
            touches=np.concatenate([each.records for each in traces]),
            recorded=sum(each.recorded for each in traces),
        )
