"""When CUDA stops a kernel on the GPU: what happened, to which kernel, and what to do.

CUDA then takes no more work from the process, and whatever is tried next fails, in CuPy's words. `lost` says
it in ours; `tell_in` lets a notebook and `tell_at_the_end` a script say so wherever it comes up.
"""

import sys
from types import TracebackType
from typing import Any

from labkit.core.errors import InvalidAccess, SimtError

NOT_READY = 600  # cudaErrorNotReady: there is work to do
BY_A_KERNEL = range(700, 800)  # of cudaError: illegal address, misaligned address, assertion, trap, …
BAD_ADDRESS = (700, 716, 717)  # cudaErrorIllegalAddress, -MisalignedAddress, -InvalidAddressSpace

_launched: tuple[str, Any, Any] | None = None  # kernel, grid and block of the last launch


def note(kernel: str, grid: Any, block: Any) -> None:
    """Remember a launch: CUDA does not say which kernel it was that failed."""
    global _launched
    _launched = kernel, grid, block


def lost() -> SimtError | None:
    """The error to raise where CUDA takes no more work from this process, else None. Asks CUDA:
    microseconds.
    """
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
    """What to say in the place of an error from CuPy or CUDA's libraries after a fault; None for
    other errors.
    """
    return lost() if type(error).__module__.startswith("cupy") else None


def tell_in(shell: Any) -> None:
    """Let an IPython shell show our error, which is short, in the place of CuPy's."""

    def show(
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        ours = told(error)
        shown = (type(ours), ours, trace) if ours else (kind, error, trace)
        shell.showtraceback(shown, tb_offset=tb_offset)

    shell.set_custom_exc((RuntimeError,), show)  # CuPy's all derive from it


def tell_at_the_end() -> None:
    """Let a script that ends with an error of CuPy's say ours after it."""
    usual = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        usual(kind, error, trace)
        if ours := told(error):
            print(ours, file=sys.stderr)

    sys.excepthook = hook
