"""labkit's part of JupyterLab: the page Course, the colours of cells, and what a reopened notebook shows."""

import json
import shutil
from pathlib import Path

import lab
import pytest

from labkit.course import EXERCISES

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LANGUAGES = """() => jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === "code")
    .map(cell => [cell.model.sharedModel.getSource().split("\\n")[0], cell.model.mimeType])"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A server on a student's folder."""
    folder = tmp_path_factory.mktemp("course")
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        shutil.copy(notebook, folder)
    (folder / "solutions").mkdir()
    with lab.jupyter_server(folder) as server:
        yield server


def test_the_lab_opens_on_the_course_and_leads_to_a_notebook(page, course):
    page.goto(course.replace("/tree/{path}", ""))
    page.get_by_role("heading", name="CUDA matrix kernels").wait_for()
    points = sum(each.points for each in EXERCISES.values())
    assert (
        f"0 of {points} points, 0 of {len(EXERCISES)} exercises"
        in page.locator("#labkit-course").inner_text()
    )
    assert page.locator(".jp-Launcher, .jp-toastContainer button").count() == 0
    assert page.get_by_role("img", name="open").count() == len(EXERCISES)
    assert page.locator(".jp-DirListing-item", has_text="02_naive").count() == 1
    assert page.locator(".jp-DirListing-item", has_text="solutions").count() == 0
    page.get_by_role("link", name="02 · The naive kernel").press("Enter")
    page.wait_for_function(lab.KERNEL_READY, timeout=60_000)
    cells = dict(page.evaluate(LANGUAGES))
    assert cells["%%cuda 02.1"] == "text/x-c++src" and cells["import labkit"] == "text/x-ipython"
    assert page.locator(".jp-CodeCell .cm-lineNumbers").first.is_visible()
    # A cell follows what is typed into it.
    edit = "source => jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(source)"
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 2")
    page.evaluate(edit, "%%c twice")
    assert dict(page.evaluate(LANGUAGES))["%%c twice"] == "text/x-c++src"
    page.evaluate(edit, "twice = 2")
    assert dict(page.evaluate(LANGUAGES))["twice = 2"] == "text/x-ipython"


def test_cells_out_of_order_and_the_head_lead_on(page, course):
    lab.open_notebook(page, course, "02_naive_cuda.ipynb")

    def run(text):
        cell = page.locator(".jp-CodeCell", has_text=text).first
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        lab.wait_idle(page)
        return cell.locator(".jp-OutputArea")

    not_loaded = "labkit is not loaded: the notebook's first cells have not run since Python started."
    assert not_loaded in run("%%cuda 02.1").inner_text()  # the magic is not found
    assert not_loaded in run('labkit.check("02.1")').inner_text()  # labkit is not defined
    head = run('labkit.start("02")')
    assert "0 of 5 exercises solved, 0 of 11 points" in head.inner_text()
    # Once it is loaded, the kernel names the cell; a heading is reached without another page.
    hint = run("for K in (8, 64, 512").inner_text()
    assert not_loaded not in hint and "naive is set in a cell above, under Neighbours should read" in hint
    head.get_by_role("link", name="02.4").press("Enter")
    heading = page.locator("h3", has_text="Exercise 02.4")
    page.wait_for_function("it => it.getBoundingClientRect().top < 200", arg=heading.element_handle())
    head.get_by_role("link", name="Course", exact=True).press("Enter")
    page.get_by_role("link", name="Continue: 02 · The naive kernel").wait_for()


@pytest.mark.slow
def test_the_head_leads_to_a_heading_that_is_a_question(page, course):
    lab.open_notebook(page, course, next(NOTEBOOKS.glob("04b_*.ipynb")).name)
    cell = page.locator(".jp-CodeCell", has_text='labkit.start("04b")').first
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    lab.wait_idle(page)
    cell.get_by_role("link", name="13.4").first.press("Enter")
    heading = page.locator("h3", has_text="does the kernel take?")
    page.wait_for_function("it => it.getBoundingClientRect().top < 200", arg=heading.element_handle())


def test_a_notebook_that_is_opened_again_shows_its_pictures(page, server, folder):
    path = folder / "again.ipynb"
    explorer = "import labkit\nlabkit.widgets.thread_map()"
    picture = "from labkit.figures.svg import Svg\nSvg(40, 20, 'a small picture')"
    lab.write_notebook(path, explorer, picture)
    lab.open_notebook(page, server, path.name)
    lab.run_all(page)
    page.evaluate("jupyterapp.shell.currentWidget.context.save()")
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.locator(".lk").get_by_text("The kernel that drew this has ended").wait_for()
    page.goto("about:blank")
    lab.open_notebook(page, server, path.name)
    page.locator(".labkit-saved svg").wait_for()
    # A picture alone is part of the page, too: it has the theme's colours, and is named.
    page.locator(".jp-RenderedSVG").get_by_role("img", name="a small picture").wait_for()
    assert page.locator(".jp-RenderedSVG img").count() == 0
    text = page.locator(".labkit-saved").inner_text()
    assert "C[9, 20] belongs to thread (4, 1)" in text and "Run the cell to use its controls" in text
    (output,) = json.loads(path.read_text())["cells"][0]["outputs"]
    assert {"image/svg+xml", "text/plain"} < set(output["data"])


def test_a_check_moves_the_head_and_the_map(page, course):
    lab.open_notebook(page, course, "00_start_here.ipynb")
    page.evaluate(
        """() => {
        const cells = jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel);
        const answer = cells.find(cell => cell.getSource().startsWith("%%cuda 00.1"));
        answer.setSource(answer.getSource().replace("// your code here", "if (i < n)"));
    }"""
    )
    run = """name => {
        const notebook = jupyterapp.shell.currentWidget.content;
        notebook.activeCellIndex = notebook.widgets.findIndex(
            cell => cell.model.type === "code" && cell.model.sharedModel.getSource().includes(name));
        return jupyterapp.commands.execute("notebook:run-cell");
    }"""
    for cell in ("labkit.start(", "%%cuda 00.1", 'labkit.check("00.1")'):
        page.evaluate(run, cell)
    page.get_by_text("1 of 1 point · next: 00.2").wait_for()
    page.get_by_text("1 of 2 exercises solved").first.wait_for()
    page.evaluate("jupyterapp.commands.execute('labkit:course')")
    points = sum(each.points for each in EXERCISES.values())
    page.get_by_text(f"1 of {points} points, 1 of {len(EXERCISES)} exercises solved").wait_for()
    page.get_by_role("link", name="Continue: 00 · Start here").click()
    page.wait_for_function("jupyterapp.shell.currentWidget.context?.path === '00_start_here.ipynb'")
