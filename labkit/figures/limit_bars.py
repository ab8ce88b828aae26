"""Bars of how long each part of a GPU would take for a launch alone, with predicted and recorded time."""

from collections.abc import Mapping

from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, ORANGE, RED, Svg

_WIDTH, _LEFT, _ACROSS, _ROW = 640, 128, 400, 19
_TOP = 42
_LEAST = 0.02  # of the longest bar: a shorter one is left out


def limit_bars(
    seconds: Mapping[str, float],
    predicted: tuple[float, float, float],
    recorded: float | None,
    alt: str,
    gpu: str = "an H200",
) -> Svg:
    """Draw one bar per part of the GPU, the longest first, which is the lowest limit.

    `seconds` are those that a part takes if the launch needs nothing else, by its name. `predicted` is the
    model's time of the whole launch with the ends of its interval: low, time, high.
    """
    low, time, high = predicted
    longest = max(seconds.values())
    rows = sorted((item for item in seconds.items() if item[1] > _LEAST * longest), key=lambda item: -item[1])
    unit, size = _unit(longest)
    picture = Svg(_WIDTH, _TOP + _ROW * len(rows) + 46, alt)
    end = 1.04 * max(high, recorded or 0, longest) / size
    axes = Axes(picture, (_LEFT, _TOP, _ACROSS, _ROW * len(rows)), Scale(0, end), Scale(0, 1, ticks=(0.0,)))
    bottom = _TOP + _ROW * len(rows)
    for value in axes.x_scale.marks():
        picture.line(axes.x(value), _TOP, axes.x(value), bottom, class_="grid")
        picture.text(axes.x(value), bottom + 13, f"{value:g}", "middle", class_="soft")
    across = axes.x(high / size) - axes.x(low / size)
    picture.rect(axes.x(low / size), _TOP, across, bottom - _TOP, class_="empty")
    for number, (name, each) in enumerate(rows):
        y = _TOP + _ROW * number
        tip = (
            f"{name} alone would take {_number(each, size)} {unit}, {each / time:.0%} of the predicted time."
        )
        with picture.group(data_tip=tip, data_link=f"limit{number}", tabindex=0):
            fill = RED if number == 0 else BLUE
            picture.rect(_LEFT, y + 3, axes.x(each / size) - _LEFT, _ROW - 6, fill=fill)
            picture.rect(0, y, _WIDTH, _ROW, fill="transparent")
            weight = "700" if number == 0 else None
            picture.text(_LEFT - 6, y + _ROW / 2, name, "end", font_weight=weight)
            picture.text(_WIDTH - 4, y + _ROW / 2, f"{_number(each, size)} {unit}", "end", font_weight=weight)
    picture.line(_LEFT, _TOP, _LEFT, bottom)
    ends = f"predicted for {gpu} (shaded: {_number(low, size)} to {_number(high, size)})"
    marks: list[tuple[str, float, dict[str, object]]] = [(ends, time, {"stroke_dasharray": "5 3"})]
    if recorded:
        marks.append(("recorded", recorded, {"stroke": ORANGE, "stroke_width": 3}))
    for number, (name, each, look) in enumerate(marks):
        x = axes.x(each / size)
        picture.line(x, _TOP - 4, x, bottom, **look)
        told, anchor = f"{name}: {_number(each, size)}", "end" if x > _LEFT + _ACROSS / 2 else "start"
        picture.text(x, 12 + 17 * number, told, anchor, class_="halo")
    picture.text(_LEFT + _ACROSS / 2, bottom + 31, f"{unit}, if the launch had to do nothing else", "middle")
    return picture


def _unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which a time is a handy number, and its seconds."""
    return next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("µs", 1e-6))


def _number(seconds: float, size: float) -> str:
    return f"{seconds / size:.3g}" if seconds < 1000 * size else f"{seconds / size:,.0f}"
