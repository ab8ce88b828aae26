"""The explorer of reductions: which threads of a block add in each round of a tree."""

from typing import Any

from labkit.figures.pictures.reduction import FORMS, SHUFFLE, SPREAD, Round, tree
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection, steps
from simt.common.limits import WARP
from simt.common.text import counted

BLOCKS = (32, 64, 128, 256)


def reduction() -> Explorer:
    """Show which threads of a block add in each round of a reduction, and what their warps do meanwhile.

    A menu chooses the form of the tree, a slider the threads of the block; steps go through the rounds.
    """

    def offer(form: str, threads: int, **_: Any) -> dict[str, Offer]:
        return {"number": Offer(_numbers(Round(form, threads, 1).rounds))}

    controls = {
        "number": steps("round", _numbers(Round(SPREAD, 128, 1).rounds)),
        "form": menu("tree", [(words, form) for form, words in FORMS.items()]),
        "threads": selection("threads per block", plain(BLOCKS), 128),
    }
    return Explorer(reduction_view, controls, offer, "Which threads of a block add in each round")


def _numbers(rounds: int) -> Choices:
    return [(f"{number} of {rounds}", number) for number in range(1, rounds + 1)]


def reduction_view(form: str, threads: int, number: int) -> View:
    """Draw a round; say how many warps work in it, for how many lanes, and with how many bank conflicts."""
    now = Round(form, threads, number)
    if form == SHUFFLE:
        finding = "All lanes add, and the sums of the lower ones count: no barrier and no shared memory."
    elif now.conflicts:
        finding = f"Lanes meet in the same banks: {counted(now.conflicts, 'bank conflict')} in this round."
    elif now.lanes < 1 and form == SPREAD:
        finding = f"{counted(now.warps, 'warp')} at work for {100 * now.lanes:.3g} % of their lanes."
    else:
        finding = f"{counted(now.warps, 'warp')} at work, without bank conflicts; the others rest."
    every = [Round(form, threads, each) for each in range(1, now.rounds + 1)]
    details = (
        f"All {now.rounds} rounds: a warp adds {counted(sum(each.warps for each in every), 'time')}, with "
        f"{counted(sum(each.conflicts for each in every), 'bank conflict')}.",
        _barriers(form, threads, now.rounds),
    )
    return View(
        (tree(form, threads, number),),
        finding,
        "\n".join(details),
        "Play the rounds; point at a thread to see what it adds.",
    )


def _barriers(form: str, threads: int, rounds: int) -> str:
    if form != SHUFFLE:
        return f"Each round ends at a barrier for all {counted(-(-threads // WARP), 'warp')}."
    if threads <= WARP:
        return "One warp needs no barrier."
    return "One barrier: after five rounds, when the sums of the warps meet in shared memory."
