"""The cell magic `%%cuda`: compile the cell below it and keep its kernel.

    %%cuda scale                        binds the Python variable `scale` to the kernel
    %%cuda 02.1 -D TILE=16              keeps it as the answer to exercise 02.1

The first line of the cell is line 1, as JupyterLab, VS Code and Colab number it. So the line in a compiler's
message, an invalid access or a profile is the line that the editor shows.
"""

import keyword
import re
import shlex
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

import labkit
from labkit.compile_cuda import FILE_NAME, compile_ptx
from labkit.errors import CompileError, SimtError
from labkit.simt.ptx.parser import parse

EXERCISE_ID = re.compile(r"\d\d\.\d+")

# Exercise id -> the kernel compiled last for it.
answers: dict[str, Any] = {}

# A message of NVRTC: its line in the cell, its text, and the indented lines below (source and caret).
_MESSAGE = re.compile(
    rf"^{re.escape(FILE_NAME)}\((?P<line>\d+)\): (?:catastrophic )?(?P<severity>error|warning)[^:\n]*: "
    r"(?P<text>.*)\n?(?P<excerpt>(?:[ \t]+\S.*\n?)*)",
    re.MULTILINE,
)


class CellError(SimtError):
    "A `%%cuda` cell has no kernel to give."

    def _render_traceback_(self) -> list[str]:
        "Without the name of the class: the text begins with what is wrong."
        return str(self).splitlines()


@magics_class
class CudaMagics(Magics):
    "What `%load_ext labkit` adds to a notebook."

    @cell_magic
    @magic_arguments()
    @argument("name", nargs="?", help="Python variable for the kernel, or the id of an exercise")
    @argument("-D", action="append", default=[], metavar="NAME=VALUE", help="define a macro")
    @argument("--name-expression", metavar="EXPR", help="instance of a template to take, such as 'gemm<16>'")
    def cuda(self, line: str, cell: str) -> None:
        """Compile the cell as CUDA C++ and keep its kernel under `name`.

        Other options that begin with - go to NVRTC: --std=c++20, --use_fast_math, --fmad=false, …
        """
        given, others = self.cuda.parser.parse_known_args(_words(line))  # type: ignore[union-attr]
        name = _checked_name(given.name)
        assert self.shell is not None
        keeper = answers if EXERCISE_ID.fullmatch(name) else self.shell.user_ns
        keeper.pop(name, None)  # if this cell fails, an older kernel must not pass for it
        for word in others:
            if not word.startswith("-"):
                raise UsageError(
                    f"%%cuda {line}: what is {word!r}? An option begins with -, such as -D TILE=16."
                )
        options = [*(f"-D{macro}" for macro in given.D), *others]
        expressions = [given.name_expression] if given.name_expression else []
        keeper[name] = compile_cell(cell, options, expressions, wanted=name)


def compile_cell(cell: str, options: list[str], expressions: list[str], wanted: str) -> Any:
    """Kernel of the cell, for `labkit.device()`; of several, the one called `wanted`.

    Prints the compiler's warnings. Raises CellError where it does not compile or that kernel is not there.
    """
    code = "\n" + cell  # an empty line in the place of the magic's
    try:
        compiled = compile_ptx(code, options, expressions)
        print(_messages(compiled.log, "warning"), end="")
        name = _kernel_name(expressions or list(parse(compiled.text).kernels), wanted)
        module = labkit.RawModule(code=code, options=options, name_expressions=expressions)
        return module.get_function(name)
    except CompileError as error:
        raise CellError(_explained(error)) from None


def load_ipython_extension(shell: InteractiveShell) -> None:
    "`%load_ext labkit`: register the magics."
    shell.register_magics(CudaMagics)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%cuda {line}: {error}.") from None


def _checked_name(name: str | None) -> str:
    if name is None:
        raise UsageError(
            "%%cuda wants a name: a variable, as in %%cuda scale, or an exercise, as in %%cuda 02.1."
        )
    if EXERCISE_ID.fullmatch(name) or (name.isidentifier() and not keyword.iskeyword(name)):
        return name
    raise UsageError(
        f"%%cuda {name}: that is neither a Python variable nor the id of an exercise, such as 02.1."
    )


def _kernel_name(names: list[str], wanted: str) -> str:
    "The only name, or `wanted` among several."
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


def _explained(error: CompileError) -> str:
    "The errors with their lines and carets, or what else NVRTC says."
    unknown = re.search(r"unrecognized option (\S+) found", error.log)
    if unknown:
        return (
            f"{unknown[1]} is not an option of NVIDIA's compiler NVRTC. Often used are -D NAME=VALUE, "
            "--std=c++17, --use_fast_math and --fmad=false; it always optimises, so -O3 is not needed."
        )
    first = error.log.partition("\n\n")[0]
    if "header.h(" in first:
        return (
            "The compiler stopped in CUDA's own headers. Most likely a macro, from -D or #define, "
            f"has a name that they use, such as T: choose another.\n\n{first}"
        )
    messages = _messages(error.log, "error")
    if not messages:
        return error.log
    return f"The cell does not compile. Its %%cuda line counts as line 1.\n\n{messages}"


def _messages(log: str, severity: str) -> str:
    "The log's messages of one severity, each with the line of the cell that it is about."
    found = [match for match in _MESSAGE.finditer(log) if match["severity"] == severity]
    return "\n".join(_message(match) for match in found)


def _message(match: re.Match[str]) -> str:
    source, *below = [line[2:] for line in match["excerpt"].splitlines()] or [""]  # NVRTC indents by 2
    excerpt = [f"{match['line']:>5} | {source}", *(f"      | {line}" for line in below)] if source else []
    return "\n".join([f"line {match['line']}: {match['severity']}: {match['text']}", *excerpt, ""])
