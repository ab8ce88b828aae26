"""A GPU in software: runs unmodified CUDA C++, checks every access, counts as Nsight Compute does.

NVRTC compiles the source to PTX (labkit.compiler). From there a kernel goes through these rooms:

    opcodes    what is known of each family of PTX instructions, in one table
    ptx        PTX text -> instructions with their source lines
    analysis   basic blocks, where lanes part and meet, how a value differs between lanes
    lowering   calls, recursion and matrices become plain instructions
    code       LLVM code in which a warp is a 32-lane vector; instructions/ has an entry for each
    launch     arguments become bytes and valid memory; which blocks run
    counters   what a counted run adds to the code, and the profile it gives
    sanitizer  what a checked run adds to the code, and the findings it gives
    run        blocks run on the cores of the host, with a time limit

`module` has the face of CuPy's RawModule, `trace` shows a block step by step, and `stored` keeps on disk what
was worked out once.
"""

from labkit.core.errors import BarrierError, CompileError, InvalidAccess, LaunchError, SimtError, Timeout
from labkit.simt.counters.profile import Profile
from labkit.simt.module import Kernel, RawModule
from labkit.simt.sanitizer.findings import Finding
from labkit.simt.sanitizer.sanitizer import empty

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
