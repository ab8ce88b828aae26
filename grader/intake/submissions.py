"""Read submissions: as JSON alone, and whatever it is that a student has handed in.

A submission may be anything: links, pipes, a notebook of 100 MB, JSON that nests without end. Nothing of it
is followed, run or raised. Each file has one fate (model.File): what cannot be read is told in a sentence,
leaves those exercises open that it may answer, and the rest of the submission counts.
"""

import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.intake import claims
from grader.intake.claims import Claim, Notebook
from grader.intake.entries import (
    Entry,
    NoSubmissions,
    TooDeep,
    attachment,
    found,
    is_archive,
    is_hidden,
    is_notebook,
    overlooked,
    own_name,
    shown,
)
from grader.intake.handed_out import is_as_handed_out
from grader.intake.unpack import PREFIX, NotUnpacked, unpack
from grader.model import (
    IGNORED,
    SUPERSEDED,
    TAKEN,
    UNREADABLE,
    UNTOUCHED,
    Answer,
    File,
    Submission,
)
from labkit.course.exercise import Exercise

__all__ = ["Entry", "NoSubmissions", "TooDeep", "found", "labs_of_class", "overlooked", "read"]

MOST_NOTEBOOKS = 50
MOST_BYTES = 64 * 2**20  # of a notebook: the most of it may be outputs
MOST_BYTES_TOGETHER = 128 * 2**20
MOST_VALUES = 4_000_000  # of a notebook's JSON: each takes some 100 bytes of memory
MOST_LEVELS = 5  # of folders
MOST_FILES = 10_000  # to look at, of any kind
MOST_FOUND = 200  # files to list
MOST_ZIPS = 10
MOST_BYTES_OF_ZIPS = 256 * 2**20  # unpacked, of a submission
MOST_PROBLEMS = 20  # to tell

# Neither a link nor a pipe that waits for its other end is opened.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# What a file is, by its name and place: a notebook; what may hold one and is not looked into; a document that
# is told; another one; a copy that Jupyter keeps. The last three may hold answers if there is no notebook.
_NOTEBOOK, _HOLDER, _DOCUMENT, _BYSTANDER, _COPY = range(5)
_WEB_PAGES = (".html", ".htm")  # a form in which notebooks are saved, too
_CHECKPOINTS = ".ipynb_checkpoints"
_SIGNS = {b"pk\x03\x04": "it is a zip", b"<": "it is a web page", b"%pdf": "it is a PDF"}
_MERGE_MARK = re.compile(rb"^<{7}(?: |$)", re.MULTILINE)
_ZIP = "is a zip in another, or one of many: it was not unpacked"
_LINK = "is a link to another place; it was not followed"


@dataclass(frozen=True)
class _Path:
    """A file or folder of a submission: its name as it is told, where it lies, and what it is.

    `why` tells of all but notebooks why they are not read, and ends the sentence that the name begins. `note`
    is to be told of one that is read.
    """

    name: str
    path: Path
    kind: int = _NOTEBOOK
    why: str = ""
    attachment: int = 0
    note: str = ""


@dataclass(frozen=True)
class _Read:
    """A file that was looked at: what it claims if it is a notebook, and what is to be told of it."""

    file: _Path
    notebook: Notebook
    why: str = ""

    @property
    def labs(self) -> set[str]:
        """Return the labs that it answers, and that which its name tells."""
        claimed = {id.partition(".")[0] for id in self.notebook.claims or ()}
        return claimed | (self.notebook.labs if self.file.kind <= _HOLDER else set())

    @property
    def has_work(self) -> bool:
        """Say whether it has more than cells that are empty or as handed out."""
        return any(claim.worth > claims.STUB for claim in (self.notebook.claims or {}).values())


def read(
    entry: Entry, exercises: Mapping[str, Exercise], released: Collection[str], graded: Collection[str] = ()
) -> Submission:
    """Read a submission's answers to all `exercises`, by id. Nothing that a student did raises an error.

    `released` are the names of the course's notebooks, such as 02_naive_cuda.ipynb, and `graded` the labs of
    which points are asked for, if that is known.
    """
    hashes: dict[str, str] = {}
    with ExitStack() as folders:
        looked_at = _looked_at(_files(entry, released, folders), exercises, hashes)
    known = {id.partition(".")[0] for id in exercises}
    labs = tuple(sorted(known & {lab for each in looked_at for lab in each.labs}))
    notebooks = [each.notebook for each in looked_at if each.file.kind <= _HOLDER]
    answers, winners = claims.of_submission(notebooks, exercises, released)
    told = [_fate(each, looked_at, answers, winners, set(graded) or known) for each in looked_at]
    problems = [f"{file.name} {file.why}." for file, is_told in told if is_told and file.why]
    if not told:
        problems.append("There is no file in it.")
    return Submission(
        student=entry.student,
        files=hashes,
        labs=labs,
        answers={id: _opened(answer, looked_at, labs) for id, answer in answers.items()},
        problems=_few([*entry.problems, *problems]),
        identity=entry.identity,
        found=tuple(file for file, _ in told),
    )


@dataclass(frozen=True)
class ClassLabs:
    """The labs of a class: how many submissions answer each, and how many answer any."""

    counts: Counter[str]
    answering: int

    @property
    def of_half(self) -> tuple[str, ...]:
        """Return the labs that at least half of those submissions answer."""
        return tuple(sorted(lab for lab, count in self.counts.items() if 2 * count >= self.answering))

    def __str__(self) -> str:
        each = (f"{lab} (in {count})" for lab, count in sorted(self.counts.items()))
        return f"{', '.join(each)} of {self.answering} submissions"


def labs_of_class(submissions: Iterable[Submission]) -> ClassLabs:
    """Count the labs that submissions answer.

    A lab whose cells are all as handed out is not answered, unless there is nothing else in the submission.
    """
    counts: Counter[str] = Counter()
    answering = 0
    for submission in submissions:
        answered = {id: answer.source for id, answer in submission.answers.items() if answer.source}
        work = {id for id, source in answered.items() if not is_as_handed_out(id, source)}
        answering += bool(answered)
        counts.update({id.partition(".")[0] for id in work or answered})
    return ClassLabs(counts, answering)


class _Unreadable(Exception):
    """A file cannot be read; the message goes on where its name stands."""


def _files(entry: Entry, released: Collection[str], folders: ExitStack) -> list[_Path]:
    """Return the files of a submission, with what they are by name and place; notebooks come first.

    What is in zips lies in `folders`.
    """
    files: list[_Path] = []
    for path in entry.paths:
        if path.is_dir() and not path.is_symlink():
            files += _walk(path)
        else:
            kind, why = _kind(path.name, path.is_symlink(), is_told=True)
            files.append(_Path(shown(own_name(path)), path, kind, why, attachment(path)))
    zips = [file for file in files if file.kind == _HOLDER and file.why == _ZIP]
    left = MOST_BYTES_OF_ZIPS
    for file in zips[:MOST_ZIPS]:
        files.remove(file)
        inner, size = _unpacked(file, folders, left)
        files += inner
        left -= size
    if any(file.kind == _NOTEBOOK for file in files):
        files = [file for file in files if file.kind != _COPY]
    else:  # then answers may be in anything
        files = [replace(file, kind=_HOLDER) for file in files]
    files.sort(key=lambda file: (file.kind, file.name.rpartition("/")[2] not in released))
    if more := files[MOST_FOUND:]:
        why = f"has {len(more)} more files, which were not read"
        files[MOST_FOUND:] = [_Path(shown(entry.paths[0].name), entry.paths[0], more[0].kind or _HOLDER, why)]
    return _named_apart(files)


def _kind(name: str, is_link: bool, is_told: bool) -> tuple[int, str]:
    """Say what a file is, and of all but notebooks why they are not read."""
    if is_link:
        return (_HOLDER if is_notebook(name) or is_told else _BYSTANDER), _LINK
    if is_notebook(name):
        return _NOTEBOOK, ""
    if is_archive(name):
        return _HOLDER, _ZIP if name.lower().endswith(".zip") else "is an archive that is not unpacked"
    is_told = is_told or name.lower().endswith(_WEB_PAGES)
    return (_DOCUMENT if is_told else _BYSTANDER), "is no notebook (.ipynb); it was not read"


def _unpacked(file: _Path, folders: ExitStack, most: int) -> tuple[list[_Path], int]:
    """Return the files of a zip in a submission, and their bytes; a zip in it stays as it is."""
    folder = Path(folders.enter_context(TemporaryDirectory(prefix=PREFIX)))
    try:
        size = unpack(BytesIO(_bytes(file.path, MOST_BYTES)), folder, most)
    except (_Unreadable, NotUnpacked) as why:
        return [replace(file, why=str(why))], 0
    inner = _walk(folder) or [_Path("", folder, _DOCUMENT, "has nothing in it")]
    names = [file.name if each.path == folder else f"{file.name}/{each.name}" for each in inner]
    return [
        replace(each, name=name, attachment=file.attachment, note="was read out of the zip")
        for each, name in zip(inner, names, strict=True)
    ], size


def _walk(top: Path) -> list[_Path]:
    """Find the files below a folder, level by level."""
    files: list[_Path] = []
    level, seen = [top], 0

    def add(path: Path, kind: int, why: str) -> None:
        name = shown(top.name if path == top else str(path.relative_to(top)))
        files.append(_Path(name, path, kind, why))

    for _ in range(MOST_LEVELS):
        below: list[Path] = []
        for folder in level:
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(islice(listing, MOST_FILES + 1), key=lambda entry: entry.name)
                seen += len(entries)
                if seen > MOST_FILES:
                    add(top, _HOLDER, f"has more than {MOST_FILES} files; not all were looked at")
                    return files
                for entry in entries:
                    path = Path(entry.path)
                    if is_hidden(entry.name):
                        if entry.name == _CHECKPOINTS:
                            add(path, _COPY, "holds copies that Jupyter keeps; they were not read")
                        elif is_notebook(entry.name) and not entry.name.startswith("._"):
                            add(path, _COPY, "is hidden; it was not read")
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(path)
                    else:
                        is_link = entry.is_symlink()  # below are those of virtual environments
                        add(path, *_kind(entry.name, is_link, is_told=is_link and folder == top))
            except OSError as error:
                add(folder, _HOLDER, f"cannot be read: {error.strerror}")
        level = below
    for folder in level[:1]:
        others = f", as do {len(level) - 1} others" * (len(level) > 1)
        add(folder, _BYSTANDER, f"lies {MOST_LEVELS} folders deep{others}; it was not looked into")
    return files


def _named_apart(files: Iterable[_Path]) -> list[_Path]:
    """Give files different names to show."""
    named: dict[str, _Path] = {}
    for file in files:
        name, number = file.name, 2
        while name in named:
            name, number = f"{file.name} ({number})", number + 1
        named[name] = replace(file, name=name)
    return list(named.values())


def _looked_at(
    files: Sequence[_Path], exercises: Mapping[str, Exercise], hashes: dict[str, str]
) -> list[_Read]:
    """Read the notebooks among the files, and put their hashes into `hashes`."""
    looked_at: list[_Read] = []
    left = MOST_BYTES_TOGETHER
    for place, file in enumerate(files):
        claimed: Mapping[str, Claim] | None = None
        why = file.why
        try:
            if file.kind == _NOTEBOOK:
                if place >= MOST_NOTEBOOKS:
                    raise _Unreadable(f"was not read: there are more than {MOST_NOTEBOOKS} notebooks")
                data = _bytes(file.path, left)
                left -= len(data)
                hashes[file.name] = hashlib.sha256(data).hexdigest()
                claimed, malformed = claims.of_notebook(_cells(data), exercises)
                if malformed:
                    why = f"has {malformed} cells that are none; they were left out"
                elif not file.path.name.lower().endswith(".ipynb"):
                    why = "was read as the notebook that it is, in spite of its ending"
                else:
                    why = file.note
        except _Unreadable as error:
            why = str(error)
        is_holder = file.kind != _NOTEBOOK
        if claimed is None and file.kind <= _HOLDER:
            hashes.setdefault(file.name, "")  # so that --resume notices where it comes and goes
        looked_at.append(_Read(file, Notebook(file.name, claimed, file.attachment, why, is_holder), why))
    return looked_at


def _fate(
    own: _Read,
    looked_at: Sequence[_Read],
    answers: Mapping[str, Answer],
    winners: Mapping[str, str],
    graded: Collection[str],
) -> tuple[File, bool]:
    """Return what became of a file, and whether it is to be told."""
    claimed, labs = own.notebook.claims, tuple(sorted(own.labs))

    def file(fate: str, why: str) -> File:
        return File(own.file.name, fate, why or own.why, labs)

    if claimed is None:
        holds = own.file.kind <= _HOLDER
        return file(UNREADABLE if holds else IGNORED, ""), own.file.kind != _BYSTANDER
    if not claimed:
        why = "has no cell that answers an exercise of the course"
        return file(IGNORED, why), not own.notebook.is_for_reading
    if not set(labs) & set(graded):  # that is told where there is nothing else
        why = f"is of {_lab(labs)}, which is not graded here"
        return file(IGNORED, why), not any(each.labs & set(graded) for each in looked_at)
    if not own.has_work:
        others = {lab for each in looked_at if each.has_work for lab in each.labs}
        why = "has no work: its answer cells are as handed out, or empty"
        return file(UNTOUCHED, why), not set(labs) & others
    work = {id for id, claim in claimed.items() if claim.worth > claims.STUB}
    decided = {id for id in work if not answers[id].open}
    if not decided or any(answers[id].source == claimed[id].text for id in work):
        return file(TAKEN, ""), True
    instead = sorted({winners[id] for id in decided})
    verb = "answers" if len(instead) == 1 else "answer"
    return file(SUPERSEDED, f"does not count, as {', '.join(instead)} {verb} the same exercises"), True


def _opened(answer: Answer, looked_at: Sequence[_Read], labs: Collection[str]) -> Answer:
    """Leave an exercise open of whose lab something was handed in, but no cell."""
    lab = answer.exercise.partition(".")[0]
    if answer.source or answer.open or not looked_at or (labs and lab not in labs):
        return answer
    if any(id.startswith(f"{lab}.") for each in looked_at for id in each.notebook.claims or ()):
        return answer  # this cell alone is missing
    files = [each.file.name for each in looked_at if not labs or lab in each.labs]
    names = ", ".join(files[:3]) + ", …" * (len(files) > 3)
    why = f"No cell of lab {lab} is in what was handed in: {names}."
    return replace(answer, note=why, open=why)


def _lab(labs: Sequence[str]) -> str:
    return f"lab{'s' * (len(labs) > 1)} {', '.join(labs)}"


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
        raise _Unreadable(f"is not a notebook: {_instead(data) or _reason(error)}") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if isinstance(notebook, dict) and cells is None and isinstance(notebook.get("worksheets"), list):
        raise _Unreadable(
            "is not a notebook: it is of the old format 3, which JupyterLab saves anew when it is opened"
        )
    if not isinstance(cells, list):
        raise _Unreadable("is not a notebook: it has no cells")
    return cells


def _instead(data: bytes) -> str:
    """Say what a file is that is no JSON; "" where that is not known."""
    if not data.strip(b"\0"):
        return "it holds nothing but NUL bytes" if data else "it is empty"
    if _MERGE_MARK.search(data):
        return "it has git's merge marks (<<<<<<<), as a merge was not finished"
    for sign, told in _SIGNS.items():
        if data.lstrip()[: len(sign)].lower() == sign:
            return told
    return "it has NUL bytes" if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")) else ""


def _reason(error: Exception) -> str:
    """Say in a few words what is wrong with JSON."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not JSON (byte {error.start} is not {error.encoding})"
    told = "it nests too deep" if isinstance(error, RecursionError) else str(error).partition(";")[0]
    return f"it is not JSON ({told})"


def _few(problems: list[str]) -> tuple[str, ...]:
    """Name the first problems, and the number of the others."""
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], *([f"There are {more} more such problems."] if more > 0 else []))
