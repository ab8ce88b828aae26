"""The sources a student reads, one idea per file, such as `matmul/1_naive`.

Each family is a folder here. It holds the kernels in CUDA C++ (`*.cu`, for a GPU) and in C (`cpu_*.c`, for
the CPU), and a `family.py` that says which problem they solve. Every kernel of a family has one entry, named
like the family, and the same signature. Macros such as `DTYPE`, `TILE` or `THREAD_M` have defaults that fit
together; values that do not fit are an error at compile time. T is the type that `DTYPE` names. T is not a
macro itself, as `-DT=float` would rewrite the templates of the compiler's own headers. A kernel without
`DTYPE` takes floats only. Headers (`*.h`) hold what several kernels of a folder share.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from labkit.core.errors import LaunchError
from labkit.core.limits import Dim3
from labkit.kernels.launch_line import LaunchLineError, launch_of, macros_of
from labkit.kernels.problem import Problem, families

__all__ = [
    "BLOCK_SIDE",
    "FAMILIES",
    "defaults",
    "launch",
    "launch_of",
    "load",
    "macros_of",
    "names",
    "on_cpu",
    "parameters",
    "source",
    "whole_source",
]

_FOLDER = Path(__file__).parent
FAMILIES = families()
_INCLUDE = re.compile(r'^#include "(\w+\.[ch])"$', re.MULTILINE)
_MACRO = re.compile(r"^#ifndef (?!_|PART_)([A-Z_]+)\b.*(?:\n#define \1 (.+?)(?: *//.*)?$)?", re.MULTILINE)
BLOCK_SIDE = 32  # side of the square blocks of a kernel that takes blocks of any side


def names(family: str, on: str = "gpu") -> list[str]:
    """Return the names of a family's kernels, for the `gpu` or the `cpu`, simplest first."""
    if family not in FAMILIES:
        raise ValueError(f"there is no family of kernels {family!r}. Choose one of {', '.join(FAMILIES)}.")
    files = {"gpu": "*.cu", "cpu": "cpu_*.c"}
    if on not in files:
        raise ValueError(f"there are no kernels for {on!r}. Choose one of {', '.join(files)}.")
    return list(_found(family, files[on]))


@cache
def _found(family: str, files: str) -> list[str]:
    return sorted((f"{family}/{path.stem}" for path in (_FOLDER / family).glob(files)), key=_place)


def source(name: str) -> str:
    """Return the source of kernel `name`: `matmul/2_tiled` (CUDA C++), `matmul/cpu_4_blocked` (C)."""
    family, on = name.partition("/")[0], "cpu" if on_cpu(name) else "gpu"
    if family not in FAMILIES or name not in names(family, on):
        known = [each for on in ("gpu", "cpu") for family in FAMILIES for each in names(family, on)]
        raise ValueError(f"there is no kernel {name!r}. Choose one of {', '.join(known)}.")
    return (_FOLDER / f"{name}.{'c' if on == 'cpu' else 'cu'}").read_text(encoding="utf-8")


def _place(name: str) -> tuple[float, str]:
    """Return the sort key of a kernel in its family: by number, those without one last."""
    number = re.match(r"\w+/(?:cpu_)?(\d+)_", name)
    return (int(number[1]) if number else float("inf"), name)


def on_cpu(name: str) -> bool:
    """Return True for a kernel in C, for the CPU."""
    return name.partition("/")[2].startswith("cpu_")


def whole_source(name: str) -> str:
    """Return the source of a kernel with the files of its folder that it includes, each once."""
    seen: set[str] = set()

    def included(match: re.Match[str]) -> str:
        file = match[1]
        if file in seen:
            return ""
        seen.add(file)
        text = (_FOLDER / name).with_name(file).read_text(encoding="utf-8")
        return _INCLUDE.sub(included, text)

    return _INCLUDE.sub(included, source(name))


def load(name: str, **parameters: str | int) -> Any:
    """Compile kernel `name` with `parameters`: `load("matmul/2_tiled", TILE=16)`.

    A kernel in CUDA C++ is compiled for this machine's device; a kernel in C becomes a
    `labkit.cpu.CpuKernel`. A kernel also accepts those parameters of its family that it does not use, so that
    one call loads any rung of a ladder. On a GPU its launches are not tried in the simulator first
    (`kernel.rehearse` is False). Raises ValueError for a parameter that the family does not have, and for a
    DTYPE other than float if the kernel takes floats only; CompileError for a value that does not fit.
    """
    source(name)  # report an unknown name before anything else
    family = name.partition("/")[0]
    known = _parameters(family, "cpu" if on_cpu(name) else "gpu")
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{family} kernels have no parameter {parameter}; they have {', '.join(known)}.")
    if on_cpu(name):
        from labkit.kernels.in_c import CpuKernel

        return CpuKernel(name, tuple(sorted(parameters.items())))
    if parameters.get("DTYPE", "float") != "float" and "DTYPE" not in defaults(name):
        raise ValueError(f"{name} takes floats alone, and DTYPE is {parameters['DTYPE']}. Choose float.")
    from labkit.device.select import device  # imported here: reading a source needs no device

    return _load(name, tuple(sorted(parameters.items())), device().kind)


def launch(name: str, problem: Problem, **parameters: str | int) -> tuple[Dim3, Dim3]:
    """Return grid and block of CUDA kernel `name` on `problem`, as its source's line `// launch:` says.

    `parameters` are those of `load`. For a kernel without a TILE of its own, which takes square blocks of any
    side, TILE is that side, 32 by default. Raises LaunchError where no GPU takes such a launch.
    """
    macros = {"TILE": BLOCK_SIDE} | defaults(name) | parameters
    try:
        return launch_of(whole_source(name), problem, **macros)
    except LaunchLineError as error:
        if all(isinstance(value, int) and value > 0 for key, value in parameters.items() if key != "DTYPE"):
            raise LaunchError(f"{name}: {error}") from None
        given = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise LaunchError(f"{name} has no launch with {given}. Choose whole numbers of at least 1.") from None


def defaults(name: str) -> dict[str, str | int]:
    """Return the macros of kernel `name`, such as TILE, with their defaults: numbers, or the text in C."""
    found = _MACRO.findall(whole_source(name))
    return {macro: int(value) if value.isdecimal() else value for macro, value in found}


def parameters(name: str) -> list[str]:
    """Return the macros with a default in kernel `name`, such as TILE or THREADS."""
    return sorted(defaults(name))


def _parameters(family: str, on: str) -> list[str]:
    """Return the macros with a default in any kernel of `family`."""
    return sorted({macro for name in names(family, on) for macro in parameters(name)})


@cache
def _load(name: str, parameters: tuple[tuple[str, str | int], ...], _device_kind: str) -> Any:
    from labkit.device.select import RawModule

    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in parameters))
    kernel = RawModule(code=whole_source(name), options=options).get_function(name.partition("/")[0])
    kernel.rehearse = False  # the kernel is known to be correct, and is loaded to be timed
    return kernel
