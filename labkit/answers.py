"""Python functions that answer an exercise: the line of an error, and labkit's own work in them."""

import _thread
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from labkit.paths import PACKAGE, PACKAGES

OURS = tuple(f"{folder}{os.sep}" for folder in PACKAGES)
CRITERIA = str(PACKAGE / "course" / "criteria")  # what calls the answer, and works nothing out by itself
FIGURES = "gpu", "gpus", "_gpus", "_words", "<genexpr>", "<listcomp>"  # what finds the figures of a GPU
BLINDING = sys.setprofile, sys.settrace, _thread.start_new_thread
TELLING = 60  # bytes of a function's code, from which on an equal one is a copy


def answer_line(error: BaseException, function: Callable[..., Any]) -> int | None:
    """Return the line of the function that an error comes from; None where it has no part in it."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(function, "__code__", None)
    names = {getattr(function, "__name__", ""), code.co_name if code else ""}
    inside = [frame.lineno for frame in frames if frame.name in names]
    return inside[-1] if inside else None


@contextmanager
def borrowing() -> Iterator[list[str]]:
    """Fill a list with the functions of labkit that are called inside, by any way that leads there.

    The figures of a GPU are no function. A copy of the rules of occupancy counts as the original, and so does
    what would keep calls from being seen.
    """
    found: list[str] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "call" and _is_labkits(frame.f_code):
            found.append(frame.f_code.co_name)
        elif event == "c_call" and called in BLINDING and frame.f_code.co_filename != __file__:
            found.append(called.__name__)

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def _is_labkits(code: CodeType) -> bool:
    if code.co_filename.startswith(CRITERIA):
        return False
    if code.co_filename.startswith(OURS):
        is_import = code.co_name == "<module>" or Path(code.co_filename).name == "__init__.py"
        is_figure = code.co_qualname.startswith("Gpu.") or code.co_name in FIGURES
        return not is_import and not is_figure and code.co_filename != __file__
    return len(code.co_code) >= TELLING and _likeness(code) in _rules()


def _likeness(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_names, code.co_varnames


@cache
def _rules() -> frozenset[tuple[object, ...]]:
    """Return what is telling of the functions that work occupancy out."""
    from simt.common import occupancy

    functions = [each for _, each in inspect.getmembers(occupancy, inspect.isfunction)]
    return frozenset(_likeness(each.__code__) for each in functions if len(each.__code__.co_code) >= TELLING)
