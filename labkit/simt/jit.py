"""From LLVM code to machine code of this host, cached on disk."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding as llvm
from llvmlite import ir

from labkit.cache import cached_bytes

OPTIMIZATION_LEVEL = 2
_library_numbers = itertools.count()


@lru_cache(maxsize=1)
def _host() -> tuple[Any, Any]:
    """The host's target machine and the linker of compiled code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMIZATION_LEVEL,
        jit=True,
    )
    return machine, llvm.create_lljit_compiler(machine)


def object_code(key: list[str], make: Callable[[], ir.Module]) -> bytes:
    """Machine code of the module that `make` gives, or of the one with this key from the cache."""
    host = [
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        llvmlite.__version__,
        _generator(),
    ]

    def compile_() -> bytes:
        machine, _ = _host()
        module = llvm.parse_assembly(str(make()))
        options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION_LEVEL)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        return bytes(machine.emit_object(module))

    return cached_bytes("native", [*key, *host], compile_)


@lru_cache(maxsize=1)
def _generator() -> str:
    """Digest of the simulator's own sources: another version of them makes other code."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


class Library:
    """Linked machine code; keep it as long as its functions are used."""

    def __init__(self, code: bytes) -> None:
        _, linker = _host()
        name = f"kernel{next(_library_numbers)}"
        builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run").add_current_process()
        self.tracker = builder.link(linker, name)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            self.tracker["run"]
        )
