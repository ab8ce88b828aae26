"""What each arithmetic PTX instruction computes, as LLVM instructions.

Each instruction has one entry, found by its opcode; the longest matching form comes first, "mul.wide" before
"mul". An entry works on scalars (uniform values) and on vectors (one value per lane or group of lanes). To
add an instruction, add an entry to the file it belongs to, and a test. Memory, barriers and branches are
elsewhere: loadstore.py, atomics.py, crosslane.py, control.py. Reference: NVIDIA, Parallel Thread Execution
ISA, 9.7.
"""

from importlib import import_module
from pkgutil import iter_modules

from simt.code.instructions.table import Kind, Operation, emit, find
from simt.code.instructions.values import constant, intrinsic, same_shape, type_suffix

__all__ = ["Kind", "Operation", "constant", "emit", "find", "intrinsic", "same_shape", "type_suffix"]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")  # each adds its instructions to the table
