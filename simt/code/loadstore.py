"""Emit the loads and stores of a kernel, in their fast or their careful form."""

from collections.abc import Iterable

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.lanes import UNIFORM, VARYING, Shape, absorbed
from simt.code import checked_access
from simt.code.abi import I8, I32, I64, POINTER, ZERO, Launch, Value, load_field
from simt.code.addresses import bounds, lane_addresses, where
from simt.code.emitter import Emitter, ObservedAccess
from simt.code.instructions import Kind
from simt.code.memory import Where, in_range, load, store
from simt.code.vectors import group_value, vector_type
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Address, Instruction, Register, Vector


def load_parameter(w: Warp, instruction: Instruction) -> None:
    """Emit `ld.param`, which reads the same value for all lanes."""
    kind, address, first = Kind(instruction.type), instruction.operands[1], instruction.operands[0]
    assert isinstance(address, Address)
    start = w.layout.params[address.base.name] + address.offset  # type: ignore[union-attr]
    first_byte = ir.Constant(I64, start) if (offset := w.offset()) is None else offset
    for i, item in enumerate(first.items if isinstance(first, Vector) else (first,)):
        assert isinstance(item, Register)
        byte = w.b.add(first_byte, ir.Constant(I64, i * kind.bits // 8))
        place = w.b.gep(w.params, [byte], source_etype=I8)
        loaded = w.b.load(place, typ=ir.IntType(kind.bits), align=1)
        w.write(item, w.cast(loaded, kind), UNIFORM, w.guard(instruction))


def all_in_range(w: Warp, access: Access) -> Value:
    """Emit a test whether all accesses that share this base are in range."""
    low, high = bounds(w, access)
    first, end = access.group_range
    return in_range(w.b, where(w, access), first, end, low, high, access.alignment, w.active())


def fast(w: Warp, emitter: Emitter, instruction: Instruction, access: Access) -> None:
    """Emit an access whose range has been checked."""
    emitter.fast(instruction, access)
    place, mask, kind = where(w, access), w.active(instruction), Kind(instruction.type)
    if access.is_store:
        store(w.b, place, stored(w, access, kind), access.size, access.offsets, mask)
    else:
        values = load(w.b, place, kind.llvm, access.size, access.offsets, mask)
        _write_loaded(w, instruction, access, values, absorbed(place.shape))


def checked_addresses(
    w: Warp,
    emitter: Emitter,
    instruction: Instruction,
    access: Access,
    values: list[Value],
    stopped: ir.Block,
) -> tuple[Value, Value]:
    """Return a host address for each lane, and the active lanes whose addresses are valid.

    The code branches to `stopped` if an address is invalid and that ends the launch.
    """
    b, addresses, mask, site = w.b, lane_addresses(w, access), w.active(instruction), w.site(instruction)
    writes = instruction.family.writes
    check = checked_access.check_function(w.function.module, access.space, writes, w.layout, emitter.stops)
    valid = b.call(check, [w.launch, w.frame, addresses, mask, site, ir.Constant(I64, access.alignment)])
    emitter.careful(ObservedAccess(b, w.launch, w.frame, access, addresses, valid, site, values, mask))
    if emitter.stops:
        _leave_unless(w, b.icmp_unsigned("==", valid, mask), stopped)
    return addresses, valid


def carefully(w: Warp, emitter: Emitter, instruction: Instruction, access: Access, stopped: ir.Block) -> None:
    """Check each active lane in a function; then gather or scatter."""
    kind, shape = Kind(instruction.type), absorbed(access.shape)
    if not access.is_store and len(access.items) == 1:
        function = _load_function(w, emitter, access, kind, shape.group)
        arguments = [lane_addresses(w, access), w.active(instruction), w.site(instruction)]
        value = w.b.call(function, [w.launch, w.frame, *arguments])
        if emitter.stops:
            # not `stop`: at the time limit a loop's jump back sees it, and notes where
            error = load_field(w.b, Launch, w.launch, "error")
            _leave_unless(w, w.b.icmp_unsigned("==", error, ZERO), stopped)
        _write_loaded(w, instruction, access, [value], shape)
        return
    values = stored(w, access, kind) if access.is_store else []
    addresses, mask = checked_addresses(w, emitter, instruction, access, values, stopped)
    lanes, offsets = Where(addresses, VARYING), [offset - access.offsets[0] for offset in access.offsets]
    if access.is_store:
        store(w.b, lanes, values, access.size, offsets, mask)
        return
    values = load(w.b, lanes, kind.llvm, access.size, offsets, mask)
    values = [group_value(w.b, value, shape.group) for value in values]
    _write_loaded(w, instruction, access, values, shape)


def _load_function(w: Warp, emitter: Emitter, access: Access, kind: Kind, group: int) -> ir.Function:
    """Define T load(launch, frame, <32 x i64> addresses, i32 mask, i32 site): a checked load of one item.

    It returns one value per group of lanes. It is a function because careful code seldom runs and should be
    short.
    """
    module, name = w.function.module, f"load_{access.space}_{kind.name}_{group}"
    result = vector_type(kind.llvm, WARP // group)
    arguments = [POINTER, POINTER, checked_access.LANES_64, I32, I32]

    def emit(function: ir.Function) -> None:
        launch, frame, addresses, mask, site = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        check = checked_access.check_function(module, access.space, False, w.layout, emitter.stops)
        valid = b.call(check, [launch, frame, addresses, mask, site, ir.Constant(I64, access.size)])
        emitter.careful(ObservedAccess(b, launch, frame, access, addresses, valid, site, [], mask))
        if emitter.stops:
            with b.if_then(b.icmp_unsigned("!=", valid, mask), likely=False):
                b.ret(ir.Constant(result, None))
        (values,) = load(b, Where(addresses, VARYING), kind.llvm, access.size, [0], valid)
        b.ret(group_value(b, values, group))

    type_ = ir.FunctionType(result, arguments)
    return checked_access.defined_once(module, name, type_, emit, is_cold=True)


def _leave_unless(w: Warp, good: Value, stopped: ir.Block) -> None:
    following = w.new_block("checked")
    w.b.cbranch(good, following, stopped)
    w.continue_in(following)


def stored(w: Warp, access: Access, kind: Kind) -> list[Value]:
    """Read what a store or an atomic operation passes on: one value per lane for each item."""
    return [w.value(item, kind, WARP) for item in access.items]


def _write_loaded(
    w: Warp, instruction: Instruction, access: Access, values: Iterable[Value], shape: Shape
) -> None:
    guard, kind = w.guard(instruction), Kind(instruction.type)
    for item, value in zip(access.items, values, strict=True):
        if not isinstance(item, Register) or item.name not in w.types:
            continue  # nobody reads it
        declared = w.declared(item)
        if declared.bits > kind.bits:  # a narrow load fills a wider register, with the sign of its type
            value = w.cast(value, Kind(f"{kind.name[0]}{declared.bits}"))
        w.write(item, value, shape, guard)
