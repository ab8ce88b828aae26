"""What the processes of a sandbox use, as seen from outside."""

import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

# What a process has for itself. Pages of files are shared, and page tables are no pages of its own.
_OWN = ("RssAnon:", "RssShmem:", "VmPTE:", "VmSwap:", "HugetlbPages:")
_OPEN_BYTES = 2**12  # of the kernel's for an open file: half a pipe's, of a user who has many
# And for a range of addresses, of which a process may have 65 530. To count takes time: one of many tells.
_RANGE_BYTES, _FEW = 240, 16
# What the Linux kernel keeps for a socket at most, where none asks for more (seccomp.py), and for a name.
_SOCKET_BYTES, _DATAGRAMS, _FILE_BYTES = 212_992, 11, 1100
_DATAGRAM = "0002"  # the kind of a socket that holds messages of several others


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


def memory_bytes(pids: Sequence[int]) -> int:
    """Return the bytes of memory of the processes, without those that have ended."""
    total = 0
    for pid in pids:
        lines = _read(f"/proc/{pid}/status", _lines)
        total += 2**10 * sum(int(line.split()[1]) for line in lines if line.startswith(_OWN))
        total += _OPEN_BYTES * sum(int(line.split()[1]) for line in lines if line.startswith("FDSize:"))
    if len(pids) > _FEW:
        total += _RANGE_BYTES * len(pids) * len(_read(f"/proc/{random.choice(pids)}/maps", _lines))
    return total


def has_ended(pid: int) -> bool:
    """Say whether a process has ended, also where nobody has asked for its exit code."""
    lines = _read(f"/proc/{pid}/status", _lines)
    return not any(line.startswith("State:") and line.split()[1] not in "ZX" for line in lines)


def kernel_bytes(pid: int, folder: Path | None) -> int:
    """Return the bytes that the kernel may keep for the network namespace of a process, unless that is ours,
    and for the names of files in the file system of `folder`.
    """
    total = 0
    with suppress(OSError):
        if Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
            unix, netlink = (_read(f"/proc/{pid}/net/{name}", _lines)[1:-1] for name in ("unix", "netlink"))
            held = len(netlink) + sum(_DATAGRAMS if _DATAGRAM in line.split()[:5] else 1 for line in unix)
            total += held * _SOCKET_BYTES
        if folder:
            status = os.statvfs(folder)
            total += (status.f_files - status.f_ffree) * _FILE_BYTES
    return total


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


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").split("\n")


def _read(path: str, read: Callable[[str], list[str]]) -> list[str]:
    """Read a file below /proc; "" where the process has ended meanwhile."""
    try:
        return read(path)
    except OSError:
        return []
