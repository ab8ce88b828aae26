"""Which submissions a folder has, and whose they are: as students, Canvas, Moodle and nbgrader name them.

    doejane_LATE_12345_67890_02_naive_cuda-1.ipynb            a file from Canvas: user, attachment, its name
    LATE_anon_Xk3fP_67890_02_naive_cuda.ipynb                 the same from an anonymous assignment
    Jane Doe_12345_assignsubmission_file/…                    a folder from Moodle; older: with _ at the end
    Jane Doe_12345_assignsubmission_file_02_naive_cuda.ipynb  the same, downloaded without folders
    submission_311/…                                          a folder from Gradescope
    lab-02-octocat/…                                          a repository of GitHub Classroom
    jane/02/02_naive_cuda.ipynb                               nbgrader's folder `submitted`
    jane.ipynb

Names are what students made up: nothing here takes them for more than text. Canvas's forms are those of its
lib/content_zipper.rb, Moodle's those of its mod/assign/classes/downloader.php.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from shlex import quote

from grader.model import IGNORED, File

NOTEBOOK = ".ipynb"
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".gz", ".bz2", ".xz")
HIDDEN = (".", "__MACOSX")  # how names begin that nobody means
BY_HAND = "in the gradebooks it is nobody's; see whose it is, and enter the points by hand."
# Where it is asked whether a folder is a class: so much of it is looked at; so many folders are looked into.
_MOST_LISTED, _MOST_AROUND = 200, 5
_OF_NBGRADER = ("nbgrader_config.py", "gradebook.db", "source", "release")  # beside its folder `submitted`
WHO = ("Student", "SIS Login ID", "Username")  # columns by which a gradebook finds a student without a number

_NUMBER = r"[1-9][0-9]*"
_CANVAS = re.compile(
    rf"(?P<student>\w+?)(?:_LATE)?_(?P<id>{_NUMBER})_(?P<attachment>{_NUMBER})_(?P<file>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CANVAS_ANONYMOUS = re.compile(
    rf"(?:LATE_)?anon_(?P<id>[a-z0-9]+)_(?P<attachment>{_NUMBER})_(?P<file>.+)", re.IGNORECASE | re.DOTALL
)
_MOODLE = re.compile(
    rf"(?P<student>.+?)_(?P<id>{_NUMBER})_assignsubmission_[a-z]+(?:_(?P<file>.*))?", re.DOTALL
)
_GRADESCOPE = re.compile(r"submission_[0-9]+")
# What programs that save a notebook add to its name: an ending that they take it for, the number of a copy.
_NOTEBOOK = re.compile(r"(?P<stem>.*)\.ipynb(?:\.txt|\.json|\.download)*(?: ?\([0-9]+\))?", re.I | re.DOTALL)
# Where this stands twice, a name holds somebody else's number, and nothing says which is whose.
_MOODLE_NUMBER = re.compile(rf"(?<=_){_NUMBER}_assignsubmission_")


class NoSubmissions(ValueError):
    """There is nothing to grade; the message says where it was looked for."""


class TooDeep(NoSubmissions):
    """Submissions lie in folders of the folder that was named; the message names them."""

    def __init__(self, message: str, folders: tuple[Path, ...]) -> None:
        super().__init__(message)
        self.folders = folders


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
    """What a name says: whose it is, and of a file what the student called it.

    `attachment` is Canvas's number of the file: what was handed in later has a larger one. It is 0 elsewhere.
    """

    student: str
    file: str
    identity: tuple[tuple[str, str], ...] = ()
    attachment: int = 0


def found(folder: Path) -> list[Entry]:
    """Find the submissions in a folder, by student. Raises NoSubmissions, and TooDeep."""
    belonging: dict[_Owner | Path, list[Path]] = {}
    for path in _visible(folder):
        if _is_submission(path):
            owner = _owner(path)
            key = _Owner(owner.student, "", owner.identity) if owner.identity else path
            belonging.setdefault(key, []).append(path)
    if not belonging:
        raise NoSubmissions(_nothing(folder))
    _refuse_classes(folder, [path for paths in belonging.values() for path in paths])
    return _with_doubts(_named_apart([(_owner(paths[0]), tuple(paths)) for paths in belonging.values()]))


def overlooked(folder: Path) -> list[File]:
    """List the files in the folder that are not taken for submissions, such as a list of the class."""
    return [
        File(shown(path.name), IGNORED, _stray(path)) for path in _visible(folder) if not _is_submission(path)
    ]


def own_name(path: Path) -> str:
    """Return what the student called a file that lies beside those of others."""
    return _owner(path).file


def attachment(path: Path) -> int:
    """Return Canvas's number of a file, which grows from one attachment to the next; 0 where it has none."""
    return _owner(path).attachment


def is_notebook(name: str) -> bool:
    """Tell whether a name is that of a notebook, maybe with an ending that a browser has added."""
    return _NOTEBOOK.fullmatch(name) is not None


def is_archive(name: str) -> bool:
    """Tell whether a name ends as those of archives do."""
    return name.lower().endswith(ARCHIVES)


def is_hidden(name: str) -> bool:
    """Tell whether nobody means this name, such as .ipynb_checkpoints; a student's in Moodle may be any."""
    return name.startswith(HIDDEN) and (name.startswith("._") or not _MOODLE.fullmatch(name))


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
    return [path for path in paths if not is_hidden(path.name)]


def _nothing(folder: Path) -> str:
    """Say that there is no submission, and what there is instead."""
    told = f"There is no submission in {folder}: a folder or a notebook for each student."
    archives = [path for path in _visible(folder) if is_archive(path.name)]
    if len(archives) == 1 and archives[0].suffix.lower() == ".zip":
        command = f"labkit grade {quote(str(archives[0]))}"
        return f"{told} If the zip in it is the download of a class, name that: {command}"
    if archives:
        names = _several([path.name for path in archives])
        loop = 'for zip in *.zip; do unzip -d "${zip%.zip}" "$zip"; done'
        return f"{told} It has {names}: unpack each into a folder of its own name, such as by {loop}"
    return told


def _stray(path: Path) -> str:
    """Say why a file beside the submissions is none, and what to do if it is one."""
    if is_archive(path.name):
        return "is not unpacked: if it is a student's, unpack it into a folder of the student's name"
    return "is neither a notebook nor a folder"


def _several(names: Sequence[str], most: int = 3) -> str:
    """Name the first of some files or students."""
    return ", ".join([*map(shown, names[:most]), *["…"] * (len(names) > most)])


def _is_submission(path: Path) -> bool:
    """Say whether a path is a submission; a link is one that cannot be read."""
    return path.is_symlink() or path.is_dir() or is_notebook(path.name) or bool(_owner(path).identity)


def _owner(path: Path) -> _Owner:
    name = unicodedata.normalize("NFC", path.name)  # systems differ in which form of a letter they write
    moodle = _MOODLE.fullmatch(name)
    if moodle and len(_MOODLE_NUMBER.findall(name)) == 1:
        number = f"Participant {moodle['id']}"
        student = number if moodle["student"] == "Participant" else moodle["student"]
        return _Owner(student, moodle["file"] or name, (("Identifier", number),))
    if path.is_symlink() or not path.is_dir():
        if not moodle and (anonymous := _CANVAS_ANONYMOUS.fullmatch(name)):
            identity = (("Anonymous ID", anonymous["id"]),)
            return _Owner(
                f"anon_{anonymous['id']}", anonymous["file"], identity, int(anonymous["attachment"])
            )
        if not moodle and (canvas := _CANVAS.fullmatch(name)):
            identity = (("ID", canvas["id"]),)
            return _Owner(canvas["student"], canvas["file"], identity, int(canvas["attachment"]))
        if notebook := _NOTEBOOK.fullmatch(name):
            return _Owner(notebook["stem"], name)
    return _Owner(name, name)


def _refuse_classes(folder: Path, paths: Sequence[Path]) -> None:
    """Raise TooDeep where what stands for a student holds the work of several.

    It does where names of Canvas, Moodle or Gradescope say so. Where students gave the names, a folder may be
    one student with several copies of a notebook; but not where all folders of the class are such, nor where
    the folder is a course of nbgrader's.
    """
    plain = [path for path in paths if _is_folder(path) and not _owner(path).identity]
    is_download = any(_owner(path).identity for path in paths)
    classes = [inner for path in plain if (inner := _class_within(path, fewest=1 if is_download else 2))]
    if any((folder / name).exists() for name in _OF_NBGRADER) and folder / "submitted" in plain:
        classes = [folder / "submitted"]
    if not classes and len(plain) == len(paths):
        copies = list(takewhile(bool, map(_copies_within, plain)))
        classes = [each for each in copies if each] if len(copies) == len(plain) else []
    if classes:
        raise TooDeep(_too_deep(folder, classes), tuple(classes))


def _too_deep(folder: Path, classes: Sequence[Path]) -> str:
    first = classes[0]
    if len(classes) == 1:
        inside = _several([path.name for path in _listed(first)])
        return (
            f"The submissions are not in {folder} but deeper, in {first} ({inside}): all would count as one "
            f"student's. Name that folder: labkit grade {quote(str(first))}"
        )
    names = ", ".join(map(str, classes[:5])) + ", …" * (len(classes) > 5)
    return (
        f"{folder} has folders with the submissions of several students: {names}. Each folder would count as "
        f"one student. Grade them one by one, labkit grade {quote(str(first))}, or move what is in them into "
        "one folder."
    )


def _class_within(folder: Path, fewest: int, levels: int = 3) -> Path | None:
    """Return the folder, this or one below, whose names are those of at least `fewest` students of an LMS."""
    below = _listed(folder)
    owners = {owner.student for path in below if (owner := _owner(path)).identity}
    owners |= {path.name for path in below if _GRADESCOPE.fullmatch(path.name) and _is_folder(path)}
    if len(owners) >= fewest:
        return folder
    folders = [path for path in below if _is_folder(path)]
    if levels == 1 or len(folders) > _MOST_AROUND:
        return None
    return next((inner for path in folders if (inner := _class_within(path, fewest, levels - 1))), None)


def _copies_within(folder: Path, levels: int = 3) -> Path | None:
    """Return the folder, this or the only one below, in which several folders have notebooks of one name."""
    below = _listed(folder)
    folders = [path for path in below if _is_folder(path)]
    if len(folders) == 1 == len(below):
        return _copies_within(folders[0], levels - 1) if levels > 1 else None
    names = Counter(name for path in folders for name in _notebooks_below(path))
    return folder if any(count > 1 for count in names.values()) else None


def _notebooks_below(folder: Path) -> set[str]:
    """Return the names of the notebooks in a folder and in its folders."""
    below = _listed(folder)
    deeper = [each for path in below if _is_folder(path) for each in _listed(path)]
    return {path.name for path in (*below, *deeper) if is_notebook(path.name)}


def _listed(folder: Path) -> list[Path]:
    """Return some of what is in a folder, in order: students may put anything there, and any number."""
    try:
        paths = sorted(islice(folder.iterdir(), _MOST_LISTED))
    except OSError:
        return []
    return [path for path in paths if not is_hidden(path.name)]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


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
            if not ids:  # else the numbers of Canvas or Moodle tell them apart
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
