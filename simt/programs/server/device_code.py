"""A program's device code: PTX out of nvcc's fat binaries, the source files behind it, its modules."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from simt.common.cache import cache_dir
from simt.common.errors import SimtError
from simt.compiler.debug_info import has_debug_info
from simt.compiler.origin import PtxText
from simt.module import Kernel, RawModule
from simt.programs.server.linking import linked
from simt.programs.server.memory import Memory

_MAGIC, _PTX = 0xBA55ED50, 1
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of the header, bytes after it
_ENTRY = struct.Struct("<HHIQ")  # kind, version, bytes of the entry's header, bytes after it
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]*)"', re.M)
_CUDAS = re.compile(
    r"/(?:cuda[^/]*|nvidia/cu\d+|cccl|simt/programs)/(?:\S*/)?include/|/usr/(?:include|lib)/|targets/"
)
LINES_OF_A_FILE = 1_000_000  # before each further file's lines


def ptx_in(fatbins: bytes) -> str:
    """Return the PTX in fat binaries, linked. Raises SimtError where there is none, or only compressed."""
    texts, at = [], 0
    while at + _HEADER.size <= len(fatbins):
        _, _, header, size = _HEADER.unpack_from(fatbins, at)
        texts.append(_ptx_of_one(fatbins[at : at + header + size]))
        at += header + size
    return linked(texts)


def _ptx_of_one(fatbin: bytes) -> str:
    magic, _, header, _ = _HEADER.unpack_from(fatbin)
    if magic != _MAGIC:
        raise SimtError("this is not nvcc's device code")
    at, found = header, []
    while at + _ENTRY.size <= len(fatbin):
        kind, _, own, size = _ENTRY.unpack_from(fatbin, at)
        if kind == _PTX:
            text = fatbin[at + own : at + own + size]
            found.append(text[: text.find(b"\0")] if b"\0" in text else text)
        at += own + size
    texts = [
        text.decode(errors="replace")
        for text in found
        if text.lstrip().startswith((b"//", b"/*", b".version"))
    ]
    if not texts:
        raise SimtError(
            "this program's device code has no readable PTX: build it with `labkit nvcc`, which keeps it"
        )
    return texts[-1]


@dataclass(frozen=True)
class Sources:
    """The files that a module was compiled from; lines of all are counted in one row (see `PtxText`)."""

    first_lines: dict[str, int]

    def place(self, line: int) -> str:
        """Return `main.cu:12` for a line; "" for none."""
        if not line:
            return ""
        number, own = divmod(line, LINES_OF_A_FILE)
        path = next((p for p, first in self.first_lines.items() if first == number * LINES_OF_A_FILE), "?")
        return f"{shown_path(path)}:{own}"

    def text(self, line: int) -> str:
        """Return the text of a line, without its indent; "" where the file is not there."""
        number, own = divmod(line, LINES_OF_A_FILE)
        for path, first in self.first_lines.items():
            if first == number * LINES_OF_A_FILE:
                lines = _lines(path)
                return lines[own - 1].strip() if 0 < own <= len(lines) else ""
        return ""


def sources_of(ptx: str) -> Sources:
    """Find the program's own files among those that its PTX names; headers of CUDA's are left out."""
    own = [path for path in dict.fromkeys(_FILE.findall(ptx)) if not is_cudas(path)]
    own.sort(key=lambda path: not path.endswith(".cu"))
    return Sources({path: number * LINES_OF_A_FILE for number, path in enumerate(own)})


class Modules:
    """The modules of a program, in the order in which it registered them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._modules: dict[int, RawModule] = {}
        self.sources: dict[int, Sources] = {}
        self.kernels: list[tuple[int, Kernel]] = []
        self._fatbins: dict[int, bytes] = {}
        self._managed: dict[int, Mapping[str, int]] = {}
        self._heap_bytes: dict[int, int] = {}

    def load(self, number: int, fatbin: bytes, managed: Mapping[str, int], heap_bytes: int) -> None:
        """Keep a module's device code until it is needed; `managed` has addresses of variables."""
        self._fatbins[number], self._managed[number] = fatbin, managed
        self._heap_bytes[number] = heap_bytes
        if managed:
            self.module(number)  # the program may read their first values now

    def module(self, number: int) -> RawModule:
        """Return a module, with its variables in the memory that the program sees."""
        if number not in self._modules:
            text = ptx_in(self._fatbins[number])
            sources = self.sources[number] = sources_of(text)
            origin = PtxText(text, "", sources.first_lines)
            place = partial(self._place, self._managed[number])
            module = RawModule.from_ptx(origin, place, self._heap_bytes[number])
            module.gpu = os.environ.get("LABKIT_GPU") or module.gpu
            self._modules[number] = module
        return self._modules[number]

    @property
    def are_optimised(self) -> bool:
        """Say whether a module whose code was needed was built without -G."""
        return not all(has_debug_info(module.ptx) for module in self._modules.values())

    def _place(self, managed: Mapping[str, int], name: str, value: np.ndarray) -> np.ndarray:
        """Put a variable where the program has it, if it is a `__managed__` one, else anywhere."""
        return self._memory.place_variable(value, managed.get(name))

    def has_kernel(self, number: int, name: str) -> bool:
        """Say whether a module has a kernel of this name, or cannot be read at all."""
        try:
            return name in self.module(number).parsed.kernels
        except SimtError:
            return True

    def kernel(self, number: int, name: str) -> int:
        """Return the number of a kernel. Raises SimtError."""
        kernel = self.module(number).get_function(name)
        self.kernels.append((number, kernel))
        return len(self.kernels) - 1


def is_cudas(path: str) -> bool:
    """Say whether a file is CUDA's, the compiler's or the system's, and not the program's own."""
    return bool(_CUDAS.search(path)) or path.endswith(".stub.c") or "/tmpxft_" in path


def shown_path(path: str) -> str:
    """Return a path as it is from the working folder; that of a notebook's cell has no folder."""
    if Path(path).is_relative_to(cache_dir()):
        return Path(path).name
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


_texts: dict[str, list[str]] = {}


def _lines(path: str) -> list[str]:
    if path not in _texts:
        try:
            _texts[path] = Path(path).read_text(errors="replace").splitlines()
        except OSError:
            _texts[path] = []
    return _texts[path]
