"""What a result depends on besides the submission: the sources that judge, as hashes.

When one of them changes, what it has judged is judged again: the version of labkit does not matter, as the
sources say more. Packages such as NVRTC's are left out, for a class that is finished on another machine is
not to be judged anew; the manifest names their versions.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from labkit.course import exercises as course
from labkit.course.exercise import Exercise
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import HIDDEN, SOLUTIONS
from labkit.course.setups import setups as relied_on
from labkit.paths import PACKAGES, shipped

# What may change is told by these names, from the most particular.
CHANGED = {
    "hidden": "its hidden check has changed",
    "criteria": "the criteria of its lab have changed",
    "grader": "labkit's own code has changed, which judges all",
}
# What shows and writes, and has no part in judging; labkit/__init__.py has the version and public names.
# Exercises are hashed lab by lab.
_NO_PART = (
    *("labkit/__init__.py", "labkit/cli.py", "labkit/data", "labkit/doctor", "labkit/lab"),
    *("labkit/notebooks", "labkit/widgets", "labkit/course/exercises"),
    *("grader/cli.py", "grader/doctor.py", "grader/pages", "grader/report.py", "grader/results"),
    *("grader/run.py", "data/SOURCES.md", "simt/cli.py", "simt/README.md", "simt/data/precompiled.zip"),
)

Sources = Mapping[str, str]  # a hash by each of CHANGED


def judged_by(exercises: Iterable[Exercise]) -> dict[str, Sources]:
    """Return what judges each exercise, by id."""
    found: dict[str, Sources] = {}
    hidden, setups = _of_notebooks()
    for exercise in exercises:
        lab = exercise.id.partition(".")[0]
        asked = [exercise.points, exercise.given, [each.text for each in exercise.criteria]]
        found[exercise.id] = {
            "hidden": _hash(hidden.get(exercise.id, ())),
            "criteria": _hash([_of_lab(lab), *map(str, asked), *setups.get(exercise.id, ())]),
            "grader": grader(),
        }
    return found


def changed(before: Mapping[str, object], now: Sources) -> str:
    """Say in a few words what has changed; "" if nothing has."""
    return next((why for name, why in CHANGED.items() if before.get(name) != now[name]), "")


@cache
def grader() -> str:
    """Hash the sources and tables of labkit that take part in judging."""
    hashed = []
    for folder in (*PACKAGES, shipped("data")):
        for path in sorted(folder.rglob("*")):
            below = path.relative_to(folder.parent)
            name = below.as_posix()
            has_part = not f"{name}/".startswith(tuple(f"{each}/" for each in _NO_PART))
            is_ours = not any(part.startswith((".", "__pycache__")) for part in below.parts)
            if has_part and is_ours and path.is_file():
                hashed += [name, hashlib.sha256(path.read_bytes()).hexdigest()]
    return _hash(hashed)


def _of_lab(lab: str) -> str:
    """Return the source of a lab's criteria; "" where it has none."""
    path = Path(course.__path__[0], f"lab_{lab}.py")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _of_notebooks() -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
    """Return the sources of hidden checks, and what answers in Python rely on, by exercise."""
    hidden: dict[str, list[str]] = {}
    setups: dict[str, tuple[str, ...]] = {}
    for solved in sorted((catalog.shipped() / SOLUTIONS).glob("*.ipynb")):
        setups |= relied_on(solved)
        for cell in catalog.read(solved)["cells"]:
            about = cell.get("metadata", {}).get("labkit", {})
            if about.get("role") == HIDDEN:
                hidden.setdefault(about.get("exercise", ""), []).append("".join(cell["source"]))
    return hidden, setups


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()
