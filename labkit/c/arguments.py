"""Python arguments -> the memory that a C function gets, and back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.c.source import CALL_FILE, Function
from simt.common.buffer_names import Named, named_array, parameter_name, shown
from simt.common.errors import CompileError, LaunchError, SimtError
from simt.common.limits import check_array

_INTEGER_PARAMETER = re.compile(r"((const|signed|unsigned|char|short|int|long|size_t|u?int\d+_t) )+\w+")
INT = np.iinfo(np.int32)


@dataclass(frozen=True)
class Arguments:
    """`values`: one array per argument, without axes for numbers. `sizes`: as driver.c takes them.

    `names` are the names of the parameters, "" for one without a name.
    """

    values: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]  # bytes; -k: the memory of argument k - 1
    names: tuple[str, ...]

    def named(self, position: int) -> Named:
        """Return an array as a student knows it."""
        return named_array(self.values[position], position, self.names[position])

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arguments, counting shared memory once."""
        return sum(size for size in self.sizes if size > 0)

    def data(self) -> bytes:
        """Return the bytes of each memory, one after the other."""
        return b"".join(value.tobytes() for value, size in self._owners())

    def update(self, data: bytes) -> None:
        """Set the arrays to the contents of `data`, in the format of `data()`."""
        start = 0
        for value, size in self._owners():
            if value.ndim:
                value[...] = np.frombuffer(data, value.dtype, value.size, start).reshape(value.shape)
            start += size

    def _owners(self) -> list[tuple[np.ndarray, int]]:
        return [(value, size) for value, size in zip(self.values, self.sizes, strict=True) if size >= 0]


def bind(args: Sequence[Any], function: Function) -> Arguments:
    """Return the arguments of a call. Raises LaunchError where they do not fit."""
    parameters = function.parameters
    if len(args) != len(parameters) and parameters[-1:] != ("...",):
        raise LaunchError(
            f"{function.name} takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, {len(args)} "
            f"{'was' if len(args) == 1 else 'were'} given. It is declared as {function}"
        )
    values = tuple(_value(arg, function, position) for position, arg in enumerate(args))
    positions = range(len(values))
    names = tuple(parameter_name(function.parameter(position)) for position in positions)
    return Arguments(values, tuple(_size(values, position) for position in positions), names)


def misfit(error: CompileError, function: Function, values: Sequence[np.ndarray]) -> SimtError | None:
    """Explain what the compiler or linker reports about the call; None if it is about something else."""
    undefined = re.search(r"undefined (?:reference to|symbol:?) [`'\"]?_?([A-Za-z]\w*)", error.log)
    if undefined:
        return SimtError(
            f"{undefined[1]} is declared and called, but not defined. A helper is static, or static inline"
        )
    found = re.search(rf"^{CALL_FILE}:(\d+):(?:\d+:)? error: (.*)", error.log, re.MULTILINE)
    if not found:
        return None
    position = int(found[1]) - 2
    if not 0 <= position < len(values):
        return LaunchError(f"{function.name} cannot be called: {found[2]}")
    return LaunchError(
        f"{shown(values[position], position)} does not fit: {function.name} takes "
        f"{function.parameter(position)}"
    )


def _value(arg: Any, function: Function, position: int) -> np.ndarray:
    if isinstance(arg, np.ndarray):
        return _array(arg, position)
    if isinstance(arg, int) and not INT.min <= arg <= INT.max:
        raise LaunchError(
            f"argument {position} is {arg}, which does not fit C's int. Pass np.int64({arg}) if the "
            "parameter is an int64_t"
        )
    if not isinstance(arg, (int, float, np.generic)):
        raise LaunchError(
            f"argument {position} is a {type(arg).__name__}; a C function takes NumPy arrays and numbers"
        )
    value = np.asarray(arg, np.int32 if isinstance(arg, int) else None)
    if value.dtype.kind == "f" and _INTEGER_PARAMETER.fullmatch(function.parameter(position)):
        raise LaunchError(
            f"argument {position} is the {type(arg).__name__} {arg}; {function.name} takes "
            f"{function.parameter(position)}, an integer"
        )
    return value


def _array(array: np.ndarray, position: int) -> np.ndarray:
    check_array(array, position, "a C function")
    return array.reshape(array.shape or 1)  # an array without axes stands for a number


def _size(values: Sequence[np.ndarray], position: int) -> int:
    """Return the argument's bytes, or -k if it is argument k - 1's memory. LaunchError if they overlap."""
    value = values[position]
    for k, other in enumerate(values[:position]):
        if not np.may_share_memory(value, other):
            continue
        if (value.ctypes.data, value.nbytes) != (other.ctypes.data, other.nbytes):
            raise LaunchError(
                f"{shown(value, position)} overlaps {shown(other, k)}. Pass the same array twice, or a copy"
            )
        return -(k + 1)
    return value.nbytes
