"""`labkit run` executes notebooks and writes pages; `labkit course` lists what there is to do."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

import labkit.course
from labkit import cli, mend
from labkit.course import EXERCISES
from labkit.course.notebooks import catalog
from labkit.course.notebooks.page import WIDGET, page

SPEC = {"name": "elsewhere", "display_name": "Another Python"}  # it is run in this one all the same
GOOD = [
    "# 41 · A good one\n\nAn element $C_{ij}$, [the next](42_bad.ipynb), and $\\weird{x}$.\n\n"
    "<details><summary>Hint</summary>\n\nhidden **text**\n\n</details>",
    ["import labkit\nlabkit.widgets.tile_walk()"],
    ["from tqdm.notebook import tqdm\nfor _ in tqdm(range(3), desc='measuring', leave=False): pass"],
    "## A plot",
    ["import numpy as np\nfrom labkit import plots\nfigure = plots.Plot(figsize=(2, 1))\nfigure"],
    ["%load_ext labkit"],
    ['%%cuda twice\nextern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'],
    ["# BEGIN SOLUTION\nanswer = 42\n# STUB answer = None\n# END SOLUTION\nprint('the answer is', answer)"],
]
BAD = [
    "# 42 · A bad one",
    ["print('before')"],
    "## Where it breaks",
    ["1 / 0"],
    ["raise ValueError('on purpose')", "raises-exception"],
    ["print('behind', 6 * 7)"],
]


def write(path: Path, cells: list) -> Path:
    """A notebook: strings are Markdown, lists are code and its tags; what it stores is not to be believed."""
    made = [
        nbformat.v4.new_markdown_cell(cell)
        if isinstance(cell, str)
        else nbformat.v4.new_code_cell(
            cell[0],
            metadata={"tags": cell[1:]},
            execution_count=99,
            outputs=[nbformat.v4.new_output("stream", text="stored")],
        )
        for cell in cells
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": SPEC}), path)
    return path


def run(*arguments: object):
    return CliRunner().invoke(cli.app, [str(each) for each in ("run", *arguments)])


def outside(html: str) -> list[str]:
    """What a page would fetch or lead to outside itself, but for links to other pages of the course."""
    found = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)|url\(["']?([^)"']+)""", html)
    return [url for pair in found for url in pair if url and not url.startswith(("data:", "#", "42_"))]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of labkit with three notebooks, the last of which is none, and a folder to work in."""
    clone = tmp_path_factory.mktemp("a clone")
    (clone / "notebooks" / "solutions").mkdir(parents=True)
    (clone / "work").mkdir()
    write(clone / "notebooks" / "41_good.ipynb", GOOD)
    write(clone / "notebooks" / "42_bad.ipynb", BAD)
    (clone / "notebooks" / "43_text.ipynb").write_text("no JSON")
    write(clone / "notebooks" / "solutions" / "41_good.ipynb", ["# 41 · Solved", ["print(41)"]])
    return clone


def enter(clone: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog, "PACKAGE", clone / "labkit")
    patch.setenv("LABKIT_DEVICE", "simt")
    patch.chdir(clone / "work")


@pytest.fixture
def course(clone, monkeypatch):
    """The folder in that clone that a test works in."""
    enter(clone, monkeypatch)
    return clone / "work"


@pytest.fixture(scope="module")
def ran(clone):
    """What the command says that runs all of them, into a folder with a space in its name."""
    before = {path: path.read_bytes() for path in (clone / "notebooks").glob("*.ipynb")}
    with pytest.MonkeyPatch.context() as patch:
        enter(clone, patch)
        result = run("--out", "my pages")
    assert {path: path.read_bytes() for path in before} == before  # notebooks are only read
    return result


@pytest.fixture(scope="module")
def pages(clone, ran):
    """Name of a page -> its HTML."""
    folder = clone / "work" / "my pages"
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.fixture
def good(pages):
    """The body of a page."""
    return pages["41_good.html"].partition("<main>")[2]


def words(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


class TestRun:
    def test_a_table_says_how_each_went(self, ran):
        table = ran.output[ran.output.index("notebook") :].splitlines()
        assert table[0].split() == ["notebook", "seconds", "cells", "result", "file"]
        assert max(map(len, table[:4])) <= 80
        good, bad, text = (line.split() for line in table[1:4])
        assert (good[0], *good[2:]) == ("41_good", "6", "ok", "41_good.html")
        assert (bad[0], *bad[2:]) == ("42_bad", "4", "1", "failed", "42_bad.html")
        assert (text[0], *text[2:]) == ("43_text", "0", "not", "run")
        assert 0 < float(good[1]) < 60

    def test_what_went_wrong_is_told_and_fails_the_command(self, ran):
        assert ran.exit_code == 1
        assert "42_bad: cell [2], Where it breaks: ZeroDivisionError: division by zero\n" in ran.output
        assert "on purpose" not in ran.output
        assert "43_text.ipynb is not a notebook: it is not JSON (Expecting value: line 1" in ran.output
        assert "The pages are in my pages." in ran.output

    def test_bars_say_how_many_cells_are_done(self, ran):
        assert re.search(r"41_good.* 6/6 ", ran.output) and re.search(r"42_bad.* 4/4 ", ran.output)

    def test_pages_are_written_whole(self, pages):
        assert sorted(pages) == ["41_good.html", "42_bad.html"]
        assert all(html.rstrip().endswith("</html>") for html in pages.values())

    def test_cells_behind_one_that_fails_run_too(self, pages):
        text = words(pages["42_bad.html"])
        assert "before" in text and "ZeroDivisionError" in text and "behind 42" in text
        assert "stored" not in text

    def test_a_page_needs_nothing_from_outside(self, pages):
        html = pages["41_good.html"]
        assert outside(html) == [] and "<script" not in html
        assert '<a href="42_bad.html">' in html

    def test_pictures_lie_in_the_page(self, good):
        assert good.count("data:image/png") == 0 and good.count("<svg") == 2  # a plot, an explorer

    def test_formulas_and_hints(self, good):
        assert "<msub><mi>C</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>" in good
        assert "$\\weird{x}$" in good  # TeX that we do not know stays TeX
        hint = r"<details><summary>Hint</summary>\s*<p>hidden <strong>text</strong></p>\s*</details>"
        assert re.search(hint, good)

    def test_an_explorer_is_its_text_and_pictures_and_the_values_of_its_controls(self, good):
        assert re.findall(r"<span>([^<]+) <b>([^<]+)</b></span>", good) == [
            *(("step", "k0 = 0: load"), ("TILE", "4"), ("block x", "0"), ("block y", "0")),
            *(("rows M", "10"), ("columns N", "14"), ("K", "11")),
        ]
        assert "loads A[0 + y, 0 + x]" in good and "(step = k0" not in good

    def test_a_progress_bar_that_is_done_with_leaves_nothing(self, good):
        assert words(good).count("measuring") == 1  # in the source

    def test_solutions_are_shown_without_their_marks(self, good):
        assert "the answer is 42" in good and "BEGIN" not in good and "STUB" not in good

    def test_solved_ones_are_run_on_demand_into_a_folder_of_their_own(self, course):
        result = run("41", "--solved")
        assert result.exit_code == 0 and "The pages are in labkit-html-solved." in result.output
        assert "41 · Solved" in (course / "labkit-html-solved" / "41_good.html").read_text(encoding="utf-8")

    def test_a_kernel_that_dies_is_told(self, course, tmp_path):
        path = write(
            tmp_path / "dies.ipynb",
            [
                "# Dies",
                ["print('alive')"],
                "## Here",
                ["import os\nos.kill(os.getpid(), 9)"],
                ["print('never')"],
            ],
        )
        result = run(path, "--out", tmp_path / "out")
        assert result.exit_code == 1
        assert re.search(r"dies +\S+ +1 kernel died dies.html", result.output)
        told = "cell [2], Here: Kernel died; the cells below have not run"
        assert f"dies: {told}" in result.output
        text = words((tmp_path / "out" / "dies.html").read_text(encoding="utf-8"))
        assert "alive" in text and told in text

    def test_a_notebook_without_code(self, course, tmp_path):
        result = run(write(tmp_path / "words.ipynb", ["# Only words"]), "--out", tmp_path)
        assert result.exit_code == 0 and "Only words" in (tmp_path / "words.html").read_text(encoding="utf-8")

    def test_an_out_that_is_a_file_is_told(self, course, tmp_path):
        (tmp_path / "out").write_text("a file")
        result = run("41", "--out", tmp_path / "out")
        assert result.exit_code == 1 and "File exists" in result.output
        assert isinstance(result.exception, SystemExit)

    def test_ctrl_c_leaves_what_is_written(self, tmp_path):
        quick = write(tmp_path / "quick.ipynb", [["print(1)"]])
        slow = write(tmp_path / "slow.ipynb", [["import time\nfor _ in range(600): time.sleep(0.1)"]])
        command = [sys.executable, "-m", "labkit", "run", quick, slow, "--out", "pages"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (tmp_path / "pages" / "quick.html").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)  # in slow's kernel, or on the way to it
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "quick.html" in output and "Stopped. The pages are in pages." in output
        assert [path.name for path in (tmp_path / "pages").iterdir()] == ["quick.html"]

    def test_without_nbclient_says_what_to_install(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "labkit.course.notebooks.run", raising=False)
        monkeypatch.delattr(labkit.course.notebooks, "run", raising=False)
        monkeypatch.setitem(sys.modules, "nbclient", None)
        result = run("03")
        assert result.exit_code == 1 and mend.install("lab") in result.output


class TestNames:
    NAMES = ("03_shared_memory_tiling", "04_coalescing", "10_capstone", "11_capstones")

    @pytest.fixture
    def folder(self, tmp_path):
        for name in self.NAMES:
            (tmp_path / f"{name}.ipynb").write_text("{}")
        return tmp_path

    @pytest.mark.parametrize(
        ("name", "stem"),
        [
            ("03", "03_shared_memory_tiling"),
            ("3", "03_shared_memory_tiling"),
            ("03_shared", "03_shared_memory_tiling"),
            ("04_coalescing.ipynb", "04_coalescing"),
            ("10", "10_capstone"),
        ],
    )
    def test_may_be_short(self, folder, name, stem):
        assert catalog.find([name], folder) == [folder / f"{stem}.ipynb"]

    def test_a_path_is_taken_as_it_is(self, folder, tmp_path, monkeypatch):
        (tmp_path / "my own").mkdir()
        (tmp_path / "my own" / "03.ipynb").write_text("{}")
        monkeypatch.chdir(tmp_path / "my own")
        assert catalog.find(["03.ipynb"], folder) == [Path("03.ipynb")]

    def test_one_that_is_named_twice_is_run_once(self, folder):
        assert len(catalog.find(["03", "3", str(folder / "03_shared_memory_tiling.ipynb")], folder)) == 1

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("12", "There is no notebook '12'. Choose one of: 03_shared_memory_tiling, 04_coalescing, "),
            ("no/such.ipynb", "There is no notebook 'no/such.ipynb'. Choose one of: "),
            ("1", "There is no notebook '1'"),
            (".", ". is a folder. Name one of its notebooks."),
        ],
    )
    def test_what_fits_none_or_several_is_refused(self, folder, name, message):
        with pytest.raises(catalog.NoNotebook) as error:
            catalog.find([name], folder)
        assert message in str(error.value)

    def test_an_empty_folder_is_told(self, tmp_path):
        with pytest.raises(catalog.NoNotebook, match="There is no notebook in"):
            catalog.find(["03"], tmp_path)

    def test_two_pages_of_one_name_are_refused(self, course, tmp_path):
        (tmp_path / "41_good.ipynb").write_text("{}")
        result = run("41", tmp_path / "41_good.ipynb")
        assert result.exit_code == 1 and "would both become labkit-html/41_good.html" in result.output

    def test_no_such_notebook_fails_before_anything_runs(self, course):
        result = run("41", "77")
        assert result.exit_code == 1
        assert (
            "There is no notebook '77'. Choose one of: 41_good, 42_bad, 43_text; or give a path."
            in result.output
        )


def test_links_in_outputs_lead_to_pages(tmp_path):
    link = '<a href="03_shared_memory_tiling.ipynb">on</a> <a href="#Exercise">down</a>'
    output = nbformat.v4.new_output("display_data", {"text/html": link})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[output])])
    html = page(notebook, {}, tmp_path / "02.ipynb")
    assert '<a href="03_shared_memory_tiling.html">on</a> <a href="#Exercise">down</a>' in html


def _answer(exercise):
    about = {"labkit": {"exercise": exercise, "role": "answer"}}
    return {"cell_type": "code", "source": f"%%cuda {exercise}", "metadata": about}


class TestCourse:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        """An installed package: its notebooks lie within it."""
        monkeypatch.setattr(catalog, "PACKAGE", tmp_path / "labkit")
        (tmp_path / "labkit" / "notebooks").mkdir(parents=True)
        return tmp_path / "labkit" / "notebooks"

    def listed(self):
        return CliRunner().invoke(cli.app, ["course"])

    def test_lists_notebooks_exercises_and_points(self, folder):
        notebook = {
            "cells": [
                {"cell_type": "code", "source": "# 99 · not this"},
                {"cell_type": "markdown", "source": ["Before.\n", "# 00 · The first steps\n", "## And more"]},
                _answer("00.1"),
                _answer("02.3"),
            ],
            "metadata": {"labkit": {"concept": "what a thread is", "part": "core"}},
        }
        (folder / "00_first.ipynb").write_text(json.dumps(notebook))
        write(folder / "77_extra.ipynb", ["# 77 · Extra"])
        lines = [" ".join(line.split()) for line in self.listed().output.splitlines()]
        assert lines[:3] == [
            "00 The first steps 3 points",
            "what a thread is (the core, about 10 minutes)",
            "00.1 ○ Scale a vector of any length 1",
        ]
        assert lines[3] == "02.3 ○ Scale and add, as BLAS does (more practice) 2"
        assert "77 Extra 0 points" in lines
        assert lines[-1] == "2 notebooks, 2 exercises 3 points"

    def test_shows_what_is_earned(self, folder, tmp_path, monkeypatch):
        cells = [{"cell_type": "markdown", "source": "# 00 · First"}, _answer("00.1"), _answer("00.2")]
        (folder / "00_first.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "labkit-notebooks").mkdir()
        earned = [("00.1", 1.0, True), ("00.2", 0.5, False)]
        told = [json.dumps(dict(zip(("exercise", "share", "solved"), each, strict=True))) for each in earned]
        (tmp_path / "labkit-notebooks" / "progress.jsonl").write_text("\n".join(told))
        lines = [" ".join(line.split()) for line in self.listed().output.splitlines()]
        assert lines[0] == "00 First 2 of 3 points"
        assert [line[:6] for line in lines[2:4]] == ["00.1 ✓", "00.2 ◐"]
        assert lines[-1] == "1 notebooks, 2 exercises, 1 solved 2 of 3 points"

    def test_the_real_course_is_readable_in_80_columns(self, monkeypatch):
        monkeypatch.setattr("labkit.course.progress.FILE", "nothing.jsonl")
        output = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, ["course"]).output
        assert max(map(len, output.splitlines())) <= 80 and "…" not in output
        flat = " ".join(output.split())
        for exercise in EXERCISES.values():
            more = " (more practice)" * exercise.practice
            assert f"{exercise.id} ○ {exercise.title}{more} {exercise.points}" in flat
        assert f"{len(EXERCISES)} exercises {sum(each.points for each in EXERCISES.values())} points" in flat

    def test_works_without_nbformat(self):
        """The base install has none."""
        code = "import sys; sys.modules['nbformat'] = None; from labkit.cli import app; app(['course'])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0 and "03.1" in done.stdout

    @pytest.mark.parametrize("text", ["no JSON", "[]", "{}"])
    def test_a_broken_notebook_is_told(self, folder, text):
        (folder / "00_broken.ipynb").write_text(text)
        result = self.listed()
        assert result.exit_code == 1 and "00_broken.ipynb is not a notebook: it " in result.output

    def test_no_notebooks_are_told(self, folder):
        assert "There is no notebook in" in self.listed().output


class TestPage:
    """What stands in the place of a widget, from states as a kernel sends them."""

    def shown(self, model_id: str, **states: dict) -> str:
        output = nbformat.v4.new_output(
            "display_data", {WIDGET: {"model_id": model_id}, "text/plain": "only text"}
        )
        cell = nbformat.v4.new_code_cell("x", outputs=[output])
        html = page(nbformat.v4.new_notebook(cells=[cell]), states, Path("x.ipynb"))
        return html[html.index("<main") :]

    def test_an_explorer_shows_what_was_chosen(self):
        menu = {"label": "report <1>", "labels": ["a", "b"], "position": 1}
        shown = {"controls": [menu], "pictures": ["<svg></svg>"], "details": "<p>so</p>"}
        html = self.shown("view", view={"shown": shown | {"conclusion": "1 < 2"}})
        assert "report &lt;1&gt; <b>b</b>" in html and "1 &lt; 2" in html and "<p>so</p>" in html
        assert "<svg></svg>" in html and "only text" not in html
        assert "no &lt;file&gt;" in self.shown("view", view={"shown": shown | {"error": "no <file>"}})

    def test_a_kernel_is_coloured_as_cuda(self):
        cell = nbformat.v4.new_code_cell("%%cuda k\n__global__ void k(int* x) { *x = 1; }")
        html = page(nbformat.v4.new_notebook(cells=[cell]), {}, Path("x.ipynb"))
        assert '<span class="kr">__global__</span>' in html  # a keyword of CUDA, and none of Python

    def test_a_widget_without_a_state_is_its_text(self):
        assert "only text" in self.shown("gone")

    @pytest.mark.parametrize("layout", [{"visibility": "hidden"}, {"display": "none"}])
    def test_what_is_hidden_is_not_shown(self, layout):
        html = self.shown(
            "bar", bar={"_model_name": "HTMLModel", "value": "100 %", "layout": "IPY_MODEL_look"}, look=layout
        )
        assert "100 %" not in html and "only text" not in html
