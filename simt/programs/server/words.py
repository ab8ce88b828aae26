"""Findings in the words of a program: with files beside lines, and kernels by their C++ names."""

from __future__ import annotations

import re

from simt.findings import Finding
from simt.module import Kernel
from simt.programs.server.device_code import LINES_OF_A_FILE, Sources
from simt.ptx.variables import demangled

_LENGTH = re.compile(r"\d+")  # before each part of a mangled name
_LINE = re.compile(r"\bline (\d+)")


def shown(kernel: Kernel) -> str:
    """Return a kernel's name as the source has it, without namespaces, parameters and template arguments."""
    name = kernel.name
    is_qualified = name.startswith("_ZN")
    at, last = 3 if is_qualified else 2, ""
    while name.startswith("_Z") and (length := _LENGTH.match(name, at)):
        begin, at = length.end(), length.end() + int(length[0])
        last = name[begin:at]
        if not is_qualified:
            break
    return last or demangled(name)


def worded(finding: Finding, sources: Sources) -> str:
    """Put a finding into words: its place, what is wrong, who did it, and the line of the source."""

    def place(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"line {number}" if number < LINES_OF_A_FILE else sources.place(number)

    text = _LINE.sub(place, finding.message)
    where = sources.place(finding.line)
    lines = [f"{where}: {text}" if where else text]
    if finding.tool != "timeout":
        lines.append(f"    by thread {finding.thread} of block {finding.block}")
    if finding.calls:
        calls = ", which is called at ".join(sources.place(line) for line in finding.calls)
        lines.append(f"    in a function called at {calls}")
    if source := sources.text(finding.line):
        lines.append(f"    {finding.line % LINES_OF_A_FILE:>4} | {source}")
    return "\n".join(lines)
