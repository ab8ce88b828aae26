"""A picture of shared memory in its banks, with the words that a warp asks for in one request.

Word w of shared memory is in bank w % 32. In a block of TILE x TILE threads, thread t has x = t % TILE and y
= t / TILE. Bank conflicts are counted as in the simulator (`simt.counters.banks`).
Errors: ValueError for sizes that cannot be drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.figures.svg import GREEN, RED, Svg, ink_on
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.banks import BANK_BYTES, BANKS, bank_conflicts

ROW, COLUMN, STRIDE = "row of the tile", "column of the tile", "every stride-th"
SIZES = {4: "float", 8: "double", 16: "float4"}  # bytes per element, and its type
FEWEST_ROWS, MOST_ROWS = 4, 40  # of words; if there are more, a picture shows only those that are touched

_FIRST, _LATER = GREEN, RED
_LEFT, _TOP, _WIDE, _HIGH, _BARS = 46, 50, 18, 12, 56  # pixels: the corner, a word's cell, the bars


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

    @cached_property
    def passes(self) -> list[tuple[int, set[int]]]:
        """Return the words of each pass over the banks, after its place among those of its part, from 0."""
        found: list[tuple[int, set[int]]] = []
        for part in self.parts:
            before = [0] * BANKS
            turns: list[set[int]] = []
            for word in sorted(part):
                turn = before[word % BANKS]
                before[word % BANKS] += 1
                if turn == len(turns):
                    turns.append(set())
                turns[turn].add(word)
            found += enumerate(turns)
        return found

    @property
    def conflicts(self) -> int:
        """Return the passes over the banks beyond one per part."""
        return bank_conflicts(self.addresses, self.size)

    @property
    def wavefronts(self) -> int:
        """Return the passes over the banks."""
        return len(self.parts) + self.conflicts


def banks(request: Request, step: int = 0) -> Svg:
    """Draw shared memory with one column per bank; the words that `request` asks for carry their lanes.

    The words of pass `step`, from 1, have a frame, and those that were served before are pale; 0 shows all
    alike.
    """
    touched = sorted({word // BANKS for part in request.parts for word in part})
    last = (request.elements * request.words_each - 1) // BANKS
    rows = list(range(max(last + 1, FEWEST_ROWS))) if last < MOST_ROWS else touched
    skipped = max(0, last + 1 - len(rows))
    told = f"{counted(request.wavefronts, 'wavefront')}, {counted(request.conflicts, 'bank conflict')}"
    below = _TOP + _HIGH * len(rows)
    picture = Svg(_LEFT + BANKS * _WIDE + 6, below + _BARS + 72, f"{told}: {title(request)}")
    picture.title(title(request))
    left_out = f"; {skipped} rows of words that no lane touches are left out" if skipped else ""
    picture.text(8, 32, f"Numbers are lanes of warp {request.warp}{left_out}.", class_="soft")
    kinds = np.array([[_kind(request, row * BANKS + bank) for bank in range(BANKS)] for row in rows])
    picture.cells(_LEFT, _TOP, (_WIDE, _HIGH), kinds, _GROUNDS)
    for row, number in enumerate(rows):
        if row % -(-len(rows) // 8) == 0:
            picture.text(_LEFT - 6, _TOP + (row + 0.5) * _HIGH, str(number * BANKS), "end", class_="soft")
    lanes = _lanes(request)
    for word in sorted(set().union(*request.parts), reverse=True):  # a name may reach over the next word
        x, y = _LEFT + word % BANKS * _WIDE, _TOP + rows.index(word // BANKS) * _HIGH
        passes = [number for number, (_, words) in enumerate(request.passes, 1) if word in words]
        colour = _LATER if any(request.passes[number - 1][0] for number in passes) else _FIRST
        pale = step > max(passes)
        link = " ".join([f"bank{word % BANKS}", *(f"pass{number}" for number in passes)])
        with picture.group(data_link=link, data_tip=_of_word(request, word, passes, lanes)):
            picture.rect(x, y, _WIDE - 1, _HIGH - 1, fill=colour, fill_opacity=0.35 if pale else None)
            if word in lanes:
                name = str(lanes[word][0]) if len(lanes[word]) == 1 else f"×{len(lanes[word])}"
                middle, ink = x + (_WIDE * request.words_each - 1) / 2, None if pale else ink_on(colour)
                picture.text(middle, y + _HIGH / 2, name, "middle", class_=ink, font_size=11)
            if step in passes:
                picture.rect(x, y, _WIDE - 1, _HIGH - 1, class_="line", stroke_width=2.5)
    _draw_bars(picture, request, below)
    return picture


def _lanes(request: Request) -> dict[int, list[int]]:
    """Map the first word of each element that is asked for to the lanes that ask."""
    lanes: dict[int, list[int]] = {}
    for lane, address in enumerate(request.addresses):
        lanes.setdefault(address // BANK_BYTES, []).append(lane)
    return lanes


def _of_word(request: Request, word: int, passes: Sequence[int], lanes: Mapping[int, Sequence[int]]) -> str:
    """Say who asks for a word, and when it is served."""
    who = lanes[next(word - back for back in range(request.words_each) if word - back in lanes)]
    name = f"lane {who[0]}" if len(who) == 1 else f"{len(who)} lanes, {who[0]} to {who[-1]}"
    served = ", ".join(map(str, passes))
    return f"Word {word}, bank {word % BANKS}: asked for by {name}; pass {served} of {request.wavefronts}."


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


_PLAIN, _ODD, _UNUSED = range(3)
_GROUNDS: list[dict[str, object]] = [
    {"class_": "mid"},
    {"class_": "empty"},
    {"class_": "grid", "stroke_dasharray": "2 2"},
]


def _kind(request: Request, word: int) -> int:
    """Tell the rows of a tile apart, alternately, and what is unused; -1 lies outside."""
    row, col = divmod(word // request.words_each, request.row_elements)
    if request.access == STRIDE:
        return _ODD if word < request.elements * request.words_each else -1
    if row >= request.tile:
        return -1
    return _UNUSED if col >= request.tile else _ODD if row % 2 else _PLAIN


def _draw_bars(picture: Svg, request: Request, top: float) -> None:
    """Draw the words that each bank is asked for: those of a first pass, and those that wait."""
    asked, first = request.in_banks.sum(axis=0), (request.in_banks > 0).sum(axis=0)
    most, base = int(asked.max()), top + _BARS + 6
    unit = (_BARS - 8) / max(most, 4)
    picture.text(_LEFT - 6, base - unit * most, str(most), "end", class_="soft")
    picture.text(_LEFT - 6, base, "0", "end", class_="soft")
    picture.text(12, base, "words", transform=f"rotate(-90 12 {base})")
    picture.line(_LEFT, base, _LEFT + BANKS * _WIDE, base)
    for bank in range(BANKS):
        x, at_once, waiting = _LEFT + bank * _WIDE, int(first[bank]), int(asked[bank] - first[bank])
        tip = f"Bank {bank}: {counted(at_once + waiting, 'word')} asked for, {waiting} of them wait."
        with picture.group(data_link=f"bank{bank}", data_tip=tip):
            picture.rect(x, base - _BARS, _WIDE, _BARS, fill="transparent")
            picture.rect(x + 2, base - unit * at_once, _WIDE - 5, unit * at_once, fill=_FIRST)
            picture.rect(x + 2, base - unit * (at_once + waiting), _WIDE - 5, unit * waiting, fill=_LATER)
        if bank % 4 == 0 or bank == BANKS - 1:
            picture.text(x + _WIDE / 2, base + 12, str(bank), "middle", class_="soft")
    picture.text(_LEFT + BANKS * _WIDE / 2, base + 30, "bank (word % 32)", "middle")
    entries: list[tuple[str, dict[str, object]]] = [("first pass", {"fill": _FIRST})]
    if request.conflicts:
        entries.append(("waits for a later pass", {"fill": _LATER}))
    if request.access != STRIDE:
        entries.append(("rows of the tile", _GROUNDS[_PLAIN]))
        if request.padding:
            entries.append(("unused", _GROUNDS[_UNUSED]))
    picture.legend(_LEFT, base + 52, entries)
