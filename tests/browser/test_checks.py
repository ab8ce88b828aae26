"""Checks in JupyterLab: of a cell that was edited since it ran, and one that is interrupted."""

import lab
import pytest

from labkit.course.replay_button import LABEL

pytestmark = pytest.mark.browser

SCALE = """%%cuda 00.1
extern "C" __global__ void scale(float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i];
}"""
LOOP = SCALE.replace("    if", "    while (n > 0) ;\n    if")
NOTEBOOK = "jupyterapp.shell.currentWidget"


def edit(page, source):
    page.evaluate(f"source => {NOTEBOOK}.content.widgets[0].model.sharedModel.setSource(source)", source)


def start(page, index):
    page.evaluate(f"index => {{ {NOTEBOOK}.content.activeCellIndex = index; }}", index)
    page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")


def shown(page, index):
    return page.evaluate(f"index => {NOTEBOOK}.content.widgets[index].outputArea.node.innerText", index)


def test_an_answer_that_is_edited_loops_and_is_interrupted(page, server, folder):
    sources = [SCALE, 'labkit.check("00.1")', "%load_ext labkit\nimport labkit\nprint('loop ' * 99)"]
    lab.write_notebook(folder / "checks.ipynb", *sources)
    lab.open_notebook(page, server, "checks.ipynb")
    for index in (2, 0, 1):
        start(page, index)
        lab.wait_idle(page)
    assert "solved" in shown(page, 1)
    page.set_viewport_size({"width": 800, "height": 1000})
    wrap = "getComputedStyle(document.querySelector('.jp-RenderedText pre')).wordBreak"
    assert page.evaluate(wrap) == "normal"  # not inside a word

    edit(page, LOOP)  # not run, not saved
    start(page, 1)
    lab.wait_idle(page)
    assert "The cell of 00.1 was changed after it ran (line 5)" in shown(page, 1)
    assert "solved" not in shown(page, 1)

    start(page, 0)
    lab.wait_idle(page)
    start(page, 1)
    page.get_by_text("Checking 00.1: 1 of 2").wait_for()
    page.evaluate(f"{NOTEBOOK}.sessionContext.session.kernel.interrupt()")
    lab.wait_idle(page)
    assert shown(page, 1).strip() == "Interrupted."
    edit(page, SCALE)
    for index in (0, 1):
        start(page, index)
        lab.wait_idle(page)
    assert "solved" in shown(page, 1)


def test_a_failed_check_has_a_button_that_opens_the_block(page, server, folder):
    broken = SCALE.replace("if (i < n) ", "")
    sources = [broken, 'labkit.check("00.1")', "%load_ext labkit\nimport labkit"]
    lab.write_notebook(folder / "failed.ipynb", *sources)
    lab.open_notebook(page, server, "failed.ipynb")
    for index in (2, 0, 1):
        start(page, index)
        lab.wait_idle(page)
    assert "invalid global read" in shown(page, 1)
    page.get_by_role("button", name=LABEL).click()
    page.wait_for_function("document.querySelector('section.lks')?.lks?.opened")
    lab.wait_idle(page)
    assert "invalid global read" in page.locator("section.lks").inner_text()
    moment = "document.querySelector('section.lks').lks"
    assert page.evaluate(f"{moment}.player.t") == page.evaluate(f"{moment}.recording.n") > 0
    assert page.get_by_role("button", name=LABEL).count() == 0
