"""Emit `wgmma.mma_async`: each warp of a warpgroup multiplies its own 16 rows of A by B.

The product is complete when it is issued, so `wgmma.fence`, `commit_group` and `wait_group` do nothing. What
is read through a descriptor is checked against the block's shared memory. Sums are those of matrix.py.
Reference: PTX ISA, 9.7.15.
"""

from llvmlite import ir

from simt.code.abi import (
    BAD_DESCRIPTOR,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Frame,
    Launch,
    Value,
    load_field,
)
from simt.code.checked_access import counted_loop, defined_once, entry_slot, report
from simt.code.instructions import Kind
from simt.code.matrix import GROUP, WIDENED, Product, element, fragment, items, put, take
from simt.code.vectors import element as element_of
from simt.code.vectors import shuffled
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.lowering import wgmma
from simt.lowering.wgmma import PIECE, Role, product_of
from simt.ptx import Immediate, Instruction, unknown

_WORDS = ir.VectorType(I32, PIECE // 4)


def emit(w: Warp, instruction: Instruction) -> None:
    """Emit a product of a warp; the other instructions of the family do nothing."""
    if instruction.parts[1] != "mma_async":
        return
    product, b = product_of(instruction), w.b
    if product.matrices.type("a") not in WIDENED:
        raise unknown(instruction)
    kind, arguments = Kind("b32"), []
    for role in ("a", "b"):
        operand = product.operand(role)
        if role in product.described:
            arguments.append(element_of(b, w.value(operand, Kind("b64"), WARP), 0))
        else:
            arguments.append(fragment(w, kind, role, len(items(operand))))
            put(w, items(operand), kind, arguments[-1])
    sums = fragment(w, kind, "d", len(product.d))
    put(w, product.d, kind, sums)
    if not isinstance(product.scale_d, Immediate) or not product.scale_d.value:
        _clear_unless(w, product, sums)
    function = _function(w.function.module, product)
    b.call(function, [w.launch, w.frame, w.site(instruction), sums, *arguments])
    take(w, product.d, kind, sums, instruction)


def _clear_unless(w: Warp, product: wgmma.Product, sums: Value) -> None:
    """Set D to zero in the lanes for which its predicate does not hold."""
    b, lanes = w.b, ir.VectorType(I32, WARP)
    keeps = w.value(product.scale_d, Kind("pred"), WARP)
    with counted_loop(b, ir.Constant(I64, len(product.d))) as i:
        place = element(b, sums, lanes, i)
        b.store(b.select(keeps, b.load(place, typ=lanes), ir.Constant(lanes, None)), place)


def _function(module: ir.Module, product: wgmma.Product) -> ir.Function:
    """Define `void product(ptr launch, ptr frame, i32 site, ptr d, a, i64 b)`; A is ptr or i64, as given."""
    described, parts = product.described, product.instruction.parts
    majors = "".join("k" if product.is_k_major(role) else "m" for role in described)
    name = f"{product.instruction.opcode}.{majors}.{'minus' if product.is_negated else 'plus'}"

    def emit(function: ir.Function) -> None:
        launch, frame, site, d, *given = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        made = Product(b, product.matrices, parts, product.is_negated)
        for role, value in zip(("a", "b"), given, strict=True):
            if role in described:
                _Reader(made, product, role, value).read(launch, frame, site)
            else:
                made.unpack(role, value)
        made.multiply(d, d)
        b.ret_void()

    types = [I64 if role in described else POINTER for role in ("a", "b")]
    type_ = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I32, POINTER, *types])
    return defined_once(module, name, type_, emit)


class _Reader:
    """Reads a matrix through a descriptor, as `wgmma.Descriptor.pieces` has it."""

    def __init__(self, made: Product, product: wgmma.Product, role: Role, descriptor: Value) -> None:
        self.b, self.made, self.role, self.descriptor = made.b, made, role, descriptor
        self.is_k_major = product.is_k_major(role)
        self.groups = product.matrices.m // GROUP if role == "a" else product.groups(role)
        b, number = self.b, self._number
        self.start, self.leading, self.stride = (b.shl(self._bits(at, 14), number(4)) for at in (0, 16, 32))
        self.base = b.shl(self._bits(49, 3), number(7))
        mode = self._bits(62, 2)
        self.is_swizzled = b.icmp_unsigned("!=", mode, number(0))
        self.width = b.select(self.is_swizzled, b.lshr(number(256), mode), number(PIECE))

    def _number(self, value: int) -> Value:
        return ir.Constant(I64, value)

    def _bits(self, at: int, count: int) -> Value:
        return self.b.and_(self.b.lshr(self.descriptor, self._number(at)), self._number((1 << count) - 1))

    def read(self, launch: Value, frame: Value, site: Value) -> None:
        """Fill A or B, with zeros for what lies beyond shared memory, and report that."""
        b, made, number = self.b, self.made, self._number
        self.shared = load_field(b, Frame, frame, "shared")
        self.end = b.sub(load_field(b, Launch, launch, "shared_bytes"), number(PIECE))
        self.nothing, self.is_wrong = entry_slot(b, _WORDS), entry_slot(b, I1)
        b.store(ir.Constant(_WORDS, None), self.nothing)
        b.store(ir.Constant(I1, 0), self.is_wrong)
        first = number(0)
        if self.role == "a":
            warp = b.zext(b.and_(load_field(b, Frame, frame, "warp"), ir.Constant(I32, 3)), I64)
            first = b.mul(warp, number(self.groups))
        with counted_loop(b, number(self.groups)) as group:
            start = self._group(b.add(first, group))
            pieces = [self._load(b.add(start, self._piece(i))) for i in range(16)]
            if self.is_k_major:
                for side in range(2):
                    words = self._joined(pieces[side::2])
                    k = side * made.k // 2
                    made.place(self.role, group, k, made.wide(self.role, words))
            else:
                for k, words in enumerate(pieces):
                    made.place(self.role, group, k, made.wide(self.role, words))
        with b.if_then(b.load(self.is_wrong, typ=I1), likely=False):
            which = ir.Constant(I32, "ab".index(self.role))
            everyone = ir.Constant(I32, -1)
            report(b, launch, frame, BAD_DESCRIPTOR, site, everyone, self.descriptor, error_other=which)

    def _group(self, group: Value) -> Value:
        """Return where the pieces of a group begin, before they are swizzled."""
        b, number = self.b, self._number
        if self.is_k_major:
            return b.add(self.start, b.mul(group, self.stride))
        side = b.udiv(self.width, number(PIECE))
        across = b.mul(b.udiv(group, side), b.select(self.is_swizzled, self.leading, self.stride))
        return b.add(self.start, b.add(across, b.mul(b.urem(group, side), number(PIECE))))

    def _piece(self, piece: int) -> Value:
        """Return how far a piece lies from the first of its group."""
        b, number = self.b, self._number
        if self.is_k_major:
            row, half = divmod(piece, 2)
            step = b.select(self.is_swizzled, number(PIECE), self.leading)
        else:
            half, row = divmod(piece, 8)
            step = b.select(self.is_swizzled, self.stride, self.leading)
        return b.add(b.mul(self.width, number(row)), b.mul(step, number(half)))

    def _load(self, address: Value) -> Value:
        """Load the four words of a piece."""
        b, number = self.b, self._number
        rows = b.lshr(b.sub(address, self.base), number(3))
        address = b.xor(address, b.and_(rows, b.sub(self.width, number(PIECE))))
        fits = b.icmp_signed("<=", address, self.end)
        b.store(b.or_(b.load(self.is_wrong, typ=I1), b.not_(fits)), self.is_wrong)
        place = b.ptrtoint(b.gep(self.shared, [address], source_etype=I8), I64)
        nothing = b.ptrtoint(self.nothing, I64)
        return b.load(b.inttoptr(b.select(fits, place, nothing), POINTER), typ=_WORDS, align=PIECE)

    def _joined(self, pieces: list[Value]) -> Value:
        while len(pieces) > 1:
            count = 2 * pieces[0].type.count
            pieces = [
                shuffled(self.b, x, y, range(count)) for x, y in zip(pieces[::2], pieces[1::2], strict=True)
            ]
        return pieces[0]
