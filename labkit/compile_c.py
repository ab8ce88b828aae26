"""C -> a shared library for ctypes, with the system's compiler or the one that pip can install.

Notebooks compare these CPU versions with the GPU's, so they are built to be fast on this machine's own CPU.
"""

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labkit.cache import cached_bytes
from labkit.errors import CompileError, SimtError

FILE_NAME = "kernel.c"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
NATIVE = "-mcpu=native" if platform.machine().lower() in ("arm64", "aarch64") else "-march=native"
SHARED = ("-shared",) if sys.platform == "win32" else ("-shared", "-fPIC")  # clang refuses -fPIC for a DLL
FLAGS = ("-O3", NATIVE, *SHARED, "-Werror=implicit-function-declaration")


def compile_c(source: str, options: Sequence[str] = ()) -> Path:
    """Compile C source to a shared library and return its path, to be opened with `ctypes.CDLL`.

    `options` come after the default FLAGS and the source, so that "-O2" overrides and "-lm" links. The result
    is cached by source, options, compiler and CPU; the file at the path lives as long as the process.
    Raises CompileError with the compiler's messages, SimtError where there is no compiler.
    """
    if isinstance(options, str):
        raise TypeError(f"options is a list of strings, such as [{options!r}], not one string")
    compiler = find_compiler()
    if compiler is None:
        raise SimtError(
            "no C compiler found: tried $CC, cc, gcc, clang and ziglang. Run: pip install 'labkit[cc]'"
        )
    return _library(source, tuple(options), compiler)


def find_compiler() -> tuple[str, ...] | None:
    "The command of the first C compiler there is: $CC, cc, gcc, clang, the wheel ziglang; or None."
    for command in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return tuple(words)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    return None


@functools.cache
def compiler_version(compiler: tuple[str, ...]) -> str:
    "What the compiler answers to --version."
    return subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout


@functools.cache
def _library(source: str, options: tuple[str, ...], compiler: tuple[str, ...]) -> Path:
    key = [source, *FLAGS, *options, *compiler, compiler_version(compiler), _host_cpu()]
    data = cached_bytes("c", key, lambda: _run(compiler, source, options))
    with tempfile.NamedTemporaryFile(suffix=SUFFIX, dir=_folder().name, delete=False) as file:
        file.write(data)
    return Path(file.name)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    "Where the libraries that this process loads lie; gone when it ends."
    return tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True)


def _host_cpu() -> str:
    "What `-march=native` depends on: a cache in a home folder may serve machines of several kinds."
    from llvmlite import binding

    return binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()


def _run(compiler: tuple[str, ...], source: str, options: tuple[str, ...]) -> bytes:
    "Compile in a folder of its own, so that messages name kernel.c without a path."
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
        Path(folder, FILE_NAME).write_text(source, encoding="utf-8")
        output = f"kernel{SUFFIX}"
        command = [*compiler, *FLAGS, "-o", output, FILE_NAME, *options]
        english = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, cwd=folder, env=english, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise _compile_error(
                done.stderr or f"{shlex.join(command)} failed with exit code {done.returncode}"
            )
        return Path(folder, output).read_bytes()


def _compile_error(log: str) -> CompileError:
    "A CompileError with the messages `kernel.c:3:5: error: ...` of gcc, clang and zig."
    message = rf"^{re.escape(FILE_NAME)}:(\d+):(?:\d+:)? (?:fatal )?(error|warning|note): (.*)$"
    return CompileError(log, [(int(line), kind, text) for line, kind, text in re.findall(message, log, re.M)])
