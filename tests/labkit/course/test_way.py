"""A notebook's head and foot show what is solved and what is next, and a check brings them up to date."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

import labkit
from labkit.course import EXERCISES, progress, progress_panel
from labkit.course.exercise import Exercise
from labkit.course.feedback import FAILED, MET, Feedback, Line
from labkit.course.notebooks import catalog
from labkit.course.progress import Best

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
NAMES = [path.name for path in catalog.notebooks(NOTEBOOKS)]
SOLVED = Best(1.0, True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A student's folder, with a notebook of the course in it."""
    (tmp_path / "02_naive_cuda.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_unkept", {})
    monkeypatch.setattr(progress_panel, "_shown", set())
    return tmp_path


@pytest.fixture
def told(monkeypatch):
    """What is shown anew in a display: its name, and the panel."""
    shown = []
    show = lambda panel, display_id: shown.append((display_id, panel))  # noqa: E731
    monkeypatch.setattr(progress_panel, "display", show)
    monkeypatch.setattr(progress_panel, "update_display", show)
    return shown


def panel(number, solved=(), is_foot=False):
    return progress_panel.Panel(progress_panel._lesson(number), dict.fromkeys(solved, SOLVED), is_foot)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_foot", [False, True])
def test_links_lead_to_the_notebooks_beside_it_and_to_its_own_exercises(name, is_foot):
    number = name.partition("_")[0]
    page = ElementTree.fromstring(panel(number, is_foot=is_foot)._repr_html_())
    links = [link.get("href") for link in page.iter("a")]
    path = [each for each in NAMES if not each.startswith("01") or each == name]  # 01 is optional
    place = path.index(name)
    beside = [*path[max(place - 1, 0) : place], NAMES[0], *path[place + 1 : place + 2]]
    assert [link for link in links if not link.startswith("#")] == beside
    # JupyterLab's name of a heading is its text with - for each space.
    texts = (cell.source for cell in nbformat.read(NOTEBOOKS / name, 4).cells if cell.cell_type == "markdown")
    headings = [
        line.lstrip("# ") for text in texts for line in text.splitlines() if line.startswith("### Exer")
    ]
    named = [f"#{heading.replace(' ', '-')}" for heading in headings]
    to_exercises = [link for link in links if link.startswith("#")]
    assert to_exercises in ([*named, *named[:1]], [*named[:1], *named])


def test_says_what_is_earned_and_what_is_next():
    text = repr(panel("02", ["02.1", "02.3"]))
    assert text.startswith("02 · The naive kernel: 2 of 5 exercises solved, 4 of 11 points\n")
    assert [line[2] for line in text.splitlines()[1:6]] == ["✓", "○", "○", "✓", "○"]  # 02.3 is more practice
    html = panel("02", ["02.1"])._repr_html_()
    assert html.count('aria-label="solved"') == 1 and html.count('aria-label="open"') == 4
    assert "Next: <b><a" in html and re.sub("<[^>]*>", "", html).endswith("Next: 02.2 Any shape")
    begun = progress_panel.Panel(progress_panel._lesson("02"), {"02.4": Best(1 / 3, False)}, is_foot=False)
    assert (
        begun.earned == "0 of 5 exercises solved, 1 of 11 points"
        and 'aria-label="begun"' in begun._repr_html_()
    )


def test_leads_to_the_next_notebook_when_all_are_solved():
    html = panel("02", ["02.1", "02.2", "02.3", "02.4", "02.5"])._repr_html_()
    assert "All 5 exercises of 02 are solved. Next: <b><a" in html and "03 · Tiles in shared memory" in html
    last = NAMES[-1].partition("_")[0]
    assert "<div>" + "</div>" in panel(last)._repr_html_()  # no exercise, and no notebook that follows


def test_the_core_leads_on_and_names_more_practice():
    html = re.sub("<[^>]*>", "", panel("02", ["02.1", "02.2", "02.4"])._repr_html_())
    assert html.endswith(
        "All 3 core exercises of 02 are solved. More practice: 02.3 Scale and add, as BLAS does. "
        "Next: 03 · Tiles in shared memory"
    )


def test_an_optional_notebook_is_beside_none():
    assert [each.number for each in progress_panel._beside(progress_panel._lesson("01"))] == ["00", "02"]
    assert progress_panel._beside(progress_panel._lesson("00"))[1].number == "02"
    assert progress_panel._beside(progress_panel._lesson("02"))[0].number == "00"


@pytest.mark.parametrize(
    ("exercise", "solved", "words", "link"),
    [
        ("02.1", ["02.1"], "02.2 Any shape", "#Exercise-02.2:-any-shape-(2-points)"),
        ("02.1", ["02.1", "02.2"], "02.4 Neighbours", "#Exercise-02.4:"),
        ("02.1", ["02.1", "02.2", "02.4"], "notebook 03", "03_shared_memory_tiling.ipynb"),
        ("02.3", ["02.1", "02.2", "02.3", "02.4"], "02.5 A test", "#Exercise-02.5:"),
        ("02.5", ["02.5", "02.1"], "02.2 Any shape", "#Exercise-02.2:-any-shape-(2-points)"),
        (
            "02.5",
            ["02.1", "02.2", "02.3", "02.4", "02.5"],
            "notebook 03, Tiles in shared memory",
            "03_shared_memory_tiling.ipynb",
        ),
        ("12.7", [f"12.{number}" for number in range(1, 8)], "notebook ", ""),
        ("13.4", ["13.1", "13.2", "13.4"], "notebook 05, Bank conflicts", "05_bank_conflicts.ipynb"),
    ],
)
def test_what_follows_an_exercise(exercise, solved, words, link):
    score = progress_panel.following(EXERCISES[exercise], "3 of 3 points", dict.fromkeys(solved, SOLVED))
    assert score.next.startswith(words) and score.link.startswith(link)
    assert score.points.startswith("3 of 3 points")
    assert ("are solved" in score.points) == score.next.startswith("notebook")
    if link:
        assert f'<a href="{link}' in score.html()


def test_nothing_follows_an_exercise_that_no_notebook_has_yet():
    score = progress_panel.following(replace(EXERCISES["02.1"], id="02.99"), "3 of 3 points", {})
    assert (score.points, score.next) == ("3 of 3 points", "")


def test_a_check_brings_head_and_foot_up_to_date(folder, told, monkeypatch, capsys):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    labkit.start("02")
    labkit.end("02")
    assert [name for name, _ in told] == ["labkit-head-02", "labkit-foot-02"] and not any(
        told[0][1].states[each] != "open" for each in told[0][1].states
    )
    assert capsys.readouterr().out.startswith("simt")
    assert progress.load().last == "02"
    told.clear()
    lines = (Line("a", MET), Line("b", MET), Line("c", FAILED))
    score = labkit.course._noted(EXERCISES["02.1"], Feedback("02.1", lines, "why"))
    assert str(score) == "1.33 of 2 points"
    assert progress.load().best["02.1"] == Best(2 / 3, False)
    assert {name for name, _ in told} == {"labkit-head-02", "labkit-foot-02"}
    assert all(each.states["02.1"] == "begun" for _, each in told)


def test_start_loads_the_cells_and_may_run_again(monkeypatch, folder, ipython, capsys):
    ipython.magics_manager.magics["cell"].pop("cuda", None)
    ipython.extension_manager.loaded.discard("labkit")
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    ipython.run_cell('import labkit\nlabkit.start("02")').raise_error()
    assert "cuda" in ipython.magics_manager.magics["cell"]
    first = capsys.readouterr().out
    ipython.run_cell('labkit.start("02")').raise_error()
    assert capsys.readouterr().out == first != ""


def test_there_is_no_such_notebook():
    with pytest.raises(ValueError, match=r"no notebook '42'\. Choose one of 00, 01"):
        labkit.start("42")


@pytest.mark.parametrize(
    ("words", "exercises", "minutes"),
    [(1300, ("02.1", "02.4"), 45), (1300, ("02.1", "02.4", "02.5"), 45), (1560, (), 10), (3, (), 5)],
)
def test_minutes_count_words_and_core_exercises(tmp_path, words, exercises, minutes):
    # 1300 / 130 + 2 * 8.5 + (2 + 3 points) * 3.8 = 46; 02.5 is more practice
    cells = [nbformat.v4.new_markdown_cell("word " * words)]
    for exercise in exercises:
        about = {"labkit": {"exercise": exercise, "role": "answer"}}
        cells.append(nbformat.v4.new_code_cell(f"%%cuda {exercise}", metadata=about))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "41_x.ipynb")
    lesson = catalog.lesson(tmp_path / "41_x.ipynb")
    assert lesson.minutes == minutes and [each.id for each in lesson.exercises] == list(exercises)


# What two readers measured in the 14 notebooks of the second edition: words, exercises, points, minutes.
MEASURED = [
    *((2050, 2, 3, 45), (2530, 4, 12, 110), (2630, 5, 11, 110), (3420, 5, 17, 150), (2440, 4, 9, 85)),
    *((2860, 5, 13, 115), (2880, 4, 11, 110), (3450, 5, 14, 125), (3760, 5, 14, 120), (4780, 14, 30, 240)),
    *((2480, 6, 23, 140), (3210, 5, 13, 130), (2920, 7, 20, 145), (1960, 5, 16, 125)),
]


@pytest.mark.parametrize("row", MEASURED)
def test_minutes_are_within_a_fifth_of_what_readers_measured(row):
    words, exercises, points, minutes = row
    each = [Exercise(f"99.{number}", "made up", 0) for number in range(exercises - 1)]
    made = catalog.Lesson(
        Path(), "99", "", "", "core", words, (*each, Exercise("99.9", "made up", points)), (), {}
    )
    assert made.minutes == pytest.approx(minutes, rel=0.2)
