"""When a submission was handed in: the LMS's mark where a name has one, else the time of its files.

What being late costs is for the LMS to say.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from grader.intake.entries import is_notebook

LATE = "LATE"  # Canvas's mark, between the student's name and number; in front of an anonymous one
MOST_FILES = 2_000  # of a submission that are looked at
_MARK = re.compile(r"(?:^|_)LATE_(?:\d|anon_)")


def handed_in(paths: Sequence[Path], labs: Iterable[str]) -> dict[str, str]:
    """Return by lab LATE, or the time of its newest notebook in UTC, as ISO 8601 has it.

    A lab without a notebook of its own number has the time of the newest of all.
    """
    marked = [path for path in paths if _MARK.search(path.name)]
    files = [(path, _time(path)) for path in _notebooks(paths)]
    found = {}
    for lab in labs:
        of_lab = re.compile(rf"(?:^|\D){lab}[_ .-]")
        own = [time for path, time in files if of_lab.search(path.name)] or [time for _, time in files]
        if any(of_lab.search(path.name) for path in marked) or (marked and len(marked) == len(paths)):
            found[lab] = LATE
        elif own:
            found[lab] = datetime.fromtimestamp(max(own), UTC).strftime("%Y-%m-%dT%H:%MZ")
    return found


def _notebooks(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the notebooks at the paths, and below those that are folders; links are not followed."""
    for path in paths:
        if path.is_symlink() or not path.is_dir():
            yield path
        else:
            walked = (Path(folder, name) for folder, _, names in os.walk(path) for name in sorted(names))
            yield from (each for each in islice(walked, MOST_FILES) if is_notebook(each.name))


def _time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
