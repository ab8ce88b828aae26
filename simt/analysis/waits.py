"""Find waits that may end early, by try_wait or test_wait, and whose answer decides nothing."""

from collections.abc import Sequence
from itertools import pairwise

from simt.ptx import Instruction


def lines_of_unasked_waits(code: Sequence[Instruction]) -> list[int]:
    """Return the source line of each try_wait and test_wait after whose answer no branch goes by it."""
    waits = [each for each in code if {"try_wait", "test_wait"} & set(each.parts)]
    # Where a wait is not over the simulator has another warp run, and asks once more: a branch of its own.
    own = {id(each) for each, following in pairwise(code) if following.gives_way}
    return [wait.line for wait in waits if not _decides(wait, code, own)]


def _decides(wait: Instruction, code: Sequence[Instruction], own: set[int]) -> bool:
    """Say whether a branch other than `own` goes by what the wait answers, or by what follows from it."""
    known = {result.name for result in wait.results}
    while True:
        using = [each for each in code if known & {source.name for source in each.sources}]
        if any(each.family.end == "branch" and id(each) not in own for each in using):
            return True
        further = known | {result.name for each in using for result in each.results}
        if further == known:
            return False
        known = further
