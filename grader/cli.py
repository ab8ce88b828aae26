"""The commands for teachers with a class: `labkit grade`, `similar`, `forget`."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labkit.exits import not_installed
from simt.cli import reported

app = typer.Typer()


@app.command()
def grade(
    submissions: Annotated[Path, typer.Argument(help="Folder or zip with a notebook or folder per student.")],
    out: Annotated[Path, typer.Option(help="Folder for the grades: a new one, or see --resume.")],
    lab: Annotated[
        list[str] | None,
        typer.Option(help="A lab, such as 02; repeat it for several. By default all that the class has."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the inputs: same seed, same grades. By default it is drawn."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; by default one per core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Grade on a Dask cluster: its address, tcp://….")
    ] = None,
    isolation: Annotated[
        str | None,
        typer.Option(help="bubblewrap, container or process; by default bubblewrap, where it works."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1, max=10**6, help="Time limit of a submission per lab that it answers; by default 400."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Grade what is missing in --out, has changed, or needs regrading."),
    ] = False,
    regrade: Annotated[
        list[str] | None,
        typer.Option(help="With --resume: judge an exercise again, such as 02.1; repeat it for several."),
    ] = None,
) -> None:
    """Grade a class. Exit code 1: something needs regrading, or nothing could be graded."""
    with _needed("cluster" if scheduler else "grade"):
        from grader import run as grading

        if scheduler:
            from grader.judging import cluster  # noqa: F401
    console, command = Console(), f"labkit {shlex.join(sys.argv[1:])}"
    wish = grading.GradeRequest(
        *(submissions, out, lab or (), seed, workers, scheduler, isolation, resume, command, seconds),
        regrade or (),
    )
    go_on = f"The grades so far are in {out}; the same command with --resume continues from there."
    try:
        ended = grading.run(wish, console)
    except (ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        if (out / grading.RUN).exists() and isinstance(error, OSError):
            print(go_on, file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(f"\nStopped. {go_on}")
        raise typer.Exit(130) from None
    grading.tell(ended, console)
    if ended.stopped:
        print(f"{str(ended.stopped) or 'Stopped.'} {go_on}", file=sys.stderr)
    print(f"The grades are in {out / 'grades.csv'}; begin with {ended.summary.overview}.")
    is_stopped_here = isinstance(ended.stopped, KeyboardInterrupt)
    raise typer.Exit(130 if is_stopped_here else int(bool(ended.stopped or ended.summary.to_regrade)))


@app.command()
def similar(
    grades: Annotated[Path, typer.Argument(help="Folder of grades that labkit grade has written.")],
) -> None:
    """List similar answers for a person to read: it cannot say whether anyone copied, or who."""
    with _needed("grade"):
        from grader import later
    with reported(ValueError, OSError):
        path, found = later.alike(grades)
    table = Table("student", "other", "exercise", "share", box=None)
    for pair in found[:20]:
        table.add_row(Text(pair.student), Text(pair.other), pair.exercise, f"{100 * pair.share:.0f} %")
    Console().print(table if found else "No two answers are alike beyond the code that was handed out.")
    print(f"{len(found)} pairs: {path}.")


@app.command()
def forget(
    grades: Annotated[Path, typer.Argument(help="Folder of grades that labkit grade has written.")],
    student: Annotated[str, typer.Argument(help="As in grades.csv.")],
) -> None:
    """Remove everything that a folder of grades keeps about a student."""
    with _needed("grade"):
        from grader import later
    with reported(ValueError, OSError):
        left = later.forget(grades, student)
    print(f"{grades} no longer has anything about {student}.")
    for each in left:
        print(f"Remove this yourself: {each}")


@contextmanager
def _needed(extra: str) -> Iterator[None]:
    """End the command where an import finds a package missing, and name the extra that has it."""
    try:
        yield
    except ImportError as error:
        raise not_installed(f"The package {error.name}, which grading needs,", extra) from None
