"""Commands: `labkit doctor`, `lab`, `course`, `run`, `bench`; for teachers `release`, `badges`.

Those of `simt` are commands of labkit, too, and so are those of packages that are built on it: they register
under the entry point `labkit.commands`, as the grader does.
"""

import os
import shlex
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labkit import doctor as checkup
from labkit.exits import not_installed
from simt import cli as simt_cli
from simt.cli import reported
from simt.common.errors import SimtError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="CUDA matrix kernels in Jupyter.")

COLOURS = {checkup.OK: "green", checkup.MISSING: "red", checkup.OPTIONAL: "yellow"}


@app.command()
def doctor() -> None:
    """Show what is here, what is missing and how to get it. Exit code 1: the course cannot run."""
    rows = checkup.report()
    console = Console()
    table = Table(box=None, show_header=False)
    for row in rows:
        table.add_row(row.name, Text(row.state, COLOURS[row.state]), Text(row.detail, overflow="fold"))
    console.print(table)
    for row in rows:
        if row.fix:
            console.print(f"\n{row.name}: {row.detail}\n    {row.fix}", soft_wrap=True, markup=False)
    raise typer.Exit(any(row.state == checkup.MISSING for row in rows))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(context: typer.Context) -> None:
    """Open JupyterLab on the notebooks. Options are JupyterLab's: labkit lab --no-browser --port 8899."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise not_installed("JupyterLab") from None
    with reported(OSError):
        arguments = [str(notebooks()), *context.args]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # as in containers: Jupyter needs it
        arguments.append("--allow-root")
    LabApp.launch_instance(argv=arguments)


@app.command()
def course() -> None:
    """List the notebooks, their exercises and points, what you have earned, and how well you predict."""
    from labkit.course import guesses, progress
    from labkit.course.notebooks import catalog  # imported here: it imports the simulator

    with reported(catalog.NoNotebook):
        lessons = [catalog.lesson(path) for path in catalog.notebooks(catalog.shipped())]
    folder = _of_the_student()
    Console().print(catalog.table(lessons, progress.load(folder).best))
    if said := guesses.listed(progress.committed(folder)):
        Console().print(said)


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NOTEBOOK]...", help="03, or a path; all if none is named.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages; labkit-html, or with --solved labkit-html-solved."),
    ] = None,
    solved: Annotated[bool, typer.Option("--solved", help="The solved notebooks in place of yours.")] = False,
) -> None:
    """Run notebooks and write each as an HTML page with its plots. Exit code 1: a cell failed."""
    from labkit.course.notebooks import catalog

    try:
        from labkit.course.notebooks import run as running
    except ImportError:
        raise not_installed("What runs a notebook (nbclient and nbconvert)") from None
    console, outcomes, stopped = Console(), [], False
    out = out or Path("labkit-html-solved" if solved else "labkit-html")
    try:
        with reported(catalog.NoNotebook, OSError):
            folder = catalog.shipped() / "solutions" if solved else notebooks()
            chosen = catalog.find(names, folder) if names else catalog.notebooks(folder)
            for outcome in running.run(chosen, out, console):
                outcomes.append(outcome)
    except KeyboardInterrupt:
        stopped = True
    running.tell(outcomes, console)
    print(f"{'Stopped. ' * stopped}The pages are in {out}.")
    raise typer.Exit(130 if stopped else any(outcome.failures for outcome in outcomes))


@app.command()
def bench(
    out: Annotated[Path, typer.Argument(help="Folder for bench.csv and bench.json.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and medium sizes: under two minutes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Such as matmul or ceilings; again for several. Another word lists them."),
    ] = None,
    limits: Annotated[
        bool,
        typer.Option("--limits", help="Measure latencies and rates of the GPU instead, as limits.csv."),
    ] = False,
) -> None:
    """Verify and time every rung on this machine's GPU. What the folder has already is not measured again."""
    if limits:
        raise typer.Exit(_limits(out, quick, only or ()))
    from labkit import records
    from labkit.devices.select import NoGpu
    from labkit.ladder import bench as benching  # imported here: it needs CuPy and pandas

    try:
        with reported(NoGpu, OSError, ValueError, SimtError):
            cases = benching.plan(quick, only or ())
            origin = records.provenance(f"labkit {shlex.join(sys.argv[1:])}")
            failures = benching.run(cases, out, origin)
    except KeyboardInterrupt:
        print(f"\nStopped. What is measured is in {out}; the same command goes on from there.")
        raise typer.Exit(130) from None
    for failure in failures:
        print(failure, file=sys.stderr)
    folder = str(out.resolve())  # a bare name, such as h200, could be one of our own folders
    print(f"The table is {out / 'bench.csv'}: labkit.records.recorded({folder!r}).")
    raise typer.Exit(bool(failures))


def _limits(out: Path, quick: bool, only: Iterable[str]) -> bool:
    """Measure what bounds a kernel on this machine's GPU and print it; returns whether something failed."""
    from labkit import records
    from labkit.devices.select import NoGpu
    from labkit.ladder import limits  # imported here: it needs CuPy and pandas

    if quick:
        raise typer.BadParameter(
            "--limits takes under two minutes and has no --quick; --only chooses a part."
        )
    with reported(NoGpu, OSError, ValueError, SimtError):
        chosen = limits.plan(only)
        rows, failures = limits.run(chosen, out, records.provenance(f"labkit {shlex.join(sys.argv[1:])}"))
    table, last = Table(*limits.COLUMNS, box=None), ""
    for quantity, variant, unit, value in rows:
        table.add_row(quantity if quantity != last else "", variant, unit, f"{value:.5g}")
        last = quantity
    Console().print(table)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"The table is {out / 'limits.csv'}.")
    return bool(failures)


@app.command()
def release(
    out: Annotated[
        Path | None, typer.Argument(metavar="[OUT]", help="Folder for the notebooks; in a clone notebooks/.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a notebook is not up to date.")
    ] = False,
) -> None:
    """Make the students' notebooks from the solved ones: no solutions, no outputs, no hidden checks."""
    try:
        from labkit.course.notebooks import release as releasing
    except ImportError:
        raise not_installed("What reads and writes notebooks (nbformat)") from None
    from labkit.course.notebooks import catalog

    shipped = catalog.shipped()
    solved = shipped / releasing.SOLUTIONS
    if out is None and shipped.parent == catalog.PACKAGE:
        print("An installed labkit keeps its notebooks as they are. Name a folder: labkit release my-course")
        raise typer.Exit(1)
    out = out or shipped
    with reported(catalog.NoNotebook, releasing.NotReleased, OSError):
        pages = releasing.pages(solved, out)
        stale = [page for page in pages if page.state]
        for page in stale:
            found = page.state
            if not check:
                page.write()
            print(f"{found if check else 'written'}: {page.path.name}")
        orphans = releasing.orphans(pages, out)
    for path in orphans:
        print(f"{path.name} has no solved notebook in {solved}: remove it, or add that")
    if not stale and not orphans:
        print(f"The students' notebooks in {out} are up to date.")
    raise typer.Exit(check and bool(stale or orphans))


@app.command()
def badges(
    name: Annotated[
        str | None, typer.Argument(metavar="[OWNER/REPO]", help="On GitHub; if left out, as it is.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Such as v0.1.0: stop if that is not the tag of this version.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a file is not up to date.")
    ] = False,
) -> None:
    """Write where the repository is: badges in README.md, the first cell of each notebook, pyproject.toml."""
    try:
        from labkit.course.notebooks import badges as writing
        from labkit.course.notebooks import release as releasing
    except ImportError:
        raise not_installed("What reads and writes notebooks (nbformat)") from None
    from labkit.course.notebooks import catalog

    with reported(writing.WrongAddress, catalog.NoNotebook, releasing.NotReleased, OSError):
        root = writing.clone()
        of = writing.named(root, name, tag)
        stale = [page for page in writing.pages(root, of) if page.state]
        if not check:
            for page in stale:
                page.write()
        released = releasing.pages(root / "notebooks" / releasing.SOLUTIONS, root / "notebooks")
        for page in (students := [page for page in released if page.state]):
            if not check:
                page.write()
    for page in [*stale, *students]:
        print(f"{'stale' if check else 'written'}: {page.path.relative_to(root)}")
    if not stale and not students:
        print(f"All files name {of.name} at {of.tag}.")
    raise typer.Exit(check and bool(stale or students))


def notebooks() -> Path:
    """Return the folder of notebooks to work in.

    In a clone it is notebooks/. An installed package holds a read-only set, which is copied to
    labkit-notebooks/ in the current folder; a student's work there is never overwritten. Raises OSError,
    which says what to do, where that folder cannot be written.
    """
    from labkit.course.notebooks import catalog, copies

    shipped, mine = catalog.shipped(), _of_the_student()
    if mine == shipped:
        return shipped
    try:
        changed = copies.keep(shipped, mine)
    except OSError as error:
        way_out = "Change to a folder that is yours first, such as: mkdir -p ~/cuda && cd ~/cuda"
        raise OSError(
            f"The notebooks cannot be copied to {mine} ({error.strerror or error}). {way_out}"
        ) from None
    if changed:
        print(
            f"This labkit has {', '.join(changed)} changed; yours in {mine} stay as they are."
            " To get a new one, move yours to another folder and start again.",
            file=sys.stderr,
        )
    return mine


def _of_the_student() -> Path:
    """Return the folder of notebooks to work in, which need not be there yet."""
    from labkit.course.notebooks import catalog, copies

    shipped, here = catalog.shipped(), Path.cwd()
    if shipped.parent != catalog.PACKAGE:
        return shipped
    return here if (here / copies.CAME_AS).exists() else here / "labkit-notebooks"


for package in (simt_cli.app, *(entry.load() for entry in entry_points(group="labkit.commands"))):
    app.registered_commands += package.registered_commands
