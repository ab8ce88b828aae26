"""A check speaks for the code that is in the cell, after edits, errors and interrupts."""

import json
import os
import re
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from labkit import course, magic, program_magic
from labkit.course import check_progress
from labkit.devices import faults
from simt.common import cell

RIGHT = (
    "%%cuda 00.1\n"
    + """extern "C" __global__ void scale(float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i];
}
"""
)
WRONG = RIGHT.replace("if (i < n) ", "")


class Notebook:
    """A shell whose requests look as a front end sends them."""

    def __init__(self, shell, folder):
        self.shell, self.folder = shell, folder
        self.parent = {}
        shell.get_parent = lambda: self.parent

    def run(self, source, id="answer", **metadata):
        self.parent = {"content": {"code": source}, "metadata": {"cellId": id, **metadata}}
        return self.shell.run_cell(source)

    def check(self, live=None):
        metadata = {} if live is None else {"labkit": {"answer": live}}
        self.parent = {"content": {"code": ""}, "metadata": {"cellId": "check", **metadata}}
        return course.check("00.1")

    def save(self, *sources, id="answer", later=5):
        """Save the notebook so many seconds after now."""
        path = self.folder / "00_start_here.ipynb"
        cells = [{"id": id, "cell_type": "code", "source": source.splitlines(True)} for source in sources]
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
        saved = magic.runs["00.1"].time + later
        os.utime(path, (saved, saved))


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "00_start_here.ipynb"))
    monkeypatch.setattr(magic, "answers", {})
    monkeypatch.setattr(magic, "runs", {})
    shell = InteractiveShell()
    program_magic.load_ipython_extension(shell)
    monkeypatch.setattr(cell, "shell", lambda: shell)
    return Notebook(shell, tmp_path)


def changed(feedback):
    """The line that a check says was changed; None where it says nothing of the kind."""
    if feedback.lines[0].text != course.AS_IT_RAN:
        return None
    assert not feedback.ok
    return int(re.search(r"\bline (\d+)", feedback.failure)[1])


class TestEdited:
    @pytest.mark.parametrize(
        ("now", "line"),
        [
            (RIGHT, None),
            (RIGHT.rstrip(), None),
            (RIGHT.replace(";\n", ";  \n"), None),
            (WRONG, 5),
            (f"{RIGHT}// one more\n", 7),
            (RIGHT.replace("00.1", "00.1 -D N=1"), 1),
            ("", 1),
        ],
    )
    def test_what_the_page_holds(self, notebook, now, line):
        notebook.run(RIGHT)
        assert changed(notebook.check(live=now)) == line

    def test_what_was_saved_later(self, notebook):
        notebook.run(RIGHT)
        notebook.save(WRONG)
        assert changed(notebook.check()) == 5
        notebook.save(RIGHT)
        assert notebook.check().ok

    def test_what_was_saved_earlier_says_nothing(self, notebook):
        notebook.run(RIGHT)
        notebook.save(WRONG, later=-5)
        assert notebook.check().ok

    def test_the_page_is_believed_before_the_file(self, notebook):
        notebook.run(RIGHT)
        notebook.save(WRONG)
        assert notebook.check(live=RIGHT).ok

    def test_ids_that_the_file_has_not(self, notebook):
        notebook.run(RIGHT)
        notebook.save(WRONG, WRONG, id="other")
        assert changed(notebook.check()) is None  # which of the two is meant?
        notebook.save(WRONG, id="other")
        assert changed(notebook.check()) == 5

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [1]}', '{"cells": [{"source": 1}]}'])
    def test_a_file_that_is_no_notebook(self, notebook, text):
        notebook.run(RIGHT)
        (notebook.folder / "00_start_here.ipynb").write_text(text)
        assert notebook.check().ok

    def test_run_again(self, notebook):
        notebook.run(WRONG)
        assert changed(notebook.check(live=RIGHT)) == 5
        notebook.run(RIGHT)
        assert notebook.check(live=RIGHT).ok


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (RIGHT.replace("a * x", "b * x"), ["line 5: error: identifier \"b\" is undefined", "5 | "]),
        ("%%cuda 00.1\n__device__ int x;\n", ["kernel"]),
        ("%%cuda 00.1 nonsense\n" + RIGHT.partition("\n")[2], ["'nonsense'"]),
        ("%%answer 00.1\ndef f(:\n    pass\n", ["line 2: SyntaxError"]),
        ("%%answer 00.1\n1 / 0\n", ["ZeroDivisionError: division by zero"]),
        ("%%answer 00.1\nraise KeyboardInterrupt\n", ["interrupted"]),
        ("%%c 00.1\nvoid f(float *x) { x = y; }\n", ["line 2: error", "undeclared"]),
    ],
)  # fmt: skip
def test_a_cell_that_failed_says_why(notebook, capsys, source, words):
    notebook.run(RIGHT)
    notebook.run(source)
    feedback = notebook.check(live=source)
    assert not feedback.ok
    for word in words:
        assert word in feedback.failure
    notebook.run(RIGHT)
    assert notebook.check().ok


def test_only_the_first_of_many_messages_is_told(notebook, capsys):
    notebook.run(RIGHT.replace("a * x", "b * y"))
    assert notebook.check().failure.count("error:") == 1


class TestWaiting:
    @pytest.fixture
    def shown(self, monkeypatch):
        texts = []
        monkeypatch.setattr(
            check_progress, "_publish", lambda text, name, again: texts.append((text, name, again))
        )
        monkeypatch.setattr(check_progress, "PATIENCE_SECONDS", 0.02)
        return texts

    def test_a_long_check_says_how_far_it_is_and_then_nothing(self, monkeypatch, shown):
        monkeypatch.setattr(check_progress, "current", lambda: SimpleNamespace(id="check"))
        with check_progress.step_by_step("02.1") as step:
            step(3, 5)
            while len(shown) < 2:
                pass
        assert re.fullmatch(r"Checking 02\.1: 3 of 5 … \d+ s", shown[0][0])
        assert shown[-1][0] == "" and {name for _, name, _ in shown} == {shown[0][1]}
        assert [again for *_, again in shown] == [False] + [True] * (len(shown) - 1)

    def test_a_notebook_that_a_program_runs_gets_none(self, shown):
        with check_progress.step_by_step("02.1"):
            check_progress.threading.Event().wait(0.06)
        assert shown == []


class TestInterrupt:
    def test_inside_labkit_it_is_one_line(self, notebook, monkeypatch, capsys):
        def interrupt(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(course, "_known", interrupt)
        result = notebook.run("import labkit.course\nlabkit.course.check('00.1')", id="check")
        assert capsys.readouterr().out.strip() == "Interrupted."
        assert isinstance(result.error_in_exec, KeyboardInterrupt)

    def test_elsewhere_it_is_pythons(self, notebook, capsys):
        notebook.run("raise KeyboardInterrupt")
        assert "KeyboardInterrupt" in capsys.readouterr().out

    def test_it_stays_a_keyboard_interrupt(self):
        assert issubclass(faults.Interrupted, KeyboardInterrupt)
