"""Emit where an access goes: its bases, one address per lane, and the bounds it must keep."""

from dataclasses import replace

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.layout import STRIDE
from simt.code.abi import I64, Frame, Launch, Value, load_field
from simt.code.checked_access import local_bounds
from simt.code.instructions import Kind, constant
from simt.code.memory import Where
from simt.code.special import local_start
from simt.code.vectors import broadcast, count_of, element, vector_type
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Immediate, Instruction, Register


def where(w: Warp, access: Access) -> Where:
    """Return the address of an access, without its constant offset."""
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
    if (offset := w.offset()) is not None:
        address = w.b.add(address, broadcast(w.b, offset, count_of(address)))
    return Where(address, access.shape, w.shared if access.space == "shared" else None)


def lane_addresses(w: Warp, access: Access) -> Value:
    """Return a 64-bit host address for each lane."""
    place = where(w, access)
    base = w.b.add(place.base, constant(place.base, access.offsets[0]))
    return replace(place, base=base).lane_addresses(w.b)


def bounds(w: Warp, access: Access) -> tuple[Value, Value]:
    """Return the first address and the end of the memory that the access most likely goes to.

    For local memory, these are lane 0's, or each lane's where each has its own base.
    """
    if access.space == "shared":
        return ir.Constant(I64, 0), load_field(w.b, Launch, w.launch, "shared_bytes")
    if access.space == "local":
        starts, ends = local_bounds(w.b, w.frame, w.layout)
        if access.shape.group == 1:
            return starts, ends
        return element(w.b, starts, 0), element(w.b, ends, 0)
    assert access.range is not None
    return w.range(access.range, "start"), w.range(access.range, "end")


def is_in_space(w: Warp, instruction: Instruction) -> None:
    """Emit `isspacep.shared p, a`: p says whether the generic address is in shared (local, global) memory."""
    b, shape = w.b, w.flow.rules.result(instruction, w.flow.shapes).shape
    register, operand = instruction.operands
    address = w.value(operand, Kind("u64"), shape.bases)
    shared, local = b.ptrtoint(w.shared, I64), local_start(w)
    together = w.flow.kernel.blocks_together
    if together > 1:  # from the memory of the block of rank 0 to the end of the last one's
        rank = b.zext(load_field(b, Frame, w.frame, "rank"), I64)
        shared = b.sub(shared, b.mul(rank, ir.Constant(I64, STRIDE)))
    size = b.add(load_field(b, Launch, w.launch, "shared_bytes"), ir.Constant(I64, (together - 1) * STRIDE))
    ends = {
        "shared": (shared, b.add(shared, size)),
        "local": (local, b.add(local, ir.Constant(I64, WARP * w.layout.local_bytes))),
    }
    inside = {
        space: b.and_(
            b.icmp_unsigned(">=", address, broadcast(b, low, shape.bases)),
            b.icmp_unsigned("<", address, broadcast(b, high, shape.bases)),
        )
        for space, (low, high) in ends.items()
    }
    nowhere = b.and_(inside["shared"], b.not_(inside["shared"]))
    answers = inside | {"global": b.not_(b.or_(inside["shared"], inside["local"]))}
    space = next((part for part in instruction.parts if part in answers), "")
    w.write(register, answers.get(space, nowhere), shape, w.guard(instruction))  # type: ignore[arg-type]
