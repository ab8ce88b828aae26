"""A cell that misses a name says which cell sets it."""

import json

import pytest

from labkit.course import missing_name_hint
from labkit.course.missing_name_hint import hint
from labkit.course.notebooks import catalog


def code(source):
    return {"cell_type": "code", "source": source}


def text(source):
    return {"cell_type": "markdown", "source": source}


CELLS = [
    code("import labkit\nimport numpy as np\nlabkit.start('02')"),
    text("# 02 · Title\n\nwords"),
    code('%%cuda naive -D TILE=16\nextern "C" __global__ void matmul() {}'),
    code("p = problem\nfor size in (1, 2):\n    print(size)"),
    text("## A `name` again"),
    code("def twice(x):\n    inside = x\n    return inside"),
    code("p = another"),
    code("%%c -O2\nvoid f() {}"),
    code("print(p, naive)"),
    text("## Below"),
    code("%%answer 09.6\nlate = 1"),
    code("not Python ("),
]


@pytest.mark.parametrize(
    ("name", "running", "heading", "place"),
    [
        ("naive", "print(p, naive)", "02 · Title", "above"),
        ("p", "print(p, naive)\n", "A `name` again", "above"),  # the nearest
        ("p", "edited since it was saved", "02 · Title", ""),
        ("p", "p = another", "02 · Title", "above"),  # not the cell itself
        ("np", "print(p, naive)", "", "above"),
        ("size", "print(p, naive)", "02 · Title", "above"),
        ("twice", "print(p, naive)", "A `name` again", "above"),
        ("late", "print(p, naive)", "Below", "below"),
    ],
)
def test_finds_the_cell_that_sets_a_name(name, running, heading, place):
    found = hint(CELLS, name, running)
    assert (found.name, found.heading, found.place) == (name, heading, place)
    told = str(found)
    assert told.startswith(f"`{name}` is set in a cell {place or 'of this notebook'}")
    assert ("Run All Above" in told) == (place != "below")
    assert f"<code>{name}</code>" in found._repr_html_()


@pytest.mark.parametrize("name", ["inside", "nonsense", "matmul", "f", ""])
def test_is_silent_where_no_cell_sets_it(name):
    assert hint(CELLS, name, "print(p)") is None


def test_the_notebook_tells_it_below_the_error(ipython, tmp_path, monkeypatch, capsys):
    (tmp_path / "02_naive_cuda.ipynb").write_text(json.dumps({"cells": CELLS}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    missing_name_hint.tell_in(ipython, "02")
    missing_name_hint.tell_in(ipython, "02")  # a cell that is run again tells no more often
    ipython.run_cell("print(p, naive)")
    assert capsys.readouterr().out.count("`p` is set in a cell above, under “A `name` again”.") == 1
    ipython.run_cell("print(nonsense)\n")
    ipython.run_cell("1 / 0")
    assert "is set in" not in capsys.readouterr().out


def test_an_unreadable_file_falls_back_to_the_courses_own(ipython, tmp_path, monkeypatch, capsys):
    (tmp_path / "02_naive_cuda.ipynb").write_text("no JSON")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "gone.ipynb"))
    missing_name_hint.tell_in(ipython, "02")
    ipython.run_cell("naive")
    assert "`naive` is set in a cell of this notebook, under " in capsys.readouterr().out


def test_the_link_leads_to_the_heading():
    assert 'href="#A-name-again"' in hint(CELLS, "twice", "print(p, naive)")._repr_html_()
    assert catalog.anchor("Exercise 02.1: x (2 points)") == "#Exercise-02.1:-x-(2-points)"
    assert catalog.anchor("How long? 87 % of `A @ B`") == "#How-long?-87-%-of-A-@-B"  # as JupyterLab's id
