"""Emit the loads and stores of a kernel, in their fast or their careful form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from llvmlite import ir

from labkit.simt import careful
from labkit.simt.abi import I8, I32, I64, POINTER, ZERO, Launch, load_field, load_stop
from labkit.simt.accesses import Access
from labkit.simt.instructions import Kind, constant
from labkit.simt.lanes import UNIFORM, VARYING, WARP, Shape, absorbed
from labkit.simt.memory import Where, in_range, load, store
from labkit.simt.ptx import Address, Immediate, Instruction, Register, Vector
from labkit.simt.special import local_start, range_bound
from labkit.simt.vectors import count_of, group_value, vector_type
from labkit.simt.warp import Warp

Value = Any


def load_parameter(w: Warp, instruction: Instruction) -> None:
    """`ld.param`: the same for all lanes."""
    kind, address, first = Kind(instruction.type), instruction.operands[1], instruction.operands[0]
    assert isinstance(address, Address)
    offset = w.layout.params[address.base.name] + address.offset  # type: ignore[union-attr]
    for i, item in enumerate(first.items if isinstance(first, Vector) else (first,)):
        assert isinstance(item, Register)
        place = w.b.gep(w.params, [ir.Constant(I64, offset + i * kind.bits // 8)], source_etype=I8)
        loaded = w.b.load(place, typ=ir.IntType(kind.bits), align=1)
        w.write(item, w.cast(loaded, kind), UNIFORM, w.guard(instruction))


def all_in_range(w: Warp, access: Access) -> Value:
    """Are all accesses that share this base in range?"""
    low, high = _bounds(w, access)
    first, end = access.group_range
    return in_range(w.b, _where(w, access), first, end, low, high, access.alignment, w.active())


def fast(w: Warp, instruction: Instruction, access: Access) -> None:
    """The access when its range has been checked."""
    where, mask, kind = _where(w, access), w.active(instruction), Kind(instruction.type)
    if access.is_store:
        store(w.b, where, _stored(w, access, kind), access.size, access.offsets, mask)
    else:
        values = load(w.b, where, kind.llvm, access.size, access.offsets, mask)
        _write_loaded(w, instruction, access, values, absorbed(where.shape))


def checked_addresses(
    w: Warp, instruction: Instruction, access: Access, counted: bool, stopped: ir.Block
) -> tuple[Value, Value]:
    """A checked host address for each lane, and the active lanes; leaves for `stopped` if one is bad."""
    addresses, mask = _lane_addresses(w, access), w.active(instruction)
    check = careful.check_function(w.function.module, access.space, counted, w.layout)
    size = ir.Constant(I64, access.alignment)
    good = w.b.call(check, [w.launch, w.frame, addresses, mask, w.site(instruction), size])
    _leave_unless(w, good, stopped)
    return addresses, mask


def carefully(w: Warp, instruction: Instruction, access: Access, counted: bool, stopped: ir.Block) -> None:
    """Check each active lane in a function; then gather or scatter."""
    kind, shape = Kind(instruction.type), absorbed(access.shape)
    if not access.is_store and len(access.items) == 1:
        function = _load_function(w, access, kind, shape.group, counted)
        arguments = [_lane_addresses(w, access), w.active(instruction), w.site(instruction)]
        value = w.b.call(function, [w.launch, w.frame, *arguments])
        _leave_unless(w, w.b.icmp_unsigned("==", load_stop(w.b, w.launch), ZERO), stopped)
        _write_loaded(w, instruction, access, [value], shape)
        return
    addresses, mask = checked_addresses(w, instruction, access, counted, stopped)
    lanes, offsets = Where(addresses, VARYING), [offset - access.offsets[0] for offset in access.offsets]
    if access.is_store:
        store(w.b, lanes, _stored(w, access, kind), access.size, offsets, mask)
        return
    values = load(w.b, lanes, kind.llvm, access.size, offsets, mask)
    values = [group_value(w.b, value, shape.group) for value in values]
    _write_loaded(w, instruction, access, values, shape)


def _load_function(w: Warp, access: Access, kind: Kind, group: int, counted: bool) -> ir.Function:
    """T load(launch, frame, <32 x i64> addresses, i32 mask, i32 site): a checked load of one item a lane.

    Gives a value a group of lanes. A function, since careful code is seldom run and should be short.
    """
    module, name = w.function.module, f"load_{access.space}_{kind.name}_{group}"
    if name in module.globals:
        return module.globals[name]
    result = vector_type(kind.llvm, WARP // group)
    type_ = ir.FunctionType(result, [POINTER, POINTER, careful.LANES_64, I32, I32])
    function = ir.Function(module, type_, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("cold")
    launch, frame, addresses, mask, site = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    check = careful.check_function(module, access.space, counted, w.layout)
    good = b.call(check, [launch, frame, addresses, mask, site, ir.Constant(I64, access.size)])
    with b.if_then(b.not_(good), likely=False):
        b.ret(ir.Constant(result, None))
    (values,) = load(b, Where(addresses, VARYING), kind.llvm, access.size, [0], mask)
    b.ret(group_value(b, values, group))
    return function


def _lane_addresses(w: Warp, access: Access) -> Value:
    where = _where(w, access)
    base = w.b.add(where.base, constant(where.base, access.offsets[0]))
    return replace(where, base=base).lane_addresses(w.b)


def _leave_unless(w: Warp, good: Value, stopped: ir.Block) -> None:
    following = w.new_block("checked")
    w.b.cbranch(good, following, stopped)
    w.continue_in(following)


def _where(w: Warp, access: Access) -> Where:
    """The address of an access, without its constant offset."""
    base = access.base
    if isinstance(base, Register):
        declared = w.declared(base)
        address = w.read(base, declared)
        if declared.bits < 64:
            # 32-bit shared addresses widen with their sign: a negative one is out of range, not far inside.
            address = w.b.sext(address, vector_type(I64, count_of(address)))
    elif isinstance(base, Immediate):
        address = ir.Constant(I64, base.value)
    else:
        address = w.special(base.name, Kind("s64"))
    return Where(address, access.shape, w.shared if access.space == "shared" else None)


def _bounds(w: Warp, access: Access) -> tuple[Value, Value]:
    if access.space == "shared":
        return ir.Constant(I64, 0), load_field(w.b, Launch, w.launch, "shared_bytes")
    if access.space == "local":
        start = local_start(w)
        return start, w.b.add(start, ir.Constant(I64, WARP * w.layout.local_bytes))
    assert access.range is not None
    return range_bound(w, access.range, 0), range_bound(w, access.range, 1)


def _stored(w: Warp, access: Access, kind: Kind) -> list[Value]:
    return [w.value(item, kind, WARP) for item in access.items]


def _write_loaded(
    w: Warp, instruction: Instruction, access: Access, values: Iterable[Value], shape: Shape
) -> None:
    guard, kind = w.guard(instruction), Kind(instruction.type)
    for item, value in zip(access.items, values, strict=True):
        if not isinstance(item, Register) or item.name not in w.registers:
            continue  # nobody reads it
        declared = w.declared(item)
        if declared.bits > kind.bits:  # a narrow load fills a wider register, with the sign of its type
            value = w.cast(value, Kind(f"{kind.name[0]}{declared.bits}"))
        w.write(item, value, shape, guard)
