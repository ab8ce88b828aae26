"""What each arithmetic PTX instruction computes, as LLVM instructions.

Each instruction has one entry, found by its opcode: the longest matching form first, "mul.wide" before "mul".
An entry works alike on scalars (uniform values) and vectors (one value per lane or group of lanes). To add an
instruction, add an entry to the file it belongs to, and a test. Memory, barriers and branches are elsewhere:
loadstore.py, atomics.py, crosslane.py, control.py. Reference: NVIDIA, Parallel Thread Execution ISA, 9.7.
"""

from labkit.simt.code.instructions import (
    arithmetic,
    bits,
    carries,
    comparisons,
    conversions,
    dots,
    functions,
    half,
    rounding,
    video,
)
from labkit.simt.code.instructions.table import (
    Kind,
    Operation,
    constant,
    emit,
    find,
    intrinsic,
    same_shape,
    type_suffix,
)

__all__ = [
    "Kind",
    "Operation",
    "arithmetic",
    "bits",
    "carries",
    "comparisons",
    "constant",
    "conversions",
    "dots",
    "emit",
    "find",
    "functions",
    "half",
    "intrinsic",
    "rounding",
    "same_shape",
    "type_suffix",
    "video",
]
