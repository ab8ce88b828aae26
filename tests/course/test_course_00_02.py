"""Checks: solutions pass; what students start from, and typical wrong answers, fail with words that help."""

import re
from collections import Counter
from pathlib import Path

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import labkit
from labkit import simt
from labkit.course import EXERCISES, magic
from labkit.course.criteria.kernels import at_most
from labkit.course.exercise import Criterion, Exercise, Unmet, by_id
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.course.notebooks import release
from labkit.device.select import find_gpu
from labkit.kernels.matmul.family import Matmul

SOLUTIONS = Path(__file__).parents[2] / "notebooks" / "solutions"


def cells(role):
    """Exercise id -> the cell of its solved notebook with this role: answer or check."""
    found = {}
    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            about = cell.metadata.get("labkit", {})
            if about.get("role") == role:
                found[about["exercise"]] = cell
    return found


SOLVED = {exercise: cell.source for exercise, cell in cells("answer").items()}
# Whose answer nbval does not compare: that of others is shown by the solved notebooks, in test_notebooks.py.
NOT_COMPARED = [
    id for id, cell in cells("check").items() if "nbval-ignore-output" in cell.metadata.get("tags", [])
]


def answer_of(exercise, source):
    """What `%%cuda` or `%%c` makes of the cell, or `%%answer`."""
    magic_line, _, cell = source.partition("\n")
    if magic_line.startswith("%%answer "):
        return function_of(cell)
    options = [f"-D{macro}" for macro in re.findall(r"-D *(\S+)", magic_line)]
    if magic_line.startswith("%%c "):
        return magic.compile_c_cell(cell, options, wanted=exercise)
    return magic.compile_cell(cell, options, [], wanted="matmul")


def judged(exercise, source):
    """Check the answer of the cell."""
    return labkit.check(exercise, answer_of(exercise, source))


def function_of(cell):
    """The last function of a cell of `%%answer`, run as there, in a namespace like a notebook's."""
    shell = InteractiveShell()
    shell.register_magics(magic.LabMagics)
    shell.user_ns |= {"labkit": labkit, "np": np}
    shell.run_cell_magic("answer", "99.1", cell)
    return magic.answers.pop("99.1")


def mutant(exercise, *replacements):
    """The solved cell with parts replaced; each must be there."""
    source = SOLVED[exercise]
    for old, new in replacements:
        assert old in source, old
        source = source.replace(old, new)
    return source


def checks_of_starters(starters):
    """A test: what a student starts from is not solved, and the answer has the words of `starters`."""

    @pytest.mark.parametrize("exercise", sorted(starters))
    def test(exercise):
        feedback = judged(exercise, release.without_solution(SOLVED[exercise]))
        assert not feedback.ok
        for words in starters[exercise]:
            assert words in repr(feedback), feedback

    return test


def cases(rows, most):
    """Rows (exercise, name, …) as cases; of each exercise all but the first `most` are thorough."""
    seen, found = Counter(), []
    for exercise, name, *given in rows:
        marks = [pytest.mark.thorough] if seen[exercise] >= most else []
        seen[exercise] += 1
        found.append(pytest.param(exercise, given, id=f"{exercise} {name}", marks=marks))
    return found


def checks_of_mistakes(wrong):
    """A test of rows (exercise, what is wrong, words of the answer, replacements in the solution …)."""

    @pytest.mark.parametrize(("exercise", "words_and_replacements"), cases(wrong, most=3))
    def test(exercise, words_and_replacements):
        words, *replacements = words_and_replacements
        feedback = judged(exercise, mutant(exercise, *replacements))
        assert not feedback.ok
        assert words in feedback.failure, feedback

    return test


def checks_of_other_answers(others):
    """A test of rows (exercise, how it differs, replacements in the solution …): right answers, too."""

    @pytest.mark.parametrize(("exercise", "replacements"), cases(others, most=1))
    def test(exercise, replacements):
        feedback = judged(exercise, mutant(exercise, *replacements))
        assert feedback.ok, feedback

    return test


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(id, marks=[] if id in NOT_COMPARED else [pytest.mark.thorough]) for id in sorted(SOLVED)],
)
def test_the_solution_meets_every_criterion(exercise):
    feedback = judged(exercise, SOLVED[exercise])
    assert feedback.ok, feedback
    assert {MET} <= {line.state for line in feedback.lines} <= {MET, NEEDS_GPU}


# What a student reads who runs the check before changing anything.
STARTERS = {
    "00.1": [
        "every element is scaled once, for n = 256, 512",
        "line 6: invalid global read of 4 bytes",
        "by thread (1, 0, 0) of block (0, 0, 0)",
        "A thread without an element must do nothing.",
    ],
    "00.2": ["out[0, 1] is -2147483648; it should be 1.", "have not changed: do the threads, or the loops"],
    "02.1": ["Nothing has changed: is the output written?"],
    "02.2": ["Nothing has changed: is the output written?"],
    "02.3": [
        "C[0, 0] is nan",
        "initcheck finds: line 13: reads element 0 of argument 2 (float32, shape (33, 20)), which nobody has",
        "With beta = 0 the kernel must not read C",
    ],
    "02.4": ["line 13 has 16 sectors per request; the goal is at most 4", "13 | float a = A[row * K + k];"],
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


def test_the_answer_that_notebook_00_quotes_is_what_the_check_says():
    cells = nbformat.read(SOLUTIONS / "00_start_here.ipynb", as_version=4).cells
    words = next(cell.source for cell in cells if cell.id == "check-words")
    quoted = re.search(r"```\n(n=1: .*?)\n```", words, re.DOTALL)
    assert judged("00.1", release.without_solution(SOLVED["00.1"])).failure == quoted[1]


def test_the_finding_that_the_docs_quote_is_what_check_says():
    page = (SOLUTIONS.parent.parent / "docs" / "simulator.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```cuda\n(.*?)```", page, re.DOTALL)
    kernel = simt.RawModule(code=source).get_function("reverse")
    findings = kernel.check((1,), (256,), (np.arange(200, dtype=np.float32), np.int32(200)))
    assert len(findings) == 2 and findings[0].tool == "racecheck"
    assert str(findings[0]) in "\n".join(line[4:] for line in page.splitlines())


PLACES = (
    "int col = blockIdx.x * blockDim.x + threadIdx.x;\n    int row = blockIdx.y * blockDim.y + threadIdx.y;"
)
EACH_COLUMN = "for (int v = 0; v < blockDim.x; ++v)"
GUARD_02 = "row >= M || col >= N"

# exercise, what is wrong, words of the answer, then what to replace in the solution
WRONG = [
    ("00.1", "guard one too far", "by thread (1, 0, 0)", ("i < n", "i <= n")),
    ("00.1", "block forgotten", "x[0] is", ("blockIdx.x * blockDim.x + ", "")),
    ("00.1", "scaled twice", "x[0] is", ("a * x[i]", "a * a * x[i]")),
    ("00.2", "columns for rows", "row and column exchanged", ("row * cols + col]", "col * rows + row]")),
    ("00.2", "rows of another length", "Whole rows come before", ("row * cols", "row * rows")),
    (
        "00.2",
        "guards exchanged",
        "Compare row with rows",
        ("row < rows", "row < cols"),
        ("col < cols)", "col < rows)"),
    ),
    ("00.2", "half a guard", "outside the matrix must do nothing", (" && col < cols", "")),
    ("02.1", "columns of B", "matmul M=16 N=16 K=16", ("B[k * N + col]", "B[col * N + k]")),
    ("02.1", "strides of a square", "Row i of A begins at index i * K", ("row * K + k", "row * N + k")),
    (
        "02.1",
        "x for rows",
        "x counts columns",
        ("int col", "int t"),
        ("int row", "int col"),
        ("int t", "int row"),
    ),
    ("02.1", "one term short", "256 of 256 elements are wrong", ("k < K", "k < K - 1")),
    ("02.1", "sum not from zero", "C[0, 0] is", ("float sum = 0;", "float sum = 1;")),
    ("02.2", "no guard", "compare row with M and col with N", (GUARD_02, "false")),
    ("02.2", "guards exchanged", "compare row with M", (GUARD_02, "row >= N || col >= M")),
    ("02.2", "and for or", "invalid global", (GUARD_02, "row >= M && col >= N")),
    ("02.2", "guard too strict", "C[31, 0] is nan", ("row >= M ||", "row >= M - 1 ||")),
    ("02.3", "alpha forgotten", "alpha=3 beta=-2", ("alpha * sum", "sum")),
    ("02.3", "alpha for all", "alpha scales the sum alone", ("+= beta", "+= alpha * beta")),
    ("02.3", "sum forgotten", "alpha=1 beta=1", ("result += beta", "result = beta")),
    ("02.4", "only the store", "elements are wrong", ("C[row * N + col]", "C[col * M + row]")),
    ("02.4", "half a guard", "invalid global read", ("row >= M || col >= N", "col >= N")),
    (
        "02.4",
        "a thread a row of the block",
        "262,144 times; the goal is at most 32,768",
        (
            PLACES,
            f"if (threadIdx.x) return;\n    {EACH_COLUMN} {{\n    {PLACES.replace('threadIdx.x;', 'v;')}",
        ),
        ("        return;\n    float", "        continue;\n    float"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.4",
        "rows from x",
        "line 16 has 16 sectors per request",
        ("Idx.x;", "?"),
        ("Idx.y;", "Idx.x;"),
        ("?", "Idx.y;"),
    ),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


INDEX = "if (row < rows && col < cols)\n        out[row * cols + col] = 1000 * row + col;"
LOOP = "for (int k = 0; k < K; ++k)"
ADD = "sum += A[row * K + k] * B[k * N + col];"
BY_NUMBER = (
    "int place = threadIdx.y * blockDim.x + threadIdx.x;\n"
    "    int col = blockIdx.x * blockDim.x + place % blockDim.x;\n"
    "    int row = blockIdx.y * blockDim.y + place / blockDim.x;"
)

# exercise, how it differs, then what to replace in the solution: right, too
OTHERS = [
    ("00.1", "early return", ("if (i < n)\n        x[i] = a * x[i]", "if (i >= n) return;\n    x[i] *= a")),
    ("00.1", "several elements", ("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)")),
    (
        "00.2",
        "early return",
        (INDEX, "if (row >= rows || col >= cols) return;\n    out[row * cols + col] = row * 1000 + col;"),
    ),
    (
        "00.2",
        "one index",
        (INDEX, "int i = col + cols * row;\n    if (row < rows) if (col < cols) out[i] = col + 1000 * row;"),
    ),
    ("02.1", "from the end", (LOOP, "for (int k = K - 1; k >= 0; --k)")),
    (
        "02.1",
        "pointers",
        (LOOP, "const float *a = A + row * K, *b = B + col;\n    for (int k = 0; k < K; ++k, b += N)"),
        (ADD, "sum = fmaf(a[k], *b, sum);"),
    ),
    (
        "02.2",
        "work in a branch",
        (f"{GUARD_02})\n        return;", "row < M && col < N) {"),
        ("= sum;\n", "= sum; }\n"),
    ),
    (
        "02.2",
        "the loop is guarded",
        (f"    if ({GUARD_02})\n        return;\n", ""),
        (LOOP, "for (int k = 0; row < M && col < N && k < K; ++k)"),
        ("    C[row", "    if (row < M && col < N) C[row"),
    ),
    (
        "02.3",
        "one expression",
        ("float result = alpha * sum;\n    if (beta != 0)\n        result += beta * C[row * N + col];\n", ""),
        ("= result;", "= alpha * sum + (beta == 0 ? 0 : beta * C[row * N + col]);"),
    ),
    ("02.4", "by number in the block", (PLACES, BY_NUMBER)),
    (
        "02.4",
        "one line",
        ("float a = A[row * K + k];\n        float b = B[k * N + col];\n        sum += a * b;", ADD),
    ),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)


class TestCheck:
    def test_before_anything_is_compiled(self, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        feedback = labkit.check("02.1")
        assert not feedback.ok
        assert "Run the cell that begins with %%cuda 02.1 first." in repr(feedback)

    def test_judges_the_last_kernel(self, monkeypatch):
        kernel = magic.compile_cell(SOLVED["02.1"].partition("\n")[2], [], [], wanted="matmul")
        monkeypatch.setattr(magic, "answers", {"02.1": kernel})
        assert labkit.check("02.1").ok
        assert labkit.answer("02.1") is kernel

    def test_unknown_exercise(self):
        with pytest.raises(ValueError, match=r"no exercise '02\.9'\. Choose one of 00\.1, 00\.2, "):
            labkit.check("02.9")

    def test_an_answer_that_is_not_there(self, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        with pytest.raises(simt.SimtError, match=r"There is no CUDA kernel for 02\.1 yet"):
            labkit.answer("02.1")

    def test_a_kernel_that_never_ends_is_told(self, monkeypatch):
        monkeypatch.setattr("labkit.kernels.verify.TIMEOUT", 0.2)
        endless = mutant("02.1", ("++k", "k += 0"), ("float sum", "volatile float sum"))
        feedback = judged("02.1", endless)
        assert "was stopped" in feedback.failure

    def test_another_signature_is_told(self):
        feedback = judged("02.1", '%%cuda 02.1\nextern "C" __global__ void matmul(float* C) { C[0] = 1; }')
        assert not feedback.ok and "argument" in feedback.failure

    def test_is_the_same_each_time(self):
        first, second = (judged("02.4", release.without_solution(SOLVED["02.4"])) for _ in range(2))
        assert first == second


class TestCriteria:
    def test_later_ones_are_not_judged(self):
        def fail(_kernel):
            raise Unmet("that is why")

        def never(_kernel):
            raise AssertionError("judged although an earlier criterion failed")

        criteria = Criterion("first", lambda _: None), Criterion("second", fail), Criterion("third", never)
        kernel = simt.RawModule(code='extern "C" __global__ void k() {}').get_function("k")
        feedback = Exercise("09.1", "Title", 1, criteria).judge(kernel)
        assert [line.state for line in feedback.lines] == [MET, FAILED, NOT_JUDGED]
        assert feedback.failure == "that is why"

    def test_what_needs_a_gpu_fails_nothing_and_is_not_hidden(self, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        fast = Criterion("fast", lambda _: find_gpu())
        kernel = simt.RawModule(code='extern "C" __global__ void k() {}').get_function("k")
        feedback = Exercise("09.1", "Title", 1, (Criterion("right", lambda _: None), fast)).judge(kernel)
        assert [line.state for line in feedback.lines] == [MET, NEEDS_GPU]
        assert feedback.ok and feedback.is_open

    def test_two_exercises_with_one_id(self):
        with pytest.raises(ValueError, match=r"two exercises have the id 01\.1: 'A' and 'B'"):
            by_id([Exercise("01.1", "A", 1, ()), Exercise("01.1", "B", 1, ())])

    def test_ids_belong_to_a_notebook(self):
        assert all(magic.EXERCISE_ID.fullmatch(id) for id in EXERCISES)
        assert set(SOLVED) == set(EXERCISES)

    def test_at_most_names_the_worst_line(self):
        criterion = at_most(4, "sectors_per_request", "few", Matmul(64, 64, 64), hint="Look at the rows.")
        criterion.test(labkit.kernels.load("matmul/1_naive"))
        with pytest.raises(Unmet, match="line 25 has 16 sectors per request") as unmet:
            criterion.test(labkit.kernels.load("matmul/1_naive_uncoalesced"))
        assert "25 | C[row * N + col] = result;\nLook at the rows." in str(unmet.value)


class TestFeedback:
    solved = Feedback("09.1 Title", (Line("right", MET), Line("fast", MET)))
    failed = Feedback("09.1 Title", (Line("right", FAILED), Line("fast", NOT_JUDGED)), "C[0] < 1 & wrong")
    without_gpu = Feedback("09.1 Title", (Line("right", MET), Line("fast", NEEDS_GPU)))

    def test_text(self):
        assert repr(self.solved) == "09.1 Title: solved\n  ✓ right\n  ✓ fast"
        assert repr(self.failed) == "09.1 Title: not yet\n  ✗ right\n  · fast\n\nC[0] < 1 & wrong"
        assert repr(self.without_gpu).splitlines() == [
            "09.1 Title: solved, but for what needs a GPU",
            "  ✓ right",
            "  ○ fast (not judged here: needs a GPU)",
        ]
        assert "fast (not judged here: needs a GPU)" in self.without_gpu._repr_html_()

    def test_html_escapes_what_the_kernel_says(self):
        html = self.failed._repr_html_()
        assert "09.1 Title: not yet" in html and "C[0] &lt; 1 &amp; wrong" in html
        assert "<pre" not in self.solved._repr_html_()

    def test_ok(self):
        assert self.solved.ok and not self.failed.ok


def test_a_gpu_kernel_is_judged_in_the_simulator():
    class OnGpu:
        simulated = simt.RawModule(code=SOLVED["00.1"].partition("\n")[2]).get_function("scale")

    assert labkit.check("00.1", OnGpu()).ok
