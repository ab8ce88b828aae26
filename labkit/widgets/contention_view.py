"""The explorer of contention: in how many turns a warp's elements of a histogram are counted."""

from labkit.figures.pictures.contention import Elements, turns
from labkit.model import atomics
from labkit.widgets.explorer import Explorer, View, plain, selection
from simt.common.limits import WARP
from simt.common.occupancy import gpu
from simt.common.text import duration

BINS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 999)
SKEWS = (1, 2, 3, 4, 6, 8)
MANY = 2**24  # elements of the histogram whose times are predicted


def contention() -> Explorer:
    """Show which lanes of a warp count in the same bin of a histogram, and what that costs.

    Sliders set the number of bins, and the skew: how much the first bins are favoured.
    """
    controls = {
        "bins": selection("bins", plain(BINS), 64),
        "skew": selection("skew", plain(SKEWS), 1),
    }
    return Explorer(contention_view, controls, title="In how many turns a histogram counts its elements")


def contention_view(bins: int, skew: int) -> View:
    """Draw the turns of some warps; predict the least time of a large histogram of this kind on an H200."""
    now, h200 = Elements(bins, skew), gpu("H200")
    per_warp = float(now.turns.mean())
    in_shared = atomics.in_shared(per_warp * MANY / WARP, h200)
    in_global = atomics.in_global(now.sectors * MANY / WARP, round(now.busiest * MANY))
    details = (
        f"In shared memory, 2^24 elements of this kind take {per_warp * MANY / WARP:,.0f} turns, one clock "
        f"each. The {h200.multiprocessors} multiprocessors share them: at least {duration(in_shared)}.",
        f"In global memory {round(now.busiest * MANY):,} additions go to the busiest bin, one after the "
        f"other, and all pass through the L2 cache: at least {duration(in_global)}.",
        "Both times are predicted for an H200, with the rates that were recorded on one.",
    )
    return View(
        (turns(bins, skew),),
        f"A warp takes {per_warp:.3g} turns on average, where 1 would be the least.",
        "\n".join(details),
        "Point at an element to see all that go to its bin.",
    )
