"""Times are taken alone on the machine, where there is somebody who sees to it: the grader."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Turn = Callable[[], AbstractContextManager[object]]

_seers: list[tuple[Turn, Callable[[], None]]] = [(nullcontext, lambda: None)]


class Disturbed(RuntimeError):
    """The machine was busy with something else: times that were taken say nothing about an answer."""


def alone() -> AbstractContextManager[object]:
    """While it is entered nothing else that is graded runs on this machine; in a notebook it does nothing."""
    return _seers[-1][0]()


def refuse_if_busy() -> None:
    """Raise Disturbed where the machine is busy with something else; in a notebook it does nothing."""
    _seers[-1][1]()


@contextmanager
def taking_turns(turn: Turn, refuse_if_busy: Callable[[], None]) -> Iterator[None]:
    """Inside, these two are in the place of `alone` and `refuse_if_busy`."""
    _seers.append((turn, refuse_if_busy))
    try:
        yield
    finally:
        _seers.pop()
