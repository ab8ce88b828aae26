"""Who is in the class: GRADES/roster.csv, which an instructor lays there and labkit only reads.

    student,name,github,canvas
    jd123,Jane Doe,janedoe-dev,40561

`student` is the id that grades are to have, `name` a name to show. All other columns hold what the student is
called elsewhere: the name or the number in the names of files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

from grader.model import Graded
from grader.results.written import WrongTable, rows

FILE = "roster.csv"
ID, NAMES = "student", ("name", "full name")  # columns
# Of a submission's identity: by these columns a gradebook finds a student.
_NUMBERS = ("ID", "Anonymous ID", "Identifier")
IN_DOUBT = "in doubt: "  # how intake writes that it cannot be known whose a submission is
_PARTICIPANT = "Participant "  # Moodle's word before its number
_GRADESCOPE = "submission_"  # Gradescope's, before the number that its table of grades has as Submission ID


@dataclass(frozen=True)
class Member:
    """A student of the class: the id, a name to show, and all names that submissions may have."""

    id: str
    name: str
    called: frozenset[str] = field(repr=False)


@dataclass(frozen=True)
class Roster:
    """The class, and whose the submissions are, by the name that intake gave them.

    `absent` have handed in nothing, `strangers` are submissions of nobody in the class, and `doubtful` those
    that could be somebody else's, with the reason. Without a roster all are empty.
    """

    members: tuple[Member, ...] = ()
    owners: Mapping[str, Member] = field(default_factory=dict)
    absent: tuple[Member, ...] = ()
    strangers: tuple[str, ...] = ()
    doubtful: Mapping[str, str] = field(default_factory=dict)


def read(out: Path, submissions: Mapping[str, Mapping[str, str]]) -> Roster:
    """Return the class in the folder of grades `out`, and who has handed in.

    `submissions` has the identity of each submission by its name. Raises WrongTable.
    """
    path = out / FILE
    return _matched(_members(path), submissions) if path.exists() else Roster()


def named(graded: Graded, roster: Roster) -> Graded:
    """Return a submission under the id of its student, with what gradebooks need to find it."""
    member = roster.owners.get(graded.submission.student)
    if member is None:
        return graded
    found = dict(graded.submission.identity)
    by_moodle = graded.submission.student if "Identifier" in found else ""  # which has a person's name there
    name = member.name or by_moodle
    identity = {**found, "Username": member.id} | ({"Full name": name} if name else {})
    if not {"ID", "Anonymous ID"} & set(found):
        identity |= {"Student": name or member.id, "SIS Login ID": member.id}
    return replace(graded, submission=replace(graded.submission, student=member.id, identity=identity))


def _members(path: Path) -> tuple[Member, ...]:
    found: dict[str, Member] = {}
    wrong = []
    for row in rows(path, (ID,)):
        id = row.cells[ID]
        if not id:
            wrong.append(f"line {row.line}, column {ID}: it is empty")
        elif id in found:
            wrong.append(f"line {row.line}, column {ID}: {id!r} stands in a line above, too")
        else:
            called = frozenset(_plain(name) for name in row.cells.values() if name)
            shown = next((name for column in NAMES if (name := row.cells.get(column))), "")
            found[id] = Member(id, shown, called)
    if wrong:
        raise WrongTable(path, wrong)
    return tuple(found.values())


def _matched(members: tuple[Member, ...], submissions: Mapping[str, Mapping[str, str]]) -> Roster:
    by_name: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        for name in member.called:
            by_name[name].append(member)
    of: defaultdict[str, list[str]] = defaultdict(list)  # the submissions of each member
    strangers, doubtful = [], {}
    for student, identity in submissions.items():
        if identity.get("Student", "").startswith(IN_DOUBT):
            continue  # intake has told why
        found = _owners(student, identity, by_name)
        if len(found) > 1:
            some = ", ".join(sorted(found)[:3])
            doubtful[student] = (
                f"{len(found)} students of {FILE} are called so: {some}{', …' * (len(found) > 3)}"
            )
        elif found:
            of[found.pop()].append(student)
        else:
            strangers.append(student)
    owners = {}
    for member in members:
        mine = of.get(member.id, [])
        if len(mine) == 1:
            owners[mine[0]] = member
        for student in mine if len(mine) > 1 else ():
            doubtful[student] = f"{len(mine)} submissions are of {member.id}: {', '.join(sorted(mine))}"
    absent = tuple(member for member in members if member.id not in of)
    return Roster(members, owners, absent, tuple(strangers), doubtful)


def _owners(student: str, identity: Mapping[str, str], by_name: Mapping[str, list[Member]]) -> set[str]:
    """Return the ids of the members that a submission may be of: a number tells more than a name."""
    numbers = [identity[column] for column in _NUMBERS if column in identity]
    plain = [number.removeprefix(_PARTICIPANT) for number in numbers]
    own = _plain(student)
    for names in ([*numbers, *plain], [own], [own.removeprefix(_GRADESCOPE)]):
        if found := {member.id for name in names for member in by_name.get(_plain(name), ())}:
            return found
    # GitHub Classroom names a repository lab-02-octocat; a user name may have a - itself: the longest counts
    ends = sorted((name for name in by_name if own.endswith(f"-{name}")), key=len)
    return {member.id for name in ends[-1:] for member in by_name[name]}


def _plain(name: str) -> str:
    """Return a name as it is compared: capitals, blanks and forms of a letter do not tell names apart."""
    return " ".join(normalize("NFKC", name).casefold().split())


def called(students: Iterable[str], roster: Roster) -> dict[str, str]:
    """Return the submission's name for each name by which an instructor may call it: its own, or the id."""
    own = {student: student for student in students}
    return own | {member.id: student for student, member in roster.owners.items()}
