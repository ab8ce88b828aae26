"""Emit atomic operations on memory: lane by lane, each as one atomic instruction of the host.

Reference: NVIDIA, Parallel Thread Execution ISA, 9.7.13 (atom, red).
"""

from dataclasses import replace

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.lanes import VARYING
from simt.code.abi import I1, I32, POINTER, Value
from simt.code.checked_access import entry_slot
from simt.code.emitter import Emitter
from simt.code.instructions import Kind, find, half, intrinsic
from simt.code.loadstore import checked_addresses, stored
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, unknown

_LLVM = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exch": "xchg",
    "inc": "uinc_wrap",
    "dec": "udec_wrap",
}


def emit(w: Warp, emitter: Emitter, instruction: Instruction, access: Access, stopped: ir.Block) -> None:
    """Check the addresses, then loop over the active lanes, lowest first."""
    kind = Kind(instruction.type)
    operands = stored(w, access, kind)
    addresses, mask = checked_addresses(w, emitter, instruction, access, operands, stopped)
    old = entry_slot(w.b, ir.VectorType(kind.llvm, WARP))
    w.b.store(ir.Constant(old.allocated_type, None), old)
    remaining = entry_slot(w.b, I32)
    w.b.store(mask, remaining)
    head, body, after = w.new_block("lanes"), w.new_block("lane"), w.new_block("after")
    w.b.branch(head)
    w.continue_in(head)
    left = w.b.load(remaining, typ=I32)
    w.b.cbranch(w.b.icmp_unsigned("!=", left, ir.Constant(I32, 0)), body, after)
    w.continue_in(body)
    lane = intrinsic(w.b, "cttz", I32, left, ir.Constant(I1, 1))
    pointer = w.b.inttoptr(w.b.extract_element(addresses, lane), POINTER)
    value = _one(w, instruction, kind, pointer, [w.b.extract_element(operand, lane) for operand in operands])
    w.b.store(w.b.insert_element(w.b.load(old, typ=old.allocated_type), value, lane), old)
    w.b.store(w.b.and_(left, w.b.sub(left, ir.Constant(I32, 1))), remaining)
    w.b.branch(head)
    w.continue_in(after)
    emitter.after(instruction, access, addresses, mask)
    for register in instruction.results:
        w.write(register, w.b.load(old, typ=old.allocated_type), VARYING, w.guard(instruction))


def _one(w: Warp, instruction: Instruction, kind: Kind, pointer: Value, operands: list[Value]) -> Value:
    """Emit the operation of one lane, and return the old value."""
    if "cas" in instruction.parts:
        return w.b.extract_value(w.b.cmpxchg(pointer, *operands, "monotonic"), 0)
    name = next((part for part in instruction.parts if part in (*_LLVM, "min", "max")), None)
    if name in ("min", "max"):
        llvm: str | None = name if kind.is_signed else f"u{name}"
    else:
        llvm = _LLVM.get(name or "")
    if kind.name in (*half.SCALARS, *half.PAIRS):
        return _half(w, instruction, f"{name}.{kind.name}", kind, pointer, operands[0])
    if kind.is_float:
        llvm = {"add": "fadd", "xchg": "xchg"}.get(llvm or "")
    if llvm is None or len(operands) != 1:
        raise unknown(instruction)
    return w.b.atomic_rmw(llvm, pointer, operands[0], "monotonic")


def _half(
    w: Warp, instruction: Instruction, opcode: str, kind: Kind, pointer: Value, operand: Value
) -> Value:
    """Compute the new half and retry until no other thread came between: hosts have no such atomic."""
    plain = replace(instruction, parts=tuple(opcode.split(".")))
    operation = find(plain)
    if operation is None:
        raise unknown(instruction)
    slot = entry_slot(w.b, kind.llvm)
    w.b.store(w.b.load(pointer, typ=kind.llvm, align=kind.bits // 8), slot)
    again, done = w.new_block("try"), w.new_block("tried")
    w.b.branch(again)
    w.continue_in(again)
    old = w.b.load(slot, typ=kind.llvm)
    new = operation.emit(w.b, plain, old, operand)
    answer = w.b.cmpxchg(pointer, old, new, "monotonic")
    w.b.store(w.b.extract_value(answer, 0), slot)
    w.b.cbranch(w.b.extract_value(answer, 1), done, again)
    w.continue_in(done)
    return old
