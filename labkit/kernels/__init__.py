"""The sources a student reads, one idea per file, such as `matmul/1_naive`.

Each family is a folder here. It holds the kernels in CUDA C++ (`*.cu`, for a GPU) and in C (`cpu_*.c`, for
the CPU), and a `family.py` that says which problem they solve. Every kernel of a family has one entry, named
like the family, and the same signature. Macros such as `DTYPE`, `TILE` or `THREAD_M` have defaults that fit
together; values that do not fit are an error at compile time. T is the type that `DTYPE` names. T is not a
macro itself, as `-DT=float` would rewrite the templates of the compiler's own headers. A kernel without
`DTYPE` takes floats only. Headers (`*.h`) hold what several kernels of a folder share. The head of a file
says how the kernel is launched (`launch_line`, `heads`).
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from labkit.kernels import heads
from labkit.kernels.launch_line import LaunchLineError, launch_of
from labkit.kernels.problem import Problem, families, problem_class
from simt.common.bits import as_cupy_bits
from simt.common.errors import LaunchError
from simt.common.limits import Dim3
from simt.compiler.macros import macros_of

__all__ = [
    "BLOCK_SIDE",
    "FAMILIES",
    "defaults",
    "lacking",
    "launch",
    "launch_of",
    "load",
    "macros_of",
    "names",
    "on_cpu",
    "parameters",
    "source",
    "source_with_includes",
    "types",
    "unfit",
    "whole_launch",
]

_FOLDER = Path(__file__).parent
FAMILIES = families()
_INCLUDE = re.compile(r'^#include "(\w+\.(?:c|h|cuh))"$', re.MULTILINE)
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


def source_with_includes(name: str) -> str:
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
    DTYPE that the kernel does not take; CompileError for a value that does not fit; LaunchError on a GPU that
    lacks what the kernel needs.
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
    named = _named_types(name)
    chosen = str(parameters.get("DTYPE", named[0] if named else ""))
    if named and chosen not in named:
        raise ValueError(f"{name} takes {', '.join(named)} alone, and DTYPE is {chosen}.")
    from labkit.devices.select import device  # imported here: reading a source needs no device

    here = device()
    if reason := lacking(name, chosen, here.compute_capability):
        raise LaunchError(
            f"{reason}; {here.name} has compute capability {here.compute_capability}. "
            "Set LABKIT_DEVICE=simt to run it in the simulator."
        )
    return _load(name, tuple(sorted(parameters.items())), here.kind)


def types(name: str) -> tuple[str, ...]:
    """Return the C types that DTYPE may name in CUDA kernel `name`."""
    return _named_types(name) or tuple(problem_class(name.partition("/")[0]).dtypes.values())


def _named_types(name: str) -> tuple[str, ...]:
    """Return the types that a CUDA kernel's head names; () where DTYPE may be any that compiles."""
    return heads.types(source_with_includes(name)) if "DTYPE" in defaults(name) else ("float",)


def lacking(name: str, ctype: str, compute_capability: str) -> str:
    """Say what CUDA kernel `name` with DTYPE=ctype needs that a GPU lacks; "" where the GPU has all."""
    kind = problem_class(name.partition("/")[0])
    of_type = {kind.dtypes[dtype]: needed for dtype, needed in kind.needs.items()}
    what = {
        name: heads.said(source_with_includes(name), "needs"),
        f"{name} in {ctype}": of_type.get(ctype, ""),
    }
    for each, needed in what.items():
        if heads.lacks(needed, compute_capability):
            return f"{each} needs {needed}"
    return ""


def unfit(name: str, problem: Problem, **parameters: str | int) -> str:
    """Say why CUDA kernel `name` cannot take `problem`; "" where it can.

    A tensor map takes arrays whose rows are multiples of 16 bytes.
    """
    for each in heads.tensor_maps(source_with_includes(name), _macros(name, problem, parameters)):
        side, itemsize = problem.arrays[each.array][-1], problem.array_dtypes()[each.array].itemsize
        row = problem.shapes()[each.array][-1] * itemsize
        if row % heads.ROW_BYTES:
            return (
                f"{side}={problem.sizes[str(side)]} makes rows of {each.array} {row} bytes long in "
                f"{problem.dtype}; a tensor map takes multiples of {heads.ROW_BYTES} bytes. "
                f"Choose a multiple of {heads.ROW_BYTES // itemsize} for {side}."
            )
    return ""


def launch(name: str, problem: Problem, **parameters: str | int) -> tuple[Dim3, Dim3]:
    """Return grid and block of CUDA kernel `name` on `problem`, as its source's line `// launch:` says.

    `parameters` are those of `load`. For a kernel without a TILE of its own, which takes square blocks of any
    side, TILE is that side, 32 by default. Raises LaunchError where no GPU takes such a launch.
    """
    macros = _macros(name, problem, parameters)
    try:
        return launch_of(source_with_includes(name), problem, **macros)
    except LaunchLineError as error:
        if all(isinstance(value, int) and value > 0 for key, value in parameters.items() if key != "DTYPE"):
            raise LaunchError(f"{name}: {error}") from None
        given = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise LaunchError(f"{name} has no launch with {given}. Choose whole numbers of at least 1.") from None


def whole_launch(
    name: str, problem: Problem, args: tuple[Any, ...], **parameters: str | int
) -> tuple[Dim3, Dim3, tuple[Any, ...], int]:
    """Return what CUDA kernel `name` is called with: grid, block, args, bytes of dynamic shared memory.

    `args` are those of `problem`; arrays become tensor maps where the source's head says so. `parameters` are
    those of `load`. Raises LaunchError where no GPU takes such a launch, or the kernel not this problem.
    """
    grid, block = launch(name, problem, **parameters)
    if reason := unfit(name, problem, **parameters):
        raise LaunchError(f"{name}: {reason}")
    macros, given = _macros(name, problem, parameters), list(args)
    for each in heads.tensor_maps(source_with_includes(name), macros):
        place = list(problem.arrays).index(each.array)
        made = _tensor_map(args[place], each)
        if each.replaces:
            given[place] = made
        else:
            given.append(made)
    return grid, block, tuple(given), heads.shared_bytes(source_with_includes(name), macros)


def _tensor_map(array: Any, of: heads.BoxOf) -> Any:
    from labkit.devices.tensor_map import tensor_map  # imported here: few kernels need one

    return tensor_map(as_cupy_bits(array), of.box, swizzle=of.swizzle)


def _macros(name: str, problem: Problem, given: dict[str, str | int]) -> dict[str, str | int]:
    """Return the macros of a kernel that is launched on `problem`."""
    return {"TILE": BLOCK_SIDE} | defaults(name) | {"DTYPE": problem.ctype} | problem.c_types | given


def defaults(name: str) -> dict[str, str | int]:
    """Return the macros of kernel `name`, such as TILE, with their defaults: numbers, or the text in C."""
    found = _MACRO.findall(source_with_includes(name))
    return {macro: int(value) if value.isdecimal() else value for macro, value in found}


def parameters(name: str) -> list[str]:
    """Return the macros with a default in kernel `name`, such as TILE or THREADS."""
    return sorted(defaults(name))


def _parameters(family: str, on: str) -> list[str]:
    """Return the macros with a default in any kernel of `family`."""
    return sorted({macro for name in names(family, on) for macro in parameters(name)})


@cache
def _load(name: str, parameters: tuple[tuple[str, str | int], ...], _device_kind: str) -> Any:
    from labkit.devices.select import RawModule

    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in parameters))
    code = source_with_includes(name)
    kernel = RawModule(code=code, options=options).get_function(name.partition("/")[0])
    kernel.rehearse = False  # the kernel is known to be correct, and is loaded to be timed
    if shared := heads.shared_bytes(code, dict(parameters)):
        kernel.max_dynamic_shared_size_bytes = shared
    return kernel
