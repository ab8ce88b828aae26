"""Write all that is made of stored results when a class is graded.

GRADES/grades.csv             and the other tables: results/tables.py
GRADES/manifest.json          what took part: results/manifest.py
GRADES/errors.txt             the grader's own errors, for instructors; absent if there were none
GRADES/feedback/<slug>.html   one page per student, and GRADES/overview.html: pages/
GRADES/feedback-moodle.zip    the same pages for Moodle and Canvas: results/sent_back.py

An instructor may lay overrides.csv and roster.csv there, which are read at every run: results/by_hand.py and
results/roster.py.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader import pages, sent_back
from grader.intake.labs import labs
from grader.model import Graded
from grader.results import by_hand, manifest, roster
from grader.results.by_hand import Overrides
from grader.results.manifest import Grading
from grader.results.roster import Roster
from grader.results.scores import ERRORS, Remark, Scores
from grader.results.store import Store
from grader.results.tables import Tables, cell
from grader.text import clean, one_line
from labkit.course.exercise import Exercise

MOST_ERROR = 20_000  # characters
BY_INSTRUCTOR = (by_hand.FILE, roster.FILE)  # files in the folder of grades that labkit only reads


@dataclass(frozen=True)
class ByInstructor:
    """What an instructor has laid beside the grades: points by hand, and the class."""

    overrides: Overrides = field(default_factory=dict)
    roster: Roster = field(default_factory=Roster)

    def final(self, graded: Graded) -> Graded:
        """Return a submission with the points that count, under the id of its student."""
        return roster.named(by_hand.applied(graded, self.overrides), self.roster)

    def shown(self, student: str) -> str:
        """Return the id of the student whose a submission is, or else the submission's name."""
        owner = self.roster.owners.get(student)
        return owner.id if owner else student


@dataclass(frozen=True)
class Summary:
    """How a run went: submissions, those graded in full, those to be graded again; the overview, the
    numbers.

    Of the class, `absent` have handed in nothing; `strangers` are submissions of which it is not known whose
    they are. `by_hand` counts the exercises with points by hand, and `regraded` has the points before and now
    of those that were judged again by other rules.
    """

    submissions: int
    graded: int
    to_regrade: int
    overview: Path
    scores: Scores = field(repr=False)
    absent: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    by_hand: int = 0
    regraded: tuple[tuple[float, float], ...] = ()


def by_instructor(
    out: Path, submissions: Mapping[str, Mapping[str, str]], exercises: Mapping[str, Exercise]
) -> ByInstructor:
    """Read what an instructor has laid into the folder of grades `out`.

    `submissions` has the identity of each by its name. Raises WrongTable, which says what is wrong where.
    """
    whose = roster.read(out, submissions)
    called = roster.called(submissions, whose)
    written: dict[str, list[str]] = {}
    for name, student in called.items():
        written.setdefault(cell(name), []).append(student)  # as grades.csv has it
    called = {name: found[0] for name, found in written.items() if len({*found}) == 1} | called
    absent = [member.id for member in whose.absent]
    return ByInstructor(by_hand.read(out, called, exercises, absent), whose)


def write_all(
    store: Store, run: Grading, students: Collection[str], given: ByInstructor | None = None
) -> Summary:
    """Make tables, manifest and pages of what is stored of these students, of whom some may have no
    results. `given` is what an instructor has laid beside them.
    """
    given = given or ByInstructor()
    store.out.mkdir(parents=True, exist_ok=True)
    scores = Scores(labs(store.exercises, run.solved), absent=len(given.roster.absent))
    without, hands, regraded = set(students), 0, []

    def finals() -> Iterator[Graded]:
        return map(given.final, store.of(students))

    with Tables(store.out, scores.labs) as tables:
        for graded in store.of(students):
            without.discard(graded.submission.student)
            final = given.final(graded)
            scores.add(final)
            tables.add(final)
            hands += sum(bool(result.by_hand) for result in final.results)
            points = [(result.before, result.points) for result in graded.results]
            regraded += [(old, now) for old, now in points if old is not None and now is not None]
            _remark(scores, given, graded.submission.student)
            if given.roster.members:
                missing = [lab for lab in scores.labs if lab.number not in final.submission.labs]
                name = final.submission.identity.get("Full name", "")
                tables.absent(final.submission.student, name, missing)
        for student in sorted(without):
            scores.leave_out(given.shown(student))
            tables.leave_out(given.shown(student))
        for member in given.roster.absent:
            tables.absent(member.id, member.name, scores.labs)
    _write_errors(store, students)
    overview = pages.write_all(store.out, scores, run, finals)
    zips = sent_back.write(store.out, finals())
    manifest.write(store.out, scores, run, finals, [*tables.paths, *zips])
    absent = tuple(member.id for member in given.roster.absent)
    graded_in_full = scores.students - scores.waiting
    return Summary(
        *(scores.students, graded_in_full, scores.waiting, overview, scores),
        absent=absent,
        strangers=(*given.roster.strangers, *given.roster.doubtful),
        by_hand=hands,
        regraded=tuple(regraded),
    )


def _remark(scores: Scores, given: ByInstructor, student: str) -> None:
    """Remark whose a submission may be, where the roster does not tell."""
    if student in given.roster.strangers:
        scores.notes.add(Remark(student, "", f"nobody in {roster.FILE} is called so"))
    if student in given.roster.doubtful:
        scores.notes.add(Remark(student, "", given.roster.doubtful[student]))


def _write_errors(store: Store, students: Collection[str]) -> None:
    """Write each different error of the grader once per submission, below the exercises that met it."""
    path = store.out / ERRORS
    path.unlink(missing_ok=True)
    for graded in store.of(students):
        met: dict[str, list[str]] = {}
        for result in graded.results:
            if result.inside:
                met.setdefault(result.inside, []).append(result.exercise)
        if met:
            with path.open("a", encoding="utf-8") as file:
                for inside, exercises in met.items():
                    who = f"{one_line(graded.submission.student)}: {', '.join(exercises)}"
                    file.write(f"{who}\n\n{clean(inside[-MOST_ERROR:]).strip()}\n\n\n")
