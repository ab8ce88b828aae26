"""The cell magic `%%program`: build a whole CUDA program and run it.

%%program                           builds the cell and runs it
%%program -O3 -- 1024 16            nvcc's options, and after -- the program's arguments
%%program --check                   runs it as `labkit check` does; --profile as `labkit profile` does
%%program --build                   builds it, and does not run it
%%program --stdin "1024"            gives it a line of input
%%program saxpy                     also binds the Python variable `saxpy`, to run it again
%%program 13.1                      keeps it as the answer to exercise 13.1
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class

from labkit import magic
from labkit.answer_magic import AnswerMagics
from labkit.magic import EXERCISE_ID, CellError
from simt.common.errors import CompileError
from simt.programs.program import AnyProgram, Mode, Outcome, Unbuilt, build_program
from simt.programs.toolkit import NoCompiler


@dataclass(frozen=True)
class Line:
    """What stands on the line of `%%program`."""

    name: str
    options: list[str]
    arguments: list[str]
    stdin: str
    mode: Mode
    runs: bool = True


def read_line(line: str) -> Line:
    """Read the line of `%%program`. Raises UsageError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%program {line.strip()[:100]}: {error}.") from None
    arguments: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, arguments = words[:at], words[at + 1 :]
    mode: Mode = "run"
    for option in ("check", "profile"):
        if f"--{option}" in words:
            words.remove(f"--{option}")
            mode = "check" if option == "check" else "profile"
    runs = "--build" not in words
    words = [word for word in words if word != "--build"]
    stdin = ""
    if "--stdin" in words:
        at = words.index("--stdin")
        if at + 1 == len(words):
            raise UsageError('%%program --stdin wants the input: --stdin "1024"')
        stdin = words[at + 1].replace("\\n", "\n") + "\n"
        del words[at : at + 2]
    name = ""
    if words and not words[0].startswith("-"):
        name = words.pop(0)
        if not (name.isidentifier() or EXERCISE_ID.fullmatch(name)):
            raise UsageError(
                f"%%program {name}: that is neither a Python variable nor the id of an exercise."
            )
    return Line(name, words, arguments, stdin, mode, runs)


@magics_class
class ProgramMagics(Magics):
    """What `%load_ext labkit` adds to a notebook for whole programs."""

    @cell_magic
    def program(self, line: str, cell: str) -> None:
        """Build the cell as a CUDA program and run it: `%%program [NAME] [nvcc options] [-- arguments]`.

        --check names its mistakes, --profile counts its launches, --stdin TEXT is its input. --build builds
        it alone.
        """
        with magic.noted(line):
            read = read_line(line)
            program = compile_program(cell, read.options)
            if read.name:
                assert self.shell is not None
                keeper = magic.answers if EXERCISE_ID.fullmatch(read.name) else self.shell.user_ns
                keeper[read.name] = program
            if isinstance(program, Unbuilt):
                print(program.why)  # no error: what stands below in a notebook can run without it
            elif read.runs:
                show(run(program, read))


def compile_program(cell: str, options: list[str]) -> AnyProgram:
    """Build a cell. Raises CellError with nvcc's messages, whose lines are those of the cell."""
    code = "\n" + cell  # an empty line in place of the magic's line
    try:
        return build_program(code, options)
    except NoCompiler as missing:
        return Unbuilt(code, tuple(options), str(missing))
    except CompileError as error:
        raise CellError(
            f"The cell does not compile. Its %%program line counts as line 1.\n\n{error.log}"
        ) from None


# What labkit says on a program's stderr although nothing is wrong.
_REMARKS = ("labkit: no GPU here.", "labkit check: no mistake found")


def run(program: AnyProgram, read: Line) -> Outcome:
    """Run a program and print what it prints, as it comes; only what is wrong has a notebook's red ground."""
    begun = ""  # a line of stderr that has no end yet: which remark it is, its first words alone do not say

    def write(text: str) -> None:
        stream = sys.stdout if text.startswith(_REMARKS) else sys.stderr
        stream.write(text)
        stream.flush()

    def on_text(name: str, text: str) -> None:
        nonlocal begun
        if name == "stdout":
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        *lines, begun = (begun + text).split("\n")
        for line in lines:
            write(f"{line}\n")

    try:
        return program.run(*read.arguments, stdin=read.stdin, mode=read.mode, on_text=on_text)
    finally:
        if begun:
            write(begun)


def show(outcome: Outcome) -> None:
    """Say how a program ended, if not well."""
    if outcome.timed_out:
        print("The program took too long and was ended.")
    elif outcome.code > 128:
        print(f"The program was ended by signal {outcome.code - 128}.")
    elif outcome.code:
        print(f"Exit code {outcome.code}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register all of labkit's magics (`%load_ext labkit`)."""
    magic.load_ipython_extension(shell)
    shell.register_magics(AnswerMagics, ProgramMagics)
