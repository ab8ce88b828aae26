"""`labkit grade`: a folder of submissions in, a folder of grades out.

GRADES/run.json says from the start what is asked for. Each submission's results are stored as soon as they
are there, so that a run that was stopped goes on where it was.
"""

import hashlib
import json
import secrets
import statistics
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isclose
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

from grader.intake import submissions
from grader.intake.labs import order
from grader.intake.unpack import is_zip, opened
from grader.judging import engine, judge
from grader.judging.faults import ours
from grader.judging.pool import Pool
from grader.model import REGRADE, Graded, Submission
from grader.report import BY_INSTRUCTOR, Summary, by_instructor, write_all
from grader.results.handed_in import handed_in
from grader.results.judged_by import judged_by
from grader.results.manifest import Grading
from grader.results.scores import Scores, is_full
from grader.results.store import Store
from grader.sandbox import process
from grader.sandbox.limits import Limits
from grader.text import one_line, write_whole
from labkit import __version__
from labkit.course import EXERCISES
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import SOLUTIONS
from simt.common.processor import cores

RUN = "run.json"
SPARE_SECONDS = 60  # of the grader's own computing
ASKED_FOR = "asked for with --regrade"
MOST_NAMED = 10  # students in a line that is printed


class NotGraded(ValueError):
    """What is asked for cannot be done; the message says why, and what to do."""


@dataclass(frozen=True)
class GradeRequest:
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
    regrade: Sequence[str] = ()  # exercises to judge again, such as 02.1


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
    strays: tuple[str, ...] = ()  # files beside the submissions, each in a sentence


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


def run(wish: GradeRequest, console: Console, grade: engine.Grade | None = None) -> Ended:
    """Grade what `wish` says, with a progress bar on `console`.

    `grade` takes the place of the judge. Raises NotGraded, NoSubmissions, NoCluster and OSError where
    nothing could be graded.
    """
    _check(wish)
    with opened(wish.folder) as folder:
        return _run(replace(wish, folder=folder), console, grade)


def _run(wish: GradeRequest, console: Console, grade: engine.Grade | None) -> Ended:
    """Grade what is in the folder that `wish` names."""
    entries = submissions.found(wish.folder)
    strays = tuple(f"{file.name} {file.why}." for file in submissions.overlooked(wish.folder))
    for stray in strays:
        told = f"Not taken for a submission: {stray}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
    for entry in entries:
        for problem in entry.problems:
            console.print(f"{entry.student}: {problem}", style="yellow", markup=False, highlight=False)
    before = _stored(wish) if wish.resume else None
    chosen = before.labs if before else _labs(wish, entries, console)
    exercises = judge.asked(chosen)
    again = _again(wish, exercises)
    given = by_instructor(wish.out, {each.student: each.identity for each in entries}, exercises)
    with _workers(wish, len(entries)) as workers:
        isolation = _isolation(workers, wish.isolation or (before.isolation if before else None))
        _same_rules(workers, chosen)
        settings = replace(before, isolation=isolation) if before else _begun(wish, chosen, isolation)
        settings = replace(
            settings, seconds=wish.seconds or settings.seconds, labkit=__version__, strays=strays
        )
        _tell(settings, console)
        wish.out.mkdir(parents=True, exist_ok=True)
        write_whole(wish.out / RUN, json.dumps(asdict(settings), indent=1) + "\n")
        store = Store(wish.out, settings.seed, exercises.values())
        hidden = tuple(str(path.resolve()) for path in (wish.folder, wish.out))
        judging = partial(judge.grade, limits=replace(_limits(settings), hidden=hidden))
        most = SPARE_SECONDS + 2 * len(chosen) * settings.seconds
        job = engine.Job(chosen, settings.seed, isolation, grade or judging, most)
        _tell_changes(store, entries, console)
        stopped = _graded(workers, entries, store, job, console, again)
    students = [entry.student for entry in entries]
    summary = write_all(store, run_of(settings), students, given)
    return Ended(summary, summary.scores, stopped)


def run_of(settings: Settings) -> Grading:
    """Return what tables and pages tell of a run."""
    began, solved = datetime.fromisoformat(settings.began), catalog.shipped() / SOLUTIONS
    return Grading(settings.seed, settings.command, solved, _limits(settings), began, tuple(settings.strays))


def _again(wish: GradeRequest, exercises: Collection[str]) -> Sequence[str]:
    """Return the exercises that are asked to be judged again. Raises NotGraded."""
    if unknown := [id for id in wish.regrade if id not in exercises]:
        known = ", ".join(sorted(exercises, key=order))
        raise NotGraded(f"{unknown[0]!r} is not graded in {wish.out}. Those that are: {known}.")
    return wish.regrade


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
    for line in _about_the_class(summary):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _about_the_class(summary: Summary) -> Iterator[str]:
    """Say what is not plain from the points, one sentence per line."""
    if summary.by_hand:
        yield f"Points by hand: {summary.by_hand}, from overrides.csv."
    if summary.regraded:
        other = sum(not isclose(old, now, abs_tol=1e-6) for old, now in summary.regraded)
        yield f"In regraded.csv: {len(summary.regraded)} answers judged again, {other} with other points."
    if summary.absent:
        yield f"Nothing handed in: {_some(summary.absent)}. not_handed_in.csv has each lab."
    if summary.strangers:
        yield f"Not known by roster.csv: {_some(summary.strangers)}. The overview says why."


def _some(students: Sequence[str]) -> str:
    """Name the first of some students."""
    more = f" and {len(students) - MOST_NAMED} more" * (len(students) > MOST_NAMED)
    return ", ".join(one_line(student, 40) for student in students[:MOST_NAMED]) + more


def _check(wish: GradeRequest) -> None:
    if not sys.platform.startswith("linux"):
        raise NotGraded(
            "labkit grade runs on Linux, whose namespaces keep submissions apart. "
            "On Windows use WSL 2, on a Mac a virtual machine or container with Linux."
        )
    if wish.scheduler and wish.workers:
        raise NotGraded("--workers are processes of this machine; --scheduler has workers of its own.")
    folder, out = wish.folder.resolve(), wish.out.resolve()
    if not folder.is_dir() and not is_zip(folder):
        raise NotGraded(f"{wish.folder} is no folder and no zip. Name the one that holds the submissions.")
    if out.is_relative_to(folder):
        raise NotGraded(f"{wish.out} lies in {wish.folder}, among the submissions. Choose another --out.")
    if wish.regrade and not wish.resume:
        raise NotGraded("--regrade judges again what has been graded: add --resume.")
    if wish.out.exists() and not wish.resume and _is_used(wish.out):
        raise NotGraded(
            f"{wish.out} is not empty, and nothing is overwritten. "
            "Add --resume to go on with a run that was stopped, or choose another --out."
        )
    known = sorted({id.partition(".")[0] for id in EXERCISES})
    if unknown := [lab for lab in wish.labs if _number(lab) not in known]:
        raise NotGraded(f"There is no lab {unknown[0]!r}. Choose from {', '.join(known)}.")


def _is_used(out: Path) -> bool:
    """Tell whether a folder of grades has more than what an instructor lays there."""
    return any(path.name not in BY_INSTRUCTOR for path in out.iterdir())


def settings_of(out: Path) -> Settings:
    """Return the settings of the run in a folder of grades. Raises NotGraded where there is none."""
    path = out / RUN
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Settings(**{**stored, "labs": tuple(stored["labs"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotGraded(f"{out} has no run to go on with: {path} cannot be read ({error}).") from None


def _stored(wish: GradeRequest) -> Settings | None:
    """Return the settings of the run that is resumed; None where it has not begun."""
    if not wish.out.exists() or not _is_used(wish.out):
        return None
    settings = settings_of(wish.out)
    if wish.seed not in (None, settings.seed):
        raise NotGraded(
            f"{wish.out} has the seed {settings.seed}: leave out --seed, or choose another --out."
        )
    if wish.labs and tuple(sorted({*map(_number, wish.labs)})) != settings.labs:
        told = ", ".join(settings.labs)
        raise NotGraded(f"{wish.out} has the labs {told}: leave out --lab, or choose another --out.")
    return settings


def _labs(wish: GradeRequest, entries: Sequence[submissions.Entry], console: Console) -> tuple[str, ...]:
    """Return the labs asked for, or those that the class has."""
    if wish.labs:
        return tuple(sorted({*map(_number, wish.labs)}))
    found = submissions.labs_of_class(each for each in _read(entries) if isinstance(each, Submission))
    if not found.counts:
        raise NotGraded(
            "No submission answers an exercise of the course. "
            "If they are to be graded all the same, say for which lab: --lab 02."
        )
    if not found.of_half:
        named = " ".join(f"--lab {lab}" for lab in sorted(found.counts))
        raise NotGraded(
            f"No lab is in half of the submissions that answer anything: {found}. "
            f"Name those that are to be graded: {named}."
        )
    if left := sorted(found.counts.keys() - {*found.of_half}):
        told = f"Not graded: {', '.join(left)}. Answers are to {found}; --lab names the labs to grade."
        console.print(told, style="yellow", highlight=False, soft_wrap=True)
    return found.of_half


def _begun(wish: GradeRequest, chosen: tuple[str, ...], isolation: str) -> Settings:
    seed = secrets.randbelow(2**32) if wish.seed is None else wish.seed
    began = datetime.now(UTC).isoformat(timespec="seconds")
    return Settings(seed, chosen, isolation, __version__, wish.command, began)


def _workers(wish: GradeRequest, entries: int) -> AbstractContextManager[engine.Workers]:
    if wish.scheduler:
        from grader.judging import cluster  # here: it needs Dask, and the rest does not

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


def _same_rules(workers: engine.Workers, chosen: tuple[str, ...]) -> None:
    """Raise NotGraded where a worker would judge these labs by other rules than this machine."""
    mine = _rules(chosen)
    for address, theirs in workers.ask(partial(_rules, chosen)).items():
        if theirs != mine:
            raise NotGraded(
                f"On {address} labkit has other sources than here, or other hidden checks: "
                "a class is judged by the same everywhere. Install there what is here."
            )


def _rules(labs: tuple[str, ...]) -> str:
    """Hash, on a worker, what judges these labs."""
    told = json.dumps(judged_by(judge.asked(labs).values()), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


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


def _tell_changes(store: Store, entries: Sequence[submissions.Entry], console: Console) -> None:
    """Print how many answers are judged again because their rules have changed: it may take hours."""
    results = (result for graded in store.of(each.student for each in entries) for result in graded.results)
    changes = Counter(result.again for result in results if result.state == REGRADE and result.again)
    for why, count in changes.items():
        console.print(f"Judged again, {count} answers: {why}.", highlight=False, soft_wrap=True)


def _read(entries: Sequence[submissions.Entry], graded: Sequence[str] = ()) -> Iterator[Submission | _Unread]:
    """Read the submissions; `graded` are the labs that points are asked for, once that is known."""
    released = {path.name for path in catalog.notebooks(catalog.shipped())}
    for entry in entries:
        try:
            read = submissions.read(entry, EXERCISES, released, graded)
            sent_as, times = tuple(path.name for path in entry.paths), handed_in(entry.paths, read.labs)
            yield replace(read, sent_as=sent_as, handed_in=times)
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
    again: Sequence[str] = (),
) -> KeyboardInterrupt | engine.NoCluster | None:
    """Grade and store what is not done yet, and return why it stopped early, if it did.

    The exercises `again` are judged once more. Of a submission that is graded, nothing else is.
    """
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}", style="yellow"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    to_regrade = 0
    waiting: dict[str, tuple[Submission, set[str]]] = {}  # those that are being graded, and what of them

    def keep(graded: Graded) -> None:
        nonlocal to_regrade
        submission, judged = waiting.pop(graded.submission.student, (graded.submission, {*store.asked}))
        graded = store.add(submission, graded, judged, ASKED_FOR)
        to_regrade += any(result.state == REGRADE for result in graded.results)
        progress.update(bar, advance=1, told=f"{to_regrade} to grade again" if to_regrade else "")

    def missing() -> Iterator[Submission]:
        left = len(entries)
        for submission in _read(entries, job.labs):
            if isinstance(submission, _Unread):
                keep(engine.regrade(submission.as_submission, job, submission.why, submission.inside))
                continue
            pending = store.pending(submission)
            judged = {*pending, *again}
            if judged:
                waiting[submission.student] = submission, judged
                answers = {id: each for id, each in submission.answers.items() if id in judged}
                yield replace(submission, answers=answers)
            else:
                store.refresh(submission)
                left -= 1
                progress.update(bar, total=left)

    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        bar = progress.add_task("", total=len(entries), told="")
        try:
            for graded in engine.grade_all(workers, missing(), job):
                keep(graded)
        except (KeyboardInterrupt, engine.NoCluster) as stopped:
            return stopped
    return None


def _number(lab: str) -> str:
    """Write a lab as the ids of exercises do: 02 for 2."""
    return lab.zfill(2)
