"""What the explorers of reports share: a report's times by block side, and what this machine has.

Both explorers compare naive with tiled.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from labkit import records
from labkit.device.select import device
from labkit.widgets import here
from labkit.widgets.explorer import Choices, Explorer, View, menu, plain, selection
from labkit.widgets.here import Size

NAMES = list(here.KERNELS)
REPORTS = ("int-matmul", "cpu-gpu-matmul", "tiled-matmul-ko")  # those with sweeps over the block side


def times_of(report: str, **filters: object) -> pd.DataFrame:
    """Return the times of a report's GPU kernels."""
    return records.load(report, "time", **{"problem": "matmul", "kernel": NAMES} | filters)


def sizes_of(report: str) -> list[Size]:
    """Return the matrix sizes (m, n, k) for which a report has times by block side, smallest first."""
    found = times_of(report)[["m", "n", "k"]].drop_duplicates().astype(int).itertuples(index=False, name=None)
    return sorted(found, key=lambda size: size[0] * size[1] * size[2])


def sides_of(report: str) -> list[int]:
    """Return the block sides that a report has tried."""
    return sorted(int(side) for side in times_of(report).block_x.unique())


def size_label(size: Size) -> str:
    """Write a size as N = 512, or as m×k×n where they differ, as in `plots`."""
    m, n, k = size
    return f"N = {n}" if m == n == k else f"{m}×{k}×{n}"


def sweep(view: Callable[..., View], side: str, label: str, **menus: Any) -> Explorer:
    """Make an explorer of reports, with further `menus`; `side` names the slider of the block side."""

    def sizes(report: str) -> Choices:
        return [(size_label(size), size) for size in sizes_of(report)]

    def sides(report: str) -> Choices:
        return [(f"{side}×{side}", side) for side in sides_of(report)]

    def offer(report: str, **_: object) -> dict[str, Choices]:
        return {"size": sizes(report), side: sides(report)}

    controls = {
        "report": menu("report", plain(REPORTS)),
        **menus,
        "size": selection("matrix size", sizes(REPORTS[0]), (1024, 1024, 1024)),
        side: selection(label, sides(REPORTS[0]), 16),
    }
    return Explorer(view, controls, offer)


def mark(figure: Figure, place: float) -> None:
    """Show in each panel where the slider stands."""
    for axes in figure.axes:
        axes.axvline(place, color="0.3", linestyle=":", zorder=0)


def machine(names: list[str], size: Size, side: int, dtype: str) -> list[str]:
    """Say what this machine has for each kernel."""
    lines = []
    for name in names:
        if device().kind == "gpu":
            timing = here.measure(name, size, side, dtype)
            lines.append(f"{name} takes {timing.median:.4g} ms ({timing.source}).")
        count = here.count(name, size, side)
        lines.append(
            f"{name} reads {count.per_multiply_add:.5g} sectors per multiply-add, "
            f"{count.per_request:.3g} per request of a warp ({count.label})."
        )
    return lines
