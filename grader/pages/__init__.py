"""What students and teachers read: one page per student, and an overview of the class.

Each page is one file, without scripts, that fetches nothing. Students' names, sources and error messages are
shown as text, whatever they hold.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from grader.model import Graded
from grader.pages import overview, student
from grader.pages.tasks import tasks
from grader.results.manifest import Grading
from grader.results.scores import Scores
from grader.text import slug, write_whole


def write_all(out: Path, scores: Scores, run: Grading, submissions: Callable[[], Iterable[Graded]]) -> Path:
    """Write feedback/<slug>.html of each submission and overview.html into the folder `out`.

    `scores` are those of all submissions. Returns the overview's path.
    """
    (out / "feedback").mkdir(exist_ok=True)
    asked = tasks(run.solved, [exercise.id for lab in scores.labs for exercise in lab.exercises])
    written, files = set(), overview.Files()
    for graded in submissions():
        files.add(graded.submission)
        path = out / link(graded.submission.student)
        write_whole(path, student.page(graded, scores, asked))
        written.add(path)
    for path in (out / "feedback").glob("*.html"):
        if path not in written:
            path.unlink()  # of somebody who is not in the class any more
    graded_ones = [remark for remark in scores.regrades.listed if remark.exercise]
    links = {remark.student: link(remark.student) for remark in (*scores.notes.listed, *graded_ones)}
    path = out / "overview.html"
    write_whole(path, overview.page(scores, run, links, files))
    return path


def link(name: str) -> str:
    """Return the link to a student's page from the overview."""
    return f"feedback/{slug(name)}.html"
