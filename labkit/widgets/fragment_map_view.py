"""The explorer of fragments: which elements of A, B and C each lane of a warp holds."""

from labkit.figures.pictures.fragments import INSTRUCTIONS, fragments, holdings
from labkit.widgets.explorer import Explorer, View, menu, slider
from simt.common.limits import WARP


def fragment_map() -> Explorer:
    """Show which lane holds which elements of the matrices of one instruction of the tensor cores.

    A menu sets the type of the elements, a slider the lane that stands out.
    """
    controls = {
        "lane": slider("lane", 0, WARP - 1, 6),
        "kind": menu("elements", [(kind, kind) for kind in INSTRUCTIONS]),
    }
    return Explorer(fragment_map_view, controls, title="Which lane holds which elements")


def fragment_map_view(kind: str, lane: int) -> View:
    """Draw the three matrices with the lane of each element."""
    group, place = divmod(lane, 4)
    details = (
        f"Lane {lane} is number {place} in group {group}: its elements of A and its sums lie in rows {group} "
        f"and {group + 8}, its elements of B in column {group}.",
        "A register has 32 bits: neighbours along K share one.",
    )
    return View((fragments(kind, lane),), f"Lane {lane} holds {holdings(kind, lane)}.", "\n".join(details))
