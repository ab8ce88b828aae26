"""docs/architecture.md lists the rooms of the package in order; a room imports only from those below it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "labkit"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# (file, the higher room that it imports): why this is right.
EXCEPTIONS = {
    ("c/compile.py", "doctor"): "a missing compiler's message names the command that mends it",
    ("core/kernel.py", "model"): "a kernel predicts its own time, wherever it runs",
    ("doctor/__init__.py", "grading"): "the doctor tries the sandbox of the grader",
    ("c/function.py", "device"): "a time in C is a `Timing`, like one of a kernel",
    ("records/provenance.py", "doctor"): "the doctor knows the driver's version",
}


def rooms(title: str) -> list[str]:
    """Read the rooms from the table below a heading of docs/architecture.md: the lowest comes first."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.M)[::-1]


def imported(path: Path) -> set[str]:
    """Find all that a file imports of labkit, within functions and for types too, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out here, from labkit"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("labkit.")}


def room(path: Path, house: Path) -> str:
    """Name the room of a file: a folder of the house, or a module that lies in none."""
    return path.relative_to(house).with_suffix("").parts[0]


HOUSES = {"The rooms": PACKAGE, "The rooms of the simulator": PACKAGE / "simt"}
FILES = [(title, path) for title, house in HOUSES.items() for path in sorted(house.rglob("*.py"))]


@pytest.mark.parametrize("title", HOUSES)
def test_every_room_is_in_the_table_once(title):
    here = {room(path, HOUSES[title]) for path in HOUSES[title].rglob("*.py")} - {"__init__"}
    assert sorted(here) == sorted(rooms(title)), "the table in docs/architecture.md and the folders differ"


@pytest.mark.parametrize(
    ("title", "path"),
    FILES,
    ids=[f"{HOUSES[t].name}:{p.relative_to(HOUSES[t]).as_posix()}" for t, p in FILES],
)
def test_imports_reach_down(title, path):
    house, order = HOUSES[title], rooms(title)
    own, prefix = room(path, house), ".".join(house.relative_to(ROOT).parts) + "."
    if own == "__init__":  # gathers the public names, from any room
        return
    others = {name.removeprefix(prefix).split(".")[0] for name in imported(path) if name.startswith(prefix)}
    higher = {name for name in others & set(order) if order.index(name) > order.index(own)}
    file = path.relative_to(house).as_posix()
    excused = {name for excused_file, name in EXCEPTIONS if house == PACKAGE and excused_file == file}
    assert sorted(higher - excused) == [], f"rooms above {own} in docs/architecture.md"


def test_the_picture_is_what_its_script_draws(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import architecture

    monkeypatch.delitem(sys.modules, "architecture")
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == architecture.picture()
