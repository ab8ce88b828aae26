"""Pages of grades in a browser: nothing is fetched or refused, and they fit a phone."""

import pytest
from lab import browser_page
from made_up_class import SOLVED, exercises, made_up

from grader.report import write_all
from grader.results.manifest import Grading
from grader.results.store import Store
from grader.sandbox.limits import LIMITS
from grader.text import slug

pytestmark = pytest.mark.browser

LABS = ("01", "02", "09")  # C, CUDA and Python
LONG = "a_name_that_has_no_place_to_break_" * 8


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    kept = Store(tmp_path_factory.mktemp("grades"), 7, exercises(*LABS))
    names = [LONG]
    for graded in made_up(20, LABS):
        names.append(graded.submission.student)
        kept.put(graded)
    write_all(kept, Grading(7, "labkit grade", SOLVED, LIMITS), names)
    return kept.out


@pytest.mark.parametrize("width", [360, 1200])
def test_pages_fit_and_fetch_nothing(grades, width):
    paths = [grades / "overview.html", *sorted((grades / "feedback").iterdir())[:4]]
    with browser_page(width) as page:
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        for path in paths:
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert not said and asked == [path.as_uri() for path in paths]


def test_a_line_that_is_named_stands_out(grades):
    named = next(path for path in (grades / "feedback").iterdir() if 'class="hll"' in path.read_text())
    with browser_page() as page:
        page.goto(named.as_uri())
        colours = page.evaluate("""() => [".hll", ".highlight"].map(
            name => getComputedStyle(document.querySelector(name)).backgroundColor)""")
    assert colours[0] != colours[1] and "rgba(0, 0, 0, 0)" not in colours


def test_a_task_unfolds(grades):
    with browser_page() as page:
        page.goto((grades / "feedback" / f"{slug('bob')}.html").as_uri())
        for details in page.locator("details").all():
            assert details.locator(".task").is_visible() == (details.get_attribute("open") is not None)
            if details.get_attribute("open") is None:
                details.locator("summary").click()
                assert details.locator(".task").is_visible()
