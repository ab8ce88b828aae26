"""Where the repository is on GitHub, and what follows from it: badges, and the first cell of each notebook.

One place says it, pyproject.toml: the address stands in [project.urls], the tag is v and the version.
README.md and the solved notebooks are made to agree; from these `labkit release` makes the students'.

The first cell installs labkit where it is missing, as on Colab. It names the repository, never labkit alone:
on PyPI that name belongs to another project.
"""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import SOLUTIONS, Page

# Stands for an address as long as there is none. Nobody can have it: no account's name has an underscore.
PLACEHOLDER = "OWNER_/labkit"

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com"
BINDER = "https://mybinder.org"
START = "00_start_here.ipynb"
BEGIN, END = "<!-- badges -->", "<!-- end of badges -->"
CELL_ID, ROLE = "install", "install"

_PLACE = re.compile(f"(?<={BEGIN}\n).*?(?={END}\n)", re.DOTALL)
_URL = re.compile(rf'^Repository = "{re.escape(GITHUB)}(?P<name>.+)"$', re.MULTILINE)
# What GitHub takes: an owner of at most 39 letters, digits and single hyphens between them.
_NAME = re.compile(r"(?=.{1,39}/)[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.{1,2}$|.*\.git$)[A-Za-z0-9._-]{1,100}")


class WrongAddress(ValueError):
    """The address cannot be written, or not read; the message says why and what to do."""


@dataclass(frozen=True)
class Repository:
    """A repository on GitHub: its name OWNER/REPO, and the tag of this version."""

    name: str
    tag: str

    @property
    def requirement(self) -> str:
        """Return what pip is told to install."""
        return f"labkit @ git+{GITHUB}{self.name}@{self.tag}"

    @property
    def is_published(self) -> bool:
        """Return True where the repository has an address, not the placeholder."""
        return self.name != PLACEHOLDER

    def colab(self, notebook: str) -> str:
        """Return the address at which Colab opens one of the students' notebooks."""
        return f"{COLAB}/github/{self.name}/blob/{self.tag}/notebooks/{notebook}"

    def binder(self, notebook: str = START) -> str:
        """Return the address at which Binder builds the course, and opens one of the students' notebooks."""
        return f"{BINDER}/v2/gh/{self.name}/{self.tag}?urlpath=lab/tree/notebooks/{notebook}"

    @property
    def install_cell(self) -> str:
        """Return the source of the first cell of each notebook."""
        return (
            "# Installs the course's package where it is missing, as on Colab.\n"
            "from importlib.util import find_spec\n\n"
            'if not find_spec("labkit"):\n'
            f'    %pip install --quiet "{self.requirement}"'
        )


def clone() -> Path:
    """Find the folder of the clone that labkit runs from. Raises WrongAddress for an installed labkit."""
    root = catalog.shipped().parent
    if root == catalog.PACKAGE or not (root / "pyproject.toml").is_file():
        raise WrongAddress(
            f"This labkit is installed in {catalog.PACKAGE}; badges belong into a clone of its repository. "
            "There, run: python -m pip install -e '.[lab]' && labkit badges OWNER/REPO"
        )
    return root


def repository(root: Path) -> Repository:
    """Read the repository from pyproject.toml. Raises WrongAddress where it names none."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    version = tomllib.loads(text)["project"]["version"]
    return Repository(_url(text)["name"], f"v{version}")


def named(root: Path, name: str | None = None, tag: str | None = None) -> Repository:
    """Return the repository that a clone is to name: that of pyproject.toml, if no other name is given.

    Raises WrongAddress for a name that GitHub does not take, and where `tag` is not that of this version.
    """
    here = repository(root)
    if name is not None and not _NAME.fullmatch(name):
        raise WrongAddress(f"{name!r} is no repository of GitHub. Write OWNER/REPO, such as ada/matrices.")
    if tag not in (None, here.tag):
        raise WrongAddress(
            f"{tag!r} is not the tag of this version, which is {here.tag}. "
            "Leave --tag out, or change the version in pyproject.toml and in labkit/__init__.py first."
        )
    return Repository(name or here.name, here.tag)


def pages(root: Path, of: Repository) -> list[Page]:
    """Make the files of a clone that name its repository, with the text that they should hold.

    Raises WrongAddress where there is no place for it, and NoNotebook.
    """
    project, readme = root / "pyproject.toml", root / "README.md"
    text = project.read_text(encoding="utf-8")
    start, end = _url(text).span("name")
    notebooks = catalog.notebooks(root / "notebooks" / SOLUTIONS)
    return [
        Page(project, text[:start] + of.name + text[end:]),
        Page(readme, _with_badges(readme, of, notebooks)),
        *(Page(path, _with_install_cell(path, of)) for path in notebooks),
    ]


def _url(text: str) -> re.Match[str]:
    """Find the address in pyproject.toml."""
    if found := _URL.search(text):
        return found
    raise WrongAddress(f'pyproject.toml has no line Repository = "{GITHUB}OWNER/REPO" in [project.urls].')


def _with_badges(readme: Path, of: Repository, notebooks: list[Path]) -> str:
    """Return README.md with what belongs between its two marks."""
    text, badges = readme.read_text(encoding="utf-8"), _badges(of, notebooks)
    if not _PLACE.search(text):
        raise WrongAddress(f"{readme.name} has no place for badges. Write two lines there: {BEGIN} and {END}")
    return _PLACE.sub(lambda _: badges, text, count=1)


def _badges(of: Repository, notebooks: list[Path]) -> str:
    if not of.is_published:
        return (
            "This repository has no address on GitHub yet. Once it has, `labkit badges OWNER/REPO` puts the "
            "buttons for\nColab and Binder here.\n"
        )
    opened = [(catalog.lesson(path), of.colab(path.name)) for path in notebooks]
    picture = f"{COLAB}/assets/colab-badge.svg"
    rows = [
        f"| {each.number} · {each.title} | {_badge('Open in Colab', picture, url)} |" for each, url in opened
    ]
    course = _badge("Open the course in Binder", f"{BINDER}/badge_logo.svg", of.binder())
    return "\n".join([course, "", "| notebook | alone, on Colab |", "| --- | --- |", *rows, ""])


def _badge(text: str, picture: str, url: str) -> str:
    return f"[![{text}]({picture})]({url})"


def _with_install_cell(path: Path, of: Repository) -> str:
    """Return a solved notebook whose first code cell is the one that installs.

    Where it is new it takes number 1 and all others count on, as if the notebook had been run with it.
    """
    notebook = catalog.read(path)
    cells = notebook["cells"]
    mine = next((cell for cell in cells if cell.get("id") == CELL_ID), None)
    if mine is None:
        _count_on(cells)
        mine = {"cell_type": "code", "execution_count": 1, "id": CELL_ID}
        mine |= {"metadata": {"labkit": {"role": ROLE}}, "outputs": []}
        cells.insert(1, mine)
    mine["source"] = of.install_cell.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _count_on(cells: list[dict[str, Any]]) -> None:
    """Raise the number of each cell that has run by one, and of its results."""
    for counted in [*cells, *(output for cell in cells for output in cell.get("outputs", []))]:
        if counted.get("execution_count"):
            counted["execution_count"] += 1
