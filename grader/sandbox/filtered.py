"""In a container: refuse the system calls of filter.py, and be or run another program.

    python -m grader.sandbox.filtered PROGRAM...
    python -m grader.sandbox.filtered --wait PROGRAM...
    python -m grader.sandbox.filtered --alone PROGRAM...

The first becomes the program. The others wait for it, as the first process of a container ignores signals;
with `--alone` it may start threads, and no other process. In a container nothing gains rights
(no-new-privileges), so that anybody may set a filter.
"""

import ctypes
import os
import signal
import subprocess
import sys
from functools import partial

from grader.sandbox.seccomp import seccomp_filter

_SET_DUMPABLE, _SET_SECCOMP, _MODE_FILTER = 4, 22, 2  # of prctl
_STEP_BYTES = 8  # of the kernel's struct sock_filter


class _Filter(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def refuse(forks: bool = True) -> None:
    """Refuse the calls from now on, in this process and those that it starts."""
    steps = seccomp_filter(forks)
    made = _Filter(len(steps) // _STEP_BYTES, steps)
    _prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(made))


def wait(program: list[str], forks: bool) -> int:
    """Run a program, and return its exit code."""
    _prctl(_SET_DUMPABLE, 0)  # the program, of the same user, cannot reach into this process's memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where Python has put a handler
    started = subprocess.Popen(program, preexec_fn=partial(refuse, forks))
    refuse()  # after the program's own: a filter refuses further ones
    code = started.wait()
    return code if code >= 0 else 128 - code


def _prctl(*arguments: object) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(*arguments):
        sys.exit(f"The kernel refuses prctl {arguments[0]}: {os.strerror(ctypes.get_errno())}.")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] in ("--wait", "--alone"):
        sys.exit(wait(words[1:], words[0] == "--wait"))
    refuse()
    os.execvp(words[0], words)
