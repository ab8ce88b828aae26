"""Small kernels: clean/ must run right and without a finding, bugs/ holds one planted mistake each.

A kernel is one .cu file that says in comments how to launch it:

    // vector_add: out = a + b                                           what it computes
    // launch: vector_add; grid 3; block 100; shared 0; options -DN=4    a launch; several are allowed
    // args: out out float32[300] nan; in a float32[300] uniform; n int32 300
    // expect: out = a + b

launch: the kernel's name, extern "C" or a template instance such as gemm<16>; grid and block of 1 to 3 sizes;
    bytes of dynamic shared memory and compiler options may follow.
args: the arguments in order, for the launch above and, until the next such line, for those that follow.
    An argument is [out | in | scratch] name type[shape] fill, or name type value. `out` is written and
    compared, `in` must stay as it is, `scratch` is written and not compared. A list of types such as f8,f4,i4
    and a tuple make a structure.
expect: `out = a + b`, what a clean kernel must leave in an output, as Python: arguments by their names, with
    NumPy as np and the helpers of references.py. A longer one is a function of the file's name there.
fill: a number; nan; uniform, uniform(a,b), normal, integers(a,b), permutation, arange; `= 1 2 3` for the
    values themselves; empty for memory that was never written. Random numbers: np.random.default_rng(SEED).

The mistakes are marked where they are:

    // BUG memcheck out of bounds    the guilty line: which tool finds it, and what kind it is
    // OTHER                         a race: the line on the other side, if it is another
    // OR                            a line that serves as well as the marked one
    // also: initcheck               (a header) other tools that are right to complain
    // refused: 1089 threads         (a header) the launch is refused with these words; a regular expression
    // timeout: 0.5                  (a header) seconds
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

SEED = 2026
FOLDER = Path(__file__).parent
ARGUMENT = re.compile(r"(?:(out|in|scratch) )?(\w+) ([a-z]\w*(?:,\w+)*)(?:\[([\d,]+)\])? (.+)")


@dataclass(frozen=True)
class Argument:
    """One argument of a launch; `shape` is None for a number passed by value."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...] | None
    fill: str


@dataclass(frozen=True)
class Expected:
    """A planted mistake: the tool that finds it, its kind, its line, other good lines, a race's other
    side.
    """

    tool: str
    kind: str
    line: int
    alternatives: tuple[int, ...]
    other: int | None


@dataclass(frozen=True)
class Case:
    """One launch of one kernel of the gallery."""

    name: str
    family: str
    source: str
    entry: str
    options: tuple[str, ...]
    name_expressions: tuple[str, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_mem: int
    arguments: tuple[Argument, ...]
    expected: tuple[Expected, ...]
    expectations: tuple[str, ...]
    also: tuple[str, ...]
    refused: str | None
    timeout: float

    @property
    def file(self) -> str:
        """The file's name without its ending; a reference has the same name."""
        return self.name.partition("-")[0]

    def named(self, role: str) -> tuple[str, ...]:
        """Names of the arrays with this role: out, in or scratch."""
        return tuple(argument.name for argument in self.arguments if argument.role == role)

    def args(self, empty: Callable[..., Any] = np.empty) -> dict[str, Any]:
        """Fresh arguments by name, in order; `empty(shape, dtype)` makes the arrays that are never
        written.
        """
        rng = np.random.default_rng(SEED)
        return {argument.name: _value(argument, rng, empty) for argument in self.arguments}


@cache
def cases(folder: str) -> tuple[Case, ...]:
    """Every launch of the kernels in a folder, "clean" or "bugs"."""
    return tuple(case for path in sorted((FOLDER / folder).glob("*.cu")) for case in read(path))


def read(path: Path) -> list[Case]:
    """The launches of one file. Raises ValueError for a header that cannot be read."""
    source = path.read_text(encoding="utf-8")
    headers = re.findall(r"^// (launch|args|expect|also|refused|timeout): (.+)$", source, re.M)
    texts: list[list[str]] = []
    for key, text in headers:
        if key == "launch":
            texts.append([text, texts[-1][1] if texts else ""])
        elif key == "args":
            texts[-1][1] = text
    if not texts:
        raise ValueError(f"{path.name} has no launch")
    other = {key: text for key, text in headers if key in ("also", "refused", "timeout")}
    return [
        Case(
            name=path.stem if len(texts) == 1 else f"{path.stem}-{number}",
            family=path.parent.name,
            source=source,
            **_launch(launch, path.name),
            arguments=tuple(_argument(text.strip(), path.name) for text in args.split(";")),
            expected=_expected(source),
            expectations=tuple(text for key, text in headers if key == "expect"),
            also=tuple(re.findall(r"\w+", other.get("also", ""))),
            refused=other.get("refused"),
            timeout=float(other.get("timeout", 60)),
        )
        for number, (launch, args) in enumerate(texts, 1)
    ]


def _launch(text: str, file: str) -> dict[str, Any]:
    entry, *parts = (part.strip() for part in text.split(";"))
    said = dict(part.split(" ", 1) for part in parts)
    if not {"grid", "block"} <= set(said) <= {"grid", "block", "shared", "options"}:
        raise ValueError(f"{file}: launch {text!r} needs grid and block; it may say shared and options")
    return {
        "entry": entry,
        "name_expressions": (entry,) if "<" in entry else (),
        "grid": tuple(map(int, said["grid"].split())),
        "block": tuple(map(int, said["block"].split())),
        "shared_mem": int(said.get("shared", 0)),
        "options": tuple(said.get("options", "").split()),
    }


def _argument(text: str, file: str) -> Argument:
    match = ARGUMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{file}: argument {text!r} is not [out|in|scratch] name type[shape] fill")
    role, name, dtype, shape, fill = match.groups()
    return Argument(name, role or "", dtype, tuple(map(int, shape.split(","))) if shape else None, fill)


def _expected(source: str) -> tuple[Expected, ...]:
    lines = list(enumerate(source.splitlines(), 1))
    others = [number for number, line in lines if line.endswith("// OTHER")]
    alternatives = tuple(number for number, line in lines if line.endswith("// OR"))
    return tuple(
        Expected(match[1], match[2], number, alternatives, others[0] if others else None)
        for number, line in lines
        if (match := re.search(r"// BUG (\w+) (.+)$", line))
    )


def _value(argument: Argument, rng: np.random.Generator, empty: Callable[..., Any]) -> Any:
    if argument.shape is None:
        if "," in argument.dtype:
            fields = [float(number) for number in re.findall(r"-?[\d.]+", argument.fill)]
            return np.array(tuple(fields), np.dtype(argument.dtype, align=True))[()]
        return np.dtype(argument.dtype).type(argument.fill)
    if argument.fill == "empty":
        return empty(argument.shape, np.dtype(argument.dtype))
    return np.ascontiguousarray(_filled(argument.fill, argument.shape, rng), argument.dtype)


def _filled(fill: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of this shape, to be converted to the argument's type."""
    name, size = fill.partition("(")[0].strip(), int(np.prod(shape))
    limits = [float(number) for number in re.findall(r"-?[\d.]+", fill)] if "(" in fill else []
    if name == "uniform":
        return rng.uniform(*(limits or (-1, 1)), shape)
    if name == "normal":
        return rng.normal(size=shape)
    if name == "integers":
        return rng.integers(*map(int, limits), size=shape)
    if name == "permutation":
        return rng.permutation(size).reshape(shape)
    if name == "arange":
        return np.arange(size).reshape(shape)
    if fill.startswith("="):
        return np.array(list(map(int, fill[1:].split()))).reshape(shape)
    return np.full(shape, float(fill) if fill == "nan" or "." in fill else int(fill))
