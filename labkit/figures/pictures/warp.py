"""A picture of a warp's time: its source, and beside it its 32 lanes, which work or wait as time runs down.

It shows a run of the compiled kernel in the simulator (simt/trace.py), at PTX level. A GPU's assembler may
merge or reorder instructions, and turn a short branch into instructions that some lanes ignore.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labkit.core.limits import WARP
from labkit.core.text import counted
from labkit.figures.svg import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Svg
from labkit.simt.module import Kernel
from labkit.simt.trace import Step, trace

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
    told = (
        f"warp {warp}: {len(rows.lines)} instructions, on average {rows.mean:.3g} of {WARP} lanes active. "
        "Source lines beside the lanes over time: "
        + "; ".join(_told(rows, line) for line in np.unique(rows.lines).tolist())
    )
    height = max(_HEIGHT, _LINE * len(listed) + 96)
    picture = Svg(left + WARP * _LANE + 22, _TOP + height + 26, told)
    colors = _colors(rows)
    _draw_source(picture, rows, listed, colors, left - 29)
    _draw_legend(picture, 4, _TOP + height - 58)
    _draw_lanes(picture, rows, warp, colors, left)
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


def _colors(rows: Rows) -> dict[int, str]:
    """Give each line that ran the colour of its work for some lanes only; _ALL if there is none."""
    colors, parted = {}, 0
    for line in np.unique(rows.lines).tolist():
        whole = rows.lanes_at(line) == WARP
        colors[line] = _ALL if whole else _SOME[parted % len(_SOME)]
        parted += not whole
    return colors


def _often_whole(rows: Rows, line: int) -> bool:
    """Say whether an instruction of the line has run for all lanes."""
    return bool(rows.active[rows.lines == line].all(1).any())


def _told(rows: Rows, line: int) -> str:
    """Say what a line costs."""
    count, lanes = int((rows.lines == line).sum()), rows.lanes_at(line)
    return f"line {line}: {counted(count, 'instruction')}, {lanes:.3g} lanes"


def _draw_source(
    picture: Svg, rows: Rows, listed: dict[int, str], colors: dict[int, str], right: float
) -> None:
    """Draw the source; lines that ran have their colours before them, instructions and lanes behind them."""
    picture.text(right - 36, _TOP - 14, "instr.", "end", class_="soft", font_size=11)
    picture.text(right - 2, _TOP - 14, "lanes", "end", class_="soft", font_size=11)
    for place, (number, text) in enumerate(listed.items()):
        y = _TOP + _LINE * (place + 0.5)
        ran = number in colors
        tip: dict[str, object] = {}
        if ran:
            active = rows.active[rows.lines == number]
            waiting = int(rows.waits[rows.lines == number].sum())
            names = lanes_in_words(active.any(0))
            lost = f"; {waiting} lane slots lost to waiting" if waiting else "; no lane waits"
            tip = {
                "data_link": f"line-{number}",
                "data_key": f"line-{number}",
                "data_tip": f"Line {number}: {counted(len(active), 'instruction')} for {names}{lost}.",
                "tabindex": 0,
            }
        with picture.group(class_="lk-source", **tip):
            picture.rect(1, y - _LINE / 2, right - 1, _LINE, fill="transparent", stroke="none")
            if ran:
                picture.rect(4, y - 6, 10, 12, fill=colors[number], stroke="none")
                if _often_whole(rows, number):
                    picture.rect(4, y - 6, 5, 12, fill=_ALL, stroke="none")
                count, lanes = int((rows.lines == number).sum()), rows.lanes_at(number)
                picture.text(right - 36, y, str(count), "end", font_size=11)
                weight = "700" if lanes < WARP else None
                picture.text(right - 4, y, f"{lanes:.3g}", "end", font_size=11, font_weight=weight)
            picture.text(31, y, str(number), "end", class_="soft", font_size=11)
            picture.text(36, y, text, class_="code", font_size=11)


def _draw_legend(picture: Svg, x: float, y: float) -> None:
    picture.rect(x, y - 6, 12, 12, fill=_ALL)
    picture.text(x + 20, y, f"work of all {WARP} lanes")
    for i, color in enumerate(_SOME[:2]):
        picture.rect(x + 6 * i, y + 14, 6, 12, fill=color)
    picture.text(x + 20, y + 20, "work of some lanes only, a colour per line")
    picture.line(x + 6, y + 33, x + 6, y + 47)
    picture.text(x + 20, y + 40, "the lane waits; empty: it has ended")


def _draw_lanes(picture: Svg, rows: Rows, warp: int, colors: dict[int, str], left: float) -> None:
    step, right = _HEIGHT / len(rows.lines), left + WARP * _LANE
    picture.text(left, _TOP - 48, f"threads of warp {warp}, time downwards")
    picture.text(right + 4, _TOP - 14, "line", class_="soft", font_size=11)
    _draw_threads(picture, rows, warp, left)
    picture.rect(left, _TOP, right - left, _HEIGHT, class_="empty")
    waits = _columns(rows.waits)
    middles = [(left + (lane + 0.5) * _LANE, a * step, b * step) for lane, a, b in waits]
    picture.path("".join(f"M{x:.1f} {_TOP + a:.1f}V{_TOP + b:.1f}" for x, a, b in middles), class_="line")
    marked = -_LABEL * 1.0
    for begin, end in rows.passes():
        line, lanes = int(rows.lines[begin]), rows.active[begin]
        y, tall = _TOP + begin * step, (end - begin) * step
        when = f"Instruction {begin}" if end == begin + 1 else f"Instructions {begin} to {end - 1}"
        tip = f"{when}, of line {line}: {lanes_in_words(lanes)} of warp {warp}"
        waiting = int(rows.waits[begin].sum())
        tip += f"; {waiting} wait." if waiting else "."
        with picture.group(data_link=f"line-{line}", data_tip=tip):
            picture.rect(left, y, right - left, tall, fill="transparent")
            box = f"v{tall - min(1.0, tall / 4):.2f}h"
            boxes = [
                f"M{left + a * _LANE:.1f} {y:.2f}h{(b - a) * _LANE}{box}{(a - b) * _LANE}z"
                for a, b in _runs(lanes)
            ]
            picture.path("".join(boxes), fill=_ALL if lanes.all() else colors[line])
            if line and y + tall / 2 - marked >= _LABEL:
                marked = y + tall / 2
                picture.text(right + 6, marked, str(line), font_size=11)
    gaps = "".join(f"M{left + lane * _LANE:.1f} {_TOP}v{_HEIGHT}" for lane in range(1, WARP))
    picture.path(gaps, class_="hole", pointer_events="none")
    for number in _numbers(len(rows.lines), step):
        picture.text(left - 6, _TOP + (number + 0.5) * step, str(number), "end", class_="soft", font_size=11)


def _draw_threads(picture: Svg, rows: Rows, warp: int, left: float) -> None:
    """Draw a box per thread above its lane, which marks the lines that it runs, and number each fourth."""
    for lane in range(WARP):
        own, waits = rows.active[:, lane], int(rows.waits[:, lane].sum())
        lines = np.unique(rows.lines[own]).tolist()
        x, thread = left + lane * _LANE, WARP * warp + lane
        tip = f"Thread {thread} takes part in {own.sum()} of {len(own)} instructions and waits for {waits}."
        with picture.group(data_link=" ".join(f"line-{line}" for line in lines), data_tip=tip):
            picture.rect(x, _TOP - 22, _LANE - 1, 18, class_="mid")
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
