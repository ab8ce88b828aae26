"""Predictions are scored by theme, and the foot of a notebook and `labkit course` say how good they were."""

import pytest

from labkit.course import guesses, progress, progress_panel
from labkit.course.guesses import Tally
from labkit.course.predictions import QUESTIONS, Input, Question

ONE = Question((Input("threads", 100, "threads"),), "why")
TWO = Question((Input("even", 4), Input("kind", "a", choices=("a", "b"))), "why")
SAID = {
    **{"02.a": ["2"], "02.b": ["10"], "02.c": None, "02.e": ["50"], "09.i": ["5"], "09.k": ["3"]},
    **{"99.z": ["1"], "02.d": ["many"]},
}


@pytest.mark.parametrize(
    ("question", "said", "tally"),
    [
        (ONE, ["100"], Tally(right=1)),
        (ONE, ["120"], Tally(close=1, high=1)),
        (ONE, ["20"], Tally(wrong=1, low=1)),
        (ONE, None, Tally(unknown=1)),
        (ONE, ["many"], None),
        (ONE, ["1", "2"], None),  # the question has changed
        (TWO, ["4", "a"], Tally(right=1)),
        (TWO, ["4", "b"], Tally(close=1)),
        (TWO, ["40", "a"], Tally(close=1, high=1)),
    ],
)
def test_a_prediction_is_scored(question, said, tally):
    assert guesses.tally(question, said) == tally


def test_close_counts_half_and_a_leaning_is_told():
    many = Tally(right=1, close=3, wrong=1, unknown=1, high=4)
    assert (many.score, many.total, str(many)) == (2.5, 6, "2.5 of 6, mostly too high")
    assert Tally(wrong=4, high=2, low=2).leaning == Tally(wrong=2, low=2).leaning == ""
    assert Tally(wrong=4, high=1, low=3).leaning == "mostly too low"


def test_each_prediction_has_a_theme():
    assert guesses._OTHERWISE.keys() <= QUESTIONS.keys()
    found = {guesses.theme(prediction) for prediction in QUESTIONS}
    assert found == {
        *(guesses.THREADS, guesses.MEMORY, guesses.INSTRUCTIONS),
        *(guesses.TIMES, guesses.RESULTS),
    }
    assert guesses.theme("02.a") == guesses.THREADS and guesses.theme("05.c") == guesses.MEMORY
    assert guesses.theme("09.i") == guesses.TIMES and guesses.theme("09.b") == guesses.RESULTS


@pytest.fixture
def said(tmp_path, monkeypatch):
    """A student's folder with predictions."""
    (tmp_path / "02_naive_cuda.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_unkept_said", {})
    for prediction, values in SAID.items():
        progress.commit(prediction, values)
    return tmp_path


def test_a_foot_says_how_good_the_predictions_were(said):
    foot = progress_panel.Panel(progress_panel._lesson("02"), {}, is_foot=True)
    first, themes = foot.further
    assert first == "Your predictions in 02: 1 right, 0 close, 1 wrong, 1 not known; 1 of 4 not made."
    assert themes.endswith(
        "by theme (close counts half): times and rates 0 of 4, mostly too high; threads and indices 1 of 1; "
        "memory traffic 0 of 1."
    )
    assert first in repr(foot) and first in foot._repr_html_()
    assert progress_panel.Panel(progress_panel._lesson("02"), {}, is_foot=False).further == []
    assert progress_panel.Panel(progress_panel._lesson("03"), {}, is_foot=True).further == []


def test_a_commit_brings_the_foot_up_to_date(said, monkeypatch):
    shown = []
    monkeypatch.setattr(
        progress_panel, "update_display", lambda panel, display_id: shown.append(panel.further[0])
    )
    monkeypatch.setattr(progress_panel, "_shown", {("03", True)})
    from labkit.course.predictions import guess

    guess("03.c").judge(["0"])
    assert shown == ["Your predictions in 03: 1 right, 0 close, 0 wrong; 2 of 3 not made."]


def test_the_first_head_has_the_points_of_all_notebooks():
    best = {"02.1": progress.Best(0.5, False), "00.1": progress.Best(1, True)}
    (told,) = progress_panel.Panel(progress_panel._lesson("00"), best, is_foot=False).further
    assert (
        told.startswith("Points in the whole course: 2 of ")
        and "(00: 1 of 3, 01: 0 of 12, 02: 1 of 11" in told
    )
    assert progress_panel.Panel(progress_panel._lesson("00"), {}, is_foot=False).further == []
