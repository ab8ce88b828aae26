"""Emit what the host does for a warp: `serve`, `poll` and `await`; and addresses in other blocks' memory.

The shared memory of the blocks of a cluster lies at distances of `STRIDE`. An address in another block's is
the block's own plus a multiple of that, so that any access may use it: `ld.shared::cluster` is `ld.shared`.
"""

from collections.abc import Sequence

from llvmlite import ir

from simt.analysis.lanes import UNIFORM, VARYING
from simt.analysis.layout import STRIDE
from simt.code.abi import I32, I64, POINTER, Frame, Launch, Value, field, load_field
from simt.code.checked_access import entry_slot
from simt.code.instructions import Kind, constant
from simt.code.vectors import broadcast, element, vector_type
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, Operand, Register, Symbol, Vector

LANES = ir.VectorType(I64, WARP)
SERVE = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, POINTER, POINTER])


def emit(w: Warp, instruction: Instruction) -> None:
    """Emit the call of the host that an instruction stands for, and take its results."""
    b, (result, *inputs) = w.b, instruction.operands
    results = result.items if isinstance(result, Vector) else (result,)
    values = [w.value(operand, Kind("b64"), WARP) for operand in inputs]
    taken = call_host(b, w.launch, w.frame, w.site(instruction), w.active(instruction), values, len(results))
    is_uniform = w.flow.rules.result(instruction, w.flow.shapes).shape == UNIFORM
    for number, each in enumerate(results):
        if isinstance(each, Register) and each.name != "_":
            value = b.load(_at(b, taken, number), typ=LANES)
            kind = w.declared(each)
            value = b.trunc(value, ir.VectorType(ir.IntType(kind.bits), WARP)) if kind.bits < 64 else value
            if is_uniform:
                value = element(b, value, 0)
            w.write(each, value, UNIFORM if is_uniform else VARYING, w.guard(instruction))


def call_host(
    b: ir.IRBuilder,
    launch: Value,
    frame: Value,
    site: Value,
    mask: Value,
    values: Sequence[Value],
    results: int = 0,
) -> Value:
    """Call the host: (frame, number of the instruction, lanes, operands, results), 32 times 64 bits each.

    The host is not called when no lane takes part. Return where the results are.
    """
    given, taken = (entry_slot(b, ir.ArrayType(LANES, max(1, count))) for count in (len(values), results))
    for number, value in enumerate(values):
        b.store(value, _at(b, given, number))
    with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
        function = b.inttoptr(b.load(field(b, Launch, launch, "serve"), typ=I64), SERVE.as_pointer())
        b.call(function, [frame, site, mask, *(b.bitcast(each, POINTER) for each in (given, taken))])
    return taken


def _at(b: ir.IRBuilder, slot: Value, number: int) -> Value:
    return b.gep(slot, [ir.Constant(I32, 0), ir.Constant(I32, number)])


def map_address(w: Warp, instruction: Instruction) -> None:
    """Emit `mapa d, a, rank`: where in the block `rank` lies what lies at `a` in this block."""
    b, shape = w.b, w.flow.rules.result(instruction, w.flow.shapes).shape
    register, address, rank = instruction.operands
    assert isinstance(register, Register)
    kind = w.declared(register)
    start = w.value(address, Kind(f"s{kind.bits}"), shape.bases)
    by = w.value(rank, Kind("s32"), shape.bases)
    by = b.sub(by, broadcast(b, load_field(b, Frame, w.frame, "rank"), shape.bases))
    wide = vector_type(ir.IntType(kind.bits), shape.bases)
    by = b.sext(by, wide) if kind.bits > 32 else by
    w.write(register, b.add(start, b.mul(by, constant(by, STRIDE))), shape, w.guard(instruction))


def rank_of(w: Warp, instruction: Instruction) -> None:
    """Emit `getctarank d, a`: the rank of the block in whose shared memory the address lies."""
    b, shape = w.b, w.flow.rules.result(instruction, w.flow.shapes).shape
    register, operand = instruction.operands
    assert isinstance(register, Register)
    address = w.value(operand, _kind(w, operand), shape.bases)
    if "shared" not in instruction.opcode:
        start = b.ptrtoint(w.shared, I64)
        address = b.sub(w.cast(address, Kind("s64")), broadcast(b, start, shape.bases))
    address = w.cast(address, Kind("s32"))
    by = b.ashr(address, constant(address, STRIDE.bit_length() - 1))
    rank = broadcast(b, load_field(b, Frame, w.frame, "rank"), shape.bases)
    w.write(register, b.add(rank, by), shape, w.guard(instruction))


def _kind(w: Warp, operand: Operand) -> Kind:
    if isinstance(operand, Register):
        return Kind(f"s{w.declared(operand).bits}")
    return Kind("s64") if isinstance(operand, Symbol) else Kind("s32")
