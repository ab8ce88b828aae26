"""Which type of element does a kernel take each array for?

The commonest slip from NumPy is a float64 array for `float*`.

PTX has no types of pointers. The size of an access tells the size of an element; what is done with the value
tells a float from an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labkit.simt.accesses import SPACES
from labkit.simt.blocks import results
from labkit.simt.layout import Layout
from labkit.simt.ptx import TYPE_BYTES, Address, Instruction, Kernel, Register, Symbol, Vector

_CLASSES = {"f": "float", "b": "", "s": "integer", "u": "integer"}


@dataclass(frozen=True)
class Use:
    """How the kernel uses an array: bytes of an element, "float", "integer" or "" (unknown), and where."""

    size: int
    kind: str
    line: int


def uses(layout: Layout) -> dict[int, Use]:
    """The use of each range of memory that the kernel loads from or stores to, by its number."""
    kernel = layout.flow.kernel
    kinds = _register_kinds(kernel)
    found: dict[int, list[Use]] = {}
    for instruction in kernel.code:
        number = _range_of(instruction, layout)
        if number is not None:
            kind = _CLASSES[instruction.type[0]] if instruction.type[0] == "f" else ""
            value = next(o for o in instruction.operands if not isinstance(o, Address))
            for item in value.items if isinstance(value, Vector) else (value,):
                if isinstance(item, Register):
                    kind = kind or kinds.get(item.name, "")
            found.setdefault(number, []).append(Use(TYPE_BYTES[instruction.type], kind, instruction.line))
    return {number: use for number, every in found.items() if (use := _agreed(every))}


def mismatch(dtype: np.dtype, use: Use) -> str | None:
    """Why an array of `dtype` does not fit the use, or None if it does (or nobody can tell)."""
    if dtype.kind not in "iufb":
        return None
    have = "float" if dtype.kind == "f" else "integer"
    taken = f"{use.kind or 'value'}s of {use.size} bytes"
    if use.size < dtype.itemsize and dtype.itemsize > 2:
        return f"the kernel takes it for {taken}, half or less of an element: each is read in pieces"
    if use.kind and use.kind != have and use.size == dtype.itemsize:
        return f"the kernel takes it for {taken}: the bits of one are nonsense as the other"
    if use.kind == "float" and use.size > dtype.itemsize:
        return f"the kernel takes it for {taken}, more than an element"
    return None


def _agreed(every: Sequence[Use]) -> Use | None:
    """One use, if all accesses agree on the size; the kind if none differ."""
    if len({use.size for use in every}) != 1:
        return None
    kinds = {use.kind for use in every if use.kind}
    return Use(every[0].size, kinds.pop() if len(kinds) == 1 else "", every[0].line)


def _range_of(instruction: Instruction, layout: Layout) -> int | None:
    """Number of the range that a load or store of global memory most likely goes to."""
    if instruction.parts[0] not in ("ld", "st") or {"param", "shared", "local"} & set(instruction.parts):
        return None
    if not set(SPACES) & set(instruction.parts):
        return None
    address = next(o for o in instruction.operands if isinstance(o, Address))
    if isinstance(address.base, Symbol):
        return layout.variables.get(address.base.name)
    return layout.pointees.get(address.base.name) if isinstance(address.base, Register) else None


def _register_kinds(kernel: Kernel) -> dict[str, str]:
    """What each register's value is used as, or made as: "float" or "integer"; "mixed" is dropped.

    Moves and selections say nothing; comparisons and sums do.
    """
    votes: dict[str, set[str]] = {}
    for instruction in kernel.code:
        name = instruction.parts[0]
        if name in (
            "mov",
            "ld",
            "st",
            "selp",
            "cvt",
            "cvta",
            "atom",
            "red",
            "bra",
            "shfl",
            "and",
            "or",
            "xor",
        ):
            sides = _conversion(instruction) if name == "cvt" else []
        else:
            kind = _CLASSES.get(instruction.type[:1], "")
            sides = [(operand, kind) for operand in instruction.operands]
        for operand, kind in sides:
            if isinstance(operand, Register) and kind:
                votes.setdefault(operand.name, set()).add(kind)
    predicates = {register.name for i in kernel.code if i.parts[0] == "setp" for register in results(i)}
    return {name: kinds.pop() for name, kinds in votes.items() if len(kinds) == 1 and name not in predicates}


def _conversion(instruction: Instruction) -> list[tuple[object, str]]:
    to, from_ = instruction.parts[-2:]
    return [
        (instruction.operands[0], _CLASSES.get(to[:1], "")),
        (instruction.operands[1], _CLASSES.get(from_[:1], "")),
    ]
