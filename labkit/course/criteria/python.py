"""Criteria for answers in Python: functions that run in the notebook's own process."""

import traceback
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from labkit.core.errors import SimtError
from labkit.course.drawn import further
from labkit.course.elsewhere import Elsewhere, Raised
from labkit.course.exercise import Unmet, criterion


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`. Raises Unmet, with the line of the cell, for whatever the function raises."""
    try:
        return function(*args)
    except Exception as error:
        line = _line_of(error, function)
        where = "" if line is None else f"line {line}: "
        raise Unmet(f"{_call(function, args)} raises\n{where}{kind_of(error)}: {error}") from None


def kind_of(error: Exception) -> str:
    """Return the name of an error's class, also where it was raised elsewhere."""
    return error.kind if isinstance(error, Raised) else type(error).__name__


def number_of(got: Any) -> float | None:
    """Return a function's result as a number, or None: a string is none, though float() reads one in it."""
    if isinstance(got, str | bytes):
        return None
    try:
        return float(got)
    except (TypeError, ValueError, OverflowError):
        return None


def _line_of(error: Exception, function: Callable[..., Any]) -> int | None:
    """Return the line of the function that an error comes from. One that was raised elsewhere has it."""
    if isinstance(function, Elsewhere):
        return error.answer_line if isinstance(error, Raised | SimtError) else None
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame.lineno for frame in frames if frame.name == function.__name__]
    return inside[-1] if inside else None


Args = tuple[Any, ...]


@criterion("{text}")
def returns(
    function: Callable[..., Any],
    text: str,
    *cases: Args,
    of: Callable[..., float],
    draw: Callable[[np.random.Generator, Args], Args],
    hint: str,
    relative: float = 1e-9,
) -> None:
    """Ask that for each case, its arguments, the function returns what `of` does, within `relative` of it.

    `draw` makes another case of the kind of a stated one, for `drawn.further`.
    """
    for args in further(cases, draw, count=2):
        expected = of(*args)
        got = called(function, *args)
        if not _is_close(got, expected, relative):
            shown, wanted = _number(got), _number(expected)
            if shown == wanted:
                shown, wanted = repr(got), repr(expected)
            raise Unmet(f"{_call(function, args)} returns {shown}; it should be {wanted}.\n{hint}")


def _is_close(got: Any, expected: float, relative: float) -> bool:
    number = number_of(got)
    return number is not None and abs(number - expected) <= relative * abs(expected)


def _number(value: Any) -> str:
    """Write a whole number whole and another with six digits; write anything else as Python does."""
    if not isinstance(value, Real):
        return repr(value)
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return f"{function.__name__}({', '.join(map(_shown, args))})"


def _shown(arg: Any) -> str:
    """Write an argument in few words."""
    if isinstance(arg, np.ndarray):
        return f"array {arg.shape}"
    return getattr(arg, "__name__", "a function") if callable(arg) else str(arg)
