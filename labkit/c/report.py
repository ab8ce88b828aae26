"""Turn what a sanitizer, a failed assert or a signal says about a C function into an error for a student.

The sanitizers are AddressSanitizer and UndefinedBehaviorSanitizer, of gcc and of clang.
"""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.c.compile import FILE_NAME
from simt.common.buffer_names import Named
from simt.common.errors import Crash, InvalidAccess, SimtError
from simt.common.text import counted

# clang and gcc: #1 0x401 in f kernel.c:3; zig: /tmp/x/kernel.c:3:5: 0x401 in f (kernel.c)
_FRAME = re.compile(rf"#\d+ 0x\w+ in \S+ [^\n]*?{FILE_NAME}:(\d+)|{FILE_NAME}:(\d+):\d+: 0x\w+ in ")
_ACCESS = re.compile(r"(?P<verb>READ|WRITE) of size (?P<size>\d+) at (?P<address>0x\w+)")
_IN_LIBRARY = re.compile(r"[^#]*#0 0x\w+ in (?:__interceptor_)?(\w+) [^\n]*(?:sanitizer|asan)")
# Where a sanitizer's report begins, among what the function prints. Last: the frames of an exit().
_REPORT = re.compile(
    r"=+\n==\d+==|AddressSanitizer:DEADLYSIGNAL|==\d+==\w|"
    r"ERROR: bounds: |labkit: the stack|thread \d+ panic: |"
    rf"(?:/[^\s:]*|{FILE_NAME}):\d+:\d+: runtime error: | +#0 0x"
)
# bounds.c reports as AddressSanitizer does. The stack that it prints looks like an error, but is not one.
_ADDRESS = r"ERROR: (?:AddressSanitizer|bounds): "
_FOUND = re.compile(
    rf"{_ADDRESS}(?P<address>.*)|(?:runtime error|(?<!the stack\n)thread \d+ panic): (?P<undefined>.*)"
)
_REGION = re.compile(r"located .* (?P<size>\d+)-byte region \[(?P<start>0x\w+),")
_ALLOCATED = re.compile(rf"allocated by (?:[^\n]+\n)+?[^\n]*{FILE_NAME}:(\d+)")
_VARIABLE = re.compile(r"'(\w+)'[^\n]*<== Memory access at|of global variable '(\w+)'")
_MISALIGNED = re.compile(
    r"(\w+) .*misaligned address \S+ for type '(?:const )?([^']*)'.*, which requires (\d+)"
)
_NULL = re.compile(r"(load|store|member access|applying).* null pointer")
_VERBS = {"load": "read", "store": "write"}
_ASSERTS = (
    re.compile(
        rf"(?:tmp\w+\.exe: )?{FILE_NAME}:(?P<line>\d+): .*Assertion `(?P<text>.*)' failed\.\n?"
    ),  # glibc
    re.compile(rf"Assertion failed: (?P<text>.*?),.* file .*{FILE_NAME}, line (?P<line>\d+)\.?\n?"),
)

POINTER_IS_NULL = "the pointer is null. malloc, too, returns null where there is not enough memory"
# The first words of AddressSanitizer's message -> our words
_BAD_FREES = {
    "attempting double-free": "free() of memory that is freed already",
    "attempting free": "free() of an address that malloc did not give",
}
_CRASHES = {
    "stack-overflow": "the stack is full: the recursion has no end, or the local arrays are too large",
    "ABRT": "it called abort()",
    "FPE": "an integer division that has no result: by zero, or of the smallest int by -1",
    "ILL": "it ran code that this CPU does not have, or that is marked as never to be reached",
}
_SIGNALS = {
    "SIGSEGV": "it read or wrote at an address that is not its own, or its recursion has no end",
    "SIGBUS": "it read or wrote at an address that is not its own",
    "SIGFPE": _CRASHES["FPE"],
    "SIGABRT": _CRASHES["ABRT"],
    "SIGILL": _CRASHES["ILL"],
    "SIGKILL": "the system stopped it, most likely because memory ran out",
}


@dataclass(frozen=True)
class Memory:
    """Memory in the C function's process: what it is, and its address there."""

    named: Named
    address: int

    def outside(self, address: int, size: int) -> str:
        """Say where an access of `size` bytes (0: unknown) outside the memory lies."""
        return self.named.outside(address - self.address, size)


def at_line(message: str, line: int, source: Sequence[str]) -> str:
    """Return the message with the line that it is about; line 0 is unknown."""
    if not 0 < line <= len(source):
        return message
    return f"line {line}: {message}\n    {line:>4} | {source[line - 1].strip()}"


def line_of(report: str) -> int:
    """Return the line of the topmost frame in the student's source; 0 if there is none."""
    frame = _FRAME.search(report)
    return int(frame[1] or frame[2]) if frame else 0


def split_report(printed: str) -> tuple[str, str]:
    """Split the output into what the function printed and the report that follows."""
    begin = _REPORT.search(printed)
    return (printed[: begin.start()], printed[begin.start() :]) if begin else (printed, "")


def without_assert(printed: str) -> str:
    """Return what was printed, without the message of a failed assert."""
    for pattern in _ASSERTS:
        printed = pattern.sub("", printed)
    return printed


def from_assert(printed: str, source: Sequence[str]) -> Crash | None:
    """Return the error of a failed assert; None if what was printed has none."""
    for failed in filter(None, (pattern.search(printed) for pattern in _ASSERTS)):
        return Crash(at_line(f"assertion failed: {failed['text']}", int(failed["line"]), source))
    return None


def from_sanitizer(report: str, arrays: Sequence[Memory], source: Sequence[str]) -> SimtError | None:
    """Return the error in a sanitizer's report; None if there is none."""
    found = _FOUND.search(report)
    if not found:
        return None
    error, message = _undefined(found["undefined"]) if found["undefined"] else _address(report, arrays)
    return error(at_line(message, line_of(report), source))


def from_exit(code: int, report: str, source: Sequence[str]) -> SimtError:
    """Return the error of a process that ended before the function returned, without a sanitizer's report."""
    if internal := re.search(r"ERROR: (.*)|CHECK failed: .*", report):
        return Crash(at_line(internal[0], line_of(report), source))
    if 0 <= code < 256:
        message = f"it called exit({code}), which would end the notebook. A function ends with return"
        return Crash(at_line(message, line_of(report), source))
    if code > 0:
        return Crash(f"Windows stopped it with code {code:#x}.")
    name = signal.Signals(-code).name
    error = InvalidAccess if name in ("SIGSEGV", "SIGBUS") else Crash
    return error(f"{_SIGNALS.get(name, 'it was stopped')} ({name})")


def from_guards(array: Named, offset: int) -> InvalidAccess:
    """Return the error of a write to byte `offset`, outside an array, noticed after the call."""
    element = offset // array.itemsize * array.itemsize
    return InvalidAccess(f"invalid write: {array.outside(element, 0)}")


def _undefined(message: str) -> tuple[type[SimtError], str]:
    """Explain UndefinedBehaviorSanitizer's message, in its own words where they name the values."""
    if misaligned := _MISALIGNED.match(message):
        verb, c_type, alignment = misaligned.groups()
        verb = _VERBS.get(verb, "use")
        return InvalidAccess, f"invalid {verb} of a {c_type}: its address is not a multiple of {alignment}"
    if null := _NULL.match(message):
        return InvalidAccess, f"invalid {_VERBS.get(null[1], 'use')}: {POINTER_IS_NULL}"
    if message.startswith("index "):
        return InvalidAccess, f"invalid access: {message}"
    return Crash, f"{message}. C does not say what happens then"


def _address(report: str, arrays: Sequence[Memory]) -> tuple[type[SimtError], str]:
    """Explain AddressSanitizer's report."""
    kind = re.split(_ADDRESS, report, maxsplit=1)[1]
    if access := _ACCESS.search(report):
        return InvalidAccess, _access(kind, access, report, arrays)
    if kind.startswith(("SEGV", "BUS")):
        return InvalidAccess, _segmentation_fault(report, arrays)
    for table, error in ((_BAD_FREES, InvalidAccess), (_CRASHES, Crash)):
        for words, message in table.items():
            if kind.startswith(words):
                return error, message
    return Crash, kind.partition("\n")[0]


def _access(kind: str, access: re.Match[str], report: str, arrays: Sequence[Memory]) -> str:
    """Describe a read or write that AddressSanitizer has stopped."""
    size, address = int(access["size"]), int(access["address"], 16)
    library = _IN_LIBRARY.match(report)
    what = (
        f"invalid {access['verb'].lower()} of {counted(size, 'byte')}{f' in {library[1]}' if library else ''}"
    )
    if library:
        size = 0  # the address is the first byte outside, not the start of the access
    if kind.startswith("heap-use-after-free"):
        if not _FRAME.search(report.partition("\nfreed by ")[0]):  # not in the function: noticed later
            return f"free() of {_nearest(address, arrays).named.name}, which belongs to the notebook"
        return f"{what}: the memory is freed already"
    allocated, region = _ALLOCATED.search(report), _REGION.search(report)
    if allocated and region:
        start, length = int(region["start"], 16), int(region["size"])
        block = Named(f"the {counted(length, 'byte')} from malloc in line {allocated[1]}", length)
        return f"{what}: {block.outside(address - start, size)}"
    if variable := _VARIABLE.search(report):
        return f"{what}: it is outside the array {variable[1] or variable[2]}"
    if "stack" in kind.partition(" ")[0]:
        return f"{what}: it is outside the function's local arrays"
    return f"{what}: {near(address, size, arrays)}"


def _segmentation_fault(report: str, arrays: Sequence[Memory]) -> str:
    """Describe a read or write where there is no memory."""
    verb, address = re.search(r"caused by a (\w+)", report), re.search(r"unknown address (0x\w+)", report)
    what = f"invalid {verb[1].lower()}" if verb and verb[1] in ("READ", "WRITE") else "invalid access"
    if "points to the zero page" in report:
        return f"{what}: {POINTER_IS_NULL}"
    if not address or "high value address" in report:
        return f"{what}: the pointer holds no address. Was it ever set?"
    return f"{what}: {near(int(address[1], 16), 0, arrays)}"


def near(address: int, size: int, arrays: Sequence[Memory]) -> str:
    """Say where an address lies relative to the nearest array."""
    if not arrays:
        return f"nothing is at the address {address:#x}"
    return _nearest(address, arrays).outside(address, size)


def _nearest(address: int, arrays: Sequence[Memory]) -> Memory:
    return min(
        arrays, key=lambda array: max(array.address - address, address - array.address - array.named.size)
    )
