"""`labkit nvcc`: NVIDIA's nvcc, with which a program also runs where there is no GPU."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from simt.programs.library import library
from simt.programs.messages import nested_launches, run
from simt.programs.toolkit import host_compiler, toolkit

COMPATIBLE = Path(__file__).parent / "include"
ARCHITECTURE = "90"
OLDEST = 75  # the oldest architecture that nvcc 13 compiles for
# What asks for architectures: it is read, and replaced by one that becomes PTX.
_WITH_VALUE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")
_NVRTC = "-lnvrtc"  # it needs no GPU, so it is NVIDIA's
_LINKED_BY_US = (
    "-lcudart",
    "-lcudart_static",
    "-lcublas",
    "-lcurand",
    "-lcuda",
    "-lcudadevrt",
    "-lnvToolsExt",
    _NVRTC,
    "-cudart=static",
    "-cudart=shared",
)
_RELOCATABLE = {"-rdc=true", "--relocatable-device-code=true"}
_ENDS_EARLY = {"-c", "-dc", "--compile", "--device-c", "-ptx", "--ptx", "-E", "--preprocess", "-M", "-MM"}
_SOURCES, _LINKED = (".cu", ".cpp", ".cc", ".cxx", ".c"), (".o", ".a")
_STUB = """
struct wrapper { int magic, version; const void *data; const void **linked; };
static const void *linked[COUNT + 1];
static void (*callbacks[COUNT])(void **);
static int count;
static const struct { unsigned magic; unsigned short version, header; unsigned long long bytes; }
    empty = {0xBA55ED50u, 1, 16, 0};
static struct wrapper whole __attribute__((section(".nvFatBinSegment"))) = {0x466243B1, 2, &empty, linked};
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
static void **handle;
static void end(void) { __cudaUnregisterFatBinary(handle); }
static void add(void (*callback)(void **), const struct wrapper *wrapper) {
    linked[count] = wrapper->data;
    callbacks[count++] = callback;
    if (count < COUNT)
        return;
    handle = __cudaRegisterFatBinary(&whole);
    atexit(end);
    for (int i = 0; i < COUNT; i++)
        callbacks[i](handle);
    __cudaRegisterFatBinaryEnd(handle);
}
#define REGISTERED(name) \\
    void __cudaRegisterLinkedBinary##name(void (*callback)(void **), void *wrapper, void *id, void *no) { \\
        (void)id, (void)no; \\
        add(callback, wrapper); \\
    }
"""


def command(arguments: Sequence[str]) -> list[str]:
    """Return the call of nvcc that stands for `nvcc arguments`. Raises NoCompiler.

    The device code stays PTX, so that a GPU's driver or the simulator takes it; it keeps line numbers. The
    program links to labkit's library in the place of libcudart.
    """
    tools, host = toolkit(), host_compiler()
    place = library(tools, host)
    kept, architecture = _without_architectures(arguments)
    kept = [each for each in kept if each not in _LINKED_BY_US]
    for option in ("-cudart", "--cudart"):
        while option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
    call = [str(tools.nvcc), "-gencode", f"arch=compute_{architecture},code=compute_{architecture}"]
    call += ["-cudart", "none", "-lineinfo", "-g", "-no-compress", "-Wno-deprecated-gpu-targets"]
    if not any(each.startswith(("-ccbin", "--compiler-bindir")) for each in kept):
        call += ["-ccbin", host.cxx]
    call += ["-include", str(COMPATIBLE / "labkit_compatible.h"), *kept, "-I", str(COMPATIBLE / "first")]
    call += ["-Xcompiler", f"-idirafter,{COMPATIBLE}"]  # NVIDIA's own headers come first
    if _ENDS_EARLY.isdisjoint(kept):
        call += [f"-L{place}", "-lcudart", "-Xlinker", f"-rpath={place}"]
        if _NVRTC in arguments and tools.nvrtc:
            call += [_NVRTC, "-Xlinker", f"-rpath={tools.nvrtc.parent}"]
    return call


def build(arguments: Sequence[str]) -> int:
    """Run `nvcc arguments` as `command` says; return its exit code. Its messages go to stderr."""
    arguments = _joined(arguments)
    is_device_link = not {"-dlink", "--device-link"}.isdisjoint(arguments)
    if not is_device_link and not _ENDS_EARLY.isdisjoint(arguments):
        return run(command(arguments))
    with tempfile.TemporaryDirectory() as made:
        if not _RELOCATABLE.isdisjoint(arguments):
            failed, arguments = _compiled(arguments, Path(made))
            if failed:
                return failed
        objects = [each for each in arguments if each.endswith(_LINKED)]
        if told := nested_launches(objects):
            print(*told, sep="\n", file=sys.stderr)
            return 1
        stub = _output(arguments, "a_dlink.o") if is_device_link else str(Path(made, "linked.o"))
        if _register(objects, Path(made), stub):
            arguments = [*arguments, stub]
        return 0 if is_device_link else run(command(arguments))


def _joined(given: Sequence[str]) -> list[str]:
    """Write `-rdc true` as one word."""
    arguments: list[str] = []
    for each in given:
        if arguments and arguments[-1] in ("-rdc", "--relocatable-device-code"):
            each = f"{arguments.pop()}={each}"
        arguments.append(each)
    return arguments


def _compiled(arguments: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """Compile a program's sources; return nvcc's exit code, and arguments with objects for sources."""
    sources = [each for each in arguments if each.endswith(_SOURCES)]
    others = [each for each in arguments if not each.endswith((*_SOURCES, *_LINKED))]
    options, rest = [], others.copy()
    while rest:
        option = rest.pop(0)
        if option in ("-o", "--output-file"):
            rest.pop(0)
        elif not option.startswith(("-l", "-o=")):
            options.append(option)
    objects = {}
    for number, source in enumerate(sources):
        objects[source] = str(folder / f"{number}.o")
        if failed := run(command([*options, "-dc", source, "-o", objects[source]])):
            return failed, []
    return 0, [objects.get(each, each) for each in arguments if each not in _RELOCATABLE]


def _register(objects: Sequence[str], folder: Path, into: str) -> bool:
    """Write an object `into` that registers the device code of objects as one module; say if there is any.

    NVIDIA's linker makes it from crt/link.stub. It links machine code alone; PTX is linked when the program
    starts, by the driver or by `server/linking.py`.
    """
    nm = subprocess.run(["nm", "-u", *objects], capture_output=True, text=True) if objects else None
    found = sorted(set(re.findall(r"\b__cudaRegisterLinkedBinary(_\w+)", nm.stdout))) if nm else []
    if not found:
        return False
    lines = ["#include <stdlib.h>", f"#define COUNT {len(found)}", _STUB]
    lines += [f"REGISTERED({name})" for name in found]
    source = folder / "linked.c"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run([host_compiler().c, "-c", "-fPIC", str(source), "-o", into], check=True)
    return True


def _output(arguments: Sequence[str], otherwise: str) -> str:
    at = next((i for i, each in enumerate(arguments) if each in ("-o", "--output-file")), None)
    return otherwise if at is None else arguments[at + 1]


def _without_architectures(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Take the options that choose architectures out; return the rest, and the newest that they name."""
    kept, chosen, rest = [], [], list(arguments)
    while rest:
        option = rest.pop(0)
        name, _, value = option.partition("=")
        if name in _WITH_VALUE:
            chosen += re.findall(r"(?:compute|sm|lto)_(\d+[af]?)", value or (rest.pop(0) if rest else ""))
        else:
            kept.append(option)
    newest = max(chosen, key=lambda each: int(each.rstrip("af")), default=ARCHITECTURE)
    return kept, newest if int(newest.rstrip("af")) >= OLDEST else str(OLDEST)
