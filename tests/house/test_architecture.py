"""What docs/architecture.md says of the package is so: each file has a floor, and imports reach down only."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "labkit"
ROWS = re.findall(
    r"^\| (\d) \|.*\| (.+) \|$", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.M
)
FLOORS = {name: int(floor) for floor, names in ROWS for name in re.findall(r"`(\w+)`", names)}
FILES = sorted(PACKAGE.rglob("*.py"))


def part(module: str) -> str:
    """`simt` of `labkit.simt.code.abi`."""
    return module.split(".")[1]


def imported(path: Path) -> set[str]:
    """Parts of labkit that a file imports when it is imported itself."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are written out here, from labkit"
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_for_types(node):
                waiting.append(node)
    return {part(name) for name in found if name.startswith("labkit.")}


def is_for_types(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:`"""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def test_every_file_and_folder_has_a_floor():
    here = {part(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in FILES} - {"__init__"}
    assert here - set(FLOORS) == set(), "put them into the table of docs/architecture.md"
    assert set(FLOORS) - here == set(), "docs/architecture.md has them, labkit/ does not"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_reach_down(path):
    own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if own == "__init__":
        assert not imported(path)
        return
    up = sorted(name for name in imported(path) if FLOORS.get(name, 0) > FLOORS[own])
    assert not up, f"{', '.join(up)}: on a floor above {own} (docs/architecture.md)"


def test_the_picture_is_what_its_script_draws(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import architecture

    monkeypatch.delitem(sys.modules, "architecture")
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == architecture.picture()
