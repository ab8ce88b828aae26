"""Lines of a program's own code: from return addresses, by the debug information that `labkit nvcc` keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from simt.programs.server.device_code import is_cudas, shown_path


class Places:
    """Finds the lines of one running program."""

    def __init__(self, process: int) -> None:
        self._start = 0
        self._file: BinaryIO | None = None  # kept open: a build that ends meanwhile may take the file away
        self._calls: dict[int, list[tuple[str, int]]] = {}
        try:
            self._file = Path(f"/proc/{process}/exe").open("rb")  # noqa: SIM115
            path = str(Path(f"/proc/{process}/exe").readlink())  # as in its maps, " (deleted)" included
            maps = Path(f"/proc/{process}/maps").read_text().splitlines()
        except OSError:
            return
        for line in maps:
            if line.endswith(path):
                self._start = int(line.partition("-")[0], 16)
                break

    def line(self, sites: Sequence[int]) -> str:
        """Return `main.cu:12`, the innermost of the program's own lines on the way to a call; else ""."""
        for site in sites:
            for path, line in self._frames(site - 1 - self._start):
                if line and not is_cudas(path):
                    return f"{shown_path(path)}:{line}"
        return ""

    def _frames(self, address: int) -> Iterator[tuple[str, int]]:
        """Yield the line of an address; then those that call the inlined functions in which it stands."""
        number = bisect_right(self._rows, address, key=itemgetter(0)) - 1
        if number < 0 or not self._rows[number][2]:
            return
        yield self._rows[number][1:]
        if address not in self._calls:
            self._calls[address] = self._calls_around(address)
        yield from self._calls[address]

    @cached_property
    def _rows(self) -> list[tuple[int, str, int]]:
        """Return (address, file, line), in the order of addresses; line 0 ends a piece of code."""
        found: list[tuple[int, str, int]] = []
        for dwarf, unit, first in self._units():
            program = dwarf.line_program_for_CU(unit)
            found += _rows_of(program, unit.get_top_DIE(), first) if program else []
        return sorted(found, key=lambda row: (row[0], row[2] > 0))  # of one place, the last row is its line

    def _calls_around(self, address: int) -> list[tuple[str, int]]:
        """Return file and line of each call of an inlined function around an address, innermost first."""
        for dwarf, unit, first in self._units():
            program = dwarf.line_program_for_CU(unit)
            paths = _paths_of(program, unit.get_top_DIE()) if program else []
            for function in unit.iter_DIE_children(unit.get_top_DIE()):
                if function.tag == "DW_TAG_subprogram" and _holds(function, address + first, dwarf):
                    return list(_calls_within(function, address + first, dwarf, paths))[::-1]
        return []

    def _units(self):  # type: ignore[no-untyped-def]
        """Yield the program's debug information, each of its units, and where the program's code begins."""
        from elftools.elf.elffile import ELFFile

        if self._file is None:
            return
        elf = ELFFile(self._file)
        if elf.has_dwarf_info():
            first = min(s["p_vaddr"] for s in elf.iter_segments("PT_LOAD"))
            dwarf = elf.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                yield dwarf, unit, first


def _calls_within(outer, address, dwarf, paths):  # type: ignore[no-untyped-def]
    """Yield the calls of inlined functions that hold an address, from the outermost on."""
    for inner in outer.iter_children():
        is_call = inner.tag == "DW_TAG_inlined_subroutine"
        if not is_call and inner.tag != "DW_TAG_lexical_block":
            continue
        if not _holds(inner, address, dwarf):
            continue
        if is_call and "DW_AT_call_line" in inner.attributes:
            number = inner.attributes["DW_AT_call_file"].value - (inner.cu["version"] < 5)
            path = paths[number] if 0 <= number < len(paths) else ""
            yield path, inner.attributes["DW_AT_call_line"].value
        yield from _calls_within(inner, address, dwarf, paths)
        return


def _holds(entry, address, dwarf):  # type: ignore[no-untyped-def]
    """Say whether an entry's code has an address."""
    attributes = entry.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        end = high.value if high.form == "DW_FORM_addr" else low + high.value
        return low <= address < end
    if "DW_AT_ranges" not in attributes:
        return False
    base = getattr(entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc"), "value", 0)
    ranges = dwarf.range_lists().get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=entry.cu)
    for each in ranges:
        if hasattr(each, "base_address"):
            base = each.base_address
        else:
            start = 0 if each.is_absolute else base
            if start + each.begin_offset <= address < start + each.end_offset:
                return True
    return False


def _paths_of(program, unit):  # type: ignore[no-untyped-def]
    """Return the paths of one unit's files, by number."""
    folder = unit.attributes["DW_AT_comp_dir"].value.decode() if "DW_AT_comp_dir" in unit.attributes else ""
    folders = [each.decode() for each in program["include_directory"]]
    paths = []
    for entry in program["file_entry"]:
        if program["version"] >= 5:
            base = folders[entry.dir_index]
        else:
            base = folders[entry.dir_index - 1] if entry.dir_index else ""
        paths.append(str(Path(folder, base, entry.name.decode())))
    return paths


def _rows_of(program, unit, first):  # type: ignore[no-untyped-def]
    """Yield the rows of one unit's line program."""
    paths = _paths_of(program, unit)
    for row in program.get_entries():
        state = row.state
        if state is None:
            continue
        number = state.file if program["version"] >= 5 else state.file - 1
        path = paths[number] if 0 <= number < len(paths) else ""
        yield state.address - first, path, 0 if state.end_sequence else state.line
