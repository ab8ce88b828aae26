"""A judge for the tests of the engine, the classes that it grades, and what else runs on workers."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.judging import engine
from grader.judging.pool import Pool
from grader.model import GRADED, Answer, Graded, Result, Submission
from grader.sandbox.limits import LIMITS, Limits
from labkit.course import EXERCISES

if TYPE_CHECKING:
    from distributed import LocalCluster

LAB = [id for id in EXERCISES if id.startswith("02.")]


def hashed(
    submission: Submission, labs: tuple[str, ...], seed: int, isolation: str, limits: Limits = LIMITS
) -> Graded:
    """Grades by a hash, after what the answer to 02.1 asks for, as JSON.

    `seconds` to wait, a `log` to write to, to `compute` without end; to `die` or `raise`, until that file
    exists, or always ("").
    """
    source = submission.answers["02.1"].source if "02.1" in submission.answers else ""
    do = json.loads(source.partition("\n")[2] or "{}")
    time.sleep(do.get("seconds", 0.01))
    if "log" in do:
        with Path(do["log"]).open("a") as log:
            log.write(f"{submission.student} {os.getpid()}\n")
    if "compute" in do:
        sum(range(10**15))  # one step of Python's, which nothing in the process interrupts
    if _first_time(do, "die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if _first_time(do, "raise"):
        raise {"exit": SystemExit, "error": OSError}[do.get("kind", "error")]("the disk is full")
    results = []
    for id in LAB:
        drawn = hashlib.sha256(f"{submission.student} {seed} {id}".encode()).digest()[0]
        most = EXERCISES[id].points
        results.append(Result(id, GRADED, float(drawn % (most + 1)), most))
    return Graded(submission, tuple(results), isolation, 0.0)


def _first_time(do: dict[str, str], what: str) -> bool:
    if what not in do or (do[what] and Path(do[what]).exists()):
        return False
    Path(do[what] or os.devnull).touch()
    return True


JOB = engine.Job(("02",), 7, "process", hashed)


def asking(do: dict[str, object]) -> str:
    """An answer that asks `hashed` for this."""
    return f"%%cuda 02.1\n{json.dumps(do) if do else ''}"


def class_of(count: int, **asked: dict[str, object]) -> list[Submission]:
    """So many submissions; some students ask for something."""
    names = [f"student{number:03}" for number in range(count)]
    return [
        Submission(name, labs=("02",), answers={"02.1": Answer("02.1", asking(asked.get(name, {})))})
        for name in names
    ]


def hand_in(folder: Path, student: str, **do: object) -> None:
    """Write a submission to lab 02, which asks `hashed` for this."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": asking(do)}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / student).mkdir(parents=True, exist_ok=True)
    (folder / student / "02_naive_cuda.ipynb").write_text(json.dumps(notebook))


def graded(workers: engine.Workers, submissions: list[Submission]) -> dict[str, Graded]:
    """Grade with `hashed`; what came of each student."""
    found = list(engine.grade_all(workers, submissions, JOB))
    assert len(found) == len(submissions)
    return {each.submission.student: each for each in found}


def states(one: Graded) -> set[str]:
    """The states of its results."""
    return {result.state for result in one.results}


def pids(workers: engine.Workers) -> list[int]:
    """The processes that grade."""
    if isinstance(workers, Pool):
        return workers.pids()
    return list(workers.client.run(os.getpid).values())


@contextmanager
def foreign(workers: int, preload: str = "") -> Iterator["LocalCluster"]:
    """A cluster that others have started; its workers run the Python text `preload` first."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    config = {
        "distributed.worker.preload": [preload] if preload else [],
        "distributed.scheduler.allowed-failures": 0,  # give up a task as soon as a worker dies with it
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.deploy.lost-worker-timeout": "365d",  # or who dies twice in 15 s is not started again
    }
    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=60,
        ) as others,
    ):
        yield others


def pretend(version: str) -> None:
    """Have this version of labkit."""
    from grader.judging import cluster

    cluster.__version__ = version
