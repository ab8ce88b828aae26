"""Solved notebooks run and give what they store. What students get of them is in test_release.py."""

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import nbformat
import pytest
from latex2mathml.converter import convert

from labkit.course import EXERCISES
from labkit.course.notebooks import catalog, release
from simt.programs import toolkit

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
SOLVED = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))

TASK = re.compile(r"^### Exercise (\d\d\.\d+): .+ \((\d+) point(s?)\)$", re.MULTILINE)
HINT = re.compile(r"^<details><summary>Hint.*?</summary>\n\n(.+?)\n\n</details>$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`]+`", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)

each_solved = pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)


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
    """All text of an output."""
    data = output.get("data", {})
    return "".join(
        [
            output.get("text", ""),
            *output.get("traceback", []),
            *(v for v in data.values() if isinstance(v, str)),
        ]
    )


def builds_programs():
    """Say whether nvcc and a C++ compiler are here."""
    try:
        return bool(toolkit.toolkit() and toolkit.host_compiler())
    except toolkit.NoCompiler:
        return False


def nbval(path):
    """Run the notebook in a process of its own: a kernel has its cells one after the other, in one worker."""
    # Where programs cannot be built, their cells say so: nothing fails, and outputs differ.
    compares = "--nbval-lax" if path.stem == "04b_whole_program" and not builds_programs() else "--nbval"
    options = ["-q", "-p", "no:cacheprovider", "-p", "nbval.plugin", compares, "--nbval-current-env"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(path)],
        env={**os.environ, "LABKIT_DEVICE": "simt", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


# These take longest: .ci/run runs them.
LONGEST = ("01", "03", "06", "08", "09", "10", "12", "13")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * path.stem.startswith(LONGEST))
        for path in SOLVED
    ],
)
def test_nbval_runs_the_solved_notebook_and_compares_its_outputs(path):
    run = nbval(path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_nbval_does_compare(tmp_path):
    """With the options above, a notebook that stores another output fails."""
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


def ids_of(path):
    """The exercises of a notebook in order: 09.9, then 09.10."""
    return [exercise.id for exercise in catalog.lesson(path).exercises]


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
        assert ids == list(checked) == ids_of(path)
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
        ids = ids_of(path)
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
            most = 50 if cell.source.startswith("%%program") else 25 if cell.source.startswith("%%") else 9
            assert length <= most, cell.source
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
        install, setup = code_cells(read(path))[:2]
        assert role(install) == "install" and not install.outputs
        assert setup.source.splitlines() == ["import labkit", "import numpy as np", _call("start", path)]

    def test_ends_with_the_way_on(self, path):
        assert code_cells(read(path))[-1].source == _call("end", path) == read(path).cells[-1].source


def _call(name, path):
    return f'labkit.{name}("{path.name.partition("_")[0]}")'


def test_the_first_notebook_lists_all_others_with_their_titles():
    (first,) = (cell.source for cell in read(SOLVED[0]).cells if cell.id == "next")
    listed = re.findall(r"^\* \[(.+?)\]\((.+?)\): .{20,}$", first, re.MULTILINE)
    lessons = [catalog.lesson(path) for path in SOLVED[1:]]
    assert listed == [(f"{each.number} · {each.title}", each.path.name) for each in lessons]


@each_solved
def test_links_to_the_glossary_lead_to_a_term(path):
    glossary = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r'<a id="([\w-]+)"></a>', glossary)
    assert len(terms) == len(set(terms))
    text = "".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(glossary\.md(?:#([\w-]+))?\)", text)
    assert set(filter(None, links)) <= set(terms)
    assert links or path.name >= "06"
