"""Axes in an SVG picture: two scales, linear or logarithmic, with ticks, labels, lines and points.

Matplotlib chooses where ticks stand; it takes too long to draw while a control is dragged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log10

from matplotlib.ticker import LogLocator, MaxNLocator

from labkit.figures.svg import Svg


@dataclass(frozen=True)
class Scale:
    """The numbers from `low` to `high`; on a logarithmic scale both are above 0.

    `ticks` are those that are shown; matplotlib chooses them if there are none.
    """

    low: float
    high: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def share(self, value: float) -> float:
        """Return where a value lies between the ends, as a number from 0 to 1."""
        if self.log:
            return log10(value / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        """Return the ticks between the ends."""
        if self.ticks:
            return list(self.ticks)
        decades = log10(self.high / self.low) if self.log else 0
        locator = (
            LogLocator(subs=(1,) if decades > 3 else (1, 2, 5))
            if self.log
            else MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
        )
        found = locator.tick_values(self.low, self.high)
        return [float(mark) for mark in found if -1e-9 <= self.share(mark) <= 1 + 1e-9]


@dataclass(frozen=True)
class Axes:
    """Axes in the rectangle `place` = (left, top, width, height) of a picture."""

    picture: Svg
    place: tuple[float, float, float, float]
    x_scale: Scale
    y_scale: Scale

    def x(self, value: float) -> float:
        """Return the place of a value across."""
        return self.place[0] + self.place[2] * self.x_scale.share(value)

    def y(self, value: float) -> float:
        """Return the place of a value downwards."""
        return self.place[1] + self.place[3] * (1 - self.y_scale.share(value))

    def frame(self, x_label: str, y_label: str, names: dict[float, str] | None = None) -> None:
        """Draw the axes with ticks and labels; `names` are those of ticks across."""
        left, top, width, height = self.place
        for value in self.y_scale.marks():
            self.picture.line(left, self.y(value), left + width, self.y(value), class_="grid")
            self.picture.text(left - 6, self.y(value), short(value), "end", class_="soft")
        for value in self.x_scale.marks():
            self.picture.line(self.x(value), top + height, self.x(value), top + height + 4, class_="line")
            name = (names or {}).get(value, short(value))
            self.picture.text(self.x(value), top + height + 14, name, "middle", class_="soft")
        self.picture.line(left, top + height, left + width, top + height)
        self.picture.text(left + width / 2, top + height + 32, x_label, "middle")
        self.picture.text(left - 44, top - 12, y_label)

    def line(self, points: Sequence[tuple[float, float]], **attributes: object) -> None:
        """Draw a line through points (x, y); where a value is not finite it is broken."""
        d, pen = "", "M"
        for x, y in points:
            if not (isfinite(x) and isfinite(y)):
                pen = "M"
                continue
            d, pen = f"{d}{pen}{self.x(x):.1f} {self.y(y):.1f}", "L"
        self.picture.path(d, **({"fill": "none", "stroke_width": 2} | attributes))

    def point(self, x: float, y: float, marker: str = "o", size: float = 5, **attributes: object) -> None:
        """Draw a marker at (x, y): o, s, D, ^, v, <, > or P, as matplotlib names them."""
        left, top = self.x(x), self.y(y)
        corners = [f"{left + size * across:.1f} {top + size * down:.1f}" for across, down in _MARKERS[marker]]
        self.picture.path(f"M{'L'.join(corners)}Z", **attributes)


_CIRCLE = [(1.0, 0.0), (0.81, 0.59), (0.31, 0.95), (-0.31, 0.95), (-0.81, 0.59)]
_CIRCLE += [(-x, -y) for x, y in _CIRCLE]
_TRIANGLE = [(0.0, -1.15), (1.0, 0.75), (-1.0, 0.75)]
_MARKERS = {
    "o": _CIRCLE,
    "s": [(0.9, 0.9), (0.9, -0.9), (-0.9, -0.9), (-0.9, 0.9)],
    "D": [(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
    "^": _TRIANGLE,
    "v": [(x, -y) for x, y in _TRIANGLE],
    "<": [(y, x) for x, y in _TRIANGLE],
    ">": [(-y, x) for x, y in _TRIANGLE],
    "P": [
        *((0.4, 1.1), (0.4, 0.4), (1.1, 0.4), (1.1, -0.4), (0.4, -0.4), (0.4, -1.1)),
        *((-0.4, -1.1), (-0.4, -0.4), (-1.1, -0.4), (-1.1, 0.4), (-0.4, 0.4), (-0.4, 1.1)),
    ],
}


def short(value: float) -> str:
    """Write a number of a tick: 0.05, 20, 1,000 or 2M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
