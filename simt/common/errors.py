"""The errors of labkit, all derived from one class: they say what went wrong with a kernel.

Catch `SimtError` for all of them. The message is a sentence for a student; the attributes hold the values for
a program.
"""

from collections.abc import Sequence


class SimtError(Exception):
    """Something is wrong with a kernel or its launch.

    `finding` is the sanitizer's record of the error (tool, kind, line, block, thread, message), or None.
    `answer_line` is the line of a cell in Python that has raised it in another process.
    """

    answer_line: int | None = None

    def __init__(self, message: str, finding: object | None = None) -> None:
        super().__init__(message)
        self.finding = finding

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: only the message, as the traceback would lead into labkit."""
        return f"{type(self).__name__}: {self}".splitlines()


class CompileError(SimtError):
    """The compiler rejected the source.

    `log` is the compiler's own text. `lines` holds its messages as (line, severity, message): the line counts
    from 1, the severity is "error", "warning" or "note".
    """

    def __init__(self, log: str, lines: Sequence[tuple[int, str, str]] = ()) -> None:
        super().__init__(log.strip())
        self.log = log
        self.lines = list(lines)


class LaunchError(SimtError):
    """The launch asks for something no GPU allows, or its arguments do not fit the kernel or C function."""


class OutOfMemory(SimtError):
    """The requested arrays do not fit the memory of the GPU, or of this machine."""


class InvalidAccess(SimtError):
    """A thread or C function read or wrote outside an array, or at an address not aligned to the type."""


class Crash(SimtError):
    """A C function ended its process: assert, abort, exit, endless recursion, or undefined behaviour."""


class BarrierError(SimtError):
    """Threads of one block wait at different barriers, or some never arrive."""


class Timeout(SimtError):
    """The kernel or C function ran longer than its time limit."""
