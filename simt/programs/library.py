"""Build the library that serves the CUDA runtime's functions to a program: `runtime/`, and a table of names.

A program links to it in the place of NVIDIA's libcudart. At its start the library chooses: with a GPU every
function of the table is NVIDIA's own; without one it is ours, or a stub that names the function and refuses.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from simt.common.bits import POISON
from simt.common.cache import cache_dir, digest
from simt.programs.toolkit import HostCompiler, NoCompiler, Toolkit

SOURCES = Path(__file__).parent / "runtime"
NAME = "liblabkit_cudart.so"
STANDS_FOR = (
    "libcudart.so",
    "libcublas.so",
    "libcurand.so",
    "libcuda.so",
)  # so that -lcudart and the like find it
_SERVED = re.compile(r"^SERVED\(\s*[\w\s*]+,\s*(\w+),", re.M)
_SERVED_TWICE = re.compile(r"^ +REAL\(X, (\w+),", re.M)  # cuBLAS's functions for float and for double
_JUMP = {
    "x86_64": "jmp *labkit_table+{offset}(%rip)",
    "aarch64": "adrp x16, labkit_table+{offset}\\n ldr x16, [x16, #:lo12:labkit_table+{offset}]\\n br x16",
}
_REFUSE = {
    "x86_64": "movl ${number}, %edi\\n jmp labkit_refuse",
    "aarch64": "mov w0, #{number}\\n b labkit_refuse",
}
# Functions by other names: of the interface for a default stream per thread, and of earlier CUDA.
_OTHER_NAMES = ("{}_ptsz", "{}_ptds", "{}_v2", "{}_v2_ptsz", "{}_v2_ptds")
_DIFFER = (
    "cudaGraphConditionalHandleCreate",
    "cudaLaunchHostFunc",
    "cuLaunchHostFunc",
)  # their _v2 has other parameters


def library(toolkit: Toolkit, compiler: HostCompiler) -> Path:
    """Return the folder of the library (built once for a toolkit). Raises NoCompiler with its messages."""
    sources = sorted(SOURCES.glob("*.[ch]"))
    python, package = sys.executable, str(Path(__file__).resolve().parents[2])
    defined = f"-DPOISON={POISON:#x}u"
    key = [toolkit.version, str(toolkit.runtime), compiler.version, python, package, version(), defined]
    place = cache_dir() / "programs" / digest(key)
    if (place / NAME).exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        table = Path(made, "table.c")
        table.write_text(_table(toolkit, python, package))
        command = [compiler.c, "-std=gnu11", "-O2", "-g", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"]
        command += [f"-I{include}" for include in toolkit.includes] + ["-I", str(SOURCES), defined]
        command += [str(path) for path in sources if path.suffix == ".c"] + [str(table)]
        command += ["-o", str(Path(made, NAME)), f"-Wl,-soname,{NAME}", "-pthread", "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NoCompiler(f"{compiler.c} could not build labkit's CUDA runtime:\n{done.stderr}")
        for name in STANDS_FOR:
            Path(made, name).symlink_to(NAME)
        if toolkit.nvrtc:
            Path(made, "libnvrtc.so").symlink_to(toolkit.nvrtc)
        try:
            Path(made).rename(place)
        except OSError:  # another process was faster
            if not (place / NAME).exists():
                raise
        else:
            Path(made).mkdir()  # for the temporary folder to delete
    return place


@cache
def version() -> str:
    """Return what changes with the library: a program built with another one needs to be built again."""
    return digest([path.read_text() for path in [*sorted(SOURCES.glob("*.[ch]")), Path(__file__)]])


def served() -> dict[str, str]:
    """Return, by name in the interface, the function of ours that serves it."""
    found = {}
    for path in sorted(SOURCES.glob("*.c")):
        source = path.read_text()
        twice = [f"cublas{letter}{name}" for name in _SERVED_TWICE.findall(source) for letter in "SD"]
        for name in [*_SERVED.findall(source), *twice]:
            found[name] = f"sim_{name}"
    for name in list(found):
        for other in _OTHER_NAMES:
            if not ("_v2" in other and name in _DIFFER):
                found.setdefault(other.format(name), found[name])
    return found


def _table(toolkit: Toolkit, python: str, package: str) -> str:
    """Return the C source of the table: one entry and one stub per function of the runtime."""
    ours = served()
    own = (function.removeprefix("sim_") for function in ours.values())
    names = sorted({*toolkit.functions, *toolkit.driver_functions, *own})
    machine = platform.machine()
    lines = ['#include "runtime.h"', "", "extern cudaError_t labkit_refuse(unsigned number);"]
    lines += [f"extern char {function}[];" for function in sorted({ours[n] for n in names if n in ours})]
    lines += [f"extern char labkit_missing_{i}[];" for i in range(len(names))]
    lines += [f'const char labkit_version[] = "{version()}";']
    lines += [f'const char labkit_python[] = "{python}", labkit_path[] = "{package}";']
    lines += [
        f'const char labkit_cudart[] = "{toolkit.runtime}";',
        f"const unsigned labkit_count = {len(names)};",
    ]
    lines += [f"void *labkit_table[{len(names)}];"]
    lines += ["const char *const labkit_names[] = {", *(f'    "{name}",' for name in names), "};"]
    lines += ["void *const labkit_served[] = {", *(f"    {ours.get(name, 0)}," for name in names), "};"]
    lines += [
        "void *const labkit_missing[] = {",
        *(f"    labkit_missing_{i}," for i in range(len(names))),
        "};",
    ]
    for i, name in enumerate(names):
        jump, refuse = _JUMP[machine].format(offset=8 * i), _REFUSE[machine].format(number=i)
        stub = f"labkit_missing_{i}"
        lines += [
            f'__asm__(".text\\n.globl {name}\\n.type {name}, %function\\n{name}:\\n {jump}\\n"',
            f'        ".hidden {stub}\\n.globl {stub}\\n{stub}:\\n {refuse}\\n");',
        ]
    return "\n".join(lines) + "\n"
