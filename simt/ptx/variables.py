"""The memory of a module's `__device__` and `__constant__` variables, and how to find one by name."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from simt import ptx
from simt.common.errors import SimtError

ALIGNMENT = 256
Place = Callable[[str, np.ndarray], np.ndarray]
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
