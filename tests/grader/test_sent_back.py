"""What goes back to students: pages in zips named as Moodle and Canvas ask for; and when they handed in."""

import os
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from hashed_grades import hand_in, hashed
from made_up_class import SOLVED, exercises, result
from rich.console import Console

from grader import run
from grader.intake import submissions
from grader.model import Graded, Submission
from grader.report import write_all
from grader.results.handed_in import handed_in
from grader.results.manifest import Grading
from grader.results.store import Store
from grader.sandbox.limits import LIMITS

ASKED = exercises("02")
RUN = Grading(7, "labkit grade", SOLVED, LIMITS)
NAMES = ("Jane Doe", "Zoë O'Hara_Smith", "魏 五", "a/b\\c: d?", "x" * 300, "\udcff")


def of_student(student: str, **told: object) -> Graded:
    made = tuple(result(each, 3, "%%cuda") for each in ASKED)
    return Graded(Submission(student, {"02.ipynb": "f"}, ("02",), **told), made, "bubblewrap", 1.0)


def written(out: Path, *made: Graded) -> Path:
    kept = Store(out, 7, ASKED)
    for graded in made:
        kept.put(graded)
    write_all(kept, RUN, [graded.submission.student for graded in made])
    return out


def pages(path: Path) -> dict[str, str]:
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def participant(name: str) -> str:
    """The participant that Moodle sees in a name, as importziplib.php reads it."""
    assert "/" not in name and not name.startswith((".", "~"))
    parts = name.split("_", 4)
    assert len(parts) >= 4 and parts[2:4] == ["assignsubmission", "file"]
    return parts[1]


def user_and_attachment(name: str) -> tuple[str, str]:
    """The user and the attachment that Canvas sees, as infer_comment_context_from_filename reads it."""
    parts = [part for part in name.split("_") if part != "LATE"]
    assert not parts[-1].startswith("link") and not name.startswith("._")
    if parts[0] == "anon":
        return parts[1], parts[2]
    first, second = [part for part in parts if re.fullmatch(r"[0-9]+", part)][:2]
    return first, second


class TestMoodle:
    def test_each_page_is_named_by_its_participant_and_has_no_other_name(self, tmp_path):
        made = [
            of_student(name, identity={"Identifier": f"Participant {70 + place}"})
            for place, name in enumerate(NAMES)
        ]
        found = pages(written(tmp_path, *made, of_student("Xaver Nemo")) / "feedback-moodle.zip")
        assert sorted(map(participant, found)) == [str(70 + place) for place in range(len(NAMES))]
        for name, page in found.items():
            place = int(participant(name)) - 70
            for other in ("Jane Doe", "O&#39;Hara_Smith", "魏 五", "Xaver Nemo"):
                assert (other in page) == (other.replace("&#39;", "'") in NAMES[place])

    def test_a_submission_in_doubt_goes_back_to_nobody(self, tmp_path):
        doubt = dict.fromkeys(("Student", "SIS Login ID", "Username"), "in doubt: Eve")
        out = written(tmp_path, of_student("Eve", identity=doubt, sent_as=("Eve_7_assignsubmission_file_",)))
        assert not list(out.glob("feedback-*.zip"))

    def test_the_same_results_give_the_same_bytes(self, tmp_path):
        made = of_student("Jane", identity={"Identifier": "Participant 7"})
        both = [written(tmp_path / name, made) / "feedback-moodle.zip" for name in ("a", "b")]
        assert both[0].read_bytes() == both[1].read_bytes()

    def test_a_zip_of_an_earlier_class_is_removed(self, tmp_path):
        written(tmp_path, of_student("Jane", identity={"Identifier": "Participant 7"}))
        assert not list(written(tmp_path, of_student("Jane")).glob("feedback-*.zip"))


class TestCanvas:
    @pytest.mark.parametrize(
        ("sent_as", "identity", "expected"),
        [
            (("doejane_12345_67890_02_naive_cuda.ipynb",), {"ID": "12345"}, ("12345", "67890")),
            (("doejane_LATE_12345_67890_02_naive.ipynb",), {"ID": "12345"}, ("12345", "67890")),
            (("d_5_99_a.ipynb", "d_5_101_b.ipynb", "d_5_100_c.ipynb"), {"ID": "5"}, ("5", "101")),
            (("LATE_anon_Xk3fP_67890_02_naive.ipynb",), {"Anonymous ID": "Xk3fP"}, ("Xk3fP", "67890")),
        ],
    )
    def test_pages_are_named_as_the_newest_file_of_the_download(self, tmp_path, sent_as, identity, expected):
        out = written(tmp_path, of_student("doejane", identity=identity, sent_as=sent_as))
        (name,) = pages(out / "feedback-canvas.zip")
        assert user_and_attachment(name) == expected and name.endswith(".html")

    def test_without_the_attachments_number_canvas_would_ignore_it(self, tmp_path):
        assert not list(written(tmp_path, of_student("x", identity={"ID": "5"})).glob("feedback-*.zip"))


class TestHandedIn:
    def test_is_the_lms_mark_or_the_time_of_the_newest_notebook(self, tmp_path):
        folder = tmp_path / "jane"
        for name, time in (("02_a.ipynb", 10**9), ("03_b.ipynb", 2 * 10**9), ("notes.txt", 3 * 10**9)):
            (folder / name[:2]).mkdir(parents=True, exist_ok=True)
            (folder / name[:2] / name).touch()
            os.utime(folder / name[:2] / name, (time, time))
        assert handed_in([folder], ["02", "03", "04"]) == {
            "02": "2001-09-09T01:46Z",
            "03": "2033-05-18T03:33Z",
            "04": "2033-05-18T03:33Z",
        }
        late = tmp_path / "doejane_LATE_12345_67890_02_naive_cuda.ipynb"
        on_time = tmp_path / "doejane_12345_67891_03_tiling.ipynb"
        for path in (late, on_time):
            path.touch()
            os.utime(path, (10**9, 10**9))
        assert handed_in([late, on_time], ["02", "03"]) == {"02": "LATE", "03": "2001-09-09T01:46Z"}
        assert handed_in([late], ["02", "03"]) == {"02": "LATE", "03": "LATE"}

    def test_a_name_or_a_link_is_no_mark(self, tmp_path):
        (tmp_path / "LATE_jane").mkdir()
        (tmp_path / "LATE_jane" / "02.ipynb").symlink_to("nowhere")
        assert handed_in([tmp_path / "LATE_jane"], ["02"]) != {"02": "LATE"}

    def test_it_stands_in_the_table_of_grades(self, tmp_path):
        out = written(tmp_path, of_student("jane", handed_in={"02": "LATE"}))
        assert {line.rpartition(",")[2] for line in (out / "grades.csv").read_text().splitlines()[1:]} == {
            "LATE"
        }


def test_a_download_goes_in_and_its_feedback_comes_out(tmp_path):
    """From the names that Moodle and Canvas give to those that they take."""
    for name in ("Jane Doe_77_assignsubmission_file", "Max Roe_78_assignsubmission_file_"):
        hand_in(tmp_path / "moodle", name)
    hand_in(tmp_path / "canvas", "made")
    made = tmp_path / "canvas" / "made"
    (made / "02_naive_cuda.ipynb").rename(
        tmp_path / "canvas" / "doejane_LATE_12345_67890_02_naive_cuda.ipynb"
    )
    made.rmdir()
    for lms in ("moodle", "canvas"):
        wish = run.GradeRequest(tmp_path / lms, tmp_path / f"of_{lms}", ["02"], 5, 1, isolation="process")
        run.run(wish, Console(quiet=True), hashed)
    found = pages(tmp_path / "of_moodle" / "feedback-moodle.zip")
    assert {participant(name): "Jane Doe" in page for name, page in found.items()} == {
        "77": True,
        "78": False,
    }
    (name,) = pages(tmp_path / "of_canvas" / "feedback-canvas.zip")
    assert user_and_attachment(name) == ("12345", "67890")
    grades = (tmp_path / "of_canvas" / "grades.csv").read_text().splitlines()
    assert all(line.endswith(",LATE") for line in grades[1:])
    (entry,) = submissions.found(tmp_path / "canvas")
    assert entry.student == "doejane"
