"""Explain when CUDA stops a kernel on the GPU, or a student stops labkit: what happened, and what to do.

After that, CUDA accepts no more work from the process, and every later call fails with CuPy's message. `lost`
returns our own message; `tell_in` makes a notebook, and `tell_at_the_end` a script, show it wherever such an
error comes up.
"""

import os
import sys
from traceback import walk_tb
from types import TracebackType
from typing import Any

from labkit.paths import PACKAGES
from simt.common.errors import InvalidAccess, SimtError

OURS = tuple(f"{folder}{os.sep}" for folder in PACKAGES)
BY_A_KERNEL = range(700, 800)  # cudaError values: illegal address, misaligned address, assertion, trap, …
BAD_ADDRESS = (700, 716, 717)  # cudaErrorIllegalAddress, -MisalignedAddress, -InvalidAddressSpace

_launched: tuple[str, Any, Any] | None = None  # kernel, grid and block of the last launch


class Interrupted(KeyboardInterrupt):
    """What a notebook shows of Kernel > Interrupt while labkit works: one line."""

    def _render_traceback_(self) -> list[str]:
        return ["Interrupted."]


def note(kernel: str, grid: Any, block: Any) -> None:
    """Remember a launch, as CUDA does not say which kernel failed."""
    global _launched
    _launched = kernel, grid, block


def lost() -> SimtError | None:
    """Return the error to raise where CUDA accepts no more work from us, else None. Takes microseconds."""
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return None
    runtime = cupy.cuda.runtime
    status = runtime.streamQuery(0)
    if status not in BY_A_KERNEL:
        return None
    return _error(status, str(runtime.CUDARuntimeError(status)))


def check() -> None:
    """Raise the error of `lost` where a kernel launched through labkit was stopped."""
    if _launched and (error := lost()):
        raise error


def _error(status: int, text: str) -> SimtError:
    last = ""
    if _launched:
        kernel, grid, block = _launched
        last = f" The last one launched was `{kernel}`, grid {grid}, block {block}."
    return (InvalidAccess if status in BAD_ADDRESS else SimtError)(
        f"the GPU stopped a kernel: {text}.{last}\n"
        "CUDA takes no more work from this Python: restart it (in Jupyter: Kernel > Restart).\n"
        "To find the mistake, run the same in the simulator, which names the line: set LABKIT_DEVICE=simt "
        "(in a notebook: %env LABKIT_DEVICE=simt at its top)."
    )


def told(error: BaseException) -> SimtError | None:
    """Return our error for one that CuPy or CUDA's libraries raise after a fault; None for other errors."""
    return lost() if type(error).__module__.startswith("cupy") else None


def tell_in(shell: Any) -> None:
    """Make an IPython shell show our short error instead of CuPy's, and one line of an interrupt."""

    def show(
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        ours = Interrupted() if isinstance(error, KeyboardInterrupt) and _in_labkit(trace) else told(error)
        shown = (type(ours), ours, trace) if ours else (kind, error, trace)
        shell.showtraceback(shown, tb_offset=tb_offset)

    # All of CuPy's errors derive from RuntimeError.
    shell.set_custom_exc((RuntimeError, KeyboardInterrupt), show)


def _in_labkit(trace: TracebackType | None) -> bool:
    """Return whether labkit was at work when an error came."""
    return any(frame.f_code.co_filename.startswith(OURS) for frame, _ in walk_tb(trace))


def tell_at_the_end() -> None:
    """Make a script that ends with a CuPy error print our error after it."""
    usual = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        usual(kind, error, trace)
        if ours := told(error):
            print(ours, file=sys.stderr)

    sys.excepthook = hook
