"""A profile as a notebook shows it: the source with each line's costs, and the worst lines in sentences.

What belongs to one line (its sentence, its row, its share of a counter) is marked together when any of it is
pointed at or has the focus. That is done by style sheet alone, so it also works in a saved notebook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from labkit.figures.worst_lines import (
    VERBS,
    Cost,
    Work,
    costs_of,
    counters_of,
    kernel_lines,
    sentences,
    work_of,
)
from labkit.kernels.problem import Problem
from simt.common.limits import WARP
from simt.counters.profile import Profile
from simt.module import AnyKernel

if TYPE_CHECKING:
    import pandas as pd

    from simt.common.occupancy import Occupancy

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
    """A `Profile` that notebooks and terminals show as a table of the source.

    Sentences about the worst lines stand above it, unless it is `silent`.
    """

    def __init__(self, profile: Profile, silent: bool = False) -> None:
        self.profile, self._silent = profile, silent

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
        return [] if self._silent else sentences(self.profile)

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
        said = [*self.sentences, ""] if self.sentences else []
        return "\n".join([*said, head, *rows, f"({self.label})"])

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{escape(name).replace('/ ', '/&nbsp;')}</th>" for name, _ in columns)
        counted = {line for _, cells in columns for line in cells}
        rows = "".join(
            f"<tr{_marks(number) if number in counted else ''}><td>{number}</td>"
            f"{''.join(_td(cells.get(number)) for _, cells in columns)}"
            f"<td>{escape(self.profile.source_line(number))}</td></tr>"
            for number in kernel_lines(self.profile)
        )
        items = "".join(_item(sentence) for sentence in self.sentences)
        said = f"<ul>{items}</ul>" if items else ""
        style = _STYLE + "".join(_LINKED.format(line=line) for line in sorted(counted))
        return (
            f'<div class="labkit-heat"><style>{style}</style>{said}'
            '<div role="region" aria-label="the source with the costs of each line" tabindex="0"><table>'
            f"<thead><tr><th>line</th>{head}<th>source</th></tr></thead><tbody>{rows}</tbody></table></div>"
            f'<p class="hint">{escape(self.label)}. Point at a line to see what was counted.</p>'
            f"{''.join(self._tips(columns))}{self._counters()}</div>"
        )

    def _tips(self, columns: list[tuple[str, dict[int, Cell]]]) -> Iterator[str]:
        """Yield what is shown below the table while a line is pointed at: all that was counted there."""
        for line in sorted({line for _, cells in columns for line in cells}):
            titles = [cells[line].title for _, cells in columns if line in cells]
            yield f'<p class="t{line}" hidden>line {line}: {escape("; ".join(titles))}</p>'

    def _counters(self) -> str:
        """Return a table of the whole launch's counters, each with the lines that it comes from."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{sum(lines.values()):,}</td><td>{_shares(lines)}</td></tr>"
            for name, lines in counters_of(self.profile).items()
        )
        if not rows:
            return ""
        return (
            "<details><summary>Counters, and the lines that they come from</summary>"
            '<div role="region" aria-label="counters and their lines" tabindex="0"><table>'
            "<thead><tr><th>counter</th><th>total</th><th>lines</th></tr></thead>"
            f"<tbody>{rows}</tbody></table></div></details>"
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
        f'<td{kind}><span style="width:{cell.share:.0%}"></span>'
        f"<b>{escape(cell.text)}{' !' if cell.wasteful else ''}</b></td>"
    )


def _marks(line: int) -> str:
    """Return the attributes of what belongs to a line."""
    return f' class="l{line}" tabindex="0"'


def _item(sentence: str) -> str:
    found = re.match(r"line (\d+):", sentence)
    return f"<li{_marks(int(found[1])) if found else ''}>{escape(sentence)}</li>"


def _shares(lines: dict[int, int]) -> str:
    """List the lines of a counter, from the largest share down."""
    total = sum(lines.values())
    ordered = sorted(lines.items(), key=lambda found: (-found[1], found[0]))
    return " ".join(
        f"<span{_marks(line)}>line {line}: {count:,} ({count / total:.0%})</span>" for line, count in ordered
    )


# Okabe and Ito's vermillion and blue, transparent enough for black or white text in either theme.
_STYLE = """
.labkit-heat ul {margin: 0 0 .6em; padding-left: 1.2em}
.labkit-heat p {margin: .3em 0 0; opacity: .8; font-size: 85%}
.labkit-heat div {overflow-x: auto}
.labkit-heat table {border-collapse: collapse; margin: 0; color: inherit; font-size: 12px}
.labkit-heat th, .labkit-heat td {text-align: left !important; padding: 1px 10px !important; white-space: pre}
.labkit-heat th {white-space: normal !important; vertical-align: bottom !important}
.labkit-heat {container-type: inline-size}
@container (min-width: 560px) {.labkit-heat td:last-child {white-space: pre-wrap}}
.labkit-heat td {position: relative; font-family: var(--jp-code-font-family, monospace)}
.labkit-heat td:first-child, .labkit-heat td.none {opacity: .75}
.labkit-heat > div td:first-child, .labkit-heat > div th:first-child {text-align: right !important}
.labkit-heat td:last-child, .labkit-heat th:last-child {border-left: 1px solid rgba(128, 128, 128, .5)}
.labkit-heat td > span:empty {position: absolute; left: 0; top: 2px; bottom: 2px}
.labkit-heat td > span:empty {background: #0072B2; opacity: .25}
.labkit-heat td.much > span {background: #D55E00; opacity: .45}
.labkit-heat td b {position: relative; font-weight: normal}
.labkit-heat td.much b {font-weight: bold}
.labkit-heat summary {cursor: pointer; font-size: 85%; width: fit-content; margin-top: .3em}
.labkit-heat :focus-visible {outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: -2px}
.labkit-heat:has(tbody tr[class]:is(:hover, :focus)) .hint {display: none}
"""
_LINKED = """\
.labkit-heat:has(.l{line}:is(:hover, :focus)) .l{line} {{background: \
color-mix(in srgb, var(--jp-brand-color1, #1976d2) 25%, transparent) !important}}
.labkit-heat:has(tr.l{line}:is(:hover, :focus)) .t{line} {{display: block}}
"""
