"""The course as a whole: enough exercises, with points, mistakes that a check names, and other answers."""

from collections import Counter

import pytest
from course_tables import rows

from labkit.course import EXERCISES


@pytest.mark.parametrize("exercise", sorted(EXERCISES))
def test_each_check_is_tried_with_three_mistakes_and_another_right_answer(exercise):
    mistakes = {row[3:] for row in rows("WRONG") if row[0] == exercise}  # two rows may look at one mistake
    others = {row[2:] for row in rows("OTHERS") if row[0] == exercise}
    assert exercise in rows("STARTERS"), (
        f"add {exercise} to STARTERS: words of what the unsolved cell is told"
    )
    assert len(mistakes) >= 3, f"add rows of {exercise} to WRONG in tests/course: three mistakes"
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
