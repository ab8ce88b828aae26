"""Run notebooks without a browser: a progress bar, an HTML page for each, and a table of how it went.

The kernel is the Python that labkit runs in, whatever other kernels there are. The notebooks' files are only
read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from time import perf_counter

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from labkit.course.notebooks.catalog import NoNotebook, read
from labkit.course.notebooks.page import page

OK, DEAD, UNREAD = "ok", "kernel died", "not run"
ON_PURPOSE = "raises-exception"  # the tag of a cell that is meant to fail
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Outcome:
    """How a notebook went: how many of its code cells have run, and what went wrong, line by line."""

    notebook: Path
    result: str
    seconds: float
    cells: int
    failures: tuple[str, ...] = ()
    page: Path | None = None


def pages(notebooks: Iterable[Path], out: Path) -> list[tuple[Path, Path]]:
    """Pair each notebook with its page in the folder `out`. Raises NoNotebook where two share a page."""
    found: dict[Path, Path] = {}
    for notebook in notebooks:
        target = out / f"{notebook.stem}.html"
        if target in found:
            raise NoNotebook(f"{found[target]} and {notebook} would both become {target}. Run one of them.")
        found[target] = notebook
    return [(notebook, target) for target, notebook in found.items()]


def run(notebooks: Iterable[Path], out: Path, console: Console) -> Iterator[Outcome]:
    """Run each notebook and write its page into the folder `out`, with a progress bar on `console`.

    What goes wrong in a notebook is in its outcome. Raises NoNotebook as `pages` does, and OSError where
    `out` cannot be written.
    """
    plan = pages(notebooks, out)
    out.mkdir(parents=True, exist_ok=True)
    heading = Column(no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[heading]}", style="dim", markup=False, table_column=heading),
    )
    with Progress(*columns, console=console) as progress:
        for path, target in plan:
            yield run_one(path, target, _bar(progress, path.stem))


def run_one(path: Path, target: Path, report: Report) -> Outcome:
    """Run a notebook and write its page. A cell that fails does not keep the next from running.

    `report(done, total, heading)` is called before each code cell and at the end.
    """
    start = perf_counter()
    try:
        notebook = _read(path)
    except NoNotebook as error:
        return Outcome(path, UNREAD, perf_counter() - start, 0, (str(error),))
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_spec_manager=_ThisPython()),
        resources={"metadata": {"path": str(path.resolve().parent)}},
        allow_errors=True,
        iopub_timeout=60,
        shutdown_kernel="immediate",
    )
    cells, death = _execute(client, notebook, report)
    part = target.with_name(f"{target.name}.part")  # Ctrl-C must not leave half a page
    part.write_text(page(notebook, client.widget_state, path), encoding="utf-8")
    part.replace(target)
    failures = [*_failures(notebook), *([death] if death else [])]
    result = DEAD if death else f"{len(failures)} failed" if failures else OK
    return Outcome(path, result, perf_counter() - start, cells, tuple(failures), target)


def tell(outcomes: Iterable[Outcome], console: Console) -> None:
    """Print how all went: a table, and below it what went wrong."""
    outcomes = list(outcomes)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("notebook", no_wrap=True)
    for name in ("seconds", "cells"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("file", overflow="fold")
    for each in outcomes:
        result = Text(each.result, "green" if each.result == OK else "red")
        name = each.page.name if each.page else ""
        table.add_row(each.notebook.stem, f"{each.seconds:.1f}", str(each.cells), result, name)
    console.print(table)
    for each in outcomes:
        for failure in each.failures:
            console.print(f"{each.notebook.stem}: {failure}", soft_wrap=True, markup=False, highlight=False)


class _ThisPython(KernelSpecManager):
    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the kernel of the Python that runs here."""
        return KernelSpec(**get_kernel_dict())


def _bar(progress: Progress, name: str) -> Report:
    """Add a bar, and return what moves it."""
    bar: TaskID = progress.add_task(name, total=0, heading="")
    return lambda done, total, heading: progress.update(bar, completed=done, total=total, heading=heading)


def _read(path: Path) -> NotebookNode:
    read(path)
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat's own, and what it stumbles over: KeyError, AttributeError, …
        raise NoNotebook(f"{path} is not a notebook: {str(error).partition(chr(10))[0]}.") from None
    return notebook


def _execute(client: NotebookClient, notebook: NotebookNode, report: Report) -> tuple[int, str]:
    """Run all code cells; return how many have run, and how the kernel died, if it did.

    The cell in which it died shows that, too.
    """
    cells = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    for _, cell in cells:  # what is stored is not what this run gives
        cell.outputs, cell.execution_count = [], None
    if not cells:
        return 0, ""
    headings, done = _headings(notebook), 0
    report(done, len(cells), "the kernel starts")
    try:
        # Jupyter's warnings of its own would stand between the bars.
        with client.setup_kernel(cleanup_kc=True, stderr=DEVNULL):
            for index, cell in cells:
                report(done, len(cells), headings[index])
                client.execute_cell(cell, index, execution_count=done + 1)
                done += 1
    except RuntimeError as error:  # nbclient's, where the kernel dies or does not start
        index, cell = cells[done]
        death = f"{_place(done, headings[index])}: {error}; the cells below have not run"
        cell.outputs.append(nbformat.v4.new_output("error", ename="", evalue="", traceback=[death]))
        return done, death
    report(done, done, "")
    return done, ""


def _failures(notebook: NotebookNode) -> list[str]:
    """Write one line for each cell that has failed and was not meant to."""
    headings, found = _headings(notebook), []
    cells = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    for number, (index, cell) in enumerate(cells):
        if ON_PURPOSE not in cell.metadata.get("tags", []):
            errors = [each for each in cell.outputs if each.output_type == "error" and each.ename]
            for error in errors:
                first = error.evalue.strip().partition("\n")[0]
                found.append(f"{_place(number, headings[index])}: {error.ename}: {first}")
    return found


def _headings(notebook: NotebookNode) -> list[str]:
    """Find the last heading above each cell."""
    found, last = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            last = next(iter(reversed(_HEADING.findall(cell.source))), last)
        found.append(last)
    return found


def _place(number: int, heading: str) -> str:
    return f"cell [{number + 1}]" + f", {heading}" * bool(heading)
