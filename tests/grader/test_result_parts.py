"""The small parts that the tables of grades are made of: sums, remarks, the roster, the grader's version."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from test_later import OWN, alike

from grader.model import GRADED, REGRADE, Graded, Result, Submission
from grader.results import manifest, roster
from grader.results.scores import ExerciseScores, notes
from grader.results.written import rows
from labkit.course.feedback import FAILED, MET, Line

RESULT = Result("02.1", GRADED, 1.0, 2, (Line("sums", MET), Line("in 9 ms", FAILED)))


def remarks(result):
    return [remark.text for remark in notes(Graded(Submission("ann"), (result,), "bubblewrap", 1.0))]


class TestExerciseScores:
    def test_counts_points_and_first_unmet_criteria(self):
        scores = ExerciseScores(2)
        for points, source in ((1.0, "x"), (1.0, "x"), (0.0, ""), (None, "x"), (None, "x"), (None, "x")):
            scores.add(replace(RESULT, points=points), source)
        assert (scores.regrade, scores.missing, scores.students) == (3, 1, 3)
        assert (scores.points, scores.unmet) == ({1.0: 2, 0.0: 1}, {"in 9 ms": 2})

    def test_begins_empty(self):
        scores = ExerciseScores(2)
        assert (scores.regrade, scores.missing, scores.students) == (0, 0, 0)


class TestNotes:
    def test_an_error_in_the_grader_is_remarked_unless_it_is_graded_again(self):
        (told,) = remarks(replace(RESULT, inside="Traceback"))
        assert told.startswith("judging it ended in an error")
        assert remarks(replace(RESULT, inside="Traceback", state=REGRADE, points=None)) == []

    @pytest.mark.parametrize(
        ("points", "judged", "told"),
        [
            (1.5, 1.0, "1.5 by hand in place of the grader's 1: late talk"),
            (2.0, None, "2 by hand in place of nothing yet: late talk"),
            (None, 1.0, "0 by hand in place of the grader's 1: late talk"),
        ],
    )
    def test_points_by_hand_name_both(self, points, judged, told):
        assert remarks(replace(RESULT, points=points, judged=judged, by_hand="late talk")) == [told]


class TestRoster:
    def test_two_submissions_of_one_student_are_both_in_doubt(self, tmp_path):
        (tmp_path / roster.FILE).write_text("student,github\na,ann-dev\nb,bob-dev\n")
        found = roster.read(tmp_path, {"a": {}, "ann-dev": {}, "bob-dev": {}})
        assert set(found.doubtful) == {"a", "ann-dev"}
        assert found.doubtful["a"] == "2 submissions are of a: a, ann-dev"
        assert {name: member.id for name, member in found.owners.items()} == {"bob-dev": "b"}

    @pytest.mark.parametrize(("name", "shown"), [("Ann Poe", "Ann Poe"), ("", "a")])
    def test_a_gradebook_shows_the_name_or_the_id(self, tmp_path, name, shown):
        (tmp_path / roster.FILE).write_text(f"student,name,github\na,{name},ann-dev\n")
        submission = Submission("ann-dev")
        known = roster.read(tmp_path, {"ann-dev": {}})
        identity = roster.named(Graded(submission, (), "x", 0.0), known).submission.identity
        assert (identity["Student"], identity["SIS Login ID"]) == (shown, "a")


def test_a_separator_is_that_of_the_first_line(tmp_path):
    (tmp_path / "table.csv").write_text("student,reason\na,one; two; three\n")
    (row,) = rows(tmp_path / "table.csv", ("student", "reason"))
    assert row.cells == {"student": "a", "reason": "one; two; three"}


def test_a_tenth_of_a_class_may_be_alike():
    others = {f"other{place}": f"%%cuda 02.1\n// {place}" for place in range(140)}
    group = {f"student{place}": OWN for place in range(12)}  # more than nine, and no tenth
    assert len(alike(**group, **others)) == 12 * 11 / 2


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
class TestCommit:
    @pytest.fixture
    def clone(self, tmp_path, monkeypatch):
        folders = [tmp_path / name for name in ("simt", "labkit", "grader")]
        monkeypatch.setattr(manifest.paths, "PACKAGE", tmp_path / "labkit")
        monkeypatch.setattr(manifest.paths, "PACKAGES", tuple(folders))
        for folder in folders:
            folder.mkdir()
            (folder / "code.py").write_text("x = 1\n")
        return tmp_path

    def git(self, clone, *arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=clone, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def test_a_plus_says_that_files_have_changed(self, clone):
        assert manifest.commit() == ""
        self.git(clone, "init", "-q")
        self.git(clone, "add", ".")
        self.git(clone, "commit", "-q", "-m", "first")
        head = self.git(clone, "rev-parse", "HEAD")
        (clone / "notes.txt").write_text("not the grader's")
        assert manifest.commit() == head
        (clone / "grader" / "code.py").write_text("x = 2\n")
        assert manifest.commit() == f"{head}+"
