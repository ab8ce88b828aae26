"""Pictures of results that are made of partial results: the sum of all blocks, and a softmax of two parts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labkit.figures.pictures.timelines import Bar, Timeline
from labkit.figures.svg import BLUE, GREEN, ORANGE, PURPLE, SKY, Svg

_FENCE, _TICKET, _WRITE = 0.5, 1.1, 1.3  # units of time that each takes
_FINISHED = (3.2, 5.6, 2.0, 4.4)  # when each block has the sum of its part
_ADD, _EACH = 2.6, 4  # how long the last block adds; the elements of a part


@dataclass(frozen=True)
class Block:
    """What a block does in a sum by all blocks: its sum, when it has it, and the ticket that it takes."""

    number: int
    sum: int
    ready: float
    ticket: int

    @property
    def counted(self) -> float:
        """Return when it has its ticket."""
        return self.ready + _WRITE + _FENCE + _TICKET


def blocks() -> list[Block]:
    """Return the blocks, which add 1, 2, 3, …, four each, with tickets in the order in which they end."""
    sums = np.arange(1, _EACH * len(_FINISHED) + 1).reshape(-1, _EACH).sum(axis=1).tolist()
    tickets = np.argsort(np.argsort(_FINISHED)).tolist()
    return [Block(number, *each) for number, each in enumerate(zip(sums, _FINISHED, tickets, strict=True))]


def last_block() -> Svg:
    """Draw blocks that write their sums and take tickets; the one with the last ticket adds the sums."""
    every = blocks()
    last = max(every, key=lambda block: block.ticket)
    total = sum(block.sum for block in every)
    takes = f"Block {last.number} takes the last ticket, {last.ticket}"
    finding = f"{takes}: all sums are there, and it adds them up: {total}"
    told = "A fence stands between the write of a block's sum and its ticket."
    end = last.counted + _ADD
    time = Timeline(finding, told, end, len(every), 88)
    looks: list[tuple[str, dict[str, object]]] = [
        ("writes block_sums[block]", {"fill": ORANGE}),
        ("__threadfence()", {"fill": PURPLE}),
        ("ticket = atomicAdd(&finished, 1)", {"fill": SKY}),
    ]
    time.picture.legend(92, 36, looks)
    why = "The fence: a block's sum is in memory before its ticket says so."
    time.picture.text(92, 60, why, class_="soft")
    for block in every:
        written = block.ready + _WRITE
        bars = [
            Bar(0, block.ready, "adds its part", BLUE),
            Bar(block.ready, written, f"writes {block.sum}", ORANGE),
            Bar(written, written + _FENCE, "", PURPLE),
            Bar(written + _FENCE, block.counted, f"ticket {block.ticket}", SKY),
        ]
        adds = "reads and adds\n" + " + ".join(str(each.sum) for each in every)
        ends = Bar(block.counted, end, "has ended", waits=True)
        bars.append(Bar(block.counted, end, adds, GREEN) if block is last else ends)
        time.row(block.number, f"block {block.number}", bars)
    return time.picture


@dataclass(frozen=True)
class Part:
    """A part of a softmax: the maximum m of its elements x, and the sum s of exp(x - m)."""

    m: float
    s: float


def part(values: Sequence[float]) -> Part:
    """Return the maximum and the sum of some elements."""
    m = max(values)
    return Part(m, float(np.exp(np.subtract(values, m)).sum()))


def merged(first: Part, second: Part) -> Part:
    """Return the part that two parts make, from nothing but their maxima and sums."""
    m = max(first.m, second.m)
    return Part(m, float(first.s * np.exp(first.m - m) + second.s * np.exp(second.m - m)))


_TOP, _HIGH = 108.0, 110.0  # pixels: the charts
_CHARTS = (60.0, 148.0), (252.0, 148.0), (444.0, 262.0)  # the left of each chart, and its width
_MOST = 6  # elements of both parts
_COLOURS = BLUE, ORANGE  # of the parts
_PALE = 0.35


def merged_softmax(first: Sequence[float] = (1, 3, 2), second: Sequence[float] = (4, 0, 3)) -> Svg:
    """Draw exp(x - m) of each element x of two parts, and of both together, with how m and s merge.

    Raises ValueError for parts that cannot be drawn.
    """
    both = [*first, *second]
    if not (len(first) and len(second)) or len(both) > _MOST:
        raise ValueError(
            f"parts of {len(first)} and {len(second)} elements cannot be drawn. Choose at least one each, "
            f"and together at most {_MOST}."
        )
    parts = part(first), part(second)
    whole = merged(*parts)
    shrunk = [float(np.exp(each.m - whole.m)) for each in parts]
    terms = " + ".join(f"{each.s:.4g} × {by:.3g}" for each, by in zip(parts, shrunk, strict=True))
    finding = f"Two parts merge to m = {whole.m:g} and s = {terms} = {whole.s:.4g}"
    formula = "m = max(m1, m2),  s = s1 exp(m1 − m) + s2 exp(m2 − m)"
    at_once = f"All {len(both)} elements at once: the sum of exp(x − {whole.m:g}) is {part(both).s:.4g}"
    picture = Svg(720, _TOP + _HIGH + 46, f"{finding}. {formula}. {at_once}.")
    picture.title(finding)
    picture.text(8, 34, f"{formula}.  {at_once}.")
    for number, (values, now) in enumerate(zip((first, second), parts, strict=True)):
        left, wide = _CHARTS[number]
        numbers = f"m{number + 1} = {now.m:g}, s{number + 1} = {now.s:.4g}"
        _draw_frame(picture, left, wide, (f"part {number + 1}", numbers))
        _draw_bars(picture, left, wide / len(values), values, (now.m, now.m), _COLOURS[number])
    left, wide = _CHARTS[2]
    each = wide / len(both)
    told = f"m = {whole.m:g}, s = {whole.s:.4g}; pale: before the merge"
    _draw_frame(picture, left, wide, ("both", told))
    _draw_bars(picture, left, each, first, (whole.m, parts[0].m), _COLOURS[0])
    _draw_bars(picture, left + each * len(first), each, second, (whole.m, parts[1].m), _COLOURS[1])
    middle = _TOP + _HIGH / 2
    picture.text(14, middle, "exp(x − m)", "middle", transform=f"rotate(-90 14 {middle:g})")
    return picture


def _draw_frame(picture: Svg, left: float, wide: float, names: tuple[str, str]) -> None:
    """Draw the axes of a chart, from 0 to 1, with its name and its numbers."""
    for line, (text, weight) in enumerate(zip(names, ("600", "400"), strict=True)):
        picture.text(left, _TOP - 42 + 17 * line, text, font_weight=weight)
    for mark in (0, 0.5, 1):
        y = _TOP + _HIGH * (1 - mark)
        picture.line(left, y, left + wide, y, class_="grid" if mark else "line")
        picture.text(left - 6, y, f"{mark:g}", "end", class_="soft")
    picture.text(left + wide / 2, _TOP + _HIGH + 32, "element x", "middle")


def _draw_bars(
    picture: Svg, left: float, wide: float, values: Sequence[float], maxima: tuple[float, float], fill: str
) -> None:
    """Draw exp(x - m) for the first maximum as a bar, and for the second one pale behind it."""
    for number, x in enumerate(values):
        at, (now, before) = left + number * wide, (float(np.exp(x - m)) for m in maxima)
        for height, opacity in ((before, _PALE), (now, None)):
            high = _HIGH * height
            picture.rect(at + 4, _TOP + _HIGH - high, wide - 8, high, fill=fill, fill_opacity=opacity)
        y = _TOP + _HIGH * (1 - now) - 8
        picture.text(at + wide / 2, y, f"{now:.2f}", "middle", font_size=11)
        picture.text(at + wide / 2, _TOP + _HIGH + 13, f"{x:g}", "middle", class_="soft")
