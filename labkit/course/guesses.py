"""How well a student predicts: the committed predictions, scored and gathered by theme."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from labkit.course import progress
from labkit.course.predictions import QUESTIONS, NotANumber, Question, number
from labkit.widgets.prediction import Said
from simt.common.errors import SimtError

THREADS, MEMORY, INSTRUCTIONS = "threads and indices", "memory traffic", "instructions"
TIMES, RESULTS = "times and rates", "right and wrong results"
_BY_UNIT = {
    **dict.fromkeys(("sectors", "requests", "conflicts", "wavefronts", "passes", "lines", "bytes"), MEMORY),
    **dict.fromkeys(("reads", "loads", "times fewer"), MEMORY),
    **dict.fromkeys(("instructions", "FMAs", "multiply-adds"), INSTRUCTIONS),
    **dict.fromkeys(("ms", "ns", "times as long", "times as fast", "GB/s", "GFLOP/s", "TFLOP/s"), TIMES),
    **dict.fromkeys(("%", "% of the peak", "% of the copy's", "% of cuBLAS's", "FLOP per byte"), TIMES),
    **dict.fromkeys(("mistakes", "results", "sizes", "sides"), RESULTS),
}
# Where the unit says something else.
_OTHERWISE = {
    **dict.fromkeys(("01.b", "04.e"), MEMORY),
    "07.e": INSTRUCTIONS,
    **dict.fromkeys(("01.d", "08.e", "11.f"), TIMES),
    **dict.fromkeys(("02.d", "03.b", "03.c", "06.a", "08.f", "09.b", "09.f", "11.e", "11.g"), RESULTS),
}
HALF = 0.5  # what a close answer is worth, and one that is partly right
MANY = 3  # numbers on one side of the answers, and none on the other, are worth a word


@dataclass(frozen=True)
class Tally:
    """How many predictions were right, close or partly right, and wrong; and how many were "I don't know".

    `high` and `low` count the numbers above and below the right ones.
    """

    right: int = 0
    close: int = 0
    wrong: int = 0
    unknown: int = 0
    high: int = 0
    low: int = 0

    @property
    def total(self) -> int:
        """Return how many were committed."""
        return self.right + self.close + self.wrong + self.unknown

    @property
    def score(self) -> float:
        """Return how many were right; one that is close counts half."""
        return self.right + HALF * self.close

    @property
    def leaning(self) -> str:
        """Say on which side of the right answers most numbers are; empty where on neither."""
        if max(self.high, self.low) < MANY or max(self.high, self.low) < 2 * min(self.high, self.low) + 1:
            return ""
        return "mostly too high" if self.high > self.low else "mostly too low"

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(mine + theirs for mine, theirs in zip(_counts(self), _counts(other), strict=True)))

    def __str__(self) -> str:
        leaning = f", {self.leaning}" if self.leaning else ""
        return f"{self.score:g} of {self.total}{leaning}"


def theme(prediction: str) -> str:
    """Return the theme of a prediction, such as 02.a."""
    units = (each.unit for each in QUESTIONS[prediction].inputs)
    by_unit = next((_BY_UNIT[unit] for unit in units if unit in _BY_UNIT), THREADS)
    return _OTHERWISE.get(prediction, by_unit)


def tally(question: Question, said: Said) -> Tally | None:
    """Score what was committed; None where the question has changed, or has no answer yet."""
    try:
        verdict = question.judge(said).get("verdict")
        if said is None:
            return Tally(unknown=1)
        known = {"Right": Tally(right=1), "Close": Tally(close=1), "Partly right": Tally(close=1)}
        found = known.get(str(verdict), Tally(wrong=1)) if verdict else None
        if found is None:
            return None
        for each, value in zip(question.inputs, said, strict=True):
            right = each.right
            if not isinstance(right, str) and each.judge(value) != "Right":
                above = number(value) > right
                found = replace(found, high=found.high + above, low=found.low + (not above))
    except (NotANumber, SimtError, ValueError):
        return None
    return found


def by_theme(said: Mapping[str, Said]) -> dict[str, Tally]:
    """Return the tallies of what was committed, by theme."""
    found: dict[str, Tally] = {}
    for prediction, values in said.items():
        asked = QUESTIONS.get(prediction)
        if asked and (scored := tally(asked, values)) is not None:
            found[theme(prediction)] = found.get(theme(prediction), Tally()) + scored
    return dict(sorted(found.items(), key=lambda item: -item[1].total))


def told(number: str, asked: Collection[str]) -> list[str]:
    """Say how good the predictions that a notebook asked were, and those of all by theme.

    It says nothing where none was made.
    """
    said = progress.committed()
    here = _sum(by_theme({each: said[each] for each in asked if each in said}).values())
    if not here.total:
        return []
    parts = [f"{here.right} right", f"{here.close} close", f"{here.wrong} wrong"]
    parts += [f"{here.unknown} not known"] * bool(here.unknown)
    left = f"{len(asked) - here.total} of {len(asked)} not made"
    first = f"Your predictions in {number}: {', '.join(parts)}; {left}."
    return [first, listed(said)]


def listed(said: Mapping[str, Said]) -> str:
    """Say by theme how good all predictions were; empty where there are none."""
    themes = "; ".join(f"{name} {scored}" for name, scored in by_theme(said).items())
    return f"Your predictions in all notebooks, by theme (close counts half): {themes}." if themes else ""


def _sum(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Tally())


def _counts(each: Tally) -> tuple[int, ...]:
    return each.right, each.close, each.wrong, each.unknown, each.high, each.low
