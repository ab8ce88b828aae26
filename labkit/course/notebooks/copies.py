"""A student's own copies of the notebooks, where labkit is installed and keeps its own as they are.

They are the student's from then on: nothing here writes to a notebook that is there. A notebook that is
missing is copied, so whoever moves one away gets it afresh. The glossary beside them is copied each time.
"""

import hashlib
import json
import shutil
from pathlib import Path

from labkit.course.notebooks import catalog

CAME_AS = ".labkit.json"  # in the student's folder: of each notebook, the SHA-256 that it was copied with


def keep(shipped: Path, mine: Path) -> list[str]:
    """Copy the notebooks of `shipped` that `mine` has not; not the solved ones, in a folder of their own.

    Returns the names of those that are there and that another labkit brought: `shipped` has them changed.
    Raises OSError where `mine` cannot be written.
    """
    mine.mkdir(exist_ok=True)
    record = mine / CAME_AS
    known: dict[str, str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    came_as = dict(known)
    changed = []
    for page in shipped.glob("*.md"):  # read, not worked in: the newest one is right
        _copy(page, mine / page.name)
    for notebook in catalog.notebooks(shipped):
        digest, copy = hashlib.sha256(notebook.read_bytes()).hexdigest(), mine / notebook.name
        if not copy.exists():
            _copy(notebook, copy)
            came_as[copy.name] = digest
        elif came_as.setdefault(copy.name, digest) != digest:
            changed.append(copy.name)
    if came_as != known:
        record.write_text(json.dumps(came_as, indent=1) + "\n", encoding="utf-8")
    return changed


def _copy(shipped: Path, copy: Path) -> None:
    """Copy all of it or nothing: half a notebook would be taken for the student's work."""
    part = copy.with_name(f".{copy.name}.part")
    shutil.copyfile(shipped, part)
    part.replace(copy)
