"""The LLVM function of a warp while it is being made: it reads and writes registers and operands.

Registers live in stack slots, which LLVM turns into values. Those still needed after a barrier are kept in
the warp's frame.
"""

from collections.abc import Iterator

from llvmlite import ir

from labkit.core.errors import SimtError
from labkit.core.limits import WARP
from labkit.simt.analysis.flow import Flow
from labkit.simt.analysis.lanes import Shape, absorbed
from labkit.simt.analysis.layout import Layout
from labkit.simt.code import abi, vectors
from labkit.simt.code.instructions import Kind, constant
from labkit.simt.code.special import special
from labkit.simt.ptx import Immediate, Instruction, Operand, Register, Symbol, Vector, float_value


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
        self.function.attributes.add("alwaysinline")
        self.launch, self.frame, self.resume = self.function.args
        for argument in (self.launch, self.frame):
            argument.add_attribute("noalias")
        self.b = b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.number = abi.load_field(b, abi.Frame, self.frame, "warp")
        self.shared = abi.load_field(b, abi.Frame, self.frame, "shared")
        self.params = abi.load_field(b, abi.Launch, self.launch, "params")
        self.ranges = abi.load_field(b, abi.Launch, self.launch, "ranges")
        self.full_mask = self._initial_mask()
        self.known: dict[tuple[int, str], abi.Value] = {}
        self.mask = b.alloca(abi.I32)
        self.waiting = [b.alloca(abi.I32) for _ in flow.blocks]
        self.registers = {name: b.alloca(self._slot_type(name, shape)) for name, shape in flow.shapes.items()}
        # Lanes that never write a register still take part in vector operations, so no slot is left
        # undefined.
        for slot in self.waiting:
            b.store(ir.Constant(abi.I32, 0), slot)
        for name, slot in self.registers.items():
            b.store(self._before(name), slot)
        b.store(self.full_mask, self.mask)

    def new_block(self, name: str) -> ir.Block:
        """Append a block to the warp's function."""
        return self.function.append_basic_block(name)

    def continue_in(self, block: ir.Block) -> None:
        """Continue building in this block."""
        self.b = ir.IRBuilder(block)

    def range(self, number: int, name: str) -> abi.Value:
        """Return a field of the record of valid memory `number`, read once when the function begins."""
        if (number, name) not in self.known:
            with self.b.goto_entry_block():
                record = self.b.gep(
                    self.ranges, [ir.Constant(abi.I64, number)], source_etype=abi.TYPES[abi.Range]
                )
                self.known[number, name] = self.b.load(
                    abi.field(self.b, abi.Range, record, name), typ=abi.I64
                )
        return self.known[number, name]

    def site(self, instruction: Instruction | None) -> abi.Value:
        """Return the number of an instruction in generated code: its index in the kernel's code."""
        return ir.Constant(abi.I32, self.sites[id(instruction)])

    def active(self, instruction: Instruction | None = None) -> abi.Value:
        """Return the bit mask of the lanes that run now, and whose guard holds."""
        mask = self.b.load(self.mask, typ=abi.I32)
        guard = self.guard(instruction) if instruction else None
        return mask if guard is None else self.b.and_(mask, vectors.mask_of(self.b, guard))

    def elsewhere(self) -> abi.Value:
        """Return the bit mask of the lanes that wait at other blocks."""
        lanes: abi.Value = ir.Constant(abi.I32, 0)
        for block in sorted(self.flow.blocks[self.index].may_wait):
            lanes = self.b.or_(lanes, self.b.load(self.waiting[block], typ=abi.I32))
        return lanes

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
        if register.name not in self.registers:  # never written
            return _unset(kind, 1)
        slot = self.registers[register.name]
        return self.cast(self.b.load(slot, typ=slot.allocated_type), kind)

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
                return vectors.broadcast(self.b, _constant(operand, kind), count)
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
        b, slot, want = self.b, self.registers[register.name], self.flow.shape(register)
        value = vectors.reshaped(b, self.cast(value, self.declared(register)), shape, want)
        if guard is not None:
            value = b.select(
                vectors.expanded(b, guard, want.bases), value, b.load(slot, typ=slot.allocated_type)
            )
        if self.flow.needs_blend(self.index, register.name):
            value = b.select(vectors.lanes_of(b, self.active()), value, b.load(slot, typ=slot.allocated_type))
        b.store(value, slot)

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

    def saved(self, b: ir.IRBuilder, index: int) -> Iterator[tuple[abi.Value, abi.Value]]:
        """Yield the slots of the registers that block `index` needs, with their addresses in the frame."""
        for name in sorted(self.flow.blocks[index].live_in & self.registers.keys()):
            offset = ir.Constant(abi.I64, self.layout.saved[name])
            yield self.registers[name], b.gep(self.frame, [offset], source_etype=abi.I8)

    def _before(self, register: str) -> abi.Value:
        """Return what a register holds before it is written: poison where a path may read that."""
        slot = self.registers[register]
        if register in self.flow.blocks[0].live_in:
            return _unset(self.declared(Register(register)), self.flow.shapes[register].bases)
        return ir.Constant(slot.allocated_type, None)

    def _slot_type(self, name: str, shape: Shape) -> ir.Type:
        return vectors.vector_type(self.declared(Register(name)).llvm, shape.bases)

    def _initial_mask(self) -> abi.Value:
        """Return all lanes, or those of a last warp that the block does not fill."""
        threads, b = self.layout.threads, self.b
        full = ir.Constant(abi.I32, -1)
        if threads % WARP == 0:
            return full
        last = b.icmp_unsigned("==", self.number, ir.Constant(abi.I32, threads // WARP))
        return b.select(last, ir.Constant(abi.I32, (1 << threads % WARP) - 1), full)

    def _packed(self, items: tuple[Operand, ...], kind: Kind, count: int) -> abi.Value:
        """Pack `{low, high}`, operands side by side, into one wider value."""
        b, part = self.b, Kind(f"b{kind.bits // len(items)}")
        wide = vectors.vector_type(ir.IntType(kind.bits), count)
        result = ir.Constant(wide, None)
        for i, item in enumerate(items):
            bits = b.zext(self.value(item, part, count), wide)
            result = b.or_(result, b.shl(bits, constant(bits, i * part.bits)))
        return b.bitcast(result, vectors.vector_type(kind.llvm, count))


def _unset(kind: Kind, count: int) -> abi.Value:
    """Return the value of a register that was never set: a NaN, or a number that is no index; or False."""
    number = (abi.POISON | abi.POISON << 32) % (1 << kind.bits) if kind.bits > 1 else 0
    one = ir.Constant(kind.llvm, float("nan") if kind.is_float else number)
    return one if count == 1 else ir.Constant(vectors.vector_type(kind.llvm, count), [one] * count)


def _constant(immediate: Immediate, kind: Kind) -> abi.Value:
    if kind.is_float:
        return ir.Constant(kind.llvm, float_value(immediate))
    return ir.Constant(kind.llvm, immediate.value & ((1 << kind.bits) - 1))
