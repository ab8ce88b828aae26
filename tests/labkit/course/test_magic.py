"""The cell magics: names, options, and compiler messages at the student's line."""

import re

import numpy as np
import pytest

import labkit
from labkit import magic
from simt.common.errors import CompileError

SCALE = """\
extern "C" __global__ void scale(float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = a * x[i];
}
"""
TWO = (
    'extern "C" __global__ void one(int* x) { *x = 1; }\nextern "C" __global__ void two(int* x) { *x = 2; }\n'
)


@pytest.fixture
def shell(ipython, monkeypatch):
    """A fresh IPython with `%load_ext labkit`, on the simulator."""
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    monkeypatch.setattr(magic, "answers", {})
    return ipython


@pytest.fixture
def run(shell, capsys):
    """Run a cell as a notebook does; gives its result and all that it shows."""

    def run_cell(source):
        result = shell.run_cell(source, store_history=False)
        shown = capsys.readouterr()
        return result, re.sub(r"\x1b\[[0-9;]*m", "", shown.out + shown.err)  # without colours

    return run_cell


def value_of(kernel):
    """What a kernel that writes one int writes."""
    x = np.zeros(1, np.int32)
    kernel(1, 1, (x,))
    return int(x[0])


class TestNames:
    def test_a_variable_is_bound_to_the_kernel(self, run, shell):
        result, shown = run(f"%%cuda scale\n{SCALE}")
        assert result.success and shown == ""
        x = np.arange(4, dtype=np.float32)
        shell.user_ns["scale"](1, 4, (x, np.float32(10), np.int32(4)))
        assert x.tolist() == [0, 10, 20, 30]

    def test_the_variable_may_have_another_name(self, run, shell):
        run(f"%%cuda mine\n{SCALE}")
        assert shell.user_ns["mine"].name == "scale"

    def test_an_exercise_is_kept_as_its_answer(self, run, shell):
        run(f"%%cuda 00.1\n{SCALE}")
        assert labkit.answer("00.1").name == "scale"
        result, _ = run('import labkit; labkit.check("00.1")')
        assert result.result.ok

    def test_the_last_of_several_runs_counts(self, run):
        run(f"%%cuda 00.1\n{SCALE}")
        run(f"%%cuda 00.1\n{SCALE.replace('a * x', '2 * a * x')}")
        assert not labkit.check("00.1").ok

    def test_without_extern_c(self, run, shell):
        run("%%cuda plain\n__global__ void plain(int* x) { *x = 7; }")
        assert value_of(shell.user_ns["plain"]) == 7

    def test_of_several_kernels_the_one_of_that_name(self, run, shell):
        run(f"%%cuda two\n{TWO}")
        assert value_of(shell.user_ns["two"]) == 2

    def test_several_kernels_of_other_names(self, run, shell):
        result, shown = run(f"%%cuda three\n{TWO}")
        assert not result.success and "three" not in shell.user_ns
        assert "The cell has 2 kernels: one, two. Give each a cell of its own." in shown

    def test_no_kernel(self, run):
        _, shown = run("%%cuda none\n__device__ int twice(int x) { return 2 * x; }")
        assert "The cell has no kernel. A kernel is a function declared __global__ void" in shown

    @pytest.mark.parametrize("line", ["a-b", "2x", "for", "2.1", "02.1.1"])
    def test_what_is_no_name(self, run, line):
        result, shown = run(f"%%cuda {line}\n{SCALE}")
        assert not result.success
        assert f"%%cuda {line}: that is neither a Python variable nor the id of an exercise" in shown

    def test_name_forgotten(self, run):
        _, shown = run(f"%%cuda\n{SCALE}")
        assert "%%cuda wants a name: a variable, as in %%cuda scale, or an exercise" in shown


class TestOptions:
    @pytest.mark.parametrize("options", ["-D VALUE=5", "-DVALUE=5", "-D VALUE=4+1", "--std=c++20 -DVALUE=5"])
    def test_go_to_the_compiler(self, run, shell, options):
        run(f'%%cuda k {options}\nextern "C" __global__ void k(int* x) {{ *x = VALUE; }}')
        assert value_of(shell.user_ns["k"]) == 5

    def test_several_macros(self, run, shell):
        run('%%cuda k -D A=3 -D B=4\nextern "C" __global__ void k(int* x) { *x = A * B; }')
        assert value_of(shell.user_ns["k"]) == 12

    def test_name_expression(self, run, shell):
        run("%%cuda k --name-expression 'fill<9>'\ntemplate <int N> __global__ void fill(int* x) { *x = N; }")
        assert value_of(shell.user_ns["k"]) == 9

    def test_unknown_option(self, run):
        result, shown = run(f"%%cuda scale --fast\n{SCALE}")
        assert not result.success
        assert "--fast is not an option of NVIDIA's compiler NVRTC. Often used are -D NAME=VALUE" in shown

    def test_a_word_that_is_no_option(self, run):
        _, shown = run(f"%%cuda scale fast\n{SCALE}")
        assert "what is 'fast'? An option begins with -, such as -D TILE=16." in shown

    def test_a_quote_that_does_not_end(self, run):
        result, shown = run(f"%%cuda scale -D 'A\n{SCALE}")
        assert not result.success and "UsageError" in shown and "No closing quotation" in shown


class TestMessages:
    def test_an_error_stands_at_the_line_of_the_cell(self, run):
        """Editors count the magic's line as line 1."""
        cell = f"%%cuda scale\n{SCALE.replace('x[i] = a', 'x[i] = b')}"
        result, shown = run(cell)
        assert not result.success
        assert 'line 6: error: identifier "b" is undefined' in shown
        source, caret = shown.split("undefined\n")[1].splitlines()[:2]
        assert source == f"    6 | {cell.splitlines()[5]}"
        assert source[caret.index("^")] == "b"

    def test_tabs_keep_the_caret_in_its_place(self, run):
        _, shown = run('%%cuda k\nextern "C" __global__ void k(int* x)\n{\n\t*x = y;\n}')
        assert "    4 | \t*x = y;\n      | \t     ^" in shown

    def test_all_errors_are_shown_but_no_python(self, run):
        _, shown = run('%%cuda k\nextern "C" __global__ void k(int* x)\n{\n    *x = y;\n    *x = z;\n}')
        assert 'line 4: error: identifier "y"' in shown and 'line 5: error: identifier "z"' in shown
        assert "Traceback" not in shown and "magic.py" not in shown and "CellError" not in shown

    def test_warnings_are_shown_only_where_there_is_no_error(self, run, shell):
        unused = SCALE.replace("if (i < n)", "int unused; if (i < n)")
        result, shown = run(f"%%cuda scale\n{unused}")
        assert result.success and "scale" in shell.user_ns
        assert shown.startswith('line 5: warning: variable "unused" was declared but never referenced')
        _, shown = run(f"%%cuda scale\n{unused.replace('a * x', 'b * x')}")
        assert "error" in shown and "warning" not in shown

    def test_an_error_of_the_launch_names_the_same_line(self, run, shell):
        run(f"%%cuda scale\n{SCALE.replace('if (i < n)', '')}")
        result, shown = run(
            "import numpy as np\nscale(1, 9, (np.ones(8, np.float32), np.float32(2), np.int32(8)))"
        )
        assert not result.success
        assert "InvalidAccess: line 6: invalid global read" in shown and "Traceback" not in shown

    def test_a_macro_that_breaks_the_headers(self, run):
        _, shown = run('%%cuda k -D T=float\nextern "C" __global__ void k(T* x) { *x = 1; }')
        assert "has a name that they use, such as T: choose another" in shown
        assert len(shown.splitlines()) < 8

    def test_a_message_of_another_form_is_shown_as_it_is(self):
        assert (
            magic._explained(CompileError("NVRTC stopped: OUT_OF_MEMORY")) == "NVRTC stopped: OUT_OF_MEMORY"
        )


class TestFailedCell:
    def test_an_older_kernel_of_that_name_is_forgotten(self, run, shell):
        run(f"%%cuda scale\n{SCALE}")
        run("%%cuda scale\nnonsense")
        assert "scale" not in shell.user_ns

    def test_an_older_answer_is_forgotten(self, run):
        run(f"%%cuda 00.1\n{SCALE}")
        run("%%cuda 00.1\nnonsense")
        assert "The cell of 00.1 has run and left no CUDA kernel:\nline 2: error" in repr(
            labkit.check("00.1")
        )


ADD = """\
static int one(void) { return 1; }
int add(const int *x, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum * one();
}
"""


class TestC:
    def test_a_variable_is_bound_to_the_function(self, run, shell):
        result, shown = run(f"%%c add\n{ADD}")
        assert result.success and shown == ""
        assert shell.user_ns["add"](np.arange(5, dtype=np.int32), 5) == 10
        assert repr(shell.user_ns["add"]) == "<C function add(const int *x, int n)>"

    def test_an_exercise_is_kept_as_its_answer(self, run):
        run(f"%%c 00.1\n{ADD}")
        assert magic.answers["00.1"].name == "add"

    @pytest.mark.parametrize(
        "name, taken",
        [("one", "one"), ("two", "two"), ("other", "two"), ("helper", "helper"), ("00.1", "two")],
    )
    def test_of_several_the_one_of_that_name_or_the_last_that_is_not_static(self, run, shell, name, taken):
        cell = (
            "int one(void) { return 1; }\nint two(void) { return 2; }\nstatic int helper(void) { return 3; }"
        )
        run(f"%%c {name}\n{cell}")
        kept = {**shell.user_ns, **magic.answers}[name]
        assert kept.name == taken and kept() == {"one": 1, "two": 2, "helper": 3}[taken]

    @pytest.mark.parametrize("cell", ["// later", "int x = 3;", "static int f(void) { return 1; }"])
    def test_no_function(self, run, cell):
        _, shown = run(f"%%c none\n{cell}")
        assert "The cell has no function to call. Write one that is not static." in shown

    def test_a_whole_program(self, run, shell):
        _, shown = run("%%c f\nint main(void) { return 0; }")
        assert "Write only the function that computes" in shown and "f" not in shell.user_ns

    @pytest.mark.parametrize("options", ["-D VALUE=5", "-DVALUE=5", "-D VALUE=4+1", "-O2 -std=c99 -DVALUE=5"])
    def test_options_go_to_the_compiler(self, run, shell, options):
        run(f"%%c f {options}\nint f(void) {{ return VALUE; }}")
        assert shell.user_ns["f"]() == 5

    @pytest.mark.parametrize(
        "option", ["-lpthread", "-pthread", "-lm", "-lc", "-Wall", "-Wextra", "-g", "-ggdb", "-pipe"]
    )
    def test_what_one_passes_in_a_terminal_is_taken_in_an_answer(self, run, option):
        result, shown = run(f"%%c 01.3 {option}\nint f(void) {{ return 1; }}")
        assert result.success, shown
        assert magic.answers["01.3"]() == 1

    @pytest.mark.parametrize("option", ["-c", "-o f.so", "-of", "-shared", "-S"])
    @pytest.mark.parametrize("name", ["f", "01.3"])
    def test_what_labkit_does_by_itself_is_told_to_be_needless(self, run, name, option):
        result, shown = run(f"%%c {name} {option}\nint f(void) {{ return 1; }}")
        assert not result.success and "labkit builds the cell by itself" in shown

    def test_an_unknown_option(self, run):
        result, shown = run("%%c f --no-such-option\nint f(void) { return 1; }")
        assert not result.success and "--no-such-option" in shown and "Traceback" not in shown

    @pytest.mark.parametrize(
        "line, message",
        [
            ("", "%%c wants a name: a variable, as in %%c scale"),
            ("for", "%%c for: that is neither a Python variable nor"),
            ("f fast", "%%c f fast: what is 'fast'?"),
            ("f 'x", "No closing quotation"),
        ],
    )
    def test_words_are_those_of_cuda(self, run, line, message):
        assert message in run(f"%%c {line}\n{ADD}")[1]

    def test_an_error_stands_at_the_line_of_the_cell(self, run):
        cell = f"%%c add\n{ADD.replace('sum += x', 'sum += y')}"
        result, shown = run(cell)
        assert not result.success and "Traceback" not in shown and "CellError" not in shown
        assert "Its %%c line counts as line 1." in shown
        source, caret = shown.partition("line 7: error: ")[2].splitlines()[1:3]
        assert source == f"    7 | {cell.splitlines()[6]}"
        assert source[caret.index("^")] == "y"

    def test_warnings_are_shown_where_they_help(self, run, shell):
        result, shown = run("%%c f\nint f(int *x, unsigned n) {\n    int sum;\n    return sum;\n}")
        assert result.success and "f" in shell.user_ns
        assert shown.startswith("line 4: warning: ") and shown.count("warning") == 1
        assert "    4 |     return sum;\n" in shown

    def test_a_mistake_at_run_time_names_the_same_line(self, run):
        run(f"%%c add\n{ADD}")
        result, shown = run("import numpy as np\nadd(np.ones(4, np.int32), 5)")
        assert not result.success and "Traceback" not in shown
        assert "InvalidAccess: line 7: " in shown and "7 | sum += x[i];" in shown

    def test_an_older_function_of_that_name_is_forgotten(self, run, shell):
        run(f"%%c add\n{ADD}")
        run(f"%%c 00.1\n{ADD}")
        run("%%c add\nnonsense")
        run("%%c 00.1\nnonsense")
        assert "add" not in shell.user_ns and not magic.answers


class TestAnswer:
    """`%%answer`: a function in Python."""

    def test_the_function_is_kept_as_the_answer_and_stays_in_the_notebook(self, run, shell):
        result, shown = run("%%answer 09.6\ndef twice(x):\n    return 2 * x")
        assert result.success and shown == ""
        assert magic.answers["09.6"](4) == 8 and shell.user_ns["twice"](4) == 8

    def test_the_last_of_several_functions_counts_and_may_use_the_others(self, run):
        run("%%answer 09.6\ndef half(x):\n    return x / 2\n\ndef quarter(x):\n    return half(half(x))")
        assert magic.answers["09.6"](12) == 3

    def test_it_sees_what_other_cells_have_made(self, run):
        run("factor = 5")
        run("%%answer 09.6\ndef grow(x):\n    return factor * x")
        assert magic.answers["09.6"](2) == 10

    def test_the_rest_of_the_cell_runs_as_python(self, run, shell):
        _, shown = run("%%answer 09.6\nstart = 3\ndef f(x):\n    return x + start\nprint(f(1))")
        assert shown == "4\n" and shell.user_ns["start"] == 3

    def test_what_python_cannot_read_is_told_with_its_line(self, run):
        result, shown = run("%%answer 09.6\ndef f(x):\n    return x +\n")
        assert not result.success and "Traceback" not in shown and "magic.py" not in shown
        assert shown.startswith("line 3: SyntaxError: invalid syntax\n    3 |     return x +\n")
        source, caret = shown.splitlines()[1:3]
        assert caret.index("^") == len(source)  # behind the last letter

    def test_wrong_indentation_too(self, run):
        _, shown = run("%%answer 09.6\ndef f(x):\nreturn x")
        assert "line 3: IndentationError: expected an indented block" in shown and "3 | return x" in shown

    def test_an_error_shows_as_usual_with_the_line_of_the_cell(self, run):
        result, shown = run("%%answer 09.6\ndef f(x):\n    return x\n\nf(1) + missing")
        assert not result.success and "NameError: name 'missing' is not defined" in shown
        assert "----> 5 f(1) + missing" in shown and "magic.py" not in shown

    def test_an_error_of_the_function_names_its_line_later(self, run):
        run("%%answer 09.6\ndef f(x):\n    y = x\n    return 1 / y")
        _, shown = run("f(0)")
        assert "----> 4     return 1 / y" in shown and "ZeroDivisionError" in shown

    @pytest.mark.parametrize("cell", ["", "x = 1", "# later", "class F:\n    def f(self): pass"])
    def test_a_cell_without_a_function_is_told(self, run, cell):
        result, shown = run(f"%%answer 09.6\n{cell}\n")
        assert not result.success and not magic.answers
        assert shown == "The cell has no function. Write one with def, as the task says.\n"

    @pytest.mark.parametrize("end", ["f = 3", "del f"])
    def test_a_name_that_is_no_function_at_the_end_is_told(self, run, end):
        _, shown = run(f"%%answer 09.6\ndef f(x):\n    return x\n{end}")
        assert "The cell has no function." in shown and not magic.answers

    @pytest.mark.parametrize(
        "cell",
        [
            "wrong_tiles = lambda x: 2 * x",
            "def times(y, x):\n    return y * x\nimport functools\nwrong_tiles = functools.partial(times, 2)",
            "class Tiles:\n    def __call__(self, x):\n        return 2 * x\nwrong_tiles = Tiles()",
            "import functools\n@functools.cache\ndef wrong_tiles(x):\n    return 2 * x",
            "def wrong_tiles(x, factor=2):\n    return factor * x",
            "if True:\n    def wrong_tiles(x):\n        return 2 * x",
        ],
    )
    def test_a_function_of_any_kind_is_an_answer_under_its_own_name(self, run, cell):
        run(f"%%answer 09.6\n{cell}")
        assert magic.answers["09.6"](21) == 42 and magic.answers["09.6"].__name__ == "wrong_tiles"

    @pytest.mark.parametrize("helper", ["def helper(x):\n    return 1", "helper = lambda x: 1"])
    def test_the_name_decides_and_not_the_place(self, run, helper):
        run(f"%%answer 07.1\ndef rates(x):\n    return helper(x) + 1\n{helper}")
        assert magic.answers["07.1"].__name__ == "rates" and magic.answers["07.1"](0) == 2

    @pytest.mark.parametrize("line", ["", "f", "9.6", "09.6 f", "-D N=3"])
    def test_what_is_no_id_is_told(self, run, line):
        result, shown = run(f"%%answer {line}\ndef f():\n    return 1")
        assert not result.success and not magic.answers
        assert "that is not the id of an exercise, such as 09.6." in shown

    @pytest.mark.parametrize("cell", ["nonsense(", "x = 1", "def f(): pass\n1 / 0"])
    def test_an_older_answer_is_forgotten(self, run, cell):
        run("%%answer 09.6\ndef f():\n    return 1")
        run(f"%%answer 09.6\n{cell}")
        assert not magic.answers
