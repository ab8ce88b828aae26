"""Derive the shape of an instruction's result from the shapes of its operands.

Sums, and products with constants, keep constant lane offsets; all else is computed once per group of lanes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from simt.analysis.lanes import (
    LANE_INDEX,
    UNIFORM,
    VARYING,
    Shape,
    added,
    elementwise,
    scaled,
    thread_index,
)
from simt.common.limits import WARP, Dim3
from simt.ptx import Address, Immediate, Instruction, Operand, Register, Symbol, Vector

Operands = list[Shape]
_INTEGERS = {f"{sign}{bits}" for sign in "sub" for bits in (16, 32, 64)}


@dataclass(frozen=True)
class Result:
    """The shape of a result, and for each operand whether the instruction works only on its bases."""

    shape: Shape
    on_bases: tuple[bool, ...]


class ShapeRules:
    """Rules for the warps of one block shape; each thread has `local_bytes` of local memory.

    `indices` are registers whose unsigned values do not wrap round, see indices.py.
    """

    def __init__(
        self,
        block: Dim3,
        local_bytes: int,
        local_names: frozenset[str],
        indices: frozenset[str] = frozenset(),
    ) -> None:
        self.indices = indices
        self.threads = {f"%tid.{axis}": thread_index(axis, block)[0] for axis in "xyz"}
        self.local = (
            Shape(WARP, tuple(local_bytes * lane for lane in range(WARP))) if local_bytes else UNIFORM
        )
        self.local_names = local_names

    def result(self, instruction: Instruction, shapes: Mapping[str, Shape]) -> Result:
        """Return the shape of an instruction's result."""
        operands = instruction.operands[1:]
        lanes = instruction.family.lanes
        if lanes == "members" and "sync" in instruction.parts:
            masks = self.operand(instruction.operands[-1], shapes)
            return Result(UNIFORM if masks == UNIFORM else VARYING, ())
        if lanes == "together":
            known = [self.operand(operand, shapes) for operand in operands]
            return Result(UNIFORM if all(shape == UNIFORM for shape in known) else VARYING, ())
        if lanes != "each":
            return Result(VARYING if lanes == "varying" else UNIFORM, ())
        rule = _RULES.get(instruction.parts[0])
        known = [self.operand(operand, shapes) for operand in operands]
        unpacks = isinstance(instruction.operands[0], Vector)
        if rule is None or unpacks or "sat" in instruction.parts or instruction.type not in _INTEGERS:
            return _once_a_group(known)
        if isinstance(operands[0], Register) and operands[0].name in self.indices:
            # Indices widen as exactly as signed numbers do. PTX writes large unsigned factors as negative
            # ones.
            if "u32" in instruction.parts:
                operands = tuple(_unsigned(operand) for operand in operands)
            parts = tuple("s32" if part == "u32" else part for part in instruction.parts)
            instruction = replace(instruction, parts=parts)
        return rule(instruction, operands, known)

    def operand(self, operand: Operand, shapes: Mapping[str, Shape]) -> Shape:
        """Return the shape of an operand."""
        match operand:
            case Register(name):
                return shapes.get(name, UNIFORM)
            case Address(base, _):
                return self.operand(base, shapes)
            case Vector(items):
                return elementwise(*(self.operand(item, shapes) for item in items))
            case Symbol(name):
                return self._symbol(name)
        return UNIFORM

    def _symbol(self, name: str) -> Shape:
        if name in self.threads:
            return self.threads[name]
        if name in self.local_names:
            return self.local
        if name == "%laneid":
            return LANE_INDEX
        return VARYING if name.startswith("%lanemask") else UNIFORM


def _unsigned(operand: Operand) -> Operand:
    return replace(operand, value=operand.value & 0xFFFFFFFF) if isinstance(operand, Immediate) else operand


def _once_a_group(shapes: Operands) -> Result:
    return Result(elementwise(*shapes), (False,) * len(shapes))


def _move(_i: Instruction, _operands: tuple[Operand, ...], shapes: Operands) -> Result:
    return Result(shapes[0], (True,))


def _sum(_i: Instruction, _operands: tuple[Operand, ...], shapes: Operands) -> Result:
    return Result(added(shapes[0], shapes[1]), (True, True))


def _difference(_i: Instruction, _operands: tuple[Operand, ...], shapes: Operands) -> Result:
    return Result(added(shapes[0], shapes[1], sign=-1), (True, True))


def _product(instruction: Instruction, operands: tuple[Operand, ...], shapes: Operands) -> Result:
    x, y = shapes[:2]
    wide_and_inexact = "wide" in instruction.parts and not all(
        _widens_exactly(instruction.type, s) for s in (x, y)
    )
    if "hi" not in instruction.parts and not wide_and_inexact:
        if isinstance(operands[1], Immediate):
            return Result(scaled(x, operands[1].value), (True, True))
        if isinstance(operands[0], Immediate):
            return Result(scaled(y, operands[0].value), (True, True))
    return _once_a_group([x, y])


def _product_and_sum(instruction: Instruction, operands: tuple[Operand, ...], shapes: Operands) -> Result:
    product = _product(instruction, operands, shapes)
    return Result(added(product.shape, shapes[2]), (*product.on_bases, True))


def _shift_left(_i: Instruction, operands: tuple[Operand, ...], shapes: Operands) -> Result:
    amount = operands[1]
    if isinstance(amount, Immediate) and amount.value < 32:
        return Result(scaled(shapes[0], 1 << amount.value), (True, True))
    return _once_a_group(shapes)


def _convert(instruction: Instruction, _operands: tuple[Operand, ...], shapes: Operands) -> Result:
    to, from_ = instruction.parts[-2:]
    if to in _INTEGERS and from_ in _INTEGERS and int(to[1:]) >= 32:
        widening = int(to[1:]) > int(from_[1:])
        if not widening or _widens_exactly(from_, shapes[0]):
            return Result(shapes[0], (True,))
    return _once_a_group(shapes)


def _widens_exactly(type_: str, shape: Shape) -> bool:
    """Say whether base + offset is the same before and after widening.

    Signed sums do not overflow (that is undefined in C++), so they widen exactly; unsigned ones may wrap
    round.
    """
    return shape.offsets is None or (type_ == "s32" and max(map(abs, shape.offsets)) < 1 << 24)


_RULES: dict[str, Callable[[Instruction, tuple[Operand, ...], Operands], Result]] = {
    "mov": _move,
    "cvta": _move,
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "mad": _product_and_sum,
    "shl": _shift_left,
    "cvt": _convert,
}
