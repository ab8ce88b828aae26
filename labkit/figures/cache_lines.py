"""A picture of how often each cache line of A, B and C is fetched, and what the cache holds at a moment.

Errors: ValueError for a moment outside the product.
"""

from functools import lru_cache
from math import log

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import to_hex

from labkit.cpu.cache_lines import (
    LINE,
    VECTOR,
    VERSIONS,
    Cache,
    Count,
    Loops,
    Numbers,
    contents,
    count_misses,
)
from labkit.figures.axes import Scale
from labkit.figures.svg import RED, Svg, button

_SIDE, _GAP = 224, 48  # pixels: a matrix, and the room between two for numbers and names
_NEAR, _TOP = 40, 92  # where A begins from the left, and B from the top
_FAR, _BELOW = _NEAR + _SIDE + _GAP, _TOP + _SIDE + _GAP
_SHADES = [to_hex(colormaps["cividis"](shade / 31)) for shade in range(32)]


def cache_picture(loops: Loops, cache: Cache, moment: int = 40) -> Svg:
    """Draw how often each line of A, B and C is fetched, in one colour scale for all versions of one N.

    Frames mark the lines in the cache after `moment` percent of the accesses, 1 to 100; dots mark the
    elements in use then. Beside them are the misses of every version with this N, BLOCK and cache: in an
    explorer a click on one sets the control `version`.
    """
    counted, (present, (i, j, k)) = count_misses(loops, cache), state(loops, cache, moment)
    in_use = (i, k), (j, k) if loops.matrices[1] == "BT" else (k, j), (i, j)
    corners = (_NEAR, _BELOW), (_FAR, _TOP), (_FAR, _BELOW)  # A left of C, B above it
    title = f"{loops.version}: {counted.per_multiply_add:.2g} misses per multiply-add"
    picture = Svg(640, _BELOW + _SIDE + 24, f"{title}. {_told(counted)}")
    picture.title(title)
    now = f"framed: in the cache after {moment} % of the accesses; dots: i = {i}, j = {j}, k = {k}"
    picture.text(8, 32, now, class_="soft")
    for number, (corner, (row, col)) in enumerate(zip(corners, in_use, strict=True)):
        _draw_lines(picture, corner, counted, number, present.reshape(3, -1)[number])
        cell = _SIDE / loops.N
        x, y = corner[0] + (col + 0.5) * cell, corner[1] + (row + 0.5) * cell
        picture.add("circle", cx=x, cy=y, r=4.5, fill=RED, stroke="#fff", stroke_width=1.5)
    _draw_scale(picture, LINE * loops.N)
    _compare(picture, counted)
    return picture


@lru_cache(maxsize=128)
def state(loops: Loops, cache: Cache, moment: int) -> tuple[npt.NDArray[np.bool_], tuple[int, int, int]]:
    """Return which lines are in the cache after `moment` percent of the accesses, and i, j and k then."""
    if not 1 <= moment <= 100:
        raise ValueError(f"moment {moment} is no part of the product. Choose 1 to 100 percent.")
    accesses = loops.accesses()
    accesses = accesses[: -(-len(accesses) * moment // 100)]
    present = np.zeros(loops.compulsory, bool)
    present[contents(accesses // LINE, cache)] = True
    return present, loops.position(accesses)


def _told(counted: Count) -> str:
    most = int(counted.fetched.sum(axis=1).argmax())
    return (
        f"{counted.misses:,} misses; "
        f"each line of {counted.loops.matrices[most]} is fetched {times(counted.fetched[most])}"
    )


def times(fetched: Numbers) -> str:
    """Say how often lines are fetched: once; 3 times; 1 to 48 times."""
    low, high = int(fetched.min()), int(fetched.max())
    if low < high:
        return f"{low:,} to {high:,} times"
    return "once" if low == 1 else f"{low:,} times"


def _draw_lines(
    picture: Svg, corner: tuple[int, int], counted: Count, number: int, present: npt.NDArray[np.bool_]
) -> None:
    """Draw each cache line of a matrix in its colour, in parts where it continues in the next row."""
    loops, fetched = counted.loops, counted.fetched[number]
    N, name, (left, top), cell = loops.N, loops.matrices[number], corner, _SIDE / loops.N
    down, across = {"A": ("i", "k"), "B": ("k", "j"), "BT": ("j", "k"), "C": ("i", "j")}[name]
    picture.text(left, top - 28, f"{name}: {fetched.sum():,} misses, each line {times(fetched)}")
    for each in range(0, N, VECTOR):
        middle = (each + 0.5) * cell
        picture.text(
            left + middle,
            top - 10,
            str(each) if each else f"{across}=0",
            "middle" if each else "start",
            class_="soft",
        )
        picture.text(left - 5, top + middle, str(each) if each else f"{down}=0", "end", class_="soft")
    element = np.arange(N * N)
    first = element[(element % N == 0) | (element % LINE == 0)]
    x, y, width = left + first % N * cell, top + first // N * cell, np.diff(first, append=N * N) * cell - 1
    boxes = [
        f"M{a:.5g} {b:.5g}h{c:.5g}v{cell - 1:.4g}h{-c:.5g}z"
        for a, b, c in zip(x.tolist(), y.tolist(), width.tolist(), strict=True)
    ]
    drawn: dict[int, str] = {}
    for line, box in zip((first // LINE).tolist(), boxes, strict=True):
        drawn[line] = drawn.get(line, "") + box
    for line, path in drawn.items():
        count = int(fetched[line])
        tip = f"Line {line} of {name}: fetched {times(fetched[line : line + 1])}."
        picture.path(path, fill=_shade(count, LINE * N), data_tip=tip)
    framed = "".join(path for line, path in drawn.items() if present[line])
    picture.path(framed, fill="none", stroke=RED, stroke_width=max(1.5, 64 / N), pointer_events="none")


def _shade(count: int, most: int) -> str:
    """Return the colour of a line: an element is used N times, so a line is fetched at most 16 N times."""
    return _SHADES[round(31 * log(count) / log(most))]


def _draw_scale(picture: Svg, most: int) -> None:
    """Draw the colour scale, right of C."""
    left, high = _FAR + _SIDE + 18, _SIDE / len(_SHADES)
    for place, shade in enumerate(_SHADES):
        picture.rect(left, _BELOW + _SIDE - (place + 1) * high, 14, high + 0.5, fill=shade)
    for power in (4**power for power in range(6) if 4**power <= most):
        y = _BELOW + _SIDE * (1 - log(power) / log(most))
        picture.text(left + 20, y, f"{power:,}", class_="soft")
    picture.text(
        left + 58, _BELOW + _SIDE, "times fetched", transform=f"rotate(-90 {left + 58} {_BELOW + _SIDE})"
    )


def _compare(picture: Svg, counted: Count) -> None:
    """Draw the misses of all versions, above A."""
    loops, cache, scale = counted.loops, counted.cache, Scale(0.002, 12, log=True, ticks=(0.01, 0.1, 1))
    bottom, row = _TOP + 36 * len(VERSIONS), 36
    picture.text(_NEAR - 32, _TOP - 28, "misses per multiply-add, every version")

    def place(value: float) -> float:
        return _NEAR - 32 + 210 * scale.share(value)

    once = place(loops.compulsory / loops.N**3)
    picture.line(once, _TOP - 10, once, bottom, class_="line", stroke_dasharray="2 3")
    picture.text(once + 5, bottom - 4, "each line once", class_="soft halo", font_size=11)
    for tick in scale.marks():
        picture.line(place(tick), _TOP - 10, place(tick), bottom, class_="grid")
        picture.text(place(tick), bottom + 12, f"{tick:g}", "middle", class_="soft")
    picture.line(_NEAR - 32, bottom, _NEAR + 178, bottom)
    for number, version in enumerate(VERSIONS):
        each = count_misses(Loops(version, loops.N, loops.block), cache).per_multiply_add
        y, chosen = _TOP + number * row, version == loops.version
        tip = f"{version}: {each:.2g} misses per multiply-add."
        with picture.group(**button(version, tip, {"version": number}, chosen)):
            picture.rect(_NEAR - 32, y - 8, 218, row - 2, fill="transparent")
            picture.text(_NEAR - 32, y, version, class_="halo", font_weight="700" if chosen else None)
            look = ("fill", RED) if chosen else ("class_", "line")
            picture.add("circle", "", cx=place(each), cy=y + 15, r=5, stroke_width=2, **dict([look]))
            picture.text(place(each) + 10, y + 15, f"{each:.2g}", class_="halo")
