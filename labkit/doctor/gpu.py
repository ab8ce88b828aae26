"""The GPU, its driver, and CuPy with its toolkit: which exist, and whether they fit together."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from labkit import mend
from labkit.doctor import machine
from labkit.doctor.row import Absent, cuda
from labkit.mend import installed

WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"  # not on every PATH
NEEDS = {"cuda13": "driver 580 or newer and a GPU from Turing on", "cuda12": "driver 525 or newer"}


@dataclass(frozen=True)
class Gpu:
    """The first GPU as nvidia-smi describes it; `capability` is its compute capability, (9, 0) for Hopper."""

    name: str
    driver: str
    capability: tuple[int, int]

    @property
    def extra(self) -> str | None:
        """Return the extra that fits: "cuda13", "cuda12", or None if the driver is too old for both.

        CUDA 13 needs driver 580 and a GPU from Turing (7.5) on; CUDA 12 needs driver 525 (CUDA Toolkit
        Release Notes, "CUDA Toolkit and Corresponding Driver Versions" and "Deprecated Architectures").
        """
        branch = int(self.driver.split(".")[0])
        if branch >= 580 and self.capability >= (7, 5):
            return "cuda13"
        return "cuda12" if branch >= 525 else None


def find_gpu() -> Gpu | None:
    """Return the first GPU that NVIDIA's driver lists, or None."""
    return _read(_smi()[0])


def _smi() -> tuple[str, str]:
    """Return nvidia-smi's output and error output; two empty strings where it is missing."""
    query = ["--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    program = shutil.which("nvidia-smi") or shutil.which(WSL_SMI)
    try:
        done = subprocess.run([program or "nvidia-smi", *query], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "", "it did not answer in 20 s"
    except OSError:
        return "", ""
    return ("", (done.stdout + done.stderr).strip()) if done.returncode else (done.stdout, done.stdout)


def _read(answer: str) -> Gpu | None:
    """Return the GPU of the first line; None where there are words instead of figures."""
    try:
        name, driver, capability = answer.splitlines()[0].split(", ")
        major, minor = capability.split(".")
        return Gpu(name, driver, (int(major), int(minor)))
    except (IndexError, ValueError):
        return None


def gpu() -> str:
    """Return name and driver. Raises Absent where there is no GPU, or one that cannot be used."""
    answer, complaint = _smi()
    found = _read(answer)
    if found is None:
        why, fix = _no_gpu(complaint)
        raise Absent(f"{why}: the simulator runs the kernels", fix)
    major, minor = found.capability
    detail = f"{found.name}, compute capability {major}.{minor}, driver {found.driver}"
    if found.extra is None:
        raise Absent(f"{detail}: too old for CUDA 12, which needs 525", _driver())
    return detail


def _no_gpu(complaint: str) -> tuple[str, str]:
    """Say why no GPU is seen, and what to do: there is none, or something hides it."""
    if complaint and "No devices" not in complaint:
        return f"nvidia-smi fails ({complaint.partition(chr(10))[0].rstrip('.')})", _repair(complaint)
    if machine.in_wsl_1():
        name = os.environ.get("WSL_DISTRO_NAME", "Ubuntu")
        return "WSL 1 has no GPU", f"in Windows: wsl --set-version {name} 2"
    if machine.in_wsl():
        return "no NVIDIA GPU found in WSL", f"with an NVIDIA card: {_driver()}"
    has_driver = any(machine.DEV.glob("nvidia[0-9]*"))
    if not has_driver and not _has_card():
        return "no NVIDIA GPU found", ""
    if has_driver:
        fix = "start the container with --env NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        return (
            "a driver is loaded, but nvidia-smi is not there",
            fix if machine.in_container() else _smi_package(),
        )
    if machine.in_container():
        fix = "start the container with --gpus all (docker) or --device nvidia.com/gpu=all (podman)"
        return "the machine has an NVIDIA GPU, this container has not", fix
    return "an NVIDIA GPU is there, but no driver", _driver()


def _has_card() -> bool:
    """Return whether the PCI bus has a display controller (class 03) of NVIDIA (0x10de)."""
    cards = machine.SYS.glob("bus/pci/devices/*")
    return any(
        machine.text(card / "vendor").strip() == "0x10de" and machine.text(card / "class")[:4] == "0x03"
        for card in cards
    )


def _repair(complaint: str) -> str:
    """Say what to do about a driver that nvidia-smi complains about."""
    if machine.in_wsl():
        return f"{_driver()}; then in Windows: wsl --shutdown"
    where = "on the host: " * machine.in_container()
    if "version mismatch" in complaint:  # the driver was updated after the start
        return f"{where}sudo reboot"
    if "couldn't communicate" in complaint:
        return f"{where}sudo modprobe nvidia"
    return _driver() if "compute_cap" in complaint else ""  # too old for CUDA 12 anyway


def _driver() -> str:
    """Return the command that installs NVIDIA's driver, or where to get it."""
    if machine.in_wsl():
        return "install NVIDIA's newest driver in Windows, not in WSL"
    if not machine.in_container():
        if shutil.which("ubuntu-drivers"):
            return "sudo ubuntu-drivers install"
        if fix := mend.system_package(apt="nvidia-driver", dnf="akmod-nvidia"):
            return fix
    return "install a newer driver on the machine: https://www.nvidia.com/drivers"


def _smi_package() -> str:
    """Return the command that installs nvidia-smi for the driver that is loaded."""
    branch = re.search(r"Module\s.*?(\d+)\.\d", machine.text(machine.PROC / "driver" / "nvidia" / "version"))
    is_ubuntu = "ID=ubuntu" in machine.text(machine.ETC / "os-release").splitlines()
    apt = f"nvidia-utils-{branch[1]}" if branch and is_ubuntu else "nvidia-smi"
    return mend.system_package(apt=apt, dnf="xorg-x11-drv-nvidia-cuda")


def cupy() -> str:
    """Return CuPy's version after running a kernel. Raises Absent if CuPy, toolkit and driver do not fit."""
    found = find_gpu()
    if found is None or found.extra is None:
        raise Absent("of no use without a GPU")
    wheels = sorted({d.name for d in distributions() if d.name.startswith("cupy")})
    if not wheels:
        raise Absent("not installed: the simulator runs the kernels", mend.cupy(found.extra))
    if unfit := _unfit(wheels, found, found.extra):
        raise Absent(*unfit)
    from simt.compiler.nvrtc import load_nvrtc_of_cupy

    load_nvrtc_of_cupy()
    try:
        import cupy

        cupy.RawModule(code='extern "C" __global__ void nothing() {}').get_function("nothing")((1,), (1,), ())
        cupy.cuda.Device().synchronize()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        detail = f"{wheels[0]} cannot run a kernel with driver {found.driver}: {reason}"
        raise Absent(detail, mend.other_cupy(wheels, found.extra)) from error
    from labkit.devices.select import gpus  # imported here: it imports NumPy

    shown = ", ".join(f"gpu:{each.index} {each.name}" for each in gpus())  # numbered as in LABKIT_DEVICE
    number = cupy.cuda.runtime.runtimeGetVersion()  # 12090 is 12.9
    return f"{wheels[0]} {cupy.__version__}, CUDA {number // 1000}.{number % 1000 // 10}: {shown}"


def _unfit(wheels: list[str], found: Gpu, extra: str) -> tuple[str, str] | None:
    """Say what is wrong with these wheels of CuPy, judging by names and versions, and how to fix it."""
    if len(wheels) > 1:
        return f"{' and '.join(wheels)} overwrite each other", mend.other_cupy(wheels, extra)
    built = re.fullmatch(r"cupy-cuda(\d+)x", wheels[0])
    if built is None:  # from conda or built here, so its toolkit is from elsewhere
        return None
    major, needs = built[1], NEEDS.get(f"cuda{built[1]}")
    if needs and int(major) > int(extra.removeprefix("cuda")):
        detail = f"{wheels[0]} needs {needs}; here are driver {found.driver} and {found.name}"
        return detail, mend.other_cupy(wheels, extra)
    toolkit = installed("cuda-toolkit")
    if toolkit and toolkit.split(".")[0] != major:
        return f"{wheels[0]} is for CUDA {major}, its toolkit of {cuda(toolkit)}", mend.install(
            f"cuda{major}"
        )
    path = os.environ.get("CUDA_PATH", "")
    other = re.search(r"\d+\.\d+", machine.text(Path(path, "version.json"))) if path else None
    if other and other[0].split(".")[0] != major:
        return f"{wheels[0]} is for CUDA {major}, CUDA_PATH is {path}, of {other[0]}", "unset CUDA_PATH"
    return None
