"""How much memory is left for arrays: on the GPU, and on the machine it is in."""

from pathlib import Path
from typing import Any

from labkit.errors import OutOfMemory

_MEMINFO = Path("/proc/meminfo")  # Linux; elsewhere nobody knows


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
    known = _on_host()
    if known and on_host > known[0]:
        raise OutOfMemory(_sentence(f"{what}, as they are made,", on_host, "this machine", *known))


def _sentence(what: str, needed: int, where: str, free: int, total: int) -> str:
    return (
        f"{what} take {needed / 1e9:.3g} GB together; {where} has {free / 1e9:.3g} GB of memory free of "
        f"{total / 1e9:.3g} GB. Choose smaller sizes."
    )


def _on_gpu(cupy: Any) -> tuple[int, int]:
    "Free bytes of the current GPU, with those that CuPy keeps for the next array, and all bytes."
    free, total = cupy.cuda.runtime.memGetInfo()
    return free + cupy.get_default_memory_pool().free_bytes(), total


def _on_host() -> tuple[int, int] | None:
    "Bytes that a program can have without swapping, and all bytes; None where the system does not tell."
    try:
        lines = dict(line.split(":") for line in _MEMINFO.read_text(encoding="utf-8").splitlines())
        free, total = (int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
    except (OSError, ValueError, KeyError):
        return None
    return free, total
