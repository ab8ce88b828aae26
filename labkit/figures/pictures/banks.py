"""A picture of shared memory in its banks, with the words that a warp asks for in one request.

Word w of shared memory is in bank w % 32. In a block of TILE x TILE threads, thread t has x = t % TILE and y
= t / TILE. Bank conflicts are counted as in the simulator (`labkit.simt.counters.banks`).
Errors: ValueError for sizes that cannot be drawn.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from labkit.core.limits import WARP
from labkit.core.text import counted
from labkit.figures.pictures.product import headline
from labkit.figures.style import Plot
from labkit.simt.counters.banks import BANK_BYTES, BANKS, bank_conflicts

ROW, COLUMN, STRIDE = "row of the tile", "column of the tile", "every stride-th"
SIZES = {4: "float", 8: "double", 16: "float4"}  # bytes per element, and its type
FEWEST_ROWS, MOST_ROWS = 4, 40  # of words; if there are more, a picture shows only those that are touched

_FIRST, _LATER, _OTHERS, _ODD, _UNUSED = "#009E73", "#D55E00", "#DDDDDD", "#F2F2F2", "#FFFFFF"
_CELL = 0.26, 0.135  # width and height of a word, in inches
_LEFT, _BELOW, _BARS, _ABOVE = 0.8, 0.85, 0.7, 0.6  # inches: labels; legend and labels; bars; headline


@dataclass(frozen=True)
class Request:
    """What the lanes of one warp ask shared memory for: elements of `size` bytes.

    `access` is a ROW of a tile, tile[y][x], a COLUMN, tile[x][y], or every `stride`-th element. The tile is
    declared tile[TILE][TILE + padding]; where it is `swizzled`, element (row, col) is stored in column col ^
    row.
    """

    access: str = COLUMN
    tile: int = 32
    padding: int = 0
    swizzled: bool = False
    size: int = 4
    warp: int = 0
    stride: int = 1

    @cached_property
    def addresses(self) -> list[int]:
        """Return the address that each lane asks for, in bytes."""
        lanes = range(self.warp * WARP, (self.warp + 1) * WARP)
        if self.access == STRIDE:
            return [self.stride * (thread % WARP) * self.size for thread in lanes]
        places = [(thread % self.tile, thread // self.tile) for thread in lanes]  # (x, y)
        if self.access == ROW:
            places = [(y, x) for x, y in places]
        return [
            (row * self.row_elements + (col ^ row if self.swizzled else col)) * self.size
            for row, col in places
        ]

    @property
    def row_elements(self) -> int:
        """Return how many elements lie from one row of the tile to the next."""
        return self.tile + self.padding

    @property
    def elements(self) -> int:
        """Return the number of elements in the array in shared memory."""
        if self.access == STRIDE:
            return self.stride * (WARP - 1) + 1
        return self.tile * self.row_elements

    @property
    def words_each(self) -> int:
        """Return the words per element."""
        return self.size // BANK_BYTES

    @cached_property
    def parts(self) -> list[set[int]]:
        """Return the words that each part asks for: the whole warp, its halves or its quarters."""
        lanes = WARP // self.words_each
        words = [[a // BANK_BYTES + i for i in range(self.words_each)] for a in self.addresses]
        return [set().union(*words[first : first + lanes]) for first in range(0, WARP, lanes)]

    @cached_property
    def in_banks(self) -> np.ndarray:
        """Count the different words that each part asks each bank for: (parts, 32)."""
        return np.array([np.bincount([w % BANKS for w in part], minlength=BANKS) for part in self.parts])

    @property
    def conflicts(self) -> int:
        """Return the passes over the banks beyond one per part."""
        return bank_conflicts(self.addresses, self.size)

    @property
    def wavefronts(self) -> int:
        """Return the passes over the banks."""
        return len(self.parts) + self.conflicts


def banks(request: Request) -> Plot:
    """Draw shared memory with one column per bank; the words that `request` asks for are numbered."""
    touched = sorted({word // BANKS for part in request.parts for word in part})
    last = (request.elements * request.words_each - 1) // BANKS
    rows = list(range(max(last + 1, FEWEST_ROWS))) if last < MOST_ROWS else touched
    width, height = _CELL[0] * BANKS, _CELL[1] * len(rows)
    figure = Plot(figsize=(_LEFT + width + 0.2, _BELOW + height + 0.12 + _BARS + _ABOVE))
    words = _inches(figure, _LEFT, _BELOW, width, height)
    passes = _waiting(request)
    colors = np.array([[_background(request, row * BANKS + bank) for bank in range(BANKS)] for row in rows])
    for word, turn in passes.items():
        colors[rows.index(word // BANKS), word % BANKS] = to_rgb(_LATER if turn else _FIRST)
    words.imshow(colors, aspect="auto")
    words.vlines(
        np.arange(request.words_each, BANKS, request.words_each) - 0.5,
        -0.5,
        len(rows) - 0.5,
        color="white",
        linewidth=0.6,
    )
    words.hlines(np.arange(1, len(rows)) - 0.5, -0.5, BANKS - 0.5, color="white", linewidth=0.6)
    _number_lanes(words, request, rows)
    each = -(-len(rows) // 8)
    words.set_yticks(range(0, len(rows), each), [str(row * BANKS) for row in rows[::each]])
    words.set_xticks([*range(0, BANKS, 4), BANKS - 1])
    words.set(xlabel="bank (word % 32)", ylabel="first word of the row" if len(rows) > 12 else "word")
    _draw_bars(_inches(figure, _LEFT, _BELOW + height + 0.12, width, _BARS), request)
    _legend(figure, request)
    skipped = max(0, last + 1 - len(rows))
    headline(
        figure,
        f"{counted(request.wavefronts, 'wavefront')}, {counted(request.conflicts, 'bank conflict')}: "
        f"{title(request)}",
        f"numbers are lanes of warp {request.warp}"
        + (f"; {skipped} rows of words that no lane touches are left out" if skipped else ""),
    )
    return figure


def title(request: Request) -> str:
    """Say in a few words what is asked for."""
    if request.access == STRIDE:
        return f"{SIZES[request.size]} number {request.stride} * lane"
    index = "[y][x]" if request.access == ROW else "[x][y]"
    swizzled = ", swizzled" if request.swizzled else ""
    return (
        f"tile{index}, a {request.access}, {SIZES[request.size]} tile[{request.tile}]"
        f"[{request.row_elements}]{swizzled}"
    )


def _inches(figure: Plot, left: float, bottom: float, width: float, height: float) -> Axes:
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def _waiting(request: Request) -> dict[int, int]:
    """Map each requested word to how many words of its bank come before it in its part."""
    turns: dict[int, int] = {}
    for part in request.parts:
        before = [0] * BANKS
        for word in sorted(part):
            turns[word] = max(turns.get(word, 0), before[word % BANKS])
            before[word % BANKS] += 1
    return turns


def _background(request: Request, word: int) -> tuple[float, float, float]:
    """Shade the rows of a tile alternately; what is unused or outside is white."""
    row, col = divmod(word // request.words_each, request.row_elements)
    if request.access == STRIDE:
        return to_rgb(_ODD if word < request.elements * request.words_each else _UNUSED)
    if row >= request.tile or col >= request.tile:
        return to_rgb(_UNUSED)
    return to_rgb(_ODD if row % 2 else _OTHERS)


def _number_lanes(axes: Axes, request: Request, rows: list[int]) -> None:
    """Write the lane at each element that it asks for; where several lanes ask, write how many."""
    lanes: dict[int, list[int]] = {}
    for lane, address in enumerate(request.addresses):
        lanes.setdefault(address // BANK_BYTES, []).append(lane)
    for word, asking in lanes.items():
        axes.text(
            word % BANKS + (request.words_each - 1) / 2,
            rows.index(word // BANKS),
            str(asking[0]) if len(asking) == 1 else f"×{len(asking)}",
            ha="center",
            va="center_baseline",
            fontsize=8,
        )


def _draw_bars(axes: Axes, request: Request) -> None:
    """Draw the words that each bank is asked for: those of a first pass, and those that wait."""
    asked = request.in_banks.sum(axis=0)
    first = (request.in_banks > 0).sum(axis=0)
    width = 0.8 * _CELL[0] * 72  # points
    axes.vlines(range(BANKS), 0, first, color=_FIRST, linewidth=width)
    axes.vlines(range(BANKS), first, asked, color=_LATER, linewidth=width)
    most = int(asked.max())
    axes.set(xlim=(-0.5, BANKS - 0.5), ylim=(0, 1.15 * max(most, 4)), ylabel="words")
    axes.set_yticks([0, most])
    axes.set_xticks([])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _legend(figure: Plot, request: Request) -> None:
    named = {"first pass": _FIRST}
    if request.conflicts:
        named["waits for a later pass"] = _LATER
    if request.access != STRIDE:
        named |= {"rows of the tile": _OTHERS} | ({"unused": _UNUSED} if request.padding else {})
    handles = [Patch(facecolor=color, edgecolor="0.6", label=name) for name, color in named.items()]
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.06, 0), ncols=4, fontsize=9, frameon=False
    )
