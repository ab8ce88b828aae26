"""Find the element type that a kernel expects in each array.

The commonest slip from NumPy is a float64 array for `float*`. Pointers have no types in PTX, so the types
come from the kernel's C++ declaration (compiler.nvrtc.parameter_types), and PTX shows where each array is
used.
"""

import re

import numpy as np

from labkit.simt.analysis.layout import Layout
from labkit.simt.ptx import Address, Instruction, Register, Symbol

# C++ type -> kind of number and bytes, as in NumPy's dtypes
_NUMBERS = {
    "float": ("float", 4),
    "double": ("float", 8),
    "__half": ("float", 2),
    "__nv_bfloat16": ("float", 2),
    "short": ("integer", 2),
    "int": ("integer", 4),
    "unsigned": ("integer", 4),
    "long": ("integer", np.dtype(np.long).itemsize),
    "long long": ("integer", 8),
}
_VECTORS = {
    "half2": "__half",
    "__half2": "__half",
    "__nv_bfloat162": "__nv_bfloat16",
    "longlong": "long long",
}


def mismatch(dtype: np.dtype, declared: str) -> str | None:
    """Say why an array of `dtype` does not fit a parameter; None if it does, or if nobody can know.

    Bytes, structures and `void*` may be anything.
    """
    element = _element(declared)
    have = {"f": "float", "c": "float", "i": "integer", "u": "integer", "b": "integer"}.get(dtype.kind)
    if element is None or have is None or dtype.itemsize == 1:
        return None
    kind, size = element
    itemsize = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if (kind, size) == (have, itemsize) or size == itemsize == 2:  # bits of halves may be integers
        return None
    wanted = f"np.{'float' if kind == 'float' else 'int'}{8 * size}"
    if size < itemsize:
        why = "each element is read in pieces"
    elif size > itemsize:
        why = "elements are read together"
    else:
        why = f"the bits of {have}s are nonsense as {kind}s"
    return f"the kernel declares `{declared}`: {why}. Pass an array of {wanted}"


def _element(declared: str) -> tuple[str, int] | None:
    """Return kind and bytes of the numbers behind a pointer such as `const float4 *`, or None otherwise."""
    name = re.sub(r"\b(const|volatile|__restrict__|__restrict)\b", "", declared)
    if name.count("*") != 1 or "(" in name:
        return None
    name = " ".join(name.replace("*", "").split())
    if name not in _NUMBERS:
        vector = re.fullmatch(r"u?(\w+?)[1234]", name)
        name = _VECTORS.get(name) or (vector[1] if vector else re.sub(r"^unsigned (?=\w)", "", name))
    name = _VECTORS.get(name, name)
    return _NUMBERS.get(re.sub(r"^unsigned int$", "int", name))


def first_uses(layout: Layout) -> dict[int, int]:
    """Return the source line of the first load or store of each range of memory, by the range's number."""
    lines: dict[int, int] = {}
    for instruction in layout.flow.kernel.code:
        number = _range_of(instruction, layout)
        if number is not None:
            lines.setdefault(number, instruction.line)
    return lines


def _range_of(instruction: Instruction, layout: Layout) -> int | None:
    """Return the number of the range that an access most likely goes to."""
    if not instruction.is_access:
        return None
    address = next(o for o in instruction.operands if isinstance(o, Address))
    if isinstance(address.base, Symbol):
        return layout.variables.get(address.base.name)
    return layout.pointees.get(address.base.name) if isinstance(address.base, Register) else None
