"""In a container: refuse the system calls of filter.py, and be or run another program.

    python -m labkit.grading.sandbox.filtered PROGRAM...
    python -m labkit.grading.sandbox.filtered --tell PIPE PROGRAM...

The first becomes the program. The second waits for it, and writes into a pipe when it ended, as a double on
perf_counter. In a container nothing gains rights (no-new-privileges), so that anybody may set a filter.
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from labkit.grading.sandbox.seccomp import seccomp_filter

_SET_DUMPABLE, _SET_SECCOMP, _MODE_FILTER = 4, 22, 2  # of prctl
_STEP_BYTES = 8  # of the kernel's struct sock_filter


class _Filter(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def refuse() -> None:
    """Refuse the calls from now on, in this process and those that it starts."""
    steps = seccomp_filter()
    made = _Filter(len(steps) // _STEP_BYTES, steps)
    _prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(made))


def tell(pipe: str, program: list[str]) -> int:
    """Run a program, write when it ended, and return its exit code.

    The program cannot keep it from that: no signal ends the first process of a container from inside.
    """
    _prctl(_SET_DUMPABLE, 0)  # nor can the program, of the same user, reach into its memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where Python has put a handler
    with Path(pipe).open("wb", buffering=0) as told:
        code = subprocess.run(program).returncode
        told.write(struct.pack("d", perf_counter()))
    return code if code >= 0 else 128 - code


def _prctl(*arguments: object) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(*arguments):
        sys.exit(f"The kernel refuses prctl {arguments[0]}: {os.strerror(ctypes.get_errno())}.")


if __name__ == "__main__":
    words = sys.argv[1:]
    refuse()
    if words[0] == "--tell":
        sys.exit(tell(words[1], words[2:]))
    os.execvp(words[0], words)
