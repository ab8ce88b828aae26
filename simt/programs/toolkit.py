"""NVIDIA's nvcc and the host's compiler, which it needs: where they are, or how to get them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from simt.common.errors import SimtError
from simt.compiler import wheels

WHEELS = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime")
_COMPILERS = (("g++", "gcc"), ("clang++", "clang"), ("c++", "cc"))
_DECLARED = re.compile(r"\bCUresult CUDAAPI (cu\w+)\(")
_RENAMED = re.compile(r"^\s*#define cu\w+\s+(?:__CUDA_API_PT(DS|SZ)\()?(cu\w+)", re.M)


class NoCompiler(SimtError):
    """nvcc, or the host's compiler behind it, is missing or does not work."""


@dataclass(frozen=True)
class HostCompiler:
    """The host's compilers for C++ and for C, and what they call themselves."""

    cxx: str
    c: str
    version: str


@dataclass(frozen=True)
class Toolkit:
    """NVIDIA's compiler: `root` holds bin, include and lib."""

    nvcc: Path
    root: Path

    @cached_property
    def version(self) -> str:
        """Return nvcc's version, such as `13.0.88`."""
        said = subprocess.run([self.nvcc, "--version"], capture_output=True, text=True).stdout
        found = re.search(r"V(\d+\.\d+\.\d+)", said)
        return found[1] if found else said.strip()

    @property
    def includes(self) -> list[Path]:
        """Return the folders of CUDA's headers."""
        return [self.root / "include"]

    @cached_property
    def runtime(self) -> Path:
        """Return NVIDIA's CUDA runtime, a shared library. Raises NoCompiler."""
        found = self._library("libcudart.so.*")
        if found is None:
            raise NoCompiler(f"{self.root} has no CUDA runtime: pip install nvidia-cuda-runtime")
        return found

    @cached_property
    def nvrtc(self) -> Path | None:
        """Return NVIDIA's compiler for kernels in strings, a shared library; None where it is not here."""
        return self._library("libnvrtc.so.*")

    def _library(self, pattern: str) -> Path | None:
        for folder in ("lib64", "lib"):
            for path in sorted((self.root / folder).glob(pattern), key=lambda p: len(p.name)):
                return path
        return None

    @cached_property
    def driver_functions(self) -> list[str]:
        """Return the names of the driver's functions, by its header: with the versions that programs call."""
        text = (self.root / "include" / "cuda.h").read_text(errors="replace")
        names = set(_DECLARED.findall(text))
        for kind, name in _RENAMED.findall(text):
            names |= {name, f"{name}_pt{kind.lower()}"} if kind else {name}
        return sorted(names)

    @cached_property
    def functions(self) -> list[str]:
        """Return the names of all functions of NVIDIA's CUDA runtime."""
        from elftools.elf.elffile import ELFFile

        with self.runtime.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            symbols = [s for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]  # type: ignore
            return sorted(
                {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and "cuda" in s.name.lower()}
            )


@cache
def toolkit() -> Toolkit:
    """Return NVIDIA's compiler, from its wheel or an installed toolkit. Raises NoCompiler."""
    if not sys.platform.startswith("linux"):
        raise NoCompiler("labkit builds CUDA programs only on Linux. On Windows, use WSL: wsl --install")
    found = wheels.program("nvcc")
    if found is None:
        raise NoCompiler(
            "NVIDIA's compiler nvcc is not installed. It comes with labkit's extra nvcc: "
            "pip install 'labkit[nvcc]', or, in a clone, pip install -e '.[nvcc]'"
        )
    if found.read_bytes()[:2] == b"#!":  # a script that starts the toolkit's
        target = re.search(r"exec\s+(\S+/nvcc)", found.read_text())
        found = Path(target[1]) if target else found
    return Toolkit(found, found.resolve().parent.parent)


@cache
def host_compiler() -> HostCompiler:
    """Return the host's compiler: gcc, else clang. Raises NoCompiler."""
    for cxx, c in _COMPILERS:
        if shutil.which(cxx) and shutil.which(c):
            said = subprocess.run([cxx, "--version"], capture_output=True, text=True).stdout
            return HostCompiler(cxx, c, said.partition("\n")[0])
    raise NoCompiler(
        "nvcc needs a C++ compiler for the program's own code, and this machine has none. "
        "On Debian or Ubuntu: sudo apt install g++; on Fedora: sudo dnf install gcc-c++"
    )
