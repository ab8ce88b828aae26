"""A checked run: looks for races, memory that was never written, and threads missing at a barrier.

Invalid accesses are skipped and found; the launch goes on. An access whose lanes lie at constant offsets
takes a quick look at the shadow of its granules; whatever is suspicious, scattered or guarded goes through
`track`, lane by lane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from labkit.simt import abi, shadow
from labkit.simt.abi import I1, I8, I32, I64, POINTER, ZERO, Frame, Launch, Range, field, load_field
from labkit.simt.accesses import Access
from labkit.simt.addresses import lane_addresses, where
from labkit.simt.blocks import results
from labkit.simt.careful import (
    LANES_64,
    cold_function,
    counted_loop,
    each_lane,
    each_range,
    entry_slot,
    found,
    local_bounds,
    shared_bounds,
)
from labkit.simt.instructions import Kind, constant, intrinsic
from labkit.simt.lanes import WARP
from labkit.simt.layout import Layout
from labkit.simt.observe import Observer
from labkit.simt.ptx import TYPE_BYTES, Address, Instruction, Kernel, Operand, Register
from labkit.simt.vectors import element_type, lanes_of

Value = Any
POISON = 0x7FFADBAD  # each 4 bytes of an array from simt.empty; a NaN
FENCES = ("membar", "fence")
MASKED = ("bar", "barrier", "shfl", "vote", "match", "redux")  # their last operand names lanes
_ORDERED = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")


def granule_bytes(kernel: Kernel, spaces: tuple[str, ...]) -> int:
    """Bytes one word of shadow stands for: the smallest that the kernel reads or writes there, 4 at most."""
    sizes = [
        TYPE_BYTES[i.type]
        for i in kernel.code
        if i.parts[0] in ("ld", "ldu", "st", "atom", "red")
        and "param" not in i.parts
        and (set(spaces) & set(i.parts) or not {"global", "shared", "local", "const"} & set(i.parts))
    ]
    return min([4, *sizes])


class Checking(Observer):
    """Keeps the shadow, and hands findings to the host."""

    whole_warps = True
    stops = False

    def attach(self, w: Any) -> None:
        super().attach(w)
        b = w.b
        self.granule = {space: granule_bytes(w.kernel, (space,)) for space in ("global", "shared")}
        self.stamp = b.or_(load_field(b, Launch, w.launch, "stamp"), w.number)
        self.first_stamps = [load_field(b, Launch, w.launch, f"{what}_stamp") for what in ("launch", "block")]
        self.shared_shadow = b.inttoptr(
            b.ptrtoint(load_field(b, Launch, w.launch, "shared_shadow"), I64), POINTER
        )
        shared_bytes = load_field(b, Launch, w.launch, "shared_bytes")
        self.shared_plane_bytes = _plane_bytes(b, shared_bytes, self.granule["shared"])
        b.store(ZERO, field(b, Frame, w.frame, "phase"))
        _strong_table(w.function.module, w.kernel)

    def takes(self, instruction: Instruction, access: Access) -> bool:
        return instruction.guard is None

    def fast(self, instruction: Instruction, access: Access) -> None:
        w, b = self.w, self.w.b
        if access.space == "const":
            return
        if access.space == "local":
            self._track(instruction, access)
            return
        known = None
        skip = w.new_block("unshadowed")
        if access.space != "shared":
            assert access.range is not None
            known = w.range(access.range, "shadow"), w.range(access.range, "plane_bytes")
            idle = b.icmp_unsigned("==", known[0], ir.Constant(I64, 0))
            if not access.is_store:
                poisoned = b.icmp_unsigned("!=", w.range(access.range, "poisoned"), ir.Constant(I64, 0))
                idle = b.and_(idle, b.not_(poisoned))
            look = w.new_block("shadowed")
            b.cbranch(idle, skip, look)
            w.continue_in(look)
            if not access.is_store:
                clean = w.new_block("clean")
                poison = w.new_block("poisoned")
                w.b.cbranch(poisoned, poison, clean)
                w.continue_in(poison)
                self._track(instruction, access)
                w.b.branch(skip)
                w.continue_in(clean)
        runs = shadow.plan(
            [offset + access.offsets[0] for offset in access.shape.lane_offsets()],
            access.shape.group,
            access.alignment,
            self._granule(access),
            access.is_store,
        )
        if runs is not None:
            closely = w.new_block("closely")
            w.b.cbranch(self._quick(instruction, access, runs, known), skip, closely).set_weights([1000, 1])
            w.continue_in(closely)
        self._track(instruction, access)
        w.b.branch(skip)
        w.continue_in(skip)

    def _granule(self, access: Access) -> int:
        """Of the memory that an access in its fast form goes to: a generic address then is in an array."""
        return self.granule["shared" if access.space == "shared" else "global"]

    def _quick(
        self,
        instruction: Instruction,
        access: Access,
        runs: tuple[shadow.Run, ...],
        known: tuple[Value, Value] | None,
    ) -> Value:
        """Call the quick look; `known`: shadow and plane bytes of the array, None for shared memory."""
        w, b = self.w, self.w.b
        function = shadow.quick_function(w.function.module, runs, access.is_store, known is not None)
        address = where(w, access).base
        address = b.add(address, constant(address, access.extent[0]))
        shift = ir.Constant(I64, self._granule(access).bit_length() - 1)
        origin: Value = ir.Constant(I64, 0)
        if known is not None:
            assert access.range is not None
            planes, plane_bytes = b.inttoptr(known[0], POINTER), known[1]
            origin = b.lshr(w.range(access.range, "start"), shift)
        else:
            planes, plane_bytes = self.shared_shadow, self.shared_plane_bytes
        bases = [
            address if access.shape.bases == 1 else b.extract_element(address, ir.Constant(I32, i))
            for i in range(max(run.group for run in runs) + 1)
        ]
        granules = [b.sub(b.lshr(base, shift), origin) for base in bases]
        phase = b.shl(load_field(b, Frame, w.frame, "phase"), ir.Constant(I32, 6))
        arguments = [planes, plane_bytes, self.stamp, *self.first_stamps, phase, w.site(instruction)]
        return b.call(function, [*arguments, *granules])

    def _track(self, instruction: Instruction, access: Access) -> None:
        """Look at an access of all lanes one by one."""
        w = self.w
        kind = Kind(instruction.type)
        values = [w.value(item, kind, WARP) for item in access.items] if access.is_store else []
        addresses, everyone = lane_addresses(w, access), ir.Constant(I32, -1)
        self.careful(w.b, w.launch, w.frame, access, addresses, everyone, w.site(instruction), values)

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
        if access.space == "const":
            return
        function = _track_function(b.module, self.w.layout, self.granule)
        does_read, does_write = ir.Constant(I1, not access.is_store), ir.Constant(I1, access.is_store)
        if access.is_atomic:
            does_read = does_write = ir.Constant(I1, 1)
            _note_atomic(b, launch)
        sizes = access.size if values and not access.is_atomic else access.alignment
        for i, value in enumerate(values if values and not access.is_atomic else [None]):
            bits = ir.Constant(LANES_64, None) if value is None else _bits(b, value)
            place = b.add(addresses, constant(addresses, i * access.size))
            size = ir.Constant(I64, sizes)
            b.call(function, [launch, frame, place, mask, site, size, bits, does_read, does_write])

    def barrier(self, instruction: Instruction) -> None:
        w, b = self.w, self.w.b
        if not w.flow.blocks[w.index].may_have_exited:
            return
        gone = b.and_(w.full_mask, b.not_(w.active()))
        with b.if_then(b.icmp_unsigned("!=", gone, ZERO), likely=False):
            lane = intrinsic(b, "cttz", I32, gone, ir.Constant(I1, 1))
            found(b, w.launch, w.frame, abi.EXITED, w.site(instruction), lane)

    def step(self, instruction: Instruction) -> None:
        w, b = self.w, self.w.b
        if instruction.parts[0] in FENCES:
            b.store(ir.Constant(I32, 1), field(b, Launch, w.launch, "fenced"))
        if instruction.parts[0] not in MASKED or "sync" not in instruction.parts:
            return
        self._members(instruction)
        if instruction.parts[0] in ("bar", "barrier"):
            phase = field(b, Frame, w.frame, "phase")
            b.store(b.add(b.load(phase, typ=I32), ir.Constant(I32, 1)), phase)

    def _members(self, instruction: Instruction) -> None:
        """Each lane is named in its own mask, and nobody named is elsewhere."""
        w, b = self.w, self.w.b
        active = w.active(instruction)
        members = w.value(instruction.operands[-1], Kind("b32"), WARP)
        own = b.and_(
            members, ir.Constant(members.type, [ir.Constant(I32, 1 << i & 0xFFFFFFFF) for i in range(WARP)])
        )
        named = b.bitcast(b.icmp_unsigned("!=", own, ir.Constant(own.type, None)), I32)
        active_members = b.select(lanes_of(b, active), members, ir.Constant(members.type, None))
        everyone = intrinsic(b, "vector.reduce.or", I32, active_members, overloads=(members.type,))
        elsewhere: Value = ZERO
        for other in sorted(w.flow.blocks[w.index].may_wait):
            elsewhere = b.or_(elsewhere, b.load(w.waiting[other], typ=I32))
        uncalled = b.and_(active, b.not_(named))
        wrong = b.select(b.icmp_unsigned("!=", uncalled, ZERO), uncalled, b.and_(everyone, elsewhere))
        with b.if_then(b.icmp_unsigned("!=", wrong, ZERO), likely=False):
            lane = intrinsic(b, "cttz", I32, wrong, ir.Constant(I1, 1))
            found(b, w.launch, w.frame, abi.SYNC_MASK, w.site(instruction), lane)


def _plane_bytes(b: ir.IRBuilder, size: Value, granule: int) -> Value:
    """Bytes of a plane for memory of `size` bytes."""
    rounded = b.add(size, ir.Constant(I64, 4))
    return b.shl(b.lshr(rounded, ir.Constant(I64, granule.bit_length() - 1)), ir.Constant(I64, 2))


def _bits(b: ir.IRBuilder, value: Value) -> Value:
    """Values of any type as 64-bit integers."""
    kind = element_type(value)
    width = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or kind.width
    value = b.bitcast(value, ir.VectorType(ir.IntType(width), WARP))
    return value if width == 64 else b.zext(value, LANES_64)


def _strong_table(module: ir.Module, kernel: Kernel) -> None:
    """For each instruction: is it atomic, or ordered by the memory model (volatile, relaxed, ...)?

    A load from an address that the kernel also changes atomically counts as atomic: what it reads is a first
    guess, which the atomic operation then confirms (the compare-and-swap loop of the CUDA C++ Programming
    Guide, "Atomic Functions").
    """
    origins = _origins(kernel)
    atomic = {_place(i, origins) for i in kernel.code if i.parts[0] in ("atom", "red")}
    kinds = []
    for i in kernel.code:
        is_guess = i.parts[0] == "ld" and "param" not in i.parts and _place(i, origins) in atomic
        is_atomic = i.parts[0] in ("atom", "red") or is_guess
        kinds.append(shadow.ATOMIC * is_atomic | shadow.STRONG * bool(set(_ORDERED) & set(i.parts)))
    table = ir.GlobalVariable(module, ir.ArrayType(I8, len(kinds)), "is_strong")
    table.initializer = ir.Constant(table.value_type, [ir.Constant(I8, kind) for kind in kinds])
    table.global_constant, table.linkage = True, "internal"


def _origins(kernel: Kernel) -> dict[str, Operand]:
    """For each register that is a copy of another (the same address in another space), that one."""
    copies: dict[str, Operand] = {}
    written: set[str] = set()
    for instruction in kernel.code:
        for register in results(instruction):
            if instruction.parts[0] in ("mov", "cvta") and register.name not in written:
                copies[register.name] = instruction.operands[1]
            else:
                copies.pop(register.name, None)
            written.add(register.name)
    return copies


def _place(instruction: Instruction, origins: dict[str, Operand]) -> tuple[Operand, int]:
    """Base and offset of an access."""
    address = next(o for o in instruction.operands if isinstance(o, Address))
    base: Operand = address.base
    while isinstance(base, Register) and base.name in origins:
        base = origins[base.name]
    return base, address.offset


def _note_atomic(b: ir.IRBuilder, launch: Value) -> None:
    """An atomic operation takes over what others released; behind a fence it releases in its turn."""
    b.store(ir.Constant(I32, 1), field(b, Launch, launch, "acquired"))
    with b.if_then(b.icmp_unsigned("!=", load_field(b, Launch, launch, "fenced"), ZERO)):
        b.store(load_field(b, Launch, launch, "stamp"), field(b, Launch, launch, "released"))
        b.store(ZERO, field(b, Launch, launch, "fenced"))


def _track_function(module: ir.Module, layout: Layout, granule: dict[str, int]) -> ir.Function:
    """The function that finds each lane's shadow, wherever its address lies.

    void track(launch, frame, <32 x i64> addresses, i32 mask, site, i64 bytes, <32 x i64> values,
    i1 reads, writes)
    """
    name = "track"
    if name in module.globals:
        return module.globals[name]
    arguments = [POINTER, POINTER, LANES_64, I32, I32, I64, LANES_64, I1, I1]
    function = cold_function(module, name, ir.VoidType(), arguments)
    launch, frame, addresses, mask, site, size, values, reads, writes = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    touch = shadow.touch_function(module)
    stored, where = b.alloca(LANES_64), b.alloca(LANES_64)
    b.store(values, stored)
    b.store(addresses, where)
    with each_lane(b, mask) as lane:
        address = b.load(b.gep(b.bitcast(where, POINTER), [lane], source_etype=I64), typ=I64)

        def touch_granules(
            planes: Value, plane_bytes: Value, start: Value, unit: int, is_global: bool
        ) -> None:
            shift = ir.Constant(I64, unit.bit_length() - 1)
            origin, last = b.lshr(start, shift), b.add(address, b.sub(size, ir.Constant(I64, 1)))
            first = b.sub(b.lshr(address, shift), origin)
            count = b.add(b.sub(b.sub(b.lshr(last, shift), origin), first), ir.Constant(I64, 1))
            where_to = [launch, frame, planes, plane_bytes, first, count, address, size]
            who = [b.bitcast(stored, POINTER), lane, site, reads, writes, ir.Constant(I1, is_global)]
            b.call(touch, [*where_to, *who])

        def inside(start: Value, end: Value) -> Value:
            return b.and_(b.icmp_signed(">=", address, start), b.icmp_signed("<", address, end))

        start, end = shared_bounds(b, launch, frame)
        with b.if_then(inside(start, end)):
            planes = load_field(b, Launch, launch, "shared_shadow")
            plane_bytes = _plane_bytes(b, b.sub(end, start), granule["shared"])
            touch_granules(planes, plane_bytes, start, granule["shared"], is_global=False)
        if layout.local_bytes:
            starts, ends = local_bounds(b, frame, layout)
            with b.if_then(inside(b.extract_element(starts, lane), b.extract_element(ends, lane))):
                offset = b.sub(address, b.extract_element(starts, ZERO))
                _track_local(b, launch, frame, lane, site, offset, size, layout, writes)
        with each_range(b, launch) as range_:
            start, end = (load_field(b, Range, range_, n) for n in ("start", "end"))
            with b.if_then(inside(start, end)):
                poisoned = b.icmp_unsigned(
                    "!=", load_field(b, Range, range_, "poisoned"), ir.Constant(I64, 0)
                )
                with b.if_then(b.and_(poisoned, reads)):
                    _look_for_poison(b, launch, frame, lane, site, address, size)
                planes = load_field(b, Range, range_, "shadow")
                with b.if_then(b.icmp_unsigned("!=", b.ptrtoint(planes, I64), ir.Constant(I64, 0))):
                    plane_bytes = load_field(b, Range, range_, "plane_bytes")
                    touch_granules(planes, plane_bytes, start, granule["global"], is_global=True)
    b.ret_void()
    return function


def _track_local(
    b: ir.IRBuilder,
    launch: Value,
    frame: Value,
    lane: Value,
    site: Value,
    offset: Value,
    size: Value,
    layout: Layout,
    writes: Value,
) -> None:
    """Behind local memory lies a byte for each of its bytes: has it been written?"""
    first = b.add(offset, ir.Constant(I64, layout.local_map_start))
    written = entry_slot(b, I8)
    b.store(ir.Constant(I8, 1), written)
    with counted_loop(b, size) as index:
        byte = b.gep(frame, [b.add(first, index)], source_etype=I8)
        b.store(b.and_(b.load(written, typ=I8), b.load(byte, typ=I8)), written)
        with b.if_then(writes):
            b.store(ir.Constant(I8, 1), byte)
    unwritten = b.icmp_unsigned("==", b.load(written, typ=I8), ir.Constant(I8, 0))
    with b.if_then(b.and_(unwritten, b.not_(writes)), likely=False):
        found(b, launch, frame, abi.UNWRITTEN, site, lane)


def _look_for_poison(
    b: ir.IRBuilder, launch: Value, frame: Value, lane: Value, site: Value, address: Value, size: Value
) -> None:
    """Does the access read a word of 4 bytes that nobody has written since simt.empty?"""
    first = b.and_(address, ir.Constant(I64, -4))
    words = b.lshr(b.add(b.sub(b.add(address, size), first), ir.Constant(I64, 3)), ir.Constant(I64, 2))
    with counted_loop(b, words) as index:
        place = b.inttoptr(b.add(first, b.shl(index, ir.Constant(I64, 2))), POINTER)
        word = b.load(place, typ=I32, align=4)
        with b.if_then(b.icmp_unsigned("==", word, ir.Constant(I32, POISON)), likely=False):
            found(b, launch, frame, abi.UNWRITTEN, site, lane, address)
