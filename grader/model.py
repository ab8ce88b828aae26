"""What passes between the parts of grading: answers, submissions, and the results of judging them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.course.feedback import Line

# Of a result: points are final; or it must be graded again, for infrastructure failed or what was handed in
# cannot be judged as it is.
GRADED, REGRADE = "graded", "regrade"

# What became of a file that was handed in: its answers count; all of them are as the course hands them out;
# another file's count; it cannot be read, though it may hold answers; nobody expects answers in it.
TAKEN, UNTOUCHED, SUPERSEDED = "taken", "as handed out", "superseded"
UNREADABLE, IGNORED = "unreadable", "ignored"


@dataclass(frozen=True)
class Answer:
    """What a student wrote for an exercise: the cell's text, beginning with its magic line.

    `source` is "" where there is none. `note` tells in a sentence what was odd: missing, duplicated, split,
    renamed. `open` says why it cannot be judged as it is; the exercise then has no points until it can.
    """

    exercise: str
    source: str
    note: str = ""
    open: str = ""


@dataclass(frozen=True)
class File:
    """A file that was handed in, and what became of it: TAKEN, UNTOUCHED, SUPERSEDED, UNREADABLE or IGNORED.

    `name` is below the student's folder. `why` ends the sentence that the name begins; it is "" where there
    is nothing to say. `labs` are those of the exercises that it answers.
    """

    name: str
    fate: str
    why: str = ""
    labs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """A student's submission as it was read.

    `student` is the name of the folder or file; `files` are the notebooks' hashes (SHA-256) by their names,
    "" for what cannot be read; `labs` the notebooks of the course that it has answers of, such as 02;
    `answers` are by exercise. `found` are all its files with what became of them. `problems` tells in
    sentences what is odd.
    `identity` has what Canvas or Moodle call the student, by the gradebook's column. `sent_as` are the names
    of its files and folders as the LMS gave them, and `handed_in` says by lab when, or that the LMS calls it
    late.
    """

    student: str
    files: Mapping[str, str] = field(default_factory=dict)
    labs: tuple[str, ...] = ()
    answers: Mapping[str, Answer] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict)
    found: tuple[File, ...] = ()
    sent_as: tuple[str, ...] = ()
    handed_in: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """How an answer did: GRADED, with its `points` of `most`, or REGRADE, and None for the points.

    `lines` are the criteria with their states, `failure` says why the first that is not met is not (or why
    nothing was judged), and `note` what was odd about the answer. `seconds` is what judging took. `inside`
    is for instructors alone: the error in the grader that this answer met, with its traceback.

    Where an instructor gives the points, `by_hand` is the reason, and `judged` what the grader gave. Where an
    answer has been judged again by other rules, `again` is the reason, and `before` its points until then.
    """

    exercise: str
    state: str
    points: float | None
    most: int
    lines: tuple[Line, ...] = ()
    failure: str = ""
    note: str = ""
    source: str = ""
    seconds: float = 0.0
    inside: str = ""
    by_hand: str = ""
    judged: float | None = None
    again: str = ""
    before: float | None = None


@dataclass(frozen=True)
class Graded:
    """All results of a submission. `isolation` is the tier in which its answers ran."""

    submission: Submission
    results: tuple[Result, ...]
    isolation: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values, to be stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Graded":
        """Make the results from what `as_json` gave."""
        told = dict(stored["submission"])
        told["answers"] = {id: Answer(**answer) for id, answer in told["answers"].items()}
        told |= {name: tuple(told[name]) for name in ("labs", "problems", "sent_as") if name in told}
        files = told.get("found", ())
        told["found"] = tuple(File(**{**each, "labs": tuple(each["labs"])}) for each in files)
        results = tuple(
            Result(**{**result, "lines": tuple(Line(**line) for line in result["lines"])})
            for result in stored["results"]
        )
        return cls(Submission(**told), results, stored["isolation"], stored["seconds"])
