"""Criteria for what stands around a kernel: verdicts, wrong tiles and clocks, and each mistake with them."""

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
