"""Compile CUDA C++ with NVIDIA's own compiler (NVRTC), which needs no GPU.

`compile_ptx` returns PTX with line information, for the simulator. `resources` returns what the assembler
reports about registers, shared memory and spills for one architecture. Both are cached on disk. Where there
is no NVRTC, as on macOS, the course's own kernels come from simt.compiler.precompiled.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial, wraps
from importlib import metadata, util
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from simt.common.cache import cached_bytes, digest
from simt.common.errors import CompileError
from simt.compiler import precompiled

FILE_NAME = "kernel.cu"
VIRTUAL_ARCH = "compute_90"
# Once NVRTC (13.5) was given one of these, it has it in all that the process compiles after that: other
# registers and counts, and remarks in the messages.
_STAYING = ("--restrict", "-restrict", "--optimization-info", "-opt-info")
_ALONE = "LABKIT_COMPILES_ALONE"  # set in a process that compiles one source and ends
# Instructions that Hopper alone has, by the compiler's name for its own features: sm_90a rather than sm_90.
_HOPPER_ALONE = re.compile(r"wgmma|setmaxnreg")
_INCLUDE_OPTIONS = ("-I", "--include-path")
# NVRTC provides printf, assert and the CUDA built-ins itself, and no host headers. Those in our folder bring
# what CUDA's own library has for kernels into namespace std. That library unrolls lists of 16 types, which is
# most of its time to compile; with lists of 2, which it continues by recursion, it takes a quarter.
HOST_HEADERS = Path(__file__).parent / "include"
HOST_OPTIONS = (
    f"--include-path={HOST_HEADERS}",
    "--pre-include=labkit_host.h",
    "--define-macro=_CCCL_META_UNROLL_LIMIT=2",
)
# What the compiler's messages mean here.
HINTS = {
    "device-side kernel launch": (
        "labkit has no dynamic parallelism (kernels that launch kernels): launch from Python"
    ),
    'namespace "std" has no member': (
        "What std:: has comes with its header: <algorithm> for max, min and swap, <cmath> for sqrt and abs"
    ),
    "libcu++ requires at least C++ 17": "CUDA's own library takes C++17: leave --std out, or say --std=c++17",
}
# The wheels with cuda_fp16.h and mma.h, what these include, and nv/target with the cuda:: library.
HEADER_WHEELS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl")
COMPILER_WHEEL = "nvidia-cuda-nvrtc"
HEADERS = "cu13/include"  # in these wheels, below nvidia/; NVRTC 12 can read them too
NVRTC_12 = "bin/nvrtc64_120_0.dll" if os.name == "nt" else "lib/libnvrtc.so.12"
# What a kernel asks for that only the host's programs have, and what there is in its place.
HOST_ALONE = {
    "iostream": "print with printf from <cstdio>",
    "vector": "a kernel has arrays, in C or as std::array from <array>",
    "string": "a kernel has no strings of changing length; <string_view> reads one",
    "chrono": "clock64() counts cycles",
    "random": "write a generator of a few lines, or fill an array with NumPy",
    "curand_kernel.h": "write a generator of a few lines, or fill an array with NumPy",
}
_INCLUDE = re.compile(r'#\s*include\s*(?:[<"]([^>"\n]*)|\w)')
_FOLDER = re.compile(r'^(\s*\.file\s+\d+\s+")[^"\n]*[/\\]', re.MULTILINE)  # .file 1 "/home/ada/kernel.cu"


Made = ParamSpec("Made")
ResultT = TypeVar("ResultT")


class MissingTool(CompileError):
    """One of NVIDIA's tools is not installed, or has no build for this system."""


class NoNvrtc(MissingTool):
    """There is no NVRTC here."""


@dataclass(frozen=True)
class Ptx:
    """A compiled module: PTX text, the lowered name of each name expression, the compiler's warnings."""

    text: str
    lowered_names: dict[str, str]
    log: str


@dataclass(frozen=True)
class Resources:
    """What one kernel uses of a multiprocessor, as the assembler prints it (bytes per block or thread)."""

    registers: int
    shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


def options_stay(options: Sequence[str]) -> bool:
    """Say whether NVRTC keeps one of the options for all that the process compiles later."""
    return any(option.startswith(_STAYING) for option in options)


def alone_if_options_stay(make: Callable[Made, ResultT]) -> Callable[Made, ResultT]:
    """Let a function of (source, options, …) run in a process of its own where its options would stay."""

    @wraps(make)
    def made_apart(*what: Made.args, **named: Made.kwargs) -> ResultT:
        options = what[1]
        if not (isinstance(options, Sequence) and options_stay(options)) or _ALONE in os.environ:
            return make(*what, **named)
        call = "from simt.compiler import nvrtc; nvrtc.answer_alone()"
        run = subprocess.run(
            [sys.executable, "-c", call],
            input=pickle.dumps((make.__name__, what)),
            stdout=subprocess.PIPE,
            env={**os.environ, _ALONE: "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if run.returncode:
            raise CompileError(f"NVRTC stopped, and its process ended with {run.returncode}")
        result = pickle.loads(run.stdout)
        if isinstance(result, Exception):
            raise result
        return result

    return made_apart


def answer_alone() -> None:
    """Read a call of one of this module's functions, and write what it returns or raises."""
    name, what = pickle.load(sys.stdin.buffer)
    try:
        result = globals()[name](*what)
    except CompileError as error:
        result = error
    sys.stdout.buffer.write(pickle.dumps(result))


def compile_ptx(source: str, options: Sequence[str] = (), name_expressions: Sequence[str] = ()) -> Ptx:
    """Compile `source` to PTX (cached). Raises CompileError with the compiler's messages, or TypeError."""
    if not isinstance(source, str):
        raise TypeError(f"code is a {type(source).__name__}; it must be CUDA C++ source, a string")
    for name, given in (("options", options), ("name_expressions", name_expressions)):
        if isinstance(given, str):
            raise TypeError(f"{name} is a list of strings, such as [{given!r}], not one string")

    what = source, options, name_expressions, _with_features(VIRTUAL_ARCH, source, options)
    return Ptx(**json.loads(made("ptx", what, partial(_ptx, *what))))


@alone_if_options_stay
def _ptx(source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str) -> bytes:
    flags = [f"--gpu-architecture={arch}", "-lineinfo", *with_defaults(options)]
    if name_expressions:
        # NVRTC crashes, and takes this process with it, when a name is asked for of a template whose
        # parameters have an unknown type. Without names it reports that error like any other.
        with _Program(source, ()) as unnamed:
            unnamed.compile(flags)
    with _Program(source, name_expressions) as program:
        log = program.compile(flags)
        return json.dumps(asdict(Ptx(program.ptx(), program.lowered_names(), log))).encode()


def resources(
    source: str, options: Sequence[str] = (), name_expressions: Sequence[str] = (), arch: str = "sm_90"
) -> dict[str, Resources]:
    """Return the resources of every kernel in `source` for an architecture, by lowered name (cached)."""
    what = source, options, name_expressions, _with_features(arch, source, options)
    stored = json.loads(made("resources", what, partial(_resources, *what)))
    return {name: Resources(**kernel) for name, kernel in stored.items()}


@alone_if_options_stay
def _resources(source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str) -> bytes:
    # Where there is a driver, NVRTC caches kernels, and a cached kernel comes without the assembler's
    # messages.
    flags = [f"--gpu-architecture={arch}", "--ptxas-options=-v", "--no-cache", *with_defaults(options)]
    with _Program(source, name_expressions) as program:
        found = parse_resources(program.compile(flags))
        return json.dumps({name: asdict(kernel) for name, kernel in found.items()}).encode()


@alone_if_options_stay
def assemble(
    source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str
) -> tuple[bytes, str]:
    """Compile `source` to a CUBIN for an architecture such as `sm_90`; return it with ptxas's messages.

    It holds line numbers of the source and of its PTX. Raises CompileError with the compiler's messages.
    """
    arch = _with_features(arch, source, options)
    flags = [f"--gpu-architecture={arch}", "-lineinfo", "--ptxas-options=-v", "--no-cache"]
    with _Program(source, name_expressions) as program:
        log = program.compile([*flags, *with_defaults(options)])
        return program.cubin(), log


def cubin(source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str) -> bytes:
    """Return the CUBIN of `source` for an architecture such as `sm_90` (cached). Raises CompileError."""
    what = source, options, name_expressions, arch
    return made("cubin", what, lambda: assemble(*what)[0])


def parameter_types(
    source: str, options: Sequence[str], name_expressions: Sequence[str], kernel: str
) -> list[str]:
    """Return the C++ types of a kernel's parameters, such as `const float *` (cached); [] if NVRTC cannot.

    A template is appended to the source. Its text in the PTX is its own name and argument: the type.
    """
    make = partial(_types, source, options, kernel)
    return json.loads(made("types", (source, options, [*name_expressions, kernel], "types"), make))


@alone_if_options_stay
def _types(source: str, options: Sequence[str], kernel: str) -> bytes:
    probe = (
        "template <class F> __global__ void labkit_types(const char** out) { *out = __PRETTY_FUNCTION__; }"
    )
    flags = [f"--gpu-architecture={_with_features(VIRTUAL_ARCH, source, options)}", *with_defaults(options)]
    try:
        with _Program(f"{source}\n{probe}\n", [f"labkit_types<decltype(&{kernel})>"]) as program:
            program.compile(flags)
            return json.dumps(_types_in(program.ptx())).encode()
    except NoNvrtc:
        raise
    except CompileError:  # such as an overloaded kernel
        return b"[]"


def _with_features(arch: str, source: str, options: Sequence[str]) -> str:
    """Return the architecture with Hopper's own features, `sm_90a` for `sm_90`, if the source may use one.

    It may if it names one, or if it includes headers from a folder that an option gives, such as CUTLASS's.
    """
    is_hopper = arch in ("sm_90", VIRTUAL_ARCH)
    has_headers = any(option.startswith(_INCLUDE_OPTIONS) for option in options)
    return f"{arch}a" if is_hopper and (has_headers or _HOPPER_ALONE.search(source)) else arch


def made(
    kind: str,
    what: tuple[str, Sequence[str], Sequence[str], str],
    make: Callable[[], bytes],
    *also: str,
) -> bytes:
    """Return `make()`, cached by kind, by (source, options, name expressions, architecture) and by versions.

    `also` are versions of tools beside the compiler. Where the compiler or such a tool is missing, return
    labkit's precompiled copy; without one, raise the MissingTool that `make` raised.
    """
    key = [*_key(*what), *also]

    def make_or_find() -> bytes:
        try:
            return make()
        except MissingTool:
            if (found := precompiled.find(kind, key)) is None:
                raise
            return found

    return cached_bytes(kind, key, make_or_find)


def _types_in(ptx: str) -> list[str]:
    """Find the parameters in the text of `labkit_types`: `... [with F = void (*)(const float *, int)]`."""
    for data in re.findall(r"\.b8 \S+\[\d+\] = \{([\d, ]+)\}", ptx):
        text = bytes(int(number) for number in data.split(",")).decode(errors="replace")
        if found := re.search(r"labkit_types.*\[with F\s*=\s*void \(\*\)\((.*)\)\]", text):
            inside = re.sub(r"[(<\[{][^()<>\[\]{}]*[)>\]}]", lambda m: m[0].replace(",", ";"), found[1])
            return [part.strip() for part in inside.split(",")]
    return []


def parse_resources(log: str) -> dict[str, Resources]:
    """Parse the output of `ptxas -v`: one `Compiling entry function` line per kernel, then its figures."""
    found = {}
    for part in re.split(r"(?=Compiling entry function)", log)[1:]:
        name = re.match(r"Compiling entry function '(\S+)'", part)
        if name is None:
            continue
        found[name[1]] = Resources(
            registers=_figure(r"Used (\d+) registers", part),
            shared_bytes=_figure(r"(\d+) bytes smem", part),
            local_bytes=_figure(r"(\d+) bytes stack frame", part),
            spill_store_bytes=_figure(r"(\d+) bytes spill stores", part),
            spill_load_bytes=_figure(r"(\d+) bytes spill loads", part),
        )
    return found


def nvrtc_version() -> str:
    """Return the version of the NVRTC library in use, such as `13.5`."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


def supported_architectures() -> list[int]:
    """Return the compute capabilities that NVRTC compiles for, times 10: 75 for 7.5."""
    try:
        return sorted(_nvrtc().nvrtcGetSupportedArchs()[1])
    except NoNvrtc:
        return precompiled.manifest()["architectures"]


class _Program:
    """One NVRTC program, destroyed on exit."""

    def __init__(self, source: str, name_expressions: Sequence[str]) -> None:
        self.nvrtc = _nvrtc()
        self.names = list(name_expressions)
        self.handle = self._ask(self.nvrtc.nvrtcCreateProgram(source.encode(), FILE_NAME.encode(), 0, [], []))
        for name in self.names:
            self._ask(self.nvrtc.nvrtcAddNameExpression(self.handle, name.encode()))

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.nvrtc.nvrtcDestroyProgram(self.handle)

    def compile(self, flags: Sequence[str]) -> str:
        encoded = [flag.encode() for flag in flags]
        (status,) = self.nvrtc.nvrtcCompileProgram(self.handle, len(encoded), encoded)
        log = _of_the_source(self._text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog"))
        if status != self.nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise compile_error((log or f"NVRTC stopped: {status.name}") + _header_advice(log))
        return log

    def ptx(self) -> str:
        """Return the PTX without the files' folders, so that it is the same wherever it was made."""
        return _FOLDER.sub(r"\1", self._text("nvrtcGetPTXSize", "nvrtcGetPTX"))

    def cubin(self) -> bytes:
        buffer = bytearray(self._ask(self.nvrtc.nvrtcGetCUBINSize(self.handle)))
        self._ask(self.nvrtc.nvrtcGetCUBIN(self.handle, buffer))
        return bytes(buffer)

    def lowered_names(self) -> dict[str, str]:
        lowered = (
            self._ask(self.nvrtc.nvrtcGetLoweredName(self.handle, name.encode())) for name in self.names
        )
        return {name: low.decode() for name, low in zip(self.names, lowered, strict=True)}

    def _text(self, size_of: str, read: str) -> str:
        # NVRTC writes into the buffer, so it must not be shared, as a bytes literal of one letter would be.
        buffer = bytearray(self._ask(getattr(self.nvrtc, size_of)(self.handle)))
        self._ask(getattr(self.nvrtc, read)(self.handle, buffer))
        return bytes(buffer).rstrip(b"\0").decode(errors="replace")

    def _ask(self, answer: tuple[Any, ...]) -> Any:
        status, *values = answer
        if status != self.nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"NVRTC stopped: {status.name}")
        return values[0] if values else None


def _of_the_source(log: str) -> str:
    """Return the compiler's messages without warnings about CUDA's own headers."""
    folders = "|".join(map(re.escape, include_paths())) or "(?!)"
    warning, remark = r"\): warning (?:[^\n]+\n)+\n*", r"(?:Remark: The warnings can be suppressed[^\n]*\n+)?"
    return re.sub(rf"^(?:{folders})[^\n]*{warning}{remark}", "", log, flags=re.MULTILINE)


def compile_error(log: str) -> CompileError:
    """Make a CompileError from an NVRTC log; its lines are the `kernel.cu(7): error: ...` messages."""
    pattern = re.compile(
        rf"^{re.escape(FILE_NAME)}\((\d+)\): (?:catastrophic )?(error|warning)[^:]*: (.*)$", re.M
    )
    lines = [(int(line), severity, message) for line, severity, message in pattern.findall(log)]
    hints = [hint for phrase, hint in HINTS.items() if phrase in log]
    return CompileError("\n".join([log.strip(), *hints]), lines)


@lru_cache(maxsize=1)
def load_nvrtc_of_cupy() -> bool:
    """Load NVRTC 12 where CuPy is built for CUDA 12, and return whether; call it before importing CuPy.

    A process has one NVRTC: cuda-pathfinder takes the one that is loaded, else the newest installed. labkit
    installs 13, and what that compiles does not run with drivers before 580 or on GPUs before Turing.
    """
    if not _version("cupy-cuda12x"):
        return False
    of_wheels = [str(place / "cuda_nvrtc" / NVRTC_12) for place in _nvidia()]
    of_the_system = Path(NVRTC_12).name
    for path in (*of_wheels, of_the_system):
        try:
            ctypes.CDLL(path)
            return True
        except OSError:
            continue
    return False


def _nvidia() -> list[Path]:
    """Return the folders of NVIDIA's wheels."""
    found = util.find_spec("nvidia")
    return [Path(place) for place in found.submodule_search_locations or ()] if found else []


def _nvrtc() -> Any:
    load_nvrtc_of_cupy()
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as missing:
        raise NoNvrtc(
            "The kernels of the course come compiled with labkit; this is another, and to compile it takes "
            f"NVIDIA's compiler library NVRTC. {_way_to_nvrtc(missing)}"
        ) from missing
    return nvrtc


def _way_to_nvrtc(missing: Exception) -> str:
    if sys.platform == "darwin":
        return "NVIDIA makes none for macOS: run it on Linux or Windows, or in a browser on Colab or Binder."
    return f"It is not here ({missing}). Install it with: pip install {COMPILER_WHEEL} cuda-bindings"


@lru_cache(maxsize=1)
def include_paths() -> tuple[str, ...]:
    """Return the folders of CUDA's device headers, for those wheels that are installed."""
    roots = [place / HEADERS for place in _nvidia()]
    folders = [folder for root in roots for folder in (root, root / "cccl")]
    return tuple(str(folder) for folder in folders if folder.is_dir())


def _header_advice(log: str) -> str:
    """Say what to do about a header that the compiler did not find."""
    missing = re.search(r'(?:cannot|could not) open source file "([^"]*)"', log)
    if missing is None:
        return ""
    absent = [wheel for wheel in HEADER_WHEELS if not _version(wheel)]
    if absent:
        return f"CUDA's device headers are not here. Install them with: pip install {' '.join(absent)}\n"
    instead = HOST_ALONE.get(
        missing[1], "those that kernels can use are here: <algorithm>, <cmath>, <limits>, …"
    )
    return f"NVRTC compiles device code alone and has no host headers such as <{missing[1]}>: {instead}.\n"


@lru_cache
def _version(package: str) -> str:
    """Return the version of an installed package, or an empty string."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@lru_cache
def _made_by(package: str) -> str:
    """Return the version of a package used in compiling; without NVRTC, that of the precompiled kernels."""
    if package == COMPILER_WHEEL and load_nvrtc_of_cupy():
        return nvrtc_version()
    if _version(COMPILER_WHEEL):
        return _version(package)
    try:
        _nvrtc()
    except NoNvrtc:
        return precompiled.manifest()["packages"][package]
    return _version(package)


def with_defaults(options: Sequence[str]) -> list[str]:
    """Add C++17, unless the options choose a standard, and our header folders, after the options' own."""
    chosen = any(re.match(r"--?std\b", option) for option in options)
    paths = [f"--include-path={path}" for path in include_paths()]
    return [*([] if chosen else ["--std=c++17"]), *HOST_OPTIONS, *options, *paths]


def _key(source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str) -> list[str]:
    headers = [f"{wheel} {_made_by(wheel)}" for wheel in HEADER_WHEELS] if "include" in source else []
    own = _own_headers()
    if any(name in own or not name for name in _INCLUDE.findall(source)):  # not name: a macro is included
        headers += [digest([*own, *own.values()])]
    return [source, *options, "names", *name_expressions, arch, *_compiler_key(), *headers]


def compiler_version() -> str:
    """Return the version of the compiler that makes kernels here, or made those that labkit ships."""
    return _made_by(COMPILER_WHEEL) or nvrtc_version()


@lru_cache(maxsize=1)
def _own_headers() -> dict[str, str]:
    """Return the text of each header in our folder, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(HOST_HEADERS.iterdir())}


@lru_cache(maxsize=1)
def _compiler_key() -> tuple[str, str]:
    """Return a key for the compiler and the text included before every kernel.

    An installed package is identified without loading it, as that takes longer than reading a cached kernel.
    """
    return compiler_version(), (HOST_HEADERS / "labkit_host.h").read_text(encoding="utf-8")


def _figure(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0
