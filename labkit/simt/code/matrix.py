"""Emit the product of matrices that a warp holds in fragments: `mma.sync`, and `wmma.mma` as lowered.

Products of half precision, bfloat16 and tf32 are exact in float32. They are added one by one in float32,
starting from C, and each sum is rounded to nearest. Tensor cores add several products at once and drop bits
below the largest, so their results differ by a few units in the last place of the largest partial sum;
float64 and integers are exact. Results in half precision are rounded once, at the end. Reference: PTX ISA,
9.7.14.
"""

from typing import Any

from llvmlite import ir

from labkit.core.limits import WARP
from labkit.simt.analysis.lanes import VARYING
from labkit.simt.code.abi import I32, I64, POINTER, Value
from labkit.simt.code.careful import defined_once, entry_slot
from labkit.simt.code.instructions import Kind, constant, half, intrinsic
from labkit.simt.code.vectors import broadcast, shuffled
from labkit.simt.code.warp import Warp
from labkit.simt.lowering.fragments import Matrices, matrices
from labkit.simt.ptx import Instruction, Operand, Register, Vector, unknown


def emit(w: Warp, instruction: Instruction) -> None:
    """Emit `mma d, a, b, c`."""
    found = matrices(instruction.parts)
    if found is None or found.type("a") not in _WIDENED:
        raise unknown(instruction)
    d, *others = (_items(operand) for operand in instruction.operands)
    kind = Kind("b64" if found.type("d") == "f64" else "b32")
    lanes = ir.VectorType(kind.llvm, WARP)
    slots = []
    for items in (d, *others):
        slot = _memory(w.b, lanes, len(items))
        slots.append(slot)
    for items, slot in zip(others, slots[1:], strict=True):
        for i, item in enumerate(items):
            w.b.store(w.value(item, kind, WARP), _element(w.b, slot, lanes, i))
    w.b.call(_function(w.function.module, found, "satfinite" in instruction.parts), slots)
    guard = w.guard(instruction)
    for i, item in enumerate(d):
        assert isinstance(item, Register)
        w.write(item, w.b.load(_element(w.b, slots[0], lanes, i), typ=lanes), VARYING, guard)


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _memory(b: ir.IRBuilder, type_: ir.Type, count: int) -> Value:
    """Allocate memory on the stack, as a pointer without a type."""
    slot = entry_slot(b, ir.ArrayType(type_, count))
    return b.inttoptr(b.ptrtoint(slot, I64), POINTER)


def _element(b: ir.IRBuilder, pointer: Value, type_: ir.Type, index: Value | int) -> Value:
    index = ir.Constant(I64, index) if isinstance(index, int) else index
    return b.gep(pointer, [index], source_etype=type_)


def _function(module: ir.Module, found: Matrices, saturates: bool) -> ir.Function:
    """Define `void product(ptr d, ptr a, ptr b, ptr c)` on fragments: arrays with 32 lanes per register."""
    name = f"product_{found.m}_{found.n}_{found.k}_{'_'.join(found.types)}{'_sat' * saturates}"

    def emit(function: ir.Function) -> None:
        b = ir.IRBuilder(function.append_basic_block("entry"))
        _Product(b, found, saturates).emit(*function.args)
        b.ret_void()

    return defined_once(module, name, ir.FunctionType(ir.VoidType(), [POINTER] * 4), emit)


class _Product:
    """Unpacks fragments into rows on the stack, multiplies, and packs the result."""

    def __init__(self, b: ir.IRBuilder, found: Matrices, saturates: bool) -> None:
        self.b, self.found, self.saturates = b, found, saturates
        self.is_double = found.type("d") == "f64"
        is_integer = found.type("d") == "s32"
        # Integers are summed in 64 bits, so that `.satfinite` sees what does not fit.
        self.sum = ir.DoubleType() if self.is_double else I64 if is_integer else ir.FloatType()
        self.is_integer = is_integer
        self.lanes = ir.VectorType(I64 if self.is_double else I32, WARP)

    def emit(self, d: Value, a: Value, b: Value, c: Value) -> None:
        found = self.found
        left, right = self._rows(found.m, found.k), self._rows(found.k, found.n)
        total = self._rows(found.m, found.n)
        for number, place in enumerate(found.blocks("a")):
            self._unpack(left, found.k, place, self._wide("a", self._register(a, number)), turned=False)
        for number, place in enumerate(found.blocks("b")):
            self._unpack(right, found.n, place, self._wide("b", self._register(b, number)), turned=True)
        for number, place in enumerate(found.blocks("c")):
            self._unpack(total, found.n, place, self._sums("c", c, number), found.is_turned("c"))
        self._multiply(left, right, total)
        for number, place in enumerate(found.blocks("d")):
            self._pack(d, total, number, place)

    def _rows(self, rows: int, columns: int) -> Value:
        return _memory(self.b, self.sum, rows * columns)

    def _register(self, fragment: Value, number: int) -> Value:
        return self.b.load(_element(self.b, fragment, self.lanes, number), typ=self.lanes)

    def _wide(self, role: str, register: Value) -> Value:
        """Convert all numbers of a register to the type of the sums, lane after lane."""
        return _WIDENED[self.found.type(role)](self.b, register)

    def _sums(self, role: str, fragment: Value, number: int) -> Value:
        """Convert an 8 x 8 block of C: one register of pairs, or the registers of even and odd columns."""
        type_ = self.found.type(role)
        if type_ == "f16":
            return self._wide(role, self._register(fragment, number))
        even, odd = (self._register(fragment, 2 * number + side) for side in (0, 1))
        mixed = shuffled(self.b, even, odd, [lane + WARP * side for lane in range(WARP) for side in (0, 1)])
        if self.is_integer:
            return self.b.sext(mixed, ir.VectorType(I64, 2 * WARP))
        return self.b.bitcast(mixed, ir.VectorType(self.sum, 2 * WARP))

    def _unpack(self, rows: Value, columns: int, place: tuple[int, int], block: Value, turned: bool) -> None:
        """Store a block of 8 groups of lanes; `turned`: a group holds part of a column."""
        width = block.type.count // 8
        for i in range(width if turned else 8):
            indices = [g * width + i for g in range(8)] if turned else [i * width + n for n in range(width)]
            first = (place[0] + i) * columns + place[1]
            line = shuffled(self.b, block, None, indices)
            self.b.store(
                line, _element(self.b, rows, self.sum, first), align=8 if self.sum != ir.FloatType() else 4
            )

    def _line(self, rows: Value, first: Value | int, count: int) -> Value:
        align = 4 if self.sum == ir.FloatType() else 8
        type_ = ir.VectorType(self.sum, count)
        return self.b.load(_element(self.b, rows, self.sum, first), typ=type_, align=align)

    def _multiply(self, left: Value, right: Value, total: Value) -> None:
        """Multiply each row of A by all rows of B, which gives one row of the result."""
        b, found = self.b, self.found
        entry, head, after = b.block, b.append_basic_block("row"), b.append_basic_block("after")
        b.branch(head)
        b.position_at_end(head)
        row = b.phi(I64)
        row.add_incoming(ir.Constant(I64, 0), entry)
        start = b.mul(row, ir.Constant(I64, found.n))
        line = self._line(total, start, found.n)
        for k in range(found.k):
            index = b.add(b.mul(row, ir.Constant(I64, found.k)), ir.Constant(I64, k))
            factor = b.load(_element(b, left, self.sum, index), typ=self.sum)
            factors, numbers = broadcast(b, factor, found.n), self._line(right, k * found.n, found.n)
            if self.is_integer:
                line = b.add(b.mul(factors, numbers), line)
            else:
                line = intrinsic(b, "fma", line.type, factors, numbers, line)
        b.store(line, _element(b, total, self.sum, start), align=4 if self.sum == ir.FloatType() else 8)
        following = b.add(row, ir.Constant(I64, 1))
        row.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, ir.Constant(I64, found.m)), head, after)
        b.position_at_end(after)

    def _pack(self, d: Value, total: Value, number: int, place: tuple[int, int]) -> None:
        b = self.b
        lines = [self._line(total, (place[0] + i) * self.found.n + place[1], 8) for i in range(8)]
        while len(lines) > 1:
            count = 2 * lines[0].type.count
            lines = [shuffled(b, x, y, range(count)) for x, y in zip(lines[::2], lines[1::2], strict=True)]
        (block,) = lines
        if self.found.is_turned("d"):
            block = shuffled(b, block, None, [8 * (i % 8) + i // 8 for i in range(64)])
        if self.found.type("d") == "f16":
            bits = b.bitcast(half.narrowed(b, "f16", block), self.lanes)
            b.store(bits, _element(b, d, self.lanes, number))
            return
        if self.is_integer:
            block = b.trunc(self._saturated(block), ir.VectorType(I32, 2 * WARP))
        else:
            block = b.bitcast(block, ir.VectorType(self.lanes.element, 2 * WARP))
        for side in (0, 1):
            part = shuffled(b, block, None, [2 * lane + side for lane in range(WARP)])
            b.store(part, _element(b, d, self.lanes, 2 * number + side))

    def _saturated(self, x: Value) -> Value:
        if not self.saturates:
            return x
        low = intrinsic(self.b, "smax", x.type, x, constant(x, -(1 << 31)))
        return intrinsic(self.b, "smin", x.type, low, constant(x, (1 << 31) - 1))


def _from_half(format_: str) -> Any:
    def widen(b: ir.IRBuilder, register: Value) -> Value:
        return half.widened(b, format_, b.bitcast(register, ir.VectorType(ir.IntType(16), 2 * WARP)))

    return widen


def _from_tf32(b: ir.IRBuilder, register: Value) -> Value:
    """Keep the upper 19 bits, which are all that the hardware uses."""
    kept = b.and_(register, constant(register, -1 << 13))
    return b.bitcast(kept, ir.VectorType(ir.FloatType(), WARP))


def _from_bytes(signed: bool) -> Any:
    def widen(b: ir.IRBuilder, register: Value) -> Value:
        numbers, wide = (
            b.bitcast(register, ir.VectorType(ir.IntType(8), 4 * WARP)),
            ir.VectorType(I64, 4 * WARP),
        )
        return b.sext(numbers, wide) if signed else b.zext(numbers, wide)

    return widen


_WIDENED = {
    "f16": _from_half("f16"),
    "bf16": _from_half("bf16"),
    "tf32": _from_tf32,
    "s8": _from_bytes(True),
    "u8": _from_bytes(False),
    "f64": lambda b, register: b.bitcast(register, ir.VectorType(ir.DoubleType(), WARP)),
}
