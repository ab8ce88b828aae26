"""A kernel for one block shape -> an LLVM function that runs one warp from a barrier to the next.

    i32 warp(ptr launch, ptr frame, i32 resume)   the barrier it waits at (1, 2, ...), ENDED or STOPPED

Each basic block is made twice. The fast code leaves for the careful code at an access whose range check
fails, and the careful code goes on to the block's end. A counted run has the careful code only.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from labkit.simt import atomics, crosslane, instructions, loadstore
from labkit.simt.abi import I64
from labkit.simt.accesses import Accesses
from labkit.simt.blocks import Block, is_barrier
from labkit.simt.control import Control
from labkit.simt.flow import Flow
from labkit.simt.instructions import Kind, constant
from labkit.simt.layout import Layout
from labkit.simt.ptx import Instruction, Register, Vector
from labkit.simt.vectors import broadcast, count_of, element_type, vector_type
from labkit.simt.warp import Warp

Value = Any
# Nothing to do where a warp runs in step and memory is always up to date.
NO_EFFECT = {"membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "bar", "barrier", "pragma"}


def warp_function(module: ir.Module, flow: Flow, layout: Layout, counted: bool) -> ir.Function:
    """Add the function to `module`. Raises SimtError for an instruction that the simulator does not know."""
    return _Code(Warp(module, flow, layout), counted).w.function


class _Code:
    def __init__(self, warp: Warp, counted: bool) -> None:
        self.w, self.counted = warp, counted
        self.control = Control(warp)
        self.control.enter()
        for index, block in enumerate(warp.flow.blocks):
            warp.index = index
            self._block(block)

    def _block(self, block: Block) -> None:
        w, end = self.w, self.w.new_block("end")
        w.continue_in(self.control.starts[w.index])
        if not block.may_wait and not block.may_have_exited:
            w.b.store(w.full_mask, w.mask)  # all lanes are together: LLVM can drop the masks
        accesses = Accesses(block, w.flow, w.layout)
        body = [instruction for instruction in block.code if not _is_end(instruction)]
        careful_from = {0: w.b.block} if self.counted else self._fast_code(body, accesses, end)
        if careful_from:
            self._careful_code(body, accesses, careful_from, end)
        w.continue_in(end)
        self.control.end(block)

    def _fast_code(self, body: list[Instruction], accesses: Accesses, end: ir.Block) -> dict[int, ir.Block]:
        """The block as long as all goes well. Gives the places where it leaves for the careful code."""
        w, leaves = self.w, {}
        for position, instruction in enumerate(body):
            access = accesses.at.get(position)
            if access is None:
                self._instruction(instruction)
                continue
            if access.is_first or not access.has_fast_form:
                leaves[position] = w.new_block("careful")
            if not access.has_fast_form:
                w.b.branch(leaves[position])
                return leaves
            if access.is_first:
                following = w.new_block("fast")
                w.b.cbranch(loadstore.all_in_range(w, access), following, leaves[position]).set_weights(
                    [1000, 1]
                )
                w.continue_in(following)
            loadstore.fast(w, instruction, access)
        w.b.branch(end)
        return leaves

    def _careful_code(
        self, body: list[Instruction], accesses: Accesses, entries: dict[int, ir.Block], end: ir.Block
    ) -> None:
        """The block from its first entry on, with a check of every lane of every access."""
        w, first = self.w, min(entries)
        w.continue_in(entries[first])
        for position, instruction in enumerate(body[first:], first):
            if position in entries and position > first:
                w.b.branch(entries[position])
                w.continue_in(entries[position])
            access = accesses.at.get(position)
            if access is None:
                self._instruction(instruction)
            elif access.is_atomic:
                atomics.emit(w, instruction, access, self.counted, self.control.stopped)
            else:
                loadstore.carefully(w, instruction, access, self.counted, self.control.stopped)
        w.b.branch(end)

    def _instruction(self, instruction: Instruction) -> None:
        """An instruction that is no access and does not end a block."""
        name = instruction.parts[0]
        if name == "ld":
            loadstore.load_parameter(self.w, instruction)
        elif emit := crosslane.find(instruction):
            emit(self.w, instruction)
        elif name not in NO_EFFECT:
            self._compute(instruction, _known(instruction, instructions.find(instruction)))

    def _compute(self, instruction: Instruction, operation: instructions.Operation) -> None:
        """Emit an entry of the table of instructions, once a group of lanes."""
        w = self.w
        result = w.flow.rules.result(instruction, w.flow.shapes)
        kinds = operation.operand_kinds(instruction)
        operands = instruction.operands[1:]
        if instruction.parts[0] == "setp" and len(operands) == 3:
            kinds.append(Kind("pred"))  # setp.lt.and: the third operand is joined to the comparison
        if len(operands) != len(kinds):
            raise instructions.unknown(instruction)
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
            if isinstance(item, Register):  # `_` takes what nobody wants
                w.write(item, part, result.shape, guard)

    def _parts(self, instruction: Instruction, value: Value) -> list[Value]:
        """What each result gets: the value; its opposite too (`setp p|q`); its parts (`mov {low, high}`)."""
        b, first = self.w.b, instruction.operands[0]
        if isinstance(value, tuple):  # with the carry
            return list(value)
        if not isinstance(first, Vector):
            return [value]
        if instruction.parts[0] == "setp":
            return [value, b.not_(value)]
        bits = element_type(value).width // len(first.items)
        type_ = vector_type(ir.IntType(bits), count_of(value))
        return [b.trunc(b.lshr(value, constant(value, i * bits)), type_) for i in range(len(first.items))]

    def _shared_address(self, instruction: Instruction, value: Value) -> Value:
        """Generic addresses are the host's; those of shared memory are offsets into the block's."""
        b = self.w.b
        start = broadcast(b, b.ptrtoint(self.w.shared, I64), count_of(value))
        return b.sub(value, start) if "to" in instruction.parts else b.add(value, start)


def _is_end(instruction: Instruction) -> bool:
    return instruction.parts[0] in ("bra", "ret", "exit", "trap") or is_barrier(instruction)


def _known(instruction: Instruction, operation: instructions.Operation | None) -> instructions.Operation:
    if operation is None:
        raise instructions.unknown(instruction)
    return operation
