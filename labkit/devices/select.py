"""Choose what runs the kernels here: a GPU through CuPy where there is one, else the simulator.

`LABKIT_DEVICE` overrides the choice: `simt`, `gpu`, or `gpu:1` for the second of several GPUs. It is read at
each use, so a notebook may set it at its top. `xp` (CuPy or NumPy), `RawModule` and `RawKernel` follow the
choice.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from labkit.devices import faults
from simt.common.limits import MAX_BLOCK, MAX_GRID, MAX_STATIC_SHARED_BYTES, MAX_THREADS
from simt.compiler.nvrtc import load_nvrtc_of_cupy

if TYPE_CHECKING:
    from simt import AnyKernel


@dataclass(frozen=True)
class Device:
    """What runs the kernels, and its limits.

    The defaults are those of compute capability 9.0, which the simulator follows. The simulator has 0
    multiprocessors and no L2 cache (0). `index` is CUDA's number of the GPU, as in `LABKIT_DEVICE=gpu:1`.
    """

    kind: Literal["gpu", "simulator"]
    name: str
    index: int = 0
    compute_capability: str = "9.0"
    warp_size: int = 32
    max_threads_per_block: int = MAX_THREADS
    max_block: tuple[int, int, int] = MAX_BLOCK
    max_grid: tuple[int, int, int] = MAX_GRID
    shared_bytes_per_block: int = MAX_STATIC_SHARED_BYTES
    multiprocessors: int = 0
    l2_bytes: int = 0

    @property
    def xp(self) -> Any:
        """Return the library of its arrays: CuPy of a GPU, NumPy of the simulator."""
        return _library(self.kind)

    def __str__(self) -> str:
        if self.kind == "gpu":
            return f"{self.name} (gpu:{self.index}, compute capability {self.compute_capability})"
        return f"{self.name} (no GPU: results are right, times are not a GPU's)"


@cache
def _library(kind: str) -> Any:
    return import_module("cupy" if kind == "gpu" else "numpy")


SIMULATOR = Device("simulator", "simt")
_CHOICE = re.compile(r"simt|gpu(?::(\d+))?|")


class NoGpu(RuntimeError):
    """There is no GPU that CuPy can use, or none with that index; the message says why."""


def device() -> Device:
    """Return the device that runs the kernels: the GPU of index 0 if CuPy finds one, else the simulator.

    A GPU becomes the current one of the calling thread, where CUDA allocates and launches. So code that works
    on a GPU asks for the device first, as `xp`, `RawModule` and `synchronize` do. Raises ValueError for an
    unknown `LABKIT_DEVICE`, NoGpu where it asks for a GPU that is not there, and SimtError where CUDA accepts
    no more work from this process.
    """
    wanted = os.environ.get("LABKIT_DEVICE", "")
    choice = _CHOICE.fullmatch(wanted)
    if choice is None:
        raise ValueError(
            f"LABKIT_DEVICE is {wanted!r}. Choose gpu, gpu:1 (or another index) or simt, or leave it unset."
        )
    found = "" if wanted == "simt" else _probe_gpus()
    if not isinstance(found, str):
        return _current(found, int(choice[1] or 0))
    if wanted.startswith("gpu"):
        raise NoGpu(
            f"LABKIT_DEVICE is {wanted}, but {found}. "
            "Leave it unset, or set it to simt, to use the simulator."
        )
    return SIMULATOR


def find_gpu() -> Device:
    """Return `device()` if it is a GPU. Raises NoGpu, which says why, if it is the simulator."""
    here = device()
    if here.kind == "gpu":
        return here
    found = _probe_gpus()
    why = found if isinstance(found, str) else "LABKIT_DEVICE is simt: leave it unset to use the GPU"
    raise NoGpu(f"{why}.")


def gpus() -> tuple[Device, ...]:
    """Return all GPUs that CuPy can use, by index, whatever `LABKIT_DEVICE` says; empty if there is none."""
    found = _probe_gpus()
    return () if isinstance(found, str) else found


def _current(found: tuple[Device, ...], index: int) -> Device:
    """Return the GPU with that index and make it this thread's current one."""
    if index >= len(found):
        names = ", ".join(f"gpu:{gpu.index} {gpu.name}" for gpu in found)
        raise NoGpu(
            f"LABKIT_DEVICE is gpu:{index}, but there {'is' if len(found) == 1 else 'are'} {len(found)} "
            f"GPU{'s' * (len(found) > 1)} here: {names}. Choose one of these."
        )
    if len(found) > 1:
        cuda = import_module("cupy").cuda
        if cuda.runtime.getDevice() != index:
            cuda.Device(index).use()
    faults.check()
    return found[index]


@cache
def _probe_gpus() -> tuple[Device, ...] | str:
    """Return the GPUs, or the reason why there is none. Cached, as CuPy and CUDA take seconds to start."""
    load_nvrtc_of_cupy()
    try:
        import cupy
    except ImportError as missing:
        reason = str(missing).strip().splitlines()[0]
        return f"CuPy cannot be imported ({reason}): labkit doctor tells which one fits"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:  # no driver, or one too old
        return f"CUDA does not start ({error})"
    if count == 0:
        return "CUDA finds no GPU"
    return tuple(_gpu(index, runtime.getDeviceProperties(index)) for index in range(count))


def _gpu(index: int, properties: dict[str, Any]) -> Device:
    """Make a Device from the fields of CUDA's cudaDeviceProp."""
    x, y, z = properties["maxThreadsDim"]
    grid_x, grid_y, grid_z = properties["maxGridSize"]
    return Device(
        kind="gpu",
        name=properties["name"].decode(),
        index=index,
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
    """Wait for all launches. On a GPU, raises SimtError where a kernel failed; the simulator never lags."""
    if device().kind == "gpu":
        import_module("labkit.devices.gpu").synchronize()


def sm_clock_mhz() -> int | None:
    """Return the current clock of the GPU's multiprocessors (SMs), from NVIDIA's management library (NVML).

    Returns None in the simulator, without the package nvidia-ml-py, and where NVML does not report it.
    """
    if device().kind != "gpu":
        return None
    bus_id = import_module("cupy").cuda.Device(device().index).pci_bus_id  # NVML counts GPUs in its own order
    try:
        import pynvml

        return pynvml.nvmlDeviceGetClockInfo(_nvml_handle(bus_id), pynvml.NVML_CLOCK_SM)
    except ImportError:
        return None
    except pynvml.NVMLError:
        return None


@cache
def _nvml_handle(bus_id: str) -> Any:
    """Return NVML's handle of the GPU with that PCI bus address."""
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)


def array_module(kernel: "AnyKernel") -> Any:
    """Return the library whose arrays a kernel takes: CuPy on the GPU, NumPy in the simulator."""
    return getattr(kernel, "xp", np)


def __getattr__(name: str) -> Any:
    """Return `xp`, `RawModule` or `RawKernel`, chosen anew at each use."""
    if name not in ("xp", "RawModule", "RawKernel"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    here = device()
    if name == "xp":
        return here.xp
    if here.kind == "gpu":
        gpu = import_module("labkit.devices.gpu")
        return gpu.raw_module if name == "RawModule" else gpu.raw_kernel
    return getattr(import_module("simt"), name)
