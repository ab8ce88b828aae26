"""Count the sectors (32 bytes each) and different addresses of an access to global memory.

Where the addresses are known, the counts are numbers. Where only the lanes' offsets are known, they depend
only on where in its sector the base lies, and code looks them up in a table. Elsewhere a function examines
all lanes.
Rule: Nsight Compute documentation, "Memory Tables".
"""

from collections.abc import Sequence

from llvmlite import ir

from simt.code.abi import I1, I8, I32, I64, POINTER, Counter, Range, Record, Value, field, load_field
from simt.code.checked_access import LANES_64, defined_once, each_distinct, each_range
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import all_true, broadcast, element, lanes_of, shuffled
from simt.common.limits import WARP

SECTOR_BYTES = 32
LANES_32 = ir.VectorType(I32, WARP)
IRREGULAR = -(1 << 63)  # the stride of lanes that lie anywhere
ONE, FIVE = ir.Constant(I64, 1), ir.Constant(I64, SECTOR_BYTES.bit_length() - 1)


def touched_sectors(addresses: Sequence[int], size: int) -> list[int]:
    """List the sectors that a warp's access to global memory touches, `size` bytes per lane."""
    return sorted({byte // SECTOR_BYTES for a in addresses for byte in (a, a + size - 1)})


def add(b: ir.IRBuilder, structure: Record, row: Value, name: str, amount: Value) -> None:
    """Emit code that adds to a field of a record."""
    place = field(b, structure, row, name)
    b.store(b.add(b.load(place, typ=I64), amount), place)


def delta(b: ir.IRBuilder, shift: Value, start: Value, unit: int = SECTOR_BYTES) -> Value:
    """Emit how far into its sector, or another unit, an address shifted from `start` lies, in bytes."""
    return b.and_(b.sub(shift, start), ir.Constant(I64, unit - 1))


def sector_table(module: ir.Module, offsets: Sequence[int], size: int) -> ir.GlobalVariable:
    """Define a table of the sectors that lanes at `offsets` touch, by the base's position in its sector."""
    counts = [len(touched_sectors([place + o for o in offsets], size)) for place in range(SECTOR_BYTES)]
    name = "sectors." + ".".join(map(str, counts))
    if name not in module.globals:
        table = ir.GlobalVariable(module, ir.ArrayType(I8, SECTOR_BYTES), name)
        table.initializer = ir.Constant(table.value_type, [ir.Constant(I8, n) for n in counts])
        table.global_constant, table.linkage = True, "internal"
    return module.globals[name]


def scattered_function(module: ir.Module) -> ir.Function:
    """Define the function that adds distinct sectors and addresses of lanes that may lie anywhere.

    void scattered(<32 x i64> addresses, i32 mask, ptr counter). It also notes the lanes' stride. Where the
    addresses of all lanes go up or down, each neighbour that differs adds one.
    """
    return defined_once(
        module, "scattered", ir.FunctionType(ir.VoidType(), [LANES_64, I32, POINTER]), _emit_scattered
    )


def _emit_scattered(function: ir.Function) -> None:
    addresses, mask, counter = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    before = shuffled(b, addresses, None, [0, *range(WARP - 1)])
    step = b.sub(addresses, before)
    stride = element(b, step, 1)
    steady = b.bitcast(b.icmp_signed("==", step, broadcast(b, stride, WARP)), I32)
    common = b.icmp_unsigned(">=", intrinsic(b, "ctpop", I32, steady), ir.Constant(I32, WARP // 2))
    b.store(b.select(common, stride, ir.Constant(I64, IRREGULAR)), field(b, Counter, counter, "stride"))
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
            add(b, Counter, counter, what, b.add(ONE, b.zext(changes, I64)))
        b.ret_void()
    some = b.extract_element(addresses, intrinsic(b, "cttz", I32, mask, ir.Constant(I1, 1)))
    filled = b.select(lanes_of(b, mask), addresses, broadcast(b, some, WARP))  # idle lanes copy an active one
    distance = b.sub(filled, broadcast(b, some, WARP))
    near = b.trunc(distance, LANES_32)
    with b.if_else(all_true(b, b.icmp_signed("==", b.sext(near, LANES_64), distance))) as (close, far):
        with close:
            offset = b.trunc(b.and_(some, ir.Constant(I64, SECTOR_BYTES - 1)), I32)
            places = b.ashr(b.add(near, broadcast(b, offset, WARP)), constant(near, 5))
            for what, x in (("sectors", places), ("distinct", near)):
                add(b, Counter, counter, what, b.call(_distinct_function(function.module), [x]))
        with far:
            for what, x in (("sectors", sectors), ("distinct", addresses)):
                with each_distinct(b, x, mask):
                    add(b, Counter, counter, what, ONE)
    b.ret_void()


def _distinct_function(module: ir.Module) -> ir.Function:
    """Define i64 distinct(<32 x i32>), which counts the different values.

    A lane counts if no lane before it in its half of the warp has its value and, in the second half, no lane
    of the first half has it either.
    """
    return defined_once(module, "distinct_values", ir.FunctionType(I64, [LANES_32]), _emit_distinct)


def _emit_distinct(function: ir.Function) -> None:
    (values,) = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    half = WARP // 2

    def equal(sources: dict[int, int]) -> Value:
        """Find which of these lanes equal their sources."""
        other = shuffled(b, values, None, [sources.get(lane, lane) for lane in range(WARP)])
        named = ir.Constant(I32, sum(1 << lane for lane in sources))
        return b.and_(b.bitcast(b.icmp_unsigned("==", values, other), I32), named)

    seen: Value = ir.Constant(I32, 0)
    for k in range(1, half):
        seen = b.or_(seen, equal({lane: lane - k for lane in range(WARP) if lane % half >= k}))
    for k in range(half):
        seen = b.or_(seen, equal({lane: (lane + k) % half for lane in range(half, WARP)}))
    b.ret(b.zext(intrinsic(b, "ctpop", I32, b.not_(seen)), I64))


def sector_places(b: ir.IRBuilder, launch: Value, addresses: Value, unit: int = SECTOR_BYTES) -> Value:
    """Move the addresses so that sectors, or larger units, begin where they would on a GPU."""
    slot = b.alloca(LANES_64)
    b.store(addresses, slot)
    with each_range(b, launch) as range_:
        start, end, shift = (load_field(b, Range, range_, name) for name in ("start", "end", "shift"))
        inside = b.and_(
            b.icmp_signed(">=", addresses, broadcast(b, start, WARP)),
            b.icmp_signed("<", addresses, broadcast(b, end, WARP)),
        )
        moved = b.add(addresses, broadcast(b, delta(b, shift, start, unit), WARP))
        b.store(b.select(inside, moved, b.load(slot, typ=LANES_64)), slot)
    return b.load(slot, typ=LANES_64)
