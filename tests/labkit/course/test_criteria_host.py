"""Criteria for what stands around a kernel: verdicts, wrong tiles and clocks, and each mistake with them."""

from collections import Counter
from functools import partial

import numpy as np
import pytest

import simt
from labkit.course import EXERCISES
from labkit.course.criteria import host
from labkit.course.criteria.host import At, Factors, Result, Trial
from labkit.course.criteria.model_gpu import ModelGpu
from labkit.course.exercise import Unmet
from labkit.course.fresh_inputs import drawn
from labkit.course.reimported import Elsewhere
from simt.common.errors import InvalidAccess, LaunchError


def refused(test, *args):
    """The message with which a test refuses an answer."""
    with pytest.raises(Unmet) as unmet:
        test(*args)
    return str(unmet.value)


def verdict(launch, out, expected):
    """A right answer to 09.3, in another style than the solution's."""
    out[:] = np.inf
    try:
        launch()
    except LaunchError:
        return "refused"
    return ("wrong", "right")[int(np.array_equal(out, expected))]


RIGHT = Trial("a copy", "copy", "right", "<hint>")
TRIALS = (
    RIGHT,
    Trial("turned", "turned", "wrong", "<hint>"),
    Trial("one off", "one_off", "wrong", "<hint>"),
    Trial("a part", "part", "wrong", "<hint>"),
    Trial("nothing", "idle", "wrong", "<hint>"),
    Trial("too many threads", "copy", "refused", "<hint>", threads=1089),
)


class TestVerdicts:
    @pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.told)
    def test_a_right_answer_passes_each_trial(self, trial):
        host.verdicts("", trial).test(verdict)

    @pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.told)
    def test_each_trial_has_one_right_verdict(self, trial):
        for said in host.VERDICTS:
            if said == trial.verdict:
                host.verdicts("", trial).test(lambda *_, said=said: said)
            else:
                told = refused(host.verdicts("", trial).test, lambda *_, said=said: said)
                hint = host.NOT_REFUSED if said == "refused" else "<hint>"
                assert told == f"{trial.told}: the verdict is {said!r}.\n{hint}"

    @pytest.mark.parametrize("said", ["Right", None, True, np.str_("other"), ["right"]])
    def test_other_words_are_none(self, said):
        told = refused(host.verdicts("", RIGHT).test, lambda *_: said)
        assert all(repr(word) in told for word in host.VERDICTS)

    def test_a_word_of_numpy_is_a_word(self):
        host.verdicts("", RIGHT).test(lambda *_: np.str_("right"))

    @pytest.mark.parametrize("put", [0, 7, -999])
    def test_a_filler_that_can_be_a_result(self, put):
        def filled(launch, out, expected):
            out[:] = put
            launch()
            return "right" if (out == expected).all() else "wrong"

        told = refused(host.verdicts("", TRIALS[4]).test, filled)
        assert f"right element is {put}, as you have put there" in told
        assert f"{host.STALE} {put} can be a result" in told

    @pytest.mark.parametrize("put", [np.nan, np.inf, -1e30])
    def test_a_filler_that_cannot(self, put):
        def filled(launch, out, expected):
            out[:] = put
            launch()
            return "right" if (out == expected).all() else "wrong"

        host.verdicts("", TRIALS[4]).test(filled)

    def test_what_it_raises_is_told(self):
        assert "raises" in refused(host.verdicts("", RIGHT).test, lambda launch, out: "right")

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_fresh_numbers(self, seed):
        with drawn(seed, "09.3"):
            host.verdicts("", *TRIALS).test(verdict)
            out, expected = RIGHT.arrays()
            assert 33 <= len(out) < 65 and (out == expected).all()

    def test_arrays(self):
        out, expected = RIGHT.arrays()
        assert out.tolist() == expected.tolist() == list(range(1, 65)) and out is not expected
        out, expected = Trial("", "idle", "wrong", "", each=5, is_fresh=True).arrays()
        assert set(expected) == {5} and set(out) == {-1}


class TestOthersGetThrough:
    def test_right(self):
        host.others_get_through().test(verdict)

    def test_it_is_caught(self):
        def caught(launch, out, expected):
            try:
                launch()
            except simt.SimtError:
                return "refused"

        told = refused(host.others_get_through().test, caught)
        assert "InvalidAccess: the verdict is 'refused'" in told

    def test_another_error_in_its_place(self):
        def another(launch, out, expected):
            try:
                launch()
            except InvalidAccess:
                raise KeyError("x") from None

        assert refused(host.others_get_through().test, another).endswith("it raises KeyError: 'x'")


# 09.6: where a product is wrong.


def bound(A, B):
    return A.shape[1] * 2.0**-24 * (abs(A.astype(float)) @ abs(B))


def wrong_tiles(got, A, B, tile, times=4):
    """A right answer to 09.6, in another style than the solution's: tile by tile, in plain loops."""
    exact, allowed = A.astype(float) @ B.astype(float), times * bound(A, B)
    found = []
    for i in range(-(-len(got) // tile)):
        for j in range(-(-got.shape[1] // tile)):
            part = np.s_[i * tile : (i + 1) * tile, j * tile : (j + 1) * tile]
            if not np.all(np.abs(got[part].astype(float) - exact[part]) <= allowed[part]):
                found += [[i, j]]
    return np.array(found).reshape(-1, 2)


def changed(**how):
    """The right answer with another bound, another comparison or another list."""

    def answer(got, A, B, tile):
        exact, allowed = A.astype(float) @ B, 2 * bound(A, B)
        with np.errstate(invalid="ignore"):
            is_right = how.get("compare", lambda off, most, got: abs(off) <= most)(
                got - exact, how.get("bound", lambda most, got: most)(allowed, got), got
            )
        count = how.get("count", lambda side, tile: side)
        return sorted(
            {
                (int(i) // tile, int(j) // tile)
                for i, j in np.argwhere(~is_right)
                if i < count(got.shape[0], tile) and j < count(got.shape[1], tile)
            }
        )

    return answer


class TestWrongTiles:
    @pytest.mark.parametrize("times", [1, 4, host.FAR])
    def test_right_answers_with_any_bound_from_one_to_far(self, times):
        assert EXERCISES["09.6"].judge(partial_named(times)).ok

    @pytest.mark.parametrize(
        ("number", "answer", "hint"),
        [
            (1, changed(bound=lambda most, got: 0.01 * most), host.BOUND),
            (2, changed(compare=lambda off, most, got: abs(off) <= 1e-3 * abs(got - off).max()), host.BOUND),
            (3, changed(bound=lambda most, got: most.max()), host.BOUND),
            (4, changed(compare=lambda off, most, got: ~(abs(off) > most)), host.NAN),
            (5, changed(compare=lambda off, most, got: (abs(off) <= most) | (got == 0)), host.BOUND),
            (6, changed(count=lambda side, tile: side // tile * tile or side), host.EDGE),
        ],
    )
    def test_each_criterion_has_a_wrong_answer_that_fails_because_of_it(self, number, answer, hint):
        criteria = EXERCISES["09.6"].criteria
        failed = [at for at, each in enumerate(criteria, 1) if isinstance(raised(each, answer), Unmet)]
        assert number == failed[0], failed
        assert str(raised(criteria[number - 1], answer)).endswith(hint)

    def test_none_at_all(self):
        """[] is right where nothing is wrong: so each criterion has a wrong product, too."""
        for criterion in EXERCISES["09.6"].criteria:
            assert "it misses" in refused(criterion.test, lambda *_: [])

    def test_all_of_them(self):
        def every(got, A, B, tile):
            return [(i, j) for i in range(-(-len(got) // tile)) for j in range(-(-len(got[0]) // tile))]

        for criterion in EXERCISES["09.6"].criteria:
            assert "Rounding explains that." in refused(criterion.test, every)


def partial_named(times):
    def answer(got, A, B, tile):
        return wrong_tiles(got, A, B, tile, times)

    return answer


def raised(criterion, answer):
    try:
        criterion.test(answer)
    except Unmet as unmet:
        return unmet
    return None


def off_by(times):
    """Spoil one element by so many times its bound."""

    def spoil(A, B, order, at):
        got = host.unspoilt(A, B, order, at)
        got[at.i, at.j] += times * bound(A, B)[at.i, at.j]
        return got

    return spoil


def nothing(got, A, B, tile):
    return []


SMALL = Factors(rows=10, cols=12)  # 2 x 3 tiles of 5


class TestResult:
    @pytest.mark.parametrize("use", ["a", "b", "c"])
    def test_from_far_on_a_tile_must_be_named(self, use):
        must, may = (Result(SMALL, "told", off_by(times)) for times in (16.5, 15.5))
        may.ask(nothing, use)
        may.ask(wrong_tiles, use)
        must.ask(wrong_tiles, use)
        told = refused(must.ask, nothing, use)
        assert told.startswith(f"{must}: it misses tile (") and told.endswith(host.BOUND)

    def test_no_tile_of_a_right_product(self):
        told = refused(Result(SMALL, "told").ask, lambda *_: [(1, 2)], "use")
        assert "it lists tile (1, 2), off by at most " in told and told.endswith(host.BOUND)

    def test_no_other_tile_of_a_wrong_one(self):
        def more(*args):
            (found,) = wrong_tiles(*args).tolist()
            return sorted([found, [0 if found[0] else 1, 0]])

        told = refused(Result(SMALL, "told", off_by(1000)).ask, more, "use")
        assert told.endswith(host.OWN)

    def test_columns_before_rows(self):
        """The tile's two numbers differ, so that this shows."""
        told = refused(
            Result(Factors(rows=10, cols=10), "told", off_by(1000)).ask,
            lambda *args: wrong_tiles(*args)[:, ::-1],
            "use",
        )
        assert told.endswith(host.PLACE)

    @pytest.mark.parametrize("spoil", [partial(host.with_one, np.nan), partial(host.with_one, np.inf)])
    def test_what_is_not_finite(self, spoil):
        assert refused(Result(SMALL, "told", spoil).ask, nothing, "use").endswith(host.NAN)

    def test_tiles_that_stick_out(self):
        told = refused(
            Result(Factors(rows=11, cols=12), "told", off_by(1000), at_edge=True).ask, nothing, "use"
        )
        assert told.endswith(host.EDGE)

    @pytest.mark.parametrize(
        "listed", [[(0, 1), (0, 0)], [(0, 0), (0, 0), (0, 1)]], ids=["out of order", "twice"]
    )
    def test_each_tile_once_and_in_order(self, listed):
        def spoil(A, B, order, at):
            got = (A.astype(float) @ B).astype(np.float32)
            got[0] += 1
            return got

        result = Result(Factors(rows=5, cols=10), "told", spoil)
        result.ask(lambda *_: sorted(set(listed)), "use")
        assert refused(result.ask, lambda *_: listed, "use").endswith(host.ONCE)

    @pytest.mark.parametrize(
        "got", [None, True, {(0, 1)}, [0], [(0, 1, 2)], [(0.5, 1)], ["01"], "", [(0, None)]]
    )
    def test_what_is_no_list_of_tiles(self, got):
        assert refused(Result(SMALL, "told").ask, lambda *_: got, "use").endswith(host.FORM)

    @pytest.mark.parametrize("got", [[(2, 0)], [(0, 3)], [(-1, 0)], [(0, -1)]])
    def test_tiles_that_there_are_not(self, got):
        told = refused(Result(SMALL, "told").ask, lambda *_: got, "use")
        assert told == f"It lists {got[0]}; there are 2 x 3 tiles.\n{host.PLACE}"

    @pytest.mark.parametrize("got", [[], (), np.zeros((0, 2)), np.empty((0, 2), int)])
    def test_other_forms_of_nothing(self, got):
        Result(SMALL, "told").ask(lambda *_: got, "use")

    def test_an_answer_that_changes_its_arguments_spoils_nothing(self):
        def spoils(got, A, B, tile):
            found = wrong_tiles(got, A, B, tile)
            got[:], A[:], B[:] = 0, 0, 0
            return found

        Result(SMALL, "told", off_by(1000)).ask(spoils, "use")

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_fresh_sizes(self, seed):
        with drawn(seed, "09.6"):
            for criterion in EXERCISES["09.6"].criteria[1:]:
                criterion.test(wrong_tiles)


class TestFactors:
    def numbers(self, **kinds):
        return Factors(K=6, rows=4, cols=5, **kinds).matrices(2, "use")

    def test_shapes_and_scale(self):
        for scale in (1, 1000):
            A, B = self.numbers(scale=scale)
            assert A.shape == (4, 6) and B.shape == (6, 5) and A.dtype == B.dtype == np.float32
            assert abs(A).max() <= scale and abs(A).max() > scale / 2 and A.min() < 0

    def test_every_sum_is_0(self):
        A, B = self.numbers(cancels=True)
        assert (A.astype(float) @ B == 0).all() and (A != 0).all()

    def test_one_row_is_small(self):
        A, _ = self.numbers(small_row=True)
        assert abs(A[2]).max() < 1.01e-4 and abs(A[[0, 1, 3]]).min() > 1e-4

    def test_no_term_is_negative(self):
        A, B = self.numbers(positive=True)
        assert A.min() >= 0 and B.min() >= 0

    def test_one_term_is_small(self):
        A, B = self.numbers(small_term=True)
        assert (
            (abs(A[:, -1]) <= host.SMALL).all() and A[:, :-1].min() >= host.NEARLY and B.min() >= host.NEARLY
        )

    def test_all_terms_of_a_sum_are_alike(self):
        A, B = self.numbers(alike=True)
        assert (A[:, :1] == A).all() and (B[:1] == B).all() and len(set(A[:, 0])) == 4

    def test_each_use_has_its_own(self):
        assert not np.array_equal(Factors().matrices(0, "a")[0], Factors().matrices(0, "b")[0])


class TestSpoils:
    A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    B = np.array([[1, -1], [1, 1], [1, 1]], np.float32)
    order = np.arange(3)
    right = ((6, 4), (15, 7))

    def spoilt(self, spoil, i=1, j=1, tile=1):
        return spoil(self.A, self.B, self.order, At(i, j, tile)).tolist()

    def test_none(self):
        assert self.spoilt(host.unspoilt) == [list(row) for row in self.right]
        assert host.unspoilt(self.A, self.B, self.order[::-1], At(0, 0, 1)).tolist() == [
            list(row) for row in self.right
        ]

    def test_a_lost_term(self):
        """Of -4, 5 and 6 the smallest of the positive ones, or the negative one."""
        assert self.spoilt(host.lost_term) == [[6, 4], [15, 2]]
        assert self.spoilt(partial(host.lost_term, sign=-1)) == [[6, 4], [15, 11]]

    def test_of_many_terms_that_of_middling_size(self):
        A, B = np.arange(1, 10, dtype=np.float32)[None], np.ones((9, 1), np.float32)
        assert host.lost_term(A, B, np.arange(9), At(0, 0, 1)).tolist() == [[40]]  # 45 - 5

    def test_one_element(self):
        assert self.spoilt(partial(host.with_one, 99), 0, 1) == [[6, 99], [15, 7]]

    def test_a_row_or_a_column_of_tiles(self):
        assert self.spoilt(partial(host.without, 0), 1, 0) == [[6, 4], [0, 0]]
        assert self.spoilt(partial(host.without, 1), 1, 0) == [[0, 4], [0, 7]]

    def test_signs(self):
        assert self.spoilt(host.negated) == [[-6, -4], [-15, -7]]

    def test_sums_in_16_bits(self):
        """From 2048 on, half precision has even numbers alone."""
        A, B = np.full((1, 3), 1025, np.float32), np.ones((3, 1), np.float32)
        assert host.half_sum(A, B, np.arange(3), At(0, 0, 1)).tolist() == [[3076]]  # 2050, then 3075

    def test_the_first_element_of_a_tile(self):
        assert At(13, 9, 5).first == (10, 5)


# 09.7: a clock.


def clocked(warm=True, drain=True, wait=True, factor=1e3):
    def time_ms(launch, synchronize, clock):
        if warm:
            launch()
        if drain:
            synchronize()
        start = clock()
        launch()
        if wait:
            synchronize()
        return factor * (clock() - start)

    return time_ms


SETTING = {"kernel_ms": 4, "first_ms": 100, "queued_ms": 50}


class TestTimes:
    asked = host.times("", "<hint>", SETTING)

    def test_right(self):
        self.asked.test(clocked())

    @pytest.mark.parametrize(
        ("how", "returned", "end"),
        [
            ({"wait": False}, "0.005", host.UNFINISHED),
            ({"warm": False}, "104", "<hint>"),
            (
                {"drain": False},
                "8;",
                "<hint>",
            ),  # the queue is empty before the first launch is
            ({"factor": 1}, "0.004005", "That is seconds. Return milliseconds."),
            ({"factor": 1e6}, "4005", "That is microseconds. Return milliseconds."),
        ],
    )
    def test_wrong(self, how, returned, end):
        told = refused(self.asked.test, clocked(**how))
        assert told.startswith(f"ModelGpu(kernel_ms=4, first_ms=100, queued_ms=50): it returns {returned}")
        assert "the kernel takes 4 ms.\n" in told and told.endswith(end)

    @pytest.mark.parametrize(
        ("ms", "is_met"), [(4.0799, True), (3.9201, True), (4.081, False), (3.919, False)]
    )
    def test_two_percent(self, ms, is_met):
        if is_met:
            self.asked.test(lambda *_: ms)
        else:
            assert f"it returns {ms}" in refused(self.asked.test, lambda *_: ms)

    @pytest.mark.parametrize("got", [None, "4", float])
    def test_no_number(self, got):
        assert "Return a number, in milliseconds." in refused(self.asked.test, lambda *_: got)
        assert "it returns nan" in refused(self.asked.test, lambda *_: float("nan"))

    def test_every_setting_is_tried(self):
        asked = host.times("", "<hint>", {"kernel_ms": 4}, {"kernel_ms": 9})
        assert "kernel_ms=9" in refused(asked.test, lambda *_: 4)

    def test_fresh_settings(self):
        for seed in (1, 2):
            with drawn(seed, "09.7"):
                self.asked.test(clocked())
                assert "ModelGpu(" in refused(self.asked.test, lambda launch, synchronize, clock: 4)

    def test_the_model(self):
        gpu = ModelGpu(**SETTING)
        gpu.launch()
        assert gpu.clock() == pytest.approx(0.100005)
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.104005)


class TestGpuOfAModel:
    def test_without_a_first_time_and_with_an_empty_queue(self):
        gpu = ModelGpu(4)
        gpu.launch()
        assert gpu.clock() == pytest.approx(0.000005)
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.004005)

    def test_only_the_first_launch_loads_code(self):
        gpu = ModelGpu(4, launch_ms=1, first_ms=10)
        gpu.launch()
        gpu.launch()
        assert gpu.clock() == pytest.approx(0.012)
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.019)  # 11 ms, and two kernels
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.019)

    def test_a_kernel_waits_for_the_queue(self):
        gpu = ModelGpu(4, launch_ms=1, queued_ms=50)
        gpu.launch()
        gpu.synchronize()
        assert gpu.clock() == pytest.approx(0.054)


class TestWhy:
    @pytest.mark.parametrize(
        ("ratio", "end"),
        [
            (1.019e-3, "That is seconds. Return milliseconds."),
            (0.981e-3, "That is seconds. Return milliseconds."),
            (1.021e-3, host.UNFINISHED),
            (0.979e-3, host.UNFINISHED),
            (981, "That is microseconds. Return milliseconds."),
            (1019, "That is microseconds. Return milliseconds."),
            (979, "<hint>"),
            (1.021e3, "<hint>"),
            (0.9, host.UNFINISHED),
            (1.1, "<hint>"),
            (1, "<hint>"),
        ],
    )
    def test_what_a_wrong_time_is_told(self, ratio, end):
        assert host._why(ratio, "<hint>") == end

    def test_other_settings_are_of_about_the_same_size(self):
        drawings = [host._other_setting(np.random.default_rng(seed), {"a": 10, "b": 0}) for seed in range(99)]
        found = [each["a"] for each in drawings]
        assert 6 <= min(found) < 6.5 and 15.5 < max(found) <= 16 and {each["b"] for each in drawings} == {0}
        assert all(10 * each == pytest.approx(round(10 * each)) for each in found) and len(set(found)) > 40


class TestOrder:
    """Inside `drawn` nobody learns anything by counting calls."""

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_trials(self, monkeypatch, seed):
        judged = []
        monkeypatch.setattr(host, "_judge", lambda verdict, trial: judged.append(trial.told))
        host.verdicts("", *TRIALS).test(None)
        assert judged == [each.told for each in TRIALS]
        judged.clear()
        with drawn(seed, "09.3"):
            host.verdicts("", *TRIALS).test(None)
        assert Counter(judged) == Counter([each.told for each in (*TRIALS, TRIALS[0])])
        assert judged != [each.told for each in (*TRIALS, TRIALS[0])]

    def test_results(self, monkeypatch):
        """Two more than the stated ones, and one to three of all of them again."""
        asked = []
        monkeypatch.setattr(Result, "ask", lambda self, answer, use: asked.append((str(self), use)))
        results = [Result(Factors(K=each), "told") for each in (3, 4, 5)]
        criterion = host.locates("text", *results)
        criterion.test(None)
        assert asked == [(str(each), f"text {number}") for number, each in enumerate(results)]
        counts = set()
        for seed in range(40):
            asked.clear()
            with drawn(seed, "09.6"):
                criterion.test(None)
            assert {str(each) for each in results} <= {told for told, _ in asked}
            assert [use for _, use in asked] == [f"text {number}" for number in range(len(asked))]
            counts.add(len(asked))
        assert counts == {6, 7, 8}


class TestJudge:
    @staticmethod
    def put(value, trial=TRIALS[4]):
        def answer(launch, out, expected):
            if value is not None:
                out[:] = value
                launch()
            return trial.verdict

        return host._judge(answer, trial)

    def test_what_stood_there_at_the_launch(self):
        assert self.put(7) == 7 and self.put(-3.5) == -3.5
        assert self.put(np.r_[0, np.ones(63)]) is None and self.put(np.nan) is None
        assert self.put(2e6) is None and self.put(-2e6) is None

    def test_without_a_launch_it_is_what_is_expected(self):
        assert self.put(None) is None
        assert self.put(None, Trial("", "idle", "wrong", "", each=5)) == 5

    def test_a_trial_of_its_own_value_is_not_tried_again(self, monkeypatch):
        judged = []
        monkeypatch.setattr(host, "_judge", lambda verdict, trial: judged.append(trial) or 5.0)
        host.verdicts("", Trial("", "idle", "wrong", "", each=5), RIGHT).test(None)
        assert len(judged) == 2
        host.verdicts("", TRIALS[4]).test(None)
        assert [each.each for each in judged[2:]] == [None, 5]

    def test_numbers_that_are_drawn(self):
        lengths = set()
        for seed in range(150):
            with drawn(seed, "09.3"):
                out, expected = RIGHT.arrays()
            lengths.add(len(out))
            assert expected.min() >= 1 and expected.max() < 1000 and expected.dtype == np.float32
        assert min(lengths) == 33 and max(lengths) == 64


class TestOthers:
    def test_an_exit_is_told(self):
        def leaves(launch, out, expected):
            try:
                launch()
            except InvalidAccess:
                raise SystemExit(3) from None

        assert refused(host.others_get_through().test, leaves).endswith("it raises SystemExit: 3")

    def test_what_is_raised_outside_the_function_goes_on(self):
        def broken(*args):
            raise KeyError("x")

        with pytest.raises(KeyError):
            host.others_get_through().test(Elsewhere("verdict", broken))


class TestMoreOfFactors:
    def test_in_words(self):
        assert str(Factors()) == "12 x 18, K=400, elements up to 1"
        told = str(Factors(K=6, scale=0.25, rows=2, cols=3, cancels=True, small_row=True))
        assert told == "2 x 3, K=6, elements up to 0.25, every sum is 0, smaller ones in one row"
        told = str(Factors(positive=True, small_term=True, alike=True))
        assert told.endswith(", no term is negative, of which one is small, all terms of a sum alike")

    def test_numbers_of_either_sign_where_nothing_is_said(self):
        A, B = Factors().matrices(0, "use")
        assert A.min() < -0.9 and B.min() < -0.9
        A, B = Factors(positive=True).matrices(0, "use")
        assert A.min() < 0.1 and B.min() < 0.1

    def test_the_factors_beside_a_small_term_are_nearly_1(self):
        A, B = Factors(small_term=True).matrices(0, "use")
        assert A[:, :-1].min() > 0.9 and B.min() > 0.9 and A[:, -1].max() < 1e-5

    def test_halves_cancel(self):
        A, B = Factors(K=6, cancels=True).matrices(0, "use")
        assert (A[:, 3:] == A[:, :3]).all() and (B[3:] == -B[:3]).all()

    def test_other_results_are_of_the_same_kind(self):
        def drawings(base):
            return [host._another(np.random.default_rng(seed), base) for seed in range(200)]

        some = drawings(Result(Factors(), "told"))
        depths = {each.factors.K for each in some}
        assert all(K % 2 == 0 for K in depths) and 266 <= min(depths) < 290 and 510 < max(depths) < 534
        assert {each.factors.rows for each in some} == set(range(12, 16))
        assert {each.factors.cols for each in some} == set(range(18, 22))
        assert {each.tile for each in some} == set(range(3, 8))
        scales = [each.factors.scale for each in some]
        assert 0.31 < min(scales) < 0.4 and 2.5 < max(scales) < 3.2
        assert all(float(f"{each:.2g}") == each for each in scales)

    @pytest.mark.parametrize(("K", "is_kept"), [(8, True), (10, False), (998, False), (1000, True)])
    def test_few_and_many_terms_stay_as_many(self, K, is_kept):
        base = Result(Factors(K=K), "told")
        found = {host._another(np.random.default_rng(seed), base).factors.K for seed in range(20)}
        assert (found == {K}) is is_kept

    def test_a_tile_that_holds_all_still_does(self):
        for tile, is_kept in ((30, True), (18, False)):
            base = Result(Factors(), "told", tile=tile)
            found = {host._another(np.random.default_rng(seed), base).tile for seed in range(20)}
            assert (found == {tile}) if is_kept else min(found) < 8

    def test_of_eight_terms_the_smallest_is_lost(self):
        A, B = np.arange(1, 9, dtype=np.float32)[None], np.ones((8, 1), np.float32)
        assert host.lost_term(A, B, np.arange(8), At(0, 0, 1)).tolist() == [[35]]  # 36 - 1


class TestPlaces:
    @staticmethod
    def drawings(**how):
        result = Result(Factors(rows=13, cols=17), "told", **how)
        return [result._place(np.random.default_rng(seed)) for seed in range(300)]

    def test_in_whole_tiles_whose_numbers_differ(self):
        found = self.drawings()
        assert {each.i for each in found} == set(range(10)) and {each.j for each in found} == set(range(15))
        assert all(each.i // 5 != each.j // 5 and each.tile == 5 for each in found)

    def test_at_the_edge(self):
        found = self.drawings(at_edge=True)
        assert {each.i for each in found} == {10, 11, 12} and {each.j for each in found} == {15, 16}

    def test_one_tile_has_one_number(self):
        found = self.drawings(tile=13)
        assert {each.j for each in found} == set(range(13))
        found = self.drawings(tile=30)
        assert {(each.i, each.j) for each in found} == {(0, 0)}

    def test_two_tiles_in_a_row(self):
        found = [Result(Factors(rows=5, cols=10), "told")._place(np.random.default_rng(s)) for s in range(50)]
        assert {each.j for each in found} == set(range(5, 10)) and {each.i for each in found} == set(range(5))


class TestMissed:
    """Of 3 x 4 tiles; the message of tiles that are not listed."""

    @staticmethod
    def told(missed, listed=(), off=1.0, **how):
        result = Result(Factors(rows=13, cols=17), "told", **how)
        return result._missed(set(missed), set(listed), np.full((13, 17), off))

    @pytest.mark.parametrize(
        ("missed", "listed", "at_edge", "why"),
        [
            ([(2, 0)], [(0, 0)], False, host.EDGE),
            ([(0, 3)], [(0, 0)], False, host.EDGE),
            ([(0, 3)], [], False, host.BOUND),
            ([(0, 3)], [], True, host.EDGE),
            ([(0, 3), (2, 1)], [(0, 0)], False, host.EDGE),
            ([(0, 3), (1, 1)], [(0, 0)], False, host.BOUND),
            ([(0, 2)], [(0, 0)], True, host.BOUND),
            ([(1, 0)], [(0, 1)], False, host.PLACE),
            ([(1, 0)], [(0, 1), (1, 1)], False, host.BOUND),
        ],
    )
    def test_the_hint(self, missed, listed, at_edge, why):
        assert self.told(missed, listed, at_edge=at_edge).endswith(f"\n{why}")

    def test_how_far_the_first_is_off(self):
        assert self.told([(1, 1), (0, 2)], off=0.126).startswith(
            "it misses 2 tiles, such as (0, 2), off by 0.13"
        )
        assert self.told([(1, 1)], off=np.inf).endswith(host.NAN)

    def test_a_tile_is_off_by_what_its_worst_element_is(self):
        off = np.arange(13 * 17, dtype=float).reshape(13, 17)
        result = Result(Factors(rows=13, cols=17), "told")
        assert result._within({(1, 2), (2, 0)}, off) == 9 * 17 + 14 and result._within({(2, 3)}, off) == 220


def test_right_and_wrong_results():
    """A right product is made in each order, and a wrong one for each case."""
    made = host.right(Factors(K=3), Factors(K=4))
    assert [(each.factors.K, each.order, each.tile) for each in made] == [
        (K, order, 5) for K in (3, 4) for order in ("forwards", "backwards", "any")
    ]
    assert all(each.spoil is host.unspoilt and not each.at_edge for each in made)
    (one,) = host.wrong(host.negated, "told", Factors(K=3))
    assert (one.spoil, one.told, one.order, one.tile, one.at_edge) == (host.negated, "told", "any", 5, False)
