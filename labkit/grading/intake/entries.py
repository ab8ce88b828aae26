"""Which submissions a folder has, and whose they are: as students, Canvas, Moodle and nbgrader name them.

    doejane_LATE_12345_67890_02_naive_cuda-1.ipynb            a file from Canvas: user, attachment, its name
    LATE_anon_Xk3fP_67890_02_naive_cuda.ipynb                 the same from an anonymous assignment
    Jane Doe_12345_assignsubmission_file/…                    a folder from Moodle; older: with _ at the end
    Jane Doe_12345_assignsubmission_file_02_naive_cuda.ipynb  the same, downloaded without folders
    jane/02/02_naive_cuda.ipynb                               nbgrader's folder `submitted`
    jane.ipynb

Names are what students made up: nothing here takes them for more than text. Canvas's forms are those of its
lib/content_zipper.rb, Moodle's those of its mod/assign/classes/downloader.php.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

NOTEBOOK = ".ipynb"
HIDDEN = (".", "__MACOSX")  # how names begin that nobody means
BY_HAND = "in the gradebooks it is nobody's; see whose it is, and enter the points by hand."
WHO = ("Student", "SIS Login ID", "Username")  # columns by which a gradebook finds a student without a number

_NUMBER = r"[1-9][0-9]*"
_CANVAS = re.compile(
    rf"(?P<student>\w+?)(?:_LATE)?_(?P<id>{_NUMBER})_{_NUMBER}_(?P<file>.+)", re.IGNORECASE | re.DOTALL
)
_CANVAS_ANONYMOUS = re.compile(
    rf"(?:LATE_)?anon_(?P<id>[a-z0-9]+)_{_NUMBER}_(?P<file>.+)", re.IGNORECASE | re.DOTALL
)
_MOODLE = re.compile(
    rf"(?P<student>.+?)_(?P<id>{_NUMBER})_assignsubmission_[a-z]+(?:_(?P<file>.*))?", re.DOTALL
)
# Where this stands twice, a name holds somebody else's number, and nothing says which is whose.
_MOODLE_NUMBER = re.compile(rf"(?<=_){_NUMBER}_assignsubmission_")


class NoSubmissions(ValueError):
    """There is nothing to grade; the message says where it was looked for."""


@dataclass(frozen=True)
class Entry:
    """A submission that nobody has looked into: its files and folders.

    `student` differs from that of every other entry. `identity` is by the gradebook's column, as in
    Submission; `problems` tells in sentences what is odd about the name.
    """

    student: str
    paths: tuple[Path, ...]
    identity: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Owner:
    """What a name says: whose it is, and of a file what the student called it."""

    student: str
    file: str
    identity: tuple[tuple[str, str], ...] = ()


def found(folder: Path) -> list[Entry]:
    """Find the submissions in a folder, by student. Raises NoSubmissions."""
    belonging: dict[_Owner | Path, list[Path]] = {}
    for path in _visible(folder):
        if _is_submission(path):
            owner = _owner(path)
            key = _Owner(owner.student, "", owner.identity) if owner.identity else path
            belonging.setdefault(key, []).append(path)
    if not belonging:
        raise NoSubmissions(f"There is no submission in {folder}: a folder or a notebook for each student.")
    return _with_doubts(_named_apart([(_owner(paths[0]), tuple(paths)) for paths in belonging.values()]))


def overlooked(folder: Path) -> list[str]:
    """List the files in the folder that are not taken for submissions, such as a list of the class."""
    return [shown(path.name) for path in _visible(folder) if not _is_submission(path)]


def own_name(path: Path) -> str:
    """Return what the student called a file that lies beside those of others."""
    return _owner(path).file


def is_notebook(name: str) -> bool:
    """Tell whether a name ends as those of notebooks do."""
    return name.lower().endswith(NOTEBOOK)


def shown(name: str) -> str:
    """Return a file's name in a form that can be printed: NFC, with escapes such as \\x0a or \\udcff."""
    return unicodedata.normalize("NFC", "".join(map(_shown, name)))


def _shown(letter: str) -> str:
    if unicodedata.category(letter) == "Zs":  # also the wide space of Chinese and Japanese names
        return " "
    return letter if letter.isprintable() and letter != "\\" else letter.encode("unicode_escape").decode()


def _visible(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise NoSubmissions(f"{folder} cannot be read: {error.strerror}.") from None
    return [path for path in paths if not path.name.startswith(HIDDEN)]


def _is_submission(path: Path) -> bool:
    """Say whether a path is a submission; a link is one that cannot be read."""
    return path.is_symlink() or path.is_dir() or is_notebook(path.name) or bool(_owner(path).identity)


def _owner(path: Path) -> _Owner:
    name = path.name
    moodle = _MOODLE.fullmatch(name)
    if moodle and len(_MOODLE_NUMBER.findall(name)) == 1:
        number = f"Participant {moodle['id']}"
        student = number if moodle["student"] == "Participant" else moodle["student"]
        return _Owner(student, moodle["file"] or name, (("Identifier", number),))
    if not moodle and (path.is_symlink() or not path.is_dir()):
        if anonymous := _CANVAS_ANONYMOUS.fullmatch(name):
            return _Owner(f"anon_{anonymous['id']}", anonymous["file"], (("Anonymous ID", anonymous["id"]),))
        if canvas := _CANVAS.fullmatch(name):
            return _Owner(canvas["student"], canvas["file"], (("ID", canvas["id"]),))
    if is_notebook(name) and (path.is_symlink() or not path.is_dir()):
        return _Owner(name[: -len(NOTEBOOK)], name)
    return _Owner(name, name)


def _named_apart(owned: list[tuple[_Owner, tuple[Path, ...]]]) -> list[Entry]:
    """Give entries different students: equal names get the number of Canvas or Moodle, or a count."""
    natural = [shown(owner.student).strip() or shown(paths[0].name) for owner, paths in owned]
    counts = Counter(natural)
    taken = {name for name, count in counts.items() if count == 1}
    entries = []
    for student, (owner, paths) in zip(natural, owned, strict=True):
        name = student
        problems: tuple[str, ...] = ()
        if counts[student] > 1:
            ids = "".join(f" ({value.removeprefix('Participant ')})" for _, value in owner.identity)
            name, number = student + ids, 2
            while name in taken:
                name, number = f"{student}{ids} ({number})", number + 1
            taken.add(name)
            problems = (
                f"{counts[student]} submissions are called {student}; this is {shown(paths[0].name)}.",
            )
        entries.append(Entry(name, paths, dict(owner.identity), problems))
    return sorted(entries, key=lambda entry: entry.student)


def _with_doubts(entries: list[Entry]) -> list[Entry]:
    """Give those submissions to nobody whose number may be another's, and say so.

    In a gradebook the later row of a number would replace the earlier one.
    """
    claims = Counter(claim for entry in entries for claim in entry.identity.items())
    told = []
    for entry in entries:
        doubts = [
            f"{claims[claim]} submissions have the {' '.join(claim)}: {BY_HAND}"
            for claim in entry.identity.items()
            if claims[claim] > 1
        ]
        if len(_MOODLE_NUMBER.findall(entry.paths[0].name)) > 1:
            doubts.append(f"Its name has the numbers of several students: {BY_HAND}")
        identity = dict.fromkeys(WHO, f"in doubt: {entry.student}") if doubts else entry.identity
        told.append(replace(entry, identity=identity, problems=(*entry.problems, *doubts)))
    return told
