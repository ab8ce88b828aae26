"""C -> a shared library or a program, with the system's compiler or the one that pip can install.

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from labkit import mend
from simt.common.cache import cache_dir, cached_bytes
from simt.common.errors import CompileError, SimtError

COMPILE_SECONDS, FIRST_SECONDS = 60, 600
READY = "ready"  # a file beside ziglang's libraries, once it has made them
COMPILE_BYTES = 2**32  # limit on memory; on each file, a sixteenth: #include "/dev/zero" has no end
# A shell sets the limits for the program that it then becomes.
_LIMITS = f'ulimit -v {COMPILE_BYTES >> 10}; ulimit -f {COMPILE_BYTES >> 4 >> 9}; exec "$@"'
_LIMITED = ("/bin/sh", "-c", _LIMITS, "sh") if sys.platform.startswith("linux") else ()

Files = tuple[tuple[str, str | bytes], ...]  # names and contents

ZIG = "LABKIT_ZIG"  # environment: a folder with libraries that ziglang has made
FILE_NAME = "kernel.c"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
NATIVE = "-mcpu=native" if platform.machine().lower() in ("arm64", "aarch64") else "-march=native"
SHARED = ("-shared",) if sys.platform == "win32" else ("-shared", "-fPIC")  # clang refuses -fPIC for a DLL
# ziglang turns assert() off in optimised code unless told otherwise.
FLAGS = ("-O3", NATIVE, "-UNDEBUG", "-Werror=implicit-function-declaration")
# Warnings that help a student: not an exercise's unused parameter, nor `int i < size_t n` in each loop.
WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-sign-compare")

_OUTLINED = ("instrumentation-with-call-threshold=0", "stack=0", "globals=0")
# Ways to compile, by what they are for: options of clang, which gcc refuses, and of gcc.
WAYS = {
    # The compiler makes no vectors of a loop, whatever a pragma wants. It may join what stands side by side.
    "as written": (("-fno-vectorize", "-mllvm", "-force-vector-width=1"), ("-fdisable-tree-vect",)),
    # Each access calls a function, such as __asan_load4_noabort.
    "accesses called": tuple(
        ("-fsanitize=kernel-address", *(word for each in _OUTLINED for word in (*before, f"{name}{each}")))
        for before, name in ((("-mllvm",), "-asan-"), ((), "--param=asan-"))
    ),
}
# One instruction that multiplies several floats or doubles: x86, ARM.
_VECTORS = re.compile(
    r"^\s*(?:v?mulp[sd]|vfn?m(?:add|sub|addsub|subadd)\d*p[sd]|fm(?:ul|la|ls)\s+v|fm(?:ul|la|ls|ad)\s+z)",
    re.MULTILINE,
)


def compile_c(source: str, options: Sequence[str] = ()) -> Path:
    """Compile C source to a shared library and return its path, to be opened with `ctypes.CDLL`.

    `options` come after the default FLAGS and the source, so that "-O2" overrides and "-lm" links. The result
    is cached by source, options, compiler and CPU; the file at the path lives as long as the process.
    Raises CompileError with the compiler's messages, SimtError where there is no compiler.
    """
    return build({FILE_NAME: source}, [*FLAGS, *SHARED, FILE_NAME, *_checked(options)], SUFFIX)


def compile_log(source: str, options: Sequence[str] = ()) -> str:
    """Return the compiler's warnings on C source, as it prints them; nothing is linked.

    Raises CompileError with its messages if it rejects the source, SimtError where there is no compiler.
    """
    # -O1: without optimisation no compiler sees uninitialised use; with more, false alarms begin
    arguments = (*FLAGS, "-O1", "-c", *WARNINGS, FILE_NAME, *_checked(options))
    files = ((FILE_NAME, source),)
    compiler = _compiler()
    key = _key(files, (*arguments, "log"), compiler)
    seconds = COMPILE_SECONDS
    return cached_bytes(
        "c", key, lambda: _run(files, arguments, ".o", compiler, seconds)[1].encode()
    ).decode()


def build(
    files: Mapping[str, str | bytes], arguments: Sequence[str], suffix: str, *, first: bool = False
) -> Path:
    """Run the compiler with `arguments` in a folder with `files` (name -> content); return its output's path.

    The path ends in `suffix` and may be executed. Caching and errors are as in `compile_c`. `first`: the
    compiler may have to build its own libraries, as ziglang does the first time on a machine.
    """
    seconds = FIRST_SECONDS if first else COMPILE_SECONDS
    return _built(tuple(files.items()), tuple(arguments), suffix, _compiler(), seconds)


def makes_vectors(source: str, options: Sequence[str] = ()) -> bool:
    """Return whether the compiler makes instructions that multiply several numbers at a time."""
    path = build({FILE_NAME: source}, [*FLAGS, "-S", FILE_NAME, *_checked(options)], ".s")
    return bool(_VECTORS.search(path.read_text(errors="replace")))


@functools.cache
def way(name: str) -> tuple[str, ...]:
    """Return the compiler's options for one of WAYS; none if it has no such options."""
    for options in WAYS[name]:
        with suppress(CompileError):
            build({FILE_NAME: "int nothing;"}, [*FLAGS, "-S", FILE_NAME, *options], ".s")
            return options
    return ()


def zig_libraries() -> Path:
    """Return the folder in labkit's cache with the libraries that ziglang makes; it may not exist."""
    return cache_dir() / "zig"


def find_compiler() -> tuple[str, ...] | None:
    """Return the first C compiler's command: $CC, cc, gcc, clang, the wheel ziglang; or None."""
    for command in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(command, posix=os.name == "posix")  # Windows has \ in its paths
        if words and shutil.which(words[0]):
            return tuple(words)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    return None


@functools.cache
def compiler_version(compiler: tuple[str, ...]) -> str:
    """Return what the compiler prints for --version."""
    return subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout


def _compiler() -> tuple[str, ...]:
    compiler = find_compiler()
    if compiler is None:
        raise SimtError(f"no C compiler found: tried $CC, cc, gcc, clang and ziglang. Run: {mend.compiler()}")
    return compiler


def _checked(options: Sequence[str]) -> Sequence[str]:
    if isinstance(options, str):
        raise TypeError(f"options is a list of strings, such as [{options!r}], not one string")
    return options


@functools.cache
def _built(
    files: Files, arguments: tuple[str, ...], suffix: str, compiler: tuple[str, ...], seconds: float
) -> Path:
    key = _key(files, arguments, compiler)
    data = cached_bytes("c", key, lambda: _run(files, arguments, suffix, compiler, seconds)[0])
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=_folder().name, delete=False) as file:
        file.write(data)
    path = Path(file.name)
    path.chmod(0o700)
    return path


def _key(files: Files, arguments: tuple[str, ...], compiler: tuple[str, ...]) -> list[str | bytes]:
    names_and_contents = [part for file in files for part in file]
    return [*names_and_contents, *arguments, *compiler, compiler_version(compiler), _host_cpu()]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of this process's libraries and programs, which is removed when it ends."""
    return tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True)


def _host_cpu() -> str:
    """Return what `-march=native` depends on: a cache in a home folder may serve different machines."""
    from llvmlite import binding

    return binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()


def _run(
    files: Files, arguments: tuple[str, ...], suffix: str, compiler: tuple[str, ...], seconds: float
) -> tuple[bytes, str]:
    """Return the compiler's output and messages, run in its own folder: they name kernel.c without path."""
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
        for name, content in files:
            Path(folder, name).write_bytes(content.encode() if isinstance(content, str) else content)
        output = f"made{suffix}"
        command = [*compiler, "-o", output, *arguments]
        english = {**os.environ, "LC_ALL": "C"} | _folders_of_zig(compiler, folder)
        try:
            done = subprocess.run(
                [*_LIMITED, *command],
                cwd=folder,
                env=english,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_patience(compiler, seconds),
            )
        except subprocess.TimeoutExpired as error:
            message = f"the compiler was stopped after {error.timeout:g} s. What does the source include?"
            raise CompileError(message) from None
        if done.returncode:
            raise _compile_error(
                done.stderr or f"{shlex.join(command)} failed with exit code {done.returncode}"
            )
        if "ziglang" in compiler and suffix not in (".o", ".s"):  # what is not linked needs no libraries
            with suppress(OSError):  # in a sandbox nobody may write there
                (zig_libraries() / READY).touch()
        return Path(folder, output).read_bytes(), done.stderr


def _patience(compiler: tuple[str, ...], seconds: float) -> float:
    """Return the time limit, which is longer until ziglang has made its own libraries on this machine."""
    is_first = "ziglang" in compiler and not (zig_libraries() / READY).exists()
    return FIRST_SECONDS if is_first else seconds


def _folders_of_zig(compiler: tuple[str, ...], folder: str) -> dict[str, str]:
    """Return environment variables that have ziglang keep its libraries, and nothing else, in labkit's cache.

    Making them takes a minute. Where the cache has none, they are taken from the folder `$LABKIT_ZIG`, which
    need not be writable.
    """
    if "ziglang" not in compiler:
        return {}
    libraries, made = zig_libraries(), os.environ.get(ZIG)
    try:
        if made and not libraries.exists():
            shutil.copytree(Path(made, "h"), libraries / "h")  # which zig locks, and so must be writable
            for name in ("b", "o"):
                shutil.copytree(Path(made, name), libraries / name, copy_function=os.symlink)
        libraries.mkdir(parents=True, exist_ok=True)
    except OSError:
        return {}  # zig has a cache of its own
    return {"ZIG_GLOBAL_CACHE_DIR": str(libraries), "ZIG_LOCAL_CACHE_DIR": folder}


def _compile_error(log: str) -> CompileError:
    """Make a CompileError from the messages `kernel.c:3:5: error: ...` of gcc, clang and zig."""
    message = rf"^{re.escape(FILE_NAME)}:(\d+):(?:\d+:)? (?:fatal )?(error|warning|note): (.*)$"
    return CompileError(log, [(int(line), kind, text) for line, kind, text in re.findall(message, log, re.M)])
