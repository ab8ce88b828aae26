"""A kernel for one block shape -> an LLVM function that runs one warp from a barrier to the next.

    i32 warp(ptr launch, ptr frame, i32 resume)     gives the barrier it waits at (1, 2, ...), ENDED or STOPPED

Registers live in stack slots, which LLVM turns into values; across a barrier those still needed wait in the warp's frame.
Each basic block is made twice: the fast code leaves for the careful code at an access whose range check fails, and the
careful code goes on to the block's end. A counted run has the careful code only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from llvmlite import ir

from labkit.errors import SimtError
from labkit.simt import abi, careful, instructions
from labkit.simt.abi import I8, I32, I64, POINTER, Frame, Launch, load_field
from labkit.simt.accesses import Access, Accesses
from labkit.simt.flow import Block, Flow, is_barrier, results
from labkit.simt.instructions import Kind
from labkit.simt.lanes import UNIFORM, VARYING, WARP, Shape, absorbed, thread_index
from labkit.simt.layout import Layout
from labkit.simt.memory import Where, in_range, load, store
from labkit.simt.ptx import Immediate, Instruction, Operand, Register, Symbol, Vector, float_value
from labkit.simt.vectors import (
    broadcast,
    count_of,
    element_type,
    expanded,
    group_value,
    lanes_of,
    mask_of,
    reshaped,
    vector_type,
)

Value = Any
NO_EFFECT = {"membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "bar", "barrier", "pragma"}


def unknown(instruction: Instruction) -> SimtError:
    """The error for an instruction the simulator does not know."""
    where = f"line {instruction.line}: " if instruction.line else ""
    return SimtError(f"{where}the simulator does not know the PTX instruction `{instruction.opcode}`")


class WarpCode:
    """Makes the function. Generated code names an instruction by its index in the kernel's code."""

    def __init__(self, module: ir.Module, flow: Flow, layout: Layout, counted: bool) -> None:
        self.flow, self.layout, self.counted = flow, layout, counted
        self.kernel = flow.kernel
        self.site_of = {id(instruction): i for i, instruction in enumerate(self.kernel.code)}
        self.function = ir.Function(module, ir.FunctionType(I32, [POINTER, POINTER, I32]), "warp")
        self.launch, self.frame, self.resume = self.function.args
        for argument in (self.launch, self.frame):
            argument.add_attribute("noalias")
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.starts = [self.function.append_basic_block(f"block{i}") for i in range(len(flow.blocks))]
        self.stopped = self.function.append_basic_block("stopped")
        self._entry()
        for index, block in enumerate(flow.blocks):
            self._block(index, block)
        ir.IRBuilder(self.stopped).ret(ir.Constant(I32, abi.STOPPED))

    # --- entry, registers and values -------------------------------------------------------------------------------

    def _entry(self) -> None:
        b = self.b
        self.warp = load_field(b, Frame, self.frame, "warp")
        self.shared = load_field(b, Frame, self.frame, "shared")
        self.params = load_field(b, Launch, self.launch, "params")
        self.ranges = load_field(b, Launch, self.launch, "ranges")
        self.full_mask = self._initial_mask()
        self.mask = b.alloca(I32)
        b.store(self.full_mask, self.mask)
        self.waiting = [b.alloca(I32) for _ in self.flow.blocks]
        self.registers: dict[str, Value] = {}
        for name, shape in self.flow.shapes.items():
            type_ = vector_type(Kind(self.kernel.register_type(name)).llvm, shape.bases)
            self.registers[name] = b.alloca(type_)
        for slot in [*self.waiting, *self.registers.values()]:
            b.store(ir.Constant(slot.allocated_type, None), slot)
        switch = b.switch(self.resume, self.starts[0])
        for number, index in enumerate(self.layout.barriers, 1):
            block = self.function.append_basic_block(f"resume{number}")
            switch.add_case(ir.Constant(I32, number), block)
            self._resume(ir.IRBuilder(block), self.flow.blocks[index].successors[0])

    def _initial_mask(self) -> Value:
        """All lanes, or those of a last warp that the block does not fill."""
        threads, b = self.layout.threads, self.b
        full = ir.Constant(I32, -1)
        if threads % WARP == 0:
            return full
        last = b.icmp_unsigned("==", self.warp, ir.Constant(I32, threads // WARP))
        return b.select(last, ir.Constant(I32, (1 << threads % WARP) - 1), full)

    def _resume(self, b: ir.IRBuilder, index: int) -> None:
        b.store(load_field(b, Frame, self.frame, "mask"), self.mask)
        for name, place in self._saved(b, index):
            slot = self.registers[name]
            b.store(b.load(place, typ=slot.allocated_type), slot)
        b.branch(self.starts[index])

    def _saved(self, b: ir.IRBuilder, index: int) -> Iterator[tuple[str, Value]]:
        """Registers that block `index` needs, with their places in the frame."""
        for name in sorted(self.flow.blocks[index].live_in & self.registers.keys()):
            offset = ir.Constant(I64, self.layout.saved[name])
            yield name, b.gep(self.frame, [offset], source_etype=I8)

    def _read(self, register: Register, kind: Kind) -> Value:
        """Bases of a register, as `kind`; a wider register gives its low bits."""
        if register.name not in self.registers:
            return ir.Constant(kind.llvm, None)
        slot = self.registers[register.name]
        return self._cast(self.b.load(slot, typ=slot.allocated_type), kind)

    def _cast(self, value: Value, kind: Kind) -> Value:
        b, have = self.b, element_type(value)
        bits = {ir.FloatType: 32, ir.DoubleType: 64}.get(type(have)) or have.width
        count = count_of(value)
        if not isinstance(have, ir.IntType) and have != kind.llvm:
            value = b.bitcast(value, vector_type(ir.IntType(bits), count))
        if bits > kind.bits:
            value = b.trunc(value, vector_type(ir.IntType(kind.bits), count))
        elif bits < kind.bits:
            widen = b.sext if kind.is_signed else b.zext
            value = widen(value, vector_type(ir.IntType(kind.bits), count))
        return value if element_type(value) == kind.llvm else b.bitcast(value, vector_type(kind.llvm, count))

    def value(self, operand: Operand, kind: Kind, count: int, on_bases: bool = False) -> Value:
        """An operand as `count` elements of `kind`: with lane offsets added, or its bases alone."""
        b = self.b
        match operand:
            case Register():
                shape, value = self.flow.shape(operand), self._read(operand, kind)
            case Immediate():
                return broadcast(b, self._constant(operand, kind), count)
            case Vector(items):
                return self._packed(items, kind, count)
            case Symbol(name):
                shape = self.flow.rules.operand(operand, {})
                value = self._special(name, kind, count)
            case _:
                raise SimtError(f"the simulator does not know the operand {operand}")
        if not on_bases:
            value = reshaped(b, value, shape, absorbed(shape))
        return expanded(b, value, count)

    def _constant(self, immediate: Immediate, kind: Kind) -> Value:
        if kind.is_float:
            return ir.Constant(kind.llvm, float_value(immediate))
        return ir.Constant(kind.llvm, immediate.value & ((1 << kind.bits) - 1))

    def _packed(self, items: tuple[Operand, ...], kind: Kind, count: int) -> Value:
        """`{low, high}`: the operands side by side in one wider value."""
        b, part = self.b, Kind(f"b{kind.bits // len(items)}")
        wide = vector_type(ir.IntType(kind.bits), count)
        result = ir.Constant(wide, None)
        for i, item in enumerate(items):
            bits = b.zext(self.value(item, part, count), wide)
            result = b.or_(result, b.shl(bits, instructions.constant(bits, i * part.bits)))
        return b.bitcast(result, vector_type(kind.llvm, count))

    def _special(self, name: str, kind: Kind, count: int) -> Value:
        """Special registers and addresses of variables, as bases."""
        b = self.b
        base, _, axis = name.lstrip("%").partition(".")
        if base == "tid":
            value = self._thread_index(axis)
        elif base == "ntid":
            value = ir.Constant(I32, self.layout.block["xyz".index(axis)])
        elif base == "ctaid":
            value = load_field(b, Frame, self.frame, axis)
        elif base == "nctaid":
            value = load_field(b, Launch, self.launch, f"grid_{axis}")
        elif base == "laneid":
            value = ir.Constant(I32, 0)
        elif base == "warpid":
            value = self.warp
        elif base.startswith("lanemask_"):
            value = _lane_masks(base.removeprefix("lanemask_"))
        elif name in self.layout.shared:
            value = ir.Constant(I64, self.layout.shared[name])
        elif name in self.layout.local:
            offset = ir.Constant(I64, self.layout.local_start + self.layout.local[name])
            value = b.add(b.ptrtoint(self.frame, I64), offset)
        elif name in self.layout.variables:
            value = self._range_bound(self.layout.variables[name], 0)
        else:
            raise SimtError(f"the simulator does not know the special register or variable `{name}`")
        return self._cast(value, kind)

    def _thread_index(self, axis: str) -> Value:
        """From a table: a base a warp, or an index a lane for blocks whose rows do not line up with warps."""
        shape, index = thread_index(axis, self.layout.block)
        warps = range(self.layout.warps)
        row_type = vector_type(I32, shape.bases)
        if shape.bases == 1:
            rows = [ir.Constant(I32, index(warp)) for warp in warps]
        else:
            rows = [ir.Constant(row_type, [ir.Constant(I32, index(WARP * w + lane)) for lane in range(WARP)]) for w in warps]
        if all(row.constant == rows[0].constant for row in rows) and shape.bases == 1:
            return rows[0]
        name = f"tid.{axis}"
        table = self.function.module.globals.get(name)
        if table is None:
            type_ = ir.ArrayType(row_type, len(rows))
            table = ir.GlobalVariable(self.function.module, type_, name)
            table.initializer, table.global_constant, table.linkage = ir.Constant(type_, rows), True, "internal"
        pointer = self.b.gep(table, [abi.ZERO, self.warp], source_etype=table.value_type)
        return self.b.load(pointer, typ=row_type)

    def _range_bound(self, index: int, side: int) -> Value:
        """First address (side 0) or end (side 1) of a valid range."""
        pointer = self.b.gep(self.ranges, [ir.Constant(I64, abi.RANGE_WORDS * index + side)], source_etype=I64)
        return self.b.load(pointer, typ=I64)

    def _write(self, index: int, register: Register, value: Value, shape: Shape, guard: Value | None) -> None:
        """Write a result held in `shape`; lanes that do not take part keep the old value where it is still needed."""
        if register.name == "_":
            return
        b, slot, want = self.b, self.registers[register.name], self.flow.shape(register)
        kind = Kind(self.kernel.register_type(register.name))
        value = reshaped(b, self._cast(value, kind), shape, want)
        old = None
        if guard is not None:
            old = b.load(slot, typ=slot.allocated_type)
            value = b.select(expanded(b, guard, want.bases), value, old)
        if self.flow.needs_blend(index, register.name):
            old = b.load(slot, typ=slot.allocated_type) if old is None else old
            value = b.select(lanes_of(b, b.load(self.mask, typ=I32)), value, old)
        b.store(value, slot)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _block(self, index: int, block: Block) -> None:
        end = self.function.append_basic_block(f"end{index}")
        accesses = Accesses(block, self.flow, self.layout)
        self.b = ir.IRBuilder(self.starts[index])
        if not block.may_wait and not block.may_have_exited:
            self.b.store(self.full_mask, self.mask)  # all lanes are together: LLVM can drop the masks
        careful_from: dict[int, ir.Block] = {}
        body = list(self._body(block))
        if not self.counted:
            for position, instruction in body:
                access = accesses.at.get(position)
                if access is None:
                    self._instruction(index, instruction)
                elif not access.has_fast_form:
                    self._leave(careful_from, position)
                    break
                else:
                    if access.is_first:
                        self._check_range(access, careful_from, position)
                    self._fast_access(index, instruction, access)
            else:
                self.b.branch(end)
        self._careful_code(index, body, accesses, careful_from, end)
        self.b = ir.IRBuilder(end)
        self._end(index, block)

    def _body(self, block: Block) -> Iterator[tuple[int, Instruction]]:
        for position, instruction in enumerate(block.code):
            if not (block.code[position] is block.last and (block.ends_with("bra", "ret", "exit", "trap") or is_barrier(instruction))):
                yield position, instruction

    def _leave(self, careful_from: dict[int, ir.Block], position: int, when: Value | None = None) -> None:
        """Go to the careful code at `position`, always or when a condition holds."""
        target = careful_from.setdefault(position, self.function.append_basic_block("careful"))
        if when is None:
            self.b.branch(target)
            return
        following = self.function.append_basic_block("fast")
        self.b.cbranch(when, target, following).set_weights([1, 1000])
        self.b = ir.IRBuilder(following)

    def _careful_code(
        self,
        index: int,
        body: list[tuple[int, Instruction]],
        accesses: Accesses,
        careful_from: dict[int, ir.Block],
        end: ir.Block,
    ) -> None:
        if not careful_from and not self.counted:
            return
        started = self.counted
        for position, instruction in body:
            if position in careful_from:
                if started:
                    self.b.branch(careful_from[position])
                self.b = ir.IRBuilder(careful_from[position])
                started = True
            if started and position in accesses.at:
                self._careful_access(index, instruction, accesses.at[position])
            elif started:
                self._instruction(index, instruction)
        self.b.branch(end)

    def _instruction(self, index: int, instruction: Instruction) -> None:
        """An instruction that computes, by its entry in the table."""
        name = instruction.parts[0]
        if name in NO_EFFECT:
            return
        if name == "ld":
            self._load_parameter(index, instruction)
            return
        operation = instructions.find(instruction)
        if operation is None:
            raise unknown(instruction)
        written = results(instruction)
        result = self.flow.rules.result(instruction, self.flow.shapes)
        kinds = operation.operand_kinds(instruction)
        sources = instruction.operands[max(1, len(written)) if name == "setp" else 1 :]
        if name == "setp" and len(sources) == 3:
            kinds.append(Kind("pred"))
        if len(sources) != len(kinds):
            raise unknown(instruction)
        on_bases = [*result.on_bases, *([False] * len(sources))]
        arguments = [
            self.value(operand, kind, result.shape.bases, base)
            for operand, kind, base in zip(sources, kinds, on_bases, strict=False)
        ]
        value = operation.emit(self.b, instruction, *arguments)
        if name == "cvta" and "shared" in instruction.parts:
            value = self._shared_address(instruction, value)
        guard = self._guard(instruction)
        if isinstance(instruction.operands[0], Vector):
            self._unpack(index, instruction.operands[0].items, value, result.shape, guard)
            return
        self._write(index, written[0], value, result.shape, guard)
        if len(written) == 2:
            self._write(index, written[1], self.b.not_(value), result.shape, guard)

    def _shared_address(self, instruction: Instruction, value: Value) -> Value:
        """Generic addresses are the host's; those of shared memory are offsets into the block's."""
        start = self.b.ptrtoint(self.shared, I64)
        convert = self.b.sub if "to" in instruction.parts else self.b.add
        return convert(value, broadcast(self.b, start, count_of(value)))

    def _unpack(self, index: int, items: tuple[Operand, ...], value: Value, shape: Shape, guard: Value | None) -> None:
        """`mov.b64 {low, high}, x`."""
        bits = element_type(value).width // len(items)
        for i, item in enumerate(items):
            assert isinstance(item, Register)
            part = self.b.lshr(value, instructions.constant(value, i * bits))
            part = self.b.trunc(part, vector_type(ir.IntType(bits), count_of(value)))
            self._write(index, item, part, shape, guard)

    def _guard(self, instruction: Instruction) -> Value | None:
        """The guard's predicate in the guard's own shape."""
        if instruction.guard is None:
            return None
        predicate = self._read(instruction.guard.register, Kind("pred"))
        return self.b.not_(predicate) if instruction.guard.negated else predicate

    # --- memory ------------------------------------------------------------------------------------------------------

    def _load_parameter(self, index: int, instruction: Instruction) -> None:
        kind = Kind(instruction.type)
        address = instruction.operands[1]
        offset = self.layout.params[address.base.name] + address.offset  # type: ignore[union-attr]
        first = instruction.operands[0]
        items = first.items if isinstance(first, Vector) else (first,)
        for i, item in enumerate(items):
            place = ir.Constant(I64, offset + i * kind.bits // 8)
            loaded = self.b.load(self.b.gep(self.params, [place], source_etype=I8), typ=ir.IntType(kind.bits), align=1)
            assert isinstance(item, Register)
            self._write(index, item, self._cast(loaded, kind), UNIFORM, self._guard(instruction))

    def _where(self, access: Access) -> Where:
        """The address of an access, without its constant offset."""
        operand = access.base
        shape = self.flow.rules.operand(operand, self.flow.shapes)
        kind = Kind("s64")
        if isinstance(operand, Register):
            declared = Kind(self.kernel.register_type(operand.name))
            base = self._read(operand, declared)
            # 32-bit shared addresses widen with their sign: a negative one is then out of range, not far inside
            base = self.b.sext(base, vector_type(I64, count_of(base))) if declared.bits < 64 else self._cast(base, kind)
        elif isinstance(operand, Immediate):
            base = ir.Constant(I64, operand.value)
        else:
            base = self._special(operand.name, kind, shape.bases)
        return Where(base, shape, self.shared if access.space == "shared" else None)

    def _check_range(self, access: Access, careful_from: dict[int, ir.Block], position: int) -> None:
        """Leave for the careful code unless all accesses that share this base are in range."""
        low, high = self._bounds(access)
        first, end = access.group_range
        good = in_range(
            self.b, self._where(access), first, end, low, high, access.alignment, self.b.load(self.mask, typ=I32)
        )
        self._leave(careful_from, position, when=self.b.not_(good))

    def _bounds(self, access: Access) -> tuple[Value, Value]:
        if access.space == "shared":
            return ir.Constant(I64, 0), load_field(self.b, Launch, self.launch, "shared_bytes")
        if access.space == "local":
            start = self.b.add(self.b.ptrtoint(self.frame, I64), ir.Constant(I64, self.layout.local_start))
            return start, self.b.add(start, ir.Constant(I64, WARP * self.layout.local_bytes))
        assert access.range is not None
        return self._range_bound(access.range, 0), self._range_bound(access.range, 1)

    def _active(self, instruction: Instruction) -> Value:
        mask, guard = self.b.load(self.mask, typ=I32), self._guard(instruction)
        return mask if guard is None else self.b.and_(mask, mask_of(self.b, guard))

    def _fast_access(self, index: int, instruction: Instruction, access: Access) -> None:
        b, where, mask = self.b, self._where(access), self._active(instruction)
        kind = Kind(instruction.type)
        if access.is_store:
            store(b, where, [self.value(item, kind, WARP) for item in access.items], access.size, access.offsets, mask)
            return
        shape = absorbed(where.shape)
        values = load(b, where, kind.llvm, access.size, access.offsets, mask)
        self._write_loaded(index, instruction, access, values, shape)

    def _careful_access(self, index: int, instruction: Instruction, access: Access) -> None:
        """Check each active lane in a function; then gather or scatter."""
        b, where, mask = self.b, self._where(access), self._active(instruction)
        kind = Kind(instruction.type)
        addresses = where.lane_addresses(b)
        addresses = b.add(addresses, instructions.constant(addresses, access.offsets[0]))
        check = careful.check_function(self.function.module, access.space, self.counted, self.layout)
        site = self._site(instruction)
        size = ir.Constant(I64, access.size * len(access.offsets))
        good = b.call(check, [self.launch, self.frame, addresses, mask, site, size])
        following = self.function.append_basic_block("checked")
        b.cbranch(good, following, self.stopped)
        self.b = b = ir.IRBuilder(following)
        lanes, offsets = Where(addresses, VARYING), [offset - access.offsets[0] for offset in access.offsets]
        if access.is_store:
            store(b, lanes, [self.value(item, kind, WARP) for item in access.items], access.size, offsets, mask)
            return
        shape = absorbed(where.shape)
        values = load(b, lanes, kind.llvm, access.size, offsets, mask)
        values = [group_value(b, value, shape.group) if shape.group > 1 else value for value in values]
        self._write_loaded(index, instruction, access, values, shape)

    def _write_loaded(self, index: int, instruction: Instruction, access: Access, values: Iterable[Value], shape: Shape) -> None:
        guard, kind = self._guard(instruction), Kind(instruction.type)
        for item, value in zip(access.items, values, strict=True):
            assert isinstance(item, Register)
            if item.name in self.registers:
                declared = Kind(self.kernel.register_type(item.name))
                if declared.bits > kind.bits:  # a narrow load fills a wider register, with the sign of its type
                    value = self._cast(value, Kind(f"{kind.name[0]}{declared.bits}"))
                self._write(index, item, value, shape, guard)

    # --- ends of blocks ----------------------------------------------------------------------------------------------

    def _end(self, index: int, block: Block) -> None:
        last = block.last
        if last is not None and is_barrier(last):
            self._barrier(index, block)
        elif block.ends_with("trap"):
            careful.report(self.b, self.launch, self.frame, abi.TRAPPED, self._site(last), self.b.load(self.mask, typ=I32))
            self.b.branch(self.stopped)
        elif last is not None and last.guard and block.ends_with("bra", "ret", "exit"):
            self._conditional(index, block, last)
        else:
            self._go(index, block.successors)

    def _conditional(self, index: int, block: Block, last: Instruction) -> None:
        """A guarded branch or return; the first target is the branch's, or none for a return."""
        b, predicate = self.b, self._guard(last)
        target = block.successors[:1] if block.ends_with("bra") else []
        other = block.successors[-1:]
        if index not in self.flow.divergent:
            taken, not_taken = (self.function.append_basic_block(name) for name in ("taken", "nottaken"))
            b.cbranch(predicate, taken, not_taken)
            for following, targets in ((taken, target), (not_taken, other)):
                self.b = ir.IRBuilder(following)
                self._go(index, targets)
            return
        mask, taken_mask = b.load(self.mask, typ=I32), mask_of(b, predicate)
        self._add_waiting(other, b.and_(mask, b.not_(taken_mask)))
        self._add_waiting(target, b.and_(mask, taken_mask))
        self._next(index, [*target, *other], parted=not target)

    def _add_waiting(self, targets: list[int], mask: Value) -> None:
        for target in targets:
            slot = self.waiting[target]
            self.b.store(self.b.or_(self.b.load(slot, typ=I32), mask), slot)

    def _go(self, index: int, targets: list[int]) -> None:
        """All active lanes go to one block, or leave the kernel."""
        if not targets:
            self._next(index, [], parted=True)
            return
        if self.flow.next_blocks(index, targets) == targets and targets[0] not in self.flow.blocks[index].may_wait:
            self._jump(index, targets[0])
            return
        self._add_waiting(targets, self.b.load(self.mask, typ=I32))
        self._next(index, targets, parted=False)

    def _next(self, index: int, targets: list[int], parted: bool) -> None:
        """Run the lowest block with waiting lanes. `parted`: there may be none, and the warp has ended."""
        candidates = self.flow.next_blocks(index, targets)
        for position, candidate in enumerate(candidates):
            mask = self.b.load(self.waiting[candidate], typ=I32)
            run = self.function.append_basic_block("run")
            if parted or position < len(candidates) - 1:
                following = self.function.append_basic_block("look")
                self.b.cbranch(self.b.icmp_unsigned("!=", mask, ir.Constant(I32, 0)), run, following)
            else:
                self.b.branch(run)
                following = None
            self.b = ir.IRBuilder(run)
            self.b.store(mask, self.mask)
            self.b.store(ir.Constant(I32, 0), self.waiting[candidate])
            self._jump(index, candidate)
            if following is None:
                return
            self.b = ir.IRBuilder(following)
        self.b.ret(ir.Constant(I32, abi.ENDED))

    def _jump(self, index: int, target: int) -> None:
        """Branch; a jump back looks whether the launch has been stopped."""
        b = self.b
        if target > index:
            b.branch(self.starts[target])
            return
        stop = b.load(abi.field(b, Launch, self.launch, "stop"), typ=I32)
        stop.volatile = True
        note = self.function.append_basic_block("note")
        b.cbranch(b.icmp_unsigned("==", stop, ir.Constant(I32, 0)), self.starts[target], note).set_weights([1000, 1])
        b = ir.IRBuilder(note)
        site = self._site(self.flow.blocks[index].last or self.flow.blocks[target].code[0])
        b.store(site, abi.field(b, Launch, self.launch, "stopped_at"))
        b.branch(self.stopped)

    def _site(self, instruction: Instruction | None) -> Value:
        return ir.Constant(I32, self.site_of[id(instruction)])

    def _barrier(self, index: int, block: Block) -> None:
        """Save what the next block needs and wait; lanes of this warp that are elsewhere are a mistake."""
        b = self.b
        number = self.layout.barriers.index(index) + 1
        elsewhere: Value = ir.Constant(I32, 0)
        for other in sorted(block.may_wait):
            elsewhere = b.or_(elsewhere, b.load(self.waiting[other], typ=I32))
        site = self._site(block.last)
        if block.may_wait:
            parted, together = (self.function.append_basic_block(name) for name in ("parted", "together"))
            b.cbranch(b.icmp_unsigned("==", elsewhere, ir.Constant(I32, 0)), together, parted)
            careful.report(ir.IRBuilder(parted), self.launch, self.frame, abi.PARTED_AT_BARRIER, site, elsewhere).branch(self.stopped)
            self.b = b = ir.IRBuilder(together)
        b.store(b.load(self.mask, typ=I32), abi.field(b, Frame, self.frame, "mask"))
        for name, place in self._saved(b, block.successors[0]):
            slot = self.registers[name]
            b.store(b.load(slot, typ=slot.allocated_type), place)
        b.ret(ir.Constant(I32, number))


def _lane_masks(name: str) -> Value:
    """`%lanemask_lt` and its kin, a bit mask a lane."""
    masks = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: -(2 << lane),
        "ge": lambda lane: -(1 << lane),
    }
    return ir.Constant(ir.VectorType(I32, WARP), [ir.Constant(I32, masks[name](lane) & 0xFFFFFFFF) for lane in range(WARP)])


