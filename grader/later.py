"""What is done with a folder of grades later: `labkit similar` and `labkit forget` judge nothing."""

from collections.abc import Iterable
from pathlib import Path

from grader.intake import handed_out
from grader.judging import judge
from grader.model import Submission
from grader.report import ByInstructor, by_instructor, write_all
from grader.results import by_hand, roster, similar
from grader.results.similar import Pair
from grader.results.store import Store
from grader.results.tables import cell
from grader.results.written import rows, without
from grader.run import NotGraded, run_of, settings_of
from grader.text import write_whole
from labkit.course.notebooks import catalog
from labkit.course.notebooks.release import SOLUTIONS, solution


def alike(out: Path) -> tuple[Path, list[Pair]]:
    """List the answers in a folder of grades that are alike: the table's path, and the pairs.

    Raises NotGraded and WrongTable.
    """
    store, submissions = _stored(out)
    magics = {exercise.id: exercise.magic for exercise in store.exercises}
    given = ByInstructor(roster=roster.read(out, {name: each.identity for name, each in submissions.items()}))
    found = similar.pairs(map(given.final, store.of(submissions)), magics, _of_the_course(magics))
    return similar.write(out, found), found


def _of_the_course(exercises: Iterable[str]) -> dict[str, list[str]]:
    """Return what is nobody's own: the cells as they are handed out, and the course's solutions."""
    found = {exercise: [*handed_out.cells().get(exercise, ())] for exercise in exercises}
    for path in catalog.notebooks(catalog.shipped() / SOLUTIONS):
        for each in catalog.read(path)["cells"]:
            about = each.get("metadata", {}).get("labkit", {})
            if about.get("role") == "answer" and about.get("exercise") in found:
                found[about["exercise"]].append(solution("".join(each.get("source", ""))))
    return found


def forget(out: Path, student: str) -> list[str]:
    """Remove a student from the folder of grades `out`; return what the instructor is to remove by hand.

    `student` is as in grades.csv. The rows in overrides.csv go, too. Raises NotGraded where there is no such
    student, and WrongTable.
    """
    store, submissions = _stored(out)
    exercises = {exercise.id: exercise for exercise in store.exercises}
    given = by_instructor(out, {name: each.identity for name, each in submissions.items()}, exercises)
    found = [name for name in submissions if student in (name, given.shown(name))]
    if not found and store.has(student):  # a file that is damaged, or of another labkit
        found = [student]
    if not found:
        known = ", ".join(sorted(map(given.shown, submissions))[:20])
        raise NotGraded(f"{out} has nothing of {student!r}. It has {known or 'nobody'}.")
    shown = {*found, *map(given.shown, found), *map(cell, found)}
    overrides = out / by_hand.FILE
    if overrides.exists():
        mine = [row for row in rows(overrides, by_hand.COLUMNS) if row.cells["student"] in shown]
        write_whole(overrides, without(overrides, mine))
    for name in found:
        store.remove(name)
    (out / similar.FILE).unlink(missing_ok=True)
    others = {name: each.identity for name, each in submissions.items() if name not in found}
    write_all(store, run_of(settings_of(out)), list(others), by_instructor(out, others, exercises))
    handed_in = [name for each in found if each in submissions for name in submissions[each].sent_as]
    in_roster = (
        [f"the line of {student} in {out / roster.FILE}"] if given.roster.owners.keys() & {*found} else []
    )
    return [*(f"{name} in the folder of submissions" for name in handed_in), *in_roster]


def _stored(out: Path) -> tuple[Store, dict[str, Submission]]:
    """Return the results in a folder of grades, and the submissions that have any, by name."""
    settings = settings_of(out)
    store = Store(out, settings.seed, judge.asked(settings.labs).values())
    return store, {name: graded.submission for name in store.students() if (graded := store.get(name))}
