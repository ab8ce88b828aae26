"""`--resume` judges again what other rules have judged, and what somebody asks for, beside the old points."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hashed_grades import hand_in
from made_up_class import SOLVED, exercises, result
from typer.testing import CliRunner

from grader import run
from grader.judging.pool import Pool
from grader.model import GRADED, REGRADE, Graded, Result, Submission
from grader.report import write_all
from grader.results import judged_by as rules
from grader.results.judged_by import judged_by
from grader.results.manifest import Grading
from grader.results.store import Store
from grader.sandbox.limits import LIMITS
from labkit import cli
from labkit.course import EXERCISES
from labkit.course.notebooks import catalog

LAB = sorted(id for id in EXERCISES if id.startswith("02."))
ASKED = exercises("02")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def solved(tmp_path, monkeypatch):
    """A copy of the solved notebook 02 in the place of all that are shipped."""
    folder = tmp_path / "shipped" / "solutions"
    folder.mkdir(parents=True)
    (path,) = SOLVED.glob("02_*.ipynb")
    for place in (folder, folder.parent):
        (place / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(catalog, "shipped", lambda: tmp_path / "shipped")
    return folder / path.name


def change_hidden(path: Path, exercise: str) -> None:
    """Change the hidden check of an exercise, or add one that asks for nothing."""
    notebook = json.loads(path.read_text())
    source = "CRITERIA = ()"
    about = {"exercise": exercise, "role": "hidden"}
    cell = {"cell_type": "code", "metadata": {"labkit": about}, "outputs": [], "source": source, "id": "new"}
    notebook["cells"].append({**cell, "execution_count": None})
    path.write_text(json.dumps(notebook))


class TestWhatJudges:
    def test_a_hidden_check_belongs_to_its_exercise(self, solved):
        before = judged_by(ASKED)
        change_hidden(solved, "02.3")
        after = judged_by(ASKED)
        assert [id for id in before if before[id] != after[id]] == ["02.3"]
        assert rules.changed(before["02.3"], after["02.3"]) == rules.CHANGED["hidden"]

    def test_the_criteria_of_a_lab_belong_to_the_lab(self, monkeypatch):
        asked = exercises("02", "03")
        before = judged_by(asked)
        monkeypatch.setattr(rules, "_of_lab", lambda lab: "changed" if lab == "03" else real(lab))
        after = judged_by(asked)
        assert {id[:2] for id in before if before[id] != after[id]} == {"03"}

    def test_what_an_exercise_is_worth_belongs_to_it(self):
        harder = [replace(ASKED[0], points=9), *ASKED[1:]]
        before, after = judged_by(ASKED), judged_by(harder)
        assert [id for id in before if before[id] != after[id]] == [ASKED[0].id]

    @pytest.mark.parametrize(
        ("file", "has_part"),
        [
            ("grader/sandbox/process.py", True),
            ("labkit/course/criteria/kernels.py", True),
            ("simt/module.py", True),
            ("labkit/ladder/new.py", True),
            ("labkit/c/driver.c", True),
            ("labkit/course/exercises/lab_02.py", False),  # of its lab alone
            ("labkit/cli.py", False),
            ("labkit/__init__.py", False),  # a new version by itself
            ("labkit/course/__init__.py", True),
            ("labkit/lab/new.py", False),
            ("grader/results/tables.py", False),
            ("grader/pages/student.html", False),
            ("grader/doctor.py", False),
            ("simt/README.md", False),
            ("simt/__pycache__/module.cpython-311.pyc", False),
            ("simt/.module.py.swp", False),
        ],
    )
    def test_the_sandbox_and_all_else_that_judges_belong_to_all(self, tmp_path, monkeypatch, file, has_part):
        monkeypatch.setattr(rules, "PACKAGES", [tmp_path / name for name in ("simt", "labkit", "grader")])
        monkeypatch.setattr(rules, "shipped", lambda name: tmp_path / name)
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
        before = rules.grader.__wrapped__()
        path.write_text("two")
        assert (rules.grader.__wrapped__() != before) == has_part


real = rules._of_lab


def graded(student: str = "bob") -> Graded:
    made = tuple(result(each, 3, "%%cuda") for each in ASKED)
    return Graded(Submission(student, {"02.ipynb": "f"}, ("02",)), made, "bubblewrap", 1.0)


def with_points(points: float) -> Graded:
    return replace(graded(), results=tuple(replace(each, points=points) for each in graded().results))


class TestStore:
    def test_finds_what_other_rules_have_judged_without_its_points(self, tmp_path, monkeypatch):
        Store(tmp_path, 7, ASKED).put(graded())
        harder = [replace(ASKED[0], points=9), *ASKED[1:]]
        kept = Store(tmp_path, 7, harder)
        states = {each.exercise: (each.state, each.points) for each in kept.get("bob").results}
        assert states.pop(ASKED[0].id) == (REGRADE, None)
        assert {state for state, _ in states.values()} == {GRADED}
        assert list(kept.pending(graded().submission)) == [ASKED[0].id]

    def test_what_is_left_has_no_points_in_the_tables(self, tmp_path):
        """As when the run is stopped before all is judged again."""
        Store(tmp_path, 7, ASKED).put(graded())
        kept = Store(tmp_path, 7, [replace(ASKED[0], points=9), *ASKED[1:]])
        write_all(kept, Grading(7, "labkit grade", SOLVED, LIMITS), ["bob"])
        (row,) = rows(tmp_path / "to_regrade.csv")
        assert row["exercise"] == ASKED[0].id and rules.CHANGED["criteria"] in row["reason"]
        assert [*rows(tmp_path / "gradebook-moodle.csv")[0].values()][-1] == "-"
        assert not (tmp_path / "regraded.csv").exists()

    def test_keeps_the_points_before(self, tmp_path):
        Store(tmp_path, 7, ASKED).put(graded())
        before = graded().results[0].points
        kept = Store(tmp_path, 7, [replace(ASKED[0], points=9), *ASKED[1:]])
        failed = replace(
            graded(), results=tuple(replace(each, state=REGRADE, points=None) for each in graded().results)
        )
        kept.add(graded().submission, failed, {ASKED[0].id}, "")  # the grader fails the first time
        kept.add(graded().submission, graded(), {ASKED[0].id}, "")
        first, *others = kept.get("bob").results
        assert (first.before, first.again) == (before, rules.CHANGED["criteria"])
        assert others == list(graded().results[1:])

    def test_the_last_reason_counts(self, tmp_path):
        Store(tmp_path, 7, ASKED).put(graded())
        kept = Store(tmp_path, 7, [replace(ASKED[0], points=9), *ASKED[1:]])
        for points in (9.0, 4.0):
            kept.add(graded().submission, with_points(points), {ASKED[0].id}, "asked for")
        first = kept.get("bob").results[0]
        assert (first.before, first.points, first.again) == (9, 4, "asked for")

    def test_files_that_have_changed_have_no_points_before(self, tmp_path):
        kept = Store(tmp_path, 7, ASKED)
        kept.put(graded())
        late = replace(graded().submission, files={"02.ipynb": "0"})
        assert set(kept.pending(late)) == {each.id for each in ASKED}
        kept.add(late, graded(), {each.id for each in ASKED}, "why")
        assert {each.before for each in kept.get("bob").results} == {None}

    def test_an_exercise_that_is_new_is_pending(self, tmp_path):
        Store(tmp_path, 7, ASKED[1:]).put(replace(graded(), results=graded().results[1:]))
        assert list(Store(tmp_path, 7, ASKED).pending(graded().submission)) == [ASKED[0].id]

    def test_one_that_is_no_more_is_forgotten(self, tmp_path):
        Store(tmp_path, 7, ASKED).put(graded())
        kept = Store(tmp_path, 7, ASKED[1:])
        assert not kept.pending(graded().submission)
        assert {each.exercise for each in kept.get("bob").results} == {each.id for each in ASKED[1:]}

    def test_whose_it_is_can_change_without_judging(self, tmp_path):
        kept = Store(tmp_path, 7, ASKED)
        kept.put(graded())
        now = replace(graded().submission, identity={"ID": "7"}, handed_in={"02": "LATE"})
        assert kept.is_done(now)
        kept.refresh(now)
        assert kept.get("bob").submission == now and kept.get("bob").results == graded().results


def by_name(submission: Submission, labs: tuple[str, ...], seed: int, isolation: str, **_: object) -> Graded:
    """Give the points that a file says, and log which answers are asked for."""
    told = json.loads(Path("judge.json").read_text())
    with Path("log").open("a") as log:
        log.write(f"{submission.student} {','.join(sorted(submission.answers))}\n")
    results = [Result(id, GRADED, told["points"], 2, source="x") for id in LAB]
    return Graded(submission, tuple(results), isolation, 0.0)


class TestCommand:
    @pytest.fixture
    def grade(self, tmp_path, monkeypatch, solved):
        """`labkit grade` for ann and ben with so many points for each answer; what it printed and judged."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(run.judge, "grade", by_name)
        for name in ("ann", "ben"):
            hand_in(tmp_path / "class", name)

        def grade(points: float, *options: str) -> tuple[str, list[str]]:
            Path("judge.json").write_text(json.dumps({"points": points}))
            Path("log").write_text("")
            run.judge._course.cache_clear()
            begin = ["grade", "class", "--out", "out", "--isolation", "process", "--workers", "1"]
            done = CliRunner().invoke(cli.app, [*begin, *options])
            assert done.exit_code == 0, done.output
            return done.output, Path("log").read_text().splitlines()

        grade(1, "--lab", "02", "--seed", "5")
        yield grade
        run.judge._course.cache_clear()

    def test_nothing_is_judged_again_where_nothing_has_changed(self, grade):
        assert grade(2, "--resume")[1] == []

    def test_a_changed_hidden_check_has_its_exercise_judged_again_alone(self, grade, solved):
        change_hidden(solved, "02.1")
        told, judged = grade(2, "--resume")
        assert judged == ["ann 02.1", "ben 02.1"]
        points = {(row["student"], row["exercise"]): row["points"] for row in rows(Path("out/grades.csv"))}
        assert {points.pop((name, "02.1")) for name in ("ann", "ben")} == {"2"}
        assert {*points.values()} == {"1"}
        table = [tuple(row.values()) for row in rows(Path("out/regraded.csv"))]
        assert table == [(name, "02.1", "1", "2", "2", rules.CHANGED["hidden"]) for name in ("ann", "ben")]
        assert f"Judged again, 2 answers: {rules.CHANGED['hidden']}" in told
        assert "2 answers judged again, 2 with other points" in told
        Path("out/overrides.csv").write_text("student,exercise,points,reason\nann,02.1,0.5,why\n")
        assert grade(0, "--resume")[1] == []
        assert table == [tuple(row.values()) for row in rows(Path("out/regraded.csv"))]  # without the hand's

    def test_one_exercise_is_judged_again_on_request(self, grade):
        _, judged = grade(1, "--resume", "--regrade", "02.1")
        assert judged == ["ann 02.1", "ben 02.1"]
        assert [(row["before"], row["now"]) for row in rows(Path("out/regraded.csv"))] == [("1", "1")] * 2
        assert {row["exercise"] for row in rows(Path("out/regraded.csv"))} == {"02.1"}

    def test_another_version_of_labkit_alone_changes_nothing(self, grade, monkeypatch):
        monkeypatch.setattr(run, "__version__", "99")
        monkeypatch.setattr("labkit.__version__", "99")
        assert grade(2, "--resume")[1] == []
        assert json.loads(Path("out/run.json").read_text())["labkit"] == "99"

    def test_a_changed_grader_judges_all_again(self, grade, monkeypatch):
        monkeypatch.setattr(rules, "grader", lambda: "another")
        assert len(grade(2, "--resume")[1]) == 2
        assert len(rows(Path("out/regraded.csv"))) == 2 * len(LAB)

    def test_a_worker_that_judges_by_other_rules_gets_nothing(self, grade, monkeypatch):
        class Elsewhere(Pool):
            def ask(self, question):
                with pytest.MonkeyPatch.context() as there:
                    there.setattr(rules, "grader", lambda: "another")
                    return {"tcp://there:1": question()}

        monkeypatch.setattr(run, "Pool", Elsewhere)
        done = CliRunner().invoke(cli.app, ["grade", "class", "--out", "out", "--resume"])
        assert done.exit_code == 1 and "On tcp://there:1 labkit has other sources" in done.output
        assert len(Path("log").read_text().splitlines()) == 2  # of the first run

    @pytest.mark.parametrize("options", [("--regrade", "02.1"), ("--resume", "--regrade", "03.1")])
    def test_a_request_that_cannot_be_met_is_told(self, grade, options):
        done = CliRunner().invoke(cli.app, ["grade", "class", "--out", "out", *options])
        assert done.exit_code == 1 and ("--resume" in done.output or "02.1" in done.output)
