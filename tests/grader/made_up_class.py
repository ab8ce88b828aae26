"""Made-up submissions and their results, drawn from a seed, for the tests of tables and pages."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from grader.model import GRADED, REGRADE, Answer, Graded, Result, Submission
from labkit.course import EXERCISES
from labkit.course.exercise import Exercise
from labkit.course.feedback import FAILED, MET, NOT_JUDGED, Feedback, Line
from labkit.course.notebooks.catalog import read
from labkit.course.notebooks.release import solution, without_solution

SOLVED = Path(__file__).parents[2] / "notebooks" / "solutions"
NAMES = (
    "Anna Grün",
    "bob",
    "=HYPERLINK(1)",
    "Ċarmen O'Hara",
    "<b>dora</b>",
    "魏 五",
    "eve\nfrank",
    "../../grace",
)
FAILURES = (
    "33×20×17, grid (1, 2, 1), block (16, 16, 1)\n"
    "C[0, 16] is 12.5; it should be -3.25. 17 of 561 elements are wrong.",
    "32×48×64\nmemcheck finds: line 7: write of 4 bytes at index 1024 of C, which has 1024 elements\n"
    "    by thread (3, 0, 0) of block (2, 0, 0)\n       7 |     C[row * N + col] = sum;\n"
    "A thread outside C must not write.",
    "line 5 has 16 sectors per request; the goal is at most 4\n"
    "    5 | sum += A[row * K + k] * B[k * N + col];",
)
NOTES = ("", "", "", "", "", "two cells have this exercise; the last one counts", "found by its first line")
INFRASTRUCTURE = "the kernel did not start within 60 s"


@cache
def cells() -> dict[str, str]:
    """The answer cells of the solved notebooks, by exercise."""
    found = {}
    for path in sorted(SOLVED.glob("*.ipynb")):
        for cell in read(path)["cells"]:
            marks = cell["metadata"].get("labkit", {})
            if marks.get("role") == "answer":
                found[marks["exercise"]] = "".join(cell["source"])
    return found


def result(exercise: Exercise, met: int, source: str = "", failure: str = "", note: str = "") -> Result:
    """The result of an answer that meets so many criteria; `met` is -1 where something else failed."""
    if met < 0:
        lines = tuple(Line(each.text, NOT_JUDGED) for each in exercise.criteria)
        return Result(exercise.id, REGRADE, None, exercise.points, lines, INFRASTRUCTURE, note, source)
    states = [MET] * met + [FAILED] * (met < len(exercise.criteria))
    states += [NOT_JUDGED] * (len(exercise.criteria) - len(states))
    lines = tuple(Line(each.text, state) for each, state in zip(exercise.criteria, states, strict=True))
    points = exercise.points_of(Feedback(exercise.title, lines))
    is_full = met == len(exercise.criteria)
    return Result(
        exercise.id, GRADED, points, exercise.points, lines, "" if is_full else failure, note, source
    )


def graded(name: str, labs: tuple[str, ...], random: np.random.Generator) -> Graded:
    """A submission of these labs; skill, failures and what is missing are drawn."""
    skill, answers, results = random.beta(4, 2), {}, []
    for id, exercise in sorted(EXERCISES.items()):
        if id[:2] not in labs:
            continue
        if random.random() < 0.05:
            results.append(result(exercise, 0, failure="there is no cell for it", note="missing"))
            continue
        fails = random.random(len(exercise.criteria)) > 0.5 + 0.5 * skill
        met = -1 if random.random() < 0.01 else int([*fails, True].index(True))
        whole = met == len(exercise.criteria)
        source = (solution if whole else without_solution)(cells()[id])
        note = str(random.choice(NOTES))
        answers[id] = Answer(id, source, note)
        results.append(result(exercise, met, source, str(random.choice(FAILURES)), note))
    files = {f"{lab}.ipynb": hashlib.sha256(f"{name} {lab}".encode()).hexdigest() for lab in labs}
    submission = Submission(name, files, labs, answers)
    return Graded(submission, tuple(results), "bubblewrap", float(random.random()))


def made_up(count: int, labs: tuple[str, ...] = ("02", "03"), seed: int = 7) -> Iterator[Graded]:
    """So many submissions, one after the other. The first have awkward names; some have left out a lab."""
    random = np.random.default_rng(seed)
    for place in range(count):
        name = NAMES[place] if place < len(NAMES) else f"student {place:04}"
        handed_in = tuple(lab for lab in labs if lab == labs[0] or random.random() > 0.1)
        yield graded(name, handed_in, random)


def exercises(*labs: str) -> list[Exercise]:
    """The exercises of these labs."""
    return [exercise for id, exercise in EXERCISES.items() if id[:2] in labs]
