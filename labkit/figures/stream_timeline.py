"""What streams did when: a row per stream, a bar per step, from times that a program printed."""

from __future__ import annotations

import re

from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, GREEN, ORANGE, Svg
from simt.common.text import counted

_WIDTH, _LEFT, _TOP, _ROW = 640, 78, 58, 30
_PALE = 0.3
_FILLS = {"to the GPU": BLUE, "kernel": ORANGE, "back": GREEN}
_COPIES = "to the GPU", "back"  # each direction has one copy engine, which makes one copy at a time
_STEP = re.compile(
    r"^stream (?P<stream>\d+) chunk (?P<chunk>\d+) (?P<step>[\w ]+?) +(?P<begin>[\d.]+) (?P<end>[\d.]+)$",
    re.M,
)


def stream_timeline(printed: str, source: str) -> Svg:
    """Draw the steps in a text with lines `stream 0 chunk 1 kernel BEGIN END`, times in milliseconds.

    `source` says whose times they are. While a copy waits for another stream's, its bar is pale.
    """
    steps = [match.groupdict() for match in _STEP.finditer(printed)]
    starts = _starts(steps)
    rows = max((int(each["stream"]) for each in steps), default=-1) + 1
    end = max((float(each["end"]) for each in steps), default=1.0)
    title = f"With {counted(rows, 'stream')} the {counted(len(steps), 'step')} take {end:.3g} ms"
    picture = Svg(_WIDTH, _TOP + _ROW * rows + 38, f"Timeline. {title}. {source}")
    picture.title(title)
    area = (_LEFT, _TOP, _WIDTH - _LEFT - 12, _ROW * rows)
    axes = Axes(picture, area, Scale(0, 1.02 * end), Scale(0, 1, ticks=(0.0,)))
    bottom = _TOP + _ROW * rows
    for value in axes.x_scale.marks():
        picture.line(axes.x(value), _TOP, axes.x(value), bottom, class_="grid")
        picture.text(axes.x(value), bottom + 13, f"{value:g}", "middle", class_="soft")
    for number, (name, fill) in enumerate(_FILLS.items()):
        picture.rect(_LEFT + 110 * number, 30, 12, 12, fill=fill)
        picture.text(_LEFT + 110 * number + 17, 36, name)
    picture.rect(_LEFT + 330, 30, 12, 12, fill=BLUE, opacity=_PALE)
    picture.text(_LEFT + 347, 36, "waits for the copy engine")
    for row in range(rows):
        picture.text(_LEFT - 6, _TOP + _ROW * (row + 0.5), f"stream {row}", "end")
    for each, start in zip(steps, starts, strict=True):
        begin, over, y = float(each["begin"]), float(each["end"]), _TOP + _ROW * int(each["stream"])
        waits = f", after waiting until {start:.4f}" if start > begin else ""
        tip = f"chunk {each['chunk']}, {each['step']}: {begin:.4f} to {over:.4f} ms{waits}"
        fill, height = _FILLS.get(each["step"], BLUE), _ROW - 8
        with picture.group(data_tip=tip):
            if start > begin:
                across = axes.x(start) - axes.x(begin)
                picture.rect(axes.x(begin), y + 4, across, height, fill=fill, opacity=_PALE)
            across = max(1.0, axes.x(over) - axes.x(start) - 1)
            picture.rect(axes.x(start), y + 4, across, height, fill=fill)
    picture.text(_WIDTH - 12, bottom + 31, f"milliseconds. {source}", "end", class_="soft")
    return picture


def _starts(steps: list[dict[str, str]]) -> list[float]:
    """Return when each step really began: a copy not before the one that its engine made before it."""
    starts, free = [float(each["begin"]) for each in steps], dict[str, float]()
    for at in sorted(range(len(steps)), key=lambda at: float(steps[at]["end"])):
        name = steps[at]["step"]
        if name in _COPIES:
            starts[at] = max(starts[at], free.get(name, 0.0))
            free[name] = float(steps[at]["end"])
    return starts
