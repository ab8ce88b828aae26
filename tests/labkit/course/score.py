"""How well exercises are judged: each answer of the tables is tried, and those that are misjudged are named.

    python tests/labkit/course/score.py [LAB …]

Wrong answers are the rows of WRONG in test_course_NN.py, each mistake once. Right ones are the solutions and
the rows of OTHERS. LAB is a number such as 02; without one all labs are tried, which takes some 17 minutes on
one core. The exit code is 1 if an answer is misjudged.
"""

import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from typing import NamedTuple

from course_tables import SOLVED, judged, mistakes, mutant, rows


class Answer(NamedTuple):
    """An answer to an exercise: what it is, its cell, and whether it is right."""

    exercise: str
    name: str
    cell: str
    is_right: bool

    @property
    def lab(self) -> str:
        return self.exercise[:2]


def answers() -> list[Answer]:
    """All answers of the tables. Two rows may look at one mistake, which is one answer."""
    solved = [Answer(id, "the solution", cell, True) for id, cell in SOLVED.items()]
    others = [Answer(id, name, mutant(id, *pairs), True) for id, name, *pairs in rows("OTHERS")]
    wrong = [
        Answer(row.exercise, row.name, mutant(row.exercise, *row.replacements), False) for row in mistakes()
    ]
    once: dict[tuple[str, str], Answer] = {}
    for each in (*solved, *others, *wrong):
        once.setdefault((each.exercise, each.cell), each)
    return sorted(once.values(), key=lambda each: each.exercise)


def is_judged_well(answer: Answer) -> bool:
    """Whether the check passes a right answer, or refuses a wrong one; an error of its own does neither."""
    try:
        with redirect_stdout(StringIO()):  # compilers warn of what a mistake leaves unused
            return judged(answer.exercise, answer.cell).ok is answer.is_right
    except Exception as error:
        print(f"\n{answer.exercise} {answer.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return False


def table(tried: Counter[tuple[str, bool]], well: Counter[tuple[str, bool]]) -> str:
    """One line per lab, and one for all."""
    labs = sorted({lab for lab, _ in tried})
    total = {"all": labs} if len(labs) > 1 else {}
    lines = ["| lab | wrong answers refused | right answers passed |", "| --- | ---: | ---: |"]
    for name, of in ({lab: [lab] for lab in labs} | total).items():
        cells = (
            f"{sum(well[lab, right] for lab in of)} of {sum(tried[lab, right] for lab in of)}"
            for right in (False, True)
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(labs: list[str]) -> int:
    """Try the answers of these labs, or of all; print the table. Return the exit code."""
    asked = [each for each in answers() if not labs or each.lab in labs]
    if unknown := set(labs) - {each.lab for each in asked}:
        print(f"there is no lab {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    tried, well, misjudged = Counter[tuple[str, bool]](), Counter[tuple[str, bool]](), list[Answer]()
    for number, answer in enumerate(asked, 1):
        print(
            f"\r{number} of {len(asked)}: {answer.exercise} {answer.name:.60}\x1b[K", end="", file=sys.stderr
        )
        kind = answer.lab, answer.is_right
        tried[kind] += 1
        if is_judged_well(answer):
            well[kind] += 1
        else:
            misjudged.append(answer)
    print("\r\x1b[K", end="", file=sys.stderr)
    print(table(tried, well))
    for answer in misjudged:
        kind = "right, and refused" if answer.is_right else "wrong, and passed"
        print(f"misjudged: {answer.exercise} {answer.name} ({kind})")
    return 1 if misjudged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
