"""What a module was made of: CUDA C++ that NVRTC compiles, or PTX that another compiler has made."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from simt.common.cache import cached_bytes
from simt.common.errors import CompileError
from simt.compiler import machine_code, nvdisasm, nvrtc
from simt.compiler.machine_code import KernelCode
from simt.compiler.nvrtc import MissingTool, Resources, parse_resources
from simt.compiler.wheels import program

SECONDS = 300  # time limit of ptxas
Assembled = dict[str, dict[str, KernelCode]]  # by architecture and lowered name: what was read once


class Origin(Protocol):
    """Where a module's kernels come from, and what the assembler makes of them."""

    @property
    def code(self) -> str:
        """Return the source that lines are counted in."""

    @property
    def first_lines(self) -> Mapping[str, int]:
        """Return, by path of a file in the PTX, how many lines of `code` come before it; {}: one file."""

    def resources(self, arch: str) -> dict[str, Resources]:
        """Return what each kernel uses on an architecture such as `sm_90`, by lowered name."""

    def machine_code(self, arch: str) -> dict[str, KernelCode]:
        """Return each kernel's machine code, by lowered name."""

    def parameter_types(self, kernel: str) -> list[str]:
        """Return the C++ types of a kernel's parameters; [] where they are not known."""


@dataclass(frozen=True)
class CudaSource:
    """CUDA C++ in one string, compiled by NVRTC."""

    code: str
    options: tuple[str, ...] = ()
    name_expressions: tuple[str, ...] = ()
    first_lines: Mapping[str, int] = field(default_factory=dict)
    _assembled: Assembled = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def _what(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        return self.code, self.options, self.name_expressions

    def resources(self, arch: str) -> dict[str, Resources]:
        """Return what each kernel uses on an architecture such as `sm_90`, by lowered name."""
        return nvrtc.resources(*self._what, arch)

    def machine_code(self, arch: str) -> dict[str, KernelCode]:
        """Return each kernel's machine code, by lowered name."""
        if arch not in self._assembled:
            self._assembled[arch] = machine_code.machine_code(*self._what, arch)
        return self._assembled[arch]

    def parameter_types(self, kernel: str) -> list[str]:
        """Return the C++ types of a kernel's parameters; [] where they are not known."""
        return nvrtc.parameter_types(*self._what, kernel)


@dataclass(frozen=True)
class PtxText:
    """PTX, and the source files that its line numbers count, one after the other in `code`."""

    text: str
    code: str
    first_lines: Mapping[str, int]
    _assembled: Assembled = field(default_factory=dict, init=False, repr=False, compare=False)

    def resources(self, arch: str) -> dict[str, Resources]:
        """Return what each kernel uses on an architecture such as `sm_90`, by lowered name."""

        def make() -> bytes:
            found = parse_resources(self._assemble(arch)[1])
            return json.dumps({name: asdict(kernel) for name, kernel in found.items()}).encode()

        stored = cached_bytes("ptxas", [self.text, arch, _ptxas_version()], make)
        return {name: Resources(**kernel) for name, kernel in json.loads(stored).items()}

    def machine_code(self, arch: str) -> dict[str, KernelCode]:
        """Return each kernel's machine code, by lowered name. Raises MissingTool and CompileError."""
        if arch not in self._assembled:
            key = [self.text, arch, _ptxas_version(), nvdisasm.version()]
            stored = cached_bytes("ptx-sass", key, lambda: machine_code.disassembled(*self._assemble(arch)))
            self._assembled[arch] = machine_code.kernels_of(stored, arch)
        return self._assembled[arch]

    def parameter_types(self, kernel: str) -> list[str]:
        """Return []: PTX has lost the types."""
        return []

    def _assemble(self, arch: str) -> tuple[bytes, str]:
        """Return the CUBIN and ptxas's messages."""
        ptxas = program("ptxas")
        if ptxas is None:
            raise MissingTool(
                "Machine code is made by NVIDIA's assembler, ptxas: pip install nvidia-cuda-nvcc"
            )
        with tempfile.TemporaryDirectory() as folder:
            source, image = Path(folder, "program.ptx"), Path(folder, "program.cubin")
            source.write_text(self.text)
            feature = "a" if arch == "sm_90" and ".target sm_90a" in self.text else ""
            command = [str(ptxas), "-v", "-lineinfo", f"-arch={arch}{feature}", str(source), "-o", str(image)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode:
                raise CompileError(done.stderr or done.stdout or f"ptxas ended with {done.returncode}")
            return image.read_bytes(), done.stderr + done.stdout


def _ptxas_version() -> str:
    path = program("ptxas")
    return str(path.stat().st_mtime_ns) if path else ""
