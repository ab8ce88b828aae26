"""`labkit grade`: a folder of submissions in, a folder of grades out.

GRADES/run.json says from the start what is asked for. Each submission's results are stored as soon as they
are there, so that a run that was stopped goes on where it was.
"""

import json
import secrets
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from traceback import format_exc

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from labkit import __version__
from labkit.core.processor import cores
from labkit.course import EXERCISES
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import SOLUTIONS
from labkit.grading.intake import labs, submissions
from labkit.grading.judging import engine, judge
from labkit.grading.judging.faults import ours
from labkit.grading.judging.pool import Pool
from labkit.grading.model import REGRADE, Graded, Submission
from labkit.grading.report import Summary, write_all
from labkit.grading.results.manifest import Run
from labkit.grading.results.scores import Scores, is_full
from labkit.grading.results.store import Store
from labkit.grading.sandbox import process
from labkit.grading.sandbox.limits import Limits
from labkit.grading.text import write_whole

RUN = "run.json"
SPARE_SECONDS = 60  # of the grader's own computing


class NotGraded(ValueError):
    """What is asked for cannot be done; the message says why, and what to do."""


@dataclass(frozen=True)
class Wish:
    """What the command line asks for. Where it leaves something open, that is None or empty."""

    folder: Path
    out: Path
    labs: Sequence[str] = ()
    seed: int | None = None
    workers: int | None = None
    scheduler: str | None = None
    isolation: str | None = None
    resume: bool = False
    command: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Settings:
    """What a run goes by, from its beginning to its end, also when it is resumed."""

    seed: int
    labs: tuple[str, ...]
    isolation: str
    labkit: str
    command: str
    began: str  # as ISO 8601 has it, in UTC
    seconds: float = process.LIMITS.lab_seconds  # of a submission, per lab


@dataclass(frozen=True)
class _Unread:
    """A submission that this machine failed to read, why in a sentence, and the traceback."""

    as_submission: Submission
    why: str
    inside: str


@dataclass(frozen=True)
class Ended:
    """How a run ended: what was made of it, and why it stopped before all was graded, if it did."""

    summary: Summary
    scores: Scores
    stopped: KeyboardInterrupt | engine.NoCluster | None = None


def run(wish: Wish, console: Console, grade: engine.Grade | None = None) -> Ended:
    """Grade what `wish` says, with a progress bar on `console`.

    `grade` takes the place of the judge. Raises NotGraded, NoSubmissions, NoCluster and OSError where
    nothing could be graded.
    """
    _check(wish)
    entries = submissions.found(wish.folder)
    for name in submissions.overlooked(wish.folder):
        console.print(f"Not taken for a submission: {name}", markup=False, highlight=False)
    for entry in entries:
        for problem in entry.problems:
            console.print(f"{entry.student}: {problem}", style="yellow", markup=False, highlight=False)
    before = _stored(wish) if wish.resume else None
    chosen = before.labs if before else _labs(wish, entries)
    with _workers(wish, len(entries)) as workers:
        isolation = _isolation(workers, wish.isolation or (before.isolation if before else None))
        settings = replace(before, isolation=isolation) if before else _begun(wish, chosen, isolation)
        settings = replace(settings, seconds=wish.seconds or settings.seconds)
        _tell(settings, console)
        wish.out.mkdir(parents=True, exist_ok=True)
        write_whole(wish.out / RUN, json.dumps(asdict(settings), indent=1) + "\n")
        store = Store(wish.out, settings.seed, judge.asked(chosen).values())
        hidden = tuple(str(path.resolve()) for path in (wish.folder, wish.out))
        judging = partial(judge.grade, limits=replace(_limits(settings), hidden=hidden))
        most = SPARE_SECONDS + 2 * len(chosen) * settings.seconds
        job = engine.Job(chosen, settings.seed, isolation, grade or judging, most)
        stopped = _graded(workers, entries, store, job, console)
    return _written(store, settings, entries, stopped)


def _limits(settings: Settings) -> Limits:
    return replace(process.LIMITS, lab_seconds=settings.seconds)


def tell(ended: Ended, console: Console) -> None:
    """Print how a class did: a table of the labs."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("lab", overflow="fold")
    for name in ("points", "graded", "mean", "median", "full"):
        table.add_column(name, justify="right", no_wrap=True)
    for lab in ended.scores.labs:
        points = sorted(ended.scores.totals[lab.number].elements())
        row = [str(lab), str(lab.points), str(len(points))]
        if points:
            full = sum(is_full(each, lab.points) for each in points)
            row += [f"{statistics.mean(points):.2f}", f"{statistics.median(points):.2f}", str(full)]
        table.add_row(*row)
    console.print(table)
    summary = ended.summary
    console.print(
        f"{summary.graded} of {summary.submissions} submissions are graded"
        + f", {summary.to_regrade} are to be graded again: to_regrade.csv says why" * bool(summary.to_regrade)
        + ".",
        style="yellow" if summary.to_regrade else "",
        highlight=False,
        soft_wrap=True,
    )


def _check(wish: Wish) -> None:
    if not sys.platform.startswith("linux"):
        raise NotGraded(
            "labkit grade runs on Linux, whose namespaces keep submissions apart. "
            "On Windows use WSL 2, on a Mac a virtual machine or container with Linux."
        )
    if wish.scheduler and wish.workers:
        raise NotGraded("--workers are processes of this machine; --scheduler has workers of its own.")
    folder, out = wish.folder.resolve(), wish.out.resolve()
    if not folder.is_dir():
        raise NotGraded(f"{wish.folder} is no folder. Name the one that holds the submissions.")
    if out.is_relative_to(folder):
        raise NotGraded(f"{wish.out} lies in {wish.folder}, among the submissions. Choose another --out.")
    if wish.out.exists() and not wish.resume and any(wish.out.iterdir()):
        raise NotGraded(
            f"{wish.out} is not empty, and nothing is overwritten. "
            "Add --resume to go on with a run that was stopped, or choose another --out."
        )
    known = sorted({id.partition(".")[0] for id in EXERCISES})
    if unknown := [lab for lab in wish.labs if _number(lab) not in known]:
        raise NotGraded(f"There is no lab {unknown[0]!r}. Choose from {', '.join(known)}.")


def _stored(wish: Wish) -> Settings | None:
    """Return the settings of the run that is resumed; None where it has not begun."""
    path = wish.out / RUN
    if not wish.out.exists() or not any(wish.out.iterdir()):
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        settings = Settings(**{**stored, "labs": tuple(stored["labs"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotGraded(f"{wish.out} has no run to go on with: {path} cannot be read ({error}).") from None
    if settings.labkit != __version__:
        raise NotGraded(
            f"{wish.out} was begun with labkit {settings.labkit}; this is {__version__}, "
            "which may grade differently. Choose another --out."
        )
    if wish.seed not in (None, settings.seed):
        raise NotGraded(
            f"{wish.out} has the seed {settings.seed}: leave out --seed, or choose another --out."
        )
    if wish.labs and tuple(sorted({*map(_number, wish.labs)})) != settings.labs:
        told = ", ".join(settings.labs)
        raise NotGraded(f"{wish.out} has the labs {told}: leave out --lab, or choose another --out.")
    return settings


def _labs(wish: Wish, entries: Sequence[submissions.Entry]) -> tuple[str, ...]:
    """Return the labs asked for, or those that the class has."""
    if wish.labs:
        return tuple(sorted({*map(_number, wish.labs)}))
    chosen = submissions.labs_of_class(each for each in _read(entries) if isinstance(each, Submission))
    if not chosen:
        raise NotGraded(
            f"No submission in {wish.folder} answers an exercise of the course. "
            "If they are to be graded all the same, say for which lab: --lab 02."
        )
    return chosen


def _begun(wish: Wish, chosen: tuple[str, ...], isolation: str) -> Settings:
    seed = secrets.randbelow(2**32) if wish.seed is None else wish.seed
    began = datetime.now(UTC).isoformat(timespec="seconds")
    return Settings(seed, chosen, isolation, __version__, wish.command, began)


def _workers(wish: Wish, entries: int) -> AbstractContextManager[engine.Workers]:
    if wish.scheduler:
        from labkit.grading.judging import cluster  # here: it needs Dask, and the rest does not

        return cluster.existing(wish.scheduler)
    return Pool(min(wish.workers or cores(), entries))


def _isolation(workers: engine.Workers, wanted: str | None) -> str:
    """Return the tier that is asked for, or else the strongest that all workers have."""
    if wanted is None:
        return max(workers.ask(process.best).values(), key=process.TIERS.index)
    for address, refusal in workers.ask(partial(_refusal, wanted)).items():
        if refusal:
            raise NotGraded(f"On {address}: {refusal}")
    return wanted


def _refusal(tier: str) -> str:
    """Say, on a worker, why it does not have this tier; "" if it has."""
    try:
        process.require(tier)
    except process.NoSandbox as error:
        return str(error)
    return ""


def _tell(settings: Settings, console: Console) -> None:
    """Print how submissions are graded."""
    console.print(
        f"labs {', '.join(settings.labs)} · seed {settings.seed} · isolation: {settings.isolation}",
        highlight=False,
    )
    if settings.isolation in process.WARNINGS:
        console.print(process.WARNINGS[settings.isolation], style="yellow", highlight=False, soft_wrap=True)


def _read(entries: Sequence[submissions.Entry]) -> Iterator[Submission | _Unread]:
    released = {path.name for path in catalog.notebooks(catalog.shipped())}
    for entry in entries:
        try:
            yield submissions.read(entry, EXERCISES, released)
        except Exception as error:  # nothing that a student did should raise
            empty = Submission(entry.student, problems=entry.problems, identity=entry.identity)
            if why := ours(error):
                yield _Unread(empty, why, format_exc())
            else:
                yield replace(
                    empty, problems=(*entry.problems, f"It cannot be read: {type(error).__name__}.")
                )


def _graded(
    workers: engine.Workers,
    entries: Sequence[submissions.Entry],
    store: Store,
    job: engine.Job,
    console: Console,
) -> KeyboardInterrupt | engine.NoCluster | None:
    """Grade and store what is not done yet, and return why it stopped early, if it did."""
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}", style="yellow"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    to_regrade = 0

    def keep(graded: Graded) -> None:
        nonlocal to_regrade
        store.put(graded)
        to_regrade += any(result.state == REGRADE for result in graded.results)
        progress.update(bar, advance=1, told=f"{to_regrade} to grade again" if to_regrade else "")

    def missing() -> Iterator[Submission]:
        left = len(entries)
        for submission in _read(entries):
            if isinstance(submission, _Unread):
                keep(engine.regrade(submission.as_submission, job, submission.why, submission.inside))
            elif store.is_done(submission):
                left -= 1
                progress.update(bar, total=left)
            else:
                yield submission

    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        bar = progress.add_task("", total=len(entries), told="")
        try:
            for graded in engine.grade_all(workers, missing(), job):
                keep(graded)
        except (KeyboardInterrupt, engine.NoCluster) as stopped:
            return stopped
    return None


def _written(
    store: Store,
    settings: Settings,
    entries: Sequence[submissions.Entry],
    stopped: KeyboardInterrupt | engine.NoCluster | None,
) -> Ended:
    """Write tables and pages of what is stored."""
    students = [entry.student for entry in entries]
    solved = catalog.shipped() / SOLUTIONS
    began = datetime.fromisoformat(settings.began)
    limits = _limits(settings)
    summary = write_all(store, Run(settings.seed, settings.command, solved, limits, began), students)
    scores = Scores(labs.labs(store.exercises, solved))
    for graded in store.of(students):
        scores.add(graded)
    return Ended(summary, scores, stopped)


def _number(lab: str) -> str:
    """Write a lab as the ids of exercises do: 02 for 2."""
    return lab.zfill(2)
