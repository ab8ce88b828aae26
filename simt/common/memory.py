"""Find how much memory is left for arrays, on the GPU and on its host."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simt.common.errors import OutOfMemory

PROC, SYS = Path("/proc"), Path("/sys")  # on Linux; other systems do not report these limits


def refuse_beyond_memory(what: str, on_device: int, on_host: int, xp: Any) -> None:
    """Raise OutOfMemory, with the sum, where this many bytes of arrays are not available.

    `what` names the arrays. `xp` is NumPy, or CuPy for arrays on the current GPU, which are first made on the
    host.
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
    """Return the current GPU's free bytes, including those that CuPy keeps for reuse, and all its bytes."""
    free, total = cupy.cuda.runtime.memGetInfo()
    return free + cupy.get_default_memory_pool().free_bytes(), total


def free_on_host() -> tuple[int, int, str] | None:
    """Return the bytes a program can have, all bytes, and the limit's owner: "container", or "" (machine).

    Returns None where the system does not report them. A container's limit includes the memory it already
    uses.
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
    """Yield each memory limit of this process with the bytes in use under it.

    The limits are those of cgroups versions 2 and 1. A container sees its own group as the root of the tree,
    whatever its name is outside. File pages that nobody needs now do not count as in use: the kernel drops
    them first.
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
    """Return the process's group under a controller, from /proc/self/cgroup: `4:memory:/user/1000`."""
    for line in text(PROC / "self" / "cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controller in controllers.split(","):
            return group.lstrip("/")
    return ""


def _number(path: Path) -> int | None:
    """Return the number in a file, or None where there is none, as in `max`."""
    found = text(path).strip()
    return int(found) if found.isdigit() else None


def text(path: Path) -> str:
    """Return a file's text, or an empty string where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
