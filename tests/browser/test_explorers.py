"""Explorers in JupyterLab: live controls, keys, pointing, steps, a kernel that ends, and accessibility."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from lab import control, explorer, open_notebook, result, run_all, write_notebook

from labkit import widgets

pytestmark = pytest.mark.browser

MEASURES = ("cpu_ladder",)  # takes seconds to draw first


def conclusion(page, label):
    return explorer(page, label).locator(".lk-conclusion")


def says(page, label, text):
    conclusion(page, label).get_by_text(text).wait_for()


def test_controls_keys_pointing_and_steps(page, server, folder):
    write_notebook(
        folder / "two.ipynb", "import labkit\nlabkit.widgets.thread_map()", "labkit.widgets.tile_walk()"
    )
    open_notebook(page, server, "two.ipynb")
    run_all(page)
    row = control(page, "row")
    # A drag: each position is answered before the mouse is released.
    box = row.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=4)
    says(page, "row", "C[0, 20] belongs to thread (4, 0) of block (1, 0)")
    page.mouse.up()
    assert row.get_attribute("aria-valuetext") == "row = 0"
    # Keys that the notebook has commands for belong to the explorer while it has the focus.
    row.press("ArrowDown")  # would leave for the next cell
    row.press("ArrowRight")
    row.press("x")  # would cut the cell
    says(page, "row", "C[1, 20]")
    reset = explorer(page, "row").get_by_role("button", name="Reset")
    reset.press("Enter")
    says(page, "row", "C[9, 20]")
    assert reset.evaluate("it => it === document.activeElement")
    row.press("Home")
    says(page, "row", "C[0, 20]")
    # The grid of elements: arrow keys move, and the focus stays.
    grid = explorer(page, "row").locator("[data-cols]")
    grid.focus()
    page.keyboard.press("ArrowDown")
    says(page, "row", "C[1, 20]")
    page.keyboard.press("ArrowRight")
    says(page, "row", "C[1, 21]")
    assert page.evaluate("document.activeElement.dataset.key") == "elements"
    page.keyboard.press("Escape")  # to the notebook, whose keys then are its own
    assert page.evaluate("document.activeElement.matches('.jp-CodeCell.jp-mod-active')")
    # A click chooses; pointing is a preview.
    box = grid.bounding_box()  # 20 rows and 30 columns
    width, height = box["width"] / 30, box["height"] / 20
    page.mouse.move(box["x"] + 4.5 * width, box["y"] + 9.5 * height)
    page.mouse.down()
    says(page, "row", "C[9, 4]")  # the picture may be drawn anew between press and release
    page.mouse.up()
    page.mouse.move(box["x"] + 7.5 * width, box["y"] + 12.5 * height)
    says(page, "row", "C[12, 7]")
    page.mouse.move(5, 5)
    says(page, "row", "C[9, 4]")
    # What cannot be is a sentence in place of a picture, and Reset leads back.
    for label in ("block x", "block y"):
        explorer(page, "row").get_by_label(label, exact=True).press("End")
    says(page, "row", "1600 threads; a block holds at most 1024")
    assert result(page, "row").pictures == ()
    explorer(page, "row").get_by_role("button", name="Reset").click()
    says(page, "row", "C[9, 20]")
    # Steps go forwards by themselves, and back.
    walk = explorer(page, "step")
    walk.get_by_role("button", name="play: step").click()
    says(page, "step", "__syncthreads()")
    says(page, "step", "each thread adds 4 products")
    walk.get_by_role("button", name="pause: step").click()
    walk.get_by_role("button", name="step back: step").click()
    says(page, "step", "__syncthreads()")
    # The kernel ends: the explorer says so, and nothing moves over an old picture.
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    walk.get_by_text("The kernel that drew this has ended").wait_for()
    assert control(page, "row").is_disabled() and control(page, "step").is_disabled()
    assert result(page, "row").pictures


@pytest.mark.parametrize("width", [1400, 800])
def test_nothing_serious_for_axe_and_nothing_cut(page, server, folder, width):
    names = [name for name in widgets.EXPLORERS if name not in MEASURES]
    write_notebook(folder / "all.ipynb", "import labkit", *(f"labkit.widgets.{name}()" for name in names))
    page.set_viewport_size({"width": width, "height": 1000})
    open_notebook(page, server, "all.ipynb")
    page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{THEMES[width]}'}})")
    run_all(page)
    page.wait_for_function(f"document.querySelectorAll('.lk').length === {len(names)}")
    found = Axe().run(page, context=".jp-OutputArea-output .lk").response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious] == []
    for index, name in enumerate(names):
        shown = page.locator(".lk").nth(index)
        assert shown.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth + 1"), name
        tall = shown.locator(".lk-pictures").bounding_box()["height"]
        assert width < 1400 or tall <= 700, name


THEMES = {1400: "JupyterLab Light", 800: "JupyterLab Dark"}
