"""Criteria for answers in Python: functions that run in the notebook's own process."""

import traceback
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from labkit.course.exercise import Criterion, Unmet


def called(function: Callable[..., Any], *args: Any) -> Any:
    "What `function(*args)` returns. Raises Unmet, with the line of the cell, for whatever it raises."
    try:
        return function(*args)
    except Exception as error:
        inside = [
            frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == function.__name__
        ]
        where = f"line {inside[-1].lineno}: " if inside else ""
        raise Unmet(f"{_call(function, args)} raises\n{where}{type(error).__name__}: {error}") from None


def returns(text: str, *cases: tuple[tuple[Any, ...], float], hint: str, relative: float = 1e-9) -> Criterion:
    "Criterion: for each (arguments, expected) the function returns that number, within `relative` of it."

    def test(function: Callable[..., Any]) -> None:
        for args, expected in cases:
            got = called(function, *args)
            if not _is_close(got, expected, relative):
                shown, wanted = _number(got), _number(expected)
                if shown == wanted:
                    shown, wanted = repr(got), repr(expected)
                raise Unmet(f"{_call(function, args)} returns {shown}; it should be {wanted}.\n{hint}")

    return Criterion(text, test)


def _is_close(got: Any, expected: float, relative: float) -> bool:
    if isinstance(got, str | bytes):  # "3" is no number, though float() reads one in it
        return False
    try:
        return abs(float(got) - expected) <= relative * abs(expected)
    except (TypeError, ValueError):
        return False


def _number(value: Any) -> str:
    "A whole number whole, another with six digits; what is none, as Python writes it."
    if not isinstance(value, Real):
        return repr(value)
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return f"{function.__name__}({', '.join(map(_shown, args))})"


def _shown(arg: Any) -> str:
    "An argument in few words."
    if isinstance(arg, np.ndarray):
        return f"array {arg.shape}"
    return getattr(arg, "__name__", "a function") if callable(arg) else str(arg)
