"""A profile as a notebook shows it: the source with each line's costs, and the worst lines in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from labkit.core.limits import WARP
from labkit.figures.worst_lines import VERBS, Cost, Work, costs_of, kernel_lines, sentences, work_of
from labkit.kernels.problem import Problem
from labkit.simt.counters.profile import Profile
from labkit.simt.module import AnyKernel

if TYPE_CHECKING:
    import pandas as pd

    from labkit.core.occupancy import Occupancy

MANY_IDLE = 4  # lanes of a warp
BAR = 8  # characters, in a terminal


@dataclass(frozen=True)
class Cell:
    """What one line costs in one respect: a text, its share of the worst possible, and whether it wastes."""

    text: str
    share: float
    wasteful: bool
    title: str


class Heat:
    """A `Profile` that notebooks and terminals show as a table of the source."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def metrics(self) -> Mapping[str, float]:
        """Return Nsight Compute's metrics, see `Profile.metrics`."""
        return self.profile.metrics

    @property
    def lines(self) -> pd.DataFrame:
        """Return the memory accesses by source line, see `Profile.lines`."""
        return self.profile.lines

    @property
    def ptx(self) -> dict[str, float]:
        """Return instructions and branches, see `Profile.ptx`."""
        return self.profile.ptx

    @property
    def ptx_lines(self) -> pd.DataFrame:
        """Return instructions and branches by source line, see `Profile.ptx_lines`."""
        return self.profile.ptx_lines

    @property
    def occupancy(self) -> Occupancy:
        """Return the occupancy of the launch on a GPU, see `Profile.occupancy`."""
        return self.profile.occupancy

    @property
    def label(self) -> str:
        """Say where the figures come from."""
        return self.profile.label

    @cached_property
    def sentences(self) -> list[str]:
        """Describe the worst line in each respect, in words."""
        return sentences(self.profile)

    def __repr__(self) -> str:
        columns = self._columns()
        widths = {
            name: max(len(name), *(len(_with_bar(c)) for c in cells.values()), 0) for name, cells in columns
        }
        head = "  ".join(["line", *(name.ljust(widths[name]) for name, _ in columns), "source"])
        rows = [
            "  ".join(
                [
                    f"{number:>4}",
                    *(_with_bar(cells.get(number)).ljust(widths[name]) for name, cells in columns),
                    self.profile.source_line(number),
                ]
            ).rstrip()
            for number in kernel_lines(self.profile)
        ]
        return "\n".join([*self.sentences, "", head, *rows, f"({self.label})"])

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{escape(name)}</th>" for name, _ in columns)
        rows = "".join(
            f"<tr><td>{number}</td>{''.join(_td(cells.get(number)) for _, cells in columns)}"
            f"<td>{escape(self.profile.source_line(number))}</td></tr>"
            for number in kernel_lines(self.profile)
        )
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return (
            f'<div class="labkit-heat"><style>{_STYLE}</style><ul>{said}</ul><table>'
            f"<thead><tr><th>line</th>{head}<th>source</th></tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{escape(self.label)}</p></div>"
        )

    # The contents of the table.

    def _columns(self) -> list[tuple[str, dict[int, Cell]]]:
        """Return columns by name, each with its cells by line, for what the kernel does at all."""
        sectors: dict[int, list[Cost]] = {}
        conflicts: dict[int, list[Cost]] = {}
        for cost in costs_of(self.profile):
            place = {"global": sectors, "shared": conflicts}.get(cost.site.space)
            if place is not None:
                place.setdefault(cost.site.line, []).append(cost)
        columns = {
            "sectors / request": {line: _sectors_cell(costs) for line, costs in sectors.items()},
            "conflicts / request": {line: _conflicts_cell(costs) for line, costs in conflicts.items()},
            "idle lanes": {line: _idle_cell(work) for line, work in work_of(self.profile).items()},
        }
        return [(name, cells) for name, cells in columns.items() if cells]


def profile(
    kernel: AnyKernel, problem: Problem, tile: int = 16, rows: int | None = None, blocks: int | None = None
) -> Heat:
    """Profile one launch on `problem` in the simulator, whichever device `kernel` is for.

    `blocks` is as in simt.
    """
    grid, block = problem.launch(tile, rows)
    return show(kernel.profile(grid, block, problem.args(np), blocks=blocks))


def show(profile: Profile | Heat) -> Heat:
    """Show the source with what each line costs: sectors and bank conflicts per request, idle lanes.

    A notebook shows it as a table. Its figures are those of the profile.
    """
    return profile if isinstance(profile, Heat) else Heat(profile)


def _sectors_cell(costs: list[Cost]) -> Cell:
    worst = max(cost.sectors_per_request for cost in costs)
    title = "; ".join(
        f"{VERBS.get(c.site.op, c.site.op)}: {c.requests:,} requests, {c.sectors:,} sectors" for c in costs
    )
    text = " · ".join(f"{c.site.op} {c.sectors_per_request:.3g}" for c in costs)
    return Cell(text, min(1.0, worst / WARP), any(c.is_scattered for c in costs), title)


def _conflicts_cell(costs: list[Cost]) -> Cell:
    each = [cost.conflicts / cost.requests for cost in costs]
    title = "; ".join(
        f"{VERBS.get(c.site.op, c.site.op)}: {c.requests:,} requests, {c.conflicts:,} conflicts"
        for c in costs
    )
    text = " · ".join(f"{c.site.op} {number:.3g}" for c, number in zip(costs, each, strict=True))
    return Cell(text, min(1.0, max(each) / (WARP - 1)), max(each) > 0, title)


def _idle_cell(work: Work) -> Cell:
    idle = WARP - work.lanes
    title = f"{work.instructions:,} instructions of warps, at PTX level"
    return Cell(f"{idle:.3g} of {WARP}" if idle else "0", idle / WARP, idle >= MANY_IDLE, title)


def _with_bar(cell: Cell | None) -> str:
    """Draw a cell for a terminal."""
    if cell is None:
        return ""
    full = round(cell.share * BAR)
    bar = "█" * full + "░" * (BAR - full) if cell.share else " " * BAR
    return f"{bar} {cell.text}{' !' if cell.wasteful else ''}"


def _td(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    kind = ' class="much"' if cell.wasteful else "" if cell.share else ' class="none"'
    return (
        f'<td{kind} title="{escape(cell.title)}"><span style="width:{cell.share:.0%}"></span>'
        f"<b>{escape(cell.text)}{' !' if cell.wasteful else ''}</b></td>"
    )


# Okabe and Ito's vermillion and blue, transparent enough for black or white text in either theme.
_STYLE = """
.labkit-heat ul {margin: 0 0 .6em; padding-left: 1.2em}
.labkit-heat p {margin: .3em 0 0; opacity: .7; font-size: 85%}
.labkit-heat {overflow-x: auto}
.labkit-heat table {border-collapse: collapse; margin: 0; color: inherit; font-size: 12px}
.labkit-heat th, .labkit-heat td {text-align: left !important; padding: 1px 10px !important; white-space: pre}
.labkit-heat td {position: relative; font-family: var(--jp-code-font-family, monospace)}
.labkit-heat td:first-child, .labkit-heat td.none {opacity: .6}
.labkit-heat td:first-child, .labkit-heat th:first-child {text-align: right !important}
.labkit-heat td:last-child, .labkit-heat th:last-child {border-left: 1px solid rgba(128, 128, 128, .5)}
.labkit-heat td span {position: absolute; left: 0; top: 2px; bottom: 2px; background: #0072B2; opacity: .25}
.labkit-heat td.much span {background: #D55E00; opacity: .45}
.labkit-heat td b {position: relative; font-weight: normal}
.labkit-heat td.much b {font-weight: bold}
"""
