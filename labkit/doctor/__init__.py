"""Report what is on this machine, what is missing, and the one command that fixes it.

Only the standard library is imported at the top: the Makefile asks the doctor what to install before anything
is.
"""

import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import entry_points, version
from importlib.util import find_spec

from labkit import mend
from labkit.c.compile import compiler_version, find_compiler
from labkit.doctor import gpu, machine, nvdisasm, nvrtc, students
from labkit.doctor.gpu import Gpu, find_gpu
from labkit.doctor.row import MISSING, OK, OPTIONAL, Absent, Row
from simt.common.cache import cache_dir

__all__ = [
    "MISSING",
    "OK",
    "OPTIONAL",
    "Gpu",
    "Row",
    "find_gpu",
    "for_students",
    "report",
    "suggested_extras",
]

BASE_PACKAGES = ("numpy", "pandas", "matplotlib", "ipython", "anywidget")


def suggested_extras() -> list[str]:
    """Return the extras that this machine needs: CuPy for its GPU, a C compiler where it has none."""
    found = find_gpu()
    cuda = [found.extra] if found and found.extra else []
    return cuda if find_compiler() else [*cuda, "cc"]


def report() -> list[Row]:
    """Return all rows: what the course needs, what is optional, and the machine itself."""
    return [
        _row("Python", _python, MISSING),
        _row("Packages", _packages, MISSING),
        _row("NVRTC (CUDA C++ to PTX)", nvrtc.nvrtc, OPTIONAL if sys.platform == "darwin" else MISSING),
        _row("nvdisasm (machine code as text)", nvdisasm.nvdisasm),
        _row("LLVM (PTX to this CPU)", _llvm, MISSING),
        _row("JupyterLab", _jupyter),
        _row("C compiler", _c_compiler),
        _row("GPU", gpu.gpu),
        _row("CuPy", gpu.cupy),
        *(_row(*entry.load()) for entry in entry_points(group="labkit.doctor")),
        _row("Cache", _cache),
        _row("Machine", machine.machine),
    ]


def for_students() -> students.Table:
    """Return what a student needs of the report, in plain words."""
    return students.table(report())


def _row(name: str, look: Callable[[], str], state_if_absent: str = OPTIONAL) -> Row:
    """Run one check, which returns its detail, and survive whatever a broken installation raises."""
    try:
        return Row(name, OK, look())
    except Absent as absent:
        return Row(name, state_if_absent, str(absent), absent.fix)
    except Exception as error:
        return Row(name, state_if_absent, f"{type(error).__name__}: {error}", mend.install())


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _packages() -> str:
    """Return the versions of packages that can really be imported: a broken one raises here."""
    found = []
    for name in BASE_PACKAGES:
        __import__({"ipython": "IPython"}.get(name, name))
        found.append(f"{name} {version(name)}")
    return ", ".join(found)


def _llvm() -> str:
    import llvmlite
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    vectors = [name for name in ("avx2", "fma", "avx512f", "neon", "sve") if features.get(name)]
    return (
        f"llvmlite {llvmlite.__version__}, {binding.get_host_cpu_name()}: {' '.join(vectors) or 'no vectors'}"
    )


def _jupyter() -> str:
    absent = [name for name in ("jupyterlab", "ipykernel", "nbval") if not find_spec(name)]
    if absent:
        raise Absent(f"{', '.join(absent)} not installed", mend.install("lab"))
    return ", ".join(f"{name} {version(name)}" for name in ("jupyterlab", "ipykernel", "nbval"))


def _c_compiler() -> str:
    compiler = find_compiler()
    if compiler is None:
        raise Absent("none: the CPU versions written in C do not run", mend.compiler())
    words = [*compiler, "-x", "c", "-S", "-o", os.devnull, "-"]  # zig 0.17 cannot only look: -fsyntax-only
    tried = subprocess.run(words, input="#include <math.h>\n", capture_output=True, text=True)
    if tried.returncode:
        headers = mend.system_package(apt="libc6-dev", dnf="glibc-devel", zypper="glibc-devel")
        raise Absent(f"{shlex.join(compiler)} fails: {tried.stderr.partition(chr(10))[0]}", headers)
    return f"{shlex.join(compiler)}: {compiler_version(compiler).partition(chr(10))[0]}"


def _cache() -> str:
    folder = cache_dir()
    elsewhere = f"export LABKIT_CACHE={shlex.quote(f'{tempfile.gettempdir()}/labkit-cache')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise Absent(f"{folder}: {error.strerror}; everything is compiled anew", elsewhere) from error
    if not os.access(folder, os.W_OK):
        raise Absent(f"{folder} is read-only: what is new is compiled each time", elsewhere)
    return f"{folder}, {size / 1e6:.1f} MB"
