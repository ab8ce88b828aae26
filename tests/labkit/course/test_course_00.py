"""Checks of notebook 00: what students start from and typical mistakes fail, with words that help."""

import re

import nbformat
from course_tables import (
    SOLUTIONS,
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
    judged,
    released,
)

from labkit.course.exercises import lab_00

# What a student reads who runs the check before changing anything.
STARTERS = {
    "00.1": (2, "256", "6", "4", "(1, 0, 0)", "(0, 0, 0)"),
    "00.2": (1, "out[0, 1]", "-2147483648", "1"),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
WRONG = [
    ("00.1", "guard one too far", 2, "(1, 0, 0)", ("i < n", "i <= n")),
    ("00.1", "block forgotten", 1, "x[0]", ("blockIdx.x * blockDim.x + ", "")),
    ("00.1", "scaled twice", 1, "x[0]", ("a * x[i]", "a * a * x[i]")),
    ("00.2", "columns for rows", 1, lab_00.ROWS, ("row * cols + col]", "col * rows + row]")),
    ("00.2", "rows of another length", 2, lab_00.ROWS, ("row * cols", "row * rows")),
    (
        "00.2",
        "guards exchanged",
        2,
        lab_00.NUMBERED.untouched,
        ("row < rows", "row < cols"),
        ("col < cols)", "col < rows)"),
    ),
    (
        "00.2",
        "x counts rows",
        2,
        lab_00.NUMBERED.untouched,
        ("int col =", "int other ="),
        ("int row =", "int col ="),
        ("int other =", "int row ="),
    ),
    (
        "00.2",
        "a number of 16 bits",
        3,
        "66",
        "100",
        ("= 1000 * row + col", "= (unsigned short)(1000 * row + col)"),
    ),
    ("00.2", "no memory", 1, ("out[row * cols + col]", "*(int*)0")),
    ("00.2", "half a guard", 3, lab_00.OUTSIDE, (" && col < cols", "")),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


INDEX = "if (row < rows && col < cols)\n        out[row * cols + col] = 1000 * row + col;"

# exercise, how it differs, then what to replace in the solution: right, too
OTHERS = [
    ("00.1", "early return", ("if (i < n)\n        x[i] = a * x[i]", "if (i >= n) return;\n    x[i] *= a")),
    ("00.1", "several elements", ("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)")),
    (
        "00.2",
        "early return",
        (INDEX, "if (row >= rows || col >= cols) return;\n    out[row * cols + col] = row * 1000 + col;"),
    ),
    (
        "00.2",
        "one index",
        (INDEX, "int i = col + cols * row;\n    if (row < rows) if (col < cols) out[i] = col + 1000 * row;"),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)


def test_the_answer_that_notebook_00_quotes_is_what_the_check_says():
    notebook = nbformat.read(SOLUTIONS / "00_start_here.ipynb", as_version=4)
    words = next(cell.source for cell in notebook.cells if cell.id == "check-words")
    quoted = re.search(r"```\n(n=1: .*?)\n```", words, re.DOTALL)
    assert judged("00.1", released("00.1")).failure == quoted[1]
