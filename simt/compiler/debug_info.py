"""The variables of debug code: NVRTC writes into PTX, as DWARF, in which register each lives where.

`-G` makes the compiler keep variables and lines apart, as a debugger needs them. The sections stand in the
PTX as bytes, in which labels stand for addresses; here each label gets a number instead.

Reference: DWARF Debugging Information Format, version 2; NVIDIA, PTX Writer's Guide to Interoperability, 5.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SECTION = re.compile(r"^\s*\.section\s+(\.debug_\w+)\s*\{(.*?)^\s*\}", re.M | re.S)
_ITEM = re.compile(r"\.b(8|16|32|64)\s+([^\n]+)")
REGISTER, ADDRESS, PLUS = 0x90, 0x03, 0x23  # DW_OP_regx, DW_OP_addr and DW_OP_plus_uconst
SECTIONS = ("info", "abbrev", "loc")


@dataclass(frozen=True)
class Place:
    """Where a variable lives between two labels of the PTX: a register, or memory, such as `depot+32`."""

    first: str
    end: str
    name: str


@dataclass(frozen=True)
class Named:
    """A variable or parameter of a function of the source."""

    function: str  # its name in PTX
    called: str  # as the source calls the function
    name: str
    type: str
    places: tuple[Place, ...]


def has_debug_info(text: str) -> bool:
    """Say whether PTX text has the variables of debug code."""
    return ".debug_info" in text


def variables(text: str) -> list[Named]:
    """Return the variables of every function in PTX text; [] where it is no debug code."""
    if not has_debug_info(text):
        return []
    sections = _Sections(text)
    return [each for unit in sections.dwarf().iter_CUs() for each in _of_unit(unit.get_top_DIE(), sections)]


@dataclass
class _Sections:
    """The sections as bytes; `labels` are the names behind the numbers that stand for them."""

    text: str
    labels: list[str] = field(default_factory=lambda: [""])
    contents: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[str, int] = {}
        self.contents = {
            name: b"".join(self._assembled(body, numbers)) for name, body in _SECTION.findall(self.text)
        }

    def _assembled(self, body: str, numbers: dict[str, int]) -> Iterator[bytes]:
        for bits, values in _ITEM.findall(body):
            for value in values.split(","):
                yield self._number(value.strip(), numbers).to_bytes(int(bits) // 8, "little")

    def _number(self, value: str, numbers: dict[str, int]) -> int:
        """Return a number, an offset into a section, or the number of a label."""
        if value.isdecimal():
            return int(value)
        if value.startswith(".debug_"):
            return int(value.partition("+")[2] or 0)
        if value not in numbers:
            numbers[value] = len(self.labels)
            self.labels.append(value)
        return numbers[value]

    def dwarf(self) -> Any:
        """Return what pyelftools makes of the sections."""
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

        config = DwarfConfig(little_endian=True, machine_arch="", default_address_size=8)
        names = inspect.signature(DWARFInfo).parameters
        given: dict[str, Any] = {name: None for name in names if name.endswith("_sec")}
        for name in SECTIONS:
            data = self.contents.get(f".debug_{name}", b"")
            given[f"debug_{name}_sec"] = DebugSectionDescriptor(
                stream=io.BytesIO(data), name=name, global_offset=0, size=len(data), address=0
            )
        return DWARFInfo(config=config, **given)

    def location(self, value: Any, scope: tuple[str, str]) -> tuple[Place, ...]:
        """Return where a variable of a scope lives: an expression, or the offset of a list of them."""
        if isinstance(value, int):
            return tuple(self._listed(value))
        name = self._named(bytes(value))
        return (Place(*scope, name),) if name else ()

    def bounds(self, entry: Any, outer: tuple[str, str]) -> tuple[str, str]:
        """Return the labels between which the code of a scope lies."""
        found = [entry.attributes.get(name) for name in ("DW_AT_low_pc", "DW_AT_high_pc")]
        if None in found:
            return outer
        first, end = (self.labels[each.value] for each in found)
        return first, end

    def _listed(self, offset: int) -> Iterator[Place]:
        data = self.contents[".debug_loc"]
        while True:
            first, end = (int.from_bytes(data[offset + i : offset + i + 8], "little") for i in (0, 8))
            if not first and not end:
                return
            size = int.from_bytes(data[offset + 16 : offset + 18], "little")
            if name := self._named(data[offset + 18 : offset + 18 + size]):
                yield Place(self.labels[first], self.labels[end], name)
            offset += 18 + size

    def _named(self, expression: bytes) -> str:
        """Return the register or variable of an expression; "" for another kind."""
        if expression[:1] == bytes([REGISTER]):
            number = _uleb(expression[1:])
            return number.to_bytes(-(-number.bit_length() // 8), "big").decode("ascii")
        if expression[:1] == bytes([ADDRESS]) and len(expression) >= 9:
            label = self.labels[int.from_bytes(expression[1:9], "little")]
            return f"{label}+{_uleb(expression[10:])}" if expression[9:10] == bytes([PLUS]) else label
        return ""


def _uleb(data: bytes) -> int:
    """Return a number written in parts of 7 bits, the low ones first."""
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data))


def _of_unit(top: Any, sections: _Sections) -> Iterator[Named]:
    for function in top.iter_children():
        if function.tag == "DW_TAG_subprogram":
            in_ptx = _text(function, "DW_AT_MIPS_linkage_name") or _text(function, "DW_AT_name")
            names = in_ptx, _text(function, "DW_AT_name")
            yield from _of_scope(function, names, sections.bounds(function, ("", "")), sections)


def _of_scope(
    scope: Any, names: tuple[str, str], bounds: tuple[str, str], sections: _Sections
) -> Iterator[Named]:
    for each in scope.iter_children():
        if each.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter"):
            location = each.attributes.get("DW_AT_location")
            places = sections.location(location.value, bounds) if location else ()
            yield Named(*names, _text(each, "DW_AT_name"), _type(each), places)
        else:
            yield from _of_scope(each, names, sections.bounds(each, bounds), sections)


def _text(entry: Any, name: str) -> str:
    found = entry.attributes.get(name)
    return found.value.decode() if found else ""


def _type(entry: Any) -> str:
    """Return the type of an entry as C++ writes it."""
    if "DW_AT_type" not in entry.attributes:
        return "void"
    of = entry.get_DIE_from_attribute("DW_AT_type")
    if of.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type"):
        return f"{_type(of)}{'*' if of.tag == 'DW_TAG_pointer_type' else '&'}"
    if of.tag == "DW_TAG_const_type":
        return f"const {_type(of)}"
    if of.tag == "DW_TAG_array_type":
        sizes = [_length(each) for each in of.iter_children() if each.tag == "DW_TAG_subrange_type"]
        return _type(of) + "".join(f"[{size}]" for size in sizes)
    return _text(of, "DW_AT_name") or _type(of)


def _length(subrange: Any) -> str:
    for name, more in (("DW_AT_upper_bound", 1), ("DW_AT_count", 0)):
        if found := subrange.attributes.get(name):
            return str(found.value + more)
    return ""
