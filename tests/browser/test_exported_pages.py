"""A page that `labkit run` writes, opened from the disk in a browser without a network."""

import subprocess
import sys

import nbformat
import pytest

pytestmark = pytest.mark.browser

TEXT = """# Offline

Inline $C_{ij}$ and

$$C_{ij} = \\sum_{k=0}^{K-1} A_{ik} \\, B_{kj}.$$

<details><summary>Hint</summary>

Look at `threadIdx.x`.

</details>"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page of a notebook with formulas, a hint, an explorer and a plot, in a folder with a space."""
    folder = tmp_path_factory.mktemp("some pages")
    plot = 'labkit.plots.time_by_size(labkit.records.load("int-matmul", "time", block_x=32))'
    cells = [
        nbformat.v4.new_markdown_cell(TEXT),
        nbformat.v4.new_code_cell("import labkit\nlabkit.widgets.tile_walk()"),
        nbformat.v4.new_code_cell(plot),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "offline.ipynb")
    command = [sys.executable, "-m", "labkit", "run", "offline.ipynb", "--out", "out"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "out" / "offline.html"


@pytest.fixture
def opened(page, written):
    """The page, opened offline, and what it asked for beyond its own file."""
    asked = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(written.as_uri())
    return page, [url for url in asked[1:] if not url.startswith("data:")]


def test_asks_for_nothing(opened):
    _, asked = opened
    assert asked == []


def test_pictures_are_drawn(opened):
    page, _ = opened
    boxes = [each.bounding_box() for each in page.locator("main svg.lk-svg").all()]
    assert len(boxes) == 2 and all(box["width"] > 300 and box["height"] > 300 for box in boxes)
    assert page.locator("main img").count() == 0


def test_an_explorer_stands_with_its_text_and_the_values_of_its_controls(opened):
    page, _ = opened
    controls = page.locator(".labkit-controls")
    assert controls.is_visible() and "TILE 4" in controls.inner_text()
    assert "loads A[0 + y, 0 + x]" in page.locator("main").inner_text()


def test_formulas_are_set_not_spelled(opened):
    page, _ = opened
    inline, block = (page.locator(f"math[display={each}]") for each in ("inline", "block"))
    assert block.bounding_box()["height"] > 1.5 * inline.bounding_box()["height"]
    assert "$" not in page.locator(".jp-MarkdownOutput").first.inner_text()
    # the limits of a sum stand above each other
    under, over = (block.locator(f"munderover > :nth-child({place})") for place in (2, 3))
    assert under.bounding_box()["y"] > over.bounding_box()["y"] + 10


def test_a_hint_is_folded_until_it_is_clicked(opened):
    page, _ = opened
    hint = page.get_by_text("threadIdx.x")
    assert not hint.is_visible()
    page.get_by_text("Hint").click()
    assert hint.is_visible()
