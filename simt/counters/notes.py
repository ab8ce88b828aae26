"""What is noted of an instruction's last request to memory, so that the next one like it costs little.

In a loop, the lanes of a warp nearly always lie as far from each other as they did in the turn before. What
follows from these distances alone is noted: how many lanes meet at one place, and the cycles of the banks.
Which lines of 128 bytes and which of their sectors a request touches follows from them and from where in its
line the first lane lies. Each thread of the host has its own notes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from simt.code.abi import I1, I32, I64, ZERO, Range, Value, load_field
from simt.code.checked_access import LANES_64, each_distinct, each_range, entry_slot
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import broadcast, lanes_of
from simt.common.limits import WARP
from simt.counters.sectors import ONE, SECTOR_BYTES
from simt.counters.visits_per_line import meeting
from simt.counters.wavefronts import count_wavefronts

LINE_BYTES = 128
LINE_BITS = LINE_BYTES.bit_length() - 1
SECTOR_BITS = SECTOR_BYTES.bit_length() - 1
SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
# A note is a row of numbers of 64 bits. First come the lanes' distances from the first active one; then
# PATTERN: the mask, and where in its word of 4 bytes that lane is; MET and FRONTS: what was counted;
# EPOCH, START, END, MOVED: the memory that the request went to in this run, and how far its places are from
# its addresses; GRAIN: the bits of a place that decide which sectors of a line are touched; PLACE: those bits
# of the last request, of which COUNT lines follow, each with its distance from the first lane's line and a
# bit per sector; SECTORS: how many sectors these are; and KIND: the same for instructions whose records are
# alike.
PATTERN, MET, FRONTS, EPOCH, START, END, MOVED, GRAIN, PLACE, COUNT, SECTORS, KIND = range(WARP, WARP + 12)
LINES = WARP + 12
NOTE = LINES + 2 * WARP


class Note:
    """The note of one instruction, in code that looks at one of its requests.

    `mask` has at least one lane.
    """

    def __init__(self, b: ir.IRBuilder, notes: Value, site: Value, mask: Value) -> None:
        self.b, self.mask = b, mask
        self._row = b.gep(notes, [b.mul(b.zext(site, I64), ir.Constant(I64, NOTE))], source_etype=I64)

    def read(self, what: int) -> Value:
        """Emit a load of a number."""
        return self.b.load(self._at(what), typ=I64)

    def line(self, index: Value) -> tuple[Value, Value]:
        """Emit loads of a line's distance from that of the first lane, and of its sectors."""
        place = self._at(LINES, index)
        return self.b.load(place, typ=I64), self.b.load(self.b.gep(place, [ONE], source_etype=I64), typ=I64)

    def _at(self, what: int, index: Value | None = None) -> Value:
        first = ir.Constant(I64, what)
        number = first if index is None else self.b.add(first, self.b.shl(index, ONE))
        return self.b.gep(self._row, [number], source_etype=I64)

    def _write(self, what: int, value: Value) -> None:
        self.b.store(value, self._at(what))

    def places(self, launch: Value, epoch: Value, addresses: Value, one: Value) -> Value:
        """Emit where each lane's address would lie on a GPU: see `traffic.placed`.

        Where all lanes go to the memory that the first one goes to, as they nearly always do, they move
        together. `one` is its address, and `epoch` the number of the run: another has its memory elsewhere.
        """
        b = self.b
        is_inside = b.and_(
            b.icmp_signed(">=", one, self.read(START)), b.icmp_signed("<", one, self.read(END))
        )
        is_known = b.and_(b.icmp_signed("==", epoch, self.read(EPOCH)), is_inside)
        with b.if_then(b.not_(is_known)), each_range(b, launch) as range_:
            start, end, place = (load_field(b, Range, range_, name) for name in ("start", "end", "shift"))
            with b.if_then(b.and_(b.icmp_signed(">=", one, start), b.icmp_signed("<", one, end))):
                found = (epoch, start, end, b.sub(place, start))
                for what, value in zip((EPOCH, START, END, MOVED), found, strict=True):
                    self._write(what, value)
        slot = entry_slot(b, LANES_64)
        b.store(b.add(addresses, broadcast(b, self.read(MOVED), WARP)), slot)
        outside = b.not_(b.bitcast(_inside(b, addresses, self.read(START), self.read(END)), I32))
        with b.if_then(b.icmp_unsigned("!=", b.and_(outside, self.mask), ZERO), likely=False):
            _move_each(b, launch, addresses, slot)
        return b.load(slot, typ=LANES_64)

    def fronts(self, places: Value, size: Value, is_load: Value) -> Value:
        """Emit how many cycles the banks of shared memory take for a request: see `count_wavefronts`."""
        with self._if_new(places, self._first(places)):
            self._write(FRONTS, count_wavefronts(self.b, places, self.mask, size, is_load))
        return self.read(FRONTS)

    def look(self, places: Value, size: Value) -> Value:
        """Emit code that brings the note up to date with a request to global memory.

        Return the place of its first lane.
        """
        b, first = self.b, self._first(places)
        with self._if_new(places, first) as distances:
            self._write(MET, meeting(b, places, self.mask))
            self._write(FRONTS, count_wavefronts(b, places, self.mask, size, ir.Constant(I1, 1)))
            apart = b.and_(_together(b, distances), ir.Constant(I64, SECTOR_BYTES - 1))
            whole = ir.Constant(I64, LINE_BYTES - 1), ir.Constant(I64, LINE_BYTES - SECTOR_BYTES)
            self._write(GRAIN, b.select(b.icmp_signed("!=", apart, ir.Constant(I64, 0)), *whole))
            self._write(PLACE, ir.Constant(I64, -1))
        within = b.and_(first, self.read(GRAIN))
        with b.if_then(b.icmp_signed("!=", within, self.read(PLACE))):
            self._write(PLACE, within)
            self._list_lines(places, b.lshr(first, ir.Constant(I64, LINE_BITS)))
        return first

    def _first(self, places: Value) -> Value:
        b = self.b
        return b.extract_element(places, intrinsic(b, "cttz", I32, self.mask, ir.Constant(I1, 1)))

    @contextmanager
    def _if_new(self, places: Value, first: Value) -> Iterator[Value]:
        """Emit a branch for a request unlike the last one, and note it; yield the lanes' distances."""
        b = self.b
        distances = b.sub(places, broadcast(b, first, WARP))
        distances = b.select(lanes_of(b, self.mask), distances, constant(distances, 0))
        pattern = b.or_(
            b.shl(b.zext(self.mask, I64), ir.Constant(I64, 2)), b.and_(first, ir.Constant(I64, 3))
        )
        differ = b.bitcast(b.icmp_unsigned("!=", distances, b.load(self._row, typ=LANES_64, align=8)), I32)
        is_new = b.or_(
            b.icmp_unsigned("!=", differ, ZERO), b.icmp_unsigned("!=", pattern, self.read(PATTERN))
        )
        with b.if_then(is_new):
            b.store(distances, self._row, align=8)
            self._write(PATTERN, pattern)
            yield distances

    def _list_lines(self, places: Value, first: Value) -> None:
        b = self.b
        lines = b.lshr(places, constant(places, LINE_BITS))
        sector = b.and_(b.lshr(places, constant(places, SECTOR_BITS)), constant(places, SECTORS_OF_LINE - 1))
        sectors = b.shl(constant(places, 1), sector)
        for what in (COUNT, SECTORS):
            self._write(what, ir.Constant(I64, 0))
        with each_distinct(b, lines, self.mask) as line:
            in_line = b.and_(b.icmp_unsigned("==", lines, broadcast(b, line, WARP)), lanes_of(b, self.mask))
            touched = _together(b, b.select(in_line, sectors, constant(sectors, 0)))
            count = self.read(COUNT)
            place = self._at(LINES, count)
            b.store(b.sub(line, first), place)
            b.store(touched, b.gep(place, [ONE], source_etype=I64))
            self._write(COUNT, b.add(count, ONE))
            self._write(SECTORS, b.add(self.read(SECTORS), intrinsic(b, "ctpop", I64, touched)))


def _inside(b: ir.IRBuilder, addresses: Value, start: Value, end: Value) -> Value:
    """Emit a test which lanes lie between two addresses."""
    return b.and_(
        b.icmp_signed(">=", addresses, broadcast(b, start, WARP)),
        b.icmp_signed("<", addresses, broadcast(b, end, WARP)),
    )


def _move_each(b: ir.IRBuilder, launch: Value, addresses: Value, slot: Value) -> None:
    """Emit code that stores the places of lanes that go to several arrays."""
    b.store(addresses, slot)
    with each_range(b, launch) as range_:
        start, end, place = (load_field(b, Range, range_, name) for name in ("start", "end", "shift"))
        moved = b.add(addresses, broadcast(b, b.sub(place, start), WARP))
        b.store(b.select(_inside(b, addresses, start, end), moved, b.load(slot, typ=LANES_64)), slot)


def _together(b: ir.IRBuilder, values: Value) -> Value:
    """Emit the bitwise or of all lanes."""
    return intrinsic(b, "vector.reduce.or", I64, values, overloads=(values.type,))
