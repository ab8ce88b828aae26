"""Solved notebooks run on a GPU: cells fail where they are meant to alone, and each exercise is solved.

What a cell stores is compared in the simulator alone (test_notebooks.py): on a GPU many outputs are times.
"""

import os
import re
import shutil

import nbformat
import pytest
from nbclient import NotebookClient
from test_notebooks import SOLVED, builds_programs, code_cells, role, tags, text_of

pytestmark = pytest.mark.gpu
SECONDS = 400  # a notebook may take, on a busy machine too


def executed(path, folder, monkeypatch):
    """Run a copy of a notebook with the GPU chosen, past cells that fail."""
    monkeypatch.setenv("LABKIT_DEVICE", "gpu")
    shutil.copy(path, folder)
    notebook = nbformat.read(folder / path.name, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, allow_errors=True, resources=where).execute()
    return notebook


def outcome(cell):
    """Return the error that a cell ended with, or ""."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return f"{errors[0].ename}: {errors[0].evalue}" if errors else ""


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_a_solved_notebook_runs_on_a_gpu(path, tmp_path, monkeypatch):
    if path.stem == "04b_whole_program" and not builds_programs():
        pytest.skip("no nvcc or no C++ compiler here: notebook 13 builds programs")
    cells = code_cells(executed(path, tmp_path, monkeypatch))
    wrong = [
        f"{cell.source}\n-> {outcome(cell) or 'no error, and it is tagged raises-exception'}"
        for cell in cells
        if bool(outcome(cell)) != ("raises-exception" in tags(cell))
    ]
    assert not wrong, "\n\n".join([f"{len(wrong)} cells:", *wrong])
    for cell in cells:
        if role(cell) == "check":
            said = "".join(map(text_of, cell.outputs))
            assert re.search(rf"{re.escape(cell.metadata.labkit.exercise)} .+: solved", said), said


def test_the_gpu_is_what_runs_them(tmp_path, monkeypatch):
    """A notebook that asks which device runs its kernels is told the GPU."""
    cell = nbformat.v4.new_code_cell("import labkit; print(labkit.device().kind)")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "which.ipynb")
    (folder := tmp_path / "run").mkdir()
    (cell,) = code_cells(executed(tmp_path / "which.ipynb", folder, monkeypatch))
    assert "".join(map(text_of, cell.outputs)) == "gpu\n"
    assert os.environ["LABKIT_DEVICE"] == "gpu"
