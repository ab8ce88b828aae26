"""Read submissions: as JSON alone, and whatever it is that a student has handed in.

A submission may be anything: links, pipes, a notebook of 100 MB, JSON that nests without end. Nothing of it
is followed, run or raised; what cannot be read is told in a sentence, and the rest of the submission counts.
"""

import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path

from labkit.course.exercise import Exercise
from labkit.grading.intake import claims
from labkit.grading.intake.entries import (
    HIDDEN,
    Entry,
    NoSubmissions,
    found,
    is_notebook,
    overlooked,
    own_name,
    shown,
)
from labkit.grading.model import Answer, Submission

__all__ = ["Entry", "NoSubmissions", "found", "labs_of_class", "overlooked", "read"]

MOST_NOTEBOOKS = 50
MOST_BYTES = 16 * 2**20  # of a notebook
MOST_BYTES_TOGETHER = 64 * 2**20
MOST_VALUES = 4_000_000  # of a notebook's JSON: each takes some 100 bytes of memory
MOST_LEVELS = 5  # of folders
MOST_FILES = 10_000  # to look at, of any kind
MOST_PROBLEMS = 20  # to tell

# Neither a link nor a pipe that waits for its other end is opened.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LAB = re.compile(r"(?:copy of )*([0-9]+)[_ .-]", re.IGNORECASE)

File = tuple[str, Path]  # its name as it is told, below the submission's folder, and where it lies


def read(entry: Entry, exercises: Mapping[str, Exercise], released: Collection[str]) -> Submission:
    """Read a submission's answers to all `exercises`, by id. Nothing that a student did raises an error.

    `released` are the names of the course's notebooks, such as 02_naive_cuda.ipynb.
    """
    files, problems = _files(entry)
    files.sort(key=lambda file: _base(file[0]) not in released)
    if len(files) > MOST_NOTEBOOKS:
        problems.append(f"There are {len(files)} notebooks; {MOST_NOTEBOOKS} of them were read.")
    hashes: dict[str, str] = {}
    answering: list[tuple[str, Mapping[str, Answer]]] = []
    left = MOST_BYTES_TOGETHER
    for name, path in files[:MOST_NOTEBOOKS]:
        try:
            data = _bytes(path, left)
            left -= len(data)
            hashes[name] = hashlib.sha256(data).hexdigest()
            answers, malformed = claims.of_notebook(_cells(data), exercises)
        except _Unreadable as why:
            problems.append(f"{name} {why}.")
            continue
        answering.append((name, answers))
        if malformed:
            problems.append(f"{name} has {malformed} cells that are none; they were left out.")
    return Submission(
        student=entry.student,
        files=hashes,
        labs=_labs([name for name, _ in files], answering, exercises),
        answers=claims.of_submission(answering, exercises, released),
        problems=_few([*entry.problems, *problems]),
        identity=entry.identity,
    )


def labs_of_class(submissions: Iterable[Submission]) -> tuple[str, ...]:
    """Return the labs that at least half of the submissions have, of those that answer anything."""
    counts: Counter[str] = Counter()
    answering = 0
    for submission in submissions:
        if any(answer.source for answer in submission.answers.values()):
            answering += 1
            counts.update(submission.labs)
    return tuple(sorted(lab for lab, count in counts.items() if 2 * count >= answering))


class _Unreadable(Exception):
    """A file cannot be read; the message goes on where its name stands."""


def _files(entry: Entry) -> tuple[list[File], list[str]]:
    """Return the notebooks of a submission, and notes about its other files."""
    files: list[File] = []
    problems: list[str] = []
    for path in entry.paths:
        if path.is_dir() and not path.is_symlink():
            below, told = _walk(path)
            files += below
            problems += told
        elif path.is_symlink():
            problems.append(_link(shown(path.name)))
        elif is_notebook(path.name):
            files.append((shown(own_name(path)), path))
        else:
            problems.append(f"{shown(own_name(path))} is no notebook (.ipynb); it was not read.")
    if not files and not problems:
        problems.append("There is no notebook (.ipynb) in it.")
    return _named_apart(files), problems


def _walk(top: Path) -> tuple[list[File], list[str]]:
    """Find the notebooks below a folder, level by level."""
    files: list[File] = []
    problems: list[str] = []
    level, seen = [top], 0
    for _ in range(MOST_LEVELS):
        below: list[Path] = []
        for folder in level:
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(islice(listing, MOST_FILES + 1), key=lambda entry: entry.name)
                seen += len(entries)
                if seen > MOST_FILES:
                    return files, [*problems, f"It has more than {MOST_FILES} files; not all were looked at."]
                for entry in entries:
                    name = shown(str(Path(entry.path).relative_to(top)))
                    if entry.name.startswith(HIDDEN):
                        continue
                    if entry.is_symlink():
                        if folder == top or is_notebook(entry.name):  # not those of a virtual environment
                            problems.append(_link(name))
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(Path(entry.path))
                    elif is_notebook(entry.name):
                        files.append((name, Path(entry.path)))
            except OSError as error:
                problems.append(f"{shown(folder.name)} cannot be read: {error.strerror}.")
        level = below
    return files, problems


def _named_apart(files: Iterable[File]) -> list[File]:
    """Give files different names to show."""
    named: dict[str, Path] = {}
    for wanted, path in files:
        name, number = wanted, 2
        while name in named:
            name, number = f"{wanted} ({number})", number + 1
        named[name] = path
    return list(named.items())


def _bytes(path: Path, most: int) -> bytes:
    """Read a plain file that is not larger than allowed. Raises _Unreadable."""
    try:
        handle = os.open(path, _OPEN)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _Unreadable("is no plain file; it was not read")
            if status.st_size > MOST_BYTES:
                size = f"{status.st_size / 2**20:.0f} MiB"
                raise _Unreadable(f"has {size}, more than {MOST_BYTES >> 20} MiB; it was not read")
            if status.st_size > most:
                together = f"the notebooks have more than {MOST_BYTES_TOGETHER >> 20} MiB together"
                raise _Unreadable(f"was not read: {together}")
            return file.read(status.st_size)
    except OSError as error:
        raise _Unreadable(f"cannot be read: {error.strerror}") from None


def _cells(data: bytes) -> list[object]:
    """Return the cells of a notebook. Raises _Unreadable."""
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise _Unreadable(f"is too large: it has more than {MOST_VALUES:,} values")
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"is not a notebook: it is not JSON ({_reason(error)})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise _Unreadable("is not a notebook: it has no cells")
    return cells


def _reason(error: Exception) -> str:
    """Say in a few words what is wrong with JSON."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not {error.encoding}"
    return "it nests too deep" if isinstance(error, RecursionError) else str(error).partition(";")[0]


def _labs(
    names: Iterable[str],
    answering: Iterable[tuple[str, Mapping[str, Answer]]],
    exercises: Mapping[str, Exercise],
) -> tuple[str, ...]:
    """Return the labs that have answers, or a notebook by its name."""
    numbers = [number[1] for name in names if (number := _LAB.match(_base(name)))]
    answered = [id.partition(".")[0] for _, answers in answering for id in answers]
    return tuple(sorted({*numbers, *answered} & {id.partition(".")[0] for id in exercises}))


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _link(name: str) -> str:
    return f"{name} is a link to another place; it was not followed."


def _few(problems: list[str]) -> tuple[str, ...]:
    """Name the first problems, and the number of the others."""
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], *([f"There are {more} more such problems."] if more > 0 else []))
