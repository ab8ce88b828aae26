"""The LLVM function of a warp while it is being made: it reads and writes registers and operands.

Registers live in stack slots, which LLVM turns into values. Those still needed after a barrier are kept in
the warp's frame. All registers of a large kernel live in the frame (outline.py).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.accesses import Accesses
from simt.analysis.flow import Flow
from simt.analysis.lanes import Shape, absorbed
from simt.analysis.layout import Layout
from simt.code import abi, vectors
from simt.code.instructions import Kind, constant
from simt.code.special import special
from simt.common.errors import SimtError
from simt.common.limits import WARP
from simt.ptx import Immediate, Instruction, Operand, Register, Symbol, Vector, float_value


@dataclass(frozen=True)
class Inside:
    """The function of instructions that are alike (outline.py): where it finds what sets one apart.

    `row` is the address of the instruction's words. The others are numbers of words: of the offset of its
    address, of its plain numbers (by identity), of the places of its registers in the frame, and of what the
    emitter has noted.
    """

    row: abi.Value
    offset: int | None
    numbers: dict[int, int]
    places: dict[str, int]
    observed: dict[str, int]


class Warp:
    """The function of a warp; `b` builds at the current position, in basic block `index` of `flow`.

    `mask` and `waiting` are slots: the lanes that run now, and those that wait at the start of each block.
    """

    def __init__(self, module: ir.Module, flow: Flow, layout: Layout) -> None:
        self.flow, self.layout, self.kernel, self.index = flow, layout, flow.kernel, 0
        self.sites = {id(instruction): i for i, instruction in enumerate(self.kernel.code)}
        self.function = ir.Function(
            module, ir.FunctionType(abi.I32, [abi.POINTER, abi.POINTER, abi.I32]), "warp"
        )
        self.function.linkage = "internal"
        self.function.attributes.add("noinline" if layout.is_large else "alwaysinline")
        self.launch, self.frame, self.resume = self.function.args
        for argument in (self.launch, self.frame):
            argument.add_attribute("noalias")
        self.b = b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.wrote: Callable[[Register], None] | None = None  # told of each register that is written
        self.known: dict[object, abi.Value] = {}
        self.accesses: Accesses  # of the block whose code is being made
        self.called: Inside | None = None
        self.mask = b.alloca(abi.I32)
        self.waiting = b.alloca(ir.ArrayType(abi.I32, len(flow.blocks)))
        self.types = {name: self._slot_type(name, shape) for name, shape in flow.shapes.items()}
        self.slots = {} if layout.is_large else {name: b.alloca(type_) for name, type_ in self.types.items()}
        for block in range(len(flow.blocks)):
            b.store(abi.ZERO, self.waits_at(block))
        self._set_registers()
        b.store(self.full_mask, self.mask)

    def once(self, key: object, make: Callable[[ir.IRBuilder], abi.Value]) -> abi.Value:
        """Return what `make` emits where the function begins, once for each key."""
        if key not in self.known:
            with self.b.goto_entry_block():
                self.known[key] = make(self.b)
        return self.known[key]

    def field(self, record: abi.Record, name: str) -> abi.Value:
        """Return a field of the launch or of the frame, read once where the function begins."""
        pointer = self.launch if record is abi.Launch else self.frame
        return self.once((record, name), lambda b: abi.load_field(b, record, pointer, name))

    @property
    def number(self) -> abi.Value:
        """Return the warp's number in its block."""
        return self.field(abi.Frame, "warp")

    @property
    def shared(self) -> abi.Value:
        """Return the address of the block's shared memory."""
        return self.field(abi.Frame, "shared")

    @property
    def params(self) -> abi.Value:
        """Return the address of the kernel's parameters."""
        return self.field(abi.Launch, "params")

    @property
    def full_mask(self) -> abi.Value:
        """Return the bit mask of all lanes, or those of a last warp that the block does not fill."""
        threads = self.layout.threads
        full = ir.Constant(abi.I32, -1)
        if threads % WARP == 0:
            return full
        number, some = self.number, ir.Constant(abi.I32, (1 << threads % WARP) - 1)

        def chosen(b: ir.IRBuilder) -> abi.Value:
            last = b.icmp_unsigned("==", number, ir.Constant(abi.I32, threads // WARP))
            return b.select(last, some, full)

        return self.once("full mask", chosen)

    @contextmanager
    def inside(self, function: ir.Function, called: Inside) -> Iterator[None]:
        """Build in another function meanwhile: (launch, frame, mask, waiting, row)."""
        outer = self.__dict__.copy()
        self.called, self.known, self.function = called, {}, function
        self.launch, self.frame, self.mask, self.waiting = function.args[:4]
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        body = self.new_block("body")
        self.b.branch(body)
        self.continue_in(body)
        yield
        self.__dict__.update(outer)

    def word(self, number: int, type_: ir.Type) -> abi.Value:
        """Return a word, or two, of the row of the instruction that is being run."""
        assert self.called is not None
        row = self.called.row

        def read(b: ir.IRBuilder) -> abi.Value:
            place = b.gep(row, [ir.Constant(abi.I64, 4 * number)], source_etype=abi.I8)
            return b.load(place, typ=type_, align=4)

        return self.once(("word", number), read)

    def offset(self) -> abi.Value | None:
        """Return what sets the address of an outlined instruction apart from others of its kind, in bytes."""
        if self.called is None or self.called.offset is None:
            return None
        return self.word(self.called.offset, abi.I64)

    def waits_at(self, block: int, b: ir.IRBuilder | None = None) -> abi.Value:
        """Return the address of the mask of the lanes that wait at a block's start."""
        indices = [abi.ZERO, ir.Constant(abi.I32, block)]
        type_ = ir.ArrayType(abi.I32, len(self.flow.blocks)) if self.called else None
        return (b or self.b).gep(self.waiting, indices, source_etype=type_)

    def new_block(self, name: str) -> ir.Block:
        """Append a block to the warp's function."""
        return self.function.append_basic_block(name)

    def continue_in(self, block: ir.Block) -> None:
        """Continue building in this block."""
        self.b = ir.IRBuilder(block)

    def range(self, number: int, name: str) -> abi.Value:
        """Return a field of the record of valid memory `number`, read once when the function begins."""
        ranges = self.field(abi.Launch, "ranges")

        def loaded(b: ir.IRBuilder) -> abi.Value:
            record = b.gep(ranges, [ir.Constant(abi.I64, number)], source_etype=abi.TYPES[abi.Range])
            return b.load(abi.field(b, abi.Range, record, name), typ=abi.I64)

        return self.once((number, name), loaded)

    def site(self, instruction: Instruction | None) -> abi.Value:
        """Return the number of an instruction in generated code: its index in the kernel's code."""
        return self.word(2, abi.I32) if self.called else ir.Constant(abi.I32, self.sites[id(instruction)])

    def active(self, instruction: Instruction | None = None) -> abi.Value:
        """Return the bit mask of the lanes that run now, and whose guard holds."""
        mask = self.b.load(self.mask, typ=abi.I32)
        guard = self.guard(instruction) if instruction else None
        return mask if guard is None else self.b.and_(mask, vectors.mask_of(self.b, guard))

    def elsewhere(self) -> abi.Value:
        """Return the bit mask of the lanes that wait at other blocks."""
        lanes: abi.Value = ir.Constant(abi.I32, 0)
        for block in sorted(self.flow.blocks[self.index].may_wait):
            lanes = self.b.or_(lanes, self.b.load(self.waits_at(block), typ=abi.I32))
        for block in sorted(self.flow.blocks[self.index].may_park):
            lanes = self.b.or_(lanes, self.b.load(self.parked_at(block), typ=abi.I32))
        return lanes

    def parked_at(self, block: int, word: int = 0) -> abi.Value:
        """Return the address of the lanes that park at a block, or of a further word that is kept there."""
        place = ir.Constant(abi.I64, self.layout.parking[block] + 4 * word)
        return self.b.gep(self.frame, [place], source_etype=abi.I8)

    def ballot(self, operand: Operand, instruction: Instruction) -> abi.Value:
        """Return the bit mask of the active lanes whose predicate holds."""
        return self.b.and_(
            vectors.mask_of(self.b, self.value(operand, Kind("pred"), WARP)), self.active(instruction)
        )

    def guard(self, instruction: Instruction) -> abi.Value | None:
        """Return the guard's predicate in the guard's own shape, or None."""
        if instruction.guard is None:
            return None
        predicate = self.read(instruction.guard.register, Kind("pred"))
        return self.b.not_(predicate) if instruction.guard.negated else predicate

    def read(self, register: Register, kind: Kind) -> abi.Value:
        """Return the bases of a register, as `kind`; a wider register gives its low bits."""
        if register.name not in self.types:  # never written
            return _unset(kind, 1)
        return self.cast(self._load(register.name), kind)

    def _slot(self, register: str) -> abi.Value:
        """Return where a register is kept: a slot on the stack, or a place in the frame."""
        if register in self.slots:
            return self.slots[register]
        called, place = self.called, ir.Constant(abi.I32, self.layout.places[register])
        if called:
            place = self.word(called.places[register], abi.I32)
        return self.b.gep(self.frame, [place], source_etype=abi.I8)

    def _load(self, register: str) -> abi.Value:
        return self.b.load(self._slot(register), typ=self.types[register], align=self._alignment(register))

    def _store(self, register: str, value: abi.Value) -> None:
        self.b.store(value, self._slot(register), align=self._alignment(register))

    def _alignment(self, register: str) -> int | None:
        """Return the alignment of a register that is kept in the frame."""
        return None if register in self.slots else self.layout.alignment(register)

    def value(self, operand: Operand, kind: Kind, count: int, on_bases: bool = False) -> abi.Value:
        """Return an operand as `count` elements of `kind`: with lane offsets added, or only its bases."""
        match operand:
            case Register():
                shape, value = self.flow.shape(operand), self.read(operand, kind)
                if kind.is_float and not on_bases:  # a register of bits: lane offsets are those of an integer
                    bits = vectors.reshaped(
                        self.b, self.read(operand, self.declared(operand)), shape, absorbed(shape)
                    )
                    return vectors.expanded(self.b, self.cast(bits, kind), count)
            case Immediate():
                return vectors.broadcast(self.b, self._number(operand, kind), count)
            case Vector(items):
                return self._packed(items, kind, count)
            case Symbol(name):
                shape, value = self.flow.rules.operand(operand, {}), self.special(name, kind)
            case _:
                raise SimtError(f"the simulator does not know the operand {operand}")
        if not on_bases:
            value = vectors.reshaped(self.b, value, shape, absorbed(shape))
        return vectors.expanded(self.b, value, count)

    def special(self, name: str, kind: Kind) -> abi.Value:
        """Return the bases of a special register or of a variable's address."""
        return self.cast(special(self, name), kind)

    def write(
        self, register: Register, value: abi.Value, shape: Shape, guard: abi.Value | None = None
    ) -> None:
        """Write a result held in `shape`.

        Lanes that do not take part keep the old value, if anyone will read it.
        """
        b, want = self.b, self.flow.shape(register)
        value = vectors.reshaped(b, self.cast(value, self.declared(register)), shape, want)
        if guard is not None:
            value = b.select(vectors.expanded(b, guard, want.bases), value, self._load(register.name))
        if self.flow.needs_blend(self.index, register.name):
            value = b.select(vectors.lanes_of(b, self.active()), value, self._load(register.name))
        self._store(register.name, value)
        if self.wrote is not None:
            self.wrote(register)

    def declared(self, register: Register) -> Kind:
        """Return the type with which a register is declared."""
        return Kind(self.kernel.register_type(register.name))

    def cast(self, value: abi.Value, kind: Kind) -> abi.Value:
        """Convert bits to another type: narrowing keeps the low bits, widening extends by signedness."""
        b, have, count = self.b, vectors.element_type(value), vectors.count_of(value)
        bits = {ir.FloatType: 32, ir.DoubleType: 64}.get(type(have)) or have.width
        if not isinstance(have, ir.IntType) and have != kind.llvm:
            value = b.bitcast(value, vectors.vector_type(ir.IntType(bits), count))
        if bits > kind.bits:
            value = b.trunc(value, vectors.vector_type(ir.IntType(kind.bits), count))
        elif bits < kind.bits:
            widen = b.sext if kind.is_signed else b.zext
            value = widen(value, vectors.vector_type(ir.IntType(kind.bits), count))
        return (
            value
            if vectors.element_type(value) == kind.llvm
            else b.bitcast(value, vectors.vector_type(kind.llvm, count))
        )

    def saved(self, b: ir.IRBuilder, index: int) -> Iterator[tuple[abi.Value, abi.Value, ir.Type]]:
        """Yield the slots that are needed after a stop at the end of a block, with places and types."""
        layout = self.layout
        yield from self.kept(b, layout.live_after(index))
        if index in layout.turns:
            for each in sorted(self.flow.blocks[index].may_wait):
                place = ir.Constant(abi.I64, layout.waiting[each])
                yield self.waits_at(each, b), b.gep(self.frame, [place], source_etype=abi.I8), abi.I32

    def kept(self, b: ir.IRBuilder, registers: set[str]) -> Iterator[tuple[abi.Value, abi.Value, ir.Type]]:
        """Yield the slots of registers, unless they are in the frame anyway, with places and types."""
        for name in sorted(registers & self.slots.keys()):
            place = ir.Constant(abi.I64, self.layout.places[name])
            yield self.slots[name], b.gep(self.frame, [place], source_etype=abi.I8), self.types[name]

    def _set_registers(self) -> None:
        """Set registers before the kernel begins: to poison where a path may read them unset.

        Lanes that never write a register still take part in vector operations, so no slot is left undefined.
        """
        unset = self.flow.blocks[0].live_in & self.types.keys()
        for name in sorted(self.slots.keys() - unset):
            self._store(name, ir.Constant(self.types[name], None))
        at_first: AbstractContextManager[object] = nullcontext()
        if self.layout.is_large:  # what is in the frame outlasts a barrier
            at_first = self.b.if_then(self.b.icmp_unsigned("==", self.resume, abi.ZERO))
        with at_first:
            for name in sorted(unset):
                kind, shape = self.declared(Register(name)), self.flow.shapes[name]
                self._store(name, _unset(kind, shape.bases))

    def _slot_type(self, name: str, shape: Shape) -> ir.Type:
        return vectors.vector_type(self.declared(Register(name)).llvm, shape.bases)

    def _number(self, operand: Immediate, kind: Kind) -> abi.Value:
        if self.called and id(operand) in self.called.numbers:
            return self.cast(self.word(self.called.numbers[id(operand)], abi.I64), kind)
        return _constant(operand, kind)

    def _packed(self, items: tuple[Operand, ...], kind: Kind, count: int) -> abi.Value:
        """Pack `{low, high}`, operands side by side, into one wider value."""
        b, part = self.b, Kind(f"b{kind.bits // len(items)}")
        wide = vectors.vector_type(ir.IntType(kind.bits), count)
        result = ir.Constant(wide, None)
        for i, item in enumerate(items):
            bits = b.zext(self.value(item, part, count), wide)
            result = b.or_(result, b.shl(bits, constant(bits, i * part.bits)))
        return b.bitcast(result, vectors.vector_type(kind.llvm, count))


def unset_bits(bits: int) -> int:
    """Return the bits of a register that was never set."""
    return sum(abi.POISON << at for at in range(0, bits, 32)) % (1 << bits)


def _unset(kind: Kind, count: int) -> abi.Value:
    """Return the value of a register that was never set: a NaN, or a number that is no index; or False."""
    one = ir.Constant(ir.IntType(kind.bits), unset_bits(kind.bits) if kind.bits > 1 else 0)
    if kind.is_float:
        one = one.bitcast(kind.llvm)
    return one if count == 1 else ir.Constant(vectors.vector_type(kind.llvm, count), [one] * count)


def _constant(immediate: Immediate, kind: Kind) -> abi.Value:
    if kind.is_float:
        return ir.Constant(kind.llvm, float_value(immediate))
    return ir.Constant(kind.llvm, immediate.value & ((1 << kind.bits) - 1))
