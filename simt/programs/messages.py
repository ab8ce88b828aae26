"""What labkit says in the place of a compiler's message, where a program needs what labkit does not have."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

# Libraries by their headers' names.
_LIBRARIES = {
    r"cufft\w*": "cuFFT",
    r"cusparse\w*": "cuSPARSE",
    r"cusolver\w*": "cuSOLVER",
    r"cudnn\w*": "cuDNN",
    r"cublas(?:Lt|Xt)": "cuBLAS's extensions cublasLt and cublasXt",
    r"cutensor\w*": "cuTENSOR",
    r"npp\w*": "NPP",
    r"nvjpeg": "nvJPEG",
    r"nccl": "NCCL",
    r"cupti\w*": "CUPTI",
    r"nvml": "NVML",
    r"cutlass/\S+|cute/\S+": "CUTLASS",
}
_MISSING = re.compile(
    r'(\S+?:\d+)(?::\d+)?: fatal error: \'?"?([\w./]+?)\.h(?:pp)?\'?"?(?: file not found|:)'
)
_LAUNCH = re.compile(r"(\S+)\((\d+)\): error: kernel launch from __device__ or __global__ functions")
_REFUSED_LAUNCH = (
    "labkit does not support launching a kernel from a kernel (dynamic parallelism): launch it from the host"
)
_UNKNOWN = re.compile(r'(\S+)\((\d+)\): error: identifier "((?:cublas|curand|nvtx)[A-Z]?\w*)" is undefined')
# What belongs to a message that labkit replaces: the excerpt of the source, and the compiler's last words.
_REST = re.compile(r"\s|compilation terminated|\d+ errors? detected|\d+ errors? generated|$")

_CALL = re.compile(r"\bcall\b[^;{}]*?\b(?:__cudaCDP|cudaLaunchDevice|cudaGetParameterBuffer)")
_LINE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)[^\n]*?(?:inlined_at\s+(\d+)\s+(\d+)[^\n]*)?$", re.M)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)
_START = b"\n.version "  # of PTX in an object, which ends with a zero


def explained(lines: Iterable[str]) -> Iterator[str]:
    """Replace those messages of nvcc that are about something labkit refuses; pass the others on."""
    is_replaced = False
    for line in lines:
        told = _told(line)
        if told:
            yield f"{told}\n"
        if told or (is_replaced and _REST.match(line)):
            is_replaced = True
            continue
        is_replaced = False
        yield line


def run(call: Sequence[str]) -> int:
    """Run nvcc with its messages explained; return its exit code."""
    process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, errors="replace")
    assert process.stderr is not None
    for line in explained(process.stderr):
        print(line, end="", file=sys.stderr, flush=True)
    return process.wait()


def nested_launches(objects: Sequence[str]) -> list[str]:
    """Return a sentence for each kernel that a kernel launches, from the PTX in object files."""
    found = []
    for path in objects:
        for part in Path(path).read_bytes().split(_START)[1:]:
            text = part[: part.find(b"\0")].decode(errors="replace")
            files = dict(_FILE.findall(text))
            for call in _CALL.finditer(text):
                *_, place = [None, *_LINE.finditer(text, 0, call.start())]
                number, line = (place[3] or place[1], place[4] or place[2]) if place else ("", "")
                name = Path(files[number]).name if number in files else Path(path).name
                found.append(f"{name}:{line}: error: {_REFUSED_LAUNCH}")
    return list(dict.fromkeys(found))


def _told(line: str) -> str:
    if missing := _MISSING.match(line):
        for header, library in _LIBRARIES.items():
            if re.fullmatch(rf"(?:\w+/)?(?:{header})", missing[2]):
                return (
                    f"{missing[1]}: error: this program uses {library} (<{missing[2]}.h>), which labkit does "
                    "not support. It supports cuBLAS, cuRAND, NVTX, NVRTC, Thrust and CUB"
                )
    if launch := _LAUNCH.match(line):
        return f"{launch[1]}:{launch[2]}: error: {_REFUSED_LAUNCH}"
    if unknown := _UNKNOWN.match(line):
        place, name = f"{unknown[1]}:{unknown[2]}", unknown[3]
        return f"{place}: error: labkit does not support {name}, or its header is missing"
    return ""
