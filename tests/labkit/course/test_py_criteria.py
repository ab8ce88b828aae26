"""Criteria for answers in Python: what counts as the right number, and what a wrong one is told."""

import gc
import importlib
import sys
import threading
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import labkit
import simt
from labkit.course import magic
from labkit.course.criteria import occupancy
from labkit.course.criteria.occupancy import resident
from labkit.course.criteria.python import called, off_by_form, returns
from labkit.course.exercise import Criterion, Exercise, Unmet
from labkit.course.reimported import Elsewhere, Raised
from simt.common.errors import InvalidAccess


def rate(size, ms):
    return size / ms


def other(rng, base):
    return int(rng.integers(1, 1000)), base[1]


RATE = returns(
    "right for three launches",
    *((1024, 2.0), (1 << 21, 1.0), (10, 3.0)),
    of=rate,
    draw=other,
    hint="Bytes over milliseconds.",
)


def broken(size, ms):
    fast = size > 0
    return fast[0]


def refused(function) -> str:
    with pytest.raises(Unmet) as unmet:
        RATE.test(function)
    return str(unmet.value)


class TestReturns:
    def test_a_right_function_passes(self):
        RATE.test(rate)

    @pytest.mark.parametrize("kind", [float, np.float64, np.array, lambda value: value * (1 + 1e-12)])
    def test_other_kinds_of_the_same_number_pass(self, kind):
        RATE.test(lambda size, ms: kind(size / ms))

    def test_whole_numbers_may_be_integers(self):
        returns("right", (3,), (0,), of=lambda n: n**2.0, draw=other, hint="").test(lambda n: n * n)

    def test_the_first_wrong_case_is_told_with_both_numbers(self):
        def product(size, ms):
            return size * ms

        assert (
            refused(product) == "product(1024, 2.0) returns 2048; it should be 512.\nBytes over milliseconds."
        )

    def test_large_whole_numbers_are_told_whole(self):
        def almost(size, ms):
            return size / ms + (size > 1024)

        assert "almost(2097152, 1.0) returns 2097153; it should be 2097152." in refused(almost)

    def test_numbers_that_look_alike_are_told_in_full(self):
        def near(size, ms):
            return size / ms + (1e-7 if ms == 3 else 0)

        assert "near(10, 3.0) returns 3.3333334333" in refused(near)
        assert "it should be 3.3333333333333335." in refused(near)

    @pytest.mark.parametrize(
        ("value", "told"),
        [(None, "None"), ("512", "'512'"), ([512], "[512]"), (512j, "512j"), (float("nan"), "nan")],
    )
    def test_what_is_not_the_number_is_refused(self, value, told):
        assert f"returns {told}; it should be 512." in refused(lambda size, ms: value)

    def test_the_tolerance_is_relative(self):
        third = returns("a third", (), of=lambda: 1 / 3, draw=other, hint="", relative=0.01)
        third.test(lambda: 0.335)
        with pytest.raises(Unmet, match=r"returns 0\.34; it should be 0\.333333"):
            third.test(lambda: 0.34)


class TestErrors:
    def test_what_the_function_raises_is_told_with_its_line(self):
        line = broken.__code__.co_firstlineno + 2
        assert refused(broken) == (
            f"broken(1024, 2.0) raises\nline {line}: TypeError: 'bool' object is not subscriptable"
        )

    def test_the_line_is_the_functions_own_even_where_another_one_fails(self):
        def outer(size, ms):
            return broken(size, ms)

        line = outer.__code__.co_firstlineno + 1
        assert f"raises\nline {line}: TypeError" in refused(outer)

    def test_a_call_that_does_not_fit_has_no_line(self):
        def alone(size):
            return size

        assert "alone(1024, 2.0) raises\nTypeError: " in refused(alone)

    def test_the_end_of_the_program_is_told_as_well(self):
        def ends(_, __):
            raise SystemExit(1)

        assert "ends(1024, 2.0) raises\nline" in refused(ends)

    def test_a_result_that_raises_when_it_is_looked_at_is_no_number(self):
        class Odd:
            def __float__(self):
                raise RuntimeError("a tensor with two elements is no number")

        assert "it should be" in refused(lambda _, __: Odd())

    def test_what_was_raised_elsewhere_is_told_as_if_it_were_here(self):
        def elsewhere(size, ms):
            raise Raised("ZeroDivisionError", "division by zero", 5)

        told = "elsewhere(1024, 2.0) raises\nline 5: ZeroDivisionError: division by zero"
        assert refused(Elsewhere("elsewhere", elsewhere)) == told

    def test_what_was_raised_elsewhere_outside_the_function_has_no_line(self):
        def elsewhere(size, ms):
            raise Raised("TypeError", "alone() takes 1 positional argument but 2 were given")

        assert "raises\nTypeError: alone() takes 1" in refused(Elsewhere("elsewhere", elsewhere))

    def test_an_error_of_labkit_from_elsewhere_brings_its_line(self):
        def elsewhere(size, ms):
            error = InvalidAccess("read of 4 bytes outside all arrays")
            error.answer_line = 7
            raise error

        assert "raises\nline 7: InvalidAccess: read of 4 bytes" in refused(Elsewhere("elsewhere", elsewhere))

    def test_the_students_interrupt_is_not_an_answer(self):
        def stopped():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            called(stopped)


def by_import(gpu, *block):
    from simt.common.occupancy import occupancy

    return occupancy(gpu, *block).warps


def by_importlib(gpu, *block):
    return importlib.import_module("simt.common." + "occupancy").occupancy(gpu, *block).warps


def by_helper(gpu, *block):
    return by_import(gpu, *block)


def by_loaded_modules(gpu, *block):
    return sys.modules["simt.common.occupancy"].occupancy(gpu, *block).warps


def by_builtins(gpu, *block):
    return __builtins__["__import__"]("simt.common.occupancy").common.occupancy.occupancy(gpu, *block).warps


def by_the_figures(gpu, *block):
    return sys.modules[type(gpu).__module__].occupancy(gpu, *block).warps


def by_default(gpu, *block, rules=simt.common.occupancy.occupancy):
    return rules(gpu, *block).warps


def by_model(gpu, *block):
    from labkit.model.blocks_per_sm import Block

    return Block(gpu, *block).blocks * Block(gpu, *block).warps


def by_copy(gpu, *block):
    names = {"__name__": "simt.common.occupancy"}
    exec(Path(sys.modules["simt.common.occupancy"].__file__).read_text(), names)
    return names["occupancy"](gpu, *block).warps


def by_objects(gpu, *block):
    functions = [each for each in gc.get_objects() if type(each) is FunctionType]
    found = [each for each in functions if each.__code__.co_qualname == "occupancy"]
    return found[0](gpu, *block).warps


def by_thread(gpu, *block):
    got = []
    thread = threading.Thread(target=lambda: got.append(by_import(gpu, *block)))
    thread.start()
    thread.join()
    return got[0]


def unseen(gpu, *block):
    sys.setprofile(None)
    return by_import(gpu, *block)


WAYS = (
    *(by_import, by_importlib, by_helper, by_loaded_modules, by_builtins, by_the_figures, by_default),
    *(by_model, by_copy, by_objects, by_thread, unseen),
)


class TestBorrowed:
    """A function that has labkit work the answer out has not answered, whatever way leads there."""

    asked = resident("right", "", ("H200", 256, 32, 0))

    @pytest.mark.parametrize("warps", WAYS)
    def test_labkits_own_rules_are_refused_by_any_way(self, warps):
        with pytest.raises(Unmet) as unmet:
            self.asked.test(warps)
        assert str(unmet.value).endswith(occupancy.YOUR_WORK)

    def test_the_figures_of_a_gpu_may_be_asked_by_any_name(self):
        def warps(gpu, *block):
            other = simt.common.occupancy.gpu(gpu.name)
            return min(other.warps_per_sm, other.registers_per_sm // 32 // 32)

        self.asked.test(warps)

    @pytest.mark.parametrize(("borrowed", "words"), [("occupancy", occupancy.YOUR_WORK), ("", "64")])
    def test_what_was_found_elsewhere_counts(self, borrowed, words):
        with pytest.raises(Unmet) as unmet:
            self.asked.test(Elsewhere("warps", lambda *_: (1, borrowed)))
        assert words in str(unmet.value)


class TestExercise:
    """An exercise whose answer is a Python function."""

    exercise = Exercise("09.6", "The rate", 1, (RATE, Criterion("last", lambda _: None)), magic="answer")

    def test_solved_and_not_yet(self):
        assert self.exercise.judge(rate).ok
        feedback = self.exercise.judge(lambda size, ms: 0)
        assert not feedback.ok and "✗ right for three launches\n  · last" in repr(feedback)

    def test_a_kernel_in_its_place_is_told(self):
        told = self.exercise.judge(labkit.kernels.load("matmul/1_naive")).failure
        assert told == (
            "This is a CUDA kernel, and 09.6 asks for a Python function: begin the cell with %%answer 09.6."
        )

    def test_a_function_where_a_kernel_is_asked_for_is_told(self):
        assert (
            "This is a Python function, and 02.1 asks for a CUDA kernel" in labkit.check("02.1", rate).failure
        )

    def test_before_the_cell_has_run(self, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        monkeypatch.setitem(labkit.course.EXERCISES, "09.6", self.exercise)
        assert labkit.check("09.6").failure == (
            "There is no Python function for 09.6 yet. Run the cell that begins with %%answer 09.6 first."
        )


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (4096e3, 4096.0, "1000 times too large"),
        (4.096e-3, 4096.0, "1000000 times too small"),
        (1234, 1234.5, "rounded"),
        (1234.6, 1234.5678, "rounded"),
        (1235, 1234.2, ""),
        (0.0, 0.0, ""),
        (1.0, 0.0, ""),
        (float("nan"), 4096.0, ""),
        (None, 4096.0, ""),
    ],
)
def test_a_number_in_another_unit_or_rounded_is_told(got, expected, said):
    told = off_by_form(got, expected)
    assert said in told and bool(said) == bool(told)
