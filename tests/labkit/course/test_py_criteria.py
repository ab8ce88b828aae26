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
from labkit.course.criteria import occupancy, python
from labkit.course.criteria.occupancy import resident
from labkit.course.criteria.python import (
    Lanes,
    called,
    number_of,
    of_lanes,
    off_by_form,
    returns,
    right_for,
)
from labkit.course.exercise import Criterion, Exercise, Unmet
from labkit.course.fresh_inputs import drawn
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


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (5.0, 5e-9, "1000000000 times too large"),
        (5e-9, 5.0, "1000000000 times too small"),
        (5e12, 5.0, ""),
        (5000 * (1 + 0.9e-6), 5.0, "1000 times too large"),
        (5000 * (1 + 1.1e-6), 5.0, ""),
        (10, 10.5, "rounded"),
        (9, 9.5, ""),
        (-13, -12.25, "rounded"),
        (-12, -12.25, "rounded"),
        (1234.57, 1234.56785, "rounded"),
        (1234.568, 1234.56785, "rounded"),
        (1234.5678, 1234.56785, ""),
        (float("inf"), 12.5, ""),
    ],
)
def test_units_and_digits_that_are_told(got, expected, said):
    """Up to a thousand million times; whole numbers and up to three digits, of numbers from 10 on."""
    told = off_by_form(got, expected)
    assert said in told and bool(said) == bool(told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "3"), (3.0, "3"), (1 / 3, "0.333333"), (999_999_999_999_999, "999999999999999"), (1e15, "1e+15"),
        (-1e15, "-1e+15"), (-2.0, "-2"), ("3", "'3'"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_how_numbers_are_told(value, told):
    assert python._number(value) == told


@pytest.mark.parametrize(
    ("got", "number"),
    [("3", None), (b"3", None), (True, None), (np.True_, None), (None, None), ([1, 2], None), (3, 3.0),
     (np.float32(0.5), 0.5), (np.array(2), 2.0)],
)  # fmt: skip
def test_what_is_a_number(got, number):
    assert number_of(got) == number


def test_a_truth_value_is_told_to_be_none():
    for right, got in ((1.0, True), (0.0, np.False_)):
        criterion = returns("", (), of=lambda right=right: right, draw=other, hint="<hint>")
        with pytest.raises(Unmet) as unmet:
            criterion.test(lambda got=got: got)
        assert str(unmet.value).endswith("Return a number, not a truth value.")


def test_arguments_in_few_words():
    def size_of(*args):
        return 1

    args = np.zeros((2, 3)), size_of, 7, "x"
    with pytest.raises(Unmet, match=r"^size_of\(array \(2, 3\), size_of, 7, x\) returns 1; it should be 2\."):
        returns("", args, of=lambda *_: 2, draw=other, hint="").test(size_of)


class TestFreshCases:
    """Who knows the stated cases by heart is refused, and does not learn what was tried."""

    @staticmethod
    def tried(count):
        """How many cases are tried that are not stated, for so many stated ones."""
        asked = []
        with drawn(1, "09.6"):
            right_for(range(count), lambda rng, case: 1000 + case, asked.append, str)
        assert asked[:count] == list(range(count)) and min(asked[count:]) >= 1000
        return len(asked) - count

    @pytest.mark.parametrize(("count", "more"), [(1, 2), (9, 2), (10, 3), (19, 3), (20, 4)])
    def test_two_more_and_one_for_every_ten(self, count, more):
        assert self.tried(count) == more

    def test_only_the_stated_ones_in_a_notebook(self):
        asked = []
        right_for((1, 2, 3), None, asked.append, str)
        assert asked == [1, 2, 3]

    def refused(self, asked_again):
        """What is told by a criterion whose drawn cases fail, and examples fail if they are asked again."""
        calls = []

        def draw(rng, case):
            calls.append(case)
            return "drawn" if len(calls) <= 2 else "example"

        def ask(case):
            if case == "drawn" or (case == "example" and asked_again):
                raise Unmet("not told")

        with drawn(1, "09.6"), pytest.raises(Unmet) as unmet:
            right_for(("stated",), draw, ask, lambda case: f"<right for {case}>")
        assert len(calls) == 2 + 8 and set(calls) == {"stated"}
        return str(unmet.value)

    def test_another_case_of_the_kind_is_told(self):
        assert self.refused(True) == f"{python.BY_HEART} For example, <right for example>"

    def test_where_the_others_are_right_none_is_told(self):
        assert self.refused(False) == f"{python.BY_HEART} {python.TRY}"

    def test_a_table_of_the_stated_cases(self):
        def table(size, ms):
            return {1024: 512.0, 1 << 21: float(1 << 21), 10: 10 / 3}.get(size, 0)

        RATE.test(table)
        with drawn(1, "09.6"):
            told = refused(table)
            RATE.test(rate)
        assert told.startswith(f"{python.BY_HEART} For example, table(") and "should return" in told
        assert told.endswith("Bytes over milliseconds.")


class TestLanes:
    @pytest.mark.parametrize(
        ("lanes", "elements"),
        [
            (Lanes(1), list(range(32))),
            (Lanes(0, first=5), [5] * 32),
            (Lanes(3, first=2), list(range(2, 98, 3))),
            (Lanes(1, 16, 40), [*range(16), *range(40, 56)]),
            (Lanes(2, 8, 100, 1), [1 + 100 * line + 2 * lane for line in range(4) for lane in range(8)]),
        ],
    )
    def test_elements(self, lanes, elements):
        assert lanes.elements == elements

    def test_another_order(self):
        turned = Lanes(2, shuffle=1).elements
        assert turned != Lanes(2).elements == sorted(turned) and turned != Lanes(2, shuffle=2).elements

    @pytest.mark.parametrize(
        ("lanes", "told"),
        [
            (Lanes(2), "32 lanes, 2 {}, from element 0"),
            (Lanes(0, first=7, shuffle=3), "32 lanes, 0 {}, from element 7, in another order"),
            (Lanes(1, 8, 33), "32 lanes in lines of 8, which begin 33 apart, 1 {}, from element 0"),
        ],
    )  # fmt: skip
    def test_in_words(self, lanes, told):
        assert str(lanes) == told.format("elements from lane to lane")

    @staticmethod
    def asked(*cases):
        return of_lanes(
            "text", *cases, of=lambda elements, size: sum(elements) * size,
            called_with=lambda elements, size: (elements, size), hint="<hint>",
        )  # fmt: skip

    def test_a_function_of_elements_and_their_size(self):
        self.asked((Lanes(1), 4), (Lanes(2), 8)).test(lambda elements, size: sum(elements) * size)
        with pytest.raises(Unmet) as unmet:
            self.asked((Lanes(1), 4), (Lanes(2), 8)).test(lambda elements, size: sum(elements) * 4)
        assert str(unmet.value) == (
            f"{Lanes(2)}; an element has 8 bytes\n<lambda>() returns 3968; it should be 7936.\n<hint>"
        )

    @pytest.mark.parametrize(
        ("lanes", "kept"),
        [
            (Lanes(0), {"step", "first", "line", "shuffle"}),
            (Lanes(1, first=40), {"step", "line", "shuffle"}),
            (Lanes(2), {"first", "line", "shuffle"}),
            (Lanes(1, 16, 31), {"step", "first", "line", "shuffle"}),
            (Lanes(1, 16, 32), {"step", "first", "shuffle"}),
            (Lanes(6, shuffle=1), {"first", "line"}),
        ],
    )
    def test_others_are_of_the_same_kind(self, monkeypatch, lanes, kept):
        """What is 0 stays, and so do lanes side by side and lines that overlap; all else is drawn."""
        made = []
        monkeypatch.setattr(
            python, "right_for",
            lambda cases, draw, *_: made.extend(draw(np.random.default_rng(s), cases[0]) for s in range(200)),
        )  # fmt: skip
        self.asked((lanes, 4)).test(None)
        names = ("step", "first", "line", "shuffle")
        found = {name: [getattr(each, name) for each, _ in made] for name in names}
        assert {name for name in names if set(found[name]) == {getattr(lanes, name)}} == kept
        assert all((each.width, size) == (lanes.width, 4) for each, size in made)
        least = {"step": 2, "first": 1, "line": 32, "shuffle": 0}
        most = {"step": 39, "first": 99, "line": 99, "shuffle": 2**31 - 1}
        for name in set(names) - kept:
            assert least[name] <= min(found[name]) and max(found[name]) <= most[name]
            assert len(set(found[name])) > 30

    def test_who_knows_the_stated_lanes_alone(self):
        asked = self.asked((Lanes(1), 4), (Lanes(2), 4))
        known = {sum(Lanes(step).elements): 4 for step in (1, 2)}
        with drawn(1, "04.2"), pytest.raises(Unmet) as unmet:
            asked.test(lambda elements, size: known.get(sum(elements), 0) * sum(elements))
        assert "For example, 32 lanes, " in str(unmet.value) and "() should return " in str(unmet.value)
