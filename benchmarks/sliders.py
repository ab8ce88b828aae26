"""Time from a slider's release to the new picture and text, without the browser: callback, drawing and PNG.

    python benchmarks/sliders.py

Each explorer's controls are moved one at a time from their first values. "First" is the first visit of each
place, "again" the second, which is answered from memory. A browser adds some 100 ms.
"""

import os
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np
import pandas as pd

os.environ.setdefault("LABKIT_DEVICE", "simt")

from labkit import widgets
from labkit.widgets import Explorer, explorer

GOAL = 700  # milliseconds, median


def moves(shown: Explorer) -> Iterator[float]:
    """Seconds of each move: every control through what it offers, at most eight places of each."""
    for control in shown.controls.values():
        if hasattr(control, "options"):
            places = [value for _, value in control.options][:8]
        else:
            places = list(range(control.min, control.max + 1))[:8]
        start = control.value
        for place in places:
            if place != control.value:
                begin = perf_counter()
                control.value = place
                yield perf_counter() - begin
        control.value = start


def row(make: Callable[[], Explorer]) -> dict[str, object]:
    """Milliseconds of one explorer's moves."""
    explorer.drawn.cache_clear()
    shown = make()
    first, again = (1e3 * np.array(list(moves(shown))) for _ in range(2))
    return {
        "explorer": make.__name__,
        "moves": len(first),
        "first: median": np.median(first),
        "p90": np.percentile(first, 90),
        "most": first.max(),
        "again: median": np.median(again),
        "goal": f"{GOAL} met" if np.median(first) < GOAL else f"{GOAL} MISSED",
    }


if __name__ == "__main__":
    table = pd.DataFrame(row(getattr(widgets, name)) for name in widgets.EXPLORERS).set_index("explorer")
    print("milliseconds\n", table.round(1).to_string(), sep="")
