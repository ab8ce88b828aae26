"""Make the book: the course and the pages beside it as a site, in build/book/html.

    python docs/book/build.py                          # or: make book
    python docs/book/build.py --repository OWNER/REPO  # with the buttons of another repository
    python docs/book/build.py --only 05                # of the notebooks only 05, to try something

Sphinx renders it, with MyST-NB and the theme of PyData. Nothing is run: the outputs are the stored ones. The
site needs no server and no network: open build/book/html/index.html.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import nbformat  # noqa: E402
from chapters import chapter  # noqa: E402

from labkit.course.notebooks import badges, catalog  # noqa: E402
from labkit.course.notebooks.badges import BEGIN, END, GITHUB, Repository  # noqa: E402
from labkit.course.notebooks.catalog import Lesson  # noqa: E402
from labkit.course.notebooks.release import SOLUTIONS, Page, for_students  # noqa: E402

OUT = ROOT / "build" / "book"
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "data/SOURCES.md")  # pages that do not lie in docs/
GLOSSARY = "notebooks/glossary.md"
AS_THEY_ARE = (
    "_files"  # the folder of the source that Sphinx copies without reading it; conf.py names it, too
)

_LINK = re.compile(r"(?P<text>!?\[(?:[^\]\\]|\\.)*\])\((?P<target>(?!\w+:)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_BADGES = re.compile(f"{BEGIN}\n.*?{END}\n", re.DOTALL)


def pages(notebooks: list[Path], of: Repository) -> list[Page]:
    """Return the files of the book's source, by their paths in the repository.

    README.md becomes the front page. Links stay within the book. One to another file of the repository leads
    to GitHub, where the repository has an address, and else is text.
    """
    written = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in BESIDE)]
    here = {*written, ROOT / GLOSSARY, *(ROOT / "notebooks" / path.name for path in notebooks)}
    docs = {
        path: _linked(path.read_text(encoding="utf-8"), path, here, of)
        for path in [*written, ROOT / GLOSSARY]
    }
    front = _linked((ROOT / "README.md").read_text(encoding="utf-8"), ROOT / "README.md", here, of)
    lessons = [catalog.lesson(path) for path in notebooks]
    made = {
        Path("index.md"): _front(front, of),
        Path("notebooks/index.md"): _course(lessons, of),
        Path("docs/index.md"): _documentation(front, written),
    }
    made |= {path.relative_to(ROOT): text for path, text in docs.items()}
    for path in notebooks:
        made[Path("notebooks", path.name)] = nbformat.writes(chapter(path, of)) + "\n"
        students = for_students(nbformat.read(path, as_version=4))
        made[Path(AS_THEY_ARE, "run", path.name)] = nbformat.writes(students) + "\n"
    return [Page(path, text) for path, text in made.items()]


def write(source: Path, notebooks: list[Path], of: Repository) -> None:
    """Write the book's source. Files that have not changed are left alone, and Sphinx skips them."""
    found = [Page(source / page.path, page.text) for page in pages(notebooks, of)]
    pictures = [path for kind in ("png", "svg") for path in (ROOT / "docs").glob(f"*.{kind}")]
    kept = {page.path for page in found} | {source / "docs" / path.name for path in pictures}
    for stale in {path for path in source.rglob("*") if path.is_file()} - kept:
        stale.unlink()
    for page in found:
        if page.state:
            page.write()
    for path in pictures:
        shutil.copy2(path, source / "docs" / path.name)


def build(out: Path, notebooks: list[Path], of: Repository, arguments: Iterable[str] = ()) -> int:
    """Write the source and have Sphinx render it into `out`/html; return Sphinx's exit code."""
    from sphinx.cmd.build import main

    write(out / "source", notebooks, of)
    link = ["-D", f"html_theme_options.github_url={GITHUB}{of.name}"] * of.is_published
    folders = ["-c", str(HERE), "-d", str(out / "doctrees"), str(out / "source"), str(out / "html")]
    return main(["-q", *link, *arguments, *folders])


def _linked(text: str, page: Path, here: set[Path], of: Repository) -> str:
    """Keep the links of a page to what the book has, and lead the others to GitHub or nowhere."""

    def lead(link: re.Match[str]) -> str:
        aim = (page.parent / link["target"]).resolve()
        if aim in here or link["text"].startswith("!"):
            return link[0]
        if not of.is_published:
            return link["text"][1:-1]
        kind = "tree" if aim.is_dir() else "blob"
        path = aim.relative_to(ROOT).as_posix()
        return f"{link['text']}({GITHUB}{of.name}/{kind}/{of.tag}/{path}{link['anchor'] or ''})"

    return _LINK.sub(lead, text)


def _front(readme: str, of: Repository) -> str:
    """Make the front page of README.md: links into the course in the place of the badges."""
    links = '<a href="notebooks/index.html">Read the course</a>'
    links += f'<a href="{of.binder()}">Open it in Binder</a>' * of.is_published
    buttons = f'<div class="book-run">{links}</div>\n'
    return (
        f"{_BADGES.sub(lambda _: buttons, readme)}\n{_toctree(['notebooks/index', 'docs/index'], 'hidden')}"
    )


def _course(lessons: list[Lesson], of: Repository) -> str:
    """Make the page that lists the chapters."""
    rows = [
        f"| [{each.number} · {each.title}]({each.path.name}) "
        f"| {each.concept} | {each.minutes} | {each.points} |\n"
        for each in lessons
    ]
    table = f"| chapter | what it teaches | minutes | points |\n| --- | --- | ---: | ---: |\n{''.join(rows)}"
    note = (
        "The minutes are an estimate. Terms are explained in the [glossary](glossary.md). Pictures of "
        "explorers stand still here: their sliders move where the notebook runs. Recorded blocks "
        "(`labkit.step`) can be replayed here, too.\n"
    )
    tree = _toctree([*(each.path.stem for each in lessons), "glossary"], "hidden")
    return f"# The course\n\n{table}\n{note}\n{tree}"


def _documentation(readme: str, written: list[Path]) -> str:
    """Make the page that lists the documentation, in the order of README.md."""
    names = [os.path.relpath(path, ROOT / "docs").removesuffix(".md") for path in written]
    order = [target.removeprefix("docs/") for target in re.findall(r"\]\((docs/[\w-]+)\.md\)", readme)]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return f"# Documentation\n\n{_toctree(names)}"


def _toctree(names: Iterable[str], option: str = "maxdepth: 1") -> str:
    lines = "\n".join(names)
    return f"```{{toctree}}\n:{option}{'' if ':' in option else ':'}\n\n{lines}\n```\n"


def main() -> int:
    """Build the book as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description="Make the book: the course as a site.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to build in")
    parser.add_argument("--repository", help="OWNER/REPO on GitHub, if not the one in pyproject.toml")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NN", help="the notebooks that begin so")
    parser.add_argument("sphinx", nargs="*", help="options of Sphinx, after --")
    chosen = parser.parse_args()
    try:
        of = badges.named(ROOT, chosen.repository or None)
    except badges.WrongAddress as error:
        sys.exit(str(error))
    solved = catalog.notebooks(ROOT / "notebooks" / SOLUTIONS)
    notebooks = [path for path in solved if path.name.startswith(tuple(chosen.only))]
    # With some notebooks left out, links lead to chapters that are not there.
    partial = [] if notebooks == solved else ["-D", "suppress_warnings=myst.xref_missing"]
    code = build(chosen.out, notebooks, of, [*partial, *chosen.sphinx])
    if code == 0:
        print(f"The book: {(chosen.out / 'html' / 'index.html').resolve().as_uri()}")
    return code


if __name__ == "__main__":
    sys.exit(main())
