"""Commands: `simt nvcc`, `check` and `profile` for whole programs, `sass` for a kernel's machine code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from simt.common.errors import SimtError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="CUDA C++ without a GPU.")

_PASSES_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=_PASSES_ON)
def nvcc(context: typer.Context) -> None:
    """Build a CUDA program that runs with or without a GPU: nvcc main.cu -o main.

    Options are those of NVIDIA's nvcc.
    """
    from simt.programs.build import build

    with reported(SimtError):
        raise typer.Exit(build(context.args))


@app.command(context_settings=_PASSES_ON)
def check(context: typer.Context) -> None:
    """Run a program in the simulator and name its mistakes: check ./main [ARGUMENT]..."""
    _run_program(context, "check")


@app.command(context_settings=_PASSES_ON)
def profile(context: typer.Context) -> None:
    """Run a program in the simulator and count each launch as Nsight Compute does: profile ./main."""
    _run_program(context, "profile")


@app.command()
def sass(
    source: Annotated[Path, typer.Argument(help="File with kernels in CUDA C++.")],
    kernel: Annotated[str, typer.Argument(help="Its name, such as saxpy or 'tile<16>'.")],
    option: Annotated[
        list[str] | None, typer.Option(help="Of the compiler, such as -DTILE=16; again for several.")
    ] = None,
) -> None:
    """Print the machine code of a kernel, each source line before the instructions made of it."""
    from simt import RawModule

    with reported(SimtError, OSError):
        code = source.read_text(encoding="utf-8")
        names = [kernel] if "<" in kernel else []
        module = RawModule(code=code, options=tuple(option or ()), name_expressions=names)
        print(module.get_function(kernel).sass())


def _run_program(context: typer.Context, mode: str) -> None:
    from simt.programs.run import run

    if not context.args or context.args[0] in ("--help", "-h"):
        print(f"{context.command_path} PROGRAM [ARGUMENT]...    PROGRAM is what labkit nvcc has built")
        raise typer.Exit(0 if context.args else 2)
    with reported(SimtError, OSError):
        raise typer.Exit(run(context.args, mode))


@contextmanager
def reported(*expected: type[Exception]) -> Iterator[None]:
    """Show only the message of an expected error, and end the command with exit code 1."""
    try:
        yield
    except expected as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
