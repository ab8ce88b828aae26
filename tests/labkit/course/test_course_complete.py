"""The course as a whole: enough exercises, with points, mistakes that a check names, and other answers."""

import re
from collections import Counter
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pytest
from course_tables import mistakes, rows, told_of_starter

import labkit.course
from labkit.course import EXERCISES
from labkit.course.criteria.hints import Hints


@pytest.mark.parametrize("exercise", sorted(EXERCISES))
def test_each_check_is_tried_with_three_mistakes_and_another_right_answer(exercise):
    # two rows may look at one mistake
    wrong = {row.replacements for row in mistakes() if row.exercise == exercise}
    others = {row[2:] for row in rows("OTHERS") if row[0] == exercise}
    assert exercise in dict(rows("STARTERS")), (
        f"add {exercise} to STARTERS: the criterion that the unsolved cell does not meet"
    )
    assert len(wrong) >= 3, f"add rows of {exercise} to WRONG in tests/labkit/course: three mistakes"
    assert len(others) >= 1, f"add a row of {exercise} to OTHERS: another right answer"


def test_no_two_tests_have_one_name():
    for name in ("WRONG", "OTHERS"):
        twice = [row for row, count in Counter(row[:2] for row in rows(name)).items() if count > 1]
        assert not twice


def test_nothing_is_tried_on_an_exercise_that_is_not_there():
    assert {row[0] for name in ("WRONG", "OTHERS") for row in rows(name)} <= set(EXERCISES)


def test_there_are_enough_exercises_and_each_is_worth_something():
    assert len(EXERCISES) >= 28
    assert all(isinstance(exercise.points, int) and exercise.points >= 1 for exercise in EXERCISES.values())


@cache
def sentences():
    """All texts of labkit.course that have a name: constants of modules, hints, and tables of texts."""
    found = set()
    for module in iter_modules(labkit.course.__path__, "labkit.course."):
        for name in (module.name, *(each.name for each in parts_of(module))):
            for value in vars(import_module(name)).values():
                found |= {each for each in texts_of(value) if each}
    return found


def parts_of(module):
    paths = getattr(import_module(module.name), "__path__", ())
    return iter_modules(paths, f"{module.name}.")


def texts_of(value):
    """The texts in a constant."""
    values = (
        vars(value).values()
        if isinstance(value, Hints)
        else value.values()
        if isinstance(value, dict)
        else ()
    )
    return {each for each in (value, *values) if isinstance(each, str)}


QUOTED = re.compile(r"'[^']*'|`[^`]*`")
WORDS = re.compile("[A-Za-z]{2,} [A-Za-z]{2,}")


def test_what_rows_want_said_is_a_hint_by_its_name_or_a_fact():
    """Words would have to be changed with labkit's sentences; they stand there alone."""
    told = [row.told for row in mistakes()] + [told_of_starter(entry) for _, entry in rows("STARTERS")]
    known = sentences()
    others = {each for one in told for each in one.said} - known
    words = {each for each in others if WORDS.search(QUOTED.sub("", each))}
    assert not words, f"give these a name in labkit/course, and use that: {words}"
