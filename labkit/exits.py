"""How a command ends that lacks a package."""

import sys

import typer

from labkit import mend


def not_installed(what: str, extra: str = "lab") -> typer.Exit:
    """Print what is missing and the command that installs it; return the exception to raise."""
    print(f"{what} is not installed. Run: {mend.install(extra)}", file=sys.stderr)
    return typer.Exit(1)
