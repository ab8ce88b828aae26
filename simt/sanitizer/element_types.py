"""Find the element type that a kernel expects in each array.

The commonest slip from NumPy is a float64 array for `float*`. Pointers have no types in PTX, so the types
come from the kernel's C++ declaration (compiler.nvrtc.parameter_types), and PTX shows where each array is
used.
"""

import re

import ml_dtypes
import numpy as np

from simt.analysis.layout import Layout
from simt.ptx import Address, Instruction, Register, Symbol

# C++ type -> NumPy's; those that NumPy lacks are from ml_dtypes
_NUMBERS = {
    **{"float": np.dtype("f4"), "double": np.dtype("f8"), "__half": np.dtype("f2")},
    "__nv_bfloat16": np.dtype(ml_dtypes.bfloat16),
    "__nv_fp8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "__nv_fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    **{"short": np.dtype("i2"), "int": np.dtype("i4"), "unsigned": np.dtype("i4")},
    **{"long": np.dtype(np.long), "long long": np.dtype("i8")},
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
    element, have = _element(declared), _kind(dtype)
    if element is None or have is None or (dtype.itemsize == 1 and have == "integer"):
        return None
    kind, size = _kind(element), element.itemsize
    number = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if size == number.itemsize and (
        number == element if kind == have == "float" else kind == have or size < 4
    ):
        return None  # bits of halves may be integers
    wanted = f"{'ml_dtypes' if element.kind == 'V' else 'np'}.{element}"
    if size < number.itemsize:
        why = "each element is read in pieces"
    elif size > number.itemsize:
        why = "elements are read together"
    elif kind == have:
        why = f"the bits of {number} are nonsense as {element}"
    else:
        why = f"the bits of {have}s are nonsense as {kind}s"
    return f"the kernel declares `{declared}`: {why}. Pass an array of {wanted}"


def _kind(dtype: np.dtype) -> str | None:
    """Return what an array's elements are; None for structures and other things."""
    if dtype.type.__module__ == ml_dtypes.__name__:
        return "float"
    return {"f": "float", "c": "float", "i": "integer", "u": "integer", "b": "integer"}.get(dtype.kind)


def _element(declared: str) -> np.dtype | None:
    """Return the type of the numbers behind a pointer such as `const float4 *`, or None otherwise."""
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
