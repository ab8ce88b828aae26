"""What `labkit check` and `labkit profile` tell of a program: mistakes when found, a table at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING

from simt.common.text import counted, duration
from simt.counters.profile import CONFLICTS, Profile
from simt.module import Kernel
from simt.programs.server.memory import DEVICE, MANAGED, PINNED, Allocation
from simt.programs.server.words import shown

if TYPE_CHECKING:
    from simt.programs.server.device_code import Sources

MOST = 100  # mistakes that are told
_FREED_BY = {DEVICE: "cudaFree", MANAGED: "cudaFree", PINNED: "cudaFreeHost"}
WORST_LINES = 3


def tell(text: str) -> None:
    """Write a line to the program's stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@dataclass
class Mistakes:
    """The mistakes of a checked program, each told once; how often it came again is told at the end."""

    times: dict[str, int] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)  # kind and text

    def add(self, kind: str, text: str, key: str = "") -> None:
        """Tell a mistake, if it is new; `key` says which are the same."""
        key = f"{kind}: {key or text}"
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] == 1 and len(self.times) <= MOST:
            self.told.append((kind, text))
            tell(f"labkit check: {kind}: {text}")

    def add_leaks(self, kept: Sequence[tuple[Allocation, str]]) -> None:
        """Tell what was never freed, with the line that allocated it."""
        for allocation, line in kept:
            where = f"{line}: " if line else ""
            free = _FREED_BY[allocation.kind]
            self.add("leak", f"{where}{allocation.bytes} bytes are never freed: call {free}", line)

    def finish(self, *, is_optimised: bool) -> None:
        """Tell the sum, and say to `labkit check` whether there was any.

        Optimised code may read another variable's value, or none, where the source reads an unset one.
        """
        count = sum(self.times.values())
        if not count:
            hint = " (a build with -G also shows variables that only some paths set)" if is_optimised else ""
            tell(f"labkit check: no mistake found{hint}")
        else:
            places = counted(len(self.times), "mistake")
            again = f", {count} times in all" if count > len(self.times) else ""
            tell(f"labkit check: {places}{again}")
        if (report := os.environ.get("LABKIT_REPORT")) and count:
            with os.fdopen(int(report), "w") as file:
                file.write(f"{count}\n")


@dataclass(frozen=True)
class _Counted:
    """One launch, as the table shows it."""

    number: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    profile: Profile
    seconds: float
    sources: Sources


@dataclass
class Launches:
    """The counted launches of a program."""

    gpu: str
    rows: list[_Counted] = field(default_factory=list)

    def add(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        profile: Profile,
        seconds: float,
        sources: Sources,
    ) -> None:
        """Keep a launch; its counts are worked out now, as the next launch changes memory."""
        _ = profile.sites
        self.rows.append(_Counted(len(self.rows) + 1, shown(kernel), grid, block, profile, seconds, sources))

    def finish(self) -> None:
        """Print the table, and the lines that cost most."""
        from rich.console import Console
        from rich.table import Table

        console = Console(stderr=True, width=None if sys.stderr.isatty() else 132)
        if not self.rows:
            console.print("labkit profile: the program launched no kernel", highlight=False)
            return
        table = Table(title=f"Counted by the simulator; times predicted for an NVIDIA {self.gpu}", box=None)
        for head in ("#", "kernel", "grid", "block", "predicted", "sectors/request ld", "st"):
            table.add_column(head, justify="left" if head == "kernel" else "right")
        for head in ("bank conflicts", "occupancy %", "branch eff. %"):
            table.add_column(head, justify="right")
        groups: dict[tuple[object, ...], list[_Counted]] = {}
        for row in self.rows:
            groups.setdefault((row.name, row.grid, row.block), []).append(row)
        for same in groups.values():
            table.add_row(*_cells(same))
        console.print(table)
        for same in groups.values():
            for line in _worst(same[0]):
                console.print(line, highlight=False, markup=False, soft_wrap=True)


def _cells(same: Sequence[_Counted]) -> list[str]:
    """Return the cells of launches that look the same; figures are those of the first."""
    first = same[0]
    metrics = first.profile.metrics
    times = f" ({len(same)} launches)" if len(same) > 1 else ""
    return [
        str(first.number),
        first.name + times,
        " x ".join(map(str, first.grid)),
        " x ".join(map(str, first.block)),
        "not known" if isnan(first.seconds) else duration(first.seconds),
        *(f"{_sectors_per_request(first.profile, op):.2f}" for op in ("ld", "st")),
        f"{metrics[CONFLICTS.format('ld')] + metrics[CONFLICTS.format('st')]:,.0f}",
        _occupancy(first.profile),
        f"{first.profile.ptx['branch_efficiency_pct']:.1f}",
    ]


def _sectors_per_request(profile: Profile, op: str) -> float:
    rows = profile.lines
    rows = rows[(rows.space == "global") & (rows.op == op)]
    requests = float(rows.requests.sum())
    return float(rows.sectors.sum()) / requests if requests else 0.0


def _occupancy(profile: Profile) -> str:
    try:
        return f"{profile.occupancy.sm__maximum_warps_per_active_cycle_pct:.0f}"
    except Exception as error:  # no assembler here: the other figures stand
        return type(error).__name__


def _worst(row: _Counted) -> list[str]:
    """Return the lines of a launch that move the most sectors or have the most bank conflicts."""
    lines = row.profile.lines
    lines = lines[lines.line > 0]  # the program's own: all may lie in headers of a library
    lines = lines.assign(cost=lines.sectors.fillna(0) + lines.conflicts)
    lines = lines[lines.cost > 0].sort_values("cost", ascending=False).head(WORST_LINES)
    if lines.empty:
        return []
    found = [f"{row.name}, the lines that cost most:"]
    for each in lines.to_dict("records"):
        what = f"{each['sectors']:,.0f} sectors, {each['sectors_per_request']:.1f} per request"
        if each["conflicts"]:
            what = f"{each['conflicts']:,.0f} bank conflicts, {each['conflicts_per_request']:.1f} per request"
        place, text = row.sources.place(int(each["line"])), row.sources.text(int(each["line"]))
        found.append(f"  {place} ({each['op']} {each['space']}): {what}\n      {text}")
    return found
