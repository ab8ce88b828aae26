"""The notebooks of the course: which there are, what each teaches, its exercises and their points.

Notebooks are read as JSON: the base install has no nbformat.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.table import Table

from labkit import kernels, paths
from labkit.course import EXERCISES
from labkit.course.exercise import Exercise
from labkit.course.progress import MARKS, Best, state

PACKAGE = Path(__file__).parents[2]
_KEPT = "!#$%&'()*+,/:;=?@[\\]^{|}"  # ASCII that browsers leave as it is behind the # of a URL
# How long a notebook takes: these fit what two readers measured in the second edition's 14 notebooks to 13 %.
_WORDS_PER_MINUTE, _MINUTES_PER_EXERCISE, _MINUTES_PER_POINT = 130, 8.5, 3.8
_TITLE = re.compile(r"^# (?:[0-9R]\w* · )?(.+)$", re.MULTILINE)
_GUESS = re.compile(r"""labkit\.guess\(["']([^"']+)["']\)""")
_MORE = re.compile(r"^## More practice$.*?(?=^## What to remember$)", re.MULTILINE | re.DOTALL)
_TASK = re.compile(r"^#+ (?P<heading>Exercise (?P<id>\d\d\.\d+)\b.*?) *$", re.MULTILINE)


class NoNotebook(ValueError):
    """There is no such notebook, or it cannot be read; the message says why."""


# The parts of the course, as notebooks' metadata names them, and what a student makes of them.
PARTS = {
    "core": "the core",
    "optional": "optional",
    "further": "further",
    "reports": "appendix: five reports, redone",
}


@dataclass(frozen=True)
class Lesson:
    """A notebook: its file, its `number` such as 03 or 04b, its title, and one line on what it teaches.

    `part` is a key of PARTS, and `words` counts its text without more practice. `exercises` are those that
    have a cell for the answer in it, in its order: an exercise's id does not change when it moves to another
    notebook. `predictions` are the ids of its `labkit.guess`. `headings` has the heading above each
    exercise's task, by the exercise's id.
    """

    path: Path
    number: str
    title: str
    concept: str
    part: str
    words: int
    exercises: tuple[Exercise, ...]
    predictions: tuple[str, ...]
    headings: Mapping[str, str]

    @property
    def points(self) -> int:
        """Return what its exercises are worth together."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def core(self) -> list[Exercise]:
        """Return the exercises that are not more practice."""
        return [exercise for exercise in self.exercises if not exercise.practice]

    @property
    def minutes(self) -> int:
        """Estimate how long it takes to read, and to solve the exercises that are not more practice."""
        points = sum(exercise.points for exercise in self.core)
        exact = self.words / _WORDS_PER_MINUTE
        exact += _MINUTES_PER_EXERCISE * len(self.core) + _MINUTES_PER_POINT * points
        return max(5, 5 * round(exact / 5))


def shipped() -> Path:
    """Find the course's own notebooks: in a clone beside the package, in an installed one within it."""
    return paths.shipped("notebooks", PACKAGE)


def notebooks(folder: Path) -> list[Path]:
    """List the notebooks in a folder, in the order of the course. Raises NoNotebook where there is none."""
    found = sorted(folder.glob("*.ipynb"))
    if not found:
        raise NoNotebook(f"There is no notebook in {folder}.")
    return found


def read(path: Path) -> dict[str, Any]:
    """Read a notebook's JSON. Raises NoNotebook where the file is none."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoNotebook(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise NoNotebook(f"{path} is not a notebook: it is not JSON ({error}).") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise NoNotebook(f"{path} is not a notebook: it has no cells.")
    return notebook


def cuda_sources() -> list[str]:
    """Gather the course's CUDA C++: its kernels, and the `%%cuda` cells of all its notebooks."""
    rungs = [
        kernels.source_with_includes(name) for family in kernels.FAMILIES for name in kernels.names(family)
    ]
    pages = [*notebooks(shipped() / "solutions"), *notebooks(shipped())]
    cells = [_source(cell) for page in pages for cell in read(page)["cells"]]
    return rungs + [cell for cell in cells if cell.startswith("%%cuda")]


def lesson(path: Path) -> Lesson:
    """Read what a notebook says of itself. Raises NoNotebook where it is none."""
    notebook = read(path)
    text = "\n".join(_source(cell) for cell in notebook["cells"] if cell.get("cell_type") == "markdown")
    code = "\n".join(_source(cell) for cell in notebook["cells"] if cell.get("cell_type") == "code")
    title, about = _TITLE.search(text), notebook.get("metadata", {}).get("labkit", {})
    return Lesson(
        path,
        path.stem.partition("_")[0],
        title[1].strip() if title else path.stem,
        about.get("concept", ""),
        about.get("part", ""),
        len(_MORE.sub("", text).split()),
        tuple(EXERCISES[id] for id in _answers(notebook) if id in EXERCISES),
        tuple(dict.fromkeys(_GUESS.findall(code))),
        {task["id"]: task["heading"] for task in _TASK.finditer(text)},
    )


def _answers(notebook: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the exercises for which a notebook has a cell for the answer."""
    for cell in notebook["cells"]:
        about = cell.get("metadata", {}).get("labkit", {})
        if about.get("role") == "answer":
            yield about.get("exercise", "")


def anchor(heading: str) -> str:
    """Return the link to a heading of the same notebook, which JupyterLab names by its text.

    JupyterLab compares the two as they are: what a browser leaves alone behind the #, such as ?, stays.
    """
    return f"#{quote(heading.replace('`', '').replace(' ', '-'), safe=_KEPT)}"


def find(names: Iterable[str], folder: Path) -> list[Path]:
    """Find the notebook of each name: a path, or how its name in `folder` begins, such as 03.

    Raises NoNotebook for a name that fits none of them, or several.
    """
    return list({path.resolve(): path for path in (_find(name, folder) for name in names)}.values())


def table(lessons: Iterable[Lesson], best: Mapping[str, Best]) -> Table:
    """List all notebooks and exercises with their points and what is earned, for the terminal."""
    lessons = list(lessons)
    shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    shown.add_column(justify="right", no_wrap=True)
    for each in lessons:
        shown.add_row(each.number, each.title, _earned([each], best), style="bold")
        part = f"{PARTS[each.part]}, " if each.part in PARTS else ""
        shown.add_row("", f"{each.concept} ({part}about {each.minutes} minutes)", "")
        for exercise in each.exercises:
            mark, more = MARKS[state(exercise.id, best)], " (more practice)" * exercise.practice
            shown.add_row(exercise.id, f"{mark} {exercise.title}{more}", str(exercise.points))
        shown.add_row()
    exercises = [exercise.id for each in lessons for exercise in each.exercises]
    solved = sum(state(each, best) == "solved" for each in exercises)
    total = f"{len(lessons)} notebooks, {len(exercises)} exercises" + f", {solved} solved" * bool(solved)
    shown.add_row("", total, _earned(lessons, best), style="bold")
    return shown


def _find(name: str, folder: Path) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise NoNotebook(f"{name} is a folder. Name one of its notebooks.")
    known = {found.stem: found for found in notebooks(folder)}
    wanted = name.removesuffix(".ipynb")
    wanted = wanted.zfill(2) if wanted.isdigit() else wanted
    fitting = [stem for stem in known if stem.partition("_")[0] == wanted]
    fitting = fitting or [stem for stem in known if stem.startswith(wanted)]
    if wanted in known or len(fitting) == 1:
        return known[wanted if wanted in known else fitting[0]]
    problem = f"{name!r} fits {', '.join(fitting)}" if fitting else f"There is no notebook {name!r}"
    raise NoNotebook(f"{problem}. Choose one of: {', '.join(known)}; or give a path.")


def _source(cell: dict[str, Any]) -> str:
    """Return a cell's text; the file has a list of lines, or one string."""
    return "".join(cell.get("source", ""))


def _earned(lessons: Iterable[Lesson], best: Mapping[str, Best]) -> str:
    """Say how many points there are, and how many are earned if any are."""
    exercises = [exercise for each in lessons for exercise in each.exercises]
    points = sum(exercise.points for exercise in exercises)
    earned = round(sum(each.points * best[each.id].share for each in exercises if each.id in best), 2)
    return f"{earned:g} of " * bool(earned) + f"{points} point" + "s" * (points != 1)
