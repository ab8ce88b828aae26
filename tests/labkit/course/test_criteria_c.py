"""Criteria for C functions: right answers in other styles pass, and each way to be wrong or slow is told.

Times are made up here, so that a goal is met exactly, or missed by a little.
"""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from labkit import cpu
from labkit.c.function import CFunction
from labkit.course.criteria import c_functions
from labkit.course.criteria.c_functions import YOURS, Fetches, fetched, milliseconds, right_in_c
from labkit.course.criteria.hints import Hints
from labkit.course.criteria.undisturbed import Disturbed, taking_turns
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_01
from labkit.kernels.matmul.family import Matmul
from simt.common.errors import CompileError, InvalidAccess

HINTS = Hints("<usual>", "<out_of_bounds>", untouched="<untouched>")
HEAD = "void matmul(const float *A, const float *B, float *C, int M, int N, int K)\n"
LOOPS = """{
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
"""
POINTERS = """{
    for (float *c = C; c < C + M * N; ++c)
        *c = 0;
    for (int k = 0; k < K; ++k)
        for (int i = M; i-- > 0; )
            for (int j = N; j-- > 0; )
                *(C + i * N + j) += *(A + i * K + k) * *(B + k * N + j);
}
"""


def matmul(body=LOOPS, *replacements):
    for old, new in replacements:
        assert old in body
        body = body.replace(old, new)
    return CFunction(HEAD + body, "matmul")


def refused(test, *args):
    """The message with which a test refuses an answer."""
    with pytest.raises(Unmet) as unmet:
        test(*args)
    return str(unmet.value)


class TestRight:
    asked = right_in_c("text", (3, 4, 5), (5, 3, 4), hints=HINTS)

    @pytest.mark.parametrize("body", [LOOPS, POINTERS])
    def test_right_answers(self, body):
        self.asked.test(matmul(body))

    @pytest.mark.parametrize(
        ("old", "new", "words", "end"),
        [
            ("i * K + k", "i * N + k", r"M=3 N=4 K=5.*\nC\[", "index i * N; it begins at i * K.\n<usual>"),
            ("sum = 0", "sum = 1", r"12 of 12 elements are wrong", "\n<usual>"),
            ("i < M", "i < M - 1", r"4 elements have not changed", "in row 2 of 3 x 4.\n<untouched>"),
            ("k < K", "k < K - 1", r"12 of 12", "The sum ends early: the last term is missing.\n<usual>"),
            ("j < N", "j <= N", r"M=3 N=4 K=5.*\nline 7: ", "\n<out_of_bounds>"),
        ],
    )  # fmt: skip
    def test_wrong_answers(self, old, new, words, end):
        told = refused(self.asked.test, matmul(LOOPS, (old, new)))
        assert re.search(words, told) and told.endswith(end), told

    def test_every_size_is_tried(self):
        told = refused(self.asked.test, matmul(LOOPS, ("sum = 0", "sum = M == 5")))
        assert "M=5 N=3 K=4" in told

    def test_the_optimised_build_must_be_right_each_time_that_it_is_called(self):
        """The first call of each process is right: the watched build is called once for each size."""
        once = LOOPS.replace("{\n", "{\n    static int calls;\n    ++calls;\n", 1)
        told = refused(self.asked.test, matmul(once, ("sum = 0", "sum = calls > 1")))
        assert "in the optimised build, which is timed\nC[0, 0] is" in told and told.endswith("<usual>")

    def test_a_pointer_that_leads_nowhere_needs_no_hint(self):
        told = refused(
            self.asked.test, matmul(LOOPS, ("float sum = 0;", "float sum = *(volatile float *)8;"))
        )
        assert "<" not in told.replace("<unknown", "")

    @pytest.mark.parametrize(
        ("message", "hint"),
        [
            ("read of 4 bytes past the end of `A`", "<out_of_bounds>"),
            ("write of 4 bytes before the start of argument 3", "<out_of_bounds>"),
            ("index 1024 out of bounds", ""),
            ("address 0x4 is not a multiple of 32", c_functions.MISALIGNED),
        ],
    )
    def test_the_hint_of_an_access(self, message, hint):
        assert c_functions._hint(InvalidAccess(message), HINTS) == hint
        assert c_functions._hint(CompileError(message), HINTS) == ""


PROBLEM = Matmul(4, 5, 6)


@pytest.fixture
def timed(monkeypatch):
    """Make up what each round takes: rounds are dictionaries of ms, the last of which goes on for ever."""

    def times(*rounds):
        left = list(rounds)
        monkeypatch.setattr(
            c_functions, "milliseconds", lambda functions, _: left.pop(0) if len(left) > 1 else left[0]
        )
        return left

    return times


class TestFastest:
    def fastest(self, is_met=lambda best: False):
        return c_functions.fastest({YOURS: None, "loops": None}, PROBLEM, is_met)

    def test_the_least_of_all_rounds_counts_for_each(self, timed):
        timed({YOURS: 5, "loops": 9}, {YOURS: 4, "loops": 8}, {YOURS: 6, "loops": 7}, {YOURS: 6, "loops": 7})
        assert self.fastest() == {YOURS: 4, "loops": 7}

    def test_nobody_is_timed_again_who_meets_the_goal(self, timed):
        left = timed(*({YOURS: each, "loops": 7} for each in range(9, 1, -1)))
        assert self.fastest(lambda best: True)[YOURS] == 7 and len(left) == 8 - c_functions.ROUNDS

    def test_who_misses_it_is_timed_four_times_as_long(self, timed):
        left = timed(*({YOURS: each, "loops": 7} for each in range(20, 0, -1)))
        assert self.fastest()[YOURS] == 9  # 20 - 12 + 1
        assert len(left) == 8

    @pytest.mark.parametrize(("second", "agrees"), [(1.25, True), (1.26, False)])
    def test_two_times_of_the_same_loops_must_agree(self, timed, second, agrees):
        timed(
            {YOURS: 1, "loops": 1}, *({YOURS: 1, "loops": second} for _ in range(11)), {YOURS: 1, "loops": 9}
        )
        if agrees:
            assert self.fastest(lambda best: True) == {YOURS: 1, "loops": 1}
        else:
            told = refused(self.fastest, lambda best: True)
            assert (
                told.endswith(c_functions.BUSY)
                and "loops: 1 to 1.26 ms" in told
                and f"{YOURS}: 1 to 1 ms" in told
            )

    @pytest.mark.parametrize(("mine", "is_refused"), [(1.14, True), (1.16, False)])
    def test_a_grader_times_who_is_near_again_where_the_machine_is_busy(self, timed, mine, is_refused):
        """The goal is to be as fast; NEAR is 1.15."""
        timed({YOURS: mine, "loops": 1})

        def busy():
            raise Disturbed

        with taking_turns(c_functions.alone, busy):
            if is_refused:
                with pytest.raises(Disturbed):
                    self.fastest(lambda best: best[YOURS] <= best["loops"])
            else:
                assert self.fastest(lambda best: best[YOURS] <= best["loops"])[YOURS] == mine


class TestFaster:
    """The goal: at least 2 times as fast as the rung."""

    def asked(self, simd=""):
        return c_functions.faster_in_c(2, "cpu_naive", "the loops", PROBLEM, hint="<hint>", simd=simd)

    def test_text(self):
        told = "at least 2 times as fast as the loops, for M = 4, N = 5, K = 6"
        assert (self.asked().text, self.asked(", by hand").text) == (told, f"{told}, by hand")

    @pytest.mark.parametrize(("theirs", "is_met"), [(2, True), (1.99, False)])
    def test_the_goal_is_met_exactly_or_just_missed(self, timed, theirs, is_met):
        timed({YOURS: 1, "the loops": theirs})
        if is_met:
            self.asked().test(matmul())
        else:
            told = refused(self.asked().test, matmul())
            assert told.endswith(
                "yours 1 ms, the loops 1.99 ms\nIt is 2.0 times as fast; the goal is 2 times.\n<hint>"
            )

    def test_a_wrong_answer_is_not_timed(self, timed):
        timed({YOURS: 1, "the loops": 9})
        assert "elements are wrong" in refused(self.asked().test, matmul(LOOPS, ("sum = 0", "sum = 1")))

    @pytest.mark.parametrize(("faster", "told"), [(1.4, "<hint>"), (1.6, c_functions.BY_ITSELF)])
    def test_vectors_that_the_compiler_makes_do_not_count(self, timed, monkeypatch, faster, told):
        """As written it is as fast as the rung; the compiler's own vectors make it so many times as fast."""
        timed({YOURS: 1, "the loops": 1}, *[{YOURS: 1, "the loops": 1}] * 11, {YOURS: 1 / faster})
        assert refused(self.asked(", by hand").test, matmul()).endswith(told)

    def test_a_fast_answer_without_vectors_is_the_compilers(self, timed):
        timed({YOURS: 1, "the loops": 5})
        assert refused(self.asked(", by hand").test, matmul()) == c_functions.BY_ITSELF
        self.asked().test(matmul())


class TestMilliseconds:
    def functions(self, monkeypatch, right=True):
        """Functions whose calls take 8 ms together and leave a product of zeros, or the right one."""

        def make(args, timeout):
            for a, b, c, *_ in args:
                c[:] = a @ b if right else 0
            return 0.008

        return {name: SimpleNamespace(make=make) for name in (YOURS, "loops")}

    def test_it_is_the_time_of_one_call(self, monkeypatch):
        assert milliseconds(self.functions(monkeypatch), PROBLEM) == {
            YOURS: 2,
            "loops": 2,
        }  # 8 ms for 4 calls

    def test_the_answers_results_are_verified(self, monkeypatch):
        told = refused(milliseconds, self.functions(monkeypatch, right=False), PROBLEM)
        assert f"{YOURS}, in the optimised build" in told

    def test_those_of_a_rung_are_not(self, monkeypatch):
        wrong = self.functions(monkeypatch, right=False)
        assert milliseconds({"loops": wrong["loops"]}, PROBLEM) == {"loops": 2}


class TestFetched:
    """B of 16 x 32 floats has 32 cache lines, two for each row; 3 rows of C."""

    problem = Matmul(3, 32, 16)

    @pytest.mark.parametrize(("lines", "times"), [(100, 1), (8, 3)])
    def test_lines_of_b(self, lines, times):
        """A large cache fetches each line once, a small one again for every row of C."""
        row = LOOPS.replace("for (int j", "for (int k = 0; k < K; ++k)\n        for (int j", 1)
        by_rows = f"{{ for (int i = 0; i < M * N; ++i) C[i] = 0;\n{row[2:]}".replace(
            "float sum = 0;\n            for (int k = 0; k < K; ++k)\n                sum +=",
            "C[i * N + j] +=",
        ).replace("            C[i * N + j] = sum;\n", "")
        assert fetched(matmul(by_rows), self.problem, lines) == Fetches(32, 32 * times)


@dataclass
class Answer:
    """An answer to 01.2 whose compiled parts are made up."""

    block: float
    counted: float | None
    source: str = "for (j0 = 0; j0 < N; j0 += BLOCK) for (k0 = 0; k0 < K; k0 += BLOCK)"
    name: str = "answer"


@pytest.fixture
def parts(monkeypatch):
    """The values of BLOCK and working_set() are the answer's; its loops use again what they count."""

    def named(answer, name, behind=""):
        return {"working_set": lambda: answer.counted, "labkit_block": lambda: answer.block}.get(name, answer)

    monkeypatch.setattr(lab_01, "named", named)
    monkeypatch.setattr(lab_01, "fetched", lambda *_: Fetches(96, 96))


GIVEN, WORKING_SET, FITS, FAST, BEST_BLOCK = lab_01.EXERCISES[1].criteria
ONE, THREE = 4 * (10 * 10 + 2 * 10), 12 * 10 * 10  # bytes for a BLOCK of 10: 480, and 1200
BY_ROWS_TOO = f"{Answer(0, 0).source} for (i0 = 0; i0 < M; i0 = i0 + BLOCK)"


@pytest.mark.usefixtures("parts")
class TestWorkingSet:
    @pytest.mark.parametrize("counted", [ONE, ONE + lab_01.SLACK])
    def test_a_block_of_b_and_a_row_of_a_and_c(self, counted):
        WORKING_SET.test(Answer(10, counted))
        WORKING_SET.test(Answer(10, counted, BY_ROWS_TOO))

    @pytest.mark.parametrize("counted", [THREE, THREE + lab_01.SLACK])
    def test_three_blocks_count_where_rows_come_in_blocks_too(self, counted):
        WORKING_SET.test(Answer(10, counted, BY_ROWS_TOO))
        assert lab_01.USED_ONCE in refused(WORKING_SET.test, Answer(10, counted))

    @pytest.mark.parametrize(
        ("counted", "why"),
        [
            (0, lab_01.OF_B),
            (399, lab_01.OF_B),
            (400, lab_01.OF_A_AND_C),
            (ONE - 1, lab_01.OF_A_AND_C),
            (ONE + lab_01.SLACK + 1, lab_01.USED_ONCE),
            (THREE - 1, lab_01.USED_ONCE),
            (THREE + lab_01.SLACK + 1, lab_01.ALL_OF_IT),
        ],
    )
    @pytest.mark.parametrize("source", [Answer(0, 0).source, BY_ROWS_TOO])
    def test_what_else_is_counted(self, counted, why, source):
        told = refused(WORKING_SET.test, Answer(10, counted, source))
        assert told == f"working_set() returns {counted:,} with BLOCK = 10.\n{why}"

    @pytest.mark.parametrize("counted", [None, float("nan"), float("inf")])
    def test_what_is_no_number(self, counted):
        assert refused(WORKING_SET.test, Answer(10, counted)) == lab_01.NO_NUMBER

    @pytest.mark.parametrize("block", [0, -3])
    def test_a_block_of_nothing(self, block):
        assert f"BLOCK is {block}." in refused(WORKING_SET.test, Answer(block, 480))

    def test_no_block(self, monkeypatch):
        def named(*_):
            raise CompileError("BLOCK undeclared")

        monkeypatch.setattr(lab_01, "named", named)
        assert refused(WORKING_SET.test, Answer(10, ONE)) == lab_01.NO_BLOCK

    @pytest.mark.parametrize(("times", "is_met"), [(3, True), (3.01, False)])
    def test_loops_that_do_not_use_it_again(self, monkeypatch, times, is_met):
        """For 6 rows of C each line of B may come 3 times, as blocks may end within a line."""
        asked = []
        monkeypatch.setattr(
            lab_01, "fetched", lambda *args: asked.append(args) or Fetches(100, round(100 * times))
        )
        if is_met:
            WORKING_SET.test(Answer(10, ONE))
        else:
            told = refused(WORKING_SET.test, Answer(10, ONE))
            assert "For N = K = 16, B has 100 cache lines" in told and "fetch 301 for 6 rows of C" in told
        # A and B of one block and a half, in whole lines; the cache: 480 / 64 lines, 8, 10 / 4, one per row.
        assert [each[1:] for each in asked] == [(Matmul(6, 16, 16), 7 + 8 + 2 + 10)]

    def test_a_block_of_whole_lines_needs_no_line_more_per_row(self, monkeypatch):
        asked = []
        monkeypatch.setattr(lab_01, "fetched", lambda *args: asked.append(args) or Fetches(1, 1))
        counted = 4 * (64 * 64 + 2 * 64)
        WORKING_SET.test(Answer(64, counted))
        assert [each[1:] for each in asked] == [(Matmul(6, 96, 96), counted // 64 + 8 + 16)]


@pytest.mark.usefixtures("parts")
class TestFits:
    @pytest.mark.parametrize(("cache", "fits"), [(480, True), (479, False)])
    def test_the_second_cache(self, monkeypatch, cache, fits):
        monkeypatch.setattr(cpu, "caches", lambda: {"L1": 1, "L2": cache})
        if fits:
            FITS.test(Answer(10, 480))
        else:
            assert "returns 480 bytes; the second cache (L2) here holds 479." in refused(
                FITS.test, Answer(10, 480)
            )

    @pytest.mark.parametrize("more", [0, 1])
    def test_one_that_the_system_does_not_tell(self, monkeypatch, more):
        monkeypatch.setattr(cpu, "caches", lambda: {})
        answer = Answer(10, 2**18 + more)
        assert "holds 262,144" in refused(FITS.test, answer) if more else FITS.test(answer) is None


@pytest.mark.usefixtures("parts")
class TestBestBlock:
    @pytest.fixture(autouse=True)
    def rungs(self, monkeypatch):
        monkeypatch.setattr(lab_01, "rung_beside", lambda *args: args)

    def times(self, timed, mine, **others):
        blocks = {f"BLOCK = {each}": 5.0 for each in lab_01.OTHERS}
        timed({YOURS: mine} | blocks | {f"BLOCK = {name[1:]}": each for name, each in others.items()})

    @pytest.mark.parametrize("mine", [2, 4])
    def test_no_more_than_twice_as_slow_as_the_best(self, timed, mine):
        self.times(timed, mine, b128=2)
        BEST_BLOCK.test(Answer(64, 0))

    @pytest.mark.parametrize(
        ("block", "hint"), [(127, lab_01.TOO_SMALL), (128, lab_01.TOO_LARGE), (129, lab_01.TOO_LARGE)]
    )
    def test_slower(self, timed, block, hint):
        self.times(timed, 4.01, b128=2)
        told = refused(BEST_BLOCK.test, Answer(block, 0))
        assert f"4.01 ms with your loops and BLOCK = {block}, 2 ms with" in told
        assert told.endswith(f"BLOCK = 128\n{hint}")


BLOCKED = """#define BLOCK 16
static int least(int a, int b) { return a < b ? a : b; }
void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int j0 = 0; j0 < N; j0 += BLOCK)
        for (int k0 = 0; k0 < K; k0 += BLOCK)
            for (int i = 0; i < M; ++i)
                for (int j = j0; j < least(j0 + BLOCK, N); ++j) {
                    float sum = k0 ? C[i * N + j] : 0;
                    for (int k = k0; k < least(k0 + BLOCK, K); ++k)
                        sum += A[i * K + k] * B[k * N + j];
                    C[i * N + j] = sum;
                }
}
long working_set(void) { return sizeof(float) * (BLOCK * BLOCK + 2 * BLOCK); }
"""


class TestChooseABlock:
    """01.2 but for the times: a right answer in another style, and one that each criterion refuses."""

    def judged(self, source):
        function = CFunction(source, "matmul")
        for number, criterion in enumerate((GIVEN, WORKING_SET, FITS), 1):
            try:
                criterion.test(function)
            except Unmet as unmet:
                return number, str(unmet)
        return 0, ""

    def test_right(self):
        assert self.judged(BLOCKED) == (0, "")

    def test_wrong_results(self):
        assert self.judged(BLOCKED.replace("k0 ? C[i * N + j] : 0", "0"))[0] == 1

    def test_a_working_set_of_floats(self):
        number, told = self.judged(BLOCKED.replace("sizeof(float) *", "1 *"))
        assert number == 2 and "returns 288 with BLOCK = 16." in told

    def test_columns_without_blocks(self):
        """All of a row of B is used before the next one: 24 columns do not stay in a cache for 16."""
        number, told = self.judged(
            BLOCKED.replace("j0 += BLOCK", "j0 += N").replace("least(j0 + BLOCK, N)", "N")
        )
        assert number == 2 and told.endswith(lab_01.NOT_AGAIN)

    def test_a_cache_that_is_too_small(self, monkeypatch):
        monkeypatch.setattr(cpu, "caches", lambda: {"L2": 1151})  # 4 * (16 * 16 + 2 * 16) = 1152
        assert self.judged(BLOCKED)[0] == 3


def test_the_goals_of_01_2():
    """What the made-up times above are compared with."""
    assert FAST.text.startswith("at least 0.4 times as fast as the SIMD loop without blocks")
    assert (lab_01.TIMES, lab_01.RUNG) == (2, "cpu_avx_blocked")


def test_a_variant_of_an_answer_has_its_source():
    function = CFunction(BLOCKED, "matmul")
    assert c_functions.named(function, "matmul") is function
    counted = c_functions.named(function, "working_set")
    assert counted.name == "working_set" and counted() == 1152
    assert c_functions.named(function, "one", "\nlong one(void) { return 1; }\n")() == 1


class TestSizes:
    """Which sizes stand for any shape; all three arrays of others end with a cache line."""

    @pytest.fixture
    def tried(self, monkeypatch):
        """Which problems are tried: those that are watched, and those of the optimised build."""
        tried = {"watched": [], "optimised": []}
        monkeypatch.setattr(
            c_functions, "verify", lambda function, problem, hints: tried["watched"].append(problem)
        )
        monkeypatch.setattr(
            c_functions,
            "verify_optimised",
            lambda function, problems, hints: tried["optimised"].extend(problems),
        )
        return tried

    def test_some_sizes(self, tried):
        right_in_c("text", (3, 4, 5), (5, 3, 4)).test(matmul())
        assert tried["watched"] == tried["optimised"] == [Matmul(3, 4, 5), Matmul(5, 3, 4)]

    def test_any_shape_is_tried_with_whole_lines_too(self, tried):
        right_in_c("text", *c_functions.ANY_SHAPE).test(matmul())
        shapes, count = [(each.M, each.N, each.K) for each in tried["watched"]], len(tried["watched"])
        assert (1, 1, 1) in shapes and all(N % 8 for _, N, _ in shapes)
        assert all(len(set(size)) in (1, 3) for size in shapes)
        squares = {size[0] for size in shapes if len(set(size)) == 1}
        assert {7, 31, 33} <= squares  # around a vector, and a block
        assert max(N for _, N, _ in shapes) > 1024 < max(K for *_, K in shapes)
        assert max(M * N * K for M, N, K in shapes) < 10**6  # soon done
        assert tried["optimised"][:count] == tried["watched"] and len(tried["optimised"]) == count + 3
        for whole in tried["optimised"][count:]:
            sizes = whole.M * whole.K, whole.K * whole.N, whole.M * whole.N
            assert [each % 16 for each in sizes] == [0, 0, 0] and whole.N % 8


class TestOptimised:
    class Made:
        """A compiled function that is wrong in one of its calls, or ends with an error."""

        def __init__(self, wrong=None, error=None):
            self.wrong, self.error, self.calls = wrong, error, []

        def make(self, args, timeout):
            if self.error:
                raise self.error
            for number, (a, b, c, *sizes) in enumerate(args):
                self.calls.append(tuple(sizes))
                c[:] = a @ b + (number == self.wrong)
            return 1

    def test_each_is_called_twice(self):
        made = self.Made()
        c_functions.verify_optimised(made, [Matmul(3, 4, 5), Matmul(5, 3, 4)])
        assert made.calls == [(3, 4, 5)] * 2 + [(5, 3, 4)] * 2

    @pytest.mark.parametrize("wrong", range(4))
    def test_each_result_is_looked_at(self, wrong):
        problems = [Matmul(3, 4, 5), Matmul(5, 3, 4)]
        told = refused(c_functions.verify_optimised, self.Made(wrong), problems, HINTS)
        assert told.startswith(f"{problems[wrong // 2]}, in the optimised build, which is timed\nC[0, 0]")
        assert told.endswith("<usual>")

    def test_an_error_has_its_hint(self):
        made = self.Made(error=InvalidAccess("read of 4 bytes past the end of `A`"))
        told = refused(c_functions.verify_optimised, made, [PROBLEM], HINTS)
        assert told == (
            "In the optimised build, which is timed\nread of 4 bytes past the end of `A`\n<out_of_bounds>"
        )


def test_numbers_differ_in_each_call_that_is_timed():
    seen = []

    def make(args, timeout):
        seen.extend(float(a.sum()) for a, *_ in args)
        return 1

    milliseconds({"loops": SimpleNamespace(make=make)}, PROBLEM)
    assert len(seen) == len(set(seen)) == 4


class TestWhatIsTimed:
    @pytest.mark.parametrize("simd", ["", ", by hand"])
    def test_the_rung_is_compiled_as_the_answer_is(self, timed, monkeypatch, simd):
        """Where vectors have to be written by hand, both are compiled without the compiler's own."""
        asked = []
        monkeypatch.setattr(c_functions, "rung_beside", lambda *given: asked.append(given[1:]))
        monkeypatch.setattr(CFunction, "compiled", lambda self, how: asked.append(how) or self)
        monkeypatch.setattr(CFunction, "makes_vectors", lambda self: True)
        timed({YOURS: 1, "the loops": 9})
        TestFaster().asked(simd).test(matmul())
        rung = ("cpu_naive", *(["-U__AVX2__"] if simd else []))
        assert asked == ([rung] if not simd else ["as written", rung])

    @pytest.mark.parametrize(("makes", "is_met"), [(True, True), (False, False)])
    def test_vectors_are_looked_for_where_they_are_asked_for(self, timed, monkeypatch, makes, is_met):
        monkeypatch.setattr(c_functions, "rung_beside", lambda *_: None)
        monkeypatch.setattr(CFunction, "compiled", lambda self, how: self)
        monkeypatch.setattr(CFunction, "makes_vectors", lambda self: makes)
        timed({YOURS: 1, "the loops": 9})
        TestFaster().asked().test(matmul())
        asked = TestFaster().asked(", by hand")
        assert (
            asked.test(matmul()) is None if is_met else refused(asked.test, matmul()) == c_functions.BY_ITSELF
        )


def test_a_function_that_uses_no_line():
    assert fetched(matmul("{}\n"), PROBLEM, 8) == Fetches(0, 0)


def test_another_source_or_name_is_another_function():
    function = matmul()
    assert c_functions.named(function, "matmul", "\n// more\n") is not function
    assert c_functions.named(function, "matmul", "\n// more\n").source == f"{function.source}\n// more\n"


def test_results_that_are_wrong_in_places_tell_them_before_the_hint():
    """The last column alone is wrong, by numbers of no known mistake."""
    told = refused(TestRight.asked.test, matmul(LOOPS, ("= sum;", "= sum + (j == N - 1) * (i + 1);")))
    assert told.endswith("All wrong elements are in column 3 of 3 x 4.\n<usual>")
