"""The LLVM function of a host thread: it takes a block and runs its warps from barrier to barrier.

void run(ptr launch, ptr frames, ptr shared)

Where blocks wait for each other it runs the block that its frames are for: to its end, to the grid's next
barrier, or until its warps do nothing but wait.
"""

from functools import reduce

from llvmlite import ir

from simt.analysis.layout import RESERVED, STRIDE, Layout, granules
from simt.code import abi
from simt.code.abi import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    ZERO,
    Frame,
    Launch,
    Value,
    field,
    load_field,
    load_stop,
)
from simt.code.checked_access import entry_slot, report, report_finding
from simt.code.instructions import intrinsic
from simt.common.limits import Dim3

TURNS = 2  # rounds in which warps look whether others of their block have done what they wait for
UNWRITTEN = 0xFF  # shared memory starts as NaNs and -1s, so that a read before a write shows


def add_driver(
    module: ir.Module, warp: ir.Function, layout: Layout, is_checked: bool, is_ordered: bool = False
) -> None:
    """Add `run` to a module that has `warp`. `is_ordered`: the launch says in which order warps run."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER]), "run")
    launch, frames, shared = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    blocks = {name: function.append_basic_block(name) for name in ("take", "begin", "round", "done")}
    barrier = b.alloca(I32)
    b.branch(blocks["take"])

    b.position_at_end(blocks["take"])
    if layout.is_resumed:
        taken = b.zext(load_field(b, Frame, frames, "x"), I64)
        is_new = b.icmp_signed("==", load_field(b, Frame, frames, "resume"), ZERO)
        after = _resume(b, launch, is_checked)
        b.cbranch(is_new, blocks["begin"], after)
        ir.IRBuilder(after).branch(blocks["round"])
    else:
        taken = b.atomic_rmw("add", field(b, Launch, launch, "next_block"), ir.Constant(I64, 1), "monotonic")
        stop = load_stop(b, launch)
        left = b.icmp_signed("<", taken, load_field(b, Launch, launch, "block_count"))
        go_on = b.and_(left, b.icmp_unsigned("==", stop, ir.Constant(I32, 0)))
        b.cbranch(go_on, blocks["begin"], blocks["done"])

    b.position_at_end(blocks["begin"])
    _start_block(b, launch, frames, shared, taken, layout)
    if is_checked:
        _start_check(b, launch, frames, layout)
    b.branch(blocks["round"])

    b.position_at_end(blocks["round"])
    b.store(ir.Constant(I32, 0), barrier)
    turns = _Turns(b, layout, launch, is_checked) if layout.turn_states else None
    if turns and layout.awaits_blocks:
        turns.resume(frames, barrier)
    if turns:
        turns.begin()
    order = _next_order(b, launch, layout) if is_ordered else None
    with _each_warp(b, frames, layout, order) as (frame, following):
        _run_warp(b, warp, launch, frame, barrier, blocks["done"], turns)
        b.branch(following)
    if turns:
        turns.end(blocks["done"])
    if any(layout.flow.blocks[i].code[-1].votes for i in layout.barriers):
        _count_votes(b, frames, layout)
    again = b.icmp_signed(">", b.load(barrier, typ=I32), ir.Constant(I32, 0))
    if is_checked:
        _end_interval(b, launch, frames, b.load(barrier, typ=I32), layout)
    if not layout.is_resumed:
        b.cbranch(again, blocks["round"], blocks["take"])
    else:
        grid_barriers = [layout.barriers.index(each) + 1 for each in layout.grid_barriers]
        at_grid = _is_in(b, b.load(barrier, typ=I32), grid_barriers)
        again = b.and_(again, b.not_(at_grid))
        b.cbranch(again, blocks["round"], blocks["done"])
    ir.IRBuilder(blocks["done"]).ret_void()


def _is_in(b: ir.IRBuilder, state: Value, states: list[int]) -> Value:
    """Say whether a warp's state is one of these."""
    tests = [b.icmp_signed("==", state, ir.Constant(I32, each)) for each in states]
    return reduce(b.or_, tests, ir.Constant(I1, 0))


class _Turns:
    """Rounds in which only those warps run that have given way, until all are at a barrier or have ended.

    In a checked run each of them begins a new interval: it may have waited for what others did. If they may
    wait for other blocks, these have their turn after `TURNS` rounds.
    """

    def __init__(self, b: ir.IRBuilder, layout: Layout, launch: Value, is_checked: bool) -> None:
        self.b, self.layout, self.launch, self.is_checked = b, layout, launch, is_checked
        self._is_first, self._is_last = (entry_slot(b, I1) for _ in range(2))
        self._rounds = entry_slot(b, I32)
        b.store(ir.Constant(I1, 1), self._is_first)

    def resume(self, frames: Value, barrier: Value) -> None:
        """Go on where a block gave way to others; the other warps have ended or wait at `barrier`."""
        b, states = self.b, self.layout.turn_states
        b.store(ZERO, self._rounds)
        with _each_warp(b, frames, self.layout) as (frame, following):
            state = load_field(b, Frame, frame, "resume")
            gave_way = _is_in(b, state, states)
            b.store(b.and_(b.load(self._is_first, typ=I1), b.not_(gave_way)), self._is_first)
            waits = b.and_(b.icmp_signed(">", state, ZERO), b.not_(gave_way))
            b.store(b.select(waits, state, b.load(barrier, typ=I32)), barrier)
            b.branch(following)
        b.store(b.select(b.load(self._is_first, typ=I1), ZERO, b.load(barrier, typ=I32)), barrier)

    def begin(self) -> None:
        """Begin a round."""
        b = self.b
        self._start = b.append_basic_block("turns")
        b.branch(self._start)
        b.position_at_end(self._start)
        b.store(ir.Constant(I1, 1), self._is_last)

    def takes(self, resume: Value) -> Value:
        """Say whether a warp with this state runs now."""
        b = self.b
        gave_way = _is_in(b, resume, self.layout.turn_states)
        if self.is_checked:
            with b.if_then(gave_way):
                _next_stamp(b, self.launch)
        return b.or_(b.load(self._is_first, typ=I1), gave_way)

    def at_barrier(self, state: Value) -> Value:
        """Say whether a warp that has run to this state is at a barrier."""
        b = self.b
        gives_way = _is_in(b, state, self.layout.turn_states)
        b.store(b.and_(b.load(self._is_last, typ=I1), b.not_(gives_way)), self._is_last)
        return b.and_(b.icmp_signed(">", state, ZERO), b.not_(gives_way))

    def end(self, gives_way: ir.Block) -> None:
        """End a round, and begin another if a warp has given way; in time have the block give way."""
        b = self.b
        b.store(ir.Constant(I1, 0), self._is_first)
        after, again = b.append_basic_block("settled"), self._start
        if self.layout.awaits_blocks:
            again = b.append_basic_block("again")
        b.cbranch(b.load(self._is_last, typ=I1), after, again)
        if self.layout.awaits_blocks:
            b.position_at_end(again)
            rounds = b.add(b.load(self._rounds, typ=I32), ir.Constant(I32, 1))
            b.store(rounds, self._rounds)
            b.cbranch(b.icmp_unsigned("<", rounds, ir.Constant(I32, TURNS)), self._start, gives_way)
        b.position_at_end(after)


def _resume(b: ir.IRBuilder, launch: Value, is_checked: bool) -> ir.Block:
    """Return a block for what comes before a block of the grid goes on after the grid's barrier."""
    resumed = b.append_basic_block("resume")
    if is_checked:
        after = ir.IRBuilder(resumed)
        after.store(_next_stamp(after, launch), field(after, Launch, launch, "block_stamp"))
        after.store(ZERO, field(after, Launch, launch, "acquired"))
    return resumed


class _each_warp:  # noqa: N801 - reads as a statement: with _each_warp(...)
    """Emits a loop over the frames of a block's warps; the body ends with a branch to `following`.

    `order` is the address of the warps' numbers, in 32 bits each, in the order in which they run.
    """

    def __init__(self, b: ir.IRBuilder, frames: Value, layout: Layout, order: Value | None = None) -> None:
        self.b, self.frames, self.layout, self.order = b, frames, layout, order

    def __enter__(self) -> tuple[Value, ir.Block]:
        b = self.b
        self.head, body, self.next, self.after = (
            b.append_basic_block(n) for n in ("warp", "body", "next", "after")
        )
        start = b.block
        b.branch(self.head)
        b.position_at_end(self.head)
        self.index = b.phi(I64)
        self.index.add_incoming(ir.Constant(I64, 0), start)
        count = self.layout.warps * self.layout.flow.kernel.blocks_together
        b.cbranch(b.icmp_signed("<", self.index, ir.Constant(I64, count)), body, self.after)
        b.position_at_end(body)
        number = self.index
        if self.order is not None:
            number = b.zext(b.load(b.gep(self.order, [number], source_etype=I32), typ=I32), I64)
        offset = b.mul(number, ir.Constant(I64, self.layout.frame_bytes))
        return b.gep(self.frames, [offset], source_etype=I8), self.next

    def __exit__(self, *_exc: object) -> None:
        b = self.b
        b.position_at_end(self.next)
        self.index.add_incoming(b.add(self.index, ir.Constant(I64, 1)), self.next)
        b.branch(self.head)
        b.position_at_end(self.after)


def _next_order(b: ir.IRBuilder, launch: Value, layout: Layout) -> Value:
    """Return the order of this round, and go on to that of the next; after the last comes the first."""
    place = field(b, Launch, launch, "round")
    number = b.load(place, typ=I64)
    b.store(b.urem(b.add(number, ir.Constant(I64, 1)), load_field(b, Launch, launch, "rounds")), place)
    first = b.mul(number, ir.Constant(I64, layout.warps))
    return b.gep(load_field(b, Launch, launch, "order"), [first], source_etype=I32)


def _start_block(
    b: ir.IRBuilder, launch: Value, frames: Value, shared: Value, taken: Value, layout: Layout
) -> None:
    """Set the coordinates of the block in every frame, and its shared memory to `UNWRITTEN`.

    The blocks of a cluster start together. Then `taken` and the sample are numbers of clusters.
    """
    sample = load_field(b, Launch, launch, "blocks")
    everything = b.icmp_unsigned("==", b.ptrtoint(sample, I64), ir.Constant(I64, 0))
    number = entry_slot(b, I64)
    b.store(taken, number)
    with b.if_then(b.not_(everything)):
        b.store(b.load(b.gep(sample, [taken], source_etype=I64), typ=I64), number)
    place = _place(b, launch, b.load(number, typ=I64), layout.flow.kernel.cluster)
    with _each_warp(b, frames, layout) as (frame, following):
        for axis, value in _in_cluster(b, frame, place, layout.flow.kernel.cluster).items():
            b.store(value, field(b, Frame, frame, axis))
        b.store(ir.Constant(I32, 0), field(b, Frame, frame, "resume"))
        b.branch(following)
    size = load_field(b, Launch, launch, "shared_bytes")
    for rank in range(layout.flow.kernel.blocks_together):
        start = b.gep(shared, [ir.Constant(I64, rank * STRIDE)], source_etype=I8)
        arguments = [start, ir.Constant(I8, UNWRITTEN), size, ir.Constant(I1, 0)]
        intrinsic(b, "memset", ir.VoidType(), *arguments, overloads=(POINTER, I64))


def _place(b: ir.IRBuilder, launch: Value, index: Value, cluster: Dim3) -> dict[str, Value]:
    """Return the coordinates of the first block of a cluster, or of a block where a cluster has one."""
    width, height = (
        b.zext(b.udiv(load_field(b, Launch, launch, f"grid_{axis}"), ir.Constant(I32, side)), I64)
        for axis, side in zip("xy", cluster, strict=False)
    )
    row = b.udiv(index, width)
    place = {"x": b.urem(index, width), "y": b.urem(row, height), "z": b.udiv(row, height)}
    return {
        axis: b.mul(b.trunc(value, I32), ir.Constant(I32, side))
        for (axis, value), side in zip(place.items(), cluster, strict=True)
    }


def _in_cluster(b: ir.IRBuilder, frame: Value, place: dict[str, Value], cluster: Dim3) -> dict[str, Value]:
    """Return the coordinates of the block of a frame, by its rank in the cluster that begins at `place`."""
    if cluster == (1, 1, 1):
        return place
    width, height = (ir.Constant(I32, side) for side in cluster[:2])
    rank = load_field(b, Frame, frame, "rank")
    row = b.udiv(rank, width)
    offsets = (b.urem(rank, width), b.urem(row, height), b.udiv(row, height))
    return {axis: b.add(start, by) for (axis, start), by in zip(place.items(), offsets, strict=True)}


def _start_check(b: ir.IRBuilder, launch: Value, frames: Value, layout: Layout) -> None:
    """Begin a block: a new interval, no atomic operation or fence, no local memory or register written."""
    stamp = _next_stamp(b, launch)
    for what in ("block", "shared"):
        b.store(stamp, field(b, Launch, launch, f"{what}_stamp"))
    for what in ("acquired", "fenced"):  # a fence orders what its own block does
        b.store(ir.Constant(I32, 0), field(b, Launch, launch, what))
    if layout.map_bytes:
        with _each_warp(b, frames, layout) as (frame, following):
            place = b.gep(frame, [ir.Constant(I64, layout.local_map_start)], source_etype=I8)
            size = ir.Constant(I64, layout.map_bytes)
            arguments = [place, ir.Constant(I8, 0), size, ir.Constant(I1, 0)]
            intrinsic(b, "memset", ir.VoidType(), *arguments, overloads=(POINTER, I64))
            b.branch(following)
    if RESERVED.name in layout.shared:
        _set_reserved(b, launch, stamp, layout)


def _set_reserved(b: ir.IRBuilder, launch: Value, stamp: Value, layout: Layout) -> None:
    """Note that what CUDA keeps for itself in shared memory is written: its own code looks after it."""
    shadow, granule = load_field(b, Launch, launch, "shared_shadow"), granules(layout.flow.kernel)["shared"]
    start = layout.shared[RESERVED.name]
    for place in range(start // granule, (start + RESERVED.size) // granule):
        b.store(stamp, b.gep(shadow, [ir.Constant(I64, 4 * place)], source_etype=I8))
    _next_stamp(b, launch)


def _next_stamp(b: ir.IRBuilder, launch: Value) -> Value:
    place = field(b, Launch, launch, "stamp")
    stamp = b.add(b.load(place, typ=I32), ir.Constant(I32, abi.STAMP_STEP))
    b.store(stamp, place)
    return stamp


def _end_interval(b: ir.IRBuilder, launch: Value, frames: Value, barrier: Value, layout: Layout) -> None:
    """End an interval: all warps are at a barrier or have ended, and a mixture is a mistake."""
    _next_stamp(b, launch)
    if not layout.barriers:
        return
    sites = ir.ArrayType(I32, len(layout.barriers))
    table = ir.GlobalVariable(b.module, sites, "barrier_sites")
    order = {id(instruction): i for i, instruction in enumerate(layout.flow.kernel.code)}
    places = [order[id(layout.flow.blocks[i].code[-1])] for i in layout.barriers]
    table.initializer = ir.Constant(sites, [ir.Constant(I32, place) for place in places])
    table.global_constant, table.linkage = True, "internal"
    waits = b.icmp_signed(">", barrier, ir.Constant(I32, 0))
    with _each_warp(b, frames, layout) as (frame, following):
        ended = b.icmp_signed("==", load_field(b, Frame, frame, "resume"), ir.Constant(I32, abi.ENDED))
        with b.if_then(b.and_(waits, ended), likely=False):
            number = b.sub(barrier, ir.Constant(I32, 1))
            site = b.load(b.gep(table, [ZERO, number], source_etype=sites), typ=I32)
            report_finding(b, launch, frame, abi.EXITED, site, ir.Constant(I32, 0))
        b.branch(following)


def _count_votes(b: ir.IRBuilder, frames: Value, layout: Layout) -> None:
    """Sum the votes of all warps that wait, and give each the sum."""
    voted, voters = entry_slot(b, I32), entry_slot(b, I32)
    for slot in (voted, voters):
        b.store(ZERO, slot)
    with _each_warp(b, frames, layout) as (frame, following):
        waits = b.icmp_signed(">", load_field(b, Frame, frame, "resume"), ZERO)
        with b.if_then(waits):
            for slot, name in ((voted, "votes"), (voters, "mask")):
                count = intrinsic(b, "ctpop", I32, load_field(b, Frame, frame, name))
                b.store(b.add(b.load(slot, typ=I32), count), slot)
        b.branch(following)
    with _each_warp(b, frames, layout) as (frame, following):
        b.store(b.load(voted, typ=I32), field(b, Frame, frame, "voted"))
        b.store(b.load(voters, typ=I32), field(b, Frame, frame, "voters"))
        b.branch(following)


def _run_warp(
    b: ir.IRBuilder,
    warp: ir.Function,
    launch: Value,
    frame: Value,
    barrier: Value,
    done: ir.Block,
    turns: _Turns | None,
) -> None:
    """Run a warp that has not ended to its next barrier, which must be the one the others wait at."""
    zero = ir.Constant(I32, 0)
    resume = load_field(b, Frame, frame, "resume")
    runs = b.icmp_signed(">=", resume, zero)
    with b.if_then(b.and_(runs, turns.takes(resume)) if turns else runs):
        state = b.call(warp, [launch, frame, resume])
        with b.if_then(b.icmp_signed("==", state, ir.Constant(I32, abi.STOPPED)), likely=False):
            b.branch(done)
        b.store(state, field(b, Frame, frame, "resume"))
        with b.if_then(turns.at_barrier(state) if turns else b.icmp_signed(">", state, zero)):
            first = b.load(barrier, typ=I32)
            fits = b.or_(b.icmp_signed("==", first, zero), b.icmp_signed("==", first, state))
            with b.if_then(b.not_(fits), likely=False):
                report(b, launch, frame, abi.DIFFERENT_BARRIERS, state, ir.Constant(I32, -1))
                b.store(first, field(b, Launch, launch, "error_other"))
                b.branch(done)
            b.store(state, barrier)
