"""Run NVIDIA's disassembler, nvdisasm, which needs neither a GPU nor a driver."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from simt.common.errors import CompileError
from simt.compiler import precompiled, wheels
from simt.compiler.nvrtc import MissingTool

WHEEL = "nvidia-cuda-nvdisasm"
SECONDS = 120  # the largest kernels of the course take one


class NoNvdisasm(MissingTool):
    """There is no disassembler here."""


@lru_cache(maxsize=1)
def program() -> Path | None:
    """Return the path of nvdisasm: that of NVIDIA's wheel, else of an installed CUDA toolkit, else None."""
    return wheels.program("nvdisasm")


@lru_cache(maxsize=1)
def version() -> str:
    """Return nvdisasm's version, such as `13.5.37`. Raises NoNvdisasm."""
    try:
        return metadata.version(WHEEL)
    except metadata.PackageNotFoundError:
        said = _run(["--version"])
        number = re.search(r"V(\d+\.\d+\.\d+)", said)
        return number[1] if number else said.strip()


def version_or_shipped() -> str:
    """Return nvdisasm's version; without one, that of the nvdisasm that made the precompiled listings."""
    try:
        return version()
    except NoNvdisasm:
        return str(precompiled.manifest()["packages"].get(WHEEL, ""))


def disassemble(cubin: bytes) -> tuple[str, str]:
    """Return two listings of a CUBIN: with lines and code words, and with counts of live registers.

    nvdisasm prints one or the other, so two of them run side by side. Raises NoNvdisasm, and CompileError
    with nvdisasm's message for a CUBIN that it does not read.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        options = ["-gi", "-gp", "-hex"], ["-plr", "-lrm", "count"]
        with ThreadPoolExecutor() as pool:
            lines, live = pool.map(lambda some: _run(["-c", *some, str(path)]), options)
    return lines, live


def _run(arguments: list[str]) -> str:
    path = program()
    if path is None:
        raise NoNvdisasm(f"Machine code is read by NVIDIA's disassembler, nvdisasm. {_way_to_nvdisasm()}")
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"nvdisasm ({path}) did not run: {error}") from error
    if done.returncode != 0:
        raise CompileError(
            f"nvdisasm could not read this machine code: {done.stderr.strip() or done.stdout.strip()}. A "
            "compiler that is newer than the disassembler makes such code; update that with: "
            f"pip install -U {WHEEL}"
        )
    return done.stdout


def _way_to_nvdisasm() -> str:
    if sys.platform == "darwin":
        return "NVIDIA makes none for macOS: run it on Linux or Windows, or in a browser on Colab or Binder."
    return f"It is not here. Install it with: pip install {WHEEL}"
