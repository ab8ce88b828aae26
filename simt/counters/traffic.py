"""Record where a launch's machine code accesses global memory: which lines and sectors, in which order.

Each request leaves one `Touch` per line of 128 bytes, as long as its warp has room for records. The counters
of the instruction hold the totals of these requests: `sectors`; as `distinct` the lines; as `conflicts` the
cycles of the L1; as `divergent` how many lanes meet at one address, summed; and as `stride` the requests that
found no room. In a cycle the L1 delivers a word per bank, as shared memory does, and looks for four lines at
most (`load_clocks` in data/h200/limits.csv). Of an atomic operation on shared memory, `distinct` sums how
many lanes meet at one address. `simt.timing` makes a prediction of it.
"""

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from simt.analysis.accesses import Access
from simt.code import abi
from simt.code.abi import I1, I32, I64, POINTER, Frame, Launch, Touch, Value, field, load_field
from simt.code.addresses import lane_addresses
from simt.code.careful import LANES_64, defined_once, each_distinct, shared_bounds
from simt.code.instructions import constant, intrinsic
from simt.code.observe import Look
from simt.code.vectors import broadcast, lanes_of
from simt.common.limits import WARP
from simt.counters.sectors import ONE, add, sector_places
from simt.counters.turns import meeting
from simt.counters.wavefronts import Issues, count_wavefronts
from simt.ptx import Instruction

LINE_BYTES = 128
LINE_BITS = LINE_BYTES.bit_length() - 1
SECTOR_BITS = 5
SECTORS_OF_LINE = 4
ENOUGH = 4096
TAGS = 4  # lines that the L1 looks for in a cycle
HEADER = 2  # numbers of 64 bits before the records: how many there are, and how many each warp may write
LINE, BLOCK, WHAT = range(3)  # the columns of records
FIRST, WARP_SHIFT, SITE_SHIFT = 1 << SECTORS_OF_LINE, 8, 24
ATOMIC = "atomic"  # a part of our own: a load that stands for an atomic operation


class Traffic(Issues):
    """Records what an `Issues` run counts, and each access to global memory.

    The wavefronts of an instruction are counted ENOUGH times, and requests of a warp until it has no more
    room for records. `stride` then says how many were counted, or were not.
    """

    def count(self, access: Access, counter: Value) -> None:
        """Count the wavefronts of an access to shared memory, unless enough of its kind were counted."""
        b = self.w.b
        done = load_field(b, abi.Counter, counter, "stride")
        with b.if_then(b.icmp_signed("<", done, ir.Constant(I64, ENOUGH))):
            super().count(access, counter)
            add(b, abi.Counter, counter, "stride", ONE)

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

    def careful(self, look: Look) -> None:
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
    add(b, abi.Counter, counter, "divergent", meeting(b, addresses, mask))
    places = sector_places(b, launch, addresses, LINE_BYTES)
    banks = count_wavefronts(b, places, mask, size, ir.Constant(I1, 1))
    lines = b.lshr(places, constant(places, LINE_BITS))
    sector = b.and_(b.lshr(places, constant(places, SECTOR_BITS)), constant(places, SECTORS_OF_LINE - 1))
    sectors = b.shl(constant(places, 1), sector)
    what = b.shl(b.zext(site, I64), ir.Constant(I64, SITE_SHIFT))
    warp = b.zext(load_field(b, Frame, frame, "warp"), I64)
    what = b.or_(what, b.shl(warp, ir.Constant(I64, WARP_SHIFT)))
    first, count = b.alloca(I64), b.alloca(I64)
    b.store(ir.Constant(I64, FIRST), first)
    b.store(ir.Constant(I64, 0), count)
    with each_distinct(b, lines, mask) as line:
        in_line = b.and_(b.icmp_unsigned("==", lines, broadcast(b, line, WARP)), lanes_of(b, mask))
        touched = _together(b, b.select(in_line, sectors, constant(sectors, 0)))
        add(b, abi.Counter, counter, "sectors", intrinsic(b, "ctpop", I64, touched))
        _write(b, frame, line, block, b.or_(b.or_(what, touched), b.load(first, typ=I64)))
        b.store(ir.Constant(I64, 0), first)
        b.store(b.add(b.load(count, typ=I64), ONE), count)
    distinct = b.load(count, typ=I64)
    add(b, abi.Counter, counter, "distinct", distinct)
    tags = b.udiv(b.add(distinct, ir.Constant(I64, TAGS - 1)), ir.Constant(I64, TAGS))
    add(b, abi.Counter, counter, "conflicts", intrinsic(b, "umax", I64, banks, tags))
    b.ret_void()


def _together(b: ir.IRBuilder, values: Value) -> Value:
    """Emit the bitwise or of all lanes."""
    name = "llvm.vector.reduce.or.v32i64"
    type_ = ir.FunctionType(I64, [LANES_64])
    function = b.module.globals.get(name) or ir.Function(b.module, type_, name)
    return b.call(function, [values])


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


def _write(b: ir.IRBuilder, frame: Value, line: Value, block: Value, what: Value) -> None:
    """Emit a record, if the warp may still write one in this block."""
    is_new = b.icmp_signed("!=", load_field(b, Frame, frame, "traced_block"), block)
    written = b.select(is_new, ir.Constant(I64, 0), load_field(b, Frame, frame, "traced"))
    b.store(block, field(b, Frame, frame, "traced_block"))
    b.store(b.add(written, ONE), field(b, Frame, frame, "traced"))
    head = load_field(b, Frame, frame, "trace")
    most = b.load(b.gep(head, [ONE], source_etype=I64), typ=I64)
    with b.if_then(b.icmp_signed("<", written, most)):
        count = b.load(head, typ=I64)
        b.store(b.add(count, ONE), head)
        records = b.gep(head, [ir.Constant(I64, HEADER)], source_etype=I64)
        record = b.gep(records, [count], source_etype=abi.TYPES[Touch])
        for name, value in (("line", line), ("block", block), ("what", what)):
            b.store(value, field(b, Touch, record, name))


def new_trace(blocks: int, warps: int, room: int) -> np.ndarray:
    """Return room for `room` records of `blocks` blocks of `warps` warps, and for 64 per warp at least."""
    each = max(64, room // max(1, blocks * warps))
    trace = np.empty(HEADER + len(Touch._fields_) * each * blocks * warps, np.int64)
    trace[:HEADER] = 0, each
    return trace


def records(traces: Sequence[np.ndarray]) -> np.ndarray:
    """Return the records of all traces, one row each: line, block, what."""
    width = len(Touch._fields_)
    return np.concatenate([trace[HEADER : HEADER + width * trace[0]].reshape(-1, width) for trace in traces])
