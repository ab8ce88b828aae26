"""README.md, CONTRIBUTING.md and docs/: generated tables are up to date, and links lead somewhere."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))

import tables  # noqa: E402

PAGES = [*tables.pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "data" / "SOURCES.md"]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"`((?:benchmarks|binder|containers|data|docs|labkit|notebooks|tests)/[\w./*-]+)`")
# The recipes of CONTRIBUTING.md make these files.
MADE = re.compile("1_naive_block|sign_extend|_15|15_name|_NN|NAME|cpu_10_name")


def named(page):
    """Return a page's path as the tests are called by it."""
    return str(page.relative_to(ROOT))


def anchors(page):
    """Return the anchors that GitHub gives to a page's headings."""
    text = re.sub("```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize("page", tables.pages(), ids=named)
def test_generated_parts_are_what_the_command_writes(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- made by docs/tables.py: ") == len(tables.PLACE.findall(text))
    assert tables.made(text) == text, "Run make docs, and commit what it writes."


def test_every_generated_part_has_its_page():
    text = "".join(page.read_text(encoding="utf-8") for page in tables.pages())
    assert sorted(name for _, name in tables.PLACE.findall(text)) == sorted(tables.MAKERS)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        aim = (page.parent / target).resolve() if target else page
        assert aim.exists(), target
        assert not anchor or anchor in anchors(aim), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_files_that_a_page_names_exist(page):
    names = NAMED.findall(page.read_text(encoding="utf-8"))
    assert [name for name in names if not MADE.search(name) and not list(ROOT.glob(name.rstrip("/")))] == []
