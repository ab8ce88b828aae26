"""Name memory as a kernel's source does: `x[1]` is past the end of `x`, which has 1 element."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simt.common.text import counted

_NOISE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_BRACKETS = {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}
_POINTER = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)")  # in `float (*A)[32]`
_LAST_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


@dataclass(frozen=True)
class Named:
    """Memory that a kernel or C function may use: what a message calls it, and its bytes.

    `shape` is an array's, None for other memory. `parameter` is the array's name in the source; "" where
    that is not known.
    """

    name: str
    size: int
    itemsize: int = 1
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    parameter: str = ""

    def element(self, index: int) -> str:
        """Name an element, by row and column too where the array has them: `A[99]` (`A[3, 0]`)."""
        if not self.parameter:
            unit = "byte" if self.shape is None and self.itemsize == 1 else "element"
            return f"{unit} {index} of {self.name}"
        told = f"`{self.parameter}[{index}]`"
        inner = (self.shape or ())[1:]
        if not inner or 0 in inner:
            return told
        places = []
        for side in reversed(inner):
            index, place = divmod(index, side)
            places.append(place)
        return f"{told} (`{self.parameter}[{', '.join(map(str, [index, *reversed(places)]))}]`)"

    def outside(self, offset: int, size: int) -> str:
        """Say where an access of `size` bytes (0: unknown) at a byte outside the memory lies."""
        where = "before the start" if offset < 0 else "past the end"
        end = f"{where} of {self.name}"
        if self.shape is not None and offset % self.itemsize == size % self.itemsize == 0:
            count = counted(self.shape[0], "element") if len(self.shape) == 1 else _matrix(self.shape)
            has = f", which has {count}" if self.parameter else ""
            index = offset // self.itemsize
            if size > self.itemsize:
                last = index + size // self.itemsize - 1
                return f"elements {index} to {last} ({self.dtype}) reach {end}{has}"
            told = self.element(index) if self.parameter else f"element {index}"
            return f"{told} is {end}{has}"
        if offset < 0:
            return f"{counted(-offset, 'byte')} {end}"
        behind = offset + size - self.size
        return f"{'it ends ' if size else ''}{counted(behind, 'byte')} {end}" if behind else end


@dataclass(frozen=True)
class Freed(Named):
    """Memory that has been freed; `where` finds the line of the call that did so, or "" if it has none."""

    where: Callable[[], str] = str

    def has(self, offset: int) -> bool:
        """Say whether a byte was in the memory."""
        return 0 <= offset < self.size

    def element(self, index: int) -> str:
        """Name a byte of the memory."""
        line = self.where()
        return f"{super().element(index)}, which has been freed" + (f" in {line}" if line else "")


def named_array(array: np.ndarray, position: int, parameter: str = "") -> Named:
    """Describe an argument: by the name of its parameter, else by its position, type, and shape."""
    name = f"`{parameter}`" if parameter else shown(array, position)
    return Named(name, array.nbytes, array.itemsize, array.shape, str(array.dtype), parameter)


def shown(value: np.ndarray, position: int, parameter: str = "") -> str:
    """Name an argument by its position, or by its parameter, and with its type and shape."""
    what = f"`{parameter}`" if parameter else f"argument {position}"
    return f"{what} ({value.dtype}{f', shape {value.shape}' if value.ndim else ''})"


def parameter_name(declaration: str) -> str:
    """Return the name that a declaration such as `const float *A` or `float (*A)[32]` gives; "" for none."""
    declared = declaration.partition("=")[0].strip()
    found = _POINTER.search(declared) or _LAST_NAME.search(declared)
    return found[1] if found and found[0] != declared else ""


def parameter_names(source: str, kernel: str, count: int) -> list[str]:
    """Return the names of a kernel's parameters; [] where the source does not show `count` of them.

    The source is read as text: two definitions, of which the preprocessor takes one, must agree.
    """
    text = _NOISE.sub(" ", source)
    plain = kernel.partition("<")[0].rpartition("::")[2]
    found = set()
    for match in re.finditer(rf"\b{re.escape(plain)}\s*\(", text):
        before = re.split(r"[;{}]", text[: match.start()])[-1]
        declared = _split(text[match.end() :]) if "__global__" in before else []
        names = tuple(map(parameter_name, declared))
        if len(names) == count and all(names):
            found.add(names)
    return list(found.pop()) if len(found) == 1 else []


def _split(text: str) -> list[str]:
    """Split what stands before the closing parenthesis at the commas that are in no other brackets."""
    depth, parts = 0, [""]
    for letter in text:
        depth += _BRACKETS.get(letter, 0)
        if depth < 0:
            return parts
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return []


def _matrix(shape: Sequence[int]) -> str:
    return f"{' x '.join(map(str, shape))} elements"
