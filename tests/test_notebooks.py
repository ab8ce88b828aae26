"""Solved notebooks run and give what they store; students' notebooks are the same without the answers.

That those run from top to bottom before anything is solved is tried in a browser: tests/browser.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import nbformat
import pytest
from latex2mathml.converter import convert
from typer.testing import CliRunner

from labkit import cli
from labkit.course import EXERCISES, catalog, release

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOLVED = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
STUDENTS = [NOTEBOOKS / path.name for path in SOLVED]

TASK = re.compile(r"^### Exercise (\d\d\.\d+): .+ \((\d+) point(s?)\)$", re.MULTILINE)
HINT = re.compile(r"^<details><summary>Hint.*?</summary>\n\n(.+?)\n\n</details>$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`]+`", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)

each_solved = pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
each_student = pytest.mark.parametrize("path", STUDENTS, ids=lambda path: path.stem)


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def role(cell):
    return cell.metadata.get("labkit", {}).get("role")


def text_of(output):
    "All text of an output."
    data = output.get("data", {})
    return "".join(
        [
            output.get("text", ""),
            *output.get("traceback", []),
            *(v for v in data.values() if isinstance(v, str)),
        ]
    )


def nbval(path):
    "Run the notebook in a process of its own: a kernel has its cells one after the other, in one worker."
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(path)],
        env={**os.environ, "LABKIT_DEVICE": "simt"},
        capture_output=True,
        text=True,
        timeout=240,
    )


@each_solved
def test_nbval_runs_the_solved_notebook_and_compares_its_outputs(path):
    run = nbval(path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_nbval_does_compare(tmp_path):
    "With the options above, a notebook that stores another output fails."
    stored = [nbformat.v4.new_output("stream", text="2\n")]
    cell = nbformat.v4.new_code_cell("print(1)", outputs=stored, execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "wrong.ipynb")
    run = nbval(tmp_path / "wrong.ipynb")
    assert run.returncode == 1 and "Cell outputs differ" in run.stdout


@each_solved
def test_most_cells_are_really_compared(path):
    cells = [cell for cell in code_cells(read(path)) if cell.outputs]
    compared = [cell for cell in cells if "nbval-ignore-output" not in tags(cell)]
    assert len(compared) > len(cells) / 2
    assert all("nbval-skip" not in tags(cell) for cell in cells)


@each_solved
class TestSolved:
    def test_was_run_from_top_to_bottom(self, path):
        counts = [cell.execution_count for cell in code_cells(read(path))]
        assert counts == list(range(1, len(counts) + 1))

    def test_fails_only_where_it_is_meant_to(self, path):
        for cell in code_cells(read(path)):
            failed = any(output.output_type == "error" for output in cell.outputs)
            assert failed == ("raises-exception" in tags(cell)), cell.source

    def test_every_exercise_has_a_cell_a_check_and_is_solved(self, path):
        cells = code_cells(read(path))
        ids = [cell.metadata.labkit.exercise for cell in cells if role(cell) == "answer"]
        checked = {cell.metadata.labkit.exercise: cell for cell in cells if role(cell) == "check"}
        assert ids == list(checked) == sorted(id for id in EXERCISES if id[:2] == path.name[:2])
        for id, cell in checked.items():
            assert cell.source == f'labkit.check("{id}")'
            assert f"{id} {EXERCISES[id].title}: solved" in text_of(cell.outputs[0])
        for cell in cells:
            if role(cell) == "answer":
                id = cell.metadata.labkit.exercise
                assert re.match(rf"%%{EXERCISES[id].magic} {re.escape(id)}\b", cell.source)

    def test_tells_the_points_of_each_exercise_and_folds_a_hint_away(self, path):
        tasks = [
            cell for cell in read(path).cells if cell.cell_type == "markdown" and "### Exer" in cell.source
        ]
        ids = sorted(id for id in EXERCISES if id[:2] == path.name[:2])
        assert [TASK.findall(cell.source)[0][0] for cell in tasks] == ids
        for cell in tasks:
            ((id, points, _),) = TASK.findall(cell.source)
            assert int(points) == EXERCISES[id].points
            hints = HINT.findall(TASK.split(cell.source)[-1])
            assert hints and all(len(hint.split()) >= 5 for hint in hints), id

    def test_says_what_it_teaches(self, path):
        lesson = catalog.lesson(path)
        assert lesson.title != path.stem and 20 < len(lesson.concept) < 110

    def test_cells_are_short(self, path):
        lengths = [len(release.without_solution(cell.source).splitlines()) for cell in code_cells(read(path))]
        for cell, length in zip(code_cells(read(path)), lengths, strict=True):
            assert length <= (25 if cell.source.startswith("%%") else 9), cell.source
        assert median(lengths) <= 7

    def test_is_a_small_file(self, path):
        assert path.stat().st_size < 2**20

    def test_formulas_can_be_set_without_a_network(self, path):
        for cell in read(path).cells:
            if cell.cell_type == "markdown":
                for block, inline in FORMULA.findall(CODE.sub("", cell.source)):
                    assert "\\" not in convert(block or inline)  # a command that it does not know

    def test_says_nothing_of_the_machine_it_ran_on(self, path):
        for cell in code_cells(read(path)):
            for output in cell.outputs:
                assert not re.search(r"(/home/|/root/|/Users/|/tmp/|\.venv)", text_of(output)), cell.source

    def test_begins_as_all_do(self, path):
        first = code_cells(read(path))[0].source.splitlines()
        assert "import labkit" in first and "%load_ext labkit" in first and "print(labkit.device())" in first


def test_the_first_notebook_lists_all_with_their_titles():
    (first,) = (cell.source for cell in read(SOLVED[0]).cells if cell.id == "next")
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| .{20,} \|$", first, re.MULTILINE)
    lessons = [catalog.lesson(path) for path in SOLVED]
    assert listed == [(f"{each.number} · {each.title}", each.path.name) for each in lessons]


class TestStudents:
    def test_are_up_to_date(self):
        stale = [page.path.name for page in release.pages(NOTEBOOKS) if page.stale]
        assert not stale, f"run: labkit release (stale: {', '.join(stale)})"
        assert not release.orphans(NOTEBOOKS)

    @each_student
    def test_differ_from_the_solved_one_only_in_answers_and_outputs(self, path):
        solved, student = read(NOTEBOOKS / "solutions" / path.name), read(path)
        assert solved.metadata == student.metadata
        assert [cell.id for cell in solved.cells] == [cell.id for cell in student.cells]
        for ours, theirs in zip(solved.cells, student.cells, strict=True):
            assert ours.metadata == theirs.metadata
            if role(ours) in ("answer", "prediction"):
                assert ours.source != theirs.source and "your code here" in theirs.source
            else:
                assert ours.source == theirs.source

    @each_student
    def test_hold_neither_solutions_nor_outputs(self, path):
        for cell in code_cells(read(path)):
            assert not cell.outputs and cell.execution_count is None
            assert not re.search(r"SOLUTION|STUB", cell.source)


class TestRelease:
    def test_keeps_stubs_at_their_indentation(self):
        solution = (
            "    // BEGIN SOLUTION\n    if (i < n)\n        x = 1;\n    // STUB x = 2;\n    // END SOLUTION"
        )
        solved = f"{{\n{solution}\n}}"
        assert release.without_solution(solved) == "{\n    // your code here\n    x = 2;\n}"

    def test_python_cells(self):
        solved = "# BEGIN SOLUTION\nprediction = 2\n# STUB prediction = None  # rows\n# END SOLUTION"
        assert release.without_solution(solved) == "# your code here\nprediction = None  # rows"

    def test_several_regions(self):
        region = "// BEGIN SOLUTION\nsecret\n// END SOLUTION"
        assert (
            release.without_solution(f"{region}\nkept\n{region}")
            == "// your code here\nkept\n// your code here"
        )

    @pytest.mark.parametrize(
        "source",
        ["// BEGIN SOLUTION\nx", "x\n// END SOLUTION", "// STUB x", "// BEGIN SOLUTION\n# END SOLUTION"],
    )
    def test_marks_that_do_not_pair_are_an_error(self, source):
        with pytest.raises(ValueError, match="outside a BEGIN SOLUTION"):
            release.without_solution(source)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        "A clone with one solved notebook, of which no student's version is there yet."
        monkeypatch.setattr(cli, "__file__", str(tmp_path / "labkit" / "cli.py"))
        (tmp_path / "notebooks" / "solutions").mkdir(parents=True)
        cell = nbformat.v4.new_code_cell(
            "# BEGIN SOLUTION\nx = 1\n# END SOLUTION", id="a-cell", execution_count=1
        )
        nbformat.write(
            nbformat.v4.new_notebook(cells=[cell]), tmp_path / "notebooks" / "solutions" / "01.ipynb"
        )
        return tmp_path / "notebooks"

    def test_check_tells_what_is_stale_and_writes_nothing(self, folder):
        result = CliRunner().invoke(cli.app, ["release", "--check"])
        assert result.exit_code == 1 and "stale: 01.ipynb" in result.output
        assert not (folder / "01.ipynb").exists()

    def test_release_writes_what_is_stale_once(self, folder):
        first, second = (CliRunner().invoke(cli.app, ["release"]) for _ in range(2))
        assert first.exit_code == 0 and "written: 01.ipynb" in first.output
        assert "up to date" in second.output
        cell = read(folder / "01.ipynb").cells[0]
        assert (cell.id, cell.source, cell.execution_count) == ("a-cell", "# your code here", None)

    def test_a_notebook_without_a_solved_one_is_told(self, folder):
        (folder / "02.ipynb").write_text("{}")
        result = CliRunner().invoke(cli.app, ["release", "--check"])
        assert result.exit_code == 1 and "02.ipynb has no solved notebook" in result.output
