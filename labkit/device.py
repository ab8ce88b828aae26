"""What runs the kernels here: a GPU through CuPy where there is one, else the simulator.

`LABKIT_DEVICE=simt` or `LABKIT_DEVICE=gpu` overrides the choice. It is read at each use, so that a notebook
may set it at its top. `xp` (CuPy or NumPy) and `RawModule` follow the choice.
"""

import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from labkit.simt.run.limits import MAX_BLOCK, MAX_GRID, MAX_STATIC_SHARED_BYTES, MAX_THREADS


@dataclass(frozen=True)
class Device:
    """What runs the kernels, and its limits.

    The defaults are those of compute capability 9.0, which the simulator follows. It has no multiprocessors
    and no L2 cache: 0.
    """

    kind: Literal["gpu", "simulator"]
    name: str
    compute_capability: str = "9.0"
    warp_size: int = 32
    max_threads_per_block: int = MAX_THREADS
    max_block: tuple[int, int, int] = MAX_BLOCK
    max_grid: tuple[int, int, int] = MAX_GRID
    shared_bytes_per_block: int = MAX_STATIC_SHARED_BYTES
    multiprocessors: int = 0
    l2_bytes: int = 0

    def __str__(self) -> str:
        if self.kind == "gpu":
            return f"{self.name} (GPU, compute capability {self.compute_capability})"
        return f"{self.name} (no GPU: results are right, times are not a GPU's)"


SIMULATOR = Device("simulator", "labkit.simt")


class NoGpu(RuntimeError):
    "There is no GPU that CuPy can use; the message says why."


def device() -> Device:
    """Device that runs the kernels: the first GPU if CuPy finds one, else the simulator.

    Raises ValueError on an unknown `LABKIT_DEVICE`, NoGpu where it asks for a GPU that is not there.
    """
    wanted = os.environ.get("LABKIT_DEVICE", "")
    if wanted not in ("", "gpu", "simt"):
        raise ValueError(f"LABKIT_DEVICE is {wanted!r}. Choose gpu or simt, or leave it unset.")
    if wanted == "simt":
        return SIMULATOR
    gpu = _probe_gpu()
    if isinstance(gpu, Device):
        return gpu
    if wanted == "gpu":
        raise NoGpu(
            f"LABKIT_DEVICE is gpu, but {gpu}. Leave it unset, or set it to simt, to use the simulator."
        )
    return SIMULATOR


def find_gpu() -> Device:
    "The first GPU that CuPy can use, whatever `LABKIT_DEVICE` says. Raises NoGpu, which says why."
    gpu = _probe_gpu()
    if isinstance(gpu, Device):
        return gpu
    raise NoGpu(f"{gpu}.")


@cache
def _probe_gpu() -> Device | str:
    "The first GPU, or the reason why there is none. Asked once: CuPy and CUDA take seconds to start."
    try:
        import cupy
    except ImportError as missing:
        reason = str(missing).strip().splitlines()[0]
        return f"CuPy cannot be imported ({reason}): pip install 'labkit[cuda13]' (or cuda12)"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:  # no driver, or one too old
        return f"CUDA does not start ({error})"
    if count == 0:
        return "CUDA finds no GPU"
    return _gpu(runtime.getDeviceProperties(0))


def _gpu(properties: dict[str, Any]) -> Device:
    "A Device from the fields of CUDA's cudaDeviceProp."
    x, y, z = properties["maxThreadsDim"]
    grid_x, grid_y, grid_z = properties["maxGridSize"]
    return Device(
        kind="gpu",
        name=properties["name"].decode(),
        compute_capability=f"{properties['major']}.{properties['minor']}",
        warp_size=properties["warpSize"],
        max_threads_per_block=properties["maxThreadsPerBlock"],
        max_block=(x, y, z),
        max_grid=(grid_x, grid_y, grid_z),
        shared_bytes_per_block=properties["sharedMemPerBlock"],
        multiprocessors=properties["multiProcessorCount"],
        l2_bytes=properties["l2CacheSize"],
    )


def synchronize() -> None:
    "Wait for all launches. On a GPU, raises SimtError where a kernel failed; the simulator never lags."
    if device().kind == "gpu":
        import_module("labkit.gpu").synchronize()


def array_module(kernel: Any) -> Any:
    "CuPy for a kernel on the GPU, NumPy for one in the simulator: whose arrays it takes."
    return getattr(kernel, "xp", np)


def __getattr__(name: str) -> Any:
    "`xp` and `RawModule`, chosen anew at each use."
    if name not in ("xp", "RawModule"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    on_gpu = device().kind == "gpu"
    if name == "xp":
        return import_module("cupy" if on_gpu else "numpy")
    return import_module("labkit.gpu" if on_gpu else "labkit.simt").RawModule
