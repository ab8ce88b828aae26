"""A GPU in software: runs unmodified CUDA C++, checks every access, counts as Nsight Compute does.

NVRTC compiles the source to PTX (labkit.compile_cuda). From there a kernel goes through these rooms:

    ptx        PTX text -> instructions with their source lines; calls, recursion and matrices made plain
    analysis   basic blocks, where lanes part and meet, how a value differs between lanes
    code       LLVM code in which a warp is a 32-lane vector; instructions/ has an entry for each
    run        arguments, blocks on the cores of the host, a time limit
    counters   what a counted run adds to the code, and the profile it gives
    checks     what a checked run adds to the code, and the findings it gives

`module` has the face of CuPy's RawModule; `stored` keeps on disk what was worked out once.
"""

from labkit.core.errors import BarrierError, CompileError, InvalidAccess, LaunchError, SimtError, Timeout
from labkit.simt.checks.findings import Finding
from labkit.simt.checks.sanitizer import empty
from labkit.simt.counters.profile import Profile
from labkit.simt.module import Kernel, RawModule

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
