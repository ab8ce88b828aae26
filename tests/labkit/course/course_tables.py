"""What the tests of the checks share: the cells of the solved notebooks, and what is made of them.

Each lab has a test_course_NN.py with three tables. STARTERS holds what an unsolved cell is told, WRONG
mistakes, and OTHERS further right answers. What is told is the number of the criterion that fails, from 1,
and where one criterion can say different things, what it must say: a hint, by its name in labkit, or facts
that the check works out, such as "C[31, 0]" or "45". So a sentence of labkit may be worded anew, and a row
fails where another criterion, or none, finds the mistake.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import labkit
from labkit import program_magic
from labkit.course import EXERCISES, magic
from labkit.course.feedback import FAILED
from labkit.course.notebooks import release
from simt.programs.toolkit import NoCompiler, host_compiler, toolkit


@cache
def builds_programs():
    """Say whether this machine builds whole programs: some have no nvcc, or no C++ compiler."""
    try:
        return bool(toolkit() and host_compiler())
    except NoCompiler:
        return False


NEEDS_COMPILERS = pytest.mark.skipif(not builds_programs(), reason="nvcc or a C++ compiler is missing")


def exercises(slow=()):
    """The ids of all exercises as parameters; those with programs are skipped where none can be built."""
    return [
        pytest.param(
            id,
            marks=[NEEDS_COMPILERS] * (EXERCISES[id].magic == "program") + [pytest.mark.slow] * (id in slow),
        )
        for id in sorted(EXERCISES)
    ]


SOLUTIONS = Path(__file__).parents[3] / "notebooks" / "solutions"


def cells(role):
    """Exercise id -> the cell of its solved notebook with this role: answer or check."""
    found = {}
    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            about = cell.metadata.get("labkit", {})
            if about.get("role") == role:
                found[about["exercise"]] = cell
    return found


SOLVED = {exercise: cell.source for exercise, cell in cells("answer").items()}


def answer_of(exercise, source):
    """What `%%cuda` or `%%c` makes of the cell, or `%%answer`."""
    magic_line, _, cell = source.partition("\n")
    if magic_line.startswith("%%answer "):
        return function_of(cell)
    if magic_line.startswith("%%program "):
        return program_magic.compile_program(cell, program_magic.read_line(magic_line[10:]).options)
    options = [f"-D{macro}" for macro in re.findall(r"-D *(\S+)", magic_line)]
    if magic_line.startswith("%%c "):
        return magic.compile_c_cell(cell, options, wanted=exercise)
    return magic.compile_cell(cell, options, [], wanted="matmul")


def judged(exercise, source):
    """Check the answer of the cell."""
    return labkit.check(exercise, answer_of(exercise, source))


def function_of(cell):
    """The last function of a cell of `%%answer`, run as there, in a namespace like a notebook's."""
    shell = InteractiveShell()
    program_magic.load_ipython_extension(shell)
    shell.user_ns |= {"labkit": labkit, "np": np}
    shell.run_cell_magic("answer", "99.1", cell)
    return magic.answers.pop("99.1")


def solved(exercise):
    """The solved cell."""
    assert exercise in SOLVED, f"notebooks/solutions has no answer cell of {exercise}"
    return SOLVED[exercise]


def mutant(exercise, *replacements):
    """The solved cell with parts replaced; each must be there."""
    source = solved(exercise)
    for old, new in replacements:
        assert old in source, old
        source = source.replace(old, new)
    return source


def released(exercise):
    """What a student starts from."""
    return release.without_solution(solved(exercise))


# The exercises whose text says to start from the answer of an earlier one.
CONTINUED = {
    **{
        "01.4": "01.1",
        "02.3": "02.2",
        "03.2": "03.1",
        "03.3": "03.2",
        "03.5": "03.2",
        "05.2": "05.1",
        "05.3": "05.2",
    },
    **{"06.3": "06.1", "08.1": "07.2", "08.2": "08.1", "08.5": "08.2", "08.6": "08.5", "08.7": "08.5"},
}


def started(exercise):
    """What a student has before the work of the exercise: the released cell, or an earlier answer in it."""
    cell, earlier = released(exercise), CONTINUED.get(exercise)
    return cell.partition("\n")[0] + "\n" + SOLVED[earlier].partition("\n")[2] if earlier else cell


class Told(NamedTuple):
    """What a check must tell: the number of the criterion that fails, from 1, and hints and facts."""

    criterion: int
    said: tuple[str, ...] = ()

    def compare(self, feedback):
        """Fail unless the feedback tells this."""
        assert failed_criterion(feedback) == self.criterion, feedback
        for each in self.said:
            assert says(feedback.failure, each), f"{each!r} is not said.\n{feedback}"


class Mistake(NamedTuple):
    """A row of WRONG: the exercise, what is wrong, what is told, and what to replace in the solution."""

    exercise: str
    name: str
    told: Told
    replacements: tuple[tuple[str, str], ...]


def failed_criterion(feedback):
    """The number of the criterion that an answer does not meet, from 1; 0 where it meets all."""
    states = [line.state for line in feedback.lines]
    return states.index(FAILED) + 1 if FAILED in states else 0


def says(failure, said):
    """Whether a failure has these words or this number, and not as a part of others."""
    return re.search(rf"(?<![\w.,]){re.escape(said.strip())}(?!\w|[.,]\d)", failure) is not None


def mistake(row):
    """A row (exercise, what is wrong, criterion, hints and facts …, replacements …) of WRONG."""
    exercise, name, criterion, *rest = row
    said = tuple(each for each in rest if isinstance(each, str))
    return Mistake(exercise, name, Told(criterion, said), tuple(rest[len(said) :]))


def checks_of_starters(starters):
    """A test: what a student starts from is not solved, and the check tells why."""

    @pytest.mark.parametrize("exercise", sorted(starters))
    def test(exercise):
        told_of_starter(starters[exercise]).compare(judged(exercise, started(exercise)))

    return test


def told_of_starter(entry):
    """An entry of STARTERS, which is a criterion's number, or a tuple of it and what is said."""
    return Told(entry) if isinstance(entry, int) else Told(entry[0], entry[1:])


def cases(rows):
    """Rows (exercise, name, …) as cases."""
    return [pytest.param(exercise, given, id=f"{exercise} {name}") for exercise, name, *given in rows]


def checks_of_mistakes(wrong):
    """A test of rows of WRONG, see `mistake`."""

    @pytest.mark.parametrize("row", [*map(mistake, wrong)], ids=lambda row: f"{row.exercise} {row.name}")
    def test(row):
        row.told.compare(judged(row.exercise, mutant(row.exercise, *row.replacements)))

    return test


def checks_of_other_answers(others):
    """A test of rows (exercise, how it differs, replacements in the solution …): right answers, too."""

    @pytest.mark.parametrize(("exercise", "replacements"), cases(others))
    def test(exercise, replacements):
        feedback = judged(exercise, mutant(exercise, *replacements))
        assert feedback.ok, feedback

    return test


@cache
def rows(name):
    """All rows of the tables WRONG or OTHERS of all labs, the exercise first; of STARTERS its items."""
    labs = sorted(Path(__file__).parent.glob("test_course_[0-9][0-9].py"))
    tables = [getattr(import_module(lab.stem), name) for lab in labs]
    return [row for table in tables for row in (table.items() if isinstance(table, dict) else table)]


def mistakes():
    """All rows of WRONG."""
    return [mistake(row) for row in rows("WRONG")]
