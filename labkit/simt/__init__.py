"""A GPU in software: it runs unmodified CUDA C++, checks every access, counts as Nsight Compute does.

NVRTC compiles the source to PTX (labkit.compiler). From there a kernel goes through these packages:

    opcodes    what the simulator knows of each family of PTX instructions, in one table
    ptx        parses PTX text into instructions with their source lines
    analysis   finds basic blocks, where lanes part and meet, and how a value differs between lanes
    lowering   turns calls, recursion and matrix operations into plain instructions
    code       makes LLVM code in which a warp is a 32-lane vector; instructions/ has one entry each
    launch     turns arguments into bytes and valid memory, and chooses which blocks run
    counters   says what a counted run adds to the code, and makes the profile
    sanitizer  says what a checked run adds to the code, and makes the findings
    run        runs the blocks on the cores of the host, with a time limit

`module` has the interface of CuPy's RawModule and RawKernel, `texture` that of its textures and surfaces,
`trace` shows a block step by step, and `stored` keeps parsed modules and compiled kernels on disk.
"""

from labkit.core.errors import BarrierError, CompileError, InvalidAccess, LaunchError, SimtError, Timeout
from labkit.simt import texture
from labkit.simt.counters.profile import Profile
from labkit.simt.launch.unwritten import empty
from labkit.simt.module import AnyKernel, Kernel, RawKernel, RawModule
from labkit.simt.sanitizer.findings import Finding

__all__ = [
    "AnyKernel",
    "BarrierError",
    "CompileError",
    "Finding",
    "InvalidAccess",
    "Kernel",
    "LaunchError",
    "Profile",
    "RawKernel",
    "RawModule",
    "SimtError",
    "Timeout",
    "empty",
    "texture",
]
