"""Grading on a Dask cluster that others have started, and clusters that will not do."""

import os
import platform
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs labkit[cluster]")

from hashed_grades import foreign, hand_in, hashed, pretend
from rich.console import Console

from grader import run
from grader.judging import cluster
from grader.judging.engine import NoCluster
from labkit.course import EXERCISES


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with foreign(2) as others:
        yield others.scheduler_address


@pytest.fixture(scope="module")
def two(scheduler):
    with cluster.existing(scheduler) as workers:
        yield workers


class TestCluster:
    def test_each_worker_answers(self, two):
        two.client.wait_for_workers(2, timeout=60)
        assert list(two.ask(platform.system).values()) == ["Linux"] * 2

    @pytest.mark.parametrize(
        "address", ["tcp://127.0.0.1:9", "127.0.0.1", "nonsense://here:1", "tcp://no.such.host.invalid:8786"]
    )
    def test_a_scheduler_that_is_not_there_is_told_in_time(self, address, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        start = time.monotonic()
        with (
            pytest.raises(NoCluster, match=f"cannot reach the scheduler {address}"),
            cluster.existing(address),
        ):
            pass
        assert time.monotonic() - start < 15

    def test_something_else_that_listens_there_is_told_in_time(self, monkeypatch):
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            with (
                pytest.raises(NoCluster, match=f"cannot reach the scheduler {address}"),
                cluster.existing(address),
            ):
                pass

    def test_workers_without_labkit_are_refused(self):
        with (
            foreign(1, "import sys; sys.modules['labkit'] = None") as others,
            cluster.existing(others.scheduler_address) as workers,
            pytest.raises(NoCluster, match="has no labkit that can grade"),
        ):
            workers.ask(platform.system)

    def test_workers_with_another_labkit_are_refused(self, two):
        two.client.run(pretend, "0.0.1")
        try:
            with pytest.raises(NoCluster, match=r"has labkit 0\.0\.1, this is"):
                two.ask(platform.system)
        finally:
            two.client.run(pretend, cluster.__version__)

    def test_no_workers_are_told(self, monkeypatch):
        monkeypatch.setattr(cluster, "WORKERS_SECONDS", 0.5)
        with (
            foreign(0) as others,
            cluster.existing(others.scheduler_address) as workers,
            pytest.raises(NoCluster, match="no workers for"),
        ):
            workers.ask(platform.system)


class TestRun:
    def test_a_lost_scheduler_is_told_and_what_is_graded_is_kept(self, tmp_path):
        folder = tmp_path / "class"
        for number in range(6):
            hand_in(folder, f"student{number}", seconds=0.3)
        out = tmp_path / "out"
        with foreign(1) as others:
            wish = run.GradeRequest(
                folder, out, ["02"], scheduler=others.scheduler_address, isolation="process"
            )

            def end() -> None:
                while not list((out / "results").glob("*.json")):
                    time.sleep(0.02)
                others.close()

            threading.Thread(target=end).start()
            ended = run.run(wish, Console(file=StringIO()), hashed)
        assert isinstance(ended.stopped, NoCluster)
        assert "connection to the scheduler is lost" in str(ended.stopped)
        assert 1 <= ended.summary.graded < 6 and ended.summary.to_regrade == 6 - ended.summary.graded


class TestRealJudge:
    @pytest.mark.slow  # two workers of Dask grade lab 02 twice, and one is killed
    def test_a_worker_killed_as_it_grades_changes_no_grade(self, tmp_path, two, scheduler):
        full = sum(each.points for id, each in EXERCISES.items() if id.startswith("02."))
        solved = Path(__file__).parents[2] / "notebooks" / "solutions" / "02_naive_cuda.ipynb"
        for name, notebook in {"anna": solved, "bob": solved.parents[1] / solved.name}.items():
            (tmp_path / "class" / name).mkdir(parents=True)
            shutil.copy(notebook, tmp_path / "class" / name)

        def table(out: Path) -> bytes:
            two.client.wait_for_workers(2, timeout=60)
            wish = run.GradeRequest(tmp_path / "class", out, ["02"], seed=5, scheduler=scheduler)
            ended = run.run(wish, Console(file=StringIO()))
            assert sorted(ended.scores.totals["02"].elements()) == [0.0, full]
            return (out / "grades.csv").read_bytes()

        killed = []

        def kill_one_that_grades() -> None:
            while not (busy := [address for address, keys in two.client.processing().items() if keys]):
                time.sleep(0.01)
            time.sleep(0.5)
            killed.extend(two.client.run(os.getpid, workers=busy[:1]).values())
            os.kill(killed[0], signal.SIGKILL)

        undisturbed = table(tmp_path / "undisturbed")
        threading.Thread(target=kill_one_that_grades).start()
        assert table(tmp_path / "disturbed") == undisturbed
        assert killed and killed[0] not in two.client.run(os.getpid).values()
