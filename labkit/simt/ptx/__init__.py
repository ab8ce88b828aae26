"""PTX as data: modules, kernels and instructions, each with its line in the student's source.

Reference: NVIDIA, Parallel Thread Execution ISA, chapters 4 (syntax) and 5 (state
spaces).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from labkit.core.errors import SimtError
from labkit.core.limits import MAX_THREADS
from labkit.simt.opcodes import COMPUTES, OPCODES, SPACES, Opcode

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
    """A register by its name, such as `%r1`."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant, as the bits of an integer (`is_float` False) or of a float of `bits` width."""

    value: int
    is_float: bool = False
    bits: int = 64


@dataclass(frozen=True)
class Symbol:
    """A variable, a label, a special register such as `%tid.x`, or a function."""

    name: str


@dataclass(frozen=True)
class Address:
    """`[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """`{a, b, c, d}` of a vector load or store, a pair of results `p|q`, or a call's list in parentheses."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True)
class Guard:
    """`@%p` or `@!%p`."""

    register: Register
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction: `parts` is the opcode split at its dots, `line` that of the source (0: none)."""

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int

    @property
    def opcode(self) -> str:
        """The whole name, such as `ld.global.f32`."""
        return ".".join(self.parts)

    @property
    def family(self) -> Opcode:
        """What is known of all instructions whose names begin like this one's."""
        return OPCODES.get(self.parts[0], COMPUTES)

    @property
    def space(self) -> str:
        """The state space that it names; "generic" if it names none."""
        return next((part for part in self.parts if part in SPACES), "generic")

    @property
    def is_access(self) -> bool:
        """Say whether it reads or writes memory that threads can address. Parameters are no such memory."""
        return (self.family.reads or self.family.writes) and "param" not in self.parts

    @property
    def is_barrier(self) -> bool:
        """Say whether it waits for the whole block. `bar.warp.sync` does not: a warp runs in step."""
        return self.family.waits and "warp" not in self.parts

    @property
    def votes(self) -> bool:
        """Say whether it is a barrier that counts predicates: __syncthreads_count, _and or _or."""
        return self.family.waits and "red" in self.parts

    @property
    def ends_block(self) -> bool:
        """Say whether it is the last one of a basic block."""
        return bool(self.family.end) or self.is_barrier

    @property
    def type(self) -> str:
        """The last part that names a type: `s32` of `add.s32`, the source's of a conversion."""
        return next((part for part in reversed(self.parts) if part in TYPE_BYTES), "")

    @property
    def moved_bytes(self) -> int:
        """Bytes that a load, store or atomic operation moves for each lane."""
        items = max(len(operand.items) if isinstance(operand, Vector) else 1 for operand in self.operands)
        return items * TYPE_BYTES[self.type]


@dataclass(frozen=True)
class Variable:
    """A parameter or a variable in a state space; `size` in bytes, `values` its initial bytes if any.

    `addresses` are pointers in the initial value: (offset, name of a variable or function, bytes beyond it).
    """

    name: str
    type: str
    size: int
    align: int
    values: bytes = b""
    addresses: tuple[tuple[int, str, int], ...] = ()


@dataclass
class Kernel:
    """An entry or a device function: its variables, register types by name, and code with its labels."""

    name: str
    params: list[Variable]
    results: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    shared: list[Variable] = field(default_factory=list)
    local: list[Variable] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # targets of `brx.idx`, by label
    max_threads: int = MAX_THREADS

    def register_type(self, name: str) -> str:
        """Declared type of a register; families such as `%f<9>` are declared by their prefix."""
        return self.registers.get(name) or self.registers[name.rstrip("0123456789")]


@dataclass
class Module:
    """A parsed module: its kernels, variables and device functions by name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    variables: dict[str, tuple[str, Variable]] = field(default_factory=dict)
    functions: dict[str, Kernel] = field(default_factory=dict)


def mapped(instruction: Instruction, change: Callable[[Operand], Operand]) -> Instruction:
    """The instruction with its registers and symbols changed, also in addresses, in vectors and as guard."""

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
    """The number whose IEEE bits the immediate holds."""
    code = "<f" if immediate.bits == 32 else "<d"
    return float(struct.unpack(code, immediate.value.to_bytes(immediate.bits // 8, "little"))[0])


def unknown(instruction: Instruction) -> SimtError:
    """The error for an instruction the simulator does not know."""
    where = f"line {instruction.line}: " if instruction.line else ""
    if instruction.parts[0] == "call":
        callee = next((o.name for o in instruction.operands if isinstance(o, Symbol)), "?")
        return SimtError(f"{where}the simulator cannot call `{callee}`")
    return SimtError(f"{where}the simulator does not know the PTX instruction `{instruction.opcode}`")
