"""Points: an equal part for each criterion that an answer meets, nothing for what it was given."""

from contextlib import suppress

import nbformat
import pytest
from course_tables import SOLUTIONS, answer_of, exercises, released, started

from labkit.course import EXERCISES
from labkit.course.exercise import Criterion, Exercise
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.course.notebooks import catalog
from labkit.magic import CellError

NOTEBOOKS = SOLUTIONS.parent


@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize("exercise", exercises())
def test_what_a_student_starts_from_meets_what_is_given_and_is_worth_nothing(exercise, seed):
    start, chosen = answer_of(exercise, started(exercise)), EXERCISES[exercise]
    feedback = chosen.judge(start, seed)
    states = [line.state for line in feedback.lines]
    assert states[: chosen.given + 1] == [*chosen.given * [MET], FAILED]
    assert chosen.points_of(feedback) == 0


def handed_out(exercise):
    """The exercise's cell as students get it, and those of its notebook that follow, of the same kind."""
    lessons = (catalog.lesson(path) for path in catalog.notebooks(NOTEBOOKS))
    path = next(lesson.path for lesson in lessons if EXERCISES[exercise] in lesson.exercises)
    kind = f"%%{EXERCISES[exercise].magic} "
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells]
    kinds = [source for source in sources if source.startswith(kind)]
    return kinds[kinds.index(released(exercise)) :]


@pytest.mark.slow  # tries some 500 cells in the place of others
@pytest.mark.parametrize("exercise", exercises())
def test_no_cell_that_is_handed_out_later_is_worth_anything(exercise):
    chosen = EXERCISES[exercise]
    for source in handed_out(exercise):
        with suppress(CellError):
            assert chosen.points_of(chosen.judge(answer_of(exercise, source), 4)) == 0, source


def judged(*states):
    return Feedback("99.1 Title", tuple(Line("", state) for state in states))


class TestPoints:
    criteria = tuple(Criterion("", lambda _: None) for _ in range(5))
    exercise = Exercise("99.1", "Title", 4, criteria, given=2)

    @pytest.mark.parametrize(("met", "points"), [(0, 0), (1, 0), (2, 0), (3, 1.33), (4, 2.67), (5, 4)])
    def test_are_shared_among_the_criteria_that_are_not_given(self, met, points):
        states = [*met * [MET], *(5 - met) * [FAILED]]
        assert self.exercise.points_of(judged(*states)) == points

    def test_without_a_gpu_the_other_criteria_share_the_points(self):
        assert self.exercise.points_of(judged(MET, MET, MET, MET, NEEDS_GPU)) == 4
        assert self.exercise.points_of(judged(MET, MET, MET, FAILED, NOT_JUDGED)) == 1.33
        assert self.exercise.points_of(judged(MET, MET, MET, NEEDS_GPU, FAILED)) == 2

    def test_of_an_answer_that_is_not_judged_are_none(self):
        assert self.exercise.points_of(self.exercise.not_judged("the answer cell has run", "")) == 0

    def test_all_are_for_those_who_meet_all(self):
        for exercise in EXERCISES.values():
            states = len(exercise.criteria) * [MET]
            assert exercise.points_of(judged(*states)) == exercise.points
            assert exercise.points_of(judged(*states[1:], NOT_JUDGED)) < exercise.points
