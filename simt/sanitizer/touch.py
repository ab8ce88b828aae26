"""A checked run's close look at one lane's access, which may race or read what was never written."""

from collections.abc import Sequence

from llvmlite import ir

from simt.analysis.layout import Layout
from simt.code import abi
from simt.code.abi import I1, I8, I32, I64, POINTER, Frame, Launch, Value, load_field
from simt.code.checked_access import counted_loop, defined_once, entry_slot, report_finding
from simt.common.limits import WARP
from simt.sanitizer.shadow import (
    ATOMIC,
    PLANES,
    POLL,
    READ_STAMP,
    SEVERAL,
    STAMP_STEP,
    STRONG,
    read,
    word,
)


def touch_function(module: ir.Module, layout: Layout) -> ir.Function:
    """Define `touch`, which looks at one lane's access.

    void touch(launch, frame, ptr planes, i64 plane bytes, first granule, granules, address, bytes, ptr
    values, ptr addresses, i32 mask, lane, site, i1 reads, writes, is_global)

    It finds out whether the access races, or reads shared memory that was never written, and notes it.
    `values` are what the 32 lanes store, and `addresses` where, if they are in `mask`. It is called for the
    lanes in order, before anything is stored.
    """
    arguments = [POINTER, POINTER, POINTER, *[I64] * 5, POINTER, POINTER, *[I32] * 3, *[I1] * 3]
    type_ = ir.FunctionType(ir.VoidType(), arguments)
    return defined_once(
        module, "touch", type_, lambda function: _Touch(function, layout).emit(), is_cold=True
    )


class _Touch:
    """Builds `touch`."""

    def __init__(self, function: ir.Function, layout: Layout) -> None:
        self.layout = layout
        self.b = b = ir.IRBuilder(function.append_basic_block("entry"))
        (self.launch, self.frame, self.planes, self.plane_bytes, self.first, self.count, self.address) = (
            function.args[:7]
        )
        self.size, self.values, self.addresses, self.mask, self.lane, self.site = function.args[7:13]
        self.reads, self.writes, self.is_global = function.args[13:]
        warp = load_field(b, Frame, self.frame, "warp")
        self.stamp = b.or_(load_field(b, Launch, self.launch, "stamp"), warp)
        self.launch_stamp, self.block_stamp, self.shared_stamp = (
            load_field(b, Launch, self.launch, f"{what}_stamp") for what in ("launch", "block", "shared")
        )
        phase = load_field(b, Frame, self.frame, "phase")
        self.place = b.or_(b.shl(phase, ir.Constant(I32, 6)), self.lane)

    def emit(self) -> None:
        b = self.b
        with counted_loop(b, self.count) as index:
            granule = b.add(self.first, index)
            words = [word(b, self.planes, self.plane_bytes, plane, granule) for plane in range(PLANES)]
            self._last_write(*(b.load(word, typ=I32) for word in words[:READ_STAMP]))
            with b.if_then(self.writes):
                self._last_read(*(b.load(word, typ=I32) for word in words[READ_STAMP:]))
                self._note(words[:READ_STAMP], self.stamp, self.place, self.site)
            with b.if_then(b.not_(self.writes)):
                old, old_place, old_site = (b.load(word, typ=I32) for word in words[READ_STAMP:])
                new, place = read(b, old, old_place, self.stamp, self.place)
                others = b.and_(self._is_other_block(old), b.not_(self._is_excused(old, old_site)))
                new = b.select(others, self.launch_stamp, new)  # a read by this block must not hide another's
                self._note(words[READ_STAMP:], new, place, b.select(others, old_site, self.site))
        b.ret_void()

    def _last_write(self, stamp: Value, place: Value, site: Value) -> None:
        """Compare with the last write: a race (RAW or WAW), or memory that was never written."""
        b = self.b
        in_shared_read = b.and_(self.reads, b.not_(self.is_global))
        with b.if_then(b.and_(in_shared_read, b.icmp_unsigned("<", stamp, self.shared_stamp))):
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
        """Test whether nothing orders this access after the other."""
        b = self.b
        other_block = self._is_other_block(stamp)
        same_interval = b.icmp_unsigned("<", b.xor(stamp, self.stamp), ir.Constant(I32, STAMP_STEP))
        other_warp = b.icmp_unsigned("!=", stamp, self.stamp)
        same_phase = b.icmp_unsigned("<", b.xor(place, self.place), ir.Constant(I32, 64))
        other_lane = b.and_(same_phase, b.icmp_unsigned("!=", place, self.place))
        parted = b.or_(other_block, b.and_(same_interval, b.or_(other_warp, other_lane)))
        return b.and_(parted, b.not_(self._is_excused(stamp, site)))

    def _is_other_block(self, stamp: Value) -> Value:
        """Test whether another block, before this one began or in its own turn, last touched this memory."""
        b = self.b
        since_launch = b.sub(stamp, self.launch_stamp)
        before_block = b.icmp_unsigned("<", since_launch, b.sub(self.block_stamp, self.launch_stamp))
        other = b.and_(self.is_global, before_block)
        return b.and_(other, b.not_(self._is_own(since_launch))) if self.layout.awaits_blocks else other

    def _is_own(self, since_launch: Value) -> Value:
        """Test whether an interval was in an earlier turn of this block; where that is not known it was."""
        b, launch = self.b, self.launch
        interval = b.zext(b.lshr(since_launch, ir.Constant(I32, STAMP_STEP.bit_length() - 1)), I64)
        known = b.icmp_unsigned("<", interval, load_field(b, Launch, launch, "owner_count"))
        place = b.select(known, interval, ir.Constant(I64, 0))
        owners = load_field(b, Launch, launch, "owners")
        owner = b.load(b.gep(owners, [place], source_etype=I32), typ=I32)
        own = b.icmp_unsigned("==", owner, load_field(b, Launch, launch, "owner"))
        return b.or_(b.not_(known), own)

    def _is_excused(self, stamp: Value, site: Value) -> Value:
        """Test whether both are atomic, or a fence and atomic operations handed the memory over."""
        b = self.b
        strong = b.module.globals["is_strong"]

        def kind(of: Value) -> Value:
            known = b.icmp_unsigned("<", of, ir.Constant(I32, strong.value_type.count))
            of = b.select(known, of, ir.Constant(I32, 0))  # an earlier launch may have left any number
            place = b.gep(strong, [ir.Constant(I32, 0), of], source_etype=strong.value_type)
            return b.load(place, typ=I8)

        wanted = b.select(self.is_global, ir.Constant(I8, ATOMIC | STRONG), ir.Constant(I8, ATOMIC))
        kinds = [kind(self.site), kind(site)]
        if self.layout.spins:  # a flag, even in shared memory
            waits = b.icmp_unsigned("!=", b.and_(b.or_(*kinds), ir.Constant(I8, POLL)), ir.Constant(I8, 0))
            wanted = b.select(waits, ir.Constant(I8, ATOMIC | STRONG), wanted)
        both = [b.icmp_unsigned("!=", b.and_(each, wanted), ir.Constant(I8, 0)) for each in kinds]
        released = b.or_(load_field(b, Launch, self.launch, "released"), ir.Constant(I32, SEVERAL))
        acquired = b.icmp_unsigned("!=", load_field(b, Launch, self.launch, "acquired"), ir.Constant(I32, 0))
        handed_on = b.and_(acquired, b.icmp_unsigned("<=", stamp, released))
        return b.or_(b.and_(*both), handed_on)

    def _same_value(self, stamp: Value, place: Value, site: Value) -> Value:
        """Test whether this lane stores what is there already, or what the other lane stores."""
        b = self.b
        mine = self._value(self.lane)
        slot = entry_slot(b, I64)
        b.store(ir.Constant(I64, 0), slot)
        pointer = b.inttoptr(self.address, POINTER)
        for size in (1, 2, 4, 8):
            with b.if_then(b.icmp_unsigned("==", self.size, ir.Constant(I64, size))):
                there = b.load(pointer, typ=ir.IntType(8 * size), align=size)
                b.store(there if size == 8 else b.zext(there, I64), slot)
        other_lane = b.and_(place, ir.Constant(I32, WARP - 1))
        together = b.and_(
            b.and_(b.icmp_unsigned("==", site, self.site), b.icmp_unsigned("==", stamp, self.stamp)),
            b.and_(
                b.icmp_unsigned("<", b.xor(place, self.place), ir.Constant(I32, 64)),
                self._came_before(other_lane),
            ),
        )
        other = b.select(together, self._value(other_lane), b.load(slot, typ=I64))
        return b.icmp_unsigned("==", mine, other)

    def _came_before(self, other_lane: Value) -> Value:
        """Test whether the other lane stores to this address now, not in an earlier iteration of a loop."""
        b = self.b
        bit = b.and_(b.lshr(self.mask, other_lane), ir.Constant(I32, 1))
        is_active = b.icmp_unsigned("!=", bit, ir.Constant(I32, 0))
        there = b.load(b.gep(self.addresses, [other_lane], source_etype=I64), typ=I64)
        same_address = b.icmp_unsigned("==", there, self.address)
        return b.and_(b.icmp_unsigned("<", other_lane, self.lane), b.and_(is_active, same_address))

    def _value(self, lane: Value) -> Value:
        return self.b.load(self.b.gep(self.values, [lane], source_etype=I64), typ=I64)

    def _note(self, words: Sequence[Value], *values: Value) -> None:
        """Store a stamp, a place and a site."""
        for place, value in zip(words, values, strict=True):
            self.b.store(value, place)

    def _found(self, kind: int, *other: Value) -> None:
        """Report a finding; `other` is the site, place and stamp of the other access."""
        who = (other[0], other[1], other[2]) if other else None
        report_finding(self.b, self.launch, self.frame, kind, self.site, self.lane, self.address, who)
