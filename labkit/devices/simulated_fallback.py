"""Let the simulator run the kernels that need an instruction which the GPU here lacks.

They take CuPy's arrays like all others: the arrays are copied to the host for a launch, and back after it.
"""

import re
import warnings
from importlib import import_module
from types import ModuleType

import simt
from labkit.devices.select import Device
from simt.common.tensor_map import TensorMap
from simt.kernel import Launch
from simt.module import find_kernel

# Reference: PTX ISA, "Target ISA Notes" of each instruction.
_SINCE_HOPPER = re.compile(
    r"(?<![\w.%$])(cp\.(?:reduce\.)?async\.bulk|(?:st|red)\.async|mapa|barrier\.cluster|elect\.sync|stmatrix"
    r"|griddepcontrol|tensormap|multimem|mbarrier\.(?:arrive\.)?(?:expect_tx|complete_tx|try_wait)"
    r"|fence\.(?:mbarrier_init|proxy\.(?:async|tensormap)))\b"
)
_HOPPER_ALONE = re.compile(r"(?<![\w.%$])(wgmma|setmaxnreg)\b")


def lacking(ptx: str, compute_capability: str) -> str:
    """Return an instruction of a source's PTX that GPUs of a compute capability such as "8.6" lack, or ""."""
    major = int(compute_capability.partition(".")[0])
    found = _HOPPER_ALONE.search(ptx) if major != 9 else None
    if major < 9:
        found = found or _SINCE_HOPPER.search(ptx)
    return found[1] if found else ""


def warn(instruction: str, gpu: Device) -> None:
    """Say that the simulator takes over, and why."""
    warnings.warn(
        f"{gpu} lacks {instruction}, which this source needs: its kernels run in the simulator. Results are "
        "right, times are not a GPU's",
        stacklevel=3,
    )


class RawModule(simt.RawModule):
    """A module whose kernels run in the simulator and take CuPy's arrays."""

    def get_function(self, name: str) -> "Kernel":
        """Return the kernel called `name`: an `extern "C"` name or one of the name expressions."""
        return Kernel(self, find_kernel(self.parsed, self._lowered, name), name)


class Kernel(simt.Kernel):
    """A kernel that runs in the simulator and takes CuPy's arrays."""

    @property
    def xp(self) -> ModuleType:  # type: ignore[override]
        """Return the library whose arrays it takes."""
        return import_module("cupy")

    def run_launch(self, launch: Launch) -> None:
        """Run a launch; its arrays on a GPU get what it writes."""
        on_host = self._for_simulator(launch)
        super().run_launch(on_host)
        for there, here in zip(launch.args, on_host.args, strict=True):
            if isinstance(there, TensorMap) and isinstance(here, TensorMap):
                there, here = there.array, here.array
            if isinstance(there, self.xp.ndarray):
                there[...] = self.xp.asarray(here)
