"""NVRTC, its Python bindings and the headers that it includes: whether they fit together.

All versions of CUDA 13 worked with each other where we tried: NVRTC 13.0 with headers of 13.5, and the
reverse. So the check compiles a kernel, and only reports what fails.
"""

import os
import sys

from labkit import mend
from labkit.doctor.row import Absent, cuda
from labkit.mend import installed

MAJOR = "13"  # of CUDA, as in pyproject.toml
BINDINGS, NVRTC = "cuda-bindings", "nvidia-cuda-nvrtc"
HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-crt")
CCCL = "nvidia-cuda-cccl"  # 13.3.5.0: CCCL 3.5.0 for CUDA 13
INCLUDED = "#include <cuda_fp16.h>\n"  # reads files of all three wheels of headers


def nvrtc() -> str:
    """Return the version in use, after compiling a kernel with headers. Raises Absent with what is unfit."""
    if sys.platform == "darwin":
        hosted = "for kernels of your own use Linux, Windows or a hosted notebook such as Colab"
        raise Absent("NVIDIA makes no NVRTC for macOS: the course's kernels come compiled", hosted)
    found = {name: installed(name) for name in (BINDINGS, NVRTC, *HEADERS, CCCL)}
    absent = [name for name, number in found.items() if not number]
    others = [name for name, number in found.items() if number and not number.startswith(f"{MAJOR}.")]
    if others:
        shown = " and ".join(f"{name} {found[name]}" for name in others)
        raise Absent(f"{shown}: labkit takes CUDA {MAJOR}", _renewed([*others, *absent]))
    if BINDINGS in absent:
        raise Absent(f"{' and '.join(absent)} not installed", _renewed(absent))
    from simt.compiler.nvrtc import compile_ptx, load_nvrtc_of_cupy, nvrtc_version

    mixed = [f"{name} {found[name]}" for name in HEADERS if cuda(found[name]) not in ("", cuda(found[NVRTC]))]
    beside = ", ".join([f"{BINDINGS} {found[BINDINGS]}", *mixed])
    mend_all = _renewed(absent) if absent else _same(cuda(found[NVRTC]))
    try:
        loaded = nvrtc_version()
    except Exception as error:
        raise Absent(f"it does not load: {_first_line(error.__cause__ or error)}", mend_all) from error
    if found[NVRTC] and loaded != cuda(found[NVRTC]) and not load_nvrtc_of_cupy():
        detail = f"NVRTC {loaded} loads in place of the installed {found[NVRTC]}"
        is_named = "LD_LIBRARY_PATH" in os.environ
        raise Absent(detail, "unset LD_LIBRARY_PATH" if is_named else mend_all)
    try:
        compile_ptx(INCLUDED)
    except Exception as error:
        raise Absent(f"NVRTC {loaded} with {beside}: {_first_line(error)}", mend_all) from error
    return f"{loaded}, {beside}"


def _first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return str(error).strip().partition("\n")[0]


def _renewed(packages: list[str]) -> str:
    """Return the command that installs these packages in a version that labkit accepts."""
    return mend.pip("install " + " ".join(f"'{name}=={MAJOR}.*'" for name in packages))


def _same(number: str) -> str:
    """Return the command that reinstalls compiler and headers of one CUDA, such as 13.5."""
    same = " ".join(f"'{name}=={number}.*'" for name in (NVRTC, *HEADERS))
    return mend.pip(f"install --force-reinstall {same} '{CCCL}=={MAJOR}.*'")
