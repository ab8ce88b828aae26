"""The CUDA sources a student reads: `matmul/1_naive`, `transpose/3_padded`, … one idea a file.

Every kernel of a family has one entry, named like the family, and one signature:

    matmul(const T* A, const T* B, T* C, int M, int N, int K, T alpha, T beta)    C = alpha A B + beta C
    transpose(const T* in, T* out, int rows, int cols)                            out = transpose of in

A (M,K), B (K,N), C (M,N), in (rows,cols) and out (cols,rows) are row-major. The macros `DTYPE`, `TILE` and
`ROWS` have defaults. T is what `DTYPE` says, and no macro itself: `-DT=float` would rewrite the templates of
the compiler's own headers.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_FAMILIES = ("matmul", "transpose")


def names(family: str) -> list[str]:
    "Names of the kernels of `family` (`matmul` or `transpose`), simplest first."
    if family not in _FAMILIES:
        raise ValueError(f"there is no family of kernels {family!r}. Choose one of {', '.join(_FAMILIES)}.")
    return sorted(f"{family}/{path.stem}" for path in (_FOLDER / family).glob("*.cu"))


def source(name: str) -> str:
    "CUDA C++ text of the kernel `name`, such as `matmul/2_tiled`."
    known = [each for family in _FAMILIES for each in names(family)]
    if name not in known:
        raise ValueError(f"there is no kernel {name!r}. Choose one of {', '.join(known)}.")
    return (_FOLDER / f"{name}.cu").read_text(encoding="utf-8")


def load(name: str, **parameters: str | int) -> Any:
    """Kernel `name` for this machine's device, compiled with `parameters`: `load("matmul/2_tiled", TILE=16)`.

    A kernel takes its family's parameters also where it has no use for them, so that one call loads any rung
    of a ladder. Raises ValueError on a parameter that the family does not have, CompileError on a value that
    does not fit.
    """
    source(name)  # an unknown name is the first thing to say
    family = name.partition("/")[0]
    known = _parameters(family)
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{family} kernels have no parameter {parameter}; they have {', '.join(known)}.")
    from labkit.device import device  # here: reading a source needs no device

    return _load(name, tuple(sorted(parameters.items())), device().kind)


def _parameters(family: str) -> list[str]:
    "Macros with a default in any kernel of `family`."
    return sorted({macro for name in names(family) for macro in re.findall(r"#ifndef (\w+)", source(name))})


@cache
def _load(name: str, parameters: tuple[tuple[str, str | int], ...], _device_kind: str) -> Any:
    from labkit.device import RawModule

    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in parameters))
    return RawModule(code=source(name), options=options).get_function(name.partition("/")[0])
