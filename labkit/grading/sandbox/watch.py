"""What the processes of a sandbox use, as seen from outside."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

# What a process has for itself. Pages of files are shared, and page tables are no pages of its own.
_OWN = ("RssAnon:", "RssShmem:", "VmPTE:", "VmSwap:")


def below(pid: int, most: int) -> tuple[list[int], int]:
    """Return the processes below `pid` and the sum of their threads; `most` or a few more.

    Not psutil's: that reads all processes of the machine, and in a fork bomb there is no end of them.
    """
    found: list[int] = []
    new, tasks = [pid], 0
    while new and tasks <= most:
        parent = new.pop()
        for task in _read(f"/proc/{parent}/task", os.listdir):
            tasks += 1
            children = _read(
                f"/proc/{parent}/task/{task}/children", lambda path: Path(path).read_text().split()
            )
            new += [int(child) for child in children]
            found += [int(child) for child in children]
    return found, tasks


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the bytes of memory of the processes, without those that have ended."""
    kib = 0
    for pid in pids:
        lines = _read(f"/proc/{pid}/status", lambda path: Path(path).read_text(errors="replace").split("\n"))
        kib += sum(int(line.split()[1]) for line in lines if line.startswith(_OWN))
    return kib << 10


def stored_bytes(folder: Path, most: int) -> int:
    """Return the bytes of the files below a folder, as far as they can be seen; `most` or a few more."""
    total, folders = 0, [str(folder)]
    while folders and total <= most:
        with suppress(OSError), os.scandir(folders.pop()) as listing:
            for entry in listing:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return total


def _read(path: str, read: Callable[[str], list[str]]) -> list[str]:
    """Read a file below /proc; "" where the process has ended meanwhile."""
    try:
        return read(path)
    except OSError:
        return []
