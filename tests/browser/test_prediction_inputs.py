"""A student predicts with the keyboard alone, and the answer comes."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from lab import open_notebook, run_all, write_notebook

pytestmark = pytest.mark.browser


def test_a_prediction_is_committed_with_the_keyboard(page, server, folder):
    sources = ["import labkit", *(f'labkit.guess("{id}")' for id in ("02.a", "08.e", "00.a", "02.b"))]
    write_notebook(folder / "predict.ipynb", *sources)
    open_notebook(page, server, "predict.ipynb")
    run_all(page)
    rows, fastest, both, left = page.locator(".lk-prediction").all()
    assert "It is" not in page.locator(".jp-Notebook").inner_text()
    # Enter in the field commits. What is no number is told, and the focus is where it can be mended.
    field = rows.get_by_label("Rows of C in one warp")
    field.focus()
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    rows.get_by_text("“two” is no number").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    field.fill("")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    rows.get_by_text("✗ Wrong. You said 4 rows. It is 2 rows: 32 threads are two lines of 16.").wait_for()
    assert field.evaluate("it => it === document.activeElement && it.readOnly")
    # A menu, and the button with the space bar: JupyterLab takes none of these keys for its own.
    fastest.get_by_label("blocks of tuned").focus()
    page.keyboard.type("8")
    page.keyboard.press("Tab")
    page.keyboard.type("tiled_u")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Commit"
    page.keyboard.press("Space")
    fastest.get_by_text("✓ Right.").wait_for()
    # Nothing entered, then "I don't know".
    both.get_by_label("block", exact=True).focus()
    page.keyboard.press("Enter")
    both.get_by_text("Enter a prediction first").wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    both.get_by_text("It is 1 (block) and 2 (thread in the block)").wait_for()
    assert both.locator(".lk-reveal").evaluate("it => it === document.activeElement")
    for width in (1400, 700):
        page.set_viewport_size({"width": width, "height": 1000})
        for each in (rows, fastest, both):
            assert each.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth + 1")
    page.set_viewport_size({"width": 1400, "height": 1000})
    found = Axe().run(page, context=".lk-prediction").response["violations"]
    assert [(each["id"], each["nodes"]) for each in found if each["impact"] in ("serious", "critical")] == []
    # A second run of the cells asks nobody again.
    run_all(page)
    assert rows.locator(".lk-reveal").inner_text().startswith("✗ Wrong.")
    # The kernel ends: what was not committed says so.
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    left.get_by_text("The kernel of this cell has ended").wait_for()
    assert left.get_by_role("button", name="Commit").is_disabled()
    assert rows.locator(".lk-reveal").inner_text().startswith("✗ Wrong.")
