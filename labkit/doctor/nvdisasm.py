"""NVIDIA's disassembler and the reader of ELF files, which machine code is shown with."""

import sys

from labkit import mend
from labkit.doctor.nvrtc import MAJOR, NVRTC
from labkit.doctor.row import Absent, cuda
from labkit.mend import installed

NVDISASM, ELF = "nvidia-cuda-nvdisasm", "pyelftools"
TRIED = 'extern "C" __global__ void tried(float* x) { *x = 1; }'


def nvdisasm() -> str:
    """Return the version in use, after reading a kernel. Raises Absent with what is missing or unfit."""
    if sys.platform == "darwin":
        hosted = "for the machine code of others use Linux, Windows or a hosted notebook such as Colab"
        raise Absent("NVIDIA makes no nvdisasm for macOS: what the notebooks show comes with labkit", hosted)
    if not installed(ELF):
        raise Absent(f"{ELF} not installed: no machine code is shown", mend.pip(f"install '{ELF}<1'"))
    from simt.compiler import machine_code
    from simt.compiler import nvdisasm as disassembler
    from simt.compiler.nvrtc import NoNvrtc, supported_architectures

    path = disassembler.program()
    if path is None:
        raise Absent(f"{NVDISASM} not installed: no machine code is shown", _install(f"{MAJOR}.*"))
    detail = f"{disassembler.version()} at {path}"
    try:
        newest = f"sm_{supported_architectures()[-1]}"
        machine_code.machine_code(TRIED, (), (), newest)
    except NoNvrtc:  # of which the compiler's row tells
        return detail
    except Exception as error:
        same = f"{cuda(installed(NVRTC)) or MAJOR}.*"
        raise Absent(f"{detail}: {str(error).partition(chr(10))[0]}", _install(same)) from error
    return detail


def _install(number: str) -> str:
    """Return the command that installs the disassembler in this version."""
    return mend.pip(f"install --upgrade '{NVDISASM}=={number}'")
