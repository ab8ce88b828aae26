"""A line below a cell that says how far a check is, for one that takes longer than a second."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from time import monotonic
from uuid import uuid4

from simt.common.cell import current

PATIENCE_SECONDS = 1.0
Step = Callable[[int, int], None]


@contextmanager
def step_by_step(exercise: str) -> Iterator[Step]:
    """Show "Checking 02.1: 3 of 5 … 4 s" after a second, and take it away at the end.

    What is yielded is called with the number of the criterion that is tried next, and how many there are. The
    line is for people: a notebook that a program runs, whose requests name no cell, gets none.
    """
    state, done = [f"Checking {exercise}"], threading.Event()

    def step(number: int, total: int) -> None:
        state[0] = f"Checking {exercise}: {number} of {total}"

    if current().id == "":
        yield step
        return
    start, name = monotonic(), uuid4().hex

    def show() -> None:
        is_there = False
        while not done.wait(PATIENCE_SECONDS):
            _publish(f"{state[0]} … {monotonic() - start:.0f} s", name, again=is_there)
            is_there = True
        if is_there:
            _publish("", name, again=True)

    thread = threading.Thread(target=copy_context().run, args=(show,), name="labkit-waiting", daemon=True)
    thread.start()
    try:
        yield step
    finally:
        done.set()
        thread.join()


def _publish(text: str, name: str, *, again: bool) -> None:
    from IPython.display import publish_display_data

    publish_display_data({"text/plain": text}, transient={"display_id": name}, update=again)
