"""Emit a warp's loads and stores: checked, and with as few host instructions as lane offsets allow.

An access has a fast form, used when one range check shows that all 32 lanes are inside one array. Lanes at
constant offsets then become a few plain vector loads, and others one gather. The careful form calls a
function that examines each active lane, reports the first mistake, and counts sectors and bank conflicts in a
counted run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.lanes import Shape, absorbed
from simt.code.abi import I1, I32, I64, POINTER, Value
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import (
    all_true,
    assembled,
    broadcast,
    count_of,
    element,
    expanded,
    lanes_of,
    last_lane,
    mask_of,
    reshaped,
    shuffled,
)
from simt.common.limits import WARP

MAX_RUNS = 8  # more separate runs than this are slower than a gather (8 to 11 ns for 32 lanes)


@dataclass(frozen=True)
class Where:
    """Where an access goes: `base` in `shape`, host addresses or offsets from the pointer `origin`."""

    base: Value  # 64-bit integers
    shape: Shape
    origin: Value | None = None  # the host pointer to which shared offsets are relative

    def pointer(self, b: ir.IRBuilder, address: Value) -> Value:
        """Return the address as a pointer into this memory."""
        if self.origin is not None:
            return b.gep(self.origin, [address], source_etype=ir.IntType(8))
        return b.inttoptr(address, POINTER)

    def lane_addresses(self, b: ir.IRBuilder) -> Value:
        """Return a 64-bit host address for each lane."""
        addresses = expanded(b, reshaped(b, self.base, self.shape, absorbed(self.shape)), WARP)
        if self.origin is None:
            return addresses
        return b.add(addresses, broadcast(b, b.ptrtoint(self.origin, I64), WARP))


@dataclass(frozen=True)
class VectorAccess:
    """Neighbouring elements that one vector load fetches, each with the (item, lane) pairs it serves."""

    group: int  # number of its base
    offset: int  # in bytes from that base
    elements: tuple[tuple[tuple[int, int], ...], ...]


def plan(shape: Shape, size: int, offsets: Sequence[int], lanes: Sequence[int]) -> list[VectorAccess] | None:
    """Split an access of `lanes`, `size` bytes at each of `offsets`, into runs; None if too many."""
    runs: list[VectorAccess] = []
    for group in range(shape.bases):
        served: dict[int, list[tuple[int, int]]] = {}
        for lane in (lane for lane in lanes if lane // shape.group == group):
            for item, offset in enumerate(offsets):
                served.setdefault(shape.lane_offsets()[lane] + offset, []).append((item, lane))
        run: list[int] = []
        for position in [*sorted(served), None]:
            if run and position != run[-1] + size:
                runs.append(VectorAccess(group, run[0], tuple(tuple(served[p]) for p in run)))
                run = []
            if position is not None:
                run.append(position)
        if len(runs) > MAX_RUNS:
            return None
    return runs


def in_range(
    b: ir.IRBuilder, where: Where, first: int, end: int, low: Value, high: Value, alignment: int, mask: Value
) -> Value:
    """Test whether all lanes' bytes [address + first, address + end) are in [low, high) and aligned.

    `first` and `end` are relative to the bases. Where each lane has its own address, only active lanes count.
    """
    count = count_of(where.base)
    above = b.icmp_signed(">=", b.add(where.base, constant(where.base, first)), expanded(b, low, count))
    below = b.icmp_signed("<=", b.add(where.base, constant(where.base, end)), expanded(b, high, count))
    remainder = b.and_(b.add(where.base, constant(where.base, first)), constant(where.base, alignment - 1))
    good = b.and_(b.and_(above, below), b.icmp_unsigned("==", remainder, constant(remainder, 0)))
    if count < WARP:
        return all_true(b, good)
    wrong = b.and_(b.not_(mask_of(b, good)), mask)
    return b.icmp_unsigned("==", wrong, constant(wrong, 0))


def load(
    b: ir.IRBuilder, where: Where, kind: ir.Type, size: int, offsets: Sequence[int], mask: Value
) -> list[Value]:
    """Load an item at each of `offsets` from the lanes' addresses, in the shape `absorbed(where.shape)`."""
    group = absorbed(where.shape).group
    lanes = range(0, WARP, group)
    runs = plan(where.shape, size, offsets, lanes)
    if runs is None or where.shape.group == 1:
        pointers = b.inttoptr(where.lane_addresses(b), ir.VectorType(POINTER, WARP))
        return [_reduced(b, _gather(b, pointers, kind, size, offset, mask), group) for offset in offsets]
    vectors = [_load_run(b, where, run, kind, size) for run in runs]
    return [_collect(b, runs, vectors, item, lanes) for item in range(len(offsets))]


def store(
    b: ir.IRBuilder, where: Where, values: Sequence[Value], size: int, offsets: Sequence[int], mask: Value
) -> None:
    """Store each of `values` (one value per lane) at its offset from each active lane's address."""
    lanes = range(WARP)
    if absorbed(where.shape).group == WARP:  # all lanes write to one address: the last one wins
        lane = last_lane(b, mask)
        address = element(b, reshaped(b, where.base, where.shape, absorbed(where.shape)), 0)
        for value, offset in zip(values, offsets, strict=True):
            pointer = where.pointer(b, b.add(address, ir.Constant(I64, offset)))
            b.store(b.extract_element(value, lane), pointer, align=size)
        return
    runs = plan(where.shape, size, offsets, lanes)
    if (
        runs is None
        or where.shape.group == 1
        or any(len(served) > 1 for run in runs for served in run.elements)
    ):
        pointers = b.inttoptr(where.lane_addresses(b), ir.VectorType(POINTER, WARP))
        for value, offset in zip(values, offsets, strict=True):
            _scatter(b, pointers, value, size, offset, mask)
        return
    for run in runs:
        _store_run(b, where, run, values, size, mask)


def _reduced(b: ir.IRBuilder, values: Value, group: int) -> Value:
    """Keep each group's first lane."""
    count = WARP // group
    return (
        shuffled(b, values, None, range(0, WARP, group))
        if 1 < count < WARP
        else element(b, values, 0)
        if count == 1
        else values
    )


def _offset_pointers(b: ir.IRBuilder, pointers: Value, offset: int) -> Value:
    if offset == 0:
        return pointers
    addresses = b.ptrtoint(pointers, ir.VectorType(I64, WARP))
    return b.inttoptr(b.add(addresses, constant(addresses, offset)), pointers.type)


def _gather(b: ir.IRBuilder, pointers: Value, kind: ir.Type, size: int, offset: int, mask: Value) -> Value:
    vector = ir.VectorType(kind, WARP)
    arguments = [
        _offset_pointers(b, pointers, offset),
        ir.Constant(I32, size),
        lanes_of(b, mask),
        ir.Constant(vector, None),
    ]
    return intrinsic(b, "masked.gather", vector, *arguments, overloads=(vector, pointers.type))


def _scatter(b: ir.IRBuilder, pointers: Value, value: Value, size: int, offset: int, mask: Value) -> None:
    arguments = [value, _offset_pointers(b, pointers, offset), ir.Constant(I32, size), lanes_of(b, mask)]
    intrinsic(b, "masked.scatter", ir.VoidType(), *arguments, overloads=(value.type, pointers.type))


def _run_pointer(b: ir.IRBuilder, where: Where, run: VectorAccess) -> Value:
    base = element(b, where.base, run.group)
    return where.pointer(b, b.add(base, constant(base, run.offset)))


def _load_run(b: ir.IRBuilder, where: Where, run: VectorAccess, kind: ir.Type, size: int) -> Value:
    type_ = ir.VectorType(kind, len(run.elements)) if len(run.elements) > 1 else kind
    return b.load(_run_pointer(b, where, run), align=size, typ=type_)


def _collect(
    b: ir.IRBuilder, runs: Sequence[VectorAccess], vectors: Sequence[Value], item: int, lanes: Sequence[int]
) -> Value:
    """Collect what the runs loaded of one item: one element for each of `lanes`."""
    place = {
        lane: (index, position)
        for index, run in enumerate(runs)
        for position, served in enumerate(run.elements)
        for served_item, lane in served
        if served_item == item
    }
    wanted = [place[lane] for lane in lanes]
    if all(count_of(vectors[index]) == 1 for index, _ in wanted):
        return assembled(b, [vectors[index] for index, _ in wanted])
    result: Value = None
    for index in sorted({index for index, _ in wanted}):
        vector = vectors[index]
        vector = assembled(b, [vector, vector]) if count_of(vector) == 1 else vector
        spread = shuffled(b, vector, None, [position if i == index else 0 for i, position in wanted])
        chosen = [lane + len(wanted) * (i == index) for lane, (i, _) in enumerate(wanted)]
        result = spread if result is None else shuffled(b, result, spread, chosen)
    return element(b, result, 0) if len(wanted) == 1 else result


def _store_run(
    b: ir.IRBuilder, where: Where, run: VectorAccess, values: Sequence[Value], size: int, mask: Value
) -> None:
    pairs = [served[0] for served in run.elements]
    everything = values[0]
    if len(values) > 1:
        everything = _concatenated(b, values)
    predicate = lanes_of(b, mask)
    pointer = _run_pointer(b, where, run)
    if len(pairs) == 1:
        item, lane = pairs[0]
        vector = broadcast(b, element(b, everything, item * WARP + lane), 2)
        first = ir.Constant(ir.VectorType(I1, 2), [ir.Constant(I1, 1), ir.Constant(I1, 0)])
        active = b.and_(broadcast(b, element(b, predicate, lane), 2), first)
    else:
        vector = shuffled(b, everything, None, [item * WARP + lane for item, lane in pairs])
        active = shuffled(b, predicate, None, [lane for _, lane in pairs])
    arguments = [vector, pointer, ir.Constant(I32, size), active]
    intrinsic(b, "masked.store", ir.VoidType(), *arguments, overloads=(vector.type, POINTER))


def _concatenated(b: ir.IRBuilder, values: Sequence[Value]) -> Value:
    """Join all values (2 or 4) into one vector, item after item."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [shuffled(b, x, y, range(count_of(x) + count_of(y))) for x, y in pairs]
    return values[0]
