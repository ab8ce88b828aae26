"""What students and teachers read: a page a student, and an overview of the class.

Each page is one file, without scripts, that fetches nothing. Students' names, sources and error messages are
shown as text, whatever they hold.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from labkit.grading.manifest import Run
from labkit.grading.model import Graded
from labkit.grading.pages import overview, student
from labkit.grading.pages.tasks import tasks
from labkit.grading.scores import Scores


def write_all(
    out: Path,
    scores: Scores,
    run: Run,
    submissions: Callable[[], Iterable[Graded]],
    slug: Callable[[str], str],
) -> Path:
    """Write feedback/<slug>.html of each submission and overview.html into the folder `out`.

    `scores` are those of all submissions. Returns the overview's path.
    """
    folder = out / "feedback"
    folder.mkdir(exist_ok=True)
    asked = tasks(run.solved, [exercise.id for lab in scores.labs for exercise in lab.exercises])
    for graded in submissions():
        _write(folder / f"{slug(graded.submission.student)}.html", student.page(graded, scores, asked))
    links = {remark.student: f"feedback/{slug(remark.student)}.html" for remark in scores.notes.listed}
    links |= {
        remark.student: f"feedback/{slug(remark.student)}.html"
        for remark in scores.regrades.listed
        if remark.exercise
    }
    path = out / "overview.html"
    _write(path, overview.page(scores, run, links))
    return path


def _write(path: Path, html: str) -> None:
    "Write a page so that it is never seen half written."
    part = path.with_name(f"{path.name}.part")
    part.write_text(html, encoding="utf-8", newline="\n")
    part.replace(path)
