"""Answers become notebooks of our own: only their text enters, below a magic line known to be harmless."""

import ast
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell

from grader.intake import submissions
from grader.intake.magic_line import Refused, rewritten
from grader.intake.merge import WrongNotebook, hidden_criteria, notebooks
from grader.intake.submissions import Entry
from grader.model import Answer
from labkit import magic
from labkit.course import EXERCISES
from labkit.course.exercise import Unmet
from labkit.course.notebooks import catalog
from labkit.course.setups import SETUP, setups

SOLUTIONS = Path(__file__).parents[2] / "notebooks" / "solutions"
NAIVE = SOLUTIONS / "02_naive_cuda.ipynb"


def merged(*sources, setup=()):
    """Notebooks and refusals for answers, told by their magic lines."""
    answers = {}
    for source in sources:
        id = next(word for word in source.split() if word in EXERCISES)
        answers[id] = Answer(id, source)
    return notebooks(answers, [EXERCISES[id] for id in sorted(EXERCISES)], dict(setup))


def ids(notebook):
    return [cell.id for cell in notebook.cells]


def solved_answers():
    submission = submissions.read(Entry("teacher", (SOLUTIONS,)), EXERCISES, ())
    return submission.answers


def written(path, *cells):
    """A notebook of code cells: sources, and what their metadata have as labkit."""
    made = [nbformat.v4.new_code_cell(source, metadata={"labkit": about}) for source, about in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


class TestNotebooks:
    def test_answers_in_cuda_share_one_and_others_have_their_own(self):
        made, refused = merged(
            "%%cuda 02.2\nb", "%%cuda 02.1\na", "%%c 01.2\nc", "%%answer 09.3\nd", "%%answer 09.6\ne"
        )
        assert not refused
        assert [ids(each) for each in made] == [
            ["setup", "answer-01-2", "check-01-2"],
            ["setup", "answer-02-1", "check-02-1", "answer-02-2", "check-02-2"],
            ["setup", "answer-09-3", "check-09-3"],
            ["setup", "answer-09-6", "check-09-6"],
        ]

    def test_cells_say_what_they_are_and_checks_are_ours(self):
        (made,), _ = merged("%%cuda 02.1 -D TILE=4\nint x;\n")
        nbformat.validate(made)
        assert made.metadata.kernelspec.name == "python3"
        setup, answer, check = made.cells
        assert setup.source == SETUP and answer.source == "%%cuda 02.1 -DTILE=4\nint x;\n"
        probe = "grader.sandbox.probe"
        assert check.source == f'import {probe}\n{probe}.serve("02.1")'
        assert answer.metadata == {"labkit": {"exercise": "02.1", "role": "answer"}}
        assert check.metadata == {"labkit": {"exercise": "02.1", "role": "check"}}

    def test_the_same_answers_give_the_same_notebooks(self):
        first, second = (merged("%%cuda 02.1\nx", "%%answer 09.3\ny")[0] for _ in range(2))
        assert first == second

    def test_no_answer_no_cells(self):
        assert notebooks({"02.1": Answer("02.1", "", "missing")}, [EXERCISES["02.1"]], {}) == ([], {})
        assert notebooks({}, [EXERCISES["02.1"]], {}) == ([], {})
        assert notebooks({"02.1": Answer("02.1", "%%cuda 02.1\nx")}, [], {}) == ([], {})

    def test_an_answer_that_is_refused_leaves_the_others(self):
        (made,), refused = merged("%%cuda 02.1 -I/etc\nx", "%%cuda 02.2\ny")
        assert ids(made) == ["setup", "answer-02-2", "check-02-2"]
        assert refused["02.1"].startswith("%%cuda 02.1 -I/etc: -I/etc names files, and an answer")

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("%%answer 02.1\nimport os\ndef f(): pass", "a Python function, and 02.1 asks for a CUDA kernel"),
            ("%%c 02.1\nvoid f() {}", "This is a C function, and 02.1 asks for a CUDA kernel"),
            ("%%cuda 09.3\nx", "begin the cell with %%answer 09.3."),
            ("%%bash 02.1\nx", "This is no answer"),
            ("%%cuda 02.1", "nothing below its magic line"),
            ("%%cuda 02.1\n \n", "nothing below its magic line"),
            ("%%answer 09.3 -x\ndef f(): pass", "that is not the id of an exercise alone"),
        ],
    )
    def test_another_language_never_enters_the_kernel(self, source, words):
        made, refused = merged(source)
        ((_, why),) = refused.items()
        assert made == [] and words in why

    def test_every_solved_answer_runs_as_it_is(self):
        answers = solved_answers()
        made, refused = notebooks(answers, list(EXERCISES.values()), {})
        cells = [cell for each in made for cell in each.cells if cell.id.startswith("answer")]
        assert not refused and len(cells) == len(EXERCISES)
        for cell in cells:
            exercise = EXERCISES[cell.metadata.labkit.exercise]
            ours = answers[exercise.id].source
            assert cell.source.partition("\n")[2] == ours.partition("\n")[2]
            line, written = (text.partition("\n")[0] for text in (cell.source, ours))
            if written.startswith("%%program"):  # it is built here, and run by the judge
                assert line == f"{written.partition(' --')[0]} --build"
            elif exercise.function:  # the sandbox knows no exercises
                assert line == f"{written} --function={exercise.function}"
            else:
                assert line.replace("-D", "-D ") in (written, cell.source)


class TestMagicLine:
    @pytest.mark.parametrize(
        ("line", "becomes"),
        [
            ("02.1", "02.1"),
            ("  -D TILE=16   02.1 ", "02.1 -DTILE=16"),
            ("02.1 -DA -D 'B=a b' -D 'F(x, y)=x+y'", "02.1 -DA '-DB=a b' '-DF(x, y)=x+y'"),
            ("02.1 --name-expression 'gemm<16>' -DT=-1", "02.1 -DT=-1 '--name-expression=gemm<16>'"),
            (
                "02.1 --std=c++20 --use_fast_math --fmad=false",
                "02.1 --std=c++20 --use_fast_math --fmad=false",
            ),
            ("02.1 -use_fast_math -maxrregcount 32 -U X", "02.1 --use_fast_math --maxrregcount=32 -UX"),
            ("--std c++20 -arch=sm_90 02.1 -Xptxas -v", "02.1 --std=c++20 --ptxas-options=-v"),
        ],
    )
    def test_of_cuda_is_put_together_from_its_parts(self, line, becomes):
        assert rewritten(f"%%cuda {line}\nx", EXERCISES["02.1"]) == f"%%cuda {becomes}\nx"

    def test_of_c_takes_the_usual_options(self):
        options = (
            "-O2 -Ofast -ffast-math -fopenmp -march=native -mavx2 -mfma -mavx512f -funroll-loops -std=c11 -lm"
        )
        options += " -fno-math-errno -fno-tree-vectorize -ffp-contract=fast -Wall -Wno-unused"
        assert rewritten(f"%%c 01.2 {options}\nx", EXERCISES["01.2"]) == f"%%c 01.2 {options}\nx"
        assert rewritten("%%c 01.3 -lpthread -g\nx", EXERCISES["01.3"]) == "%%c 01.3 -pthread -g\nx"

    @pytest.mark.parametrize(
        "option",
        [
            *(
                "-I/etc",
                "-I /etc",
                "--include-path=/",
                "-include x",
                "--pre-include=x",
                "@file",
                "'-D X' y",
                "x",
            ),
            *(
                "-L/",
                "-l evil",
                "-o x",
                "-x c++",
                "-fplugin=x",
                "-fdump-tree-all",
                "-Wl,-rpath,/",
                "-Wp,-MD,x",
            ),
            *(
                "-B/",
                "-specs=x",
                "-Xlinker x",
                "-wrapper sh",
                "-save-temps",
                "-fprofile-generate",
                "-mllvm",
                "-E",
            ),
            *(
                "-D",
                "-D -I/etc",
                "-D=1",
                "-D '1=2'",
                "--name-exp",
                "--relocatable-device-code=true",
                "'",
                "-D 'a b'",
            ),
            *(
                "-D X={1}",
                "-D X=$HOME",
                "-D X=$(id)",
                "{__import__('os')}",
                "-D X=\x00",
                "-D X=\u2028",
                "-DX=\x1b[2J",
            ),
        ],
    )
    @pytest.mark.parametrize("magic_of", ["cuda 02.1", "c 01.2"])
    def test_what_could_run_read_or_write_anything_is_refused(self, magic_of, option):
        with pytest.raises(Refused, match=f"^%%{magic_of} "):
            rewritten(f"%%{magic_of} {option}\nx", EXERCISES[magic_of.split()[1]])

    def test_another_exercise_is_refused(self):
        for line in ("02.2", "", "scale", "-U 02.1", "02.2 02.1"):
            with pytest.raises(Refused):
                rewritten(f"%%cuda {line}\nx", EXERCISES["02.1"])

    @settings(max_examples=500, deadline=None)
    @given(
        line=st.text(max_size=40)
        | st.lists(
            st.sampled_from(
                [
                    "02.1",
                    "-D",
                    "-DX=",
                    "{1/0}",
                    "$x",
                    "-I",
                    "'",
                    '"',
                    "\\",
                    "\t",
                    "--fmad=true",
                    "?",
                    "!ls",
                    "\x0c",
                    ";",
                ]
            )
        ).map(lambda words: "02.1 " + " ".join(words)),
        body=st.text(max_size=60)
        | st.lists(
            st.sampled_from(["!touch x", "x?", "%ls", "%%answer 09.3", ">>> {1/0}", "$x", "\x0c", "\r"])
        ).map("\n".join),
    )
    def test_whatever_stands_in_a_cell_ipython_only_calls_the_magic_with_it(self, line, body):
        try:
            cell = rewritten(f"%%cuda {line}\n{body}", EXERCISES["02.1"])
        except Refused:
            return
        (statement,) = ast.parse(TransformerManager().transform_cell(cell)).body
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        assert ast.unparse(statement.value.func) == "get_ipython().run_cell_magic"
        name, words, _ = (ast.literal_eval(each) for each in statement.value.args)
        assert name == "cuda" and words.startswith("02.1")
        shell = InteractiveShell.instance()
        assert shell.var_expand(words, depth=0) == words
        read = magic.read_line("cuda", words)
        assert read.name == "02.1" and all(each.startswith(("-D", "--fmad")) for each in read.options)


class TestInAKernel:
    @pytest.fixture
    def shell(self, ipython, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        return ipython

    def test_answers_run_and_are_kept(self, shell):
        answers = {id: solved_answers()[id] for id in ("02.1", "02.2", "09.3")}
        made, _ = notebooks(
            answers, [EXERCISES[id] for id in answers], setups(SOLUTIONS / "05b_when_kernels_break.ipynb")
        )
        for notebook in made:
            for cell in notebook.cells:
                if cell.metadata.get("labkit", {}).get("role") != "check":
                    shell.run_cell(cell.source, store_history=False).raise_error()
        assert set(magic.answers) == set(answers)
        assert "np" in magic.answers["09.3"].__globals__

    def test_python_in_the_line_or_the_body_does_not_run(self, shell, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        body = (
            'extern "C" __global__ void f() {}\n// {open("ran", "w")} $x\n/*\n!ls > ran\n%%bash\nls > ran\n*/'
        )
        made, refused = merged(f"%%cuda 02.1\n{body}", "%%cuda 02.2 -D X={open('ran','w')}\nx")
        assert list(refused) == ["02.2"]
        for cell in made[0].cells[:2]:
            shell.run_cell(cell.source, store_history=False).raise_error()
        assert magic.answers["02.1"].module.code.endswith(body.strip() + "\n") and not list(
            tmp_path.iterdir()
        )


class TestSetups:
    def test_have_what_the_cells_above_import_and_define(self, tmp_path):
        solved = written(
            tmp_path / "99.ipynb",
            (
                "import labkit\nimport numpy as np\n%load_ext labkit\n%matplotlib inline\nprint(np)",
                {},
            ),
            ("from math import pi\nimport os.path as path\nside = path.join", {}),
            ("LIMIT = 3\ndef twice(x):\n    return 2 * x", {}),
            ("%%cuda scale\nint x;", {}),
            ("%load_ext other\nrun = twice(4)", {}),
            ("secret = 42", {"role": "prediction"}),
            ("%%answer 99.1\ndef f(): pass", {"exercise": "99.1", "role": "answer"}),
            ("import json", {}),
            ("from labkit.course.model_gpu import ModelGpu", {}),
            ("%%answer 99.2\ndef f(): pass", {"exercise": "99.2", "role": "answer"}),
        )
        first = (
            *(SETUP, "import labkit", "import numpy as np", "from math import pi", "import os.path as path"),
            *("LIMIT = 3", "def twice(x):\n    return 2 * x", "%load_ext other"),
        )
        assert setups(solved) == {"99.1": first, "99.2": (*first, "import json")}

    def test_only_what_an_answer_needs_is_set_up(self):
        statements = (
            SETUP,
            "import matplotlib",
            "import numpy as np",
            "SIDE = 3",
            "def area():\n    return SIDE * SIDE",
        )
        setup = {"09.3": statements}
        (made,), _ = merged("%%answer 09.3\ndef f(): return area()", setup=setup)
        assert made.cells[0].source == f"{SETUP}\nSIDE = 3\ndef area():\n    return SIDE * SIDE"
        (made,), _ = merged("%%answer 09.3\ndef f(): return np.pi", setup=setup)
        assert made.cells[0].source == f"{SETUP}\nimport numpy as np"

    def test_of_the_course_know_numpy_and_labkit_and_no_solutions(self):
        found = {id: setup for path in SOLUTIONS.glob("*.ipynb") for id, setup in setups(path).items()}
        assert set(found) == set(EXERCISES)
        for id, exercise in EXERCISES.items():
            if exercise.magic == "answer":
                assert {SETUP, "import labkit", "import numpy as np"} <= set(found[id])
            assert not any("SOLUTION" in each or "labkit.course" in each for each in found[id])


class TestHiddenChecks:
    def test_of_notebook_02_find_what_its_own_criteria_do_not(self):
        hidden = hidden_criteria(NAIVE)
        assert set(hidden) == {"02.2"}
        (criterion,) = hidden["02.2"]
        body = solved_answers()["02.2"].source.partition("\n")[2]
        criterion.test(magic.compile_cell(body, [], [], "matmul"))
        narrow = magic.compile_cell(body.replace("col >= N", "col >= N || col > 600"), [], [], "matmul")
        assert EXERCISES["02.2"].judge(narrow).ok
        with pytest.raises(Unmet, match="M=1 N=700 K=3"):
            criterion.test(narrow)

    def test_of_one_exercise_in_several_cells_are_all_tried(self, tmp_path):
        cell = "from labkit.course.exercise import Criterion\nCRITERIA = (Criterion({!r}, print),)"
        about = {"exercise": "02.1", "role": "hidden"}
        path = written(tmp_path / "a.ipynb", *((cell.format(text), about) for text in ("one", "two")))
        assert [criterion.text for criterion in hidden_criteria(path)["02.1"]] == ["one", "two"]

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("CRITERIA = 1 / 0", "ZeroDivisionError: division by zero"),
            ("CRITERIA = (", "SyntaxError"),
            ("%matplotlib inline", "SyntaxError"),
            ("x = 1", "it does not define CRITERIA, a tuple of labkit.course.exercise.Criterion"),
            ("CRITERIA = ['right']", "it does not define CRITERIA"),
        ],
    )
    def test_a_cell_that_has_none_is_named(self, tmp_path, source, words):
        path = written(tmp_path / "02_mine.ipynb", (source, {"exercise": "02.1", "role": "hidden"}))
        id = nbformat.read(path, as_version=4).cells[0].id
        with pytest.raises(WrongNotebook, match=r"02_mine\.ipynb, cell") as error:
            hidden_criteria(path)
        assert words in str(error.value) and id in str(error.value)

    def test_a_cell_that_names_no_exercise_is_told(self, tmp_path):
        path = written(tmp_path / "a.ipynb", ("CRITERIA = ()", {"role": "hidden"}))
        with pytest.raises(WrongNotebook, match="do not say for which exercise"):
            hidden_criteria(path)

    def test_a_notebook_that_is_none_is_told(self, tmp_path):
        (tmp_path / "a.ipynb").write_text("{")
        for function in (hidden_criteria, setups):
            with pytest.raises(catalog.NoNotebook):
                function(tmp_path / "a.ipynb")
