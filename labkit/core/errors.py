"""The errors of labkit: what went wrong with a kernel, in one family.

Catch `SimtError` for all of them. The message is a sentence for a student; what a program wants to read is in
the attributes.
"""

from collections.abc import Sequence


class SimtError(Exception):
    """Something is wrong with a kernel or its launch.

    `finding` is the sanitizer's record of it (tool, kind, line, block, thread, message), or None.
    """

    def __init__(self, message: str, finding: object | None = None) -> None:
        super().__init__(message)
        self.finding = finding

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the message alone, as the traceback would lead into labkit, not into
        the kernel.
        """
        return f"{type(self).__name__}: {self}".splitlines()


class CompileError(SimtError):
    """The compiler rejected the source.

    `log` is the compiler's own text; `lines` its messages as (line, severity, message), the line from 1,
    the severity "error", "warning" or "note".
    """

    def __init__(self, log: str, lines: Sequence[tuple[int, str, str]] = ()) -> None:
        super().__init__(log.strip())
        self.log = log
        self.lines = list(lines)


class LaunchError(SimtError):
    """The launch asks for what no GPU allows, or its arguments do not fit the kernel or C function."""


class OutOfMemory(SimtError):
    """The arrays that are asked for do not fit the memory of the GPU, or of this machine."""


class InvalidAccess(SimtError):
    """A thread or C function read or wrote outside an array, or at an address not aligned to the type."""


class Crash(SimtError):
    """A C function ended its process: assert, abort, exit, endless recursion, or what C leaves undefined."""


class BarrierError(SimtError):
    """Threads of one block wait at different barriers, or some never arrive."""


class Timeout(SimtError):
    """The kernel or C function ran longer than its time limit."""
