"""LLVM functions that examine every lane of an access, and the loops they are made of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from simt.analysis.layout import STRIDE, Layout
from simt.code import abi
from simt.code.abi import I1, I8, I32, I64, POINTER, Frame, Launch, Range, Value, field, load_field
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import broadcast, expanded
from simt.common.limits import WARP

LANES_64 = ir.VectorType(I64, WARP)


def report(
    b: ir.IRBuilder,
    launch: Value,
    frame: Value,
    error: int,
    site: Value,
    mask: Value,
    address: Value = None,
    **others: Value,
) -> ir.IRBuilder:
    """Record a mistake, unless another thread of the host was first, and stop the launch.

    `others` are more fields of the record, such as `error_other`.
    """
    code = ir.Constant(I32, error)
    answer = b.cmpxchg(field(b, Launch, launch, "error"), ir.Constant(I32, 0), code, "seq_cst")
    with b.if_then(b.extract_value(answer, 1)):
        values = {"error_at": site, "error_mask": mask, "error_warp": load_field(b, Frame, frame, "warp")}
        values |= {f"error_{axis}": load_field(b, Frame, frame, axis) for axis in "xyz"}
        values["error_shared"] = load_field(b, Frame, frame, "shared")
        if address is not None:
            values["error_address"] = address
        values |= others
        for name, value in values.items():
            b.store(value, field(b, Launch, launch, name))
    b.atomic_rmw("xchg", field(b, Launch, launch, "stop"), ir.Constant(I32, 1), "monotonic")
    return b


def check_function(module: ir.Module, space: str, is_write: bool, layout: Layout, stops: bool) -> ir.Function:
    """Define i32 check(launch, frame, <32 x i64> addresses, i32 mask, i32 site, i64 bytes).

    It returns the valid lanes. A lane is valid if its bytes lie in one range of its space and its address is
    a multiple of `bytes`; nothing is written to a `__constant__` variable. The first invalid lane is
    reported: it ends the launch if `stops`, otherwise it becomes a finding.
    """
    name = f"check_{space}_write" if is_write else f"check_{space}"

    def emit(function: ir.Function) -> None:
        launch, frame, addresses, mask, site, size = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        lanes = _Lanes(b, addresses, size)
        if space in ("global", "const", "generic"):
            lanes.look_in_ranges(launch, False if is_write else True if space == "const" else None)
        if space in ("shared", "generic"):
            for bounds in shared_bounds_together(b, launch, frame, layout):
                lanes.look_in(*bounds)
        if space in ("local", "generic"):
            lanes.look_in(*local_bounds(b, frame, layout))
        wrong = b.and_(b.not_(b.bitcast(b.load(lanes.valid, typ=lanes.predicate), I32)), mask)
        good = b.icmp_unsigned("==", wrong, ir.Constant(I32, 0))
        with b.if_then(b.not_(good), likely=False):
            lane = intrinsic(b, "cttz", I32, wrong, ir.Constant(I1, 1))
            first = b.extract_element(addresses, lane)
            if stops:
                report(b, launch, frame, abi.BAD_ACCESS, site, wrong, first)
            else:
                report_finding(b, launch, frame, abi.OUT_OF_BOUNDS, site, lane, first)
        b.ret(b.and_(mask, b.not_(wrong)))

    type_ = ir.FunctionType(I32, [POINTER, POINTER, LANES_64, I32, I32, I64])
    return defined_once(module, name, type_, emit, is_cold=True)


def defined_once(
    module: ir.Module,
    name: str,
    type_: ir.FunctionType,
    emit: Callable[[ir.Function], None],
    *,
    is_cold: bool = False,
) -> ir.Function:
    """Return the module's function `name`, whose code `emit` writes when it is first asked for.

    `is_cold` is for code that seldom runs and should be short.
    """
    if name not in module.globals:
        function = ir.Function(module, type_, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        if is_cold:
            function.attributes.add("cold")
        emit(function)
    return module.globals[name]


def shared_bounds(b: ir.IRBuilder, launch: Value, frame: Value) -> tuple[Value, Value]:
    """Return the address of the block's shared memory, and its end."""
    start = b.ptrtoint(load_field(b, Frame, frame, "shared"), I64)
    return start, b.add(start, load_field(b, Launch, launch, "shared_bytes"))


def shared_bounds_together(
    b: ir.IRBuilder, launch: Value, frame: Value, layout: Layout
) -> Iterator[tuple[Value, Value]]:
    """Yield the bounds of the shared memory of each block of the cluster."""
    start, end = shared_bounds(b, launch, frame)
    together = layout.flow.kernel.blocks_together
    if together > 1:  # go back to the block of rank 0
        rank = b.zext(load_field(b, Frame, frame, "rank"), I64)
        start, end = (b.sub(each, b.mul(rank, ir.Constant(I64, STRIDE))) for each in (start, end))
    for number in range(together):
        yield b.add(start, ir.Constant(I64, number * STRIDE)), b.add(end, ir.Constant(I64, number * STRIDE))


def local_bounds(b: ir.IRBuilder, frame: Value, layout: Layout) -> tuple[Value, Value]:
    """Return the addresses of each lane's local memory, and their ends."""
    start = b.add(b.ptrtoint(frame, I64), ir.Constant(I64, layout.local_start))
    lanes = ir.Constant(LANES_64, [ir.Constant(I64, i * layout.local_bytes) for i in range(WARP)])
    starts = b.add(broadcast(b, start, WARP), lanes)
    return starts, b.add(starts, constant(starts, layout.local_bytes))


def report_finding(
    b: ir.IRBuilder,
    launch: Value,
    frame: Value,
    kind: int,
    site: Value,
    lane: Value,
    address: Value = None,
    other: tuple[Value, Value, Value] | None = None,
) -> None:
    """Report a finding to the host, unless this instruction has reported enough of its kind.

    `other`: site of the other access of a race, its place (lane) and its stamp (warp).
    """
    row = b.add(b.mul(ir.Constant(I64, kind), load_field(b, Launch, launch, "sites")), b.zext(site, I64))
    times = b.gep(load_field(b, Launch, launch, "muted"), [row], source_etype=I8)
    count = b.load(times, typ=I8)
    with b.if_then(b.icmp_unsigned("<", count, ir.Constant(I8, abi.REPEATS)), likely=False):
        b.store(b.add(count, ir.Constant(I8, 1)), times)
        zero = ir.Constant(I32, 0)
        type_ = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32, I64, I32, I32, I32])
        address = ir.Constant(I64, 0) if address is None else address
        callback = b.inttoptr(b.load(field(b, Launch, launch, "found"), typ=I64), type_.as_pointer())
        b.call(
            callback,
            [
                frame,
                ir.Constant(I32, kind),
                site,
                lane,
                address,
                *(other or (ir.Constant(I32, -1), zero, zero)),
            ],
        )


class _Lanes:
    """Looks up the lanes' addresses in ranges, to find those that are valid."""

    predicate = ir.VectorType(I1, WARP)

    def __init__(self, b: ir.IRBuilder, addresses: Value, size: Value) -> None:
        self.b, self.addresses = b, addresses
        self.end = b.add(addresses, broadcast(b, size, WARP))
        self.valid = b.alloca(self.predicate)
        b.store(ir.Constant(self.predicate, None), self.valid)
        remainder = b.and_(addresses, broadcast(b, b.sub(size, ir.Constant(I64, 1)), WARP))
        self.aligned = b.icmp_unsigned("==", remainder, ir.Constant(LANES_64, None))

    def look_in(self, low: Value, high: Value) -> None:
        """Mark the lanes within [low, high) as valid: one range for all, or one per lane."""
        b = self.b
        inside = b.and_(
            b.icmp_signed(">=", self.addresses, expanded(b, low, WARP)),
            b.icmp_signed("<=", self.end, expanded(b, high, WARP)),
        )
        inside = b.and_(inside, self.aligned)
        b.store(b.or_(b.load(self.valid, typ=self.predicate), inside), self.valid)

    def look_in_ranges(self, launch: Value, constant: bool | None) -> None:
        """Mark the lanes in a range as valid; `constant`: only in `__constant__` variables, or in others."""
        b = self.b
        with each_range(b, launch) as range_:
            low, high = (load_field(b, Range, range_, name) for name in ("start", "end"))
            if constant is not None:
                is_constant = load_field(b, Range, range_, "is_constant")
                fits = b.icmp_unsigned("==", is_constant, ir.Constant(I64, int(constant)))
                high = b.select(fits, high, low)
            self.look_in(low, high)


def entry_slot(b: ir.IRBuilder, type_: ir.Type) -> Value:
    """Allocate a stack slot once per call, even where the code around it loops."""
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
def each_range(b: ir.IRBuilder, launch: Value) -> Iterator[Value]:
    """Emit a loop over the records of valid memory."""
    ranges, count = load_field(b, Launch, launch, "ranges"), load_field(b, Launch, launch, "range_count")
    with counted_loop(b, count) as index:
        yield b.gep(ranges, [index], source_etype=abi.TYPES[Range])


@contextmanager
def while_some(b: ir.IRBuilder, slot: Value) -> Iterator[Value]:
    """Emit a loop that runs while the mask in `slot` has a lane."""
    head, body, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    remaining = b.load(slot, typ=I32)
    b.cbranch(b.icmp_unsigned("!=", remaining, ir.Constant(I32, 0)), body, after)
    b.position_at_end(body)
    yield remaining
    b.branch(head)
    b.position_at_end(after)


@contextmanager
def each_lane(b: ir.IRBuilder, mask: Value) -> Iterator[Value]:
    """Emit a loop over the lanes in `mask`, lowest first."""
    slot = entry_slot(b, I32)
    b.store(mask, slot)
    with while_some(b, slot) as remaining:
        yield intrinsic(b, "cttz", I32, remaining, ir.Constant(I1, 1))
        b.store(b.and_(remaining, b.sub(remaining, ir.Constant(I32, 1))), slot)


@contextmanager
def each_distinct(b: ir.IRBuilder, values: Value, mask: Value) -> Iterator[Value]:
    """Emit a loop over the distinct values of the lanes in `mask`."""
    slot = entry_slot(b, I32)
    b.store(mask, slot)
    with while_some(b, slot) as remaining:
        value = b.extract_element(values, intrinsic(b, "cttz", I32, remaining, ir.Constant(I1, 1)))
        same = b.bitcast(b.icmp_unsigned("==", values, broadcast(b, value, WARP)), I32)
        yield value
        b.store(b.and_(remaining, b.not_(same)), slot)
