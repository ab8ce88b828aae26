"""Grading on real worker processes, of which some die: the same grades, and nobody suffers for another."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest
from hashed_grades import JOB, LAB, asking, class_of, foreign, graded, hand_in, hashed, pids, states
from rich.console import Console
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from grader import run
from grader.judging import engine, faults
from grader.judging.pool import Pool
from grader.model import GRADED, REGRADE, Submission
from labkit import __version__, cli, mend


@pytest.fixture(scope="module", params=["pool", "cluster"])
def two(request) -> Iterator[engine.Workers]:
    """Two workers: of this machine, and of a Dask cluster."""
    if request.param == "pool":
        with Pool(2) as pool:
            yield pool
        return
    with foreign(2) as others:
        from grader.judging import cluster

        with cluster.existing(others.scheduler_address) as workers:
            workers.client.wait_for_workers(2, timeout=60)
            yield workers


@pytest.fixture(scope="module")
def one():
    with Pool(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def on_one_process(one):
    return graded(one, class_of(40))


class TestWorkers:
    def test_two_processes_give_the_same_as_one(self, two, on_one_process):
        assert graded(two, class_of(40)) == on_one_process

    def test_a_worker_killed_from_outside_changes_nothing(self, two, on_one_process):
        found = []
        for each in engine.grade_all(two, class_of(40), JOB):
            found.append(each)
            if len(found) == 10:
                os.kill(pids(two)[0], signal.SIGKILL)
        assert {each.submission.student: each for each in found} == on_one_process

    def test_a_submission_under_which_a_worker_died_once_is_graded(self, two, tmp_path):
        found = graded(two, class_of(8, student004={"die": str(tmp_path / "died")}))
        assert (tmp_path / "died").exists()
        assert all(states(each) == {GRADED} for each in found.values())

    def test_one_that_kills_its_worker_each_time_is_for_regrading_and_stops_no_other(self, two):
        found = graded(two, class_of(8, student000={"die": ""}))
        assert [name for name, each in found.items() if states(each) == {REGRADE}] == ["student000"]
        results = found["student000"].results
        assert [result.exercise for result in results] == LAB
        assert {(result.points, result.failure) for result in results} == {(None, engine.DIED)}
        assert results[0].source == asking({"die": ""})

    def test_an_exception_is_tried_again_on_another_worker(self, two, tmp_path):
        if hasattr(two, "client"):
            two.client.wait_for_workers(2, timeout=60)
        log = tmp_path / "log"
        asked = {"raise": str(tmp_path / "raised"), "log": str(log)}
        found = graded(two, class_of(6, student002=asked))
        assert states(found["student002"]) == {GRADED}
        first, second = log.read_text().splitlines()
        assert first != second

    @pytest.mark.parametrize("kind", ["error", "exit"])
    def test_one_that_always_raises_is_for_regrading_and_says_why(self, two, kind):
        found = graded(two, class_of(6, student002={"raise": "", "kind": kind}))
        assert [name for name, each in found.items() if states(each) == {REGRADE}] == ["student002"]
        first = found["student002"].results[0]
        assert first.failure == faults.AGAIN  # a student reads no more
        assert "the disk is full" in first.inside and "hashed_grades.py" in first.inside

    def test_one_that_makes_the_grader_compute_without_end_has_no_points_and_stops_no_other(self, one):
        job = replace(JOB, cpu_seconds=1)
        found = list(engine.grade_all(one, class_of(3, student000={"compute": ""}), job))
        late = next(each for each in found if each.submission.student == "student000")
        assert {(each.state, each.points, each.failure) for each in late.results} == {
            (GRADED, 0, engine.TOO_LONG)
        }
        assert [states(each) for each in found] == [{GRADED}] * 3

    def test_submissions_are_read_as_workers_need_them(self, two):
        read, done, most = 0, 0, 0

        def reading() -> Iterator[Submission]:
            nonlocal read
            for each in class_of(30):
                read += 1
                yield each

        for _ in engine.grade_all(two, reading(), JOB):
            done += 1
            most = max(most, read - done)
        assert done == 30 and most <= 2 * 2

    def test_whoever_stops_early_leaves_nothing_with_the_workers(self, two):
        found = engine.grade_all(two, class_of(30, student001={"seconds": 0.5}), JOB)
        next(found)
        found.close()
        assert len(two) == 0
        assert states(graded(two, class_of(1))["student000"]) == {GRADED}


class TestPool:
    def test_ctrl_c_in_a_terminal_which_reaches_workers_too_does_not_end_them(self, one):
        graded(one, class_of(1))
        before = one.pids()
        os.kill(before[0], signal.SIGINT)
        assert states(graded(one, class_of(1))["student000"]) == {GRADED}
        assert one.pids() == before

    def test_workers_end_with_the_process_that_asks(self):
        code = """from hashed_grades import *
pool = Pool(1)
graded(pool, class_of(1))
print(*pool.pids(), flush=True)
input()"""
        command = [sys.executable, "-c", code]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=env) as asking:
            (worker,) = (psutil.Process(int(pid)) for pid in asking.stdout.readline().split())
            asking.kill()
        until = time.monotonic() + 60
        while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
            time.sleep(0.05)
        assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE

    def test_grading_here_takes_no_dask(self):
        code = "import sys, grader.run; print({'dask', 'distributed'} & {*sys.modules})"
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.fixture
def folder(tmp_path):
    """Six submissions to lab 02."""
    for number in range(6):
        hand_in(tmp_path / "class", f"student{number}")
    return tmp_path / "class"


class TestRun:
    def without_time(self, table):
        """The lines of a table of grades without the last column, the minute of handing in."""
        return [line.rpartition(",")[0] for line in table.read_text().splitlines()]

    def test_resume_grades_what_is_missing_changed_or_to_be_graded_again(self, folder, tmp_path):
        log, raised = tmp_path / "log", tmp_path / "raised"
        for number in range(6):
            hand_in(folder, f"student{number}", log=str(log))
        hand_in(folder, "student1", log=str(log), **{"raise": ""})

        def go(**wish: object) -> run.Ended:
            wish = run.GradeRequest(folder, tmp_path / "out", workers=1, isolation="process", **wish)
            return run.run(wish, Console(file=StringIO()), hashed)

        ended = go(labs=["2"], seed=5)
        assert (ended.summary.graded, ended.summary.to_regrade) == (5, 1)
        before = self.without_time(tmp_path / "out" / "grades.csv")
        log.unlink()
        hand_in(folder, "student1", log=str(log), **{"raise": str(raised)})
        hand_in(folder, "student2", log=str(log), seconds=0)
        next((tmp_path / "out" / "results").glob("student3*")).unlink()
        hand_in(folder, "student6", log=str(log))
        assert go(resume=True).summary.graded == 7
        names = [line.split()[0] for line in log.read_text().splitlines()]
        assert sorted(names) == ["student1", "student1", "student2", "student3", "student6"]
        after = self.without_time(tmp_path / "out" / "grades.csv")
        kept = [line for line in before if not line.startswith("student1")]
        assert [line for line in after if not line.startswith(("student1", "student6"))] == kept

    def test_a_name_that_is_in_doubt_is_told_at_once(self, folder, tmp_path):
        for name in ("Eve_11_assignsubmission_file_", "Mallory_11_assignsubmission_file_"):
            hand_in(folder, name)
        console = Console(file=StringIO(), width=1000)
        run.run(
            run.GradeRequest(folder, tmp_path / "out", ["2"], workers=1, isolation="process"), console, hashed
        )
        told = console.file.getvalue()
        assert (
            "Eve: 2 submissions have the Identifier Participant 11: in the gradebooks it is nobody's" in told
        )

    def test_ctrl_c_keeps_what_is_graded_and_resume_ends_as_if_nothing_had_been(
        self, folder, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(run.judge, "grade", hashed)
        for number in range(6):
            hand_in(folder, f"student{number}", seconds=0.3)
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        begin = ("--isolation", "process", "--seed", "5", "--lab", "02")

        def grade(out: Path, *options: str) -> Outcome:
            return CliRunner().invoke(cli.app, ["grade", str(folder), "--out", str(out), *options])

        def press_ctrl_c() -> None:
            while len(list((stopped / "results").glob("*.json"))) < 2:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        assert grade(straight, *begin, "--workers", "1").exit_code == 0
        threading.Thread(target=press_ctrl_c).start()
        done = grade(stopped, *begin, "--workers", "2")
        assert done.exit_code == 130 and "Stopped. The grades so far are in" in done.output
        kept = len(list((stopped / "results").glob("*.json")))
        assert 2 <= kept < 6
        done = grade(stopped, "--resume", "--workers", "1")
        assert done.exit_code == 0 and f"{6 - kept}/{6 - kept}" in done.output
        assert (stopped / "grades.csv").read_bytes() == (straight / "grades.csv").read_bytes()


class TestCommand:
    @pytest.fixture
    def told(self, folder, tmp_path):
        """What `labkit grade` says as it fails."""

        def told(*options: str, submissions: Path = folder, out: Path = tmp_path / "out") -> str:
            result = CliRunner().invoke(cli.app, ["grade", str(submissions), "--out", str(out), *options])
            assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
            return result.output

        return told

    def test_places_that_will_not_do_are_told(self, told, folder, tmp_path):
        (tmp_path / "empty").mkdir()
        assert "is no folder" in told(submissions=tmp_path / "nowhere")
        assert "no submission" in told(submissions=tmp_path / "empty")
        assert "among the submissions" in told(out=folder / "grades")
        assert "is not empty, and nothing is overwritten" in told(out=tmp_path)
        assert "has no run to go on with" in told("--resume", out=tmp_path)
        assert not (tmp_path / "out").exists()

    def test_options_that_will_not_do_are_told(self, told, tmp_path):
        assert "There is no lab '15'. Choose from 00, 01" in told("--lab", "15")
        assert "workers of its own" in told("--scheduler", "tcp://127.0.0.1:9", "--workers", "2")
        assert not (tmp_path / "out").exists()

    def test_an_isolation_that_is_not_there_is_told(self, told):
        asked = ("--lab", "2", "--workers", "1", "--isolation", "wishes")
        assert "There is no isolation 'wishes'" in told(*asked)

    @pytest.mark.parametrize(
        ("change", "options", "why"),
        [
            ({}, ("--seed", "6"), "has the seed 5"),
            ({}, ("--lab", "3"), "has the labs 02"),
            ({"more": 1}, (), "has no run to go on with"),
        ],
    )
    def test_another_run_is_not_gone_on_with(self, told, tmp_path, change, options, why):
        (tmp_path / "out").mkdir()
        settings = run.Settings(5, ("02",), "process", __version__, "labkit grade", "2026-01-01T00:00")
        stored = {**vars(settings), **change}
        (tmp_path / "out" / run.RUN).write_text(json.dumps(stored))
        assert why in told("--resume", *options)

    def test_another_system_is_told(self, told, monkeypatch):
        monkeypatch.setattr(run.sys, "platform", "darwin")
        assert "labkit grade runs on Linux" in told()

    def test_without_what_grades_it_says_what_to_install(self, told, monkeypatch):
        monkeypatch.delattr("grader.run")
        monkeypatch.setitem(sys.modules, "grader.run", None)
        assert mend.install("grade") in told()

    def test_without_dask_a_scheduler_says_what_to_install(self, told, monkeypatch):
        monkeypatch.delattr("grader.judging.cluster", raising=False)
        monkeypatch.delitem(sys.modules, "grader.judging.cluster", raising=False)
        monkeypatch.setitem(sys.modules, "distributed", None)
        assert mend.install("cluster") in told("--lab", "2", "--scheduler", "tcp://127.0.0.1:9")

    def test_a_folder_that_cannot_be_written_is_told(self, told, tmp_path):
        (tmp_path / "file").touch()
        asked = ("--lab", "2", "--workers", "1")
        assert str(tmp_path / "file" / "out") in told(*asked, out=tmp_path / "file" / "out")
