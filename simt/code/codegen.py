"""Turn a kernel into an LLVM function, for one block shape, that runs a warp up to the next barrier.

    i32 warp(ptr launch, ptr frame, i32 resume)   the barrier it waits at (1, 2, ...), ENDED or STOPPED

Each basic block is made twice. The fast code jumps to the careful code at an access whose range check fails,
and the careful code continues to the block's end. An Emitter emits what counted and checked runs add; their
fast code is for whole warps only.
"""

from llvmlite import ir

from simt.analysis.accesses import Access, Accesses
from simt.analysis.blocks import Block
from simt.analysis.convergence import Groups
from simt.analysis.flow import Flow
from simt.analysis.layout import Layout
from simt.code import atomics, crosslane, instructions, loadstore
from simt.code.abi import I32, I64, Value
from simt.code.control import Control
from simt.code.convergence import Convergence
from simt.code.emitter import Emitter
from simt.code.instructions import Kind, constant
from simt.code.outline import Outlines
from simt.code.parking import Parking
from simt.code.vectors import broadcast, count_of, element_type, vector_type
from simt.code.warp import Warp
from simt.ptx import Instruction, Register, Vector, unknown


def warp_function(module: ir.Module, flow: Flow, layout: Layout, emitter: Emitter) -> ir.Function:
    """Add the function to `module`. Raises SimtError for an instruction that the simulator does not know."""
    return _Code(Warp(module, flow, layout), emitter).w.function


class _Code:
    def __init__(self, warp: Warp, emitter: Emitter) -> None:
        self.w, self.emitter = warp, emitter
        emitter.attach(warp)
        self.control = _control(warp)(warp, emitter)
        self.outlines = Outlines(warp, emitter, self._outlined)
        self.control.enter()
        for index, block in enumerate(warp.flow.blocks):
            warp.index = index
            self._block(block)
        self.control.finish()
        emitter.finish()
        self.outlines.finish()

    def _block(self, block: Block) -> None:
        w, end = self.w, self.w.new_block("end")
        w.continue_in(self.control.starts[w.index])
        w.accesses = accesses = Accesses(block, w.flow, w.layout)
        body = [instruction for instruction in block.code if not instruction.ends_block]
        if w.layout.is_large:
            self._calls(block, body, accesses, end)
        else:
            self._in_place(block, body, accesses, end)
        w.continue_in(end)
        if block.last and block.last.ends_block:
            self.emitter.reads(block.last)
        self.control.end(block)

    def _calls(self, block: Block, body: list[Instruction], accesses: Accesses, end: ir.Block) -> None:
        """Emit a call that runs the block's instructions one by one."""
        w = self.w
        if self.emitter.whole_warps:
            partial = self._part_whole_warps(block)
            together = w.new_block("together")
            w.b.branch(together)
            w.continue_in(partial)
            w.b.branch(together)
            w.continue_in(together)
        else:
            self.emitter.enter(block, whole=False)
        first = len(self.outlines.words)
        for position, instruction in enumerate(body):
            self.outlines.add(instruction, accesses.at.get(position))
        w.b.cbranch(self.outlines.run(first), self.control.stopped, end)

    def _outlined(self, instruction: Instruction, access: Access | None, stopped: ir.Block) -> None:
        """Emit an instruction in a function of its own: an access has its fast form and its careful one."""
        w = self.w
        self.emitter.reads(instruction)
        if access is None:
            self._instruction(instruction)
            return
        end = w.new_block("end")
        if access.has_fast_form and self.emitter.takes(instruction, access):
            look, fast, careful = (w.new_block(name) for name in ("look", "fast", "careful"))
            if self.emitter.whole_warps:
                w.b.cbranch(w.b.icmp_unsigned("==", w.active(), ir.Constant(I32, -1)), look, careful)
            else:
                w.b.branch(look)
            w.continue_in(look)
            w.b.cbranch(loadstore.all_in_range(w, access), fast, careful).set_weights([1000, 1])
            w.continue_in(fast)
            loadstore.fast(w, self.emitter, instruction, access)
            w.b.branch(end)
            w.continue_in(careful)
        self._carefully(instruction, access, stopped)
        w.b.branch(end)
        w.continue_in(end)

    def _carefully(self, instruction: Instruction, access: Access, stopped: ir.Block) -> None:
        """Emit an access with a check of every lane."""
        emit = atomics.emit if access.is_atomic else loadstore.carefully
        emit(self.w, self.emitter, instruction, access, stopped)

    def _in_place(self, block: Block, body: list[Instruction], accesses: Accesses, end: ir.Block) -> None:
        """Emit the block's instructions one after the other, in fast and in careful code."""
        w = self.w
        leaves: dict[int, ir.Block] = {}
        if not block.elsewhere and not block.may_have_exited:
            w.b.store(w.full_mask, w.mask)  # all lanes are together, so LLVM can drop the masks
        if self.emitter.whole_warps:
            leaves[0] = self._part_whole_warps(block)
        else:
            self.emitter.enter(block, whole=False)
        self._fast_code(body, accesses, end, leaves)
        if leaves:
            self._careful_code(body, accesses, leaves, end)

    def _part_whole_warps(self, block: Block) -> ir.Block:
        """Continue here with all 32 lanes; return the block where careful code begins for fewer."""
        w = self.w
        whole, partial, careful = (w.new_block(name) for name in ("whole", "partial", "careful"))
        w.b.cbranch(w.b.icmp_unsigned("==", w.active(), ir.Constant(I32, -1)), whole, partial)
        w.continue_in(partial)
        self.emitter.enter(block, whole=False)
        w.b.branch(careful)
        w.continue_in(whole)
        w.b.store(ir.Constant(I32, -1), w.mask)
        self.emitter.enter(block, whole=True)
        return careful

    def _fast_code(
        self, body: list[Instruction], accesses: Accesses, end: ir.Block, leaves: dict[int, ir.Block]
    ) -> None:
        """Emit the block as long as no check fails. `leaves`: careful code to go to, by position."""
        w = self.w
        for position, instruction in enumerate(body):
            access = accesses.at.get(position)
            self.emitter.reads(instruction)
            if access is None:
                self._instruction(instruction)
                continue
            is_fast = access.has_fast_form and self.emitter.takes(instruction, access)
            if (access.is_first or not is_fast) and position not in leaves:
                leaves[position] = w.new_block("careful")
            if not is_fast:
                w.b.branch(leaves[position])
                return
            if access.is_first:
                following = w.new_block("fast")
                w.b.cbranch(loadstore.all_in_range(w, access), following, leaves[position]).set_weights(
                    [1000, 1]
                )
                w.continue_in(following)
            loadstore.fast(w, self.emitter, instruction, access)
        w.b.branch(end)

    def _careful_code(
        self, body: list[Instruction], accesses: Accesses, entries: dict[int, ir.Block], end: ir.Block
    ) -> None:
        """Emit the block from its first entry on, with a check of every lane of every access."""
        w, first = self.w, min(entries)
        w.continue_in(entries[first])
        for position, instruction in enumerate(body[first:], first):
            if position in entries and position > first:
                w.b.branch(entries[position])
                w.continue_in(entries[position])
            access = accesses.at.get(position)
            self.emitter.reads(instruction)
            if access is None:
                self._instruction(instruction)
            else:
                self._carefully(instruction, access, self.control.stopped)
        w.b.branch(end)

    def _instruction(self, instruction: Instruction) -> None:
        """Emit an instruction that is not an access and does not end a block."""
        name = instruction.parts[0]
        self.emitter.step(instruction)
        if name == "ld":
            loadstore.load_parameter(self.w, instruction)
        elif emit := crosslane.find(instruction):
            emit(self.w, instruction)
        elif self.control.instruction(instruction):
            pass
        elif not instruction.family.is_free:
            self._compute(instruction, _known(instruction, instructions.find(instruction)))

    def _compute(self, instruction: Instruction, operation: instructions.Operation) -> None:
        """Emit an entry of the table of instructions, once per group of lanes."""
        w = self.w
        result = w.flow.rules.result(instruction, w.flow.shapes)
        kinds = operation.operand_kinds(instruction)
        operands = instruction.operands[1:]
        if len(operands) != len(kinds):
            raise unknown(instruction)
        on_bases = [*result.on_bases, *(False for _ in operands)]
        arguments = [
            w.value(operand, kind, result.shape.bases, base)
            for operand, kind, base in zip(operands, kinds, on_bases, strict=False)
        ]
        value = instructions.emit(w.b, instruction, operation, arguments)
        if instruction.parts[0] == "cvta" and "shared" in instruction.parts:
            value = self._shared_address(instruction, value)
        guard = w.guard(instruction)
        first = instruction.operands[0]
        items = first.items if isinstance(first, Vector) else (first,)
        for item, part in zip(items, self._parts(instruction, value), strict=True):
            if isinstance(item, Register):  # `_` takes a result that nobody uses
                w.write(item, part, result.shape, guard)

    def _parts(self, instruction: Instruction, value: Value) -> list[Value]:
        """Return a value per result: the value, or its parts (`mov {low, high}`)."""
        b, first = self.w.b, instruction.operands[0]
        if isinstance(value, tuple):  # with the carry, or with the opposite
            return list(value)
        if not isinstance(first, Vector):
            return [value]
        bits = element_type(value).width // len(first.items)
        type_ = vector_type(ir.IntType(bits), count_of(value))
        return [b.trunc(b.lshr(value, constant(value, i * bits)), type_) for i in range(len(first.items))]

    def _shared_address(self, instruction: Instruction, value: Value) -> Value:
        """Convert between generic addresses, which are the host's, and offsets into shared memory."""
        b = self.w.b
        start = broadcast(b, b.ptrtoint(self.w.shared, I64), count_of(value))
        if self.w.flow.kernel.blocks_together > 1 and "to" not in instruction.parts:
            # In a cluster, 32 bits with a sign: the memory of a block of lower rank lies before this one's.
            value = self.w.cast(self.w.cast(value, Kind("s32")), Kind("s64"))
        return b.sub(value, start) if "to" in instruction.parts else b.add(value, start)


def _control(warp: Warp) -> type[Control]:
    """Return what emits the control flow of a kernel."""
    if isinstance(warp.flow, Groups):
        return Convergence
    return Parking if warp.layout.spins else Control


def _known(instruction: Instruction, operation: instructions.Operation | None) -> instructions.Operation:
    if operation is None:
        raise unknown(instruction)
    return operation
