"""Emit instructions that treat a warp as a whole: shuffles, votes, the active mask, `printf`.

Reference: NVIDIA, Parallel Thread Execution ISA, 9.7.9 (shfl) and 9.7.13 (vote, activemask).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from labkit.simt.abi import I32, I64, POINTER, ZERO, Launch, field
from labkit.simt.blocks import results
from labkit.simt.careful import entry_slot
from labkit.simt.instructions import Kind, constant, intrinsic
from labkit.simt.lanes import UNIFORM, VARYING, WARP
from labkit.simt.ptx import Instruction
from labkit.simt.vectors import broadcast, lanes_of, mask_of
from labkit.simt.warp import Warp

Value = Any
Emit = Callable[[Warp, Instruction], None]
LANES = ir.VectorType(I32, WARP)


def find(instruction: Instruction) -> Emit | None:
    """The emitting function of an instruction, or None."""
    return {"shfl": _shuffle, "vote": _vote, "activemask": _active_mask, "printf": _print}.get(
        instruction.parts[0]
    )


def _shuffle(w: Warp, instruction: Instruction) -> None:
    """Each lane reads a register of another; beyond the edge of its segment it reads its own."""
    b, written = w.b, results(instruction)
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
    """value[source[lane]] for each lane, by way of the stack."""
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


def _vote(w: Warp, instruction: Instruction) -> None:
    """Over the active lanes named in the member mask: all, any, uniform, or the ballot."""
    b = w.b
    register, predicate = instruction.operands[:2]
    members = w.active(instruction)
    yes = b.and_(mask_of(b, w.value(predicate, Kind("pred"), WARP)), members)
    if "ballot" in instruction.parts:
        result = yes
    else:
        everyone, nobody = b.icmp_unsigned("==", yes, members), b.icmp_unsigned("==", yes, ZERO)
        result = {"all": everyone, "any": b.not_(nobody), "uni": b.or_(everyone, nobody)}[
            instruction.parts[-2]
        ]
    w.write(register, result, UNIFORM, w.guard(instruction))  # type: ignore[arg-type]


def _active_mask(w: Warp, instruction: Instruction) -> None:
    w.write(results(instruction)[0], w.active(instruction), UNIFORM, w.guard(instruction))


def _print(w: Warp, instruction: Instruction) -> None:
    """Hand the addresses of each lane's format and arguments to the host."""
    b, addresses = w.b, ir.VectorType(I64, WARP)
    slots = [entry_slot(b, addresses) for _ in instruction.operands]
    for slot, operand in zip(slots, instruction.operands, strict=True):
        b.store(w.value(operand, Kind("b64"), WARP), slot)
    type_ = ir.FunctionType(ir.VoidType(), [I32, POINTER, POINTER])
    function = b.inttoptr(b.load(field(b, Launch, w.launch, "print"), typ=I64), type_.as_pointer())
    b.call(function, [w.active(instruction), *(b.bitcast(slot, POINTER) for slot in slots)])
