"""Whether the titles in a picture have one line each and room for it, as a browser would draw them.

Widths are those of DejaVu Sans, which is as wide as any font in which pages are read.
"""

import re
from functools import lru_cache
from html import unescape

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

# What `Svg.title` writes, and what a plot of matplotlib has.
_TITLE = re.compile(
    r'<text x="8" y="1[02]"[^>]* font-weight="600"[^>]*>[^<]*</text>|<g class="lk-title">.*?</g>', re.S
)
_LINE = re.compile(r"<text([^>]*)>([^<]*)</text>")
_PIXELS, _POINT = 12, 96 / 72  # the size of a picture's text, and a point of matplotlib's in pixels


def titles(svg: str) -> list[str]:
    """Return the titles of a picture, or of several that stand below each other; a line each."""
    return [unescape("\n".join(text for _, text in _LINE.findall(found))) for found in _TITLE.findall(svg)]


def misfits(svg: str) -> list[str]:
    """Return what is wrong with the titles of a picture."""
    width = float(re.search(r'<svg[^>]* width="([\d.]+)"', svg)[1])
    wrong = []
    for found in _TITLE.findall(svg):
        lines = _LINE.findall(found)
        if len(lines) > 1:
            wrong.append(f"{len(lines)} lines: {unescape(lines[0][1])!r}")
        wrong += [
            f"{left:.0f} to {right:.0f} of {width:.0f} pixels: {text!r}"
            for left, right, text in (_extent(look, unescape(text), found) for look, text in lines)
            if left < 0 or right > width
        ]
    return wrong


def _extent(look: str, text: str, found: str) -> tuple[float, float, str]:
    """Return where a line of text begins and ends across, in pixels."""
    if found.startswith("<text"):
        left = float(re.search(r' x="([\d.]+)"', look)[1])
        return left, left + _width(text, _PIXELS, "bold"), text
    size = float(re.search(r"font-size: ([\d.]+)px", look)[1]) * _POINT
    left = float(re.search(r' x="([\d.]+)"|translate\(([\d.]+)', look).expand(r"\1\2")) * _POINT
    wide = _width(text, size, "normal")
    return (left - wide / 2, left + wide / 2, text) if "middle" in look else (left, left + wide, text)


@lru_cache
def _width(text: str, size: float, weight: str) -> float:
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
