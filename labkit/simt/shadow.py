"""Shadow memory of a checked run: who wrote and who read each granule (1, 2 or 4 bytes) last.

Six planes of 32-bit words, one word a granule in each:

    WRITE_STAMP  WRITE_PLACE  WRITE_SITE  READ_STAMP  READ_PLACE  READ_SITE

A stamp is the number of the interval between two barriers (times 64) plus the warp, or plus SEVERAL where
more than one warp has read. A place is the number of __syncwarp calls in the interval (times 64) plus the
lane, or plus SEVERAL. Blocks run one after the other and the intervals of all are numbered on, so a stamp
older than the block's first is another block's, and one older than the launch's is nobody's. Two accesses
race if nothing orders them (other blocks, other warps in one interval, or other lanes of a warp without
__syncwarp between them) and one of the two writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from llvmlite import ir

from labkit.simt import abi
from labkit.simt.abi import I1, I8, I32, I64, POINTER, Frame, Launch, load_field
from labkit.simt.careful import cold_function, counted_loop, entry_slot, found
from labkit.simt.instructions import constant, intrinsic
from labkit.simt.lanes import WARP
from labkit.simt.memory import MAX_RUNS
from labkit.simt.vectors import all_true, broadcast, vector_type

Value = Any
PLANES = 6
WRITE_STAMP, WRITE_PLACE, WRITE_SITE, READ_STAMP, READ_PLACE, READ_SITE = range(PLANES)
STAMP_STEP, SEVERAL = 64, 63
ATOMIC, STRONG = 1, 2  # what `is_strong` says of an instruction


@dataclass(frozen=True)
class Run:
    """Granules of one access, and the lane that touches each (SEVERAL: more than one)."""

    group: int  # index of the base
    granules: tuple[int, ...]  # from the base's first
    lanes: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        return self.granules[-1] - self.granules[0] + 1 == len(self.granules)


def plan(
    lane_offsets: Sequence[int], group: int, size: int, granule: int, is_store: bool
) -> tuple[Run, ...] | None:
    """Split an access of `size` bytes at each lane's offset into neighbouring granules, if those are few.

    Else there is one run a base. None where each lane has a base, and for stores where lanes may meet:
    whether they differ depends on their values.
    """
    if group == 1 or (is_store and group < WARP):
        return None
    first = min(lane_offsets)
    contiguous, scattered = [], []
    for start in range(0, WARP, group):
        touched: dict[int, int] = {}
        for lane in range(start, start + group):
            begin = (lane_offsets[lane] - first) // granule
            for index in range(begin, begin + max(1, size // granule)):
                if index in touched and is_store:
                    return None
                touched[index] = SEVERAL if index in touched else lane
        granules = sorted(touched)
        scattered.append(Run(start // group, tuple(granules), tuple(touched[g] for g in granules)))
        breaks = [i for i in range(1, len(granules)) if granules[i] != granules[i - 1] + 1]
        for begin, end in pairwise([0, *breaks, len(granules)]):
            part = tuple(granules[begin:end])
            contiguous.append(Run(start // group, part, tuple(touched[g] for g in part)))
    return tuple(contiguous if len(contiguous) <= MAX_RUNS else scattered)


def quick_function(module: ir.Module, runs: tuple[Run, ...], is_store: bool, is_global: bool) -> ir.Function:
    """Is nothing suspicious about an access of all lanes? Then it is noted; if not, `touch` looks closely.

    i1 quick(ptr planes, i64 plane bytes, i32 stamp, launch stamp, block stamp, phase, site,
    i64 granule of each base...)
    """
    name = f"quick_{is_global:d}{is_store:d}_" + "_".join(
        ".".join(map(str, (run.group, *run.granules, "by", *run.lanes))) for run in runs
    )
    if name in module.globals:
        return module.globals[name]
    bases = max(run.group for run in runs) + 1
    function = ir.Function(module, ir.FunctionType(I1, [POINTER, I64, *[I32] * 5, *[I64] * bases]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    planes, plane_bytes, stamp, launch_stamp, block_stamp, phase, site, *granules = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    now = b.and_(stamp, ir.Constant(I32, -STAMP_STEP))

    def load(run: Run, plane: int) -> Value:
        type_ = vector_type(I32, len(run.lanes))
        if run.is_contiguous:
            return b.load(at(run, plane), typ=type_, align=4)
        pointers = each(run, plane)
        arguments = [pointers, ir.Constant(I32, 4), everyone(run), ir.Constant(type_, None)]
        return intrinsic(b, "masked.gather", type_, *arguments, overloads=(type_, pointers.type))

    def store(run: Run, plane: int, value: Value) -> None:
        if run.is_contiguous:
            b.store(value, at(run, plane), align=4)
            return
        pointers = each(run, plane)
        arguments = [value, pointers, ir.Constant(I32, 4), everyone(run)]
        intrinsic(b, "masked.scatter", ir.VoidType(), *arguments, overloads=(value.type, pointers.type))

    def at(run: Run, plane: int) -> Value:
        index = b.add(granules[run.group], ir.Constant(I64, run.granules[0]))
        return _word(b, planes, plane_bytes, plane, index)

    def each(run: Run, plane: int) -> Value:
        start = b.ptrtoint(_word(b, planes, plane_bytes, plane, granules[run.group]), I64)
        offsets = [ir.Constant(I64, 4 * granule) for granule in run.granules]
        places = b.add(
            broadcast(b, start, len(offsets)), ir.Constant(ir.VectorType(I64, len(offsets)), offsets)
        )
        return b.inttoptr(places, ir.VectorType(POINTER, len(offsets)))

    def everyone(run: Run) -> Value:
        return ir.Constant(ir.VectorType(I1, len(run.lanes)), [ir.Constant(I1, 1)] * len(run.lanes))

    def is_past(x: Value) -> Value:
        low, high = (_spread(b, y, x) for y in (block_stamp, now))
        if is_store and not is_global:
            return b.icmp_unsigned("<", x, high)  # what earlier blocks did in shared memory is gone
        in_block = b.icmp_unsigned("<", b.sub(x, low), b.sub(high, low))
        return (
            b.or_(in_block, b.icmp_unsigned("<", x, _spread(b, launch_stamp, x))) if is_global else in_block
        )

    def is_not_other_blocks(x: Value) -> Value:
        low, high = (_spread(b, y, x) for y in (launch_stamp, block_stamp))
        return b.icmp_unsigned(">=", b.sub(x, low), b.sub(high, low))

    fine: Value = ir.Constant(I1, 1)
    for run in runs:
        fine = b.and_(fine, all_true(b, is_past(load(run, WRITE_STAMP))))
        if is_store:
            fine = b.and_(fine, all_true(b, is_past(load(run, READ_STAMP))))
        elif is_global:
            fine = b.and_(fine, all_true(b, is_not_other_blocks(load(run, READ_STAMP))))
    with b.if_then(b.not_(fine), likely=False):
        b.ret(ir.Constant(I1, 0))
    for run in runs:
        lanes = [ir.Constant(I32, lane) for lane in run.lanes]
        type_ = vector_type(I32, len(lanes))
        lane = lanes[0] if len(lanes) == 1 else ir.Constant(type_, lanes)
        place = b.or_(_spread(b, phase, lane), lane)
        stamps = _spread(b, stamp, lane)
        if is_store:
            store(run, WRITE_STAMP, stamps)
            store(run, WRITE_PLACE, place)
            store(run, WRITE_SITE, _spread(b, site, lane))
        else:
            old = load(run, READ_STAMP)
            new_stamp, new_place = _read(b, old, load(run, READ_PLACE), stamps, place)
            store(run, READ_STAMP, new_stamp)
            store(run, READ_PLACE, new_place)
            store(run, READ_SITE, _spread(b, site, lane))
    b.ret(ir.Constant(I1, 1))
    return function


def touch_function(module: ir.Module) -> ir.Function:
    """Void touch(launch, frame, ptr planes, i64 plane bytes, first granule, granules, address, bytes,
    ptr values, i32 lane, site, i1 reads, writes, is_global)

    One lane's access: finds out whether it races, or reads shared memory that was never written, and notes
    it. `values` are what the 32 lanes store.
    """
    name = "touch"
    if name in module.globals:
        return module.globals[name]
    arguments = [POINTER, POINTER, POINTER, *[I64] * 5, POINTER, I32, I32, I1, I1, I1]
    function = cold_function(module, name, ir.VoidType(), arguments)
    touch = _Touch(function)
    touch.emit()
    return function


class _Touch:
    """Builds `touch`."""

    def __init__(self, function: ir.Function) -> None:
        self.b = b = ir.IRBuilder(function.append_basic_block("entry"))
        (self.launch, self.frame, self.planes, self.plane_bytes, self.first, self.count, self.address) = (
            function.args[:7]
        )
        self.size, self.values, self.lane, self.site, self.reads, self.writes, self.is_global = function.args[
            7:
        ]
        warp = load_field(b, Frame, self.frame, "warp")
        self.stamp = b.or_(load_field(b, Launch, self.launch, "stamp"), warp)
        self.launch_stamp, self.block_stamp = (
            load_field(b, Launch, self.launch, f"{what}_stamp") for what in ("launch", "block")
        )
        phase = load_field(b, Frame, self.frame, "phase")
        self.place = b.or_(b.shl(phase, ir.Constant(I32, 6)), self.lane)
        self.is_atomic = b.and_(self.reads, self.writes)

    def emit(self) -> None:
        b = self.b
        with counted_loop(b, self.count) as index:
            granule = b.add(self.first, index)
            words = [_word(b, self.planes, self.plane_bytes, plane, granule) for plane in range(PLANES)]
            self._last_write(*(b.load(word, typ=I32) for word in words[:READ_STAMP]))
            with b.if_then(self.writes):
                self._last_read(*(b.load(word, typ=I32) for word in words[READ_STAMP:]))
                self._note(words[:READ_STAMP], self.stamp, self.place)
            with b.if_then(b.not_(self.writes)):
                old, old_place, old_site = (b.load(word, typ=I32) for word in words[READ_STAMP:])
                new, place = _read(b, old, old_place, self.stamp, self.place)
                others = b.and_(self._is_other_block(old), b.not_(self._is_excused(old, old_site)))
                new = b.select(others, self.launch_stamp, new)  # not forgotten for a reader of this block
                self._note(words[READ_STAMP:], new, place)
        b.ret_void()

    def _last_write(self, stamp: Value, place: Value, site: Value) -> None:
        """Compare with the last write: RAW, WAW, or never written at all."""
        b = self.b
        in_shared_read = b.and_(self.reads, b.not_(self.is_global))
        with b.if_then(b.and_(in_shared_read, b.icmp_unsigned("<", stamp, self.block_stamp))):
            self._found(abi.UNWRITTEN)
        with b.if_then(self._races(stamp, place, site)):
            with b.if_then(self.reads):
                self._found(abi.READ_AFTER_WRITE, site, place, stamp)
            with b.if_then(b.and_(b.not_(self.reads), b.not_(self._same_value(stamp, place, site)))):
                self._found(abi.WRITE_AFTER_WRITE, site, place, stamp)

    def _last_read(self, stamp: Value, place: Value, site: Value) -> None:
        with self.b.if_then(self._races(stamp, place, site)):
            self._found(abi.WRITE_AFTER_READ, site, place, stamp)

    def _races(self, stamp: Value, place: Value, site: Value) -> Value:
        """Does nothing order this access behind the other?"""
        b = self.b
        other_block = self._is_other_block(stamp)
        same_interval = b.icmp_unsigned("<", b.xor(stamp, self.stamp), ir.Constant(I32, STAMP_STEP))
        other_warp = b.icmp_unsigned("!=", stamp, self.stamp)
        same_phase = b.icmp_unsigned("<", b.xor(place, self.place), ir.Constant(I32, 64))
        other_lane = b.and_(same_phase, b.icmp_unsigned("!=", place, self.place))
        parted = b.or_(other_block, b.and_(same_interval, b.or_(other_warp, other_lane)))
        return b.and_(parted, b.not_(self._is_excused(stamp, site)))

    def _is_other_block(self, stamp: Value) -> Value:
        """Is it global memory, last touched by a block that is over?"""
        b = self.b
        since_launch = b.sub(stamp, self.launch_stamp)
        before_block = b.icmp_unsigned("<", since_launch, b.sub(self.block_stamp, self.launch_stamp))
        return b.and_(self.is_global, before_block)

    def _is_excused(self, stamp: Value, site: Value) -> Value:
        """Are both atomic, or did a fence and atomic operations hand the memory on?"""
        b = self.b
        strong = b.module.globals["is_strong"]

        def kind(of: Value) -> Value:
            known = b.icmp_unsigned("<", of, ir.Constant(I32, strong.value_type.count))
            of = b.select(known, of, ir.Constant(I32, 0))  # an earlier launch may have left any number
            place = b.gep(strong, [ir.Constant(I32, 0), of], source_etype=strong.value_type)
            return b.load(place, typ=I8)

        wanted = b.select(self.is_global, ir.Constant(I8, ATOMIC | STRONG), ir.Constant(I8, ATOMIC))
        both = [b.icmp_unsigned("!=", b.and_(kind(s), wanted), ir.Constant(I8, 0)) for s in (self.site, site)]
        released = b.or_(load_field(b, Launch, self.launch, "released"), ir.Constant(I32, SEVERAL))
        acquired = b.icmp_unsigned("!=", load_field(b, Launch, self.launch, "acquired"), ir.Constant(I32, 0))
        handed_on = b.and_(acquired, b.icmp_unsigned("<=", stamp, released))
        return b.or_(b.and_(*both), handed_on)

    def _same_value(self, stamp: Value, place: Value, site: Value) -> Value:
        """Is what this lane stores already there, or what the other lane of this instruction stores?"""
        b = self.b
        mine = self._value(self.lane)
        slot = entry_slot(b, I64)
        b.store(ir.Constant(I64, 0), slot)
        pointer = b.inttoptr(self.address, POINTER)
        for size in (1, 2, 4, 8):
            with b.if_then(b.icmp_unsigned("==", self.size, ir.Constant(I64, size))):
                there = b.load(pointer, typ=ir.IntType(8 * size), align=size)
                b.store(there if size == 8 else b.zext(there, I64), slot)
        together = b.and_(
            b.and_(b.icmp_unsigned("==", site, self.site), b.icmp_unsigned("==", stamp, self.stamp)),
            b.icmp_unsigned("<", b.xor(place, self.place), ir.Constant(I32, 64)),
        )
        other_lane = b.and_(place, ir.Constant(I32, WARP - 1))
        other = b.select(together, self._value(other_lane), b.load(slot, typ=I64))
        return b.icmp_unsigned("==", mine, other)

    def _value(self, lane: Value) -> Value:
        return self.b.load(self.b.gep(self.values, [lane], source_etype=I64), typ=I64)

    def _note(self, words: Sequence[Value], stamp: Value, place: Value) -> None:
        for word, value in zip(words, (stamp, place, self.site), strict=True):
            self.b.store(value, word)

    def _found(self, kind: int, *other: Value) -> None:
        """`other`: site, place and stamp of the other access."""
        who = (other[0], other[1], other[2]) if other else None
        found(self.b, self.launch, self.frame, kind, self.site, self.lane, self.address, who)


def _read(b: ir.IRBuilder, old: Value, old_place: Value, stamp: Value, place: Value) -> tuple[Value, Value]:
    """Read stamp and place after a read, for one granule or a vector of them."""
    step = constant(old, STAMP_STEP)
    same_interval = b.icmp_unsigned("<", b.xor(old, stamp), step)
    same_warp = b.icmp_unsigned("==", old, stamp)
    other_warp = b.and_(same_interval, b.not_(same_warp))
    new = b.select(other_warp, b.or_(stamp, constant(stamp, SEVERAL)), stamp)
    same_phase = b.and_(same_warp, b.icmp_unsigned("<", b.xor(old_place, place), step))
    several = b.and_(same_phase, b.icmp_unsigned("!=", old_place, place))
    return new, b.select(several, b.or_(place, constant(place, SEVERAL)), place)


def _word(b: ir.IRBuilder, planes: Value, plane_bytes: Value, plane: int, index: Value) -> Value:
    offset = b.add(b.mul(plane_bytes, ir.Constant(I64, plane)), b.shl(index, ir.Constant(I64, 2)))
    return b.gep(planes, [offset], source_etype=I8)


def _spread(b: ir.IRBuilder, scalar: Value, like: Value) -> Value:
    return broadcast(b, scalar, like.type.count if isinstance(like.type, ir.VectorType) else 1)
