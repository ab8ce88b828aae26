"""Turn `ldmatrix`, `stmatrix` and `movmatrix` into shuffles, loads and stores.

Reference: PTX ISA, 9.7.14.5.
"""

from simt.lowering.writer import Writer
from simt.ptx import TYPE_BYTES, Address, Immediate, Instruction, Operand, Register, Symbol, Vector

LANE = Symbol("%laneid")


def lane_numbers(w: Writer) -> tuple[Register, Register, Register]:
    """Return the lane, the row of an 8 x 8 matrix of which it has two numbers, and which two of the row."""
    lane = w.at_start("mov.u32", "u32", LANE)
    row = w.at_start("shr.u32", "u32", lane, Immediate(2))
    return lane, row, w.at_start("and.b32", "u32", lane, Immediate(3))


def shuffled(w: Writer, value: Operand, lane: Operand) -> Register:
    """Read the 32-bit `value` of another lane."""
    return w.new("shfl.sync.idx.b32", "b32", value, lane, Immediate(31), Immediate(0xFFFFFFFF))


def transposed(w: Writer, value: Operand) -> Register:
    """Transpose an 8 x 8 matrix of 16-bit numbers, of which each lane holds two."""
    _, row, column = lane_numbers(w)
    half = w.at_start("shr.u32", "u32", row, Immediate(1))
    first = w.at_start("mad.lo.u32", "u32", column, Immediate(8), half)
    second = w.at_start("add.u32", "u32", first, Immediate(4))
    numbers = [shuffled(w, value, lane) for lane in (first, second)]
    upper = w.at_start("and.b32", "u32", row, Immediate(1))
    # bytes 1 0 of both numbers, or 3 2
    pick = w.at_start("mad.lo.u32", "u32", upper, Immediate(0x2222), Immediate(0x5410))
    return w.new("prmt.b32", "b32", *numbers, pick)


def move_matrix(w: Writer, instruction: Instruction) -> None:
    """Lower `movmatrix.sync.aligned.m8n8.trans.b16 d, a`."""
    target, source = instruction.operands
    w.emit("mov.b32", target, transposed(w, source))


def _matrix_address(w: Writer, address: Address) -> Register:
    """Return the 32-bit shared address that this lane gives."""
    base: Operand = address.base
    if "shared" not in w.instruction.parts:  # a generic address
        base = w.new("cvta.to.shared.u64", "u64", base)
    if isinstance(base, Register) and TYPE_BYTES[w.kernel.register_type(base.name)] == 8:
        base = w.new("cvt.u32.u64", "u32", base)
    return w.new("add.u32", "u32", base, Immediate(address.offset))


def _matrix_pieces(w: Writer, address: Address, count: int, trans: bool) -> list[list[Address]]:
    """Return where this lane's two numbers (or one pair) of each 8 x 8 matrix lie."""
    given, (_, row, column) = _matrix_address(w, address), lane_numbers(w)
    pieces = []
    for matrix in range(count):
        if trans:
            first = w.at_start("mad.lo.u32", "u32", column, Immediate(2), Immediate(8 * matrix))
            lanes = [first, w.at_start("add.u32", "u32", first, Immediate(1))]
            offset = w.at_start("shl.b32", "u32", row, Immediate(1))
        else:
            lanes = [w.at_start("add.u32", "u32", row, Immediate(8 * matrix))]
            offset = w.at_start("shl.b32", "u32", column, Immediate(2))
        pieces.append([Address(w.new("add.u32", "u32", shuffled(w, given, n), offset)) for n in lanes])
    return pieces


def load_matrix(w: Writer, instruction: Instruction) -> None:
    """Lower `ldmatrix`: lane 8 j + i gives the address of row i of matrix j; lane n gets two of row n / 4."""
    result, address = instruction.operands
    assert isinstance(address, Address)
    results = result.items if isinstance(result, Vector) else (result,)
    trans = "trans" in instruction.parts
    for target, pieces in zip(results, _matrix_pieces(w, address, len(results), trans), strict=True):
        if not trans:
            w.emit("ld.shared.b32", target, pieces[0])
            continue
        halves = [w.new("ld.shared.b16", "b16", piece) for piece in pieces]
        w.emit("mov.b32", target, Vector(tuple(halves)))


def store_matrix(w: Writer, instruction: Instruction) -> None:
    """Lower `stmatrix`, which is `ldmatrix` in the other direction."""
    address, source = instruction.operands
    assert isinstance(address, Address)
    sources = source.items if isinstance(source, Vector) else (source,)
    trans = "trans" in instruction.parts
    for given, pieces in zip(sources, _matrix_pieces(w, address, len(sources), trans), strict=True):
        if not trans:
            w.emit("st.shared.b32", pieces[0], given)
            continue
        halves = [w.register("b16") for _ in pieces]
        w.emit("mov.b32", Vector(tuple(halves)), given)
        for piece, half in zip(pieces, halves, strict=True):
            w.emit("st.shared.b16", piece, half)
