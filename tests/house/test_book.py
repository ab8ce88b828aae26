"""The book (`make book`): built as a user builds it, for a repository with an address; its pages are read."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

pytest.importorskip("myst_nb", reason="needs the extra `book`: make test installs it")
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
SOLVED = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
FEW = ("02", "10")  # a notebook with a stepper and explorers, and the one in which cells use answers
TAG = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
SVG = "{http://www.w3.org/2000/svg}svg"
FOOT = re.compile(r"^labkit\.end\(", re.M)  # the book leaves it out
EXPLORER = re.compile(r"\blabkit\.widgets\.\w+\(")
PICTURE = re.compile(
    r"^(labkit\.(widgets|plots)|ladder_plot|pictures)\.\w+\(|^labkit\.roofline\((?!.* else )", re.M
)


def cells(path):
    """The cells of a notebook, as (type, text, metadata's role, outputs)."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        role = cell["metadata"].get("labkit", {}).get("role")
        yield cell["cell_type"], "".join(cell["source"]), role, cell.get("outputs", [])


def code(path):
    """The text of the code cells that the book shows, with their roles."""
    return [(text, role) for kind, text, role, _ in cells(path) if kind == "code" and not FOOT.search(text)]


def build(out, *arguments):
    """Run the command; a warning of Sphinx, such as one on a link that leads nowhere, is a failure."""
    command = [sys.executable, str(ROOT / "docs" / "book" / "build.py"), "--out", str(out), *arguments]
    done = subprocess.run([*command, "--", "-W", "--keep-going"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (out / "html" / "index.html").as_uri() in done.stdout
    return out / "html"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return build(tmp_path_factory.mktemp("book"), "--repository", "ada/matrices", "--only", *FEW)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build(tmp_path_factory.mktemp("whole book"))


def read(path):
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def shown(page):
    """The code cells of a page, as (text, the element of its outputs or None)."""
    for cell in read(page).select("div.cell"):
        source = cell.select_one("div.cell_input pre")
        for number in source.select(".linenos"):
            number.decompose()
        yield source.get_text().strip("\n"), cell.select_one("div.cell_output")


def pages(site):
    """The pages of a site, read."""
    return {page: read(page) for page in site.rglob("*.html") if "_static" not in page.parts}


def leads_nowhere(site):
    """The links of all pages to files or places of the site that are not there."""
    found = pages(site)
    anchors = {page: {each["id"] for each in soup.select("[id]")} for page, soup in found.items()}
    for page, soup in found.items():
        urls = {element.get("href") or element["src"] for element in soup.select("[href], [src]")}
        for url in (url for url in map(urlsplit, urls) if not url.scheme and not url.netloc):
            aim = (page.parent / unquote(url.path)).resolve() if url.path else page
            if not aim.is_file() or (url.fragment and unquote(url.fragment) not in anchors.get(aim, ())):
                yield f"{page.relative_to(site)}: {url.geturl()}"


def each_is_a_page(site, notebooks):
    """Check that each notebook's page has the cells of the students' notebook, and no answer."""
    for path in notebooks:
        page = site / "notebooks" / f"{path.stem}.html"
        students = code(ROOT / "notebooks" / path.name)
        found = list(shown(page))
        assert [text for text, _ in found] == [text.strip("\n") for text, _ in students]
        assert "SOLUTION" not in page.read_text(encoding="utf-8")
        answered = [text for (text, role), (_, output) in zip(students, found, strict=True)
                    if role in ("answer", "check") and output is not None]  # fmt: skip
        assert answered == []


class TestPages:
    def test_have_the_students_cells_and_no_answers(self, few):
        each_is_a_page(few, [path for path in SOLVED if path.name.startswith(FEW)])

    def test_a_cell_that_uses_an_answer_says_of_which_exercise(self, few):
        using = [(text, output) for text, output in shown(few / "notebooks" / "10_capstone.html")
                 if "labkit.answer(" in text]  # fmt: skip
        assert len(using) > 5
        for text, output in using:
            exercise = re.search(r'labkit\.answer\("(.+?)"\)', text)[1]
            assert (
                output.get_text().strip()
                == f"Your answer to exercise {exercise} decides what this cell shows."
            )

    @pytest.mark.parametrize("number", FEW)
    def test_every_explorer_stands_with_its_picture_its_text_and_its_values(self, few, number):
        (path,) = (path for path in SOLVED if path.name.startswith(number))
        explorers = [output for text, output in shown(few / "notebooks" / f"{path.stem}.html")
                     if EXPLORER.search(text)]  # fmt: skip
        assert explorers
        for output in explorers:
            assert output.select_one(".lk .lk-scroll > svg[role][aria-label]")
            assert not output.select(
                "svg [data-set], svg [data-cols], svg [role=button], svg [role=application]"
            )
            assert output.select_one(".lk-conclusion").get_text()
            assert " = " in output.select_one(".labkit-controls").get_text()

    def test_a_recorded_block_can_be_replayed(self, few):
        page = read(few / "notebooks" / "02_naive_cuda.html")
        assert len(page.select(".lks-still script[type='application/json']")) == 1

    def test_a_prediction_asks_and_does_not_answer(self, few):
        asked = [output for text, output in shown(few / "notebooks" / "02_naive_cuda.html")
                 if text.startswith("labkit.guess(")]  # fmt: skip
        assert (
            asked[0].get_text().strip()
            == "Prediction 02.a: Rows of C in one warp (rows). Write down yours before you read on."
        )

    def test_formulas_need_no_script(self, few):
        page = read(few / "notebooks" / "02_naive_cuda.html")
        assert page.select_one(".book-formula math munderover")
        assert not [each for each in page.select("script[src]") if not each["src"].startswith("../")]

    def test_the_documentation_is_there(self, few):
        for path in (ROOT / "docs").glob("*.md"):
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").replace("`", "")
            heading = read(few / "docs" / f"{path.stem}.html").h1.get_text().removesuffix("#")
            assert heading.replace("’", "'") == title

    def test_a_search_finds_notebooks_and_pages(self, few):
        index = (few / "searchindex.js").read_text(encoding="utf-8")
        found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
        where = {word: {found["docnames"][place] for place in _list(found["terms"][word])}
                 for word in ("cubla", "sandbox", "guard")}  # fmt: skip
        assert "docs/grading" in where["sandbox"]
        assert "notebooks/02_naive_cuda" in where["guard"] and "notebooks/10_capstone" in where["cubla"]


class TestWhereToRun:
    @pytest.mark.parametrize("number", FEW)
    def test_the_students_notebook_opens_in_colab_and_binder(self, few, number):
        (path,) = (path for path in SOLVED if path.name.startswith(number))
        opened = [
            each["href"] for each in read(few / "notebooks" / f"{path.stem}.html").select(".book-run a")
        ]
        assert opened == [
            f"https://colab.research.google.com/github/ada/matrices/blob/v{TAG}/notebooks/{path.name}",
            f"https://mybinder.org/v2/gh/ada/matrices/v{TAG}?urlpath=lab/tree/notebooks/{path.name}",
            f"../run/{path.name}",
        ]
        assert (few / "run" / path.name).read_bytes() == (ROOT / "notebooks" / path.name).read_bytes()

    def test_what_the_book_has_not_is_linked_on_github(self, few):
        links = [each["href"] for each in read(few / "docs" / "terminal.html").select("main a")]
        assert f"https://github.com/ada/matrices/blob/v{TAG}/notebooks/00_start_here.ipynb" in links
        assert "../notebooks/02_naive_cuda.html" in links


@pytest.mark.slow
class TestWhole:
    def test_each_notebook_is_a_page(self, whole):
        each_is_a_page(whole, SOLVED)

    def test_links_lead_somewhere(self, whole):
        assert list(leads_nowhere(whole)) == []

    def test_without_an_address_nothing_leads_to_one(self, whole):
        for soup in pages(whole).values():
            assert not [
                each["href"] for each in soup.select(".book-run a") if each["href"].startswith("http")
            ]
            assert not [each["href"] for each in soup.select("a[href]") if "OWNER_" in each["href"]]


class TestStoredPictures:
    """What GitHub shows of a solved notebook: of each output the HTML without scripts, else the picture."""

    @pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
    def test_every_slider_and_plot_has_one(self, path):
        for kind, text, _, outputs in cells(path):
            if kind != "code" or not PICTURE.search(text) or "labkit.answer(" in text:
                continue
            pictures = [output["data"] for output in outputs
                        if {"image/svg+xml", "image/png"} & set(output.get("data", {}))]  # fmt: skip
            assert pictures, text
            for data in pictures:
                assert "text/html" not in data, "GitHub would show it, and not the picture"
                if "image/svg+xml" in data:
                    assert ElementTree.fromstring("".join(data["image/svg+xml"])).tag == SVG

    @pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
    def test_a_recorded_block_has_one_where_scripts_do_not_run(self, path):
        for kind, text, _, outputs in cells(path):
            if kind == "code" and "labkit.step(" in text:
                pages = ["".join(output["data"]["text/html"]) for output in outputs if "data" in output]
                for page in pages:
                    image = re.search(r'<img alt="[^"]+" src="data:image/svg\+xml;base64,([^"]+)"', page)
                    assert ElementTree.fromstring(base64.b64decode(image[1])).tag == SVG
                assert pages


def _list(places):
    return places if isinstance(places, list) else [places]
