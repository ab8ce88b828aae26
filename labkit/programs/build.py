"""`labkit nvcc`: NVIDIA's nvcc, with which a program also runs where there is no GPU."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from labkit.programs.library import library
from labkit.programs.toolkit import host_compiler, toolkit

COMPATIBLE = Path(__file__).parent / "include"
ARCHITECTURE = "90"
OLDEST = 75  # that nvcc 13 compiles for
# What asks for architectures: it is read, and replaced by one that becomes PTX.
_WITH_VALUE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")
_LINKED_BY_US = (
    "-lcudart",
    "-lcudart_static",
    "-lcublas",
    "-lcurand",
    "-lcuda",
    "-lcudadevrt",
    "-cudart=static",
    "-cudart=shared",
)


def command(arguments: Sequence[str]) -> list[str]:
    """Return the call of nvcc that stands for `nvcc arguments`. Raises NoCompiler.

    The device code stays PTX, so that a GPU's driver or the simulator takes it; it keeps line numbers. The
    program links to labkit's library in the place of libcudart.
    """
    tools, host = toolkit(), host_compiler()
    place = library(tools, host)
    kept, architecture = _without_architectures(_joined(arguments))
    kept = [each for each in kept if each not in _LINKED_BY_US]
    for option in ("-cudart", "--cudart"):
        while option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
    call = [str(tools.nvcc), "-gencode", f"arch=compute_{architecture},code=compute_{architecture}"]
    call += ["-cudart", "none", "-lineinfo", "-g", "-no-compress", "-Wno-deprecated-gpu-targets"]
    if not any(each.startswith(("-ccbin", "--compiler-bindir")) for each in kept):
        call += ["-ccbin", host.cxx]
    call += ["-include", str(COMPATIBLE / "labkit_compatible.h"), *kept]
    call += ["-Xcompiler", f"-idirafter,{COMPATIBLE}"]  # NVIDIA's own headers come first
    if not {"-c", "-dc", "--compile", "-ptx", "-E", "--ptx", "-M", "-MM"}.intersection(kept):
        call += [f"-L{place}", "-lcudart", "-Xlinker", f"-rpath={place}"]
    return call


def build(arguments: Sequence[str]) -> int:
    """Run `nvcc arguments` as `command` says; return its exit code. Its messages go to stderr."""
    return subprocess.run(command(arguments)).returncode


def _joined(arguments: Sequence[str]) -> list[str]:
    """Leave -rdc=true out where a program is one file that is built in one call: nothing is to be linked."""
    sources = [each for each in arguments if each.endswith((".cu", ".cpp", ".cc", ".c", ".o", ".a"))]
    is_one = len([each for each in sources if each.endswith(".cu")]) == 1 and not any(
        each.endswith((".o", ".a")) for each in sources
    )
    if not is_one or not {"-c", "-dc"}.isdisjoint(arguments):
        return list(arguments)
    return [each for each in arguments if each not in ("-rdc=true", "--relocatable-device-code=true")]


def _without_architectures(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Take the options that choose architectures out; return the rest, and the newest that they name."""
    kept, chosen, rest = [], [], list(arguments)
    while rest:
        option = rest.pop(0)
        name, _, value = option.partition("=")
        if name in _WITH_VALUE:
            chosen += re.findall(r"(?:compute|sm|lto)_(\d+[af]?)", value or (rest.pop(0) if rest else ""))
        else:
            kept.append(option)
    newest = max(chosen, key=lambda each: int(each.rstrip("af")), default=ARCHITECTURE)
    return kept, newest if int(newest.rstrip("af")) >= OLDEST else str(OLDEST)
