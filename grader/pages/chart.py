"""Charts of the pages, as SVG in the page's colours: points beside the class's, and distributions."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grader.intake.labs import number

WIDTH, LEFT, RIGHT = 420, 48, 16  # units; one is a pixel where there is room
_SVG = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
_LINE = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
_BOX = Markup(
    '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
)
_TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
_TURNED = Markup('<text class="mid" transform="translate(13 {:.1f}) rotate(-90)">{}</text>')


@dataclass(frozen=True)
class Bar:
    """A student's points in an exercise, None while they are not final, and the class's median, if shown."""

    exercise: str
    points: float | None
    median: float | None
    most: int

    def __str__(self) -> str:
        if self.points is None:
            return f"{self.exercise}: no points yet"
        median = "" if self.median is None else f"; the class's median is {number(self.median)}"
        return f"{self.exercise}: {number(self.points)} of {self.most} points{median}"


def points(bars: Sequence[Bar], label: str) -> Markup:
    """Draw one row per exercise: its points, and a mark at the class's median."""
    row, high = 26, 14
    most = max(bar.most for bar in bars)
    bottom = row * len(bars) + 6

    def x(value: float) -> float:
        return LEFT + value / most * (WIDTH - LEFT - RIGHT)

    ticks = [tick for tick in _ticks(most, 10) if tick <= most]
    parts = [_LINE.format("grid", x(tick), 0, x(tick), bottom) for tick in ticks]
    for place, bar in enumerate(bars):
        top = row * place + 6
        parts.append(_TEXT.format("end", LEFT - 8, top + high - 3, bar.exercise))
        parts.append(_BOX.format("track", LEFT, top, x(bar.most) - LEFT, high, bar))
        if bar.points is None:
            parts.append(_TEXT.format("small", LEFT + 6, top + high - 3, "will be graded again"))
        elif bar.points:
            parts.append(_BOX.format("bar", LEFT, top, x(bar.points) - LEFT, high, bar))
        if bar.median is not None:
            parts.append(_LINE.format("median", x(bar.median), top - 4, x(bar.median), top + high + 4))
    parts += _below(x, ticks, bottom, "points")
    return _SVG.format(WIDTH, bottom + 40, label, Markup("").join(parts))


def distribution(totals: Counter[float], most: int, label: str) -> Markup:
    """Draw how many students have how many of `most` points, rounded down to whole points."""
    top, high = 8, 130
    counts = Counter[int]()
    for value, count in totals.items():
        counts[int(value + 1e-6)] += count
    ticks = _ticks(max(counts.values()), 4)
    wide, bottom = (WIDTH - LEFT - RIGHT) / (most + 1), top + high

    def x(value: float) -> float:
        return LEFT + (value + 0.5) * wide

    def y(count: float) -> float:
        return bottom - count / ticks[-1] * high

    parts = [_LINE.format("grid", LEFT, y(tick), WIDTH - RIGHT, y(tick)) for tick in ticks[1:]]
    parts += [_TEXT.format("end", LEFT - 8, y(tick) + 4, tick) for tick in ticks]
    parts.append(_TURNED.format(top + high / 2, "students"))
    for value, count in sorted(counts.items()):
        box = (x(value) - 0.42 * wide, y(count), 0.84 * wide, bottom - y(count))
        told = f"{value} points: {count} student" + "s" * (count != 1)
        parts.append(_BOX.format("bar", *box, told))
    shown = [tick for tick in _ticks(most, 12) if tick <= most]
    parts += _below(x, shown, bottom, f"points of {most}, rounded down")
    return _SVG.format(WIDTH, bottom + 40, label, Markup("").join(parts))


def _below(x: Callable[[float], float], ticks: Sequence[int], bottom: float, label: str) -> list[Markup]:
    """Draw the axis at the bottom."""
    numbers = [_TEXT.format("mid", x(tick), bottom + 17, tick) for tick in ticks]
    middle = _TEXT.format("mid", (LEFT + WIDTH - RIGHT) / 2, bottom + 35, label)
    return [_LINE.format("axis", LEFT, bottom, WIDTH - RIGHT, bottom), *numbers, middle]


def _ticks(most: int, count: int) -> list[int]:
    """Return about `count` round numbers from 0 up to `most`, or the first above it."""
    steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(step for step in steps if most <= count * step)
    return list(range(0, most + step, step))
