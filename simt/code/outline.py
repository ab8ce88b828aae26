"""Code of large kernels: instructions that are alike share one LLVM function, which is made once.

A kernel that is unrolled to thousands of instructions has few kinds of them. A row of a table holds what sets
an instruction apart: where its registers lie in the warp's frame, the offset of its address, whole numbers
among its operands, and its own number. A basic block calls `run`, which goes through the block's rows and
calls the function of each. So the time to build a large kernel grows with the kinds of its instructions.
Such code runs slower than code in place, as every register goes through memory.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.code.abi import I1, I8, I32, I64, POINTER, Value, fill, table
from simt.code.checked_access import defined_once
from simt.code.emitter import Emitter
from simt.code.warp import Inside, Warp
from simt.ptx import Address, Immediate, Instruction, Operand, Register, Symbol, Vector

# Instructions for which a number is a value like another, which decides nothing about the code.
_PLAIN_NUMBERS = {
    "b": {"mov", "and", "or", "xor", "setp"},
    "s": {"add", "sub", "mov", "setp"},
    "u": {"add", "sub", "mov", "setp"},
    "f": {"add", "sub", "mov", "setp", "mul", "fma", "div", "min", "max"},
}
_HEAD = 3  # words of a row before those that differ: its length in bytes, its function, its instruction
_LIKE = ir.FunctionType(I1, [POINTER] * 5)  # (launch, frame, mask, waiting, row): does the launch end?
Emit = Callable[[Instruction, Access | None, ir.Block], None]


@dataclass
class _Row:
    """What an instruction shares with others of its kind, and what sets it apart."""

    kind: list[object]
    offset: int | None = None
    numbers: list[Immediate] = field(default_factory=list)
    registers: list[str] = field(default_factory=list)
    observed: dict[str, int] = field(default_factory=dict)


class Outlines:
    """The functions and rows of one kernel; `emit` writes an instruction, and goes to a block if it stops."""

    def __init__(self, w: Warp, emitter: Emitter, emit: Emit) -> None:
        self.w, self.emitter, self.emit = w, emitter, emit
        self.functions: dict[tuple[object, ...], tuple[int, Instruction]] = {}
        self.made: list[ir.Function] = []
        self.words = array("i")
        self.table = table(w.function.module, "rows")
        self.pointers = table(w.function.module, "kinds")

    def finish(self) -> None:
        """Fill in the tables."""
        fill(self.table, I8, bytearray(self.words.tobytes()))
        fill(self.pointers, POINTER, self.made)

    def add(self, instruction: Instruction, access: Access | None) -> None:
        """Add the row of an instruction, and its function if it is the first of its kind."""
        w, row = self.w, self._row(instruction, access)
        kind = tuple(row.kind)
        if kind not in self.functions:
            self.functions[kind] = len(self.made), instruction
            self.made.append(self._function(instruction, access, row))
        number, first = self.functions[kind]
        if access is not None:
            self.emitter.alike(instruction, first)
        values = [row.offset or 0, *(number.value for number in row.numbers)]
        words = array("q", [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in values])
        length = _HEAD + 2 * len(words) + len(row.registers) + len(row.observed)
        self.words.extend([4 * length, number])
        self.words.append(w.sites[id(instruction)])
        self.words.frombytes(words.tobytes())
        self.words.extend([w.layout.places[name] for name in row.registers])
        self.words.extend(row.observed.values())

    def run(self, first: int) -> Value:
        """Emit a call that runs the rows from word `first` on, and return whether the launch ends."""
        w, ends = self.w, (first, len(self.words))
        rows = [w.b.gep(self.table, [ir.Constant(I64, 4 * word)], source_etype=I8) for word in ends]
        function = defined_once(w.function.module, "rows.run", _run_type(), self._emit_run)
        return w.b.call(function, [w.launch, w.frame, w.mask, w.waiting, *rows])

    def _emit_run(self, function: ir.Function) -> None:
        launch, frame, mask, waiting, first, end = function.args
        entry, head, body, stopped, done = (
            function.append_basic_block(name) for name in ("entry", "head", "body", "stopped", "done")
        )
        ir.IRBuilder(entry).branch(head)
        b = ir.IRBuilder(head)
        row = b.phi(POINTER)
        row.add_incoming(first, entry)
        b.cbranch(b.icmp_unsigned("==", row, end), done, body)
        b = ir.IRBuilder(body)
        length, number = (b.load(_word(b, row, i), typ=I32, align=4) for i in (0, 1))
        place = b.gep(self.pointers, [number], source_etype=POINTER)
        like = b.inttoptr(b.load(place, typ=I64), _LIKE.as_pointer())
        stops = b.call(like, [launch, frame, mask, waiting, row])
        row.add_incoming(b.gep(row, [length], source_etype=I8), body)
        b.cbranch(stops, stopped, head)
        ir.IRBuilder(stopped).ret(ir.Constant(I1, 1))
        ir.IRBuilder(done).ret(ir.Constant(I1, 0))

    def _row(self, instruction: Instruction, access: Access | None) -> _Row:
        w, flow, row = self.w, self.w.flow, _Row([instruction.parts, self.emitter.kind(instruction)])
        has_plain_numbers = instruction.parts[0] in _PLAIN_NUMBERS.get(instruction.type[:1], ())

        def fits(number: Immediate) -> bool:
            if number.is_float:
                return instruction.type == f"f{number.bits}"
            return instruction.type[:1] != "f"

        def register(name: str) -> object:
            declared = w.kernel.register_type(name)
            if name not in w.types:
                return "never written", declared
            if name not in row.registers:
                row.registers.append(name)
            return row.registers.index(name), declared, flow.shapes[name], name in flow.rules.indices

        def described(operand: Operand) -> object:
            match operand:
                case Register(name):
                    return register(name) if name != "_" else name
                case Immediate() if has_plain_numbers and fits(operand):
                    row.numbers.append(operand)
                    return "number"
                case Vector(items):
                    return tuple(described(item) for item in items)
                case Address(Symbol(name), offset) if access is None:  # ld.param
                    row.offset = w.layout.params[name] + offset
                    return "parameter"
                case Address(base, offset) if access is not None:
                    if base in instruction.results:
                        return described(base), offset
                    row.offset = offset
                    return "address", described(base)
            return operand

        if instruction.guard:
            row.kind += [instruction.guard.negated, register(instruction.guard.register.name)]
        row.kind += [described(operand) for operand in instruction.operands]
        row.kind += [flow.needs_blend(w.index, result.name) for result in instruction.results]
        if access is not None:
            row.kind += [access.range, access.space]
        if instruction.family.names_lanes:
            row.kind.append(flow.blocks[w.index].elsewhere)
        row.observed = self.emitter.words(instruction)
        return row

    def _function(self, instruction: Instruction, access: Access | None, row: _Row) -> ir.Function:
        """Define the function of the instructions that are like this one."""
        w = self.w
        function = ir.Function(
            w.function.module, _LIKE, f"like{len(self.made)}_{'_'.join(instruction.parts)}"
        )
        function.linkage = "internal"
        if access is not None:
            start = access.offsets[0] if row.offset is not None else 0
            access = replace(access, offsets=[each - start for each in access.offsets], is_first=True)
            access.group_range = access.extent
        after = _HEAD + 2 + 2 * len(row.numbers)
        beyond = after + len(row.registers)
        inside = Inside(
            row=function.args[-1],
            offset=None if row.offset is None else _HEAD,
            numbers={id(number): _HEAD + 2 + 2 * i for i, number in enumerate(row.numbers)},
            places={name: after + i for i, name in enumerate(row.registers)},
            observed={name: beyond + i for i, name in enumerate(row.observed)},
        )
        with w.inside(function, inside):
            stopped = w.new_block("stopped")
            ir.IRBuilder(stopped).ret(ir.Constant(I1, 1))
            self.emit(instruction, access, stopped)
            w.b.ret(ir.Constant(I1, 0))
        return function


def _run_type() -> ir.FunctionType:
    return ir.FunctionType(I1, [POINTER] * 6)


def _word(b: ir.IRBuilder, row: Value, number: int) -> Value:
    return b.gep(row, [ir.Constant(I64, 4 * number)], source_etype=I8)
