"""Grading on real worker processes, of which some die: the same grades, and nobody suffers for another."""

import json
import os
import platform
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs labkit[grade]")

import dask.config
from distributed import LocalCluster
from hashed_grades import LAB, hashed, pretend
from rich.console import Console
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from labkit import cli
from labkit.doctor import mend
from labkit.grading import run
from labkit.grading.judging import cluster, engine
from labkit.grading.model import GRADED, REGRADE, Answer, Graded, Submission

DIED = "the process that graded it died"


JOB = engine.Job(("02",), 7, "process", hashed)


def asking(do: dict[str, object]) -> str:
    return f"%%cuda 02.1\n{json.dumps(do) if do else ''}"


def class_of(count: int, **asked: dict[str, object]) -> list[Submission]:
    names = [f"student{number:03}" for number in range(count)]
    return [
        Submission(name, labs=("02",), answers={"02.1": Answer("02.1", asking(asked.get(name, {})))})
        for name in names
    ]


def graded(client, submissions, job=JOB) -> dict[str, Graded]:
    found = list(engine.grade_all(client, submissions, job))
    assert len(found) == len(submissions)
    return {each.submission.student: each for each in found}


def states(one: Graded) -> set[str]:
    return {result.state for result in one.results}


@contextmanager
def foreign(workers: int, preload: str = "", **config: object) -> Iterator[LocalCluster]:
    """A cluster that others have started; its workers run the Python text `preload` first."""
    config = {"distributed.worker.preload": [preload] if preload else [], **config}
    address = "127.0.0.1:0"
    with (
        dask.config.set(config),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=address,
            scheduler_kwargs={"dashboard": False},
            silence_logs=60,
        ) as others,
    ):
        yield others


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers, which gives up a task as soon as a worker dies with it."""
    with foreign(2, **cluster.LOCAL) as others:
        yield others.scheduler_address


@pytest.fixture(scope="module")
def two(scheduler):
    with cluster.existing(scheduler) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def one():
    with cluster.local(1) as client:
        yield client


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
                os.kill(next(iter(two.run(os.getpid).values())), signal.SIGKILL)
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
        assert {(result.points, result.failure) for result in results} == {(None, DIED)}
        assert results[0].source == asking({"die": ""})

    def test_an_exception_is_tried_again_on_another_worker(self, two, tmp_path):
        two.wait_for_workers(2, timeout=60)
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
        assert "the disk is full (hashed_grades.py, line" in found["student002"].results[0].failure

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
        assert done == 30 and most <= engine.AHEAD * 2

    def test_whoever_stops_early_leaves_nothing_with_the_workers(self, two):
        found = engine.grade_all(two, class_of(30, student001={"seconds": 0.5}), JOB)
        next(found)
        found.close()
        until = time.monotonic() + 10
        while two.futures and time.monotonic() < until:
            time.sleep(0.01)
        assert not two.futures


class TestCluster:
    def test_each_worker_answers(self, two):
        two.wait_for_workers(2, timeout=60)
        assert list(cluster.ask(two, platform.system).values()) == ["Linux"] * 2

    def test_ctrl_c_in_a_terminal_which_reaches_workers_too_does_not_end_them(self, one):
        (worker,) = one.run(os.getpid).values()
        os.kill(worker, signal.SIGINT)
        assert states(graded(one, class_of(1))["student000"]) == {GRADED}
        assert list(one.run(os.getpid).values()) == [worker]

    def test_what_a_submission_runs_cannot_talk_to_the_scheduler(self, one, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 2.0)
        address = one.scheduler.address
        for told in (address, address.replace("tls:", "tcp:")):
            with pytest.raises(cluster.NoCluster), cluster.existing(told):
                pass

    @pytest.mark.parametrize(
        "address", ["tcp://127.0.0.1:9", "127.0.0.1", "nonsense://here:1", "tcp://no.such.host.invalid:8786"]
    )
    def test_a_scheduler_that_is_not_there_is_told_in_time(self, address, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        start = time.monotonic()
        with pytest.raises(cluster.NoCluster, match=f"{address} cannot be"), cluster.existing(address):
            pass
        assert time.monotonic() - start < 15

    def test_something_else_that_listens_there_is_told_in_time(self, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            with pytest.raises(cluster.NoCluster, match=f"{address} cannot be"), cluster.existing(address):
                pass

    def test_workers_without_labkit_are_refused(self):
        with (
            foreign(1, "import sys; sys.modules['labkit'] = None") as others,
            cluster.existing(others.scheduler_address) as client,
            pytest.raises(cluster.NoCluster, match="has no labkit that grades"),
        ):
            cluster.ask(client, platform.system)

    def test_workers_with_another_labkit_are_refused(self, two):
        two.run(pretend, "0.0.1")
        try:
            with pytest.raises(cluster.NoCluster, match=r"has labkit 0\.0\.1, this is"):
                cluster.ask(two, platform.system)
        finally:
            two.run(pretend, cluster.__version__)

    def test_no_workers_are_told(self, monkeypatch):
        monkeypatch.setattr(cluster, "WORKERS_SECONDS", 0.5)
        with (
            foreign(0) as others,
            cluster.existing(others.scheduler_address) as client,
            pytest.raises(cluster.NoCluster, match="no workers for"),
        ):
            cluster.ask(client, platform.system)


def hand_in(folder: Path, student: str, **do: object) -> None:
    """Write a submission to lab 02, which asks `hashed` for this."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": asking(do)}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / student).mkdir(parents=True, exist_ok=True)
    (folder / student / "02_naive_cuda.ipynb").write_text(json.dumps(notebook))


@pytest.fixture
def folder(tmp_path):
    """Six submissions to lab 02."""
    for number in range(6):
        hand_in(tmp_path / "class", f"student{number}")
    return tmp_path / "class"


class TestRun:
    def test_resume_grades_what_is_missing_changed_or_to_be_graded_again(self, folder, tmp_path, scheduler):
        log, raised = tmp_path / "log", tmp_path / "raised"
        for number in range(6):
            hand_in(folder, f"student{number}", log=str(log))
        hand_in(folder, "student1", log=str(log), **{"raise": ""})

        def go(**wish: object) -> run.Ended:
            wish = run.Wish(folder, tmp_path / "out", scheduler=scheduler, isolation="process", **wish)
            return run.run(wish, Console(file=StringIO()), hashed)

        ended = go(labs=["2"], seed=5)
        assert (ended.summary.graded, ended.summary.to_regrade) == (5, 1)
        before = (tmp_path / "out" / "grades.csv").read_text().splitlines()
        log.unlink()
        hand_in(folder, "student1", log=str(log), **{"raise": str(raised)})
        hand_in(folder, "student2", log=str(log), seconds=0)
        next((tmp_path / "out" / "results").glob("student3*")).unlink()
        hand_in(folder, "student6", log=str(log))
        assert go(resume=True).summary.graded == 7
        names = [line.split()[0] for line in log.read_text().splitlines()]
        assert sorted(names) == ["student1", "student1", "student2", "student3", "student6"]
        after = (tmp_path / "out" / "grades.csv").read_text().splitlines()
        kept = [line for line in before if not line.startswith("student1")]
        assert [line for line in after if not line.startswith(("student1", "student6"))] == kept

    def test_ctrl_c_keeps_what_is_graded_and_resume_ends_as_if_nothing_had_been(
        self, folder, tmp_path, scheduler, monkeypatch
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
        done = grade(stopped, *begin, "--scheduler", scheduler)
        assert done.exit_code == 130 and "Stopped. What is graded is in" in done.output
        kept = len(list((stopped / "results").glob("*.json")))
        assert 2 <= kept < 6
        done = grade(stopped, "--resume", "--scheduler", scheduler)
        assert done.exit_code == 0 and f"{6 - kept}/{6 - kept}" in done.output
        assert (stopped / "grades.csv").read_bytes() == (straight / "grades.csv").read_bytes()

    def test_a_lost_scheduler_is_told_and_what_is_graded_is_kept(self, folder, tmp_path):
        for number in range(6):
            hand_in(folder, f"student{number}", seconds=0.3)
        out = tmp_path / "out"
        with foreign(1, **cluster.LOCAL) as others:
            wish = run.Wish(folder, out, ["02"], scheduler=others.scheduler_address, isolation="process")

            def end() -> None:
                while not list((out / "results").glob("*.json")):
                    time.sleep(0.02)
                others.close()

            threading.Thread(target=end).start()
            ended = run.run(wish, Console(file=StringIO()), hashed)
        assert isinstance(ended.stopped, cluster.NoCluster)
        assert "connection to the scheduler is lost" in str(ended.stopped)
        assert 1 <= ended.summary.graded < 6 and ended.summary.to_regrade == 6 - ended.summary.graded


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

    def test_options_that_will_not_do_are_told(self, told, tmp_path, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        assert "There is no lab '14'. Choose from 00, 01" in told("--lab", "14")
        assert "tcp://127.0.0.1:9 cannot be reached" in told("--lab", "2", "--scheduler", "tcp://127.0.0.1:9")
        assert "workers of its own" in told("--scheduler", "tcp://127.0.0.1:9", "--workers", "2")
        assert not (tmp_path / "out").exists()

    def test_an_isolation_that_is_not_there_is_told(self, told, scheduler):
        asked = ("--lab", "2", "--scheduler", scheduler, "--isolation", "wishes")
        assert "There is no isolation 'wishes'" in told(*asked)

    @pytest.mark.parametrize(
        ("change", "options", "why"),
        [
            ({}, ("--seed", "6"), "has the seed 5"),
            ({}, ("--lab", "3"), "has the labs 02"),
            ({"labkit": "0.0.1"}, (), "was begun with labkit 0.0.1"),
            ({"more": 1}, (), "has no run to go on with"),
        ],
    )
    def test_another_run_is_not_gone_on_with(self, told, tmp_path, change, options, why):
        (tmp_path / "out").mkdir()
        settings = run.Settings(
            5, ("02",), "process", cluster.__version__, "labkit grade", "2026-01-01T00:00"
        )
        stored = {**vars(settings), **change}
        (tmp_path / "out" / run.RUN).write_text(json.dumps(stored))
        assert why in told("--resume", *options)

    def test_another_system_is_told(self, told, monkeypatch):
        monkeypatch.setattr(run.sys, "platform", "darwin")
        assert "labkit grade runs on Linux" in told()

    def test_without_distributed_it_says_what_to_install(self, told, monkeypatch):
        monkeypatch.delattr("labkit.grading.run")
        monkeypatch.setitem(sys.modules, "labkit.grading.run", None)
        assert mend.install("grade") in told()

    def test_a_folder_that_cannot_be_written_is_told(self, told, tmp_path, scheduler):
        (tmp_path / "file").touch()
        asked = ("--lab", "2", "--scheduler", scheduler)
        assert str(tmp_path / "file" / "out") in told(*asked, out=tmp_path / "file" / "out")


class TestRealJudge:
    @pytest.mark.thorough
    def test_a_worker_killed_as_it_grades_changes_no_grade(self, tmp_path, two, scheduler):
        solved = Path(__file__).parents[2] / "notebooks" / "solutions" / "02_naive_cuda.ipynb"
        for name, notebook in {"anna": solved, "bob": solved.parents[1] / solved.name}.items():
            (tmp_path / "class" / name).mkdir(parents=True)
            shutil.copy(notebook, tmp_path / "class" / name)

        def table(out: Path) -> bytes:
            two.wait_for_workers(2, timeout=60)
            wish = run.Wish(tmp_path / "class", out, ["02"], seed=5, scheduler=scheduler)
            ended = run.run(wish, Console(file=StringIO()))
            assert sorted(ended.scores.totals["02"].elements()) == [0.0, 9.0]
            return (out / "grades.csv").read_bytes()

        killed = []

        def kill_one_that_grades() -> None:
            while not (busy := [address for address, keys in two.processing().items() if keys]):
                time.sleep(0.01)
            time.sleep(0.5)
            killed.extend(two.run(os.getpid, workers=busy[:1]).values())
            os.kill(killed[0], signal.SIGKILL)

        undisturbed = table(tmp_path / "undisturbed")
        threading.Thread(target=kill_one_that_grades).start()
        assert table(tmp_path / "disturbed") == undisturbed
        assert killed and killed[0] not in two.run(os.getpid).values()
