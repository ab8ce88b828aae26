"""Check any access lane by lane, after finding the shadow of the memory it goes to."""

from llvmlite import ir

from simt.analysis.layout import Layout
from simt.code import abi, checked_access
from simt.code.abi import I1, I8, I32, I64, POINTER, ZERO, Launch, Range, Value, load_field
from simt.sanitizer.shadow import plane_bytes_of
from simt.sanitizer.touch import touch_function

# (launch, frame, addresses, mask, site, bytes, values, reads, writes)
TRACK = ir.FunctionType(
    ir.VoidType(), [POINTER, POINTER, checked_access.LANES_64, I32, I32, I64, checked_access.LANES_64, I1, I1]
)


def track_function(module: ir.Module, layout: Layout, granule: dict[str, int]) -> ir.Function:
    """Define the function that finds each lane's shadow, wherever its address lies."""
    return checked_access.defined_once(
        module, "track", TRACK, lambda function: _Track(function, layout, granule).emit(), is_cold=True
    )


class _Track:
    """Builds `track`."""

    def __init__(self, function: ir.Function, layout: Layout, granule: dict[str, int]) -> None:
        self.layout, self.granule = layout, granule
        self.launch, self.frame, addresses, self.mask, self.site, self.size = function.args[:6]
        values, self.reads, self.writes = function.args[6:]
        self.b = b = ir.IRBuilder(function.append_basic_block("entry"))
        self.touch = touch_function(function.module, layout)
        self.values, self.addresses = b.alloca(checked_access.LANES_64), b.alloca(checked_access.LANES_64)
        b.store(values, self.values)
        b.store(addresses, self.addresses)

    def emit(self) -> None:
        b = self.b
        with checked_access.each_lane(b, self.mask) as lane:
            place = b.gep(b.bitcast(self.addresses, POINTER), [lane], source_etype=I64)
            self.lane, self.address = lane, b.load(place, typ=I64)
            self._shared()
            if self.layout.local_bytes:
                self._local()
            self._global()
        b.ret_void()

    def _shared(self) -> None:
        b = self.b
        start, end = checked_access.shared_bounds(b, self.launch, self.frame)
        with b.if_then(self._inside(start, end)):
            planes = load_field(b, Launch, self.launch, "shared_shadow")
            plane_bytes = plane_bytes_of(b, b.sub(end, start), self.granule["shared"])
            self._touch(planes, plane_bytes, start, is_global=False)

    def _global(self) -> None:
        b = self.b
        with checked_access.each_range(b, self.launch) as range_:
            start, end = (load_field(b, Range, range_, name) for name in ("start", "end"))
            with b.if_then(self._inside(start, end)):
                poisoned = b.icmp_unsigned(
                    "!=", load_field(b, Range, range_, "poisoned"), ir.Constant(I64, 0)
                )
                with b.if_then(b.and_(poisoned, self.reads)):
                    self._look_for_poison()
                planes = load_field(b, Range, range_, "shadow")
                with b.if_then(b.icmp_unsigned("!=", b.ptrtoint(planes, I64), ir.Constant(I64, 0))):
                    plane_bytes = load_field(b, Range, range_, "plane_bytes")
                    self._touch(planes, plane_bytes, start, is_global=True)

    def _local(self) -> None:
        """Look into the map behind local memory, where one byte per byte says whether it was written."""
        b, lane = self.b, self.lane
        starts, ends = checked_access.local_bounds(b, self.frame, self.layout)
        with b.if_then(self._inside(b.extract_element(starts, lane), b.extract_element(ends, lane))):
            offset = b.sub(self.address, b.extract_element(starts, ZERO))
            first = b.add(offset, ir.Constant(I64, self.layout.local_map_start))
            written = checked_access.entry_slot(b, I8)
            b.store(ir.Constant(I8, 1), written)
            with checked_access.counted_loop(b, self.size) as index:
                byte = b.gep(self.frame, [b.add(first, index)], source_etype=I8)
                b.store(b.and_(b.load(written, typ=I8), b.load(byte, typ=I8)), written)
                with b.if_then(self.writes):
                    b.store(ir.Constant(I8, 1), byte)
            unwritten = b.icmp_unsigned("==", b.load(written, typ=I8), ir.Constant(I8, 0))
            with b.if_then(b.and_(unwritten, b.not_(self.writes)), likely=False):
                checked_access.report_finding(b, self.launch, self.frame, abi.UNWRITTEN, self.site, lane)

    def _inside(self, start: Value, end: Value) -> Value:
        b, address = self.b, self.address
        return b.and_(b.icmp_signed(">=", address, start), b.icmp_signed("<", address, end))

    def _touch(self, planes: Value, plane_bytes: Value, start: Value, is_global: bool) -> None:
        """Look closely at the granules of the lane's access to memory that begins at `start`."""
        b, address = self.b, self.address
        unit = self.granule["global" if is_global else "shared"]
        shift = ir.Constant(I64, unit.bit_length() - 1)
        origin, last = b.lshr(start, shift), b.add(address, b.sub(self.size, ir.Constant(I64, 1)))
        first = b.sub(b.lshr(address, shift), origin)
        count = b.add(b.sub(b.sub(b.lshr(last, shift), origin), first), ir.Constant(I64, 1))
        where = [self.launch, self.frame, planes, plane_bytes, first, count, address, self.size]
        what = [b.bitcast(self.values, POINTER), b.bitcast(self.addresses, POINTER), self.mask]
        who = [self.lane, self.site, self.reads, self.writes, ir.Constant(I1, is_global)]
        b.call(self.touch, [*where, *what, *who])

    def _look_for_poison(self) -> None:
        """Find a read of a 4-byte word that nobody has written since simt.empty."""
        b = self.b
        first = b.and_(self.address, ir.Constant(I64, -4))
        beyond = b.add(b.sub(b.add(self.address, self.size), first), ir.Constant(I64, 3))
        with checked_access.counted_loop(b, b.lshr(beyond, ir.Constant(I64, 2))) as index:
            place = b.inttoptr(b.add(first, b.shl(index, ir.Constant(I64, 2))), POINTER)
            word = b.load(place, typ=I32, align=4)
            with b.if_then(b.icmp_unsigned("==", word, ir.Constant(I32, abi.POISON)), likely=False):
                checked_access.report_finding(
                    b, self.launch, self.frame, abi.UNWRITTEN, self.site, self.lane, self.address
                )
