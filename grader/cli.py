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
        typer.Option(help="Such as 02; again for several. Those that the class has, if none is named."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the inputs: same seed, same grades. Drawn if left out.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core if left out.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Grade on a Dask cluster: its address, tcp://….")
    ] = None,
    isolation: Annotated[
        str | None,
        typer.Option(help="bubblewrap, container or process; bubblewrap where it works, if left out."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1, max=10**6, help="That a submission may take per lab that it answers; 400 if left out."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Grade what is missing in --out, changed, or to be graded again.")
    ] = False,
    regrade: Annotated[
        list[str] | None,
        typer.Option(help="With --resume: judge an exercise once more, such as 02.1; again for several."),
    ] = None,
) -> None:
    """Grade a class. Exit code 1: something is to be graded again, or nothing could be graded."""
    with _needed("cluster" if scheduler else "grade"):
        from grader import run as grading

        if scheduler:
            from grader.judging import cluster  # noqa: F401
    console, command = Console(), f"labkit {shlex.join(sys.argv[1:])}"
    wish = grading.Wish(
        *(submissions, out, lab or (), seed, workers, scheduler, isolation, resume, command, seconds),
        regrade or (),
    )
    go_on = f"What is graded is in {out}; the same command with --resume goes on from there."
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
    print(f"The grades are {out / 'grades.csv'}; begin with {ended.summary.overview}.")
    is_stopped_here = isinstance(ended.stopped, KeyboardInterrupt)
    raise typer.Exit(130 if is_stopped_here else int(bool(ended.stopped or ended.summary.to_regrade)))


@app.command()
def similar(
    grades: Annotated[Path, typer.Argument(help="Folder of grades that labkit grade has written.")],
) -> None:
    """List answers that are alike, for a person to read: who copied, or whether, it cannot say."""
    with _needed("grade"):
        from grader import later
    with reported(ValueError, OSError):
        path, found = later.alike(grades)
    table = Table("student", "other", "exercise", "share", box=None)
    for pair in found[:20]:
        table.add_row(Text(pair.student), Text(pair.other), pair.exercise, f"{100 * pair.share:.0f} %")
    Console().print(table if found else "No two answers are alike beyond what was handed out.")
    print(f"{len(found)} pairs: {path}.")


@app.command()
def forget(
    grades: Annotated[Path, typer.Argument(help="Folder of grades that labkit grade has written.")],
    student: Annotated[str, typer.Argument(help="As in grades.csv.")],
) -> None:
    """Remove all that a folder of grades keeps of a student."""
    with _needed("grade"):
        from grader import later
    with reported(ValueError, OSError):
        left = later.forget(grades, student)
    print(f"{grades} has nothing of {student} any more.")
    for each in left:
        print(f"Yours to remove: {each}")


@contextmanager
def _needed(extra: str) -> Iterator[None]:
    """End the command where an import finds a package missing, and name the extra that has it."""
    try:
        yield
    except ImportError as error:
        raise not_installed(f"What grades ({error.name})", extra) from None
