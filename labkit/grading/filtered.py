"""Refuse the system calls of filter.py, become another program: python -m labkit.grading.filtered PROGRAM...

It runs in a container before the program, in which nothing gains rights (no-new-privileges).
"""

import ctypes
import os
import sys

from labkit.grading.filter import seccomp_filter

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2  # of prctl
_STEP_BYTES = 8  # of the kernel's struct sock_filter


class _Filter(ctypes.Structure):
    "The kernel's struct sock_fprog."

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


if __name__ == "__main__":
    steps = seccomp_filter()
    made = _Filter(len(steps) // _STEP_BYTES, steps)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(made)):
        sys.exit(f"The kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}.")
    os.execvp(sys.argv[1], sys.argv[1:])
