"""Turn `wmma.load` and `wmma.store` into loads and stores per lane, and `wmma.mma` into one product.

Reference: PTX ISA, 9.7.14.4. Layout of fragments: fragments.py.
"""

from dataclasses import replace

from simt import ptx
from simt.lowering.fragments import BITS, Matrices, matrices
from simt.lowering.ldmatrix import lane_numbers, transposed
from simt.lowering.writer import Writer


def lower_wmma(w: Writer, instruction: ptx.Instruction) -> None:
    """Replace a load, a store or a product of fragments."""
    found = matrices(instruction.parts)
    if found is None:
        raise ptx.unknown(instruction)
    if instruction.parts[1] == "mma":
        types = found.types
        shape = next(part for part in instruction.parts if part[0] == "m" and part[1:2].isdigit())
        extra = tuple(part for part in instruction.parts if part == "satfinite")
        w.code.append(replace(instruction, parts=("mma", "sync", shape, *types, *extra)))
        return
    _Fragment(w, instruction, found).move()


class _Fragment:
    """One load or store of a fragment, which works out where each lane's numbers lie."""

    def __init__(self, w: Writer, instruction: ptx.Instruction, found: Matrices) -> None:
        self.w, self.role, self.is_load = w, instruction.parts[2], instruction.parts[1] == "load"
        self.found, self.type = found, found.type(self.role)
        self.bytes, self.per = BITS[self.type] // 8, found.per_register(self.role)
        first, second, *stride = instruction.operands
        address, values = (second, first) if self.is_load else (first, second)
        assert isinstance(address, ptx.Address)
        self.space = next((f".{p}" for p in instruction.parts if p in ("global", "shared", "local")), "")
        self.registers: list[ptx.Operand] = list(values.items) if isinstance(values, ptx.Vector) else [values]
        self.rows_first = "row" in instruction.parts
        rows, columns = {"a": (found.m, found.k), "b": (found.k, found.n)}.get(self.role, (found.m, found.n))
        width = ptx.Immediate(columns if self.rows_first else rows)
        given: ptx.Operand = stride[0] if stride else width
        self.stride = w.start.numbers.get(given, given) if isinstance(given, ptx.Register) else given
        self.wide = self._base(address)
        self.lane, self.offset = self._lane_address(address), address.offset
        self.columns: dict[int, ptx.Register] = {}

    def _base(self, address: ptx.Address) -> str:
        """Return the type of the address: 32 or 64 bits."""
        if isinstance(address.base, ptx.Register):
            return f"u{8 * ptx.TYPE_BYTES[self.w.kernel.register_type(address.base.name)]}"
        return "u64"

    def _scaled(self, number: ptx.Operand, factor: ptx.Operand) -> ptx.Register:
        """Return the product of two unsigned 32-bit numbers, in the width of addresses."""
        opcode, type_ = ("mul.wide.u32", "u64") if self.wide == "u64" else ("mul.lo.u32", "u32")
        if self._is_known or self.stride not in (number, factor):
            return self.w.at_start(opcode, type_, number, factor)
        return self.w.new(opcode, type_, number, factor)

    def _lane_address(self, address: ptx.Address) -> ptx.Register:
        """Return where this lane's first number in the block at row 0, column 0 lies, less the offset."""
        w = self.w
        _, group, index = lane_numbers(w)
        count = 2 if self.role in "cd" else self.per
        along = w.at_start("mul.lo.u32", "u32", index, ptx.Immediate(count * self.bytes))
        across = w.at_start("mul.lo.u32", "u32", group, ptx.Immediate(self.bytes))
        if self._along_rows or self._transposes:  # a lane's two numbers lie side by side
            first, second = self._scaled(across, self.stride), self._scaled(along, ptx.Immediate(1))
        else:
            first, second = self._scaled(across, ptx.Immediate(1)), self._scaled(along, self.stride)
        offset = (w.at_start if self._is_known else w.new)(f"add.{self.wide}", self.wide, first, second)
        base: ptx.Operand = address.base
        if isinstance(base, ptx.Symbol):
            base = w.new("mov.u64", "u64", base)
        return w.new(f"add.{self.wide}", self.wide, base, offset)

    @property
    def _is_known(self) -> bool:
        """Say whether the stride is a number."""
        return isinstance(self.stride, ptx.Immediate)

    @property
    def _along_rows(self) -> bool:
        """Say whether neighbours in one lane lie side by side in memory."""
        return self.rows_first != self.found.is_turned(self.role)

    @property
    def _transposes(self) -> bool:
        """Say whether lanes load the other direction's neighbours and exchange them, as the hardware does."""
        return not self._along_rows and self.bytes == 2

    def _place(self, row: int, column: int) -> ptx.Address:
        """Return where the lane's number lies, for a row and column relative to its own."""
        major, minor = (row, column) if self.rows_first else (column, row)
        if isinstance(self.stride, ptx.Immediate):
            return ptx.Address(self.lane, self.offset + (major * self.stride.value + minor) * self.bytes)
        if major not in self.columns:
            self.columns[major] = self.lane
            if major:
                further = self._scaled(self.stride, ptx.Immediate(major * self.bytes))
                self.columns[major] = self.w.new(f"add.{self.wide}", self.wide, self.lane, further)
        return ptx.Address(self.columns[major], self.offset + minor * self.bytes)

    def move(self) -> None:
        """Load or store all registers; a fragment with more registers than blocks holds each block twice."""
        blocks = self.found.blocks(self.role)
        each = 2 if self.role in "cd" and self.type != "f16" else 1
        for first in range(0, len(self.registers), each):
            block = first // each
            if block < len(blocks):
                self._block(self.registers[first : first + each], *blocks[block])
            elif self.is_load:
                self.w.emit("mov.b32", self.registers[first], self.registers[first - len(blocks)])

    def _block(self, registers: list[ptx.Operand], row: int, column: int) -> None:
        """Load or store one block: a register of several numbers, or two registers with one each."""
        count = max(len(registers), self.per)
        places = [
            self._place(row + i, column) if self.found.is_turned(self.role) else self._place(row, column + i)
            for i in range(count)
        ]
        bits = 64 if self.type == "f64" else 32
        if self._along_rows or count == 1:
            name = f"b{bits}" if len(registers) == 1 else f"v2.b{bits}"
            self._access(
                name, registers[0] if len(registers) == 1 else ptx.Vector(tuple(registers)), places[0]
            )
        elif self._transposes and self.is_load:
            loaded = self.w.register("b32")
            self._access("b32", loaded, self._place(row, column))
            self.w.emit("mov.b32", registers[0], transposed(self.w, loaded))
        elif self._transposes:
            self._access("b32", transposed(self.w, registers[0]), self._place(row, column))
        elif len(registers) > 1:
            for register, place in zip(registers, places, strict=True):
                self._access(f"b{bits}", register, place)
        else:
            parts = [self.w.register("b16") for _ in places]
            packed = ptx.Vector(tuple(parts))
            if not self.is_load:
                self.w.emit("mov.b32", packed, registers[0])
            for part, place in zip(parts, places, strict=True):
                self._access(f"b{8 * self.bytes}", part, place)
            if self.is_load:
                self.w.emit("mov.b32", registers[0], packed)

    def _access(self, type_: str, value: ptx.Operand, place: ptx.Address) -> None:
        if self.is_load:
            self.w.emit(f"ld{self.space}.{type_}", value, place)
        else:
            self.w.emit(f"st{self.space}.{type_}", place, value)
