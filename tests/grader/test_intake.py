"""Each file that was handed in has one fate, which is told: nothing is lost or guessed in silence."""

import csv
import io
import json
import os
import re
import sys
import tempfile
import unicodedata
from pathlib import Path
from zipfile import ZipFile

import pytest
from handed_in_files import (
    LAB_02,
    LAB_03,
    RELEASED,
    answer,
    cells_of,
    code,
    fate_of,
    fates,
    hand_out,
    listed,
    notebook,
    put,
    read_all,
    read_one,
    stub,
)
from hashed_grades import hashed
from rich.console import Console
from typer.testing import CliRunner

from grader import run
from grader.intake import handed_out, submissions
from grader.intake.entries import NoSubmissions, TooDeep, found, overlooked
from grader.judging import judge
from grader.model import (
    GRADED,
    IGNORED,
    REGRADE,
    SUPERSEDED,
    TAKEN,
    UNREADABLE,
    UNTOUCHED,
    File,
    Submission,
)
from grader.pages import overview
from grader.results.manifest import Grading
from grader.results.scores import Remark, Scores
from grader.sandbox.limits import LIMITS
from labkit import cli
from labkit.course import EXERCISES

IDS_02 = {id for id in EXERCISES if id.startswith("02.")}


def is_open(submission, exercise="02.1"):
    """Whether an exercise has no points yet, by what the grader makes of a submission that has no answers."""
    return bool(submission.answers[exercise].open)


def source(submission, exercise="02.1"):
    return submission.answers[exercise].source.partition("\n")[2]


class TestCanvas:
    """Of several files of a student the latest attachment counts, whatever the file is called."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (f"doejane_123_4000_{LAB_02}", f"doejane_LATE_123_5000_{LAB_02[:-6]}-1.ipynb"),
            (f"doejane_123_4000_{LAB_02}", "doejane_123_5000_final.ipynb"),
            (f"doejane_123_4000_{LAB_02}", "doejane_123_5000_Copy of 02.ipynb"),
            (f"doejane_123_999_{LAB_02}", f"doejane_123_1000_{LAB_02[:-6]}-2.ipynb"),  # a longer number
            ("doejane_123_4000_zz.ipynb", f"doejane_LATE_123_5000_{LAB_02}"),
            (f"anon_Xk3f_4000_{LAB_02}", "LATE_anon_Xk3f_5000_mine.ipynb"),
        ],
    )
    def test_the_latest_attachment_counts(self, tmp_path, old, new):
        put(tmp_path / old, answer("02.1", "old"), answer("02.2", "only here"))
        put(tmp_path / new, answer("02.1", "new"))
        submission = read_one(tmp_path)
        assert (source(submission), source(submission, "02.2")) == ("new", "only here")
        assert set(fates(submission).values()) == {TAKEN}

    def test_a_file_that_is_replaced_is_listed_with_what_replaces_it(self, tmp_path):
        put(tmp_path / f"doejane_123_4000_{LAB_02}", answer("02.1", "old"))
        put(tmp_path / "doejane_123_5000_final.ipynb", answer("02.1", "new"))
        submission = read_one(tmp_path)
        assert fates(submission) == {LAB_02: SUPERSEDED, "final.ipynb": TAKEN}
        assert listed(submission) >= {LAB_02} and "final.ipynb" in fate_of(submission, LAB_02).why

    def test_other_labs_in_other_files_stay(self, tmp_path):
        put(tmp_path / f"doejane_123_4000_{LAB_02}", answer("02.1", "two"))
        put(tmp_path / f"doejane_123_5000_{LAB_03}", answer("03.1", "three"))
        submission = read_one(tmp_path)
        assert (source(submission), source(submission, "03.1")) == ("two", "three")
        assert submission.labs == ("02", "03") and not listed(submission)

    def test_a_latest_attachment_that_is_as_handed_out_does_not_count(self, tmp_path):
        put(tmp_path / f"doejane_123_4000_{LAB_02}", answer("02.1", "mine"))
        put(tmp_path / f"doejane_123_5000_{LAB_02[:-6]}-1.ipynb", *cells_of(LAB_02))
        submission = read_one(tmp_path)
        assert source(submission) == "mine"
        assert fates(submission) == {LAB_02: TAKEN, "02_naive_cuda-1.ipynb": UNTOUCHED}

    def test_where_the_latest_cannot_be_read_nothing_is_guessed(self, tmp_path):
        put(tmp_path / f"doejane_123_4000_{LAB_02}", answer("02.1", "old"))
        (tmp_path / f"doejane_123_5000_{LAB_02[:-6]}-1.ipynb").write_text('{"cells": [')
        submission = read_one(tmp_path)
        assert is_open(submission) and source(submission) == "old"
        put(tmp_path / f"doejane_123_6000_{LAB_02[:-6]}-2.ipynb", answer("02.1", "newest"))
        submission = read_one(tmp_path)
        assert source(submission) == "newest" and not is_open(submission)

    def test_an_older_attachment_that_cannot_be_read_is_listed_and_no_more(self, tmp_path):
        (tmp_path / f"doejane_123_4000_{LAB_02}").write_text("{")
        put(tmp_path / f"doejane_123_5000_{LAB_02[:-6]}-1.ipynb", answer("02.1", "new"))
        submission = read_one(tmp_path)
        assert not is_open(submission) and listed(submission) == {LAB_02}

    def test_a_name_in_two_unicode_forms_is_one_student(self, tmp_path):
        for number, form in ((4000, "NFC"), (5000, "NFD")):
            name = unicodedata.normalize(form, f"müllerjörg_12_{number}_{LAB_02}")
            put(tmp_path / name, answer("02.1", form))
        assert source(read_one(tmp_path)) == "NFD"
        for number, form in ((4000, "NFC"), (5000, "NFD")):
            name = unicodedata.normalize(form, f"Jörg Müller_12_assignsubmission_{'file' * (number > 4000)}x")
            put(tmp_path / "moodle" / name / f"{form}.ipynb", answer("02.1", form))
        assert len(found(tmp_path / "moodle")) == 1


class TestTooDeep:
    """A folder of a class is not taken for a student."""

    def refused(self, folder):
        with pytest.raises(TooDeep) as error:
            found(folder)
        assert all(str(each) in str(error.value) for each in error.value.folders)
        return [each.relative_to(folder).as_posix() for each in error.value.folders]

    @pytest.mark.parametrize(
        "names",
        [
            (f"doejane_123_4000_{LAB_02}", f"roejohn_124_4001_{LAB_02}"),
            (f"Jane Doe_11_assignsubmission_file/{LAB_02}", f"John Roe_12_assignsubmission_file/{LAB_02}"),
            (f"Jane Doe_11_assignsubmission_file_{LAB_02}", f"John Roe_12_assignsubmission_file_{LAB_02}"),
            ("submission_311/a.ipynb", "submission_312/b.ipynb", "submission_metadata.yml"),
            (f"lab-02-octocat/{LAB_02}", f"lab-02-hubot/{LAB_02}"),
            (f"jane/02/{LAB_02}", f"john/02/{LAB_02}"),
        ],
    )
    def test_is_refused_with_the_folder_to_name(self, tmp_path, names):
        for name in names:
            put(tmp_path / "class" / "Lab 2 submissions" / name, answer("02.1", name))
        assert self.refused(tmp_path / "class") == ["Lab 2 submissions"]
        (tmp_path / "class" / "__MACOSX").mkdir()
        assert self.refused(tmp_path / "class") == ["Lab 2 submissions"]
        assert self.refused(tmp_path) == ["class/Lab 2 submissions"]
        assert len(found(tmp_path / "class" / "Lab 2 submissions")) == 2

    def test_of_several_downloads_each_is_named(self, tmp_path):
        for lab in ("lab 02", "lab 03"):
            for student in ("jane", "john"):
                put(tmp_path / lab / student / f"{lab[-2:]}_mine.ipynb", answer(f"{lab[-2:]}.1", student))
        assert self.refused(tmp_path) == ["lab 02", "lab 03"]

    @pytest.mark.parametrize("beside", ["nbgrader_config.py", "source/02/a.ipynb", "gradebook.db"])
    def test_of_a_course_of_nbgrader_what_was_submitted_is_named(self, tmp_path, beside):
        put(tmp_path / beside)
        for folder in ("submitted/jane/02", "submitted/john/02", "autograded/jane/02"):
            put(tmp_path / folder / LAB_02, answer("02.1", "x"))
        assert self.refused(tmp_path) == ["submitted"]
        assert {entry.student for entry in found(tmp_path / "submitted")} == {"jane", "john"}

    def test_a_download_among_others_is_refused_too(self, tmp_path):
        put(tmp_path / f"doejane_123_4000_{LAB_02}", answer("02.1", "x"))
        put(tmp_path / "late" / f"roejohn_124_4001_{LAB_02}", answer("02.1", "y"))
        assert self.refused(tmp_path) == ["late"]

    @pytest.mark.parametrize(
        "names",
        [
            (f"jane/02/{LAB_02}", f"jane/03/{LAB_03}", f"john/02/{LAB_02}"),  # nbgrader's
            (f"jane/{LAB_02}", f"jane/backup/{LAB_02}", f"john/{LAB_02}"),
            (f"jane/old/{LAB_02}", f"jane/new/{LAB_02}", f"john/{LAB_02}"),
            (f"jane/{LAB_02}",),
            (f"jane/work/{LAB_02}",),
            (f"submitted/{LAB_02}", f"jane/{LAB_02}"),
            (f"jane/Jane_11_assignsubmission_file/{LAB_02}", f"jane/Jane_12_assignsubmission_file/{LAB_03}"),
        ],
    )
    def test_students_with_folders_of_their_own_are_taken(self, tmp_path, names):
        for name in names:
            put(tmp_path / name, answer(f"{name.rpartition('/')[2][:2]}.1", name))
        assert {entry.student for entry in found(tmp_path)} == {name.partition("/")[0] for name in names}


class TestAsHandedOut:
    """A cell as the course hands it out never wins over work."""

    @pytest.mark.parametrize("exercise", ["01.2", "02.1", "02.5", "04.1", "13.1"])
    def test_a_stub_below_the_answer_does_not_count(self, tmp_path, exercise):
        put(tmp_path / "jane" / "a.ipynb", answer(exercise, "mine"), stub(exercise))
        submission = read_one(tmp_path)
        assert source(submission, exercise) == "mine" and not submission.answers[exercise].open

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace("\n", "\r\n"),
            lambda text: "\n" + text.replace("\n", "  \n\n"),
            lambda text: text.replace("    ", "\t"),
            lambda text: "\ufeff" + text,
            lambda text: text.partition("\n")[2],  # without its magic line
        ],
    )
    def test_blanks_and_line_ends_do_not_make_it_work(self, tmp_path, change):
        cell = stub("02.1")
        put(
            tmp_path / "jane" / "a.ipynb",
            answer("02.1", "mine"),
            code(change("".join(cell["source"])), "02.1"),
        )
        assert source(read_one(tmp_path)) == "mine"

    def test_nor_does_a_missing_magic_line(self, tmp_path):
        body = "".join(stub("02.1")["source"]).partition("\n")[2]
        for name, cell in (("a", code(body, "02.1")), ("b", code(f"%%cuda mine\n{body}", "02.1"))):
            put(tmp_path / name / "a.ipynb", cell)
        assert (
            {*fates(read_all(tmp_path)["a"]).values()}
            == {*fates(read_all(tmp_path)["b"]).values()}
            == {UNTOUCHED}
        )

    def test_a_cell_with_a_magic_line_alone_does_not_count(self, tmp_path):
        put(tmp_path / "jane" / "a.ipynb", answer("02.1", "mine"), answer("02.1", " \n"))
        assert source(read_one(tmp_path)) == "mine"

    def test_a_mark_of_the_byte_order_is_no_part_of_a_cell(self, tmp_path):
        put(tmp_path / "jane" / "a.ipynb", code("\ufeff%%cuda 02.1\nmine"))
        assert source(read_one(tmp_path)) == "mine"

    def test_cells_of_changed_solved_notebooks_are_known_too(self, tmp_path, monkeypatch):
        solved = code("%%cuda 02.1\n// BEGIN SOLUTION\nint a;\n// STUB int b;\n// END SOLUTION", "02.1")
        put(tmp_path / "solutions" / LAB_02, solved)
        put(tmp_path / LAB_02, code("%%cuda 02.1\nearlier", "02.1"))
        monkeypatch.setattr(handed_out.catalog, "shipped", lambda: tmp_path)
        handed_out.cells.cache_clear()
        try:
            for text in ("earlier", "// your code here\nint b;"):
                assert handed_out.is_as_handed_out("02.1", f"%%cuda 02.1\n{text}")
            assert not handed_out.is_as_handed_out("02.1", "%%cuda 02.1\nint a;")
        finally:
            handed_out.cells.cache_clear()

    def test_what_is_changed_counts(self, tmp_path):
        text = "".join(stub("02.1")["source"])
        changed = text.replace("// your code here", "C[row * N + col] = 0;")
        put(tmp_path / "jane" / "a.ipynb", answer("02.1", "first"), code(changed))
        assert "C[row * N + col] = 0;" in source(read_one(tmp_path))

    @pytest.mark.parametrize(("worked", "other"), [("mine.ipynb", LAB_02), (LAB_02, "zz.ipynb")])
    def test_an_untouched_notebook_does_not_beat_a_finished_one(self, tmp_path, worked, other):
        hand_out(tmp_path / "jane" / worked, answer("02.1", "mine"))
        put(tmp_path / "jane" / other, *cells_of(LAB_02))
        submission = read_one(tmp_path)
        assert source(submission) == "mine" and not submission.answers["02.1"].note
        assert fates(submission) == {worked: TAKEN, other: UNTOUCHED} and not listed(submission)

    def test_one_that_is_all_there_is_has_its_line_and_is_judged(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, *cells_of(LAB_02))
        submission = read_one(tmp_path)
        assert fates(submission) == {LAB_02: UNTOUCHED} and listed(submission) == {LAB_02}
        assert source(submission) and not is_open(submission)

    def test_every_cell_of_the_course_is_known_in_both_forms(self):
        known = handed_out.cells()
        assert set(known) == set(EXERCISES)
        for exercise in EXERCISES:
            assert handed_out.is_as_handed_out(exercise, "".join(stub(exercise)["source"]))
            assert not handed_out.is_as_handed_out(exercise, f"%%{EXERCISES[exercise].magic} {exercise}\nx")


BROKEN = {
    "merge marks above": b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs",
    "merge marks": b'{"cells": [\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> theirs\n]}',
    "NUL bytes": b"\0" * 5000,
    "a NUL byte": b'{"cells": [{"cell_type": "code", "source": "%%cuda 02.1\\n\0"}]}',
    "nothing": b"",
    "half a file": notebook(answer("02.1", "x" * 500)).encode()[:300],
    "a zip": b"PK\x03\x04whatever",
    "a web page": b"<!DOCTYPE html><html></html>",
    "format 3": json.dumps({"worksheets": [{"cells": []}], "nbformat": 3}).encode(),
}


class TestUnreadable:
    """What cannot be read leaves its exercises open, and is listed; it has no 0."""

    @pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
    @pytest.mark.parametrize("name", [LAB_02, "lab.ipynb", "2_mine.ipynb"])
    def test_its_exercises_are_open(self, tmp_path, content, name):
        (tmp_path / "jane").mkdir()
        (tmp_path / "jane" / name).write_bytes(content)
        submission = read_one(tmp_path)
        assert fates(submission) == {name: UNREADABLE} and listed(submission) == {name}
        graded = judge.grade(submission, ("02",), 7, "process")
        assert {result.exercise for result in graded.results} == IDS_02
        assert {(result.state, result.points) for result in graded.results} == {(REGRADE, None)}
        assert all(name in result.failure for result in graded.results)

    def test_each_reason_is_another(self, tmp_path):
        (tmp_path / "jane").mkdir()
        for number, content in enumerate(BROKEN.values()):
            (tmp_path / "jane" / f"{number}.ipynb").write_bytes(content)
        whys = {file.why for file in read_one(tmp_path).found}
        assert len(whys) == len(BROKEN) - 1  # of merge marks there are two
        assert sum("not JSON" in why for why in whys) == 1  # half a file: of the others more is known

    def test_one_that_may_not_be_read_is_open(self, tmp_path, monkeypatch):
        def refusing(call, name):
            def refused(path, *args):
                if str(path).endswith(name):
                    raise PermissionError(13, "Permission denied")
                return call(path, *args)

            return refused

        for name in ("jane", "john"):
            put(tmp_path / name / LAB_02, answer("02.1", "x"))
        monkeypatch.setattr(os, "open", refusing(os.open, f"jane/{LAB_02}"))
        monkeypatch.setattr(os, "scandir", refusing(os.scandir, "john"))
        found = read_all(tmp_path)
        assert is_open(found["jane"]) and fates(found["jane"]) == {LAB_02: UNREADABLE}
        assert is_open(found["john"]) and fates(found["john"]) == {"john": UNREADABLE}
        assert all("Permission denied" in each.problems[0] for each in found.values())

    def test_a_link_is_open(self, tmp_path):
        secret = put(tmp_path / "secret.ipynb", answer("02.1", "x"))
        (tmp_path / "class" / "jane").mkdir(parents=True)
        (tmp_path / "class" / "jane" / LAB_02).symlink_to(secret)
        (tmp_path / "class" / "john").symlink_to(tmp_path)
        put(tmp_path / "class" / "eve" / LAB_03, code("1")).with_name("more").symlink_to(tmp_path)
        for submission in read_all(tmp_path / "class").values():
            assert is_open(submission) and UNREADABLE in fates(submission).values()

    def test_a_notebook_whose_bulk_is_outputs_is_read(self, tmp_path):
        cell = answer("02.1", "mine") | {"outputs": [{"data": {"image/png": "A" * (20 * 2**20)}}]}
        put(tmp_path / "jane" / LAB_02, cell)
        submission = read_one(tmp_path)
        assert source(submission) == "mine" and fates(submission) == {LAB_02: TAKEN}

    def test_one_that_is_too_large_is_open(self, tmp_path):
        path = put(tmp_path / "jane" / LAB_02, answer("02.1", "x"))
        with path.open("r+b") as file:
            file.truncate(200 * 2**20)
        submission = read_one(tmp_path)
        assert is_open(submission) and fates(submission) == {LAB_02: UNREADABLE}

    def test_only_what_it_could_hold_is_open(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"), stub("02.2"))
        (tmp_path / "jane" / LAB_03).write_text("{")
        submission = read_one(tmp_path)
        assert not is_open(submission, "02.1") and not is_open(submission, "02.2")
        assert is_open(submission, "03.1") and submission.labs == ("02", "03")
        (tmp_path / "jane" / "more.ipynb").write_text("{")
        submission = read_one(tmp_path)
        assert not is_open(submission, "02.1") and is_open(submission, "02.2")

    def test_where_the_one_that_would_count_cannot_be_read_nothing_is_guessed(self, tmp_path):
        (tmp_path / "jane").mkdir()
        (tmp_path / "jane" / LAB_02).write_text("{")
        put(tmp_path / "jane" / "old.ipynb", answer("02.1", "old"))
        assert is_open(read_one(tmp_path))
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        (tmp_path / "jane" / "old.ipynb").write_text("{")
        submission = read_one(tmp_path)
        assert not is_open(submission) and listed(submission) == {"old.ipynb"}

    @pytest.mark.parametrize(
        "text", ["<<<<<<< HEAD\nint a;\n=======\nint b;\n>>>>>>> theirs", "int a;\0", "x" * 2**19]
    )
    def test_an_answer_that_cannot_be_judged_as_it_is_is_open(self, tmp_path, text):
        put(tmp_path / "jane" / LAB_02, answer("02.1", text), answer("02.2", "mine"))
        submission = read_one(tmp_path)
        assert is_open(submission) and not is_open(submission, "02.2")
        assert "02.1" in submission.answers["02.1"].open

    def test_a_cell_without_a_text_is_open_where_its_metadata_say_what_it_answers(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, stub("02.1"), code(7, "02.1"), answer("02.2", "x"), code(7, "02.2"))
        submission = read_one(tmp_path)
        assert is_open(submission) and not is_open(submission, "02.2") and not is_open(submission, "02.3")

    def test_open_answers_are_not_judged_and_missing_ones_have_no_points(self, tmp_path, monkeypatch):
        monkeypatch.delattr(judge, "judge")
        put(tmp_path / "jane" / LAB_02, answer("02.1", "int a;\0"), code("x = 1"))
        graded = judge.grade(read_one(tmp_path), ("02",), 7, "process")
        states = {result.exercise: (result.state, result.points) for result in graded.results}
        assert states.pop("02.1") == (REGRADE, None) and set(states.values()) == {(GRADED, 0.0)}


class TestOtherFiles:
    """What is no notebook, or another one, has its line."""

    @pytest.mark.parametrize(
        "name", ["damaged.zip", "work.tar.gz", "work.7z", "work.rar", "02_naive_cuda.ipynb.gz"]
    )
    def test_an_archive_may_hold_answers(self, tmp_path, name):
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"), stub("02.2"))
        (tmp_path / "jane" / name).write_bytes(b"PK")
        (tmp_path / "jane" / "zz").mkdir()
        submission = read_one(tmp_path)
        assert fates(submission) == {LAB_02: TAKEN, name: UNREADABLE} and listed(submission) == {name}
        assert not is_open(submission, "02.1") and is_open(submission, "02.2")
        (tmp_path / "jane" / LAB_02).rename(tmp_path / "jane" / "zz" / "lab.ipynb")
        assert not is_open(read_one(tmp_path), "02.1")

    def test_an_archive_that_is_the_latest_attachment_may_hold_what_counts(self, tmp_path):
        put(tmp_path / f"doejane_12_100_{LAB_02}", answer("02.1", "old"))
        (tmp_path / "doejane_12_200_mine.7z").touch()
        assert is_open(read_one(tmp_path))
        put(tmp_path / f"doejane_12_300_{LAB_02[:-6]}-1.ipynb", answer("02.1", "new"))
        assert not is_open(read_one(tmp_path))

    @pytest.mark.parametrize(
        "name", ["02_naive_cuda.html", "mine.pdf", "mine.py", "onlinetext.html", "a.docx"]
    )
    def test_another_document_is_listed_and_open_where_it_is_all_there_is(self, tmp_path, name):
        (tmp_path / "jane").mkdir()
        (tmp_path / "jane" / name).write_bytes(b"...")
        submission = read_one(tmp_path)
        assert fates(submission) == {name: UNREADABLE} and listed(submission) == {name}
        assert all(is_open(submission, id) for id in (IDS_02 if name.startswith("02") else EXERCISES))
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"), stub("02.2"))
        submission = read_one(tmp_path)
        assert fates(submission) == {LAB_02: TAKEN, name: IGNORED}
        assert not any(is_open(submission, id) for id in IDS_02)

    def test_a_web_page_beside_a_notebook_is_listed(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        for name in ("02_naive_cuda.html", "README.md", "data.csv"):
            (tmp_path / "jane" / name).touch()
        submission = read_one(tmp_path)
        assert listed(submission) == {"02_naive_cuda.html"} and fates(submission)["README.md"] == IGNORED

    @pytest.mark.parametrize(
        "name",
        ["02_naive_cuda.ipynb.txt", "02_naive_cuda.ipynb.json", "02_naive_cuda.ipynb (1)", "02_A.IPYNB"],
    )
    def test_a_notebook_under_another_ending_is_read(self, tmp_path, name):
        put(tmp_path / "jane" / name, answer("02.1", "mine"))
        put(tmp_path / f"john_{name}", answer("02.1", "his"))
        jane, john = read_all(tmp_path).values()
        assert (source(jane), source(john)) == ("mine", "his")
        assert fates(jane) == {name: TAKEN} and jane.labs == ("02",)
        assert (listed(jane) == {name}) == (not name.lower().endswith(".ipynb"))

    @pytest.mark.parametrize("kind", ["markdown", "raw"])
    def test_an_answer_in_a_cell_that_does_not_run_is_open(self, tmp_path, kind):
        aside = code("%%cuda 02.1\nmine", kind=kind)
        put(tmp_path / "jane" / LAB_02, aside, stub("02.1"), answer("02.2", "x"))
        submission = read_one(tmp_path)
        assert is_open(submission) and source(submission) == "mine" and not is_open(submission, "02.2")
        put(tmp_path / "jane" / LAB_02, answer("02.1", "in code"), aside)
        submission = read_one(tmp_path)
        assert source(submission) == "in code" and not is_open(submission)

    def test_text_of_the_course_is_no_answer(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, code("Write `%%cuda 02.1` above it.\n%%cuda 02.1\n", kind="markdown"))
        assert not source(read_one(tmp_path))

    def test_a_notebook_without_any_answer_cell_is_listed_and_open(self, tmp_path):
        put(tmp_path / "jane" / "homework.ipynb", code("print(1)"))
        put(tmp_path / "john" / LAB_02, answer("03.1", "wrong lab"))
        jane, john = read_all(tmp_path).values()
        assert fates(jane) == {"homework.ipynb": IGNORED} and listed(jane) == {"homework.ipynb"}
        assert all(is_open(jane, id) for id in EXERCISES) and jane.labs == ()
        assert {id for id in EXERCISES if is_open(john, id)} == IDS_02
        assert john.labs == ("02", "03")

    def test_a_notebook_of_a_lab_that_is_not_graded_is_told_where_it_is_all_there_is(self, tmp_path):
        put(tmp_path / "jane" / LAB_03, answer("03.1", "wrong lab"))
        (entry,) = found(tmp_path)
        jane = submissions.read(entry, EXERCISES, RELEASED, ("02", "04"))
        assert fates(jane) == {LAB_03: IGNORED} and listed(jane) == {LAB_03}
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        jane = submissions.read(entry, EXERCISES, RELEASED, ("02", "04"))
        assert fates(jane) == {LAB_02: TAKEN, LAB_03: IGNORED} and not listed(jane)

    def test_copies_that_jupyter_and_macs_keep_are_nobodys(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        put(
            tmp_path / "jane" / ".ipynb_checkpoints" / "02_naive_cuda-checkpoint.ipynb", answer("02.1", "old")
        )
        (tmp_path / "jane" / f"._{LAB_02}").write_bytes(b"\0\5\26\7")
        put(tmp_path / "jane" / "__MACOSX" / f"._{LAB_02}")
        (tmp_path / "jane" / ".DS_Store").touch()
        assert fates(read_one(tmp_path)) == {LAB_02: TAKEN}

    def test_a_copy_that_jupyter_keeps_is_told_where_it_is_all_there_is(self, tmp_path):
        put(
            tmp_path / "jane" / ".ipynb_checkpoints" / "02_naive_cuda-checkpoint.ipynb", answer("02.1", "old")
        )
        submission = read_one(tmp_path)
        assert set(fates(submission).values()) == {UNREADABLE} and is_open(submission)
        assert listed(submission)

    def test_folders_that_lie_too_deep_are_told_where_they_are_all_there_is(self, tmp_path):
        put(tmp_path / "jane" / "a/b/c/d/e/f" / LAB_02, answer("02.1", "deep"))
        submission = read_one(tmp_path)
        assert is_open(submission) and fates(submission) == {"a/b/c/d/e": UNREADABLE} and listed(submission)
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        submission = read_one(tmp_path)
        assert fates(submission) == {LAB_02: TAKEN, "a/b/c/d/e": IGNORED} and not listed(submission)

    def test_an_empty_folder_is_nobodys_fault(self, tmp_path):
        (tmp_path / "jane").mkdir()
        submission = read_one(tmp_path)
        assert submission.problems and not submission.found and not is_open(submission)

    def test_files_beside_the_submissions_are_told_with_the_way_out(self, tmp_path):
        put(tmp_path / "jane.ipynb", answer("02.1", "mine"))
        for name in ("john.zip", "bob.html", "class.csv", ".DS_Store"):
            (tmp_path / name).touch()
        strays = {file.name: file for file in overlooked(tmp_path)}
        assert set(strays) == {"john.zip", "bob.html", "class.csv"}
        assert {file.fate for file in strays.values()} == {IGNORED} and all(
            file.why for file in strays.values()
        )

    def test_a_folder_of_archives_says_so(self, tmp_path):
        for name in ("john.zip", "jane.zip"):
            (tmp_path / name).touch()
        with pytest.raises(NoSubmissions, match=r"jane\.zip"):
            found(tmp_path)

    def test_every_file_has_one_fate(self, tmp_path):
        put(tmp_path / "jane" / LAB_02, answer("02.1", "mine"))
        put(tmp_path / "jane" / "old" / LAB_02, answer("02.1", "old"))
        put(tmp_path / "jane" / "again.ipynb", answer("02.1", "mine"))
        put(tmp_path / "jane" / "blank.ipynb", stub("02.1"))
        put(tmp_path / "jane" / "hw.ipynb", code("1"))
        for name in ("x.zip", "b.txt"):
            (tmp_path / "jane" / name).touch()
        (tmp_path / "jane" / "broken.ipynb").write_text("{")
        expected = {
            **{LAB_02: TAKEN, "again.ipynb": TAKEN, f"old/{LAB_02}": SUPERSEDED, "blank.ipynb": UNTOUCHED},
            **{"hw.ipynb": IGNORED, "b.txt": IGNORED, "x.zip": UNREADABLE, "broken.ipynb": UNREADABLE},
        }
        assert fates(read_one(tmp_path)) == expected


def zipped(**members):
    """The bytes of a zip; names have __ for / and end as notebooks do unless their content is bytes."""
    made = io.BytesIO()
    with ZipFile(made, "w") as archive:
        for name, content in members.items():
            inner = name.replace("__", "/") + ("" if isinstance(content, bytes) else ".ipynb")
            archive.writestr(inner, content)
    return made.getvalue()


class TestZips:
    """A zip that a student handed in is read like a folder, and said to be one."""

    def submission(self, tmp_path, content, name="work.zip"):
        (tmp_path / "jane").mkdir(exist_ok=True)
        (tmp_path / "jane" / name).write_bytes(content)
        return read_one(tmp_path)

    def test_is_read_and_listed(self, tmp_path):
        mine, more = (notebook(answer(id, "mine")) for id in ("02.1", "03.1"))
        submission = self.submission(tmp_path, zipped(a__02_naive_cuda=mine, b=more, c__read_me=b"x"))
        assert (source(submission), source(submission, "03.1")) == ("mine", "mine")
        taken = {"work.zip/a/02_naive_cuda.ipynb", "work.zip/b.ipynb"}
        assert listed(submission) == taken and submission.labs == ("02", "03")
        assert fates(submission) == dict.fromkeys(taken, TAKEN) | {"work.zip/c/read_me": IGNORED}
        assert set(submission.files) == taken

    def test_a_notebook_beside_it_comes_first(self, tmp_path):
        put(tmp_path / "jane" / "lab.ipynb", answer("02.1", "beside"))
        submission = self.submission(tmp_path, zipped(lab=notebook(answer("02.1", "inside"))))
        assert source(submission) == "beside" and fates(submission)["work.zip/lab.ipynb"] == SUPERSEDED

    def test_one_from_canvas_has_its_attachments_place(self, tmp_path):
        put(tmp_path / f"doejane_12_100_{LAB_02}", answer("02.1", "old"))
        inner = zipped(lab=notebook(answer("02.1", "new")))
        (tmp_path / "doejane_LATE_12_200_mine.zip").write_bytes(inner)
        assert source(read_one(tmp_path)) == "new"
        put(tmp_path / f"doejane_12_300_{LAB_02[:-6]}-1.ipynb", answer("02.1", "newest"))
        assert source(read_one(tmp_path)) == "newest"

    @pytest.mark.parametrize(
        "content",
        [
            b"PK",
            zipped(x=notebook(answer("02.1", "x")))[:-30],
            zipped(**{"..__x": notebook(answer("02.1", "x"))}),
            zipped(**{"inner.zip": zipped(x=notebook(answer("02.1", "x")))}),
        ],
    )
    def test_what_cannot_be_unpacked_is_open(self, tmp_path, content):
        submission = self.submission(tmp_path, content)
        assert is_open(submission) and set(fates(submission).values()) == {UNREADABLE}
        assert listed(submission) == set(fates(submission))
        assert not any(str(tmp_path) in problem for problem in submission.problems)

    def test_a_bomb_is_not_unpacked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(submissions, "MOST_BYTES_OF_ZIPS", 2**20)
        bomb = zipped(x=notebook(answer("02.1", "mine")), y=b"0" * 2**21)
        assert is_open(self.submission(tmp_path, bomb))

    def test_all_together_have_a_most_of_bytes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(submissions, "MOST_BYTES_OF_ZIPS", 2**20)
        for number in range(3):
            content = zipped(x=notebook(answer(f"02.{number + 1}", "mine")), y=b"0" * 2**19)
            submission = self.submission(tmp_path, content, f"{number}.zip")
        assert sorted(set(fates(submission).values())) == [IGNORED, TAKEN, UNREADABLE]
        assert not is_open(submission, "02.1") and is_open(submission, "02.2") and is_open(submission, "02.3")

    def test_an_empty_one_is_told(self, tmp_path):
        submission = self.submission(tmp_path, zipped())
        assert fates(submission) == {"work.zip": UNREADABLE} and listed(submission) == {"work.zip"}

    def test_of_many_the_first_are_read(self, tmp_path):
        for number in range(20):
            self.submission(tmp_path, zipped(x=notebook(answer("02.1", "same"))), f"{number:02}.zip")
        found = fates(read_one(tmp_path))
        assert list(found.values()).count(TAKEN) == 10 and list(found.values()).count(UNREADABLE) == 10

    def test_nothing_is_left_of_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        (tmp_path / "temporary").mkdir()
        (tmp_path / "class").mkdir()
        for content in (zipped(x=notebook(answer("02.1", "x"))), b"PK"):
            self.submission(tmp_path / "class", content)
            assert not list((tmp_path / "temporary").iterdir())


class TestCopies:
    """Of copies of a notebook that with the largest number counts; where nothing decides, a person does."""

    @pytest.mark.parametrize(
        ("names", "counts"),
        [
            (("lab.ipynb", "lab (1).ipynb"), 1),
            (("lab (9).ipynb", "lab (10).ipynb"), 1),
            (("02_naive_cuda.ipynb", "02_naive_cuda (1).ipynb"), 1),
            (("02_naive_cuda (1).ipynb", "aa.ipynb"), 0),
            (("02_naive_cuda.ipynb", "Copy of 02_naive_cuda.ipynb"), 0),
            (("02_naive_cuda.ipynb", "02_naive_cuda-Copy1.ipynb"), 0),
            (("02_naive_cuda.ipynb", "old/02_naive_cuda.ipynb"), 0),
            (("lab.ipynb", "backup/zz.ipynb"), 0),
            (("lab v2.ipynb", "lab v3.ipynb"), 1),
        ],
    )
    def test_one_counts_and_it_is_said(self, tmp_path, names, counts):
        for name in names:
            put(tmp_path / "jane" / name, answer("02.1", name))
        submission = read_one(tmp_path)
        assert source(submission) == names[counts] and not is_open(submission)
        assert names[counts] in submission.answers["02.1"].note
        assert fates(submission)[names[1 - counts]] == SUPERSEDED

    @pytest.mark.parametrize(
        "names", [("jane.ipynb", "john.ipynb"), ("a/02_naive_cuda.ipynb", "b/02_naive_cuda.ipynb")]
    )
    def test_where_nothing_decides_it_is_open(self, tmp_path, names):
        put(tmp_path / "other" / LAB_02, answer("02.1", "x"))
        for name in names:
            put(tmp_path / "jane" / name, answer("02.1", name))
        submission = read_all(tmp_path)["jane"]
        assert is_open(submission) and fates(submission) == dict.fromkeys(names, TAKEN)
        for name in names:
            put(tmp_path / "jane" / name, answer("02.1", name), answer("02.2", "same"))
        submission = read_all(tmp_path)["jane"]
        assert is_open(submission) and not is_open(submission, "02.2") and not listed(submission)
        assert all(name in submission.answers["02.1"].open for name in names)


def go(folder, out, *, grade=None, **wish):
    """Grade a folder or a zip; what was said."""
    console = Console(file=io.StringIO(), width=1000)
    asked = run.GradeRequest(folder, out, seed=5, workers=1, isolation="process", **wish)
    run.run(asked, console, grade)
    return console.file.getvalue()


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")
class TestRun:
    def test_of_several_downloads_in_one_folder_the_labs_are_named(self, tmp_path):
        for number, (name, exercise) in enumerate(
            ((LAB_02, "02.1"), (LAB_03, "03.1"), ("04_coalescing.ipynb", "04.1"))
        ):
            for student in (1, 2):
                folder = tmp_path / "class" / f"S{student}_{number}{student}_assignsubmission_file"
                put(folder / name, answer(exercise, "mine"))
        with pytest.raises(run.NotGraded) as error:
            go(tmp_path / "class", tmp_path / "out")
        assert re.findall(r"--lab (\d\d)", str(error.value)) == ["02", "03", "04"]
        assert re.findall(r"(\d\d) \(in (\d)\)", str(error.value)) == [("02", "2"), ("03", "2"), ("04", "2")]
        go(tmp_path / "class", tmp_path / "out", labs=["3"], grade=hashed)
        assert len(table(tmp_path / "out" / "gradebook-moodle.csv")) == 6

    def test_where_nothing_is_answered_that_is_said(self, tmp_path):
        put(tmp_path / "class" / "jane.ipynb", code("1"))
        with pytest.raises(run.NotGraded, match="--lab 02"):
            go(tmp_path / "class", tmp_path / "out")

    def test_a_lab_of_few_is_told(self, tmp_path):
        for name, exercise in (("a", "02.1"), ("b", "02.1"), ("c", "02.1"), ("d", "03.1")):
            put(tmp_path / "class" / name / "x.ipynb", answer(exercise, ""))
        told = go(tmp_path / "class", tmp_path / "out", grade=hashed)
        (line,) = [line for line in told.splitlines() if line.startswith("Not graded")]
        assert "03" in line and "--lab" in line

    def test_what_is_open_has_no_points_and_its_line_until_it_can_be_read(self, tmp_path):
        put(tmp_path / "class" / "ann" / LAB_02, code("1"), answer("02.1", ""))
        (tmp_path / "class" / "bob").mkdir()
        (tmp_path / "class" / "bob" / LAB_02).write_text("<<<<<<< HEAD")
        put(tmp_path / "class" / "eve" / LAB_03, answer("03.1", "wrong lab"))
        (tmp_path / "class" / "dan.html").touch()
        out = tmp_path / "out"
        told = go(tmp_path / "class", out, labs=["02"])
        assert "dan.html" in told
        points = {row["Username"]: row["02 The naive kernel"] for row in table(out / "gradebook-moodle.csv")}
        assert points == {"ann": "0", "bob": "-", "eve": "-"}
        assert {row["student"] for row in table(out / "to_regrade.csv")} == {"bob"}
        overview = (out / "overview.html").read_text()
        assert all(name in overview for name in ("dan.html", f"{LAB_02} is not a notebook", LAB_03))
        assert any("dan.html" in stray for stray in json.loads((out / "run.json").read_text())["strays"])
        put(tmp_path / "class" / "bob" / LAB_02, answer("02.1", ""))
        go(tmp_path / "class", out, resume=True)
        points = {row["Username"]: row["02 The naive kernel"] for row in table(out / "gradebook-moodle.csv")}
        assert points["bob"] == "0" and not (out / "to_regrade.csv").exists()
        (tmp_path / "class" / "bob" / "more.7z").touch()  # comes later, and may hold what is missing
        go(tmp_path / "class", out, resume=True)
        assert {row["student"] for row in table(out / "to_regrade.csv")} == {"bob"}

    def test_a_zip_is_graded_like_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(run.judge, "grade", hashed)
        with ZipFile(tmp_path / "class.zip", "w") as archive:
            for student in ("jane", "john"):
                path = put(tmp_path / "class" / student / LAB_02, answer("02.1", ""))
                archive.write(path, f"Lab 2/{student}/{LAB_02}")
        for what in ("class", "class.zip"):
            words = ["grade", str(tmp_path / what), "--out", str(tmp_path / f"{what} out"), "--seed", "5"]
            done = CliRunner().invoke(cli.app, [*words, "--isolation", "process", "--workers", "1"])
            assert done.exit_code == 0, done.output
        first, second = (table(tmp_path / f"{what} out" / "grades.csv") for what in ("class", "class.zip"))
        assert [{**row, "handed_in": ""} for row in first] == [{**row, "handed_in": ""} for row in second]

    @pytest.mark.parametrize("content", [b"", b"Rar!", b"PK"])
    def test_what_is_neither_a_folder_nor_a_zip_is_told(self, tmp_path, content):
        for name in ("class.zip", "class.rar"):
            (tmp_path / name).write_bytes(content)
            words = ["grade", str(tmp_path / name), "--out", str(tmp_path / "out")]
            done = CliRunner().invoke(cli.app, words)
            assert done.exit_code == 1 and name in done.output and isinstance(done.exception, SystemExit)


class TestOverview:
    """The class's page has a line for each file that is not simply taken."""

    def page(self, *submitted, strays=(), regrades=()):
        scores, files = Scores([]), overview.Files()
        for submission in submitted:
            files.add(submission)
        for remark in regrades:
            scores.regrades.add(remark)
        return overview.page(scores, Grading(7, "labkit grade", Path(), LIMITS, strays=strays), {}, files)

    def test_counts_files_and_lists_those_that_were_not_just_taken(self):
        files = overview.Files()
        files.add(Submission("jane", found=(File("a", TAKEN), *[File("c", IGNORED)] * 700)))
        files.add(Submission("john", found=(File("b", TAKEN, "odd"), *[File("d", UNREADABLE, "why")] * 300)))
        assert files.counts == {TAKEN: 2, IGNORED: 700, UNREADABLE: 300}
        assert [name for name, _ in files.listed] == ["john"] * 301 + ["jane"] * 199

    def test_shows_names_as_text(self):
        hostile = "<script>x</script>"
        html = self.page(Submission(hostile, found=(File(hostile, IGNORED, hostile),)), strays=(hostile,))
        assert html.count("&lt;script&gt;x&lt;/script&gt;") == 4 and "<script" not in html

    def test_exercises_that_wait_for_one_reason_have_one_line(self):
        waiting = [("jane", "02.1", "a"), ("jane", "02.2", "a"), ("jane", "02.3", "b"), ("john", "02.3", "b")]
        html = self.page(regrades=[Remark(*each) for each in waiting])
        rows = re.findall(r"<tr><td>.*?</td><td>(.*?)</td><td>(.*?)</td></tr>", html)
        assert rows == [("02.1, 02.2", "a"), ("02.3", "b"), ("02.3", "b")]
