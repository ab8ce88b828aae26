"""The store of results, and the tables and the manifest that are made of it."""

import csv
import gc
import hashlib
import json
import random
import re
import sys
import tracemalloc
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_class import NAMES, SOLVED, exercises, made_up, result

from grader.intake.labs import labs, total, worth
from grader.model import REGRADE, Answer, Graded, Submission
from grader.report import write_all
from grader.results.manifest import Grading, sha256
from grader.results.store import Store
from grader.results.tables import Tables, cell
from grader.sandbox.limits import LIMITS
from grader.text import slug

LABS = ("02", "03")
ASKED = exercises(*LABS)
RUN = Grading(7, "labkit grade submissions --out grades", SOLVED, LIMITS)
OF_02, OF_03 = (str(sum(exercise.points for exercise in exercises(lab))) for lab in LABS)
BY_ID = {exercise.id: exercise for exercise in ASKED}


def handed_in(student: str, *met: int, **told) -> Graded:
    """A submission of lab 02 that meets so many criteria of each exercise; -1: to be graded again."""
    made = [result(BY_ID[f"02.{place}"], count, "%%cuda") for place, count in enumerate(met, 1)]
    return Graded(
        Submission(student, {"02.ipynb": "f" * 64}, ("02",), **told), tuple(made), "bubblewrap", 1.0
    )


def store(folder: Path, *submissions: Graded, seed: int = 7) -> Store:
    kept = Store(folder, seed, ASKED)
    for graded in submissions:
        kept.put(graded)
    return kept


def written(folder: Path, *submissions: Graded) -> Path:
    """The folder, with all that is made of the submissions."""
    names = [graded.submission.student for graded in submissions]
    write_all(store(folder, *submissions), RUN, names)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def some():
    return list(made_up(40))


@pytest.fixture(scope="module")
def grades(tmp_path_factory, some):
    """What is made of a class of 40."""
    return written(tmp_path_factory.mktemp("grades"), *some)


class TestSlug:
    AWKWARD = (
        *NAMES,
        "",
        ".",
        "..",
        "/etc/passwd",
        "CON",
        "nul.json",
        "a" * 5000,
        "a\0b",
        "\udcff\udc80",
        "anna",
        "Anna",
    )

    @pytest.mark.parametrize("name", AWKWARD)
    def test_is_safe_on_every_system(self, name):
        assert re.fullmatch(r"[A-Za-z0-9_]+-[0-9a-f]{12}", slug(name)) and len(slug(name)) <= 80

    def test_names_that_look_equal_when_cleaned_keep_apart(self):
        names = [*self.AWKWARD, "bob", "bob ", "bob/", "Bob", "a" * 4999, "b\u00f6b", "bo\u0308b"]
        assert len({slug(name).lower() for name in names}) == len(set(names))

    def test_a_name_can_be_read_from_it(self):
        assert slug("Anna Grün").startswith("Anna_Grun-")


class TestStore:
    def test_gives_back_what_was_put(self, tmp_path, some):
        kept = store(tmp_path, *some)
        assert all(kept.get(graded.submission.student) == graded for graded in some)
        assert all(kept.is_done(graded.submission) for graded in some if REGRADE not in states(graded))
        assert {path.suffix for path in kept.folder.iterdir()} == {".json"}

    def test_goes_through_students_in_the_order_of_their_names(self, tmp_path, some):
        kept = store(tmp_path, *some)
        names = [graded.submission.student for graded in some]
        assert [graded.submission.student for graded in kept.of([*names, "nobody"])] == sorted(names)

    def test_a_damaged_file_is_graded_again(self, tmp_path):
        graded = handed_in("bob", 3, 3)
        kept = store(tmp_path, graded)
        (path,) = kept.folder.iterdir()
        whole = path.read_bytes()
        for cut in (*range(0, len(whole), 97), len(whole) - 1):
            path.write_bytes(whole[:cut])
            assert kept.get("bob") is None and not kept.is_done(graded.submission)
        for other in (
            b"[]",
            b"null",
            b'"x"',
            b"[" * 100_000,
            b"\xff\xfe",
            whole.replace(b'"lines"', b'"rows"'),
        ):
            path.write_bytes(other)
            assert kept.get("bob") is None
        kept.put(graded)
        assert kept.is_done(graded.submission)

    def test_what_is_to_be_graded_again_is_not_done(self, tmp_path):
        graded = handed_in("bob", 3, -1)
        assert not store(tmp_path, graded).is_done(graded.submission)

    def test_a_changed_submission_is_not_done(self, tmp_path):
        graded = handed_in("bob", 3, 3)
        kept = store(tmp_path, graded)
        for files in (
            {},
            {"02.ipynb": "0" * 64},
            {"03.ipynb": "f" * 64},
            {**graded.submission.files, "x": "1"},
        ):
            assert not kept.is_done(replace(graded.submission, files=files))

    def test_another_run_does_not_find_it(self, tmp_path):
        graded = handed_in("bob", 3, 3)
        store(tmp_path, graded)
        harder = replace(ASKED[0], points=ASKED[0].points + 1)
        asked_less = replace(ASKED[0], criteria=ASKED[0].criteria[1:])
        for others in ([harder, *ASKED[1:]], [asked_less, *ASKED[1:]]):
            assert not Store(tmp_path, 7, others).is_done(graded.submission)
        assert not Store(tmp_path, 8, ASKED).is_done(graded.submission)
        assert Store(tmp_path, 7, ASKED[::-1]).is_done(graded.submission)
        assert Store(tmp_path, 7, ASKED[1:]).is_done(graded.submission)

    def test_a_name_that_is_no_text_can_be_kept(self, tmp_path):
        graded = handed_in("\udcff/..\n=1", 3)
        assert store(tmp_path, graded).get("\udcff/..\n=1") == graded
        written(tmp_path, graded)
        assert rows(tmp_path / "grades.csv")[0]["student"] == "\N{REPLACEMENT CHARACTER}/.. =1"


def states(graded: Graded) -> set[str]:
    return {each.state for each in graded.results}


class TestGrades:
    def test_has_a_row_for_each_student_and_exercise(self, grades, some):
        table = rows(grades / "grades.csv")
        assert len(table) == sum(len(graded.results) for graded in some)
        asked = {graded.submission.student: len(graded.results) for graded in some}
        assert [row["student"] for row in table] == [
            cell(name) for name in sorted(asked) for _ in range(asked[name])
        ]
        own = [row["exercise"] for row in table if row["student"] == "bob"]
        assert own == sorted(own) and len(set(own)) == asked["bob"]

    def test_has_what_was_judged(self, tmp_path):
        table = rows(written(tmp_path, handed_in("bob", 3, 1, -1)) / "grades.csv")
        first = {
            "student": "bob",
            "exercise": "02.1",
            "title": "The naive product",
            "points": "2",
            "of": "2",
            "state": "graded",
        }
        assert table[0] == first | {"criteria_met": "3", "criteria": "3", "first_unmet": "", "note": ""} | {
            "judged": "",
            "by_hand": "",
            "handed_in": "",
        }
        assert table[1]["points"] == f"{sum(worth(BY_ID['02.2'])[:1]):.2f}".rstrip("0").rstrip(".")
        assert (table[1]["criteria_met"], table[1]["first_unmet"]) == ("1", BY_ID["02.2"].criteria[1].text)
        assert (table[2]["points"], table[2]["state"], table[2]["of"]) == ("", "regrade", "2")

    def test_the_same_results_give_the_same_bytes(self, tmp_path, grades, some):
        shuffled = [replace(each, seconds=9.0, results=each.results[::-1]) for each in some]
        random.Random(1).shuffle(shuffled)
        again = written(tmp_path, *shuffled)
        for name in ("grades.csv", "gradebook-canvas.csv", "gradebook-moodle.csv", "to_regrade.csv"):
            assert (again / name).read_bytes() == (grades / name).read_bytes()

    def test_02_10_comes_after_02_9(self, tmp_path):
        ids = ["02.10", "02.9", "02.1"]
        asked = [replace(BY_ID["02.1"], id=id) for id in ids]
        graded = Graded(
            Submission("bob", labs=("02",)), tuple(result(each, 3, "x") for each in asked), "x", 0
        )
        kept = Store(tmp_path, 7, asked)
        kept.put(graded)
        write_all(kept, RUN, ["bob"])
        assert [row["exercise"] for row in rows(tmp_path / "grades.csv")] == ["02.1", "02.9", "02.10"]

    def test_lines_end_as_on_every_system(self, grades):
        data = (grades / "grades.csv").read_bytes()
        assert b"\r" not in data and data.count(b"\n") == len(rows(grades / "grades.csv")) + 1
        data.decode("utf-8")

    def test_a_run_that_is_stopped_leaves_the_tables_of_the_last(self, tmp_path):
        before = written(tmp_path, handed_in("bob", 3)).joinpath("grades.csv").read_bytes()
        with pytest.raises(KeyboardInterrupt), Tables(tmp_path, labs(ASKED, SOLVED)) as tables:
            tables.add(handed_in("eve", 0))
            raise KeyboardInterrupt
        assert (tmp_path / "grades.csv").read_bytes() == before

    def test_nothing_half_written_is_left(self, grades):
        assert not list(grades.rglob("*.part"))


def names(some: list[Graded]) -> list[str]:
    return [graded.submission.student for graded in some]


class TestCells:
    @pytest.mark.parametrize(
        "text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\x1b[1m=1", "\n=1", "＝1", "-"]
    )
    def test_no_text_becomes_a_formula(self, text):
        shown = cell(text)
        assert shown.startswith("'") and "\t" not in shown and "\r" not in shown and "\n" not in shown

    @pytest.mark.parametrize("separator", [";", ",", "\t", "|", "\n", "\r\n"])
    @pytest.mark.parametrize("begin", ["=", "+", "-", "@", " =", "＝", "﹢"])
    def test_no_part_of_a_text_is_a_formula_with_another_separator(self, separator, begin):
        text = f"Eve{separator}{begin}1+1{separator}'{begin}1"
        for read in (cell(text), f"x;{cell(text)}"):
            for part in re.split(r"[;,\t|\n\r]", read):
                assert not unicodedata.normalize("NFKC", part).strip(' "').startswith(tuple("=+-@")), part

    def test_text_stays_one_line_without_control_characters(self):
        assert cell(
            "eve\nfrank\x00\x1b[31m red\x9b \u202etxt"
        ) == "eve frank\N{REPLACEMENT CHARACTER} red" + (
            "\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}txt"
        )

    def test_megabytes_are_cut(self):
        assert cell("ab" * 10**6) == "ab" * 59 + "a…"

    def test_others_stay_as_they_are(self):
        assert [cell(text) for text in ("Ċarmen O'Hara", "魏 五", 'a,b;"c"', "")] == [
            *("Ċarmen O'Hara", "魏 五", 'a,b;"c"', "")
        ]


class TestCanvas:
    def test_has_the_columns_that_its_import_looks_for(self, grades):
        first, second, *students = csv.reader(
            (grades / "gradebook-canvas.csv").open(encoding="utf-8", newline="")
        )
        assert first == [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Section",
            *("02 The naive kernel", "03 Tiles in shared memory"),
        ]
        assert second == ["    Points Possible", "", "", "", "", OF_02, OF_03]
        assert {len(row) for row in students} == {7}

    def test_points_are_sums_and_blank_where_they_are_not_final(self, tmp_path):
        table = written(
            tmp_path, handed_in("a", 3, 3, 4, 4), handed_in("b", 3, -1, 4, 4), handed_in("c", 0, 1, 0, 0)
        )
        points = {
            row["Student"]: row["02 The naive kernel"] for row in rows(table / "gradebook-canvas.csv")[1:]
        }
        assert points == {"a": "9", "b": "", "c": rows(table / "grades.csv")[9]["points"]}
        assert {row["03 Tiles in shared memory"] for row in rows(table / "gradebook-canvas.csv")[1:]} == {""}

    def test_students_are_known_by_their_id_else_by_the_name_of_their_files(self, tmp_path):
        known = handed_in("doejane", 3, identity={"ID": "12345"})
        table = rows(written(tmp_path, known, handed_in("roe", 3)) / "gradebook-canvas.csv")
        assert [(row["Student"], row["ID"], row["SIS Login ID"]) for row in table[1:]] == [
            *(("doejane", "12345", ""), ("roe", "", "roe"))
        ]

    def test_no_student_can_set_what_a_lab_is_worth(self, tmp_path):
        hostile = handed_in("    Points Possible", 0, 0, 0, 0)
        table = csv.reader(
            (written(tmp_path, hostile) / "gradebook-canvas.csv").open(encoding="utf-8", newline="")
        )
        assert [("Points Possible" in row[0], row[5]) for row in table] == [
            *((False, "02 The naive kernel"), (True, OF_02), (False, "0"))
        ]


class TestMoodle:
    def test_nobody_is_without_the_name_that_the_import_maps_from(self, grades, some):
        table = rows(grades / "gradebook-moodle.csv")
        assert len(table) == len(some) and all(row["Username"] for row in table)
        assert list(table[0]) == ["Username", "Full name", "02 The naive kernel", "03 Tiles in shared memory"]

    def test_what_is_not_graded_is_a_dash(self, tmp_path):
        table = rows(written(tmp_path, handed_in("b", 3, -1, 4, 4)) / "gradebook-moodle.csv")
        assert [*table[0].values()] == ["b", "b", "-", "-"]

    def test_worksheets_have_the_participants_of_moodles_own_names(self, tmp_path):
        known = handed_in("Jane <Doe>", 3, 0, 4, 4, identity={"Identifier": "Participant 77"})
        out = written(
            tmp_path, known, handed_in("waits", -1, identity={"Identifier": "Participant 78"}), handed_in("x")
        )
        assert [path.name for path in out.glob("moodle-worksheet-*")] == ["moodle-worksheet-02.csv"]
        (row,) = rows(out / "moodle-worksheet-02.csv")
        told = (
            row["Identifier"],
            row["Full name"],
            row["Grade"],
            row["Maximum Grade"],
            row["Last modified (grade)"],
        )
        assert told == ("Participant 77", "Jane <Doe>", "7", OF_02, "")
        assert (
            "02.2 0 of 2: not met: right where the blocks cover C exactly<br>02.3 2 of 2"
            in row["Feedback comments"]
        )
        written(out, handed_in("x", 3))
        assert not list(out.glob("moodle-worksheet-*"))

    def test_a_name_that_the_student_chose_is_no_username(self, tmp_path):
        eve = handed_in("bob", 3, identity={"Identifier": "Participant 77"})
        out = written(tmp_path, eve)
        (row,) = rows(out / "gradebook-moodle.csv")
        assert (row["Username"], row["Full name"]) == ("Participant 77", "bob")
        assert [row["SIS Login ID"] for row in rows(out / "gradebook-canvas.csv")] == ["", ""]

    def test_feedback_is_no_formula_with_another_separator(self, tmp_path):
        graded = handed_in("jane", 0, identity={"Identifier": "Participant 77"})
        (first,) = graded.results
        hostile = replace(first, lines=(replace(first.lines[0], text="'=1+1"),))
        out = written(tmp_path, replace(graded, results=(hostile,)))
        assert ";=" not in (out / "moodle-worksheet-02.csv").read_text()

    def test_feedback_is_no_markup(self, tmp_path):
        graded = handed_in("jane", 0, identity={"Identifier": "Participant 77"})
        (first,) = graded.results
        hostile = replace(first, lines=(replace(first.lines[0], text="<img src=x onerror=alert(1)>"),))
        out = written(tmp_path, replace(graded, results=(hostile,)))
        assert "&lt;img src=x" in rows(out / "moodle-worksheet-02.csv")[0]["Feedback comments"]


class TestToRegrade:
    def test_names_students_exercises_and_reasons(self, tmp_path):
        out = written(tmp_path, handed_in("bob", 3, -1), handed_in("eve", 3, 3))
        assert rows(out / "to_regrade.csv") == [
            {"student": "bob", "exercise": "02.2", "reason": "the kernel did not start within 60 s"}
        ]

    def test_is_there_only_if_there_is_something(self, tmp_path):
        written(tmp_path, handed_in("bob", 3, -1))
        assert not (written(tmp_path, handed_in("bob", 3, 3)) / "to_regrade.csv").exists()

    def test_has_those_who_were_not_graded_at_all(self, tmp_path):
        summary = write_all(store(tmp_path, handed_in("bob", 3, 3)), RUN, ["bob", "eve"])
        assert (summary.submissions, summary.graded, summary.to_regrade) == (2, 1, 1)
        assert [row["student"] for row in rows(tmp_path / "to_regrade.csv")] == ["eve"]
        assert {row["student"] for row in rows(tmp_path / "grades.csv")} == {"bob"}

    def test_those_of_an_earlier_class_are_left_out(self, tmp_path):
        kept = store(tmp_path, handed_in("bob", 3, 3), handed_in("eve", 3, 3))
        assert write_all(kept, RUN, ["bob"]).submissions == 1
        assert {row["student"] for row in rows(tmp_path / "grades.csv")} == {"bob"}


class TestManifest:
    def test_hashes_are_those_of_the_files(self, grades):
        told = json.loads((grades / "manifest.json").read_text(encoding="utf-8"))
        for name, hashed in told["tables"].items():
            assert hashlib.sha256((grades / name).read_bytes()).hexdigest() == hashed
        assert {"grades.csv", "gradebook-canvas.csv", "gradebook-moodle.csv", "to_regrade.csv"} == set(
            told["tables"]
        )
        assert told["solved_notebooks"]["02_naive_cuda.ipynb"] == sha256(SOLVED / "02_naive_cuda.ipynb")

    def test_says_what_took_part(self, grades, some):
        told = json.loads((grades / "manifest.json").read_text(encoding="utf-8"))
        assert (told["seed"], told["command"]) == (7, RUN.command)
        assert told["submissions"] == 40 and told["isolation"] == ["bubblewrap"]
        assert told["graded"] + told["to_regrade"] == 40 and told["to_regrade"] > 0
        assert told["submitted_files"]["bob"] == dict(some[1].submission.files)
        assert told["limits"]["cell_seconds"] == LIMITS.cell_seconds
        assert told["labs"]["03"] == ["03.1", "03.2", "03.3", "03.4", "03.5"]
        assert told["versions"]["numpy"] == np.__version__
        for name in ("Python", "llvmlite", "nvidia-cuda-nvrtc", "nbval", "bubblewrap", "C compiler"):
            assert told["versions"][name]
        assert re.fullmatch(r"([0-9a-f]{40}\+?)?", told["commit"])


def test_totals_of_a_lab_are_those_of_its_exercises(some):
    for lab in labs(ASKED, SOLVED):
        for graded in some:
            own = [each.points for each in graded.results if each.exercise.startswith(lab.number)]
            expected = None if None in own or lab.number not in graded.submission.labs else sum(own)
            assert total(graded, lab) == expected


def peak(folder: Path, count: int) -> int:
    """Bytes of memory that the tables and pages of so many large submissions take at most."""

    def large(place: int) -> Graded:
        source = "%%cuda 02.1\n" + f"// {place} {'x' * 90}\n" * 1500
        made = replace(result(BY_ID["02.1"], 1), failure="y" * 200_000, source=source)
        answers = {"02.1": Answer("02.1", source)}
        return Graded(Submission(f"{place}", {}, ("02",), answers), (made,), "bubblewrap", 1.0)

    kept = Store(folder, 7, ASKED)
    for place in range(count):
        kept.put(large(place))
    gc.collect()
    gc.freeze()  # else how soon garbage is collected depends on all that earlier tests keep
    tracemalloc.start()
    try:
        write_all(kept, RUN, [str(place) for place in range(count)])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.skipif(sys.gettrace() is not None, reason="what a tracer notes takes memory, too")
def test_memory_does_not_grow_with_the_class(tmp_path):
    peak(tmp_path / "first", 1)  # what is loaded once
    # few enough for a test, and enough that garbage has been collected
    few, many = peak(tmp_path / "few", 50), peak(tmp_path / "many", 120)
    assert many < few + 2**21
