"""Emit products of matrices: `mma.sync`, and `wmma.mma` as lowered.

Products of half precision, bfloat16, tf32 and fp8 are exact in float32. They are added one by one in float32,
starting from C, and each sum is rounded to nearest. Tensor cores add several products at once and drop bits
below the largest, so their results differ by a few units in the last place of the largest partial sum;
float64 and integers are exact. Results in half precision are rounded once, at the end. A NaN is 0x7fffffff,
as on an H200. Reference: PTX ISA, 9.7.14.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.lanes import VARYING
from simt.code.abi import I8, I32, I64, POINTER, Value
from simt.code.checked_access import counted_loop, defined_once, entry_slot
from simt.code.instructions import Kind, constant, half, intrinsic, same_shape
from simt.code.instructions.dots import part
from simt.code.vectors import shuffled
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.lowering.fragments import BITS, Matrices, matrices
from simt.ptx import Instruction, Operand, Register, Vector, unknown

GROUP = 8  # rows of a block
I16, SINGLE, DOUBLE = ir.IntType(16), ir.FloatType(), ir.DoubleType()


def emit(w: Warp, instruction: Instruction) -> None:
    """Emit `mma d, a, b, c`."""
    found = matrices(instruction.parts)
    if found is None or found.type("a") not in WIDENED:
        raise unknown(instruction)
    d, *others = (items(operand) for operand in instruction.operands)
    kind = Kind("b64" if found.type("d") == "f64" else "b32")
    slots = [fragment(w, kind, role, len(each)) for role, each in zip("dabc", (d, *others), strict=True)]
    for values, slot in zip(others, slots[1:], strict=True):
        put(w, values, kind, slot)
    w.b.call(_function(w.function.module, found, instruction), slots)
    take(w, d, kind, slots[0], instruction)


def items(operand: Operand) -> tuple[Operand, ...]:
    """Return the registers of a fragment."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def fragment(w: Warp, kind: Kind, role: str, count: int) -> Value:
    """Return memory on the stack for so many registers, which all instructions of a function share."""
    type_ = ir.ArrayType(ir.VectorType(kind.llvm, WARP), count)
    return w.once(("fragment", kind.name, role, count), lambda b: _untyped(b, b.alloca(type_)))


def put(w: Warp, registers: Iterable[Operand], kind: Kind, slot: Value) -> None:
    """Store registers in a fragment."""
    for i, register in enumerate(registers):
        value = w.value(register, kind, WARP)
        w.b.store(value, element(w.b, slot, value.type, i))


def take(w: Warp, registers: Iterable[Operand], kind: Kind, slot: Value, instruction: Instruction) -> None:
    """Write registers, the instruction's results, from a fragment."""
    guard, lanes = w.guard(instruction), ir.VectorType(kind.llvm, WARP)
    for i, register in enumerate(registers):
        if isinstance(register, Register) and register.name in w.types:
            w.write(register, w.b.load(element(w.b, slot, lanes, i), typ=lanes), VARYING, guard)


def memory(b: ir.IRBuilder, type_: ir.Type, count: int) -> Value:
    """Allocate memory on the stack."""
    return _untyped(b, entry_slot(b, ir.ArrayType(type_, count)))


def _untyped(b: ir.IRBuilder, slot: Value) -> Value:
    return b.inttoptr(b.ptrtoint(slot, I64), POINTER)


def element(b: ir.IRBuilder, pointer: Value, type_: ir.Type, index: Value | int) -> Value:
    """Return the address of an element of an array."""
    index = ir.Constant(I64, index) if isinstance(index, int) else index
    return b.gep(pointer, [index], source_etype=type_)


def _function(module: ir.Module, found: Matrices, instruction: Instruction) -> ir.Function:
    """Define `void product(ptr d, ptr a, ptr b, ptr c)` on fragments: arrays with 32 lanes per register."""

    def emit(function: ir.Function) -> None:
        b = ir.IRBuilder(function.append_basic_block("entry"))
        d, a_, b_, c = function.args
        product = Product(b, found, instruction.parts)
        product.unpack("a", a_)
        product.unpack("b", b_)
        product.multiply(d, c)
        b.ret_void()

    type_ = ir.FunctionType(ir.VoidType(), [POINTER] * 4)
    return defined_once(module, instruction.opcode, type_, emit)


class Product:
    """The product of two matrices, which is added to a fragment.

    `left` holds A and `right` B, column after column of A and row after row of B: a line for each of the `k`
    steps. Numbers are held as `sum`, the type of the sums, but integers of less than 32 bits as words of
    several. Where A and B change roles, as in m8n32k16, `left` and `right` hold the transposes of B and A.
    """

    def __init__(
        self, b: ir.IRBuilder, found: Matrices, parts: tuple[str, ...], is_negated: bool = False
    ) -> None:
        self.b, self.found, self.parts, self.is_negated = b, found, parts, is_negated
        self.sum = WIDENED[found.type("a")].sum
        self.m, self.n = (found.n, found.m) if found.is_swapped else (found.m, found.n)
        self.k = found.k * BITS[found.type("a")] // 32 if self.sum == I32 else found.k
        self.lanes = ir.VectorType(I64 if self.sum == DOUBLE else I32, WARP)
        self.sums = ir.VectorType(self.sum, WARP)
        self.left, self.right = (memory(b, self.sum, self.k * width) for width in (self.m, self.n))

    def unpack(self, role: str, fragment: Value) -> None:
        """Fill A or B from a fragment: lane 4 g + t of a register has part of row g (B: of column g)."""
        per_word = self.found.per_register(role) if self.sum == I32 else 1
        for number, place in enumerate(self.found.blocks(role)):
            row, k = place if role == "a" else place[::-1]
            words = self.b.load(element(self.b, fragment, self.lanes, number), typ=self.lanes)
            self.place(role, ir.Constant(I64, row // GROUP), k // per_word, self.wide(role, words))

    def wide(self, role: str, words: Value) -> Value:
        """Convert the numbers in words of A or B to the type of the sums, and negate A if the product is."""
        value = WIDENED[self.found.type(role)].widen(self.b, words)
        return self.b.fneg(value) if self.is_negated and role == "a" else value

    def place(self, role: str, group: Value, k: int, block: Value) -> None:
        """Store neighbours along K, from `k` on, for each of the 8 rows of a group (B: of its columns)."""
        width = block.type.count // GROUP
        is_left = (role == "a") != self.found.is_swapped
        for i in range(width):
            line = shuffled(self.b, block, None, range(i, GROUP * width, width))
            self.b.store(line, self._line(is_left, k + i, group), align=4)

    def _line(self, is_left: bool, k: int, group: Value) -> Value:
        """Return the address of step `k` of a group of 8 rows of A, or columns of B."""
        b, side, width = self.b, *((self.left, self.m) if is_left else (self.right, self.n))
        first = b.mul(group, ir.Constant(I64, GROUP))
        return element(b, side, self.sum, b.add(first, ir.Constant(I64, k * width)))

    def multiply(self, d: Value, c: Value) -> None:
        """Set fragment d to A B + c, in blocks of 8 x 8: lane 4 g + t has columns 2 t, 2 t + 1 of row g."""
        b, halves, across = self.b, min(2, self.m // GROUP), self.n // GROUP
        with counted_loop(b, ir.Constant(I64, self.m // GROUP * across)) as number:
            half_, pair = (_divided(b, number, halves, name) for name in ("urem", "udiv"))
            group, pairs = (_divided(b, pair, across, name) for name in ("urem", "udiv"))
            row = b.add(b.mul(pairs, ir.Constant(I64, halves)), half_)
            start = self._start(c, number)
            totals = [constant(each, 0) if self.sum == I32 else each for each in start]
            for k in range(self.k):  # without a loop: brief code keeps values in registers within a block
                places = self._line(True, k, row), self._line(False, k, group)
                of_a, of_b = (b.load(place, typ=ir.VectorType(self.sum, GROUP), align=4) for place in places)
                x = shuffled(b, of_a, None, [lane // 4 for lane in range(WARP)])
                for i in range(2):
                    y = shuffled(b, of_b, None, [lane % 4 * 2 + i for lane in range(WARP)])
                    totals[i] = self._added(x, y, totals[i])
            self._end(d, number, totals, start)

    def _start(self, c: Value, number: Value) -> list[Value]:
        """Return the even and the odd columns of a block of C."""
        b, type_ = self.b, self.found.type("c")
        if type_ == "f16":
            block = WIDENED["f16"].widen(b, b.load(element(b, c, self.lanes, number), typ=self.lanes))
            return [shuffled(b, block, None, range(i, 2 * WARP, 2)) for i in range(2)]
        first = b.mul(number, ir.Constant(I64, 2))
        places = [element(b, c, self.lanes, b.add(first, ir.Constant(I64, i))) for i in range(2)]
        return [b.bitcast(b.load(place, typ=self.lanes), self.sums) for place in places]

    def _added(self, x: Value, y: Value, total: Value) -> Value:
        """Return x y + total; of words, the sum of the products of their parts."""
        b, types = self.b, [self.found.type(role) for role in "ab"]
        if self.sum != I32:
            return intrinsic(b, "fma", total.type, x, y, total)
        if "b1" in types:
            both = b.xor(x, y) if "xor" in self.parts else b.and_(x, y)
            return b.add(total, intrinsic(b, "ctpop", both.type, both))
        x, y = (y, x) if self.found.is_swapped else (x, y)
        bits = BITS[types[0]]
        for i in range(32 // bits):
            a, c = (part(b, v, i, bits, type_[0] == "s") for v, type_ in zip((x, y), types, strict=True))
            total = b.add(total, b.mul(a, c))
        return total

    def _end(self, d: Value, number: Value, totals: list[Value], start: list[Value]) -> None:
        """Store a block of D."""
        b = self.b
        if self.found.type("d") == "f16":
            low, high = (b.zext(half.narrowed(b, "f16", total), self.lanes) for total in totals)
            b.store(b.or_(low, b.shl(high, constant(high, 16))), element(b, d, self.lanes, number))
            return
        if self.sum == I32:
            pairs = zip(totals, start, strict=True)
            if "satfinite" in self.parts:
                totals = [intrinsic(b, "sadd.sat", x.type, x, y) for x, y in pairs]
            else:
                totals = [b.add(x, y) for x, y in pairs]
        if self.sum == SINGLE:
            words = [b.bitcast(total, self.lanes) for total in totals]
            totals = [
                b.select(b.fcmp_unordered("uno", x, x), constant(word, 0x7FFFFFFF), word)
                for x, word in zip(totals, words, strict=True)
            ]
        first = b.mul(number, ir.Constant(I64, 2))
        for i, total in enumerate(totals):
            b.store(total, element(b, d, self.lanes, b.add(first, ir.Constant(I64, i))))


def _divided(b: ir.IRBuilder, number: Value, by: int, name: str) -> Value:
    return getattr(b, name)(number, ir.Constant(I64, by))


@dataclass(frozen=True)
class Widened:
    """How numbers of one type are multiplied: the type of their sums, and how words of bits become that."""

    sum: ir.Type
    widen: Callable[[ir.IRBuilder, Value], Value]


def _parts(b: ir.IRBuilder, words: Value, type_: ir.IntType) -> Value:
    """Return the parts of 32-bit words, side by side."""
    return b.bitcast(words, ir.VectorType(type_, words.type.count * 32 // type_.width))


def _from_tf32(b: ir.IRBuilder, words: Value) -> Value:
    """Keep the upper 19 bits, which are all that the hardware uses."""
    return b.bitcast(b.and_(words, constant(words, -1 << 13)), same_shape(words, SINGLE))


def _from_e5m2(b: ir.IRBuilder, words: Value) -> Value:
    """Convert fp8 with 5 bits of exponent: the upper half of an f16."""
    numbers = _parts(b, words, I8)
    wide = b.zext(numbers, same_shape(numbers, I16))
    return half.widened(b, "f16", b.shl(wide, constant(wide, 8)))


def _from_e4m3(b: ir.IRBuilder, words: Value) -> Value:
    """Convert fp8 with 4 bits of exponent: as an f16 its bits are 2**-8 of the number; all ones are NaN."""
    numbers = _parts(b, words, I8)
    wide = b.zext(numbers, same_shape(numbers, I16))
    size = b.and_(wide, constant(wide, 0x7F))
    sign = b.shl(b.and_(wide, constant(wide, 0x80)), constant(wide, 8))
    value = half.widened(b, "f16", b.or_(sign, b.shl(size, constant(size, 7))))
    is_nan = b.icmp_unsigned("==", size, constant(size, 0x7F))
    return b.select(is_nan, constant(value, float("nan")), b.fmul(value, constant(value, 256.0)))


_WORDS = Widened(I32, lambda _b, words: words)
WIDENED = {
    "f16": Widened(SINGLE, lambda b, words: half.widened(b, "f16", _parts(b, words, I16))),
    "bf16": Widened(SINGLE, lambda b, words: half.widened(b, "bf16", _parts(b, words, I16))),
    "tf32": Widened(SINGLE, _from_tf32),
    "e4m3": Widened(SINGLE, _from_e4m3),
    "e5m2": Widened(SINGLE, _from_e5m2),
    "f64": Widened(DOUBLE, lambda b, words: b.bitcast(words, same_shape(words, DOUBLE))),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), _WORDS),
}
