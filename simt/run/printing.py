"""Format what the lanes of a kernel pass to `printf`.

Reference: CUDA C++ Programming Guide, "Formatted Output". Arguments lie as in a C struct, floats as doubles.
"""

import ctypes
import re
import struct
from collections.abc import Callable, Sequence

from simt.common.limits import WARP

_SPECIFIER = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")
CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64)
)


class Printer:
    """Collects the text that a launch prints; generated code calls `callback` once per warp and `printf`.

    `ranges` are the (start, end) addresses that a string may lie in.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges, self._parts = ranges, list[str]()
        self.callback = CALLBACK(self._warp)

    @property
    def text(self) -> str:
        """Return all that was printed so far."""
        return "".join(self._parts)

    def _warp(self, mask: int, formats: Sequence[int], arguments: Sequence[int]) -> None:
        for lane in range(WARP):
            if mask >> lane & 1:
                self._parts.append(formatted(self._string(formats[lane]), arguments[lane], self._string))

    def _string(self, address: int) -> str:
        """Read the string at an address; a bad pointer must not end the process."""
        end = next((end for start, end in self._ranges if start <= address < end), None)
        if end is None:
            return f"(bad pointer {address:#x})"
        return ctypes.string_at(address, end - address).partition(b"\0")[0].decode(errors="replace")


def formatted(template: str, address: int, string: Callable[[int], str]) -> str:
    """Fill in the template with its arguments, which lie at `address`; `string` reads a string."""
    position = 0

    def take(code: str) -> int | float:
        nonlocal position
        size = struct.calcsize(code)
        position = -(-position // size) * size
        (value,) = struct.unpack(code, ctypes.string_at(address + position, size))
        position += size
        return value

    def one(match: re.Match[str]) -> str:
        flags, width, precision, length, conversion = match.groups()
        if conversion == "%":
            return "%"
        width = str(take("i")) if width == "*" else width or ""
        precision = str(take("i")) if precision == "*" else precision
        spec = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        if conversion in "fFeEgGaA":
            value = take("d")
            return value.hex() if conversion in "aA" else f"{spec}{conversion}" % value  # type: ignore[union-attr]
        if conversion == "s":
            return f"{spec}s" % string(int(take("Q")))
        if conversion == "c":
            return f"{spec}c" % (int(take("i")) & 0xFF)
        if conversion == "p":
            return f"{spec}s" % hex(int(take("Q")))
        long = length in ("l", "ll", "z", "j", "t")
        signed = conversion in "di"
        value = take(
            {(True, True): "q", (True, False): "Q", (False, True): "i", (False, False): "I"}[long, signed]
        )
        return f"{spec}{'d' if conversion in 'iu' else conversion}" % value

    return _SPECIFIER.sub(one, template)
