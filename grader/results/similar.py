"""Answers that are alike, as a list for a person to read: a tool cannot say who has copied, or whether.

Two answers are compared by runs of TOGETHER tokens, in which names, numbers and texts are all the same, so
that renaming changes nothing; comments and blanks are left out. What was handed out is taken off, and so is
what many of the class have: a short exercise has few right answers. (This is the fingerprint of MOSS, of
Schleimer, Wilkerson and Aiken's "Winnowing", without the winnowing: answers are short.)
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Literal, Name

from grader.model import Graded
from grader.results.tables import cell

FILE = "similar.csv"
COLUMNS = ("student", "other", "exercise", "share", "runs", "exercises_alike")
LEXERS = {"cuda": "cuda", "c": "c", "answer": "python", "program": "cuda"}  # by magic
LONGEST = 50_000  # characters of an answer that are compared
TOGETHER = 12  # tokens of a run: about a line and a half
FEWEST_RUNS = 30  # shared by two answers before they are listed: some 20 tokens
LEAST_SHARE = 0.7  # of the runs of the shorter one
COMMON = 0.1  # of the class: a run that more have, and more than MOST_IN_COMMON, is the exercise's own
MOST_IN_COMMON = 9

Runs = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Pair:
    """Two students whose answers to an exercise are alike: `share` of the shorter one's runs are in both."""

    student: str
    other: str
    exercise: str
    share: float
    runs: int


def pairs(
    submissions: Iterable[Graded], magics: Mapping[str, str], handed_out: Mapping[str, Iterable[str]]
) -> list[Pair]:
    """Return the pairs of a class; who is alike in most exercises comes first.

    `magics` has the magic of each exercise that is compared, and `handed_out` what students start from.
    """
    answers: defaultdict[str, dict[str, Runs]] = defaultdict(dict)
    given: dict[str, Runs] = {
        exercise: frozenset().union(*(_runs(source, magic) for source in handed_out.get(exercise, ())))
        for exercise, magic in magics.items()
    }
    for graded in submissions:
        for exercise, magic in magics.items():
            answer = graded.submission.answers.get(exercise)
            if answer and answer.source:
                own = _runs(answer.source, magic) - given[exercise]
                answers[exercise][graded.submission.student] = own
    found = [pair for exercise, own in answers.items() for pair in _of_exercise(exercise, own)]
    count = Counter((pair.student, pair.other) for pair in found)
    return sorted(
        found, key=lambda pair: (-count[pair.student, pair.other], pair.student, pair.other, pair.exercise)
    )


def write(out: Path, found: list[Pair]) -> Path:
    """Write the pairs into the folder of grades `out`, and return the table's path."""
    count = Counter((pair.student, pair.other) for pair in found)
    path = out / FILE
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for pair in found:
            who = cell(pair.student), cell(pair.other)
            table.writerow(
                (*who, pair.exercise, f"{pair.share:.2f}", pair.runs, count[pair.student, pair.other])
            )
    return path


def _of_exercise(exercise: str, answers: Mapping[str, Runs]) -> Iterator[Pair]:
    having: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for student in sorted(answers):
        for run in answers[student]:
            having[run].append(student)
    most = max(MOST_IN_COMMON, COMMON * len(answers))
    rare = {run: students for run, students in having.items() if len(students) <= most}
    own = Counter(student for students in rare.values() for student in students)
    shared = Counter(pair for students in rare.values() for pair in combinations(students, 2))
    for (student, other), runs in shared.items():
        share = runs / min(own[student], own[other])
        if runs >= FEWEST_RUNS and share >= LEAST_SHARE:
            yield Pair(student, other, exercise, share, runs)


def _runs(source: str, magic: str) -> Runs:
    """Return all runs of tokens in an answer."""
    kinds = list(_normalised(source, magic))
    return frozenset(tuple(kinds[at : at + TOGETHER]) for at in range(len(kinds) - TOGETHER + 1))


def _normalised(source: str, magic: str) -> Iterator[str]:
    """Yield the tokens below the magic line, all names, numbers and texts alike."""
    body = source.partition("\n")[2] if source.startswith("%%") else source
    for kind, text in get_lexer_by_name(LEXERS[magic]).get_tokens(body[:LONGEST]):
        if kind in Comment.Preproc:
            yield from text.split()
        elif kind in Comment or not text.strip():
            continue
        elif kind in Name:
            yield "name"
        else:
            yield "value" if kind in Literal else text.strip()
