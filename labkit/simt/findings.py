"""What is wrong with a kernel, in words: the finding behind an error of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labkit.errors import BarrierError, InvalidAccess, SimtError, Timeout
from labkit.simt import abi
from labkit.simt.abi import Launch
from labkit.simt.arguments import Range
from labkit.simt.lanes import WARP
from labkit.simt.ptx import Kernel

Dim3 = tuple[int, int, int]
_VERBS = {"st": "write", "atom": "atomic operation", "red": "atomic operation"}


@dataclass(frozen=True)
class Finding:
    """One mistake: the tool of compute-sanitizer that looks for it, its line (0: unknown), who made it."""

    tool: str
    kind: str
    line: int
    block: Dim3
    thread: Dim3
    message: str
    source: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        text = f"{place}{self.message}\n    by thread {self.thread} of block {self.block}"
        return f"{text}\n    {self.line:>4} | {self.source}" if self.source else text


class Diagnosis:
    """Turns the record of a launch that was stopped into an error."""

    def __init__(
        self,
        kernel: Kernel,
        source: Sequence[str],
        block: Dim3,
        shared_bytes: int,
        barrier_lines: Sequence[int],
    ) -> None:
        self.kernel, self.source, self.block = kernel, source, block
        self.shared_bytes, self.barrier_lines = shared_bytes, barrier_lines

    def error(self, launch: Launch, ranges: Sequence[Range]) -> SimtError:
        """The error recorded in `launch`; `ranges` are the arrays it was given."""
        if launch.error == abi.BAD_ACCESS:
            return self._access(launch, ranges)
        if launch.error == abi.TRAPPED:
            failed = "assert" in self.kernel.code[launch.error_at].parts
            kind, message = (
                ("assert", "assertion failed") if failed else ("trap", "the kernel stopped itself")
            )
            finding = self._finding(launch, launch.error_at, "memcheck", kind, message)
            return SimtError(str(finding), finding)
        if launch.error == abi.PARTED_AT_BARRIER:
            lanes = (launch.error_mask & 0xFFFFFFFF).bit_count()
            message = (
                f"__syncthreads() inside a branch that not all threads take: {lanes} of the warp's {WARP} "
                "threads are elsewhere. "
                "Every thread of a block must reach the same barrier; move it out of the branch"
            )
            finding = self._finding(launch, launch.error_at, "synccheck", "divergent barrier", message)
            return BarrierError(str(finding), finding)
        return self._different_barriers(launch)

    def timeout(self, launch: Launch, seconds: float) -> Timeout:
        line = self.kernel.code[launch.stopped_at].line if launch.stopped_at >= 0 else 0
        message = (
            f"the kernel ran for more than {seconds:g} s and was stopped in the loop here. "
            "Does its condition ever become false?"
        )
        finding = Finding("timeout", "time limit", line, (0, 0, 0), (0, 0, 0), message, self._text(line))
        where = f"line {line}: " if line else ""
        shown = f"\n    {line:>4} | {finding.source}" if finding.source else ""
        return Timeout(f"{where}{message}{shown}", finding)

    def _different_barriers(self, launch: Launch) -> BarrierError:
        here, there = (self.barrier_lines[number - 1] for number in (launch.error_at, launch.error_other))
        message = (
            f"warps of one block wait at different barriers, line {here} and line {there}: "
            "they would never meet"
        )
        finding = Finding(
            "synccheck", "divergent barrier", here, *self._who(launch), message, self._text(here)
        )
        return BarrierError(str(finding), finding)

    def _access(self, launch: Launch, ranges: Sequence[Range]) -> InvalidAccess:
        instruction = self.kernel.code[launch.error_at]
        size, verb = instruction.moved_bytes, _VERBS.get(instruction.parts[0], "read")
        space = next((part for part in instruction.parts if part in ("shared", "local", "const")), "global")
        what = f"invalid {space} {verb} of {size} bytes"
        address = launch.error_address
        if space == "shared":
            offset, name = (
                address - launch.error_shared,
                f"the block's {self.shared_bytes} bytes of shared memory",
            )
            where = _outside(offset, size, self.shared_bytes, name)
        else:
            where = _near(address, size, ranges)
        kind = "misaligned" if "multiple" in where else "out of bounds"
        finding = self._finding(launch, launch.error_at, "memcheck", kind, f"{what}: {where}")
        return InvalidAccess(str(finding), finding)

    def _finding(self, launch: Launch, site: int, tool: str, kind: str, message: str) -> Finding:
        line = self.kernel.code[site].line
        return Finding(tool, kind, line, *self._who(launch), message, self._text(line))

    def _who(self, launch: Launch) -> tuple[Dim3, Dim3]:
        """Block and thread of the first lane in the record."""
        mask = launch.error_mask & 0xFFFFFFFF
        lane = (mask & -mask).bit_length() - 1 if mask else 0
        index = WARP * launch.error_warp + lane
        x, y, _ = self.block
        return (launch.error_x, launch.error_y, launch.error_z), (index % x, index // x % y, index // (x * y))

    def _text(self, line: int) -> str:
        return self.source[line - 1].strip() if 0 < line <= len(self.source) else ""


def _near(address: int, size: int, ranges: Sequence[Range]) -> str:
    """Where an address lies as seen from the nearest array."""
    if address < 4096:
        return f"address {address:#x} is a null pointer" + (f" plus {address} bytes" if address else "")
    arrays = [r for r in ranges if r.name]
    if not arrays:
        return "no array was passed to the kernel"
    nearest = min(arrays, key=lambda r: max(r.start - address, address + size - r.start - r.size, 0))
    return _outside(address - nearest.start, size, nearest.size, nearest.name, nearest.itemsize)


def _outside(offset: int, size: int, length: int, name: str, itemsize: int = 1) -> str:
    if offset >= 0 and offset + size <= length:
        return f"byte {offset} of {name} is not a multiple of {size}, as an access of {size} bytes needs"
    index = f" (index {offset // itemsize})" if itemsize > 1 and offset % itemsize == 0 else ""
    if offset < 0:
        return f"{-offset} bytes before the start of {name}{index}"
    return f"it ends {offset + size - length} bytes behind the end of {name}{index}"
