"""LLVM functions that look at every lane of an access: is it valid, and what does it cost?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from labkit.simt import abi
from labkit.simt.abi import I1, I8, I32, I64, POINTER, Counter, Frame, Launch, field, load_field
from labkit.simt.instructions import constant, intrinsic
from labkit.simt.lanes import WARP
from labkit.simt.layout import Layout
from labkit.simt.vectors import broadcast

Value = Any
LANES_64 = ir.VectorType(I64, WARP)
BANKS, BANK_BYTES, SECTOR_BYTES = 32, 4, 32


def report(
    b: ir.IRBuilder, launch: Value, frame: Value, error: int, site: Value, mask: Value, address: Value = None
) -> ir.IRBuilder:
    """Record a mistake, unless another thread of the host was first, and stop the launch."""
    code = ir.Constant(I32, error)
    answer = b.cmpxchg(field(b, Launch, launch, "error"), ir.Constant(I32, 0), code, "seq_cst")
    with b.if_then(b.extract_value(answer, 1)):
        values = {"error_at": site, "error_mask": mask, "error_warp": load_field(b, Frame, frame, "warp")}
        values |= {f"error_{axis}": load_field(b, Frame, frame, axis) for axis in "xyz"}
        values["error_shared"] = load_field(b, Frame, frame, "shared")
        if address is not None:
            values["error_address"] = address
        for name, value in values.items():
            b.store(value, field(b, Launch, launch, name))
    b.atomic_rmw("xchg", field(b, Launch, launch, "stop"), ir.Constant(I32, 1), "monotonic")
    return b


def check_function(module: ir.Module, space: str, counted: bool, layout: Layout) -> ir.Function:
    """i1 check(launch, frame, <32 x i64> addresses, i32 mask, i32 site, i64 bytes): are active lanes valid?

    A lane is valid if its bytes lie in one range of its space and its address is a multiple of `bytes`.
    """
    name = f"check_{space}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(I1, [POINTER, POINTER, LANES_64, I32, I32, I64]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("cold")
    launch, frame, addresses, mask, site, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = _Lanes(b, addresses, size)
    if space in ("global", "const", "generic"):
        lanes.look_in_ranges(launch)
    if space in ("shared", "generic"):
        start = b.ptrtoint(load_field(b, Frame, frame, "shared"), I64)
        lanes.look_in(start, b.add(start, load_field(b, Launch, launch, "shared_bytes")), ir.Constant(I64, 0))
    if space in ("local", "generic"):
        start = b.add(b.ptrtoint(frame, I64), ir.Constant(I64, layout.local_start))
        lanes.look_in(start, b.add(start, ir.Constant(I64, WARP * layout.local_bytes)), ir.Constant(I64, 0))
    wrong = b.and_(b.not_(b.bitcast(b.load(lanes.valid, typ=lanes.predicate), I32)), mask)
    good = b.icmp_unsigned("==", wrong, ir.Constant(I32, 0))
    with b.if_then(b.not_(good), likely=False):
        first = b.extract_element(addresses, intrinsic(b, "cttz", I32, wrong, ir.Constant(I1, 1)))
        report(b, launch, frame, abi.BAD_ACCESS, site, wrong, first)
        b.ret(ir.Constant(I1, 0))
    if counted and space in ("global", "const", "shared"):
        _count(b, frame, b.load(lanes.places, typ=LANES_64), mask, site, size, shared=space == "shared")
    b.ret(ir.Constant(I1, 1))
    return function


class _Lanes:
    """The lanes' addresses looked up in ranges: which are valid, and where they would lie on a GPU."""

    predicate = ir.VectorType(I1, WARP)

    def __init__(self, b: ir.IRBuilder, addresses: Value, size: Value) -> None:
        self.b, self.addresses = b, addresses
        self.end = b.add(addresses, broadcast(b, size, WARP))
        self.valid, self.places = b.alloca(self.predicate), b.alloca(LANES_64)
        b.store(ir.Constant(self.predicate, None), self.valid)
        b.store(addresses, self.places)
        remainder = b.and_(addresses, broadcast(b, b.sub(size, ir.Constant(I64, 1)), WARP))
        self.aligned = b.icmp_unsigned("==", remainder, ir.Constant(LANES_64, None))

    def look_in(self, low: Value, high: Value, shift: Value) -> None:
        """Lanes within [low, high) are valid; their place is the distance from `low`, plus `shift`."""
        b = self.b
        inside = b.and_(
            b.icmp_signed(">=", self.addresses, broadcast(b, low, WARP)),
            b.icmp_signed("<=", self.end, broadcast(b, high, WARP)),
        )
        inside = b.and_(inside, self.aligned)
        place = b.add(self.addresses, broadcast(b, b.sub(shift, low), WARP))
        b.store(b.select(inside, place, b.load(self.places, typ=LANES_64)), self.places)
        b.store(b.or_(b.load(self.valid, typ=self.predicate), inside), self.valid)

    def look_in_ranges(self, launch: Value) -> None:
        b = self.b
        ranges, count = load_field(b, Launch, launch, "ranges"), load_field(b, Launch, launch, "range_count")
        with counted_loop(b, count) as index:
            first = b.mul(index, ir.Constant(I64, abi.RANGE_WORDS))
            words = [
                b.load(b.gep(ranges, [b.add(first, ir.Constant(I64, i))], source_etype=I64), typ=I64)
                for i in range(abi.RANGE_WORDS)
            ]
            self.look_in(*words)


def entry_slot(b: ir.IRBuilder, type_: ir.Type) -> Value:
    """A stack slot made once a call, also where the code around it loops."""
    with b.goto_entry_block():
        return b.alloca(type_)


@contextmanager
def counted_loop(b: ir.IRBuilder, count: Value) -> Iterator[Value]:
    """Emit a loop for index = 0 .. count-1."""
    slot = entry_slot(b, count.type)
    b.store(ir.Constant(count.type, 0), slot)
    head, body, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    index = b.load(slot, typ=count.type)
    b.cbranch(b.icmp_signed("<", index, count), body, after)
    b.position_at_end(body)
    yield index
    b.store(b.add(index, ir.Constant(count.type, 1)), slot)
    b.branch(head)
    b.position_at_end(after)


@contextmanager
def each_distinct(b: ir.IRBuilder, values: Value, mask: Value) -> Iterator[Value]:
    """Emit a loop over the distinct values of the lanes in `mask`."""
    slot = entry_slot(b, I32)
    b.store(mask, slot)
    head, body, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    remaining = b.load(slot, typ=I32)
    b.cbranch(b.icmp_unsigned("!=", remaining, ir.Constant(I32, 0)), body, after)
    b.position_at_end(body)
    value = b.extract_element(values, intrinsic(b, "cttz", I32, remaining, ir.Constant(I1, 1)))
    same = b.bitcast(b.icmp_unsigned("==", values, broadcast(b, value, WARP)), I32)
    yield value
    b.store(b.and_(remaining, b.not_(same)), slot)
    b.branch(head)
    b.position_at_end(after)


def _count(
    b: ir.IRBuilder, frame: Value, places: Value, mask: Value, site: Value, size: Value, shared: bool
) -> None:
    """Add one request to the counters of `site`; nothing for a mask without lanes."""
    table = load_field(b, Frame, frame, "counters")
    counter = b.gep(table, [site], source_etype=abi.TYPES[Counter])
    with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
        _add(b, counter, "requests", ir.Constant(I64, 1))
        _add(b, counter, "threads", b.zext(intrinsic(b, "ctpop", I32, mask), I64))
        if shared:
            _add(b, counter, "conflicts", _bank_conflicts(b, places, mask, size))
        else:
            with each_distinct(b, b.lshr(places, constant(places, SECTOR_BYTES.bit_length() - 1)), mask):
                _add(b, counter, "sectors", ir.Constant(I64, 1))


def _bank_conflicts(b: ir.IRBuilder, places: Value, mask: Value, size: Value) -> Value:
    """Extra passes over the banks: in each pass a bank gives one 4-byte word.

    Accesses of 8 bytes go by half-warps and of 16 by quarter-warps (CUDA C++ Programming Guide, "Shared
    Memory").
    """
    function = b.module.globals.get("bank_conflicts") or _bank_conflict_function(b.module)
    return b.call(function, [places, mask, size])


def _bank_conflict_function(module: ir.Module) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(I64, [LANES_64, I32, I64]), "bank_conflicts")
    function.linkage = "internal"
    places, mask, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    words_each = b.lshr(b.add(size, ir.Constant(I64, BANK_BYTES - 1)), ir.Constant(I64, 2))
    lanes_each = b.trunc(b.udiv(ir.Constant(I64, WARP), words_each), I32)
    part = b.lshr(ir.Constant(I32, -1), b.sub(ir.Constant(I32, WARP), lanes_each))
    words = b.lshr(places, constant(places, 2))
    banks_type = ir.ArrayType(I8, BANKS)
    banks, total, worst = b.alloca(banks_type), b.alloca(I64), b.alloca(I8)
    b.store(ir.Constant(I64, 0), total)
    with counted_loop(b, b.trunc(words_each, I32)) as index:
        b.store(ir.Constant(banks_type, None), banks)
        b.store(ir.Constant(I8, 1), worst)
        lanes = b.and_(mask, b.shl(part, b.mul(index, lanes_each)))
        with each_distinct(b, words, lanes) as word, counted_loop(b, words_each) as extra:
            bank = b.and_(b.add(word, extra), ir.Constant(I64, BANKS - 1))
            slot = b.gep(banks, [ir.Constant(I64, 0), bank])
            passes = b.add(b.load(slot, typ=I8), ir.Constant(I8, 1))
            b.store(passes, slot)
            b.store(intrinsic(b, "umax", I8, passes, b.load(worst, typ=I8)), worst)
        extra_passes = b.zext(b.sub(b.load(worst, typ=I8), ir.Constant(I8, 1)), I64)
        b.store(b.add(b.load(total, typ=I64), extra_passes), total)
    b.ret(b.load(total, typ=I64))
    return function


def _add(b: ir.IRBuilder, counter: Value, name: str, amount: Value) -> None:
    place = field(b, Counter, counter, name)
    b.store(b.add(b.load(place, typ=I64), amount), place)
