"""The rungs as bars: how many operations per second, and what share of this machine's peak that is."""

from collections.abc import Sequence

import pandas as pd

from labkit.cpu.products import BLAS
from labkit.figures.axes import Scale, short
from labkit.figures.svg import BLUE, GREY, SKY, Svg, button

_LEFT, _TOP, _ACROSS, _ROW = 158, 30, 350, 30


def ladder_picture(frame: pd.DataFrame, peak: float, chosen: str = "", kernels: Sequence[str] = ()) -> Svg:
    """Draw bars of 10^9 operations per second for rungs timed at one size and source.

    `frame` has the columns of `records.load`; `peak` is the rate of multiply-adds without memory, as in
    `peak_gflops`; the bar of `chosen` stands out. `kernels` are those of an explorer's control `rung`: a
    click chooses one. Raises ValueError for several sizes.
    """
    sizes = frame[["m", "n", "k"]].drop_duplicates()
    if len(sizes) != 1:
        raise ValueError(f"the frame has {len(sizes)} matrix sizes; choose one: frame[frame.n == 1024].")
    rates = [float(rate) for rate in 2 * frame.m * frame.n * frame.k / frame.value / 1e6]
    finding = _finding(rates, list(frame.kernel), int(frame.n.iloc[0]), peak)
    below = _TOP + _ROW * len(rates)
    picture = Svg(640, below + 62, f"Bars of GFLOP/s. {finding}")
    picture.title(finding)
    scale = Scale(0, max(peak, *rates))
    for value in scale.marks():
        x = _LEFT + _ACROSS * scale.share(value)
        picture.line(x, _TOP, x, below, class_="grid")
        picture.text(x, below + 12, short(value), "middle", class_="soft")
    x = _LEFT + _ACROSS * scale.share(peak)
    picture.line(x, _TOP - 4, x, below, stroke_width=1.5, stroke_dasharray="5 4")
    picture.text(x + 6, _TOP, f"{peak:.0f}: the peak", class_="halo")
    for place, (name, rate, took) in enumerate(zip(frame.kernel, rates, frame.value, strict=True)):
        y, told = _TOP + _ROW * (place + 0.5), f"{rate:.3g} ({share(rate, peak)})"
        tip = f"{name}: {took:.4g} ms, {rate:.3g} GFLOP/s, {share(rate, peak)} of the peak."
        bold = "700" if name == chosen else None
        acts = button(name, tip, {"rung": kernels.index(name)}, name == chosen) if name in kernels else {}
        with picture.group(data_link=name, **acts):
            picture.rect(0, y - _ROW / 2, picture.width, _ROW, fill="transparent")
            picture.text(_LEFT - 8, y, name, "end", font_weight=bold)
            length = _ACROSS * scale.share(rate)
            colour = BLUE if name == chosen else GREY if name == BLAS else SKY
            picture.rect(_LEFT, y - 10, length, 20, fill=colour)
            if name == chosen:
                picture.rect(_LEFT, y - 10, length, 20, class_="line", stroke_width=2)
            picture.text(_LEFT + length + 8, y, told, font_weight=bold, class_="halo")
    label = "GFLOP/s (in brackets: of the peak, the rate of multiply-adds without memory)"
    picture.text(_LEFT, below + 30, label)
    picture.text(8, below + 50, "; ".join(dict.fromkeys(frame.source)), class_="soft", font_size=11)
    return picture


def _finding(rates: Sequence[float], names: Sequence[str], n: int, peak: float) -> str:
    """Compare the fastest rung with the first one and with the peak."""
    best = max((rate, name) for rate, name in zip(rates, names, strict=True) if name != BLAS)
    times = f"{best[0] / rates[0]:,.0f} times as fast as {names[0]}, " if best[0] > rates[0] else ""
    return f"N = {n}: {best[1]} is {times}{share(best[0], peak)} of the peak"


def share(rate: float, peak: float) -> str:
    """Say what part of the peak a rate is, in whole per cents where they are enough."""
    part = 100 * rate / peak
    return f"{part:.0f} %" if part >= 1 else f"{part:.2g} %"
