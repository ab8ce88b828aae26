"""docs/architecture.md has the packages and their rooms in the order that import-linter enforces."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
PACKAGES, *ROOMS = CONTRACTS


def rooms(heading: str) -> list[str]:
    """Read the first column of the table below a heading."""
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n##")[0]
    return re.findall(r"^\| `(\w+)/?` \|", section, re.M)


def test_packages():
    assert rooms("## Three packages") == PACKAGES["layers"]
    assert sorted(each["containers"] for each in ROOMS) == sorted([name] for name in PACKAGES["layers"])


@pytest.mark.parametrize("contract", ROOMS, ids=lambda each: each["containers"][0])
def test_rooms(contract):
    (package,) = contract["containers"]
    assert rooms(f"### `{package}/`") == contract["layers"]
    assert contract["exhaustive"], "a new room has to be put in its place"


def test_the_picture_is_what_its_script_draws(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import architecture

    monkeypatch.delitem(sys.modules, "architecture")
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == architecture.picture()
