"""A GPU in software: it runs unmodified CUDA C++, checks every access, counts as Nsight Compute does.

NVRTC compiles the source to PTX (simt.compiler). From there a kernel goes through these packages:

    compiler   NVRTC, the disassembler, precompiled forms, headers that NVRTC lacks
    opcodes    what the simulator knows of each family of PTX instructions, in one table
    ptx        parses PTX text into instructions with their source lines
    analysis   finds basic blocks, where lanes part and meet, and how a value differs between lanes
    lowering   turns calls, recursion and matrix operations into plain instructions
    code       makes LLVM code in which a warp is a 32-lane vector; instructions/ has one entry each
    launch     turns arguments into bytes and valid memory, and chooses which blocks run
    run        runs the blocks on the cores of the host, with a time limit, and with any observer
    counters   the observers that count, and the profile
    sanitizer  the observer that checks; findings says in words what is wrong with a launch
    sass       reads machine code and counts what it executes
    timing     predicts a kernel's time on a GPU from its machine code and a few sampled blocks
    recording  records one block step by step
    programs   builds whole CUDA programs, and runs, checks and profiles them

`common` has what all of these and the packages above share: errors, limits of launches, occupancy, the cache.

`module` has the interface of CuPy's RawModule and RawKernel, `texture` that of its textures and surfaces,
`trace` shows a block step by step, and `disk_cache` keeps parsed modules and compiled kernels on disk.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simt.common.errors import BarrierError, CompileError, InvalidAccess, LaunchError, SimtError, Timeout
    from simt.common.occupancy import Gpu, gpu, occupancy
    from simt.counters.profile import Profile
    from simt.findings import Finding
    from simt.launch.unwritten import empty
    from simt.module import AnyKernel, Kernel, RawKernel, RawModule
    from simt.run.machine import BoundLaunch

# Each name is imported when it is first used, so that `import simt` is quick.
_PLACES = {
    "AnyKernel": "simt.module",
    "BarrierError": "simt.common.errors",
    "BoundLaunch": "simt.run.machine",
    "CompileError": "simt.common.errors",
    "Finding": "simt.findings",
    "Gpu": "simt.common.occupancy",
    "InvalidAccess": "simt.common.errors",
    "Kernel": "simt.module",
    "LaunchError": "simt.common.errors",
    "Profile": "simt.counters.profile",
    "RawKernel": "simt.module",
    "RawModule": "simt.module",
    "SimtError": "simt.common.errors",
    "Timeout": "simt.common.errors",
    "empty": "simt.launch.unwritten",
    "gpu": "simt.common.occupancy",
    "occupancy": "simt.common.occupancy",
}

__all__ = sorted([*_PLACES, "texture"])


def __getattr__(name: str) -> Any:
    if name == "texture":
        return import_module("simt.texture")
    if name not in _PLACES:
        raise AttributeError(f"module 'simt' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
