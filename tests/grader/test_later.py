"""What is done with a folder of grades later: a student is forgotten, answers that are alike are listed."""

import csv
import json
from pathlib import Path

import pytest
from hashed_grades import hand_in, hashed
from made_up_class import cells
from typer.testing import CliRunner

from grader import run
from grader.model import GRADED, Answer, Graded, Result, Submission
from grader.results.similar import pairs
from labkit import cli
from labkit.course.notebooks.release import solution, without_solution

NAIVE = solution(cells()["02.1"])
HANDED_OUT = without_solution(cells()["02.1"])
OWN = """%%cuda 02.1
extern "C" __global__ void naive(const float* A, const float* B, float* C, int M, int N, int K) {
    const int column = threadIdx.x + blockIdx.x * blockDim.x;
    const int line = threadIdx.y + blockIdx.y * blockDim.y;
    const bool inside = line < M && column < N;
    float total[2] = {0.0f, 0.0f};
    for (int step = 0; inside && step + 1 < K; step += 2) {
        total[0] = fmaf(A[line * K + step], B[step * N + column], total[0]);
        total[1] = fmaf(A[line * K + step + 1], B[(step + 1) * N + column], total[1]);
    }
    if (inside && K % 2 == 1)
        total[0] += A[line * K + K - 1] * B[(K - 1) * N + column];
    if (inside)
        C[line * N + column] = total[0] + total[1];
}
"""
RENAMED = OWN.replace("column", "x").replace("line", "y").replace("total", "acc").replace("    ", "  ")
RENAMED = RENAMED.replace("const bool", "// is this thread of use?\n  const bool").replace("0.0f", "0.f")
RENAMED = RENAMED.replace(";\n", ";  // and on\n")
OTHER = """%%cuda 02.1
extern "C" __global__ void naive(const float* A, const float* B, float* C, int M, int N, int K) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= M || c >= N) return;
    const float* a = A + r * K;
    const float* b = B + c;
    float s = 0;
    int left = K;
    while (left--) { s += *a++ * *b; b += N; }
    C[r * N + c] = s;
}
"""


def alike(**sources: str) -> list[tuple[str, str]]:
    """The students whose answers to 02.1 are listed as alike."""
    made = [
        Graded(Submission(name, labs=("02",), answers={"02.1": Answer("02.1", source)}), (), "x", 0.0)
        for name, source in sources.items()
    ]
    return [(pair.student, pair.other) for pair in pairs(made, {"02.1": "cuda"}, {"02.1": [HANDED_OUT]})]


def scored(submission: Submission, labs: tuple[str, ...], seed: int, isolation: str, **_: object) -> Graded:
    """Give a point for everything."""
    results = tuple(Result(id, GRADED, 1.0, 2) for id in submission.answers if id.startswith("02."))
    return Graded(submission, results, isolation, 0.0)


class TestSimilar:
    def test_renamed_and_laid_out_anew_is_alike(self):
        assert alike(ann=OWN, ben=RENAMED, cid=OTHER) == [("ann", "ben")]

    def test_work_of_ones_own_is_not(self):
        assert alike(ann=OWN, ben=OTHER, cid=NAIVE) == []

    def test_what_was_handed_out_is_nobodys(self):
        assert alike(ann=HANDED_OUT, ben=HANDED_OUT, cid=HANDED_OUT + "\n// not done") == []

    def test_what_many_have_is_the_exercise_s_own(self):
        assert alike(**{f"student{place}": NAIVE for place in range(12)}) == []

    def test_a_group_is_not_many(self):
        assert len(alike(**{f"student{place}": OWN for place in range(6)})) == 15

    def test_a_part_of_it_is_found_too(self):
        longer = RENAMED.replace("if (inside)", "if (M < 0) { C[0] = 1; return; }\n  if (inside)")
        assert alike(ann=OWN, ben=longer) == [("ann", "ben")]

    def test_whoever_is_alike_in_most_exercises_comes_first(self):
        made = [
            Graded(Submission(name, answers={id: Answer(id, text) for id, text in own.items()}), (), "x", 0.0)
            for name, own in {
                "ann": {"02.1": OWN},
                "ben": {"02.1": RENAMED, "02.2": OTHER},
                "cid": {"02.1": OTHER, "02.2": NAIVE},
                "dan": {"02.2": NAIVE, "02.1": OTHER},
            }.items()
        ]
        found = pairs(made, {"02.1": "cuda", "02.2": "cuda"}, {})
        assert [(pair.student, pair.other, pair.exercise) for pair in found] == [
            ("cid", "dan", "02.1"),
            ("cid", "dan", "02.2"),
            ("ann", "ben", "02.1"),
        ]
        assert all(pair.share == 1 for pair in found[:2])

    @pytest.mark.parametrize(
        "source", ["", "%%cuda 02.1", "%%cuda 02.1\n" + "(" * 10**6, "%%cuda 02.1\n\0\ud800"]
    )
    def test_anything_may_be_handed_in(self, source):
        assert alike(ann=source, ben=source) == []


@pytest.fixture
def out(tmp_path, monkeypatch):
    """The grades of three students, two of whom have Canvas's names; ann has points by hand."""
    monkeypatch.setattr(run.judge, "grade", hashed)
    for name in ("ann", "benedikta", "cid"):
        hand_in(tmp_path / "class", name)
    folder = tmp_path / "class" / "benedikta"
    (folder / "02_naive_cuda.ipynb").rename(
        tmp_path / "class" / "benedikta_4815162342_67890_02_naive_cuda.ipynb"
    )
    folder.rmdir()
    (tmp_path / "out").mkdir()
    reasons = 'ann,02.1,1,"asked,\nand was right"\n'
    head = "student,exercise,points,reason\n"
    (tmp_path / "out" / "overrides.csv").write_text(
        f'{head}benedikta,02.1,1,too\n{reasons}bx-77,02.2,1,"like\nwise"\n'
    )
    (tmp_path / "out" / "roster.csv").write_text("student,canvas\nann,\nbx-77,4815162342\ncid,\n")
    done = grade(tmp_path, "--lab", "02", "--seed", "5")
    assert done.exit_code == 0, done.output
    return tmp_path / "out"


def grade(folder: Path, *options: str):
    begin = ["grade", str(folder / "class"), "--out", str(folder / "out"), "--isolation", "process"]
    return CliRunner().invoke(cli.app, [*begin, "--workers", "1", *options])


def holding(folder: Path, *words: str) -> set[str]:
    """The files below a folder with one of the words in name or content, but the instructor's own list."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "roster.csv"]
    return {
        path.name
        for path in files
        if any(word in path.name or word.encode() in path.read_bytes() for word in words)
    }


class TestForget:
    @pytest.mark.parametrize("name", ["bx-77", "benedikta"])
    def test_nothing_of_the_student_is_left(self, out, name):
        assert holding(out, "bx-77", "benedikta", "4815162342")
        assert CliRunner().invoke(cli.app, ["similar", str(out)]).exit_code == 0
        done = CliRunner().invoke(cli.app, ["forget", str(out), name])
        assert done.exit_code == 0, done.output
        assert not (out / "similar.csv").exists()  # it would be a list of students
        # but that the roster, which is the instructor's, has a student without a submission
        assert holding(out, "bx-77", "benedikta", "4815162342") == {"not_handed_in.csv"}
        assert "benedikta_4815162342_67890_02_naive_cuda.ipynb" in done.output and "roster.csv" in done.output

    def test_all_that_is_of_others_stays(self, out):
        before = (out / "grades.csv").read_text().splitlines()
        feedback = {path.name: path.read_bytes() for path in (out / "feedback").iterdir()}
        assert CliRunner().invoke(cli.app, ["forget", str(out), "bx-77"]).exit_code == 0
        after = (out / "grades.csv").read_text().splitlines()
        assert after == [line for line in before if not line.startswith("bx-77,")]
        assert 'ann,02.1,1,"asked,\nand was right"\n' in (out / "overrides.csv").read_text()
        assert {path.name for path in (out / "feedback").iterdir()} < set(feedback)
        with (out / "grades.csv").open(newline="") as file:
            first = next(csv.DictReader(file))
        assert (first["student"], first["points"], first["by_hand"]) == ("ann", "1", "asked, and was right")

    def test_resume_grades_whoever_is_still_among_the_submissions(self, out):
        CliRunner().invoke(cli.app, ["forget", str(out), "bx-77"])
        done = grade(out.parent, "--resume")
        assert done.exit_code == 0 and "bx-77,02.1" in (out / "grades.csv").read_text()

    def test_nobody_of_that_name_is_told_and_nothing_is_changed(self, out):
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        done = CliRunner().invoke(cli.app, ["forget", str(out), "bean"])
        assert done.exit_code == 1 and "'bean'" in done.output and "ann, bx-77, cid" in done.output
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before

    @pytest.mark.parametrize("stored", [b"", b"{}", b'{"form": 1, "graded": {}}'])
    def test_a_file_that_cannot_be_read_goes_too(self, out, stored):
        (path,) = (out / "results").glob("ann*")
        path.write_bytes(stored)
        (out / "overrides.csv").unlink()
        done = CliRunner().invoke(cli.app, ["forget", str(out), "ann"])
        assert done.exit_code == 0 and not path.exists()
        assert holding(out, "ann,") == {"not_handed_in.csv"}

    def test_a_folder_without_grades_is_told(self, tmp_path):
        for command in (["forget", str(tmp_path), "ann"], ["similar", str(tmp_path)]):
            done = CliRunner().invoke(cli.app, command)
            assert done.exit_code == 1 and str(tmp_path) in done.output


@pytest.mark.parametrize(
    ("source", "rows"),
    [(OWN, 3), (NAIVE, 0), (HANDED_OUT, 0)],  # NAIVE is the course's solution
    ids=["own", "solution", "handed out"],
)
def test_the_command_lists_what_is_neither_handed_out_nor_the_course_s(tmp_path, monkeypatch, source, rows):
    monkeypatch.setattr(run.judge, "grade", scored)
    for name, text in (("ann", source), ("ben", source), ("cid", source)):
        hand_in(tmp_path / "class", name)
        path = tmp_path / "class" / name / "02_naive_cuda.ipynb"
        notebook = json.loads(path.read_text())
        notebook["cells"][0]["source"] = text
        path.write_text(json.dumps(notebook))
    assert grade(tmp_path, "--lab", "02").exit_code == 0
    done = CliRunner().invoke(cli.app, ["similar", str(tmp_path / "out")])
    with (tmp_path / "out" / "similar.csv").open(newline="") as file:
        assert done.exit_code == 0 and len(list(csv.DictReader(file))) == rows
