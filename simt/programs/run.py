"""Run a built program, as it is or in one of the simulator's modes, and keep what it prints."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from simt.common.errors import SimtError
from simt.programs.library import NAME

Mode = Literal["", "check", "profile"]
FOUND = 1  # the exit code of a checked program in which something was found


def run(arguments: Sequence[str], mode: str) -> int:
    """Run a program in the simulator; return its exit code, or FOUND. Raises SimtError for another file."""
    path = shutil.which(arguments[0]) or arguments[0]
    if not Path(path).is_file():
        raise SimtError(f"There is no program {arguments[0]}. Build it first: labkit nvcc main.cu -o main")
    if NAME.encode() not in Path(path).read_bytes():
        raise SimtError(f"{arguments[0]} was not built by `labkit nvcc`, so labkit cannot watch it")
    found, told = os.pipe()
    environment = os.environ | {"LABKIT_PROGRAM": mode, "LABKIT_REPORT": str(told)}
    process = subprocess.Popen([path, *arguments[1:]], env=environment, pass_fds=[told])
    os.close(told)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        code = process.wait()
    with os.fdopen(found) as report:
        mistakes = report.read()
    code = code if code >= 0 else 128 - code
    return code or (FOUND if mistakes.strip() else 0)
