"""How much memory is left for arrays: on the GPU, and on the machine it is in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.core.errors import OutOfMemory

PROC, SYS = Path("/proc"), Path("/sys")  # Linux; elsewhere nobody knows


def refuse_beyond_memory(what: str, on_device: int, on_host: int, xp: Any) -> None:
    """Raise OutOfMemory, with the sum, where so many bytes of arrays are not to be had.

    `what` names the arrays; `xp` is NumPy, or CuPy for arrays on the current GPU, which are made on the host
    first.
    """
    if hasattr(xp, "cuda"):
        free, total = _on_gpu(xp)
        if on_device > free:
            properties = xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)
            raise OutOfMemory(_sentence(what, on_device, properties["name"].decode(), free, total))
    if known := free_on_host():
        free, total, limit = known
        if on_host > free:
            where = f"this {limit or 'machine'}"
            raise OutOfMemory(_sentence(f"{what}, as they are made,", on_host, where, free, total))


def _sentence(what: str, needed: int, where: str, free: int, total: int) -> str:
    return (
        f"{what} take {needed / 1e9:.3g} GB together; {where} has {free / 1e9:.3g} GB of memory free of "
        f"{total / 1e9:.3g} GB. Choose smaller sizes."
    )


def _on_gpu(cupy: Any) -> tuple[int, int]:
    """Free bytes of the current GPU, with those that CuPy keeps for the next array, and all bytes."""
    free, total = cupy.cuda.runtime.memGetInfo()
    return free + cupy.get_default_memory_pool().free_bytes(), total


def free_on_host() -> tuple[int, int, str] | None:
    """Bytes that a program can have, all bytes, and whose limit that is: "container", or "" for the machine.

    None where the system does not tell. A container's limit counts with what already lies in it.
    """
    try:
        lines = dict(line.split(":") for line in (PROC / "meminfo").read_text(encoding="utf-8").splitlines())
        free, total = (int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
    except (OSError, ValueError, KeyError):
        return None
    limit = ""
    for most, used in _limits():
        if most < total:
            total, limit = most, "container"
        free = min(free, max(most - used, 0))
    return free, total, limit


def _limits() -> Iterator[tuple[int, int]]:
    """Each limit of memory that holds for this process, with what is in use under it, in bytes.

    Of cgroups version 2 and 1. A container sees its own group as the root of the tree, whatever name it has
    outside. Pages of files that nobody needs now are not in use: the kernel drops them first.
    """
    root = SYS / "fs" / "cgroup"
    kinds = (
        ("", root, "memory.max", "memory.current", "inactive_file"),
        ("memory", root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    )
    for controller, base, limit, usage, idle in kinds:
        inside = base / _group(controller)
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(base) and (most := _number(folder / limit)) is not None:
                stat = text(folder / "memory.stat").split()
                dropped = int(stat[stat.index(idle) + 1]) if idle in stat else 0
                yield most, (_number(folder / usage) or 0) - dropped


def _group(controller: str) -> str:
    """The process's group under a controller, as /proc/self/cgroup has it: `4:memory:/user/1000`."""
    for line in text(PROC / "self" / "cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controller in controllers.split(","):
            return group.lstrip("/")
    return ""


def _number(path: Path) -> int | None:
    """A number in a file; None where there is none, as in `max`."""
    found = text(path).strip()
    return int(found) if found.isdigit() else None


def text(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
