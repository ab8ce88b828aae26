"""A notebook of the course as a chapter of the book.

Its cells are the students', its outputs those stored in the solved notebook: so an exercise stands without
its answer, and each slider, plot and table with the picture that it had when the notebook last ran. Nothing
is run. Outputs that follow from an answer are left out.
"""

import re
from html import escape
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from labkit.course.notebooks import catalog
from labkit.course.notebooks.badges import ROLE, Repository
from labkit.course.notebooks.catalog import Lesson
from labkit.course.notebooks.page import CONTROLS_STAND, SVG, WIDGET, still
from labkit.course.notebooks.release import for_students

# The foot of a notebook: the book has links of its own to the chapters beside.
_LEFT_OUT = re.compile(r"^labkit\.end\(", re.MULTILINE)
_ANSWERS = re.compile(r"""labkit\.answer\(["'](\d\d\.\d+)["']\)""")
_HEAD = '<nav aria-label="Course'  # of labkit.start
_PROGRESS = re.compile(r"\d%\|.*\|")  # a bar of tqdm, finished or not
_CONTROLS = re.compile(r"\n\((?P<values>[^\n]+ = [^\n]+)\)\s*\Z")
_NEXT = re.compile(r", (?=[^,=]+ = )")
_NOTEBOOK = re.compile(r'href="([\w.-]+)\.ipynb')


def chapter(solved: Path, of: Repository) -> NotebookNode:
    """Return the chapter that a solved notebook makes, with buttons that open the students' notebook."""
    notebook = nbformat.read(solved, as_version=4)
    stored = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
    made = for_students(notebook)
    made.cells = [cell for cell in made.cells if not _LEFT_OUT.search(cell.source)]
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs(cell, stored[cell.id])
        if _role(cell) == ROLE:
            cell.metadata.tags = ["hide-input"]  # folded by MyST-NB, under this title
            cell.metadata.mystnb = {"code_prompt_show": "Install the course where it is missing"}
    title, line_end, text = made.cells[0].source.partition("\n")
    made.cells[0].source = f"{title}\n\n{buttons(catalog.lesson(solved), of)}\n{line_end}{text}"
    return made


def outputs(cell: NotebookNode, stored: list[NotebookNode]) -> list[NotebookNode]:
    """Choose what a reader sees below a cell of the students' notebook, from what the solved one stored."""
    match _role(cell):
        case "answer" | "check":
            return []
        case "prediction":
            return [_asked(str(output.data["text/plain"])) for output in stored if "data" in output]
    if wanted := _ANSWERS.findall(cell.source):
        exercises = " and ".join(sorted(set(wanted)))
        return [_note(f"Your answer to exercise {exercises} decides what this cell shows.")]
    return [_still(output) for output in stored if not _is_progress(output)]


def buttons(lesson: Lesson, of: Repository) -> str:
    """Write the line below a chapter's title: its time, its exercises, and where to run it."""
    exercises = len(lesson.exercises)
    facts = f"about {lesson.minutes} minutes · {exercises} exercises, {lesson.points} points"
    name = lesson.path.name
    links = [("Open in Colab", of.colab(name)), ("Open in Binder", of.binder(name))] * of.is_published
    links.append(("Download the notebook", f"../run/{name}"))
    written = "".join(f'<a href="{escape(url)}">{text}</a>' for text, url in links)
    return f'<div class="book-run"><span>{facts}</span>{written}</div>'


def _role(cell: NotebookNode) -> str | None:
    return cell.metadata.get("labkit", {}).get("role")


def _is_progress(output: NotebookNode) -> bool:
    """Say whether an output is the bar of a measurement."""
    data = output.get("data", {})
    return set(data) <= {"text/plain", WIDGET} and bool(_PROGRESS.search(str(data.get("text/plain", ""))))


def _still(output: NotebookNode) -> NotebookNode:
    """Return the output with its picture in the page, where it takes the colours of the theme."""
    data = output.get("data", {})
    data.pop(WIDGET, None)
    if SVG in data:
        return _html(_explorer(_picture(data[SVG]), str(data.get("text/plain", ""))))
    if "text/html" in data:
        if data["text/html"].startswith(_HEAD):
            return _note("In Jupyter the head of the notebook is here: what is solved, and what comes next.")
        # A table scrolls by itself: on a narrow page the text beside it stays where it is.
        html = _NOTEBOOK.sub(r'href="\1.html', data["text/html"])
        return _html(f'<div class="lk-scroll">{html}</div>' if html.lstrip().startswith("<table") else html)
    return output


def _picture(svg: str) -> str:
    """Put a picture into the page, where it may become smaller, but not too small to read."""
    width = re.search(r'<svg[^>]*? width="(\d+)', svg)
    smallest = f' style="--least: {round(min(0.85 * int(width[1]), 600))}px"' if width else ""
    return f'<div class="lk-scroll"{smallest}>{still(svg)}</div>'


def _explorer(picture: str, text: str) -> str:
    """Put the text of an explorer, and where its controls stood, beside its picture; others have none."""
    found = _CONTROLS.search(text)
    if not found:
        return picture
    conclusion, *details = text[: found.start()].splitlines()
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in details)
    values = "".join(f"<span>{escape(each)}</span> " for each in _NEXT.split(found["values"]))
    return (
        f'<section class="lk"><div class="lk-pictures">{picture}</div><div class="lk-side">'
        f'<p class="lk-conclusion">{escape(conclusion)}</p>{paragraphs}'
        f'<div class="labkit-controls">{CONTROLS_STAND} {values}</div></div></section>'
    )


def _asked(text: str) -> NotebookNode:
    """Show what a prediction asks for; its inputs need a kernel."""
    return _note(f"{text.partition(' Run the cell')[0]} Write down yours before you read on.")


def _note(text: str) -> NotebookNode:
    return _html(f'<p class="book-note">{escape(text)}</p>')


def _html(html: str) -> NotebookNode:
    return v4.new_output("display_data", {"text/html": html})
