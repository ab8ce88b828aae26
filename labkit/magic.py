"""The cell magics `%%cuda` and `%%c`: compile the cell below and keep its kernel or C function.

    %%cuda scale                        binds the Python variable `scale` to the kernel
    %%cuda 02.1 -D TILE=16              keeps it as the answer to exercise 02.1
    %%c scale -O2                       the same for a C function

The first line of the cell is line 1, as JupyterLab, VS Code and Colab number it. So the line in a compiler's
message, an invalid access or a profile is the line that the editor shows.
"""

import ast
import keyword
import re
import shlex
import symtable
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import time
from types import FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class

import labkit
from labkit.c import options as c_options
from labkit.c.compile import FILE_NAME as C_FILE_NAME
from labkit.c.compile import compile_log
from labkit.c.function import CFunction
from labkit.c.source import functions
from labkit.devices import faults
from simt.common.cell import Cell, current
from simt.common.errors import CompileError, SimtError
from simt.compiler import options as nvrtc_options
from simt.compiler.nvrtc import FILE_NAME, compile_ptx
from simt.compiler.options import NAME_EXPRESSION
from simt.ptx.parser import parse

EXERCISE_ID = re.compile(r"\d\d\.\d+")

# Exercise id -> the kernel or function that was last made for it.
answers: dict[str, Any] = {}
# Exercise id -> the last cell that was run to answer it.
runs: dict[str, "CellRun"] = {}

DOES_NOT_COMPILE = "The cell does not compile. Its %%{} line counts as line 1.\n\n"

# An NVRTC message: its line in the cell, its text, and the indented lines below (source and caret).
_CUDA_MESSAGE = re.compile(
    rf"^{re.escape(FILE_NAME)}\((?P<line>\d+)\): (?:catastrophic )?(?P<severity>error|warning)[^:\n]*: "
    r"(?P<text>.*)\n?(?P<excerpt>(?:[ \t]+\S.*\n?)*)",
    re.MULTILINE,
)
# A gcc or clang message: the excerpt has the line's number, or only a bar, before each line.
_C_MESSAGE = re.compile(
    rf"^{re.escape(C_FILE_NAME)}:(?P<line>\d+):(?:\d+:)? (?:fatal )?(?P<severity>error|warning): "
    r"(?P<text>.*)\n?(?P<excerpt>(?: *\d* \|.*\n?)*)",
    re.MULTILINE,
)

_FIRST_MESSAGE = re.compile(r"^line \d+: .*(?:\n *\d* \|.*)*", re.MULTILINE)  # as they are shown


class CellError(SimtError):
    """A `%%cuda`, `%%c` or `%%answer` cell has nothing to keep."""

    def _render_traceback_(self) -> list[str]:
        """Show the error without its class name: the text begins with what is wrong."""
        return str(self).splitlines()


@dataclass(frozen=True)
class CellRun:
    """A run of a cell with an answer: the cell, when it began, and why it left none, "" if it left one.

    `python` is what `%%answer` has run, and `file` what Python calls it; both are "" for another magic.
    """

    cell: Cell
    time: float
    failure: str = ""
    python: str = ""
    file: str = ""


@dataclass(frozen=True)
class Line:
    """What stands on the line of `%%cuda` or `%%c`, with the compiler's options in one spelling each."""

    name: str
    options: list[str]
    expressions: list[str]

    @property
    def is_answer(self) -> bool:
        """Say whether the cell answers an exercise."""
        return EXERCISE_ID.fullmatch(self.name) is not None


def read_line(magic: str, line: str) -> Line:
    """Read the line of `%%cuda` or `%%c`, as the grader does too. Raises UsageError."""
    read = c_options.read if magic == "c" else nvrtc_options.read
    try:
        words = shlex.split(line)
        is_answer = any(map(EXERCISE_ID.fullmatch, words))
        names, options = read(words, in_an_answer=is_answer)
    except ValueError as error:
        raise UsageError(f"%%{magic} {line.strip()[:100]}: {str(error).rstrip('.')}.") from None
    name = _checked_name(magic, next(iter(names), None))
    for word in names[1:]:
        raise UsageError(
            f"%%{magic} {line.strip()[:100]}: what is {word!r}? An option begins with -, such as -D TILE=16."
        )
    prefix = f"{NAME_EXPRESSION}="
    expressions = [option.removeprefix(prefix) for option in options if option.startswith(prefix)]
    return Line(name, [option for option in options if not option.startswith(prefix)], expressions[-1:])


@magics_class
class LabMagics(Magics):
    """What `%load_ext labkit` adds to a notebook."""

    @cell_magic
    def cuda(self, line: str, cell: str) -> None:
        """Compile the cell as CUDA C++ and keep its kernel under a name: `%%cuda NAME [options]`.

        NAME is a Python variable for the kernel, or the id of an exercise.
        -D NAME=VALUE defines a macro.
        --name-expression EXPR is the instance of a template to take, such as 'gemm<16>'.
        Other options that begin with - go to NVRTC: --std=c++20, --use_fast_math, --fmad=false, …
        """
        with noted(line):
            read, keeper = self._start("cuda", line)
            keeper[read.name] = compile_cell(cell, read.options, read.expressions, wanted=read.name)

    @cell_magic
    def c(self, line: str, cell: str) -> None:
        """Compile the cell as C and keep its function under a name: `%%c NAME [options]`.

        NAME is a Python variable for the function, or the id of an exercise.
        -D NAME=VALUE defines a macro.
        Other options that begin with - go to the C compiler: -O2, -ffast-math, -fopenmp, …
        """
        with noted(line):
            read, keeper = self._start("c", line)
            keeper[read.name] = compile_c_cell(cell, read.options, wanted=read.name)

    def _start(self, magic: str, line: str) -> tuple[Line, dict[str, Any]]:
        """Return what stands on the line, and where the result goes. Raises UsageError for a wrong line."""
        read = read_line(magic, line)
        assert self.shell is not None
        keeper = answers if read.is_answer else self.shell.user_ns
        keeper.pop(read.name, None)
        return read, keeper


def run_python(code: str, file: str, values: dict[str, Any], wanted: str) -> Callable[..., Any]:
    """Run the cell of an answer in Python where names have these values, and return the function that counts.

    That is the one called `wanted`, else the last. Raises CellError where there is none, and what the cell
    raises.
    """
    __tracebackhide__ = True
    exec(compile(parsed(code), file, "exec"), values)
    return _function_in(values, _bound(code), wanted)


@contextmanager
def noted(line: str) -> Iterator[dict[str, str]]:
    """Note the run of a cell that answers the exercise on its line, and why it fails if it does.

    What is put into the dictionary is noted, too. An older answer is forgotten: if this cell fails, it must
    not be taken for its result.
    """
    exercises, began, failure = list(filter(EXERCISE_ID.fullmatch, line.split())), time(), ""
    for exercise in exercises:
        answers.pop(exercise, None)
    about: dict[str, str] = {}
    try:
        yield about
    except KeyboardInterrupt:
        failure = "it was interrupted."
        raise
    except Exception as error:
        failure = _first_message(error)
        raise
    finally:
        runs.update((exercise, CellRun(current(), began, failure, **about)) for exercise in exercises)


def _first_message(error: Exception) -> str:
    """Return the first of a compiler's messages, or what else the cell has failed with."""
    if isinstance(error, CellError) and (first := _FIRST_MESSAGE.search(str(error))):
        return first[0].rstrip()
    told = str(error) or "no message"
    return told if isinstance(error, (CellError, UsageError)) else f"{type(error).__name__}: {told}"


def compile_cell(cell: str, options: list[str], expressions: list[str], wanted: str) -> Any:
    """Return the cell's kernel for `labkit.device()`; of several, the one called `wanted`.

    Prints the compiler's warnings. Raises CellError where the cell does not compile or has no such kernel.
    """
    code = "\n" + cell  # an empty line in place of the magic's line
    try:
        compiled = compile_ptx(code, options, expressions)
        print(_messages(_CUDA_MESSAGE, compiled.log, "warning"), end="")
        name = _kernel_name(expressions or list(parse(compiled.text).kernels), wanted)
        module = labkit.RawModule(code=code, options=options, name_expressions=expressions)
        return module.get_function(name)
    except CompileError as error:
        raise CellError(_explained(error)) from None


def compile_c_cell(cell: str, options: list[str], wanted: str) -> CFunction:
    """Return the cell's C function: the one called `wanted`, else the last that is not static.

    In C a function is declared before its use, so the last one is the one that uses the others. Prints the
    compiler's warnings. Raises CellError where the cell does not compile or has no such function.
    """
    code = "\n" + cell  # an empty line in place of the magic's line
    try:
        print(_messages(_C_MESSAGE, compile_log(code, options), "warning"), end="")
        return CFunction(code, _function_name(code, wanted), options)
    except CompileError as error:
        messages = _messages(_C_MESSAGE, error.log, "error")
        raise CellError(f"{DOES_NOT_COMPILE.format('c')}{messages}" if messages else error.log) from None


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics (`%load_ext labkit`), and show our error when the GPU has stopped a kernel."""
    shell.register_magics(LabMagics)
    faults.tell_in(shell)


def parsed(code: str) -> ast.Module:
    """Return the cell's syntax tree. Raises CellError with the line that Python cannot read."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        text, place = (error.text or "").rstrip("\n"), max(error.offset or 1, 1) - 1
        caret = "".join(letter if letter == "\t" else " " for letter in text[:place].ljust(place)) + "^"
        told = f"line {error.lineno}: {type(error).__name__}: {error.msg}"
        raise CellError(f"{told}\n{error.lineno or 1:>5} | {text}\n      | {caret}") from None


def _bound(code: str) -> list[str]:
    """Return the names that a cell defines or assigns outside its functions."""
    names = symtable.symtable(code, "cell", "exec").get_symbols()
    return [name.get_name() for name in names if name.is_assigned()]


def _function_in(values: dict[str, Any], names: list[str], wanted: str) -> Callable[..., Any]:
    """Return the function called `wanted`, else the last one, under its name. Raises CellError."""
    found = [name for name in names if callable(values.get(name)) and not isinstance(values[name], type)]
    if not found:
        raise CellError("The cell has no function. Write one with def, as the task says.")
    name = wanted if wanted in found else found[-1]
    function: Callable[..., Any] = values[name]
    if isinstance(function, FunctionType) and function.__name__ == name:
        return function

    def call(*args: Any) -> Any:
        return function(*args)

    # A lambda has no name, and functools.partial and objects with __call__ are no functions.
    call.__name__ = name
    return call


def _checked_name(magic: str, name: str | None) -> str:
    if name is None:
        raise UsageError(
            f"%%{magic} wants a name: a variable, as in %%{magic} scale, or an exercise, as in "
            f"%%{magic} 02.1."
        )
    if EXERCISE_ID.fullmatch(name) or (name.isidentifier() and not keyword.iskeyword(name)):
        return name
    raise UsageError(
        f"%%{magic} {name}: that is neither a Python variable nor the id of an exercise, such as 02.1."
    )


def _kernel_name(names: list[str], wanted: str) -> str:
    """Return the only name, or `wanted` among several."""
    if len(names) == 1:
        return names[0]
    if wanted in names:
        return wanted
    if not names:
        raise CellError(
            "The cell has no kernel. A kernel is a function declared __global__ void; of a template, say "
            "which instance you want, as in %%cuda gemm --name-expression 'gemm<16>'."
        )
    raise CellError(f"The cell has {len(names)} kernels: {', '.join(names)}. Give each a cell of its own.")


def _function_name(code: str, wanted: str) -> str:
    """Return `wanted` if it is there, else the last function that is not static."""
    defined = functions(code)
    if any(function.name == wanted for function in defined):
        return wanted
    if all(function.static for function in defined):
        raise CellError("The cell has no function to call. Write one that is not static.")
    return [function.name for function in defined if not function.static][-1]


def _explained(error: CompileError) -> str:
    """Return the errors with their lines and carets, or what else NVRTC reports."""
    first = error.log.partition("\n\n")[0]
    if "header.h(" in first:
        return (
            "The compiler stopped in CUDA's own headers. Most likely a macro, from -D or #define, "
            f"has a name that they use, such as T: choose another.\n\n{first}"
        )
    messages = _messages(_CUDA_MESSAGE, error.log, "error")
    return f"{DOES_NOT_COMPILE.format('cuda')}{messages}" if messages else error.log


def _messages(form: re.Pattern[str], log: str, severity: str) -> str:
    """Return the log's messages of one severity, each with the line of the cell that it is about."""
    return "\n".join(_message(match) for match in form.finditer(log) if match["severity"] == severity)


def _message(match: re.Match[str]) -> str:
    excerpt = match["excerpt"].splitlines()
    if excerpt and match.re is _CUDA_MESSAGE:
        source, *below = [line[2:] for line in excerpt]  # NVRTC indents by 2
        excerpt = [f"{match['line']:>5} | {source}", *(f"      | {line}" for line in below)]
    return "\n".join([f"line {match['line']}: {match['severity']}: {match['text']}", *excerpt, ""])
