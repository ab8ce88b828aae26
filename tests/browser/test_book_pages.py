"""The book in a browser without a network: both themes, from a phone's width to a wide screen."""

import subprocess
import sys
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

pytest.importorskip("myst_nb", reason="needs the extra `book`: make test installs it")
pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGE = "notebooks/04_coalescing.html"  # an explorer whose parts say what they are, a stepper, tables, plots
OTHERS = ("index.html", "notebooks/index.html", "docs/gpu.html")
LOOKS = [(390, "dark"), (1400, "light"), pytest.param(800, "dark", marks=pytest.mark.slow)]
BACKGROUND = "it => getComputedStyle(it).backgroundColor"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("book")
    command = [sys.executable, str(ROOT / "docs" / "book" / "build.py"), "--out", str(out), "--only", "04"]
    subprocess.run(command, check=True)
    return out / "html"


@pytest.fixture
def look(page, site):
    """Open a page offline, in a width and a theme; what it asks the network for is a failure."""
    asked = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))

    def look(name, width=1400, theme="light", query=""):
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=theme)
        page.goto((site / name).as_uri() + query)
        return page

    yield look
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_pages_fit_their_width_and_nothing_is_serious_for_axe(look, width, theme):
    for name in (PAGE, *OTHERS):
        page = look(name, width, theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    found = Axe().run(look(PAGE, width, theme), context="main").response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_and_the_stepper_have_the_colours_of_the_theme(look, theme):
    page = look(PAGE, theme=theme)
    ground = page.locator("body").evaluate(BACKGROUND)
    assert (sum(map(int, ground[4:-1].split(","))) > 3 * 128) == (theme == "light")
    pictures = page.locator("main svg.lk-svg").all()
    stepper = page.locator("main .lks-still > .lks, main .lks-still").first
    assert len(pictures) > 2
    assert {each.evaluate(BACKGROUND) for each in [*pictures, stepper]} == {ground}


def test_a_picture_says_what_is_pointed_at(look):
    page = look(PAGE)
    explorer = page.locator(".lk", has=page.locator(".lk-readout"))
    lane = explorer.locator("svg [data-tip^='lane 5,']").first
    said = lane.get_attribute("data-tip")
    lane.hover()
    assert explorer.locator(".lk-readout").inner_text() == said
    assert explorer.locator(".lk-linked").count() > 0


def test_a_recorded_block_is_replayed(look):
    stepper = look(PAGE).locator(".lks-still")
    before = stepper.locator(".lks-said").inner_text()
    stepper.get_by_role("button", name="one line on").first.click()
    assert stepper.locator(".lks-said").inner_text() != before


def test_a_search_finds_a_chapter(look):
    page = look("search.html", query="?q=sectors")
    results = page.locator("#search-results a")
    results.first.wait_for()
    assert any("Coalescing" in text for text in results.all_inner_texts())
