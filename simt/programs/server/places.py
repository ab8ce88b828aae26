"""Lines of a program's own code: from return addresses, by the debug information that `labkit nvcc` keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from simt.programs.server.device_code import is_cudas, shown_path


class Places:
    """Finds the lines of one running program."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._start = 0
        self._path = Path()
        try:
            self._path = Path(f"/proc/{process}/exe").resolve()
            maps = Path(f"/proc/{process}/maps").read_text().splitlines()
        except OSError:
            return
        for line in maps:
            if line.endswith(str(self._path)):
                self._start = int(line.partition("-")[0], 16)
                break

    def line(self, sites: Sequence[int]) -> str:
        """Return `main.cu:12`, the innermost of the program's own lines on the way to a call; else ""."""
        for site in sites:
            path, line = self._row(site - 1)
            if line and not is_cudas(path):
                return f"{shown_path(path)}:{line}"
        return ""

    def _row(self, address: int) -> tuple[str, int]:
        rows = self._rows
        number = bisect_right(rows, (address - self._start, "\U0010ffff", 1 << 30)) - 1
        return rows[number][1:] if number >= 0 else ("", 0)

    @cached_property
    def _rows(self) -> list[tuple[int, str, int]]:
        """Return (address, file, line), in the order of addresses; line 0 ends a piece of code."""
        from elftools.elf.elffile import ELFFile

        found: list[tuple[int, str, int]] = []
        try:
            with self._path.open("rb") as file:
                elf = ELFFile(file)
                if not elf.has_dwarf_info():
                    return []
                first = min(s["p_vaddr"] for s in elf.iter_segments("PT_LOAD"))
                dwarf = elf.get_dwarf_info()
                for unit in dwarf.iter_CUs():
                    program = dwarf.line_program_for_CU(unit)
                    found += _rows_of(program, unit.get_top_DIE(), first) if program else []
        except OSError:
            return []
        return sorted(found)


def _rows_of(program, unit, first):  # type: ignore[no-untyped-def]
    """Yield the rows of one unit's line program."""
    version, files = program["version"], program["file_entry"]
    folder = unit.attributes["DW_AT_comp_dir"].value.decode() if "DW_AT_comp_dir" in unit.attributes else ""
    folders = [each.decode() for each in program["include_directory"]]
    paths = []
    for entry in files:
        if version >= 5:
            base = folders[entry.dir_index]
        else:
            base = folders[entry.dir_index - 1] if entry.dir_index else ""
        paths.append(str(Path(folder, base, entry.name.decode())))
    for row in program.get_entries():
        state = row.state
        if state is None:
            continue
        number = state.file if version >= 5 else state.file - 1
        path = paths[number] if 0 <= number < len(paths) else ""
        yield state.address - first, path, 0 if state.end_sequence else state.line
