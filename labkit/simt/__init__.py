"""A GPU in software: runs unmodified CUDA C++, checks every access, counts as Nsight Compute does.

NVRTC compiles the source to PTX (compile_cuda); `ptx` reads it, `flow` and `shapes` find out what is
uniform and where lanes part and meet, `codegen` makes LLVM code in which one warp is a 32-lane vector,
`machine` runs it.
"""

from labkit.errors import BarrierError, CompileError, InvalidAccess, LaunchError, SimtError, Timeout
from labkit.simt.findings import Finding
from labkit.simt.module import Kernel, RawModule
from labkit.simt.profile import Profile
from labkit.simt.sanitizer import empty

__all__ = [
    "BarrierError",
    "CompileError",
    "Finding",
    "InvalidAccess",
    "Kernel",
    "LaunchError",
    "Profile",
    "RawModule",
    "SimtError",
    "Timeout",
    "empty",
]
