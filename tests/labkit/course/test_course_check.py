"""`labkit.check`: solutions pass, the first criterion that fails is told, and feedback in text and HTML."""

import re
from functools import partial

import numpy as np
import pytest
from course_tables import SOLUTIONS, SOLVED, cells, exercises, judged, mutant, released, says

import labkit
import simt
from labkit.course import EXERCISES, magic
from labkit.course.criteria.kernels import at_most
from labkit.course.criteria.launches import tiled
from labkit.course.exercise import Criterion, Exercise, Unmet, by_id
from labkit.course.feedback import FAILED, MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.devices.select import find_gpu
from labkit.kernels.matmul.family import Matmul

# Whose answer nbval does not compare: that of others is shown by the solved notebooks, in test_notebooks.py.
NOT_COMPARED = [
    id for id, cell in cells("check").items() if "nbval-ignore-output" in cell.metadata.get("tags", [])
]


@pytest.mark.parametrize("exercise", exercises(slow=set(SOLVED) - set(NOT_COMPARED)))
def test_the_solution_meets_every_criterion(exercise):
    feedback = judged(exercise, SOLVED[exercise])
    assert feedback.ok, feedback
    assert {MET} <= {line.state for line in feedback.lines} <= {MET, NEEDS_GPU}


def test_the_finding_that_the_docs_quote_is_what_check_says():
    page = (SOLUTIONS.parent.parent / "docs" / "simulator.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```cuda\n(.*?)```", page, re.DOTALL)
    kernel = simt.RawModule(code=source).get_function("reverse")
    findings = kernel.check((1,), (256,), (np.arange(200, dtype=np.float32), np.int32(200)))
    assert len(findings) == 2 and findings[0].tool == "racecheck"
    assert str(findings[0]) in "\n".join(line[4:] for line in page.splitlines())


class TestCheck:
    def test_before_anything_is_compiled(self, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        feedback = labkit.check("02.1")
        assert not feedback.ok
        assert len(feedback.lines) == 1 and "%%cuda 02.1" in feedback.failure

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
        with pytest.raises(simt.SimtError, match=r"CUDA kernel for 02\.1"):
            labkit.answer("02.1")

    def test_a_kernel_that_never_ends_is_told(self, monkeypatch):
        monkeypatch.setattr("labkit.kernels.verify.TIMEOUT", 0.2)
        endless = mutant("02.1", ("++k", "k += 0"), ("float sum", "volatile float sum"))
        feedback = judged("02.1", endless)
        assert not feedback.ok and says(feedback.failure, "0.2 s")

    def test_another_signature_is_told(self):
        feedback = judged("02.1", '%%cuda 02.1\nextern "C" __global__ void matmul(float* C) { C[0] = 1; }')
        assert not feedback.ok and "argument" in feedback.failure

    def test_is_the_same_each_time(self):
        first, second = (judged("02.4", released("02.4")) for _ in range(2))
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
        cube = partial(tiled, Matmul(64, 64, 64))
        criterion = at_most(4, "sectors_per_request", "few", cube, hint="Look at the rows.")
        criterion.test(labkit.kernels.load("matmul/1_naive"))
        with pytest.raises(Unmet, match=r"line 25 .*\b16 .*\b4\n") as unmet:
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
