"""The rungs as bars: how many operations per second, and what share of this machine's peak that is."""

import pandas as pd

from labkit.cpu.products import BLAS
from labkit.figures.style import Plot, sign

_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # covers the dashed line
_BAR, _CHOSEN, _BLAS = "#9DB9D3", "#0072B2", "#7F7F7F"


def ladder_picture(frame: pd.DataFrame, peak: float, chosen: str = "") -> Plot:
    """Draw bars of 10^9 operations per second for rungs timed at one size and source.

    `frame` has the columns of `records.load`; `peak` is the rate of multiply-adds without memory, as in
    `peak_gflops`; the bar of `chosen` stands out. Raises ValueError for several sizes.
    """
    sizes = frame[["m", "n", "k"]].drop_duplicates()
    if len(sizes) != 1:
        raise ValueError(f"the frame has {len(sizes)} matrix sizes; choose one: frame[frame.n == 1024].")
    rates = [float(rate) for rate in 2 * frame.m * frame.n * frame.k / frame.value / 1e6]
    top = max(peak, *rates)
    figure = Plot(figsize=(8, 0.34 * len(rates) + 1.5), layout="constrained")
    axes = figure.subplots()
    colours = [_BLAS if name == BLAS else _BAR for name in frame.kernel]
    if chosen in set(frame.kernel):
        colours[list(frame.kernel).index(chosen)] = _CHOSEN
    axes.barh(range(len(rates)), rates, color=colours)
    axes.axvline(peak, color="black", linestyle="--", linewidth=1)
    for place, rate in enumerate(rates):
        text = f"{rate:.3g} ({share(rate, peak)})"
        axes.text(rate + 0.01 * top, place, text, va="center", fontsize=9, bbox=_WHITE)
    axes.set_yticks(range(len(rates)), list(frame.kernel))
    axes.set(xlim=(0, 1.25 * top), ylim=(-0.7, len(rates) - 0.3))
    axes.set_xlabel("GFLOP/s (in brackets: of the rate of multiply-adds, the dashed line)")
    axes.text(peak + 0.01 * top, -0.62, f"{peak:.0f}", fontsize=9)
    best = max((rate, name) for rate, name in zip(rates, frame.kernel, strict=True) if name != BLAS)
    times = f"{best[0] / rates[0]:,.0f}× {frame.kernel.iloc[0]}, " if best[0] > rates[0] else ""
    n = int(frame.n.iloc[0])
    finding = f"N = {n}: {best[1]} is {times}{share(best[0], peak)} of the peak"
    axes.set_title(finding, loc="left", fontsize=10)
    sign(figure, frame)
    return figure


def share(rate: float, peak: float) -> str:
    """Say what part of the peak a rate is, in whole per cents where they are enough."""
    part = 100 * rate / peak
    return f"{part:.0f} %" if part >= 1 else f"{part:.2g} %"
