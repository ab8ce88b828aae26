"""The machine: its cores and memory, and whether it runs in Windows or a container."""

import os
import platform
from pathlib import Path

from labkit.doctor.row import Absent
from simt.common import memory
from simt.common.memory import text

FEW_BYTES = 2_000_000_000  # free bytes
NOTEBOOK = "0.8 GB"  # at most, with JupyterLab's server: benchmarks/opened.py
PROC, SYS, DEV, ETC, RUN = (Path("/", name) for name in ("proc", "sys", "dev", "etc", "run"))


def machine() -> str:
    """Return system, cores and memory. Raises Absent where too little memory is free."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}" + " in WSL" * in_wsl()
    found = memory.free_on_host()
    if found is None:
        return f"{system}, {cores} cores"
    free, total, limit = found
    detail = f"{system}, {cores} cores, {free / 1e9:.1f} GB of memory free of {total / 1e9:.1f}"
    if limit:
        detail += f" (the limit of this {limit})"
    if free < FEW_BYTES:
        raise Absent(f"{detail}; a notebook takes up to {NOTEBOOK}", _more_memory(free, total, limit))
    return detail


def _more_memory(free: int, total: int, limit: str) -> str:
    """Return the step that gives more memory."""
    if total - free > total / 2:
        return "in JupyterLab: Kernel, Shut Down All Kernels"
    if limit:
        return "ask for a container with more memory: --memory 3g of docker and podman, or the hub's setting"
    if in_wsl():
        return "in Windows: memory=4GB under [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown"
    return "close other programs"


def in_wsl() -> bool:
    """Return whether this Linux runs in Windows, as its kernel's name says."""
    return "microsoft" in _release()


def _release() -> str:
    """Return the kernel's own name, in lower case."""
    return text(PROC / "sys" / "kernel" / "osrelease").strip().lower()


def in_wsl_1() -> bool:
    """Return whether it is WSL 1, without its own kernel and so without a GPU: 4.4.0-19041-Microsoft."""
    return in_wsl() and "wsl2" not in _release() and _release().startswith("4.4.")


def in_container() -> bool:
    """Return whether docker or podman marks this as one of its containers."""
    return (RUN.parent / ".dockerenv").exists() or (RUN / ".containerenv").exists()
