"""Points by hand, and the class: the two files that an instructor lays beside the grades."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hashed_grades import hand_in, hashed
from made_up_class import SOLVED, exercises, result
from typer.testing import CliRunner

from grader import run
from grader.model import Graded, Submission
from grader.report import by_instructor, write_all
from grader.results.manifest import Grading
from grader.results.store import Store
from grader.results.written import WrongTable
from grader.sandbox.limits import LIMITS
from grader.text import slug
from labkit import cli

ASKED = exercises("02", "03")
BY_ID = {exercise.id: exercise for exercise in ASKED}
RUN = Grading(7, "labkit grade", SOLVED, LIMITS)
HEAD = "student,exercise,points,reason\n"


def handed_in(student: str, *met: int, **told: object) -> Graded:
    """A submission of lab 02 that meets so many criteria of each exercise; -1: to be graded again."""
    made = [result(BY_ID[f"02.{place}"], count, "%%cuda") for place, count in enumerate(met, 1)]
    return Graded(Submission(student, {"02.ipynb": "f"}, ("02",), **told), tuple(made), "bubblewrap", 1.0)


def written(out: Path, *submissions: Graded, overrides: str = "", roster: str = "") -> Path:
    """The folder of grades, with these files of the instructor's in it."""
    for name, text in (("overrides.csv", overrides), ("roster.csv", roster)):
        if text:
            (out / name).write_text(text, encoding="utf-8")
    kept = Store(out, 7, ASKED)
    for graded in submissions:
        kept.put(graded)
    identities = {graded.submission.student: graded.submission.identity for graded in submissions}
    write_all(kept, RUN, list(identities), by_instructor(out, identities, BY_ID))
    return out


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of(out: Path, student: str, exercise: str) -> dict[str, str]:
    """A row of grades.csv."""
    (row,) = (
        row for row in rows(out / "grades.csv") if (row["student"], row["exercise"]) == (student, exercise)
    )
    return row


def wrong(out: Path, table: str, name: str = "overrides.csv") -> tuple[str, ...]:
    """What is said of a table for the students bob and eve."""
    (out / name).write_text(table, encoding="utf-8")
    with pytest.raises(WrongTable) as told:
        by_instructor(out, {"bob": {}, "eve": {}}, BY_ID)
    assert str(out / name) in str(told.value)
    return told.value.wrong


class TestPointsByHand:
    def test_take_the_place_of_the_graders_in_each_table(self, tmp_path):
        known = handed_in("bob", 3, 0, 4, 4, identity={"Identifier": "Participant 77"})
        before = written(tmp_path, known, handed_in("eve", 3, 0, 4, 4))
        theirs = of(before, "eve", "02.2")
        (total,) = (row["02 The naive kernel"] for row in rows(before / "gradebook-canvas.csv")[1:2])
        out = written(tmp_path, known, handed_in("eve", 3, 0, 4, 4), overrides=HEAD + "bob,02.2,1.5,a typo\n")
        mine = of(out, "bob", "02.2")
        assert (mine["points"], mine["judged"], mine["by_hand"]) == ("1.5", "0", "a typo")
        assert of(out, "eve", "02.2") == theirs and theirs["by_hand"] == ""
        canvas = {row["Student"]: row["02 The naive kernel"] for row in rows(out / "gradebook-canvas.csv")}
        moodle = {row["Full name"]: row["02 The naive kernel"] for row in rows(out / "gradebook-moodle.csv")}
        assert float(canvas["bob"]) == float(moodle["bob"]) == float(total) + 1.5
        (sheet,) = rows(out / "moodle-worksheet-02.csv")
        assert float(sheet["Grade"]) == float(total) + 1.5
        assert "02.2 1.5 of" in sheet["Feedback comments"] and "a typo" in sheet["Feedback comments"]

    def test_the_page_says_so_with_the_reason_and_the_graders_points(self, tmp_path):
        table = HEAD + 'bob,02.2,1.5,"a typo, <b>really</b>"\n'
        out = written(tmp_path, handed_in("bob", 3, 0, 4, 4), overrides=table)
        page = (out / "feedback" / f"{slug('bob')}.html").read_text()
        note = page.partition('class="note by-hand">')[2].partition("</p>")[0]
        assert "a typo, &lt;b&gt;really&lt;/b&gt;" in note and "gave 0" in note
        assert "a typo" in (out / "overview.html").read_text()

    def test_a_row_that_is_taken_out_gives_the_graders_points_back(self, tmp_path):
        kept = handed_in("bob", 3, 0, 4, 4)
        before = written(tmp_path, kept).joinpath("grades.csv").read_bytes()
        assert (
            written(tmp_path, kept, overrides=HEAD + "bob,02.2,1,x\n").joinpath("grades.csv").read_bytes()
            != before
        )
        assert written(tmp_path, kept, overrides=HEAD).joinpath("grades.csv").read_bytes() == before

    def test_what_is_to_be_graded_again_is_final_with_points_by_hand(self, tmp_path):
        out = written(tmp_path, handed_in("bob", 3, -1, 4, 4), overrides=HEAD + "bob,02.2,1,no GPU here\n")
        assert not (out / "to_regrade.csv").exists()
        assert (of(out, "bob", "02.2")["state"], of(out, "bob", "02.2")["judged"]) == ("graded", "")
        assert rows(out / "gradebook-moodle.csv")[0]["02 The naive kernel"] != "-"

    def test_a_lab_that_has_only_points_by_hand_counts_as_handed_in(self, tmp_path):
        made = handed_in("bob", 0, 0, 0, 0)
        nothing = Graded(Submission("bob"), made.results, "bubblewrap", 1.0)
        out = written(tmp_path, nothing, overrides=HEAD + "bob,02.1,2,on paper\n")
        assert rows(out / "gradebook-canvas.csv")[1]["02 The naive kernel"] == "2"

    def test_the_other_labs_stay_handed_in(self, tmp_path):
        made = handed_in("bob", 3)
        both = replace(made, submission=replace(made.submission, labs=("02", "03")))
        out = written(tmp_path, both, overrides=HEAD + "bob,02.1,1,why\n")
        assert [*rows(out / "gradebook-canvas.csv")[1].values()][-2:] == ["1", "0"]

    def test_a_name_may_be_written_as_in_the_table_of_grades(self, tmp_path):
        out = written(tmp_path, handed_in("=1+1", 0), overrides=HEAD + "'=1+1,02.1,2,why\n")
        assert of(out, "'=1+1", "02.1")["points"] == "2"

    @pytest.mark.parametrize("form", ["utf-8-sig", "semicolons", "tabs", "columns", "crlf"])
    def test_are_read_as_spreadsheets_save_them(self, tmp_path, form):
        table = HEAD + 'bob,02.2,1.5,"a typo, it is"\n'
        table = {
            "semicolons": "student;exercise;points;reason\nbob;02.2;1,5;a typo, it is\n",
            "tabs": "student\texercise\tpoints\treason\nbob\t02.2\t1.5\ta typo, it is\n",
            "columns": 'Reason,Points , Exercise,student,seen by\n"a typo, it is",1.5,02.2,bob,me\n,,,,\n',
            "crlf": table.replace("\n", "\r\n"),
            "utf-8-sig": "\ufeff" + table,
        }[form]
        row = of(written(tmp_path, handed_in("bob", 3, 0), overrides=table), "bob", "02.2")
        assert (row["points"], row["by_hand"]) == ("1.5", "a typo, it is")

    def test_each_mistake_is_told_with_line_and_column(self, tmp_path):
        table = HEAD + "bobb,02.1,2,x\nbob,02.9,2,x\n\nbob,02.1,two,x\nbob,02.1,2.5,x\nbob,02.1,nan,x\n"
        table += "bob,02.1,-1,x\nbob,02.1,2,\nbob,02.1,2,x\nbob,02.1,1,y\n"
        found = [each.partition(":")[0] for each in wrong(tmp_path, table)]
        assert found == [
            *("line 2, column student", "line 3, column exercise", "line 5, column points"),
            *("line 6, column points", "line 7, column points", "line 8, column points"),
            *("line 9, column reason", "line 11, column student"),
        ]

    @pytest.mark.parametrize(
        ("table", "where"),
        [
            ("student,exercise,points\nbob,02.1,2\n", "line 1"),
            (HEAD.replace("points", "student"), "line 1"),
            ("\n \n", "line 1"),
            (HEAD + "bob,02.1,1,5,a typo\n", "line 2"),
            (HEAD + 'bob,02.1,1,"never ends\n', "line 2"),
            (HEAD + 'eve,02.1,1,"two\nlines"\nbob,02.1,1,,,x\n', "line 4"),
        ],
    )
    def test_a_table_that_is_torn_is_told_with_its_line(self, tmp_path, table, where):
        assert wrong(tmp_path, table)[0].startswith(where)

    def test_a_spreadsheet_is_told(self, tmp_path):
        (tmp_path / "overrides.csv").write_bytes(b"PK\3\4" + bytes(range(256)))
        with pytest.raises(WrongTable) as told:
            by_instructor(tmp_path, {"bob": {}}, BY_ID)
        assert "spreadsheet" in told.value.wrong[0]

    def test_another_encoding_is_told_with_its_line(self, tmp_path):
        (tmp_path / "overrides.csv").write_bytes(HEAD.encode() + "bob,02.1,1,Übung\n".encode("cp1252"))
        with pytest.raises(WrongTable) as told:
            by_instructor(tmp_path, {"bob": {}}, BY_ID)
        assert told.value.wrong[0].startswith("line 2")

    def test_a_close_name_is_offered(self, tmp_path):
        assert "'bob'" in wrong(tmp_path, HEAD + "bobb,02.1,2,x\n")[0]


ROSTER = """student,name,github,canvas,section,short
b1,Bob Roe,bob-dev,4711,A,bo\u0308ke
e2,Eve Poe,eve-dev,4712,A
z9,Zoë,,,B
"""


class TestRoster:
    def test_says_who_has_handed_in_nothing(self, tmp_path):
        out = written(tmp_path, handed_in("bob-dev", 3), roster=ROSTER)
        assert [tuple(row.values()) for row in rows(out / "not_handed_in.csv")] == [
            *(("b1", "Bob Roe", "03"), ("e2", "Eve Poe", "02"), ("e2", "Eve Poe", "03")),
            *(("z9", "Zoë", "02"), ("z9", "Zoë", "03")),
        ]
        assert {row["student"] for row in rows(out / "grades.csv")} == {"b1"}
        assert "nothing from 2 of the class" in (out / "overview.html").read_text()

    @pytest.mark.parametrize(
        ("name", "identity"),
        [
            ("bob-dev", {}),
            ("BOB-Dev", {}),
            ("b1", {}),
            ("Bob  Roe", {"Identifier": "Participant 9"}),
            ("roebob", {"ID": "4711"}),
            ("eve-dev", {"ID": "4711"}),  # a number tells more than a name
            ("lab-02-bob-dev", {}),  # GitHub Classroom
            ("submission_4711", {}),  # Gradescope
            ("BÖKE", {}),  # likewise, with a letter of another form
        ],
    )
    def test_names_of_other_places_become_the_class_s_ids(self, tmp_path, name, identity):
        out = written(tmp_path, handed_in(name, 3, identity=identity), roster=ROSTER)
        assert {row["student"] for row in rows(out / "grades.csv")} == {"b1"}
        (row,) = rows(out / "gradebook-moodle.csv")
        assert (row["Username"], row["Full name"]) == ("b1", "Bob Roe")
        row = rows(out / "gradebook-canvas.csv")[1]
        assert (row["ID"] or row["SIS Login ID"]) == identity.get("ID", "b1")
        assert [path.name for path in (out / "feedback").iterdir()] == [f"{slug('b1')}.html"]

    @pytest.mark.parametrize("head", ["name", "Full name", "e-mail"])
    def test_a_name_to_show_is_the_roster_s_or_moodles(self, tmp_path, head):
        known = handed_in("Bob Roe", 3, identity={"Identifier": "Participant 9"})
        out = written(tmp_path, known, roster=f"student,{head}\nb1,Bob Roe\n")
        (row,) = rows(out / "moodle-worksheet-02.csv")
        assert (row["Identifier"], row["Full name"]) == ("Participant 9", "Bob Roe")

    def test_the_longest_user_name_counts(self, tmp_path):
        table = "student,github\na,doe\nb,jane-doe\n"
        out = written(tmp_path, handed_in("lab-02-jane-doe", 3), handed_in("lab-02-doe", 0), roster=table)
        first = {row["student"]: row["points"] for row in rows(out / "grades.csv")}
        assert first == {"a": "0", "b": "2"}

    def test_points_by_hand_may_name_the_class_s_id(self, tmp_path):
        table = HEAD + "b1,02.1,1,late talk\n"
        out = written(tmp_path, handed_in("bob-dev", 3), roster=ROSTER, overrides=table)
        assert of(out, "b1", "02.1")["points"] == "1"

    def test_there_are_no_points_for_nothing(self, tmp_path):
        (tmp_path / "roster.csv").write_text(ROSTER)
        (told,) = wrong(tmp_path, HEAD + "z9,02.1,1,ill\n")
        assert told.startswith("line 2, column student") and "has handed in nothing" in told

    def test_a_stranger_keeps_the_name_and_is_remarked(self, tmp_path):
        out = written(tmp_path, handed_in("mallory", 3), roster=ROSTER)
        assert {row["student"] for row in rows(out / "grades.csv")} == {"mallory"}
        assert "mallory" in (out / "overview.html").read_text()
        assert len(rows(out / "not_handed_in.csv")) == 6 + 1  # and mallory has not handed in lab 03

    def test_what_could_be_anothers_is_given_to_nobody(self, tmp_path):
        both = handed_in("bob-dev", 3), handed_in("Bob Roe", 0)
        out = written(tmp_path, *both, handed_in("A", 3), roster=ROSTER)
        assert {row["student"] for row in rows(out / "grades.csv")} == {"bob-dev", "Bob Roe", "A"}
        assert {row["student"] for row in rows(out / "not_handed_in.csv")} >= {"e2", "z9"}
        assert not {row["student"] for row in rows(out / "not_handed_in.csv")} & {"b1"}

    def test_a_name_that_two_students_have_tells_nothing(self, tmp_path):
        out = written(tmp_path, handed_in("A", 3), roster=ROSTER)
        assert {row["student"] for row in rows(out / "grades.csv")} == {"A"}
        absent = [row["student"] for row in rows(out / "not_handed_in.csv")]
        assert {"b1", "e2", "z9"} < set(absent)

    def test_intakes_doubts_stay(self, tmp_path):
        doubt = dict.fromkeys(("Student", "SIS Login ID", "Username"), "in doubt: bob-dev")
        out = written(tmp_path, handed_in("bob-dev", 3, identity=doubt), roster=ROSTER)
        assert rows(out / "gradebook-moodle.csv")[0]["Username"] == "in doubt: bob-dev"

    def test_without_a_roster_nobody_is_missing(self, tmp_path):
        assert not (written(tmp_path, handed_in("bob", 3)) / "not_handed_in.csv").exists()

    @pytest.mark.parametrize(
        ("table", "where"),
        [
            ("id,name\nb1,Bob\n", "line 1"),
            ("student,name\nb1,Bob\n,Eve\n", "line 3, column student"),
            ("student,name\nb1,Bob\ne2,Eve\nb1,Roe\n", "line 4, column student"),
        ],
    )
    def test_mistakes_are_told_with_line_and_column(self, tmp_path, table, where):
        assert wrong(tmp_path, table, "roster.csv")[0].startswith(where)


class TestCommand:
    """The whole command, with a judge that gives points by a hash."""

    @pytest.fixture
    def grade(self, tmp_path, monkeypatch):
        monkeypatch.setattr(run.judge, "grade", hashed)
        for name in ("ann", "ben"):
            hand_in(tmp_path / "class", name)
        begin = ["grade", str(tmp_path / "class"), "--out", str(tmp_path / "out"), "--isolation", "process"]
        return lambda *options: CliRunner().invoke(cli.app, [*begin, "--workers", "1", *options])

    def test_points_by_hand_outlive_resume(self, grade, tmp_path):
        assert grade("--lab", "02", "--seed", "5").exit_code == 0
        (tmp_path / "out" / "overrides.csv").write_text(HEAD + "ben,02.1,1.25,asked me\n")
        for _ in range(2):
            done = grade("--resume")
            assert done.exit_code == 0 and "Points by hand: 1" in done.output
            assert of(tmp_path / "out", "ben", "02.1")["points"] == "1.25"
        told = json.loads((tmp_path / "out" / "manifest.json").read_text())
        assert set(told["by_instructor"]) == {"overrides.csv"}

    def test_a_wrong_table_stops_before_anything_is_written(self, grade, tmp_path):
        assert grade("--lab", "02", "--seed", "5").exit_code == 0
        (tmp_path / "out" / "overrides.csv").write_text(HEAD + "bean,02.1,1.25,asked me\n")
        before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
        done = grade("--resume")
        assert done.exit_code == 1 and "line 2, column student" in done.output
        assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before

    def test_a_first_run_takes_what_the_instructor_has_laid_there(self, grade, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "roster.csv").write_text("student\nann\nben\ncid\n")
        (tmp_path / "class" / "ben").rename(tmp_path / "class" / "dan")
        done = grade("--lab", "02", "--seed", "5")
        assert done.exit_code == 0 and "Nothing handed in: ben, cid" in done.output
        assert "Not known by roster.csv: dan" in done.output
        (tmp_path / "out" / "mine.csv").touch()
        assert grade("--lab", "02").exit_code == 1


def test_a_run_that_is_stopped_shows_the_roster_s_ids(tmp_path):
    (tmp_path / "roster.csv").write_text(ROSTER)
    kept, identities = Store(tmp_path, 7, ASKED), {"bob-dev": {}, "eve-dev": {}}
    kept.put(handed_in("bob-dev", 3))
    summary = write_all(kept, RUN, list(identities), by_instructor(tmp_path, identities, BY_ID))
    assert (summary.absent, summary.to_regrade) == (("z9",), 1)
    assert [row["student"] for row in rows(tmp_path / "to_regrade.csv")] == ["e2"]
