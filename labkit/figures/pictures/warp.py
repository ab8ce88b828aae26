"""A picture of a warp's time: its source, and beside it its 32 lanes, which work or wait as time runs down.

It shows a run of the compiled kernel in the simulator (simt/trace.py), at PTX level. A GPU's assembler may
merge or reorder instructions, and turn a short branch into instructions that some lanes ignore.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np

from labkit.figures.svg import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Svg
from simt.common.limits import WARP
from simt.common.text import counted
from simt.module import Kernel
from simt.trace import Step, trace

_ALL, _SOME = BLUE, (ORANGE, GREEN, PURPLE, SKY, RED)  # for all lanes at once, and per line for some of them
_TOP, _HEIGHT, _LANE = 60, 364, 8  # where the lanes begin, the height of all time, and a lane's width
_LINE, _LETTER = 18, 6.65  # pixels: a line of the source, and one of its letters
_SHORT = 35  # letters: room for the longest line at least
_LABEL = 12  # between two numbers, one below the other


@dataclass(frozen=True)
class Rows:
    """What a warp ran: the source line of each instruction, and its active lanes, (instructions, 32)."""

    lines: np.ndarray
    active: np.ndarray

    @property
    def mean(self) -> float:
        """Return the active lanes per instruction, on average."""
        return float(self.active.sum() / len(self.active))

    def lanes_at(self, line: int) -> float:
        """Return the active lanes per instruction of a source line, on average."""
        return float(self.active[self.lines == line].sum(1).mean())

    def passes(self) -> Iterator[tuple[int, int]]:
        """Yield (first, end) of the instructions that follow each other in one line with the same lanes."""
        other = (self.lines[1:] != self.lines[:-1]) | (self.active[1:] != self.active[:-1]).any(1)
        starts = [0, *(np.flatnonzero(other) + 1).tolist()]
        yield from zip(starts, [*starts[1:], len(self.lines)], strict=True)

    @cached_property
    def waits(self) -> np.ndarray:
        """Say which lanes wait at which instruction: they are not active, and still will be."""
        later = np.flip(np.logical_or.accumulate(np.flip(self.active, 0)), 0)
        found: np.ndarray = later & ~self.active
        return found


@dataclass(frozen=True)
class Line:
    """A source line in `Rows`: its instructions, who ran any, and the turns in which other lanes waited.

    `lanes` is the average per instruction. `color` is that of instructions for some lanes only; `whole` says
    whether there are others.
    """

    number: int
    instructions: int
    lanes: float
    who: np.ndarray
    waits: int
    whole: bool
    color: str

    def __str__(self) -> str:
        return f"line {self.number}: {counted(self.instructions, 'instruction')}, {self.lanes:.3g} lanes"

    @property
    def tip(self) -> str:
        """Say what the line costs."""
        lost = f"{self.waits} lane slots lost to waiting" if self.waits else "no lane waits"
        count = counted(self.instructions, "instruction")
        return f"Line {self.number}: {count} for {lanes_in_words(self.who)}; {lost}."


def rows_of(steps: Sequence[Step], warp: int) -> Rows:
    """Collect one row per instruction of a warp. Raises ValueError for a warp that has run nothing."""
    own = [(i.line, step.lanes) for step in steps if step.warp == warp for i in step.instructions]
    if not own:
        raise ValueError(f"the block has no warp {warp}. Choose 0 to {max(s.warp for s in steps)}.")
    return Rows(np.array([line for line, _ in own]), np.array([lanes for _, lanes in own]))


def warp_time(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    number: int = 0,
    warp: int = 0,
) -> Svg:
    """Draw one warp of block `number` of a launch in the simulator, with NumPy arguments.

    Raises ValueError for a warp that the block does not have, and what a launch raises.
    """
    return drawn(rows_of(trace(kernel, grid, block, args, number=number), warp), warp, kernel.module.lines)


def drawn(rows: Rows, warp: int, source: Sequence[str]) -> Svg:
    """Draw the source, and beside it the lanes across and time downwards; both have a line's colour.

    In an explorer, pointing at a line marks what the warp does for it, and the lanes that do it; pointing at
    an instruction marks its line, and at a thread the lines that it runs.
    """
    first = next((i for i, line in enumerate(source, 1) if line.strip()), 1)
    listed = {n: source[n - 1].replace("\t", "    ").rstrip() for n in range(first, len(source) + 1)}
    left = 36 + _LETTER * max(_SHORT, *map(len, listed.values())) + 92
    lines = _lines(rows)
    told = (
        f"warp {warp}: {len(rows.lines)} instructions, on average {rows.mean:.3g} of {WARP} lanes active. "
        f"Source lines beside the lanes over time: {'; '.join(map(str, lines.values()))}"
    )
    height = max(_HEIGHT, _LINE * len(listed) + 96)
    picture = Svg(left + WARP * _LANE + 22, _TOP + height + 26, told)
    _draw_source(picture, listed, lines, left - 29)
    _draw_legend(picture, 4, _TOP + height - 58)
    _draw_threads(picture, rows, warp, lines, left)
    _draw_lanes(picture, rows, warp, lines, left)
    return picture


def lanes_in_words(lanes: np.ndarray) -> str:
    """Name the lanes that are set: all 32 lanes; lanes 0 to 7; lanes 0, 3, 6, …, 30 (11)."""
    chosen = np.flatnonzero(lanes).tolist()
    if len(chosen) == WARP:
        return f"all {WARP} lanes"
    if len(chosen) == 1:
        return f"lane {chosen[0]}"
    if chosen[-1] - chosen[0] == len(chosen) - 1:
        return f"lanes {chosen[0]} to {chosen[-1]}"
    if len(chosen) <= 4:
        return f"lanes {', '.join(map(str, chosen))}"
    return f"{len(chosen)} lanes ({', '.join(map(str, chosen[:3]))}, …, {chosen[-1]})"


def _lines(rows: Rows) -> dict[int, Line]:
    """Return what ran of each line; a line that some lanes ran without others gets a colour of its own."""
    found: dict[int, Line] = {}
    colors = cycle(_SOME)
    for number in np.unique(rows.lines).tolist():
        at = rows.lines == number
        active = rows.active[at]
        whole = active.all(1)
        color = _ALL if whole.all() else next(colors)
        waits = int(rows.waits[at].sum())
        found[number] = Line(
            number, len(active), active.sum() / len(active), active.any(0), waits, bool(whole.any()), color
        )
    return found


def _draw_source(picture: Svg, listed: dict[int, str], lines: dict[int, Line], right: float) -> None:
    """Draw the source; lines that ran have their colours before them, instructions and lanes behind them."""
    picture.text(right - 36, _TOP - 14, "instr.", "end", class_="soft", font_size=11)
    picture.text(right - 2, _TOP - 14, "lanes", "end", class_="soft", font_size=11)
    for place, (number, text) in enumerate(listed.items()):
        y = _TOP + _LINE * (place + 0.5)
        line, link = lines.get(number), f"line-{number}"
        mark = {"data_link": link, "data_key": link, "data_tip": line.tip, "tabindex": 0} if line else {}
        with picture.group(font_size=11, **mark):
            if line:
                picture.rect(1, y - _LINE / 2, right - 1, _LINE, fill="transparent")
                picture.rect(4, y - 6, 10, 12, fill=line.color, stroke="none")
                if line.whole:
                    picture.rect(4, y - 6, 5, 12, fill=_ALL, stroke="none")
                picture.text(right - 36, y, str(line.instructions), "end")
                weight = "700" if line.lanes < WARP else None
                picture.text(right - 4, y, f"{line.lanes:.3g}", "end", font_weight=weight)
            picture.text(31, y, str(number), "end", class_="soft")
            if text:
                picture.text(36, y, text, class_="code")


def _draw_legend(picture: Svg, x: float, y: float) -> None:
    picture.rect(x, y - 6, 12, 12, fill=_ALL)
    picture.text(x + 20, y, f"work of all {WARP} lanes")
    for i, color in enumerate(_SOME[:2]):
        picture.rect(x + 6 * i, y + 14, 6, 12, fill=color)
    picture.text(x + 20, y + 20, "work of some lanes only, a colour per line")
    picture.line(x + 6, y + 33, x + 6, y + 47)
    picture.text(x + 20, y + 40, "the lane waits; empty: it has ended")


def _draw_lanes(picture: Svg, rows: Rows, warp: int, lines: dict[int, Line], left: float) -> None:
    """Draw the work of each lane as boxes, and its waiting as a thin line, with the line at each pass."""
    step, right = _HEIGHT / len(rows.lines), left + WARP * _LANE
    picture.text(right + 21, _TOP - 14, "line", "end", class_="soft", font_size=11)
    picture.rect(left, _TOP, right - left, _HEIGHT, class_="empty")
    waits = _columns(rows.waits)
    middles = [(left + (lane + 0.5) * _LANE, a * step, b * step) for lane, a, b in waits]
    picture.path("".join(f"M{x:.1f} {_TOP + a:.1f}V{_TOP + b:.1f}" for x, a, b in middles), class_="line")
    waiting, marked = rows.waits.sum(1).tolist(), -_LABEL * 1.0
    for begin, end in rows.passes():
        line, lanes = int(rows.lines[begin]), rows.active[begin]
        y, tall = _TOP + begin * step, (end - begin) * step
        when = f"Instruction {begin}" if end == begin + 1 else f"Instructions {begin} to {end - 1}"
        tip = f"{when}, of line {line}: {lanes_in_words(lanes)} of warp {warp}"
        tip += f"; {waiting[begin]} wait." if waiting[begin] else "."
        with picture.group(data_link=f"line-{line}", data_tip=tip):
            picture.rect(left, y, right - left, tall, fill="transparent")
            box = f"v{tall - min(1.0, tall / 4):.2f}h"
            boxes = [
                f"M{left + a * _LANE:.1f} {y:.2f}h{(b - a) * _LANE}{box}{(a - b) * _LANE}z"
                for a, b in _runs(lanes)
            ]
            picture.path("".join(boxes), fill=_ALL if lanes.all() else lines[line].color)
            if line and y + tall / 2 - marked >= _LABEL:
                marked = y + tall / 2
                picture.text(right + 6, marked, str(line), font_size=11)
    gaps = "".join(f"M{left + lane * _LANE:.1f} {_TOP}v{_HEIGHT}" for lane in range(1, WARP))
    picture.path(gaps, class_="hole", pointer_events="none")
    for number in _numbers(len(rows.lines), step):
        picture.text(left - 6, _TOP + (number + 0.5) * step, str(number), "end", class_="soft", font_size=11)


def _draw_threads(picture: Svg, rows: Rows, warp: int, lines: dict[int, Line], left: float) -> None:
    """Draw a box per thread above its lane, which marks the lines that it runs, and number each fourth."""
    picture.text(left, _TOP - 48, f"threads of warp {warp}, time downwards")
    active, waits = rows.active.sum(0).tolist(), rows.waits.sum(0).tolist()
    for lane in range(WARP):
        x, thread = left + lane * _LANE, WARP * warp + lane
        picture.rect(
            *(x, _TOP - 22, _LANE - 1, 18),
            class_="mid",
            data_link=" ".join(f"line-{number}" for number, line in lines.items() if line.who[lane]),
            data_tip=f"Thread {thread} takes part in {active[lane]} of {len(rows.lines)} instructions and "
            f"waits for {waits[lane]}.",
        )
        if lane % 4 == 0:
            picture.text(x, _TOP - 30, str(thread), class_="soft", font_size=11)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return (first, end) of each run of flags that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _columns(flags: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield (column, first, end) of each run of flags that are set, one below the other."""
    for column in range(flags.shape[1]):
        for first, end in _runs(flags[:, column]):
            yield column, first, end


def _numbers(count: int, step: float) -> range:
    """Return the instructions to number: so many as have room."""
    return range(0, count, next(each for each in (1, 2, 5, 10, 20, 50, 100, 200, count) if each * step >= 16))
