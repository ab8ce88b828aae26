"""The memory of a module's `__device__` and `__constant__` variables, and how to find one by name."""

import re
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from simt import ptx
from simt.common.errors import SimtError

ALIGNMENT = 256
Place = Callable[[str, np.ndarray], np.ndarray]
# Types of C++ without `signed`, and `int` beside other words; for vectors, of their numbers.
_SIZES = {"char": 1, "short": 2, "": 4, "long": np.dtype(np.long).itemsize, "long long": 8}
_TYPES = {
    **{name: np.dtype(f"i{size}") for name, size in _SIZES.items()},
    **{f"unsigned {name}".strip(): np.dtype(f"u{size}") for name, size in _SIZES.items()},
    **{
        f"{kind}nt{8 * size}_t": np.dtype(f"{kind[0]}{size}") for kind in ("i", "ui") for size in (1, 2, 4, 8)
    },
    **{"float": np.dtype("f4"), "double": np.dtype("f8"), "bool": np.dtype(bool), "size_t": np.dtype("u8")},
    **{"half": np.dtype("f2"), "__half": np.dtype("f2"), "__nv_bfloat16": np.dtype(ml_dtypes.bfloat16)},
}
_VECTOR = re.compile(r"(u?)(char|short|int|longlong|long|float|double)[1-4]")
_IN_PTX = {"f32": "f4", "f64": "f8"} | {
    f"{k}{8 * n}": f"{t}{n}" for k, t in ("si", "uu") for n in (1, 2, 4, 8)
}
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_BESIDE = re.compile(
    r"(?:cuda::)?std::|\b(?:static|const|constexpr|inline|volatile|extern|signed|int|__\w+__)\b|\([^)]*\)"
)
FUNCTION_ADDRESS = 16  # of the first function; this process has no memory there


def initial_memory(module: ptx.Module, place: Place | None = None) -> dict[str, np.ndarray]:
    """Allocate each variable with its initial value, which may hold addresses of other variables.

    `place` gives a variable, by its name and value, memory of its own; without it the value's memory is it.
    """
    found = {name: v for name, (space, v) in module.variables.items() if space in ("global", "const")}
    memory = {name: _initialised(variable) for name, variable in found.items()}
    if place:
        memory = {name: place(name, value) for name, value in memory.items()}
    addresses = {name: array.ctypes.data for name, array in memory.items()} | function_addresses(module)
    for name, variable in found.items():
        for offset, target, beyond in variable.addresses:
            memory[name][offset : offset + 8].view(np.uint64)[0] = addresses[target] + beyond
    return memory


def function_addresses(module: ptx.Module) -> dict[str, int]:
    """Return, for each function, the number that stands for its address."""
    return {name: FUNCTION_ADDRESS * number for number, name in enumerate(module.functions, 1)}


def find_variable(names: Sequence[str], lowered: dict[str, str], name: str) -> str:
    """Return the variable that C++ calls `name` (or `&name`). Raises SimtError, which lists the variables."""
    plain = name.removeprefix("&").removeprefix("::")
    for candidate in (name, lowered.get(name), lowered.get(f"&{plain}"), lowered.get(plain), plain):
        if candidate is not None and candidate in names:
            return candidate
    matching = [mangled for mangled in names if demangled(mangled) == plain]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"`{demangled(known)}`" for known in names if not known.startswith("$")) or "none"
    raise SimtError(
        f"no __device__ or __constant__ variable is called `{name}`; this module has: {known}. "
        "One that no kernel uses may have been left out by the compiler"
    )


def element_type(code: str, name: str, in_ptx: str) -> np.dtype | None:
    """Return the type of a variable's elements, as the source declares it; None for structures.

    `in_ptx` is its type in PTX, which knows it of single numbers alone.
    """
    declared = re.search(
        r"\b(?:__device__|__constant__|__managed__)\b([\w\s:()]*?)\b"
        rf"{re.escape(name.rpartition('::')[2])}\s*(?:\[[^\];]*\]\s*)*[=;{{]",
        _NOT_CODE.sub(" ", code),
    )
    if declared is None:
        return np.dtype(_IN_PTX[in_ptx]) if in_ptx in _IN_PTX else None
    words = " ".join(_BESIDE.sub(" ", declared[1]).split())
    if vector := _VECTOR.fullmatch(words):
        number = vector[2].replace("longlong", "long long").replace("int", "")
        return _TYPES[f"unsigned {number}".strip() if vector[1] else number]
    return _TYPES.get(words)


def demangled(name: str) -> str:
    """Return `a::b` for `_ZN1a1bE` or `_ZL1b`, and other names unchanged."""
    nested = re.fullmatch(r"_ZN(?:K|L)?(.*)E", name) or re.fullmatch(r"_ZL?(\d.*)", name)
    if nested is None:
        return name
    parts, rest = [], nested[1].replace("L", "", 1) if nested[1].startswith("L") else nested[1]
    while length := re.match(r"L?(\d+)", rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return name if rest else "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))


def _initialised(variable: ptx.Variable) -> np.ndarray:
    """Return the variable's bytes: its initial value, then zeros, aligned as on a GPU."""
    memory = np.zeros(max(1, variable.size) + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    memory = memory[start : start + max(1, variable.size)]
    memory[: len(variable.values)] = np.frombuffer(variable.values, np.uint8)
    return memory
