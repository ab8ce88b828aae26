"""Criteria for answers in Python: functions that run in the notebook's own process."""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, isclose, isfinite
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from labkit.answers import answer_line
from labkit.course.exercise import Unmet, criterion
from labkit.course.fresh_inputs import further, generator
from labkit.course.reimported import Elsewhere, Raised
from simt.common.errors import SimtError
from simt.common.limits import WARP


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`. Raises Unmet, with the line of the cell, for whatever the function raises.

    That is so for exit(), too; only an interrupt by the student goes on.
    """
    try:
        return function(*args)
    except (Exception, SystemExit) as error:
        if not is_of(error, function):
            raise
        line = _line_of(error, function)
        where = "" if line is None else f"line {line}: "
        raise Unmet(f"{_call(function, args)} raises\n{where}{kind_of(error)}: {error}") from None


def is_of(error: BaseException, function: Callable[..., Any]) -> bool:
    """Tell whether the function itself raises this: where it is elsewhere, that is Raised or SimtError."""
    return not isinstance(function, Elsewhere) or isinstance(error, Raised | SimtError)


def kind_of(error: BaseException) -> str:
    """Return the name of an error's class, also where it was raised elsewhere."""
    return error.kind if isinstance(error, Raised) else type(error).__name__


def number_of(got: Any) -> float | None:
    """Return a function's result as a number, or None: a text or a truth value is none."""
    if isinstance(got, str | bytes | bool | np.bool_):
        return None
    try:
        return float(got)
    except Exception:  # whatever a class of another library makes of it
        return None


def _line_of(error: BaseException, function: Callable[..., Any]) -> int | None:
    """Return the line of the function that an error comes from. One that was raised elsewhere has it."""
    if isinstance(function, Elsewhere):
        return error.answer_line if isinstance(error, Raised | SimtError) else None
    return answer_line(error, function)


Args = tuple[Any, ...]
T = TypeVar("T")


def right_for(
    cases: Sequence[T],
    draw: Callable[[np.random.Generator, T], T],
    ask: Callable[[T], None],
    told: Callable[[T], str],
) -> None:
    """Have `ask` try each case, which raises Unmet; inside `drawn` two more for every ten, and two at least.

    Of these neither the case nor what the answer makes of it is told, or the next submission could hold them
    as a table: another case of the kind is told, which nobody is graded by; `told` says what is right for it.
    """
    for case in cases:
        ask(case)
    others = further(cases, draw, count=2 + len(cases) // 10)[len(cases) :]
    if all(_is_met(ask, case) for case in others):
        return
    rng = generator("examples", cases)
    assert rng is not None  # as there are others
    examples = [draw(rng, cases[int(rng.integers(len(cases)))]) for _ in range(EXAMPLES)]
    failed = [case for case in examples if not _is_met(ask, case)]
    raise Unmet(f"{BY_HEART} For example, {told(failed[0])}" if failed else f"{BY_HEART} {TRY}")


def _is_met(ask: Callable[[T], None], case: T) -> bool:
    try:
        ask(case)
    except Unmet:
        return False
    return True


BY_HEART = (
    "It is right for the cases that the notebook's own check tries, and wrong for another of their kind."
)
TRY = "Try it with other numbers, and compare with what you work out by hand."
EXAMPLES = 8


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

    `draw` makes another case of the kind of a stated one, see `right_for`.
    """

    def ask(args: Args) -> None:
        expected = of(*args)
        got = called(function, *args)
        if not _is_close(got, expected, relative):
            seen, wanted = _number(got), _number(expected)
            if seen == wanted:
                seen, wanted = shown(got), shown(expected)
            why = off_by_form(number_of(got), expected) or hint
            if isinstance(got, bool | np.bool_):
                why = "Return a number, not a truth value."
            raise Unmet(f"{_call(function, args)} returns {seen}; it should be {wanted}.\n{why}")

    def told(args: Args) -> str:
        return f"{_call(function, args)} should return {_number(of(*args))}.\n{hint}"

    right_for(cases, draw, ask, told)


def off_by_form(got: float | None, expected: float) -> str:
    """Say what is wrong with a number that is the right one in another unit, or rounded; "" if it is not."""
    if got is None or not expected or not isfinite(got):
        return ""
    for power in (1, 2, 3):
        for factor, told in ((1000.0**power, "large"), (1000.0**-power, "small")):
            if isclose(got, factor * expected, rel_tol=1e-6):
                return f"It is {1000**power} times too {told}: mind the units."
    rounded = (floor(expected), *(round(expected, digits) for digits in range(4)))
    if abs(expected) >= ROUNDED and got in rounded:
        return "It is rounded. Return the number with all its digits."
    return ""


ROUNDED = 10  # from here on a rounded number is told from one that another mistake gives


def _is_close(got: Any, expected: float, relative: float) -> bool:
    number = number_of(got)
    return number is not None and abs(number - expected) <= relative * abs(expected)


def shown(value: Any) -> str:
    """Write any value in few words."""
    try:
        return reprlib.repr(value)
    except Exception:  # whatever a class of the answer makes of it
        return f"something of type {type(value).__name__}"


def _number(value: Any) -> str:
    """Write a whole number whole and another with six digits; write anything else as Python does."""
    if not isinstance(value, Real):
        return shown(value)
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return f"{function.__name__}({', '.join(map(_shown, args))})"


def _shown(arg: Any) -> str:
    """Write an argument in few words."""
    if isinstance(arg, np.ndarray):
        return f"array {arg.shape}"
    return getattr(arg, "__name__", "a function") if callable(arg) else str(arg)


@dataclass(frozen=True)
class Lanes:
    """What the lanes of a warp ask for: lines of `width` lanes, `step` elements from lane to lane.

    A line begins `line` elements after the one before. Lanes ask in another order where there is a `shuffle`,
    the seed of it.
    """

    step: int
    width: int = WARP
    line: int = 0
    first: int = 0
    shuffle: int | None = None

    @property
    def elements(self) -> list[int]:
        """Return the number of the element that each lane asks for."""
        asked = [
            self.first + lane % self.width * self.step + lane // self.width * self.line
            for lane in range(WARP)
        ]
        order = range(WARP) if self.shuffle is None else np.random.default_rng(self.shuffle).permutation(WARP)
        return [asked[lane] for lane in order]

    def __str__(self) -> str:
        lines = "" if self.width == WARP else f" in lines of {self.width}, which begin {self.line} apart"
        order = "" if self.shuffle is None else ", in another order"
        return f"32 lanes{lines}, {self.step} elements from lane to lane, from element {self.first}{order}"


@criterion("{text}")
def of_lanes(
    function: Callable[..., Any],
    text: str,
    *cases: tuple[Lanes, int],
    of: Callable[[list[int], int], float],
    called_with: Callable[[list[int], int], Args],
    hint: str,
) -> None:
    """Ask that the function returns what `of` does, for the elements that lanes ask for and their size.

    `called_with` makes its arguments of these two.
    """

    def ask(case: tuple[Lanes, int]) -> None:
        lanes, size = case
        got, expected = called(function, *called_with(lanes.elements, size)), of(lanes.elements, size)
        if not _is_close(got, expected, 1e-9):
            told = f"{function.__name__}() returns {_number(got)}; it should be {_number(expected)}."
            raise Unmet(f"{_told(case)}\n{told}\n{hint}")

    def draw(rng: np.random.Generator, case: tuple[Lanes, int]) -> tuple[Lanes, int]:
        lanes, size = case
        step = lanes.step if lanes.step < 2 else int(rng.integers(2, 40))
        first = lanes.first and int(rng.integers(1, 100))
        line = lanes.line if lanes.line < WARP else int(rng.integers(WARP, 100))
        shuffle = None if lanes.shuffle is None else int(rng.integers(2**31))
        return replace(lanes, step=step, first=first, line=line, shuffle=shuffle), size

    def told(case: tuple[Lanes, int]) -> str:
        return f"{_told(case)}: {function.__name__}() should return {_number(of(case[0].elements, case[1]))}."

    right_for(cases, draw, ask, told)


def _told(case: tuple[Lanes, int]) -> str:
    lanes, size = case
    return f"{lanes}; an element has {size} bytes"
