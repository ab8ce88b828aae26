"""Emit instructions that work on a warp as a whole: shuffles, votes, matches, reductions, `printf`.

A member mask may differ between lanes that run together, as in tiles of 16 threads. Each lane then gets the
answer for its own mask. Reference: NVIDIA, Parallel Thread Execution ISA, 9.7.9 (shfl) and 9.7.14 (vote,
match, redux, elect, activemask).
"""

from collections.abc import Callable

from llvmlite import ir

from simt.analysis.lanes import UNIFORM, VARYING
from simt.code import matrix, services, textures, warpgroup
from simt.code.abi import I32, I64, POINTER, Launch, Value, field
from simt.code.addresses import is_in_space
from simt.code.checked_access import entry_slot
from simt.code.instructions import Kind, constant, intrinsic
from simt.code.vectors import broadcast, lanes_of, mask_of
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, Register, Vector

Emit = Callable[[Warp, Instruction], None]
LANES = ir.VectorType(I32, WARP)


def find(instruction: Instruction) -> Emit | None:
    """Return the function that emits an instruction, or None."""
    return EMITTERS.get(instruction.parts[0])


def _shuffle(w: Warp, instruction: Instruction) -> None:
    """Emit `shfl`: each lane reads another's register, or its own beyond the edge of its segment."""
    b, written = w.b, instruction.results
    value, by, control = (w.value(operand, Kind("b32"), WARP) for operand in instruction.operands[1:4])
    lane = ir.Constant(LANES, [ir.Constant(I32, i) for i in range(WARP)])
    segment = b.and_(b.lshr(control, constant(control, 8)), constant(control, 31))
    limit = b.and_(control, constant(control, 31))
    first = b.and_(lane, segment)
    last = b.or_(first, b.and_(limit, b.not_(segment)))
    by = b.and_(by, constant(by, 31))
    mode = next(part for part in instruction.parts if part in ("up", "down", "bfly", "idx"))
    source = {
        "up": lambda: b.sub(lane, by),
        "down": lambda: b.add(lane, by),
        "bfly": lambda: b.xor(lane, by),
        "idx": lambda: b.or_(first, b.and_(by, b.not_(segment))),
    }[mode]()
    inside = b.icmp_signed(">=" if mode == "up" else "<=", source, last)
    source = b.and_(b.select(inside, source, lane), constant(lane, WARP - 1))
    w.write(written[0], _picked(w, value, source), VARYING, w.guard(instruction))
    if len(written) > 1:
        w.write(written[1], inside, VARYING, w.guard(instruction))


def _picked(w: Warp, value: Value, source: Value) -> Value:
    """Emit value[source[lane]] for each lane, through the stack."""
    b, slot = w.b, entry_slot(w.b, LANES)
    b.store(value, slot)
    addresses = b.add(
        broadcast(b, b.ptrtoint(slot, I64), WARP),
        b.zext(b.shl(source, constant(source, 2)), ir.VectorType(I64, WARP)),
    )
    pointers = b.inttoptr(addresses, ir.VectorType(POINTER, WARP))
    everyone = lanes_of(b, ir.Constant(I32, -1))
    arguments = [pointers, ir.Constant(I32, 4), everyone, ir.Constant(LANES, None)]
    return intrinsic(b, "masked.gather", LANES, *arguments, overloads=(LANES, pointers.type))


def _members(w: Warp, instruction: Instruction) -> tuple[Value, bool]:
    """Return the active lanes in the member mask: one mask if all lanes give the same, else one per lane."""
    active, mask = w.active(instruction), instruction.operands[-1]
    if "sync" not in instruction.parts:
        return active, True
    shape = w.flow.rules.operand(mask, w.flow.shapes)
    if shape == UNIFORM:
        return w.b.and_(active, w.value(mask, Kind("b32"), 1)), True
    return w.b.and_(broadcast(w.b, active, WARP), w.value(mask, Kind("b32"), WARP)), False


def _vote(w: Warp, instruction: Instruction) -> None:
    """Emit a vote of the active lanes named in the member mask: all, any, uniform, or the ballot."""
    b = w.b
    register, predicate = instruction.operands[:2]
    members, same = _members(w, instruction)
    yes = mask_of(b, w.value(predicate, Kind("pred"), WARP))
    yes = b.and_(yes if same else broadcast(b, yes, WARP), members)
    if "ballot" in instruction.parts:
        result = yes
    else:
        everyone, nobody = b.icmp_unsigned("==", yes, members), b.icmp_unsigned("==", yes, constant(yes, 0))
        results_by_name = {"all": everyone, "any": b.not_(nobody), "uni": b.or_(everyone, nobody)}
        result = next(value for name, value in results_by_name.items() if name in instruction.parts)
    w.write(register, result, UNIFORM if same else VARYING, w.guard(instruction))  # type: ignore[arg-type]


def _match(w: Warp, instruction: Instruction) -> None:
    """Emit `match.any` (the lanes that have my value) or `match.all` (the members if all agree, else 0)."""
    b, written = w.b, instruction.results
    value = w.value(instruction.operands[1], Kind(instruction.type), WARP)
    members, same = _members(w, instruction)
    members = broadcast(b, members, WARP) if same else members
    equal = ir.Constant(LANES, None)
    for lane in range(WARP):
        index = ir.Constant(I32, lane)
        others = broadcast(b, b.extract_element(value, index), WARP)
        equal = b.insert_element(equal, mask_of(b, b.icmp_unsigned("==", value, others)), index)
    equal = b.and_(equal, members)
    guard = w.guard(instruction)
    if "any" in instruction.parts:
        w.write(written[0], equal, VARYING, guard)
        return
    everyone = b.icmp_unsigned("==", equal, members)
    w.write(written[0], b.select(everyone, members, constant(members, 0)), VARYING, guard)
    if len(written) > 1:
        w.write(written[1], everyone, VARYING, guard)


_NEUTRAL = {"add": 0, "or": 0, "xor": 0, "and": -1}


def _reduce(w: Warp, instruction: Instruction) -> None:
    """Emit `redux`: the members' sum, minimum or maximum, or their bits combined."""
    b = w.b
    name = next(part for part in instruction.parts if part in (*_NEUTRAL, "min", "max"))
    signed = instruction.type[0] == "s"
    neutral = _NEUTRAL.get(name)
    if neutral is None:
        largest, smallest = (0x7FFFFFFF, -0x80000000) if signed else (0xFFFFFFFF, 0)
        neutral, name = (largest if name == "min" else smallest), f"{'s' if signed else 'u'}{name}"
    value = w.value(instruction.operands[1], Kind("b32"), WARP)
    members, same = _members(w, instruction)

    def one(mask: Value) -> Value:
        taking_part = b.select(lanes_of(b, mask), value, constant(value, neutral))
        return intrinsic(b, f"vector.reduce.{name}", I32, taking_part, overloads=(LANES,))

    if same:
        result = one(members)
    else:
        result = ir.Constant(LANES, None)
        for lane in range(WARP):
            index = ir.Constant(I32, lane)
            result = b.insert_element(result, one(b.extract_element(members, index)), index)
    w.write(instruction.results[0], result, UNIFORM if same else VARYING, w.guard(instruction))


def _elect(w: Warp, instruction: Instruction) -> None:
    """Emit `elect.sync d|p, members`: d is the lowest member, and p holds for that lane only."""
    b, guard = w.b, w.guard(instruction)
    members, same = _members(w, instruction)
    members = broadcast(b, members, WARP) if same else members
    leader = intrinsic(b, "cttz", LANES, members, ir.Constant(ir.IntType(1), 0))
    lane = ir.Constant(LANES, [ir.Constant(I32, i) for i in range(WARP)])
    first = instruction.operands[0]
    items = first.items if isinstance(first, Vector) else (first,)
    for item, value in zip(items, (leader, b.icmp_unsigned("==", leader, lane)), strict=False):
        if isinstance(item, Register) and item.name != "_":
            w.write(item, value, VARYING, guard)


def _active_mask(w: Warp, instruction: Instruction) -> None:
    w.write(instruction.results[0], w.active(instruction), UNIFORM, w.guard(instruction))


def _print(w: Warp, instruction: Instruction) -> None:
    """Pass the addresses of each lane's format and arguments to the host."""
    b, addresses = w.b, ir.VectorType(I64, WARP)
    slots = [entry_slot(b, addresses) for _ in instruction.operands]
    for slot, operand in zip(slots, instruction.operands, strict=True):
        b.store(w.value(operand, Kind("b64"), WARP), slot)
    type_ = ir.FunctionType(ir.VoidType(), [I32, POINTER, POINTER])
    function = b.inttoptr(b.load(field(b, Launch, w.launch, "print"), typ=I64), type_.as_pointer())
    b.call(function, [w.active(instruction), *(b.bitcast(slot, POINTER) for slot in slots)])


EMITTERS: dict[str, Emit] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
    "activemask": _active_mask,
    "printf": _print,
    "isspacep": is_in_space,
    "mma": matrix.emit,
    "wgmma": warpgroup.emit,
    "tex": textures.fetch,
    "tld4": textures.fetch,
    "suaddr": textures.locate,
    "serve": services.emit,
    "poll": services.emit,
    "await": services.emit,
    "mapa": services.map_address,
    "getctarank": services.rank_of,
}
