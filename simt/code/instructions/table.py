"""The table of instructions, and the types of their entries.

The signature of an entry names the operand types, then the result: t the instruction's type, w twice as wide,
u an unsigned 32-bit integer, p a predicate, f and d the source and the destination of a conversion. Operands
after a ? may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from simt.code.instructions.values import Value, constant, intrinsic
from simt.ptx import TYPE_BYTES, Instruction

Emit = Callable[..., Value]


@dataclass(frozen=True)
class Kind:
    """A PTX type such as `s32`."""

    name: str

    @property
    def bits(self) -> int:
        """Return the bits per value; a predicate has one."""
        return 1 if self.name == "pred" else 8 * TYPE_BYTES[self.name]

    @property
    def is_float(self) -> bool:
        """Say whether it is f32 or f64."""
        return self.name in ("f32", "f64")

    @property
    def is_signed(self) -> bool:
        """Say whether it is a signed integer."""
        return self.name[0] == "s"

    @property
    def llvm(self) -> ir.Type:
        """Return its type in LLVM."""
        return {"f32": ir.FloatType(), "f64": ir.DoubleType()}.get(self.name) or ir.IntType(self.bits)

    def widened(self) -> Kind:
        """Return the type that is twice as wide."""
        return Kind(f"{self.name[0]}{2 * self.bits}")


@dataclass(frozen=True)
class Operation:
    """How to emit one instruction: its types, and a function of (builder, instruction, *values)."""

    signature: str
    emit: Emit

    def operand_kinds(self, instruction: Instruction) -> list[Kind]:
        """Return the types of the operands, in order."""
        needed, _, optional = self.signature.partition(":")[0].partition("?")
        letters = needed + optional[: len(instruction.operands) - 1 - len(needed)]
        return [kind_of(letter, instruction) for letter in letters]

    def result_kind(self, instruction: Instruction) -> Kind:
        """Return the type of the result."""
        return kind_of(self.signature[-1], instruction)


OPERATIONS: dict[str, Operation] = {}


# An instruction supports these types and directions only if it has entries for them, such as "add.f16".
_FORMATS = ("f16x2", "f16", "bf16x2", "bf16", "tf32")
_DIRECTED = ("rz", "rm", "rp")


def find(instruction: Instruction) -> Operation | None:
    """Return the entry of an instruction, or None."""
    first, *rest = instruction.parts
    for special in (_FORMATS, _DIRECTED):
        if part := next((part for part in special if part in rest), None):
            return OPERATIONS.get(f"{first}.{part}")
    names = [f"{first}.cc"] if "cc" in rest else [f"{first}.{part}" for part in rest]
    return next((OPERATIONS[name] for name in [*names, first] if name in OPERATIONS), None)


def emit(
    b: ir.IRBuilder, instruction: Instruction, operation: Operation, arguments: Sequence[Value]
) -> Value:
    """Emit an entry and what all entries share: `.ftz` flushes subnormals, `.sat` clamps to [0, 1]."""
    flush = "ftz" in instruction.parts
    value = operation.emit(b, instruction, *(_flushed(b, x) if flush else x for x in arguments))
    value = _flushed(b, value) if flush and not isinstance(value, tuple) else value
    if "sat" in instruction.parts and operation.result_kind(instruction).is_float:
        low = intrinsic(b, "maxnum", value.type, value, constant(value, 0.0))
        value = intrinsic(b, "minnum", value.type, low, constant(value, 1.0))
    return value


def _flushed(b: ir.IRBuilder, x: Value) -> Value:
    """Return x, or a zero of its sign where it is a subnormal float32."""
    element = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    if not isinstance(element, ir.FloatType):
        return x
    small = b.fcmp_ordered("<", intrinsic(b, "fabs", x.type, x), constant(x, 2.0**-126))
    return b.select(small, intrinsic(b, "copysign", x.type, constant(x, 0.0), x), x)


def kind_of(letter: str, instruction: Instruction) -> Kind:
    """Return the type that a letter of a signature stands for."""
    types = [part for part in instruction.parts if part in TYPE_BYTES]
    match letter:
        case "t" | "d":
            return Kind(types[0])
        case "f":
            return Kind(types[-1])
        case "w":
            return Kind(types[0]).widened()
        case "u":
            return Kind("u32")
    return Kind("pred")


def operation(names: str, signature: str) -> Callable[[Emit], Emit]:
    """Add a function to the table under one or more opcodes."""

    def enter(emit: Emit) -> Emit:
        for name in names.split():
            OPERATIONS[name] = Operation(signature, emit)
        return emit

    return enter


def type_of(instruction: Instruction) -> Kind:
    """Return the instruction's first type, which is its result's, except where it widens."""
    return kind_of("t", instruction)
