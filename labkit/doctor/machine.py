"""The machine: its cores and memory, Windows around it, a container's limits."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from labkit.doctor.row import Absent

FEW_BYTES = 2_000_000_000  # free
NOTEBOOK = "0.8 GB"  # with JupyterLab's server, at most: benchmarks/opened.py
PROC, SYS, DEV, ETC, RUN = (Path("/", name) for name in ("proc", "sys", "dev", "etc", "run"))


def machine() -> str:
    "System, cores and memory. Raises Absent where too little memory is free."
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}" + " in WSL" * in_wsl()
    found = memory()
    if found is None:
        return f"{system}, {cores} cores"
    free, total, limit = found
    detail = f"{system}, {cores} cores, {free / 1e9:.1f} GB of memory free of {total / 1e9:.1f}"
    if limit:
        detail += f" (the limit of this {limit})"
    if free < FEW_BYTES:
        raise Absent(f"{detail}; a notebook takes up to {NOTEBOOK}", _more_memory(free, total, limit))
    return detail


def memory() -> tuple[int, int, str] | None:
    """Bytes that a program can have, all bytes, and whose limit that is: "container", or "" for the machine.

    None where the system does not tell. A container's limit counts with what already lies in it.
    """
    try:
        lines = dict(line.split(":") for line in (PROC / "meminfo").read_text().splitlines())
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
    "The process's group under a controller, as /proc/self/cgroup has it: `4:memory:/user/1000`."
    for line in text(PROC / "self" / "cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controller in controllers.split(","):
            return group.lstrip("/")
    return ""


def _number(path: Path) -> int | None:
    "A number in a file; None where there is none, as in `max`."
    found = text(path).strip()
    return int(found) if found.isdigit() else None


def text(path: Path) -> str:
    "A file's text; empty where it cannot be read."
    try:
        return path.read_text()
    except OSError:
        return ""


def _more_memory(free: int, total: int, limit: str) -> str:
    "The step that gives more memory."
    if total - free > total / 2:
        return "in JupyterLab: Kernel, Shut Down All Kernels"
    if limit:
        return "ask for a container with more memory: --memory 3g of docker and podman, or the hub's setting"
    if in_wsl():
        return "in Windows: memory=4GB under [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown"
    return "close other programs"


def in_wsl() -> bool:
    "Whether this Linux runs in Windows: its kernel says so."
    return "microsoft" in _release()


def _release() -> str:
    "The kernel's own name for itself, in small letters."
    return text(PROC / "sys" / "kernel" / "osrelease").strip().lower()


def in_wsl_1() -> bool:
    "Whether it does so without a kernel of its own, and so without a GPU: 4.4.0-19041-Microsoft."
    return in_wsl() and "wsl2" not in _release() and _release().startswith("4.4.")


def in_container() -> bool:
    "Whether docker or podman says that this is one of its containers."
    return (RUN.parent / ".dockerenv").exists() or (RUN / ".containerenv").exists()
