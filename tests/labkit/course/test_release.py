"""Students' notebooks are the solved ones without the answers, and `labkit release` makes them.

That they run from top to bottom before anything is solved is tried in a browser: tests/browser.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from typer.testing import CliRunner

from labkit import cli
from labkit.course.notebooks import catalog, release

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
SOLVED = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))

each_student = pytest.mark.parametrize(
    "path", [NOTEBOOKS / path.name for path in SOLVED], ids=lambda path: path.stem
)


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def role(cell):
    return cell.metadata.get("labkit", {}).get("role")


class TestStudents:
    def test_are_up_to_date(self):
        pages = release.pages(NOTEBOOKS / "solutions", NOTEBOOKS)
        stale = [page.path.name for page in pages if page.state]
        assert not stale, f"run: labkit release (stale: {', '.join(stale)})"
        assert not release.orphans(pages, NOTEBOOKS)

    @each_student
    def test_differ_from_the_solved_one_only_in_answers_and_outputs(self, path):
        solved, student = read(NOTEBOOKS / "solutions" / path.name), read(path)
        assert solved.metadata == student.metadata
        shown = [cell for cell in solved.cells if role(cell) != "hidden"]
        assert [cell.id for cell in shown] == [cell.id for cell in student.cells], "run: labkit release"
        for ours, theirs in zip(shown, student.cells, strict=True):
            assert ours.metadata == theirs.metadata
            if role(ours) == "answer":
                assert ours.source != theirs.source and "your code here" in theirs.source
            else:
                assert ours.source == theirs.source

    @each_student
    def test_hold_neither_solutions_nor_outputs_nor_hidden_checks(self, path):
        for cell in read(path).cells:
            if cell.cell_type == "code":
                assert not cell.outputs and cell.execution_count is None
            assert not re.search(r"SOLUTION|STUB|CRITERIA", cell.source)
            assert role(cell) != "hidden"

    def test_the_course_has_hidden_checks(self):
        assert any(role(cell) == "hidden" for path in SOLVED for cell in read(path).cells)


class TestSolutions:
    def test_stubs_are_kept_at_their_indentation(self):
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


class TestForStudents:
    def released(self, *cells, **metadata):
        return release.for_students(new_notebook(cells=list(cells), metadata=metadata))

    def test_hidden_checks_are_left_out(self):
        hidden = {"labkit": {"exercise": "02.2", "role": "hidden"}}
        cells = [new_code_cell("CRITERIA = ()", metadata=hidden), new_markdown_cell("why", metadata=hidden)]
        assert [cell.source for cell in self.released(new_code_cell("kept"), *cells).cells] == ["kept"]

    def test_what_tells_of_a_run_or_an_answer_is_left_out(self):
        about = {"exercise": "02.1", "role": "answer", "expected": 42}
        ran = {"execution": {"iopub.execute_input": "2026"}, "collapsed": True, "answer": 42}
        cell = new_code_cell("x", id="given", execution_count=7, outputs=[new_output("stream", text="42")])
        cell.metadata.update(labkit=about, tags=["nbval-ignore-output"], **ran)
        widgets = {"application/vnd.jupyter.widget-state+json": {"state": {"value": 42}}}
        notebook = self.released(cell, widgets=widgets, labkit={"concept": "tiles", "key": 42})
        assert "42" not in nbformat.writes(notebook)
        (kept,) = notebook.cells
        assert kept.metadata == {
            "labkit": {"exercise": "02.1", "role": "answer"},
            "tags": ["nbval-ignore-output"],
        }
        assert notebook.metadata == {"labkit": {"concept": "tiles"}}

    def test_pictures_in_the_text_stay(self):
        attached = {"tile.png": {"image/png": "iVBORw0KGgo="}}
        cell = new_markdown_cell("![a tile](attachment:tile.png) ![](data:image/png;base64,iVBORw0KGgo=)")
        cell.attachments = attached
        (kept,) = self.released(cell).cells
        assert kept.attachments == attached and kept.source == cell.source

    def test_marks_in_text_are_an_error(self):
        with pytest.raises(ValueError, match="here they stand in text"):
            self.released(new_markdown_cell("# BEGIN SOLUTION\nthe answer is 42\n# END SOLUTION"))

    def test_the_solved_notebook_is_left_as_it_is(self):
        cell = new_code_cell("# BEGIN SOLUTION\nx = 1\n# END SOLUTION", metadata={"execution": {}})
        solved = new_notebook(cells=[cell])
        before = nbformat.writes(solved)
        release.for_students(solved)
        assert nbformat.writes(solved) == before


def run(*arguments):
    return CliRunner().invoke(cli.app, ["release", *map(str, arguments)])


class TestCommand:
    @pytest.fixture
    def clone(self, tmp_path, monkeypatch):
        """A clone with one solved notebook, of which no student's version is there yet."""
        return self.course(tmp_path / "clone", tmp_path / "clone" / "notebooks", monkeypatch)

    @pytest.fixture
    def installed(self, tmp_path, monkeypatch):
        """An installed labkit, with its notebooks."""
        return self.course(tmp_path / "site", tmp_path / "site" / "labkit" / "notebooks", monkeypatch)

    def course(self, root, notebooks, monkeypatch):
        monkeypatch.setattr(catalog, "PACKAGE", root / "labkit")
        monkeypatch.setattr(catalog, "__file__", str(root / "labkit" / "course" / "catalog.py"))
        (notebooks / "solutions").mkdir(parents=True)
        cell = new_code_cell("# BEGIN SOLUTION\nx = 1\n# END SOLUTION", id="a-cell", execution_count=1)
        nbformat.write(new_notebook(cells=[cell]), notebooks / "solutions" / "01.ipynb")
        return notebooks

    def test_check_tells_what_is_missing_stale_or_extra_and_writes_nothing(self, clone):
        result = run("--check")
        assert result.exit_code == 1 and "missing: 01.ipynb" in result.output
        assert not (clone / "01.ipynb").exists()
        assert run().exit_code == 0 and run("--check").exit_code == 0
        (clone / "01.ipynb").write_text("{}")
        (clone / "02.ipynb").write_text("{}")
        result = run("--check")
        assert result.exit_code == 1 and "stale: 01.ipynb" in result.output
        assert "02.ipynb has no solved notebook in" in result.output
        assert (clone / "01.ipynb").read_text() == (clone / "02.ipynb").read_text() == "{}"

    def test_release_writes_what_is_stale_once(self, clone):
        first, second = run(), run()
        assert first.exit_code == 0 and "written: 01.ipynb" in first.output
        assert "up to date" in second.output
        cell = read(clone / "01.ipynb").cells[0]
        assert (cell.id, cell.source, cell.execution_count) == ("a-cell", "# your code here", None)

    def test_into_another_folder_beside_what_is_there(self, clone, tmp_path):
        out = tmp_path / "new" / "course"
        out.mkdir(parents=True)
        (out / "mine.ipynb").write_text("mine")
        assert run(out).exit_code == 0 and read(out / "01.ipynb")
        assert (out / "mine.ipynb").read_text() == "mine" and not (clone / "01.ipynb").exists()
        assert sorted(path.name for path in out.iterdir()) == ["01.ipynb", "mine.ipynb"]
        assert run("--check", out).exit_code == 1  # mine.ipynb has no solved one

    def test_the_same_bytes_each_time(self, tmp_path):
        for name in ("first", "second"):
            assert run(tmp_path / name).exit_code == 0
        for solved in SOLVED:
            made = (tmp_path / "first" / solved.name).read_bytes()
            assert made == (tmp_path / "second" / solved.name).read_bytes()
            assert made == (NOTEBOOKS / solved.name).read_bytes()

    def test_an_installed_labkit_wants_a_folder(self, installed, tmp_path):
        result = run()
        assert result.exit_code == 1 and "labkit release my-course" in result.output
        assert run(tmp_path / "out").exit_code == 0 and (tmp_path / "out" / "01.ipynb").is_file()
        assert [path.name for path in installed.iterdir()] == ["solutions"]

    def test_solved_notebooks_are_never_written_to(self, clone, tmp_path):
        solved = clone / "solutions" / "01.ipynb"
        before = solved.read_bytes()
        (tmp_path / "link").symlink_to(clone / "solutions")
        for out in (clone / "solutions", clone / "solutions" / "below", tmp_path / "link"):
            result = run(out)
            assert result.exit_code == 1 and "is where the solved notebooks are" in result.output
        (clone / "01.ipynb").symlink_to(solved)
        assert run().exit_code == 0
        assert solved.read_bytes() == before and not (clone / "01.ipynb").is_symlink()

    def test_a_file_or_folder_in_the_place_of_another_is_told(self, clone, tmp_path):
        (tmp_path / "file").touch()
        result = run(tmp_path / "file")
        assert result.exit_code == 1 and "file is a file. Name a folder" in result.output
        (clone / "01.ipynb").mkdir()
        result = run()
        assert result.exit_code == 1 and "Is a directory" in result.output
        assert sorted(path.name for path in clone.iterdir()) == ["01.ipynb", "solutions"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written_is_told(self, clone, tmp_path):
        (tmp_path / "out").mkdir(mode=0o500)
        result = run(tmp_path / "out")
        assert result.exit_code == 1 and "Permission denied" in result.output

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "is not a notebook: it is not JSON"),
            ("{}", "is not a notebook: it has no cells"),
            ('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}', "it wants nbformat 4.5"),
            ('{"cells": [{}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "it wants nbformat 4.5"),
            ('{"cells": [3], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "cannot be released"),
            (
                '{"cells": [{"id": "a", "cell_type": "code", "source": "x"}], "metadata": {}, "nbformat": 4, '
                '"nbformat_minor": 5}',
                "cannot be released",
            ),
        ],
    )
    def test_a_malformed_solved_notebook_is_named(self, clone, text, words):
        (clone / "solutions" / "02_broken.ipynb").write_text(text)
        result = run()
        assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
        assert "02_broken.ipynb" in result.output and words in result.output
        assert len(result.output) < 500 and not (clone / "01.ipynb").exists()

    def test_a_notebook_with_marks_that_do_not_pair_is_named(self, clone):
        cell = new_code_cell("x = 1\n# END SOLUTION", id="b")
        nbformat.write(new_notebook(cells=[cell]), clone / "solutions" / "02_broken.ipynb")
        result = run()
        assert result.exit_code == 1 and "02_broken.ipynb cannot be released: a cell has" in result.output
