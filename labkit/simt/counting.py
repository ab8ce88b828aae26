"""A counted run: sectors, bank conflicts, visits of basic blocks, branches that part a warp.

Most costs follow from constant lane offsets. Bank conflicts and different addresses of one base are then
known when code is made, and follow from the visits; sectors depend on the base's place within its sector
alone: a table of 32 entries. Careful code of a whole warp takes back what the visits already say.
Rules: Nsight Compute documentation, "Memory Tables"; CUDA C++ Programming Guide, "Shared Memory".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir

from labkit.simt import abi
from labkit.simt.abi import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    ZERO,
    Counter,
    Frame,
    Range,
    Usual,
    Visits,
    field,
    load_field,
)
from labkit.simt.accesses import Access
from labkit.simt.addresses import where
from labkit.simt.blocks import Block
from labkit.simt.careful import LANES_64, counted_loop, each_distinct, each_range, shared_bounds
from labkit.simt.instructions import constant, intrinsic
from labkit.simt.lanes import WARP, absorbed
from labkit.simt.observe import Observer
from labkit.simt.ptx import Instruction
from labkit.simt.vectors import all_true, broadcast, element, expanded, lanes_of, reshaped, shuffled

Value = Any
BANKS, BANK_BYTES, SECTOR_BYTES = 32, 4, 32
LANES_32 = ir.VectorType(I32, WARP)
IRREGULAR = -(1 << 63)  # stride of lanes that lie anywhere
ONE, FIVE = ir.Constant(I64, 1), ir.Constant(I64, SECTOR_BYTES.bit_length() - 1)


class Counting(Observer):
    """Adds to the counters of each instruction and to the visits of each basic block."""

    whole_warps = True

    def attach(self, w: Any) -> None:
        super().attach(w)
        self.counters = load_field(w.b, Frame, w.frame, "counters")
        self.visits = load_field(w.b, Frame, w.frame, "visits")
        self.deltas: dict[int, Value] = {}
        type_ = ir.ArrayType(abi.TYPES[Usual], len(w.kernel.code))
        self.usual = ir.GlobalVariable(w.function.module, type_, "usual")
        self.usual.global_constant, self.usual.linkage = True, "internal"
        self.known = np.zeros((len(w.kernel.code), len(Usual._fields_)), np.int64)

    def finish(self) -> None:
        rows = [ir.Constant(abi.TYPES[Usual], [ir.Constant(I64, int(n)) for n in row]) for row in self.known]
        self.usual.initializer = ir.Constant(self.usual.value_type, rows)

    def takes(self, instruction: Instruction, access: Access) -> bool:
        return instruction.guard is None

    def enter(self, block: Block, whole: bool) -> None:
        b = self.w.b
        row = b.gep(self.visits, [ir.Constant(I32, self.w.index)], source_etype=abi.TYPES[Visits])
        if whole:
            _add(b, Visits, row, "full", ONE)
        else:
            mask = self.w.active()
            _add(b, Visits, row, "partial", ONE)
            _add(b, Visits, row, "lanes", b.zext(intrinsic(b, "ctpop", I32, mask), I64))

    def fast(self, instruction: Instruction, access: Access) -> None:
        b, site = self.w.b, self.w.site(instruction)
        counter = b.gep(self.counters, [site], source_etype=abi.TYPES[Counter])
        if access.space == "shared":
            self._shared(access, counter, site.constant)
        elif access.space in ("global", "generic"):  # with a range: it is global
            self._global(access, counter, site.constant)

    def careful(
        self,
        b: ir.IRBuilder,
        launch: Value,
        frame: Value,
        access: Access,
        addresses: Value,
        mask: Value,
        site: Value,
        values: list[Value],
    ) -> None:
        if access.space in ("shared", "global", "generic"):
            function = _count_function(b.module, access.space)
            b.call(function, [launch, frame, addresses, mask, site, ir.Constant(I64, access.alignment)])

    def part(self, instruction: Instruction, taken: Value, other: Value) -> None:
        b = self.w.b
        both = b.and_(b.icmp_unsigned("!=", taken, ZERO), b.icmp_unsigned("!=", other, ZERO))
        counter = b.gep(self.counters, [self.w.site(instruction)], source_etype=abi.TYPES[Counter])
        _add(b, Counter, counter, "divergent", b.zext(both, I64))

    def _shared(self, access: Access, counter: Value, site: int) -> None:
        """Add the extra passes over the banks, unless they are always the same."""
        b, shape = self.w.b, access.shape
        address = where(self.w, access).base
        if shape.bases == 1 and access.alignment >= BANK_BYTES:
            self.known[site] = 0, bank_conflicts(shape.lane_offsets(), access.alignment)
            return
        if shape.bases == 2 and shape.offsets is None and access.alignment == BANK_BYTES:
            distance = b.sub(element(b, address, 0), element(b, address, 1))
            same_bank = b.and_(distance, ir.Constant(I64, BANKS * BANK_BYTES - 1))
            differ = b.icmp_unsigned("!=", distance, ir.Constant(I64, 0))
            collide = b.and_(differ, b.icmp_unsigned("==", same_bank, ir.Constant(I64, 0)))
            conflicts = b.zext(collide, I64)
        else:
            lanes = expanded(b, reshaped(b, address, shape, absorbed(shape)), WARP)
            conflicts = _bank_conflicts(b, lanes, ir.Constant(I32, -1), ir.Constant(I64, access.alignment))
        _add(b, Counter, counter, "conflicts", conflicts)

    def _global(self, access: Access, counter: Value, site: int) -> None:
        """Add the distinct sectors and addresses."""
        b, shape = self.w.b, access.shape
        assert access.range is not None
        base, delta = where(self.w, access).base, self._delta(access.range)
        base = b.add(base, constant(base, access.offsets[0]))
        if shape.bases == 1:
            self.known[site] = len(set(shape.lane_offsets())), 0
            table = _sector_table(b.module, shape.lane_offsets(), access.alignment)
            place = b.and_(b.add(base, delta), ir.Constant(I64, SECTOR_BYTES - 1))
            entry = b.gep(table, [ir.Constant(I64, 0), place], source_etype=table.value_type)
            _add(b, Counter, counter, "sectors", b.zext(b.load(entry, typ=I8), I64))
            return
        if shape.bases == 2 and shape.offsets is None:
            raw = [
                element(b, where(self.w, access).base, i) for i in (0, 1)
            ]  # scalars, as the load takes them
            shift = b.add(delta, ir.Constant(I64, access.offsets[0]))
            differ = b.icmp_unsigned("!=", *raw)
            sectors_differ = b.icmp_unsigned("!=", *(b.lshr(b.add(x, shift), FIVE) for x in raw))
            _add(b, Counter, counter, "sectors", b.add(ONE, b.zext(sectors_differ, I64)))
            _add(b, Counter, counter, "distinct", b.add(ONE, b.zext(differ, I64)))
            return
        base = b.add(base, broadcast(b, delta, shape.bases))
        if shape.bases <= 4 and _is_gapless(access):
            self._groups(access, base, counter)
        else:
            lanes = expanded(b, reshaped(b, base, shape, absorbed(shape)), WARP)
            b.call(_scattered_function(b.module), [lanes, ir.Constant(I32, -1), counter])

    def _groups(self, access: Access, bases: Value, counter: Value) -> None:
        """Add sectors and addresses of a few groups of lanes, each without a gap from its first to its last.

        Exact where the groups go up in memory (of two, whichever way); else lanes are looked at.
        """
        b, shape, size = self.w.b, access.shape, access.alignment
        low, high = [], []
        for index in range(shape.bases):
            lanes = shape.lane_offsets()[index * shape.group : (index + 1) * shape.group]
            base = element(b, bases, index)
            low.append(b.add(base, ir.Constant(I64, min(lanes))))
            high.append(b.add(base, ir.Constant(I64, max(lanes) + size)))
        if shape.bases == 2:
            swapped = b.icmp_signed("<", low[1], low[0])
            low = [b.select(swapped, low[1], low[0]), b.select(swapped, low[0], low[1])]
            high = [b.select(swapped, high[1], high[0]), b.select(swapped, high[0], high[1])]
        ascending: Value = ir.Constant(I1, 1)
        if shape.bases > 2:
            for previous, following in pairwise(low):
                ascending = b.and_(ascending, b.icmp_signed(">=", following, previous))
        with b.if_else(ascending) as (simple, scattered):
            with simple:
                first = [b.ashr(address, FIVE) for address in low]
                end = [b.add(b.ashr(b.sub(address, ONE), FIVE), ONE) for address in high]
                _add(b, Counter, counter, "sectors", _union(b, first, end))
                shift = ir.Constant(I64, size.bit_length() - 1)
                _add(b, Counter, counter, "distinct", b.lshr(_union(b, low, high), shift))
            with scattered:
                lanes = expanded(b, reshaped(b, bases, shape, absorbed(shape)), WARP)
                b.call(_scattered_function(b.module), [lanes, ir.Constant(I32, -1), counter])

    def _delta(self, number: int) -> Value:
        """What to add to a host address so that sectors begin where they would on a GPU (0 to 31)."""
        if number not in self.deltas:
            shift, start = self.w.range(number, "shift"), self.w.range(number, "start")
            with self.w.b.goto_entry_block():
                self.deltas[number] = _delta(self.w.b, shift, start)
        return self.deltas[number]


def _is_gapless(access: Access) -> bool:
    """Does each group of lanes touch all bytes between its first and its last?"""
    shape = access.shape
    for start in range(0, WARP, shape.group):
        offsets = sorted(set(shape.lane_offsets()[start : start + shape.group]))
        if any(b - a != access.alignment for a, b in pairwise(offsets)):
            return False
    return True


def _union(b: ir.IRBuilder, low: Sequence[Value], high: Sequence[Value]) -> Value:
    """Length of the union of intervals whose lower ends go up."""
    total, end = b.sub(high[0], low[0]), high[0]
    for first, last in zip(low[1:], high[1:], strict=True):
        begin = intrinsic(b, "smax", I64, first, end)
        total = b.add(total, intrinsic(b, "smax", I64, b.sub(last, begin), ir.Constant(I64, 0)))
        end = intrinsic(b, "smax", I64, last, end)
    return total


def bank_conflicts(addresses: Sequence[int], size: int) -> int:
    """Extra passes over the banks that a warp's access to shared memory takes, `size` bytes a lane.

    In each pass a bank gives one 4-byte word. Accesses of 8 bytes go by half-warps and of 16 by
    quarter-warps.
    """
    words_each = max(1, size // BANK_BYTES)
    lanes_each = len(addresses) // words_each
    extra = 0
    for first in range(0, len(addresses), lanes_each):
        words = {
            a // BANK_BYTES + i for a in addresses[first : first + lanes_each] for i in range(words_each)
        }
        in_bank = [0] * BANKS
        for word in words:
            in_bank[word % BANKS] += 1
        extra += max(in_bank) - 1
    return extra


def _add(b: ir.IRBuilder, structure: Any, row: Value, name: str, amount: Value) -> None:
    place = field(b, structure, row, name)
    b.store(b.add(b.load(place, typ=I64), amount), place)


def _delta(b: ir.IRBuilder, shift: Value, start: Value) -> Value:
    return b.and_(b.sub(shift, start), ir.Constant(I64, SECTOR_BYTES - 1))


def _sector_table(module: ir.Module, offsets: Sequence[int], size: int) -> ir.GlobalVariable:
    """Distinct sectors of lanes at `offsets`, for each place of the base within a sector."""
    counts = [len({(place + offset) // SECTOR_BYTES for offset in offsets}) for place in range(SECTOR_BYTES)]
    name = "sectors." + ".".join(map(str, counts))
    if name not in module.globals:
        table = ir.GlobalVariable(module, ir.ArrayType(I8, SECTOR_BYTES), name)
        table.initializer = ir.Constant(table.value_type, [ir.Constant(I8, n) for n in counts])
        table.global_constant, table.linkage = True, "internal"
    return module.globals[name]


def _scattered_function(module: ir.Module) -> ir.Function:
    """The function that adds distinct sectors and addresses of lanes that may lie anywhere.

    void scattered(<32 x i64> addresses, i32 mask, ptr counter). Also notes the lanes' stride. Where the
    addresses of all lanes go up or down, each neighbour that differs is one more.
    """
    name = "scattered"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [LANES_64, I32, POINTER]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    addresses, mask, counter = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    before = shuffled(b, addresses, None, [0, *range(WARP - 1)])
    step = b.sub(addresses, before)
    stride = element(b, step, 1)
    steady = b.bitcast(b.icmp_signed("==", step, broadcast(b, stride, WARP)), I32)
    all_steady = b.icmp_unsigned("==", b.or_(steady, ir.Constant(I32, 1)), ir.Constant(I32, -1))
    b.store(b.select(all_steady, stride, ir.Constant(I64, IRREGULAR)), field(b, Counter, counter, "stride"))
    sectors = b.lshr(addresses, constant(addresses, 5))
    sectors_before = b.lshr(before, constant(before, 5))
    zero = constant(step, 0)
    monotone = b.or_(
        all_true(b, b.icmp_signed(">=", step, zero)), all_true(b, b.icmp_signed("<=", step, zero))
    )
    simple = b.and_(monotone, b.icmp_unsigned("==", mask, ir.Constant(I32, -1)))
    with b.if_then(simple):
        for what, x, y in (("sectors", sectors, sectors_before), ("distinct", addresses, before)):
            changes = intrinsic(b, "ctpop", I32, b.bitcast(b.icmp_unsigned("!=", x, y), I32))
            _add(b, Counter, counter, what, b.add(ONE, b.zext(changes, I64)))
        b.ret_void()
    some = b.extract_element(addresses, intrinsic(b, "cttz", I32, mask, ir.Constant(I1, 1)))
    filled = b.select(lanes_of(b, mask), addresses, broadcast(b, some, WARP))  # idle lanes go where one goes
    distance = b.sub(filled, broadcast(b, some, WARP))
    near = b.trunc(distance, LANES_32)
    with b.if_else(all_true(b, b.icmp_signed("==", b.sext(near, LANES_64), distance))) as (close, far):
        with close:
            offset = b.trunc(b.and_(some, ir.Constant(I64, SECTOR_BYTES - 1)), I32)
            places = b.ashr(b.add(near, broadcast(b, offset, WARP)), constant(near, 5))
            for what, x in (("sectors", places), ("distinct", near)):
                _add(b, Counter, counter, what, b.call(_distinct_function(module), [x]))
        with far:
            for what, x in (("sectors", sectors), ("distinct", addresses)):
                with each_distinct(b, x, mask):
                    _add(b, Counter, counter, what, ONE)
    b.ret_void()
    return function


def _distinct_function(module: ir.Module) -> ir.Function:
    """i64 distinct(<32 x i32>): how many different values are there?

    A lane is counted if no lane before it in its half of the warp has its value, and in the second half if
    no lane of the first half has it.
    """
    name = "distinct_values"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(I64, [LANES_32]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    (values,) = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    half = WARP // 2

    def equal(sources: dict[int, int]) -> Value:
        """Which of these lanes equal their sources?"""
        other = shuffled(b, values, None, [sources.get(lane, lane) for lane in range(WARP)])
        named = ir.Constant(I32, sum(1 << lane for lane in sources))
        return b.and_(b.bitcast(b.icmp_unsigned("==", values, other), I32), named)

    seen: Value = ir.Constant(I32, 0)
    for k in range(1, half):
        seen = b.or_(seen, equal({lane: lane - k for lane in range(WARP) if lane % half >= k}))
    for k in range(half):
        seen = b.or_(seen, equal({lane: (lane + k) % half for lane in range(half, WARP)}))
    b.ret(b.zext(intrinsic(b, "ctpop", I32, b.not_(seen)), I64))
    return function


def _count_function(module: ir.Module, space: str) -> ir.Function:
    """Void count(launch, frame, <32 x i64> addresses, i32 mask, i32 site, i64 bytes): any access."""
    name, usual_type = f"count_{space}", module.globals["usual"].value_type
    if name in module.globals:
        return module.globals[name]
    arguments = [POINTER, POINTER, LANES_64, I32, I32, I64]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    launch, frame, addresses, mask, site, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with b.if_then(b.icmp_unsigned("==", mask, ZERO)):
        b.ret_void()
    counter = b.gep(load_field(b, Frame, frame, "counters"), [site], source_etype=abi.TYPES[Counter])
    _add(b, Counter, counter, "requests", ONE)
    _add(b, Counter, counter, "threads", b.zext(intrinsic(b, "ctpop", I32, mask), I64))
    start, end = shared_bounds(b, launch, frame)
    first = b.extract_element(addresses, intrinsic(b, "cttz", I32, mask, ir.Constant(I1, 1)))
    in_shared = b.and_(b.icmp_signed(">=", first, start), b.icmp_signed("<", first, end))
    if space != "generic":
        in_shared = ir.Constant(I1, space == "shared")
    with b.if_else(in_shared) as (shared, elsewhere):
        with shared:
            places = b.sub(addresses, broadcast(b, start, WARP))
            _add(b, Counter, counter, "conflicts", _bank_conflicts(b, places, mask, size))
        with elsewhere:
            b.call(_scattered_function(module), [_sector_places(b, launch, addresses), mask, counter])
    with b.if_then(b.icmp_unsigned("==", mask, ir.Constant(I32, -1))):
        usual = b.gep(module.globals["usual"], [ir.Constant(I32, 0), site], source_etype=usual_type)
        for what in ("distinct", "conflicts"):
            counted = b.load(field(b, Usual, usual, what), typ=I64)
            _add(b, Counter, counter, what, b.sub(ir.Constant(I64, 0), counted))
    b.ret_void()
    return function


def _sector_places(b: ir.IRBuilder, launch: Value, addresses: Value) -> Value:
    """The addresses, moved so that sectors begin where they would on a GPU."""
    slot = b.alloca(LANES_64)
    b.store(addresses, slot)
    with each_range(b, launch) as range_:
        start, end, shift = (load_field(b, Range, range_, name) for name in ("start", "end", "shift"))
        inside = b.and_(
            b.icmp_signed(">=", addresses, broadcast(b, start, WARP)),
            b.icmp_signed("<", addresses, broadcast(b, end, WARP)),
        )
        moved = b.add(addresses, broadcast(b, _delta(b, shift, start), WARP))
        b.store(b.select(inside, moved, b.load(slot, typ=LANES_64)), slot)
    return b.load(slot, typ=LANES_64)


def _bank_conflicts(b: ir.IRBuilder, places: Value, mask: Value, size: Value) -> Value:
    """As `bank_conflicts`, where only the code can know."""
    function = b.module.globals.get("bank_conflicts") or _bank_conflict_function(b.module)
    return b.call(function, [places, mask, size])


def _bank_conflict_function(module: ir.Module) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(I64, [LANES_64, I32, I64]), "bank_conflicts")
    function.linkage = "internal"
    function.attributes.add("noinline")
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
