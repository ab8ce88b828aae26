"""PTX as data: modules, kernels and instructions, each with its line in the student's source.

Reference: NVIDIA, Parallel Thread Execution ISA, chapters 4 (syntax) and 5 (state spaces).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from simt.common.errors import SimtError
from simt.common.limits import MAX_THREADS, Dim3
from simt.opcodes import COMPUTES, OPCODES, SPACES, Opcode

GRID = "grid"  # a part of the opcode of our own: the barrier is the whole grid's, see lowering/grid.py
_BY_BYTES = {
    1: "pred b8 u8 s8",
    2: "b16 u16 s16 f16 bf16",
    4: "f16x2 b32 u32 s32 f32 bf16x2 s16x2 u16x2",
    8: "b64 u64 s64 f64",
    16: "b128",
}
TYPE_BYTES = {name: bytes_ for bytes_, names in _BY_BYTES.items() for name in names.split()}


@dataclass(frozen=True)
class Register:
    """A register, known by its name, such as `%r1`."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant: the bits of an integer (`is_float` is False) or of a float that is `bits` wide."""

    value: int
    is_float: bool = False
    bits: int = 64


@dataclass(frozen=True)
class Symbol:
    """A variable, a label, a special register such as `%tid.x`, or a function."""

    name: str


@dataclass(frozen=True)
class Address:
    """The operand `[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """The operand `{a, b}` of a vector access, the pair of results `p|q`, or the list `(a, b)` of a call."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True)
class Guard:
    """The guard `@%p` or `@!%p` of an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction: `parts` is the opcode split at its dots, `line` the line in the source (0: none).

    `calls` are the lines that call the functions in which it stands, the innermost first.
    """

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    calls: tuple[int, ...] = ()

    @property
    def opcode(self) -> str:
        """Return the whole opcode, such as `ld.global.f32`."""
        return ".".join(self.parts)

    @cached_property
    def family(self) -> Opcode:
        """Return what the table of opcodes says of its family."""
        return OPCODES.get(self.parts[0], COMPUTES)

    @property
    def space(self) -> str:
        """Return the state space that it names, or "generic" if it names none."""
        return next((part for part in self.parts if part in SPACES), "generic")

    @property
    def is_access(self) -> bool:
        """Say whether it reads or writes memory that threads can address, which parameters are not."""
        return (self.family.reads or self.family.writes) and "param" not in self.parts

    @property
    def is_texture(self) -> bool:
        """Say whether it looks up a texture or a surface by its handle."""
        return self.parts[0] in ("tex", "tld4", "suaddr")

    @property
    def is_barrier(self) -> bool:
        """Say whether it waits for the whole block. `bar.warp.sync` does not: a warp runs in step."""
        return self.family.waits and "warp" not in self.parts

    @property
    def meets_grid(self) -> bool:
        """Say whether it is a barrier of the whole grid."""
        return self.is_barrier and GRID in self.parts

    @property
    def stops(self) -> bool:
        """Say whether the warp stops here, and others of the block run before it goes on."""
        return self.is_barrier or self.gives_way

    @property
    def gives_way(self) -> bool:
        """Say whether the block's other warps get their turn here, as when it waits for what they write."""
        return self.parts == ("yield",)

    @property
    def spins(self) -> bool:
        """Say whether a loop begins here that may wait for other threads (lowering/spinning.py)."""
        return self.parts[:2] == ("yield", "spin")

    @property
    def awaits_blocks(self) -> bool:
        """Say whether the threads for which such a loop waits may be those of other blocks."""
        return self.spins and GRID in self.parts

    @property
    def gathers(self) -> bool:
        """Say whether lanes wait here for lanes of their warp that may still wait in such a loop."""
        return self.parts == ("yield", "gather")

    @property
    def votes(self) -> bool:
        """Say whether it is a barrier that counts predicates: __syncthreads_count, _and or _or."""
        return self.family.waits and "red" in self.parts

    @property
    def ends_block(self) -> bool:
        """Say whether it is the last instruction of a basic block."""
        return bool(self.family.end) or self.stops or self.spins or self.gathers

    @cached_property
    def results(self) -> tuple[Register, ...]:
        """Return the registers that it writes."""
        if not self.operands or not (self.family.has_result or self.votes):
            return ()
        first = self.operands[0]
        items = first.items if isinstance(first, Vector) else (first,)
        return tuple(item for item in items if isinstance(item, Register) and item.name != "_")

    @cached_property
    def sources(self) -> tuple[Register, ...]:
        """Return the registers that it reads, including its guard."""
        read = [self.guard.register] if self.guard else []
        for operand in self.operands[bool(self.results) :]:
            if isinstance(operand, Vector):
                read += [item for item in operand.items if isinstance(item, Register)]
            elif isinstance(operand, Address):
                read += [operand.base] if isinstance(operand.base, Register) else []
            elif isinstance(operand, Register):
                read.append(operand)
        return tuple(read)

    @cached_property
    def type(self) -> str:
        """Return the last part that names a type: `s32` for `add.s32`, the source's type for a conversion."""
        return next((part for part in reversed(self.parts) if part in TYPE_BYTES), "")

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that a load, store or atomic operation moves per lane."""
        items = max(len(operand.items) if isinstance(operand, Vector) else 1 for operand in self.operands)
        return items * TYPE_BYTES[self.type]


@dataclass(frozen=True)
class Variable:
    """A parameter, or a variable in a state space.

    `size` is in bytes, and `values` are its initial bytes, if any. `addresses` are the pointers in its
    initial value: (offset, name of a variable or function, bytes beyond it).
    """

    name: str
    type: str
    size: int
    align: int
    values: bytes = b""
    addresses: tuple[tuple[int, str, int], ...] = ()


@dataclass
class Kernel:
    """An entry or a device function: its variables, the types of its registers, its code and its labels."""

    name: str
    params: list[Variable]
    results: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    shared: list[Variable] = field(default_factory=list)
    local: list[Variable] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # targets of each `brx.idx`, by label
    max_threads: int = MAX_THREADS
    cluster: Dim3 = (1, 1, 1)  # blocks of a cluster, as the kernel is declared
    is_asynchronous: bool = False  # has it mbarriers, bulk copies or clusters? See lowering/services.py

    @property
    def blocks_together(self) -> int:
        """Return how many blocks of a cluster run together."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def waits_for_grid(self) -> bool:
        """Say whether it has a barrier of the whole grid, which takes a cooperative launch."""
        return any(instruction.meets_grid for instruction in self.code)

    @property
    def waits_for_blocks(self) -> bool:
        """Say whether it has loops in which a block may wait for others."""
        return any(instruction.awaits_blocks for instruction in self.code)

    def register_type(self, name: str) -> str:
        """Return the declared type of a register. Families such as `%f<9>` are declared by their prefix."""
        return self.registers.get(name) or self.registers[name.rstrip("0123456789")]


@dataclass
class Module:
    """A parsed module: its kernels, variables and device functions by name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    variables: dict[str, tuple[str, Variable]] = field(default_factory=dict)
    functions: dict[str, Kernel] = field(default_factory=dict)


def mapped(instruction: Instruction, change: Callable[[Operand], Operand]) -> Instruction:
    """Return the instruction with its registers and symbols changed, including those in its guard."""

    def one(operand: Operand) -> Operand:
        match operand:
            case Address(base, offset):
                return Address(change(base), offset)  # type: ignore[arg-type]
            case Vector(items):
                return Vector(tuple(one(item) for item in items))
        return change(operand)

    guard = instruction.guard
    if guard is not None:
        guard = replace(guard, register=change(guard.register))  # type: ignore[arg-type]
    return replace(instruction, operands=tuple(one(o) for o in instruction.operands), guard=guard)


def float_value(immediate: Immediate) -> float:
    """Return the number whose IEEE bits the immediate holds."""
    code = "<f" if immediate.bits == 32 else "<d"
    return float(struct.unpack(code, immediate.value.to_bytes(immediate.bits // 8, "little"))[0])


def unknown(instruction: Instruction) -> SimtError:
    """Return the error for an instruction that the simulator does not know."""
    where = f"line {instruction.line}: " if instruction.line else ""
    if instruction.parts[0] == "call":
        callee = next((o.name for o in instruction.operands if isinstance(o, Symbol)), "?")
        return SimtError(f"{where}the simulator cannot call `{callee}`")
    return SimtError(f"{where}the simulator does not know the PTX instruction `{instruction.opcode}`")
