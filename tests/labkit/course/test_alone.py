"""A check judges an answer in Python as the grader has it: its own cell, and the course's imports."""

import re

import pytest
from course_tables import SOLVED

import labkit
from labkit import magic
from labkit.course import BY_ITSELF

EFFICIENCY = """%%answer 04.4
def efficiency(addresses, size):
    {used}
    moved = 32 * len({{address // 32 for address in addresses}})
    return used / moved
"""
RIGHT = "used = size * len(set(addresses))"
HELPER = "def distinct(addresses):\n    return len(set(addresses))"
WITH_HELPER = EFFICIENCY.format(used="used = size * distinct(addresses)")


@pytest.fixture
def run(ipython, monkeypatch, capsys):
    """Run a cell as a notebook does; return what it shows."""
    monkeypatch.setenv("LABKIT_DEVICE", "simt")

    def run_cell(source: str) -> str:
        ipython.run_cell(source, store_history=False)
        return capsys.readouterr().out

    return run_cell


def first_line(feedback) -> int:
    """The line of the cell that a failure names."""
    return int(re.search(r"\bline (\d+):", feedback.failure)[1])


class TestAlone:
    def test_the_right_answer_is_met(self, run):
        run(EFFICIENCY.format(used=RIGHT))
        assert labkit.check("04.4").ok

    def test_a_helper_of_another_cell_is_missing_and_told(self, run):
        run(HELPER)
        run(WITH_HELPER)
        feedback = labkit.check("04.4")
        assert not feedback.ok and first_line(feedback) == 3
        assert "Another cell of this notebook makes distinct" in feedback.failure

    def test_a_helper_of_its_own_cell_is_there(self, run):
        run(WITH_HELPER.replace("%%answer 04.4\n", f"%%answer 04.4\n{HELPER}\n"))
        assert labkit.check("04.4").ok

    @pytest.mark.parametrize(
        ("cell", "used"),
        [
            ("from math import prod", "used = prod((size, len(set(addresses))))"),
            ("ONE = 1", "used = ONE * size * len(set(addresses))"),
            ("distinct = set", "used = size * len(distinct(addresses))"),
        ],
    )
    def test_imports_and_constants_of_another_cell_are_missing(self, run, cell, used):
        run(cell)
        run(EFFICIENCY.format(used=used))
        feedback = labkit.check("04.4")
        assert not feedback.ok and cell.split()[-1 if "import" in cell else 0] in feedback.failure
        assert "Another cell" in feedback.failure

    def test_a_name_that_nobody_makes_is_an_error_like_any_other(self, run):
        run(WITH_HELPER)
        feedback = labkit.check("04.4")
        assert "'distinct' is not defined" in feedback.failure and "Another cell" not in feedback.failure

    def test_what_runs_outside_the_function_needs_the_other_cell_too(self, run):
        run("ONE = 1")
        run(EFFICIENCY.format(used=RIGHT).replace("def", "two = 2 * ONE\ndef", 1))
        feedback = labkit.check("04.4")
        assert [line.text for line in feedback.lines] == [BY_ITSELF]
        assert first_line(feedback) == 2 and "Another cell of this notebook makes ONE" in feedback.failure

    def test_what_the_course_imports_above_is_there(self, run):
        """Also where the student has not run that cell: the grader does."""
        run("%%answer 02.5\n" + SOLVED["02.5"].partition("\n")[2].replace("abs(", "np.abs("))
        assert labkit.check("02.5").ok

    def test_the_cell_shows_what_it_prints_once(self, run, capsys):
        assert run(EFFICIENCY.format(used=RIGHT) + "print(efficiency([0], 4))") == "0.125\n"
        assert labkit.check("04.4").ok and capsys.readouterr().out == ""

    def test_what_the_notebook_has_stays_as_it_is(self, run, ipython):
        run(EFFICIENCY.format(used=RIGHT) + "kept = []")
        before = ipython.user_ns["kept"], ipython.user_ns["efficiency"], labkit.answer("04.4")
        labkit.check("04.4")
        after = ipython.user_ns["kept"], ipython.user_ns["efficiency"], labkit.answer("04.4")
        assert all(old is new for old, new in zip(before, after, strict=True))

    def test_a_function_that_is_handed_to_the_check_is_judged_as_it_is(self, run, ipython):
        run(HELPER)
        run(WITH_HELPER)
        assert labkit.check("04.4", ipython.user_ns["efficiency"]).ok

    def test_each_check_begins_anew(self, run):
        run(EFFICIENCY.format(used=f"calls.append(1); {RIGHT}; assert len(calls) < 200") + "calls = []")
        assert labkit.check("04.4").ok and labkit.check("04.4").ok
        assert not magic.runs["04.4"].failure


@pytest.mark.parametrize("exercise", sorted(id for id, cell in SOLVED.items() if cell.startswith("%%answer")))
def test_solutions_are_met_by_themselves(exercise, run):
    run(SOLVED[exercise])
    assert labkit.check(exercise).ok, labkit.check(exercise)
