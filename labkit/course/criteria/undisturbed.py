"""Times are taken while nothing else runs on the machine, where the grader sees to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Turn = Callable[[], AbstractContextManager[object]]

_seers: list[tuple[Turn, Callable[[], None]]] = [(nullcontext, lambda: None)]


class Disturbed(RuntimeError):
    """The machine was busy with something else, so the times that were taken say nothing about an answer."""


def alone() -> AbstractContextManager[object]:
    """Let nothing else that is graded run on this machine while it is entered; do nothing in a notebook."""
    return _seers[-1][0]()


def refuse_if_busy() -> None:
    """Raise Disturbed where the machine is busy with something else; do nothing in a notebook."""
    _seers[-1][1]()


@contextmanager
def taking_turns(turn: Turn, refuse_if_busy: Callable[[], None]) -> Iterator[None]:
    """Put these two functions in the place of `alone` and `refuse_if_busy`, until the context ends."""
    _seers.append((turn, refuse_if_busy))
    try:
        yield
    finally:
        _seers.pop()
