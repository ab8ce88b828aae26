"""The processor of this machine: its name, how many cores it has, and how large its caches are."""

import os
import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@cache
def cpu_name() -> str:
    """Return the processor's name, as the system reports it."""
    try:
        found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    name = found[1] if found else _sysctl("machdep.cpu.brand_string") or platform.processor()
    return name.strip() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # in a container, fewer than the machine has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def caches() -> dict[str, int]:
    """Return the data caches' bytes, nearest first ({'L1': …, 'L2': …, 'L3': …}), as far as known."""
    if sys.platform == "darwin":
        sizes = {"L1": _sysctl("hw.l1dcachesize"), "L2": _sysctl("hw.l2cachesize")}
        return {level: int(size) for level, size in sizes.items() if size.isdigit()}
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        kind, level, size = (_read(folder / file) for file in ("type", "level", "size"))
        if kind != "Instruction" and re.fullmatch(r"\d+K", size):
            found[f"L{level}"] = int(size[:-1]) * 1024
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _sysctl(key: str) -> str:
    """Return a value of macOS's sysctl; empty on other systems."""
    if sys.platform != "darwin":
        return ""
    return subprocess.run(["sysctl", "-n", key], capture_output=True, text=True).stdout.strip()
