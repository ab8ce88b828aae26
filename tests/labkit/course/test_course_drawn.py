"""Fresh inputs: right answers pass with any seed, and those that know the stated inputs by heart do not."""

import re

import numpy as np
import pytest
from course_tables import SOLVED, answer_of, exercises, judged, mistakes, mutant
from test_course_cheats import idle

from labkit.course import EXERCISES
from labkit.course.fresh_inputs import FACTORS, drawn, fresh, further, numbers, one_of, problems, sizes
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.transpose.family import Transpose

SEEDS = (1, 2, 3)
# The first mistake of each exercise.
FIRST_WRONG = list({row.exercise: row for row in reversed(mistakes())}.values())


@pytest.mark.slow  # all exercises once more, three times
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", exercises())
def test_the_solution_passes_with_any_seed(exercise, seed):
    feedback = EXERCISES[exercise].judge(answer_of(exercise, SOLVED[exercise]), seed)
    assert feedback.ok, feedback


@pytest.mark.parametrize("row", FIRST_WRONG, ids=lambda row: f"{row.exercise} {row.name}")
def test_a_typical_mistake_fails_with_a_seed_too(row):
    answer = answer_of(row.exercise, mutant(row.exercise, *row.replacements))
    assert not EXERCISES[row.exercise].judge(answer, 1).ok


def stated(*sizes, names):
    """A condition in C: the sizes are none of these."""
    known = (" && ".join(f"{name} == {n}" for name, n in zip(names, size, strict=True)) for size in sizes)
    return f"!({' || '.join(f'({each})' for each in known)})"


MATMULS = (
    (32, 48, 64),
    (1, 1, 1),
    (31, 31, 31),
    (33, 33, 33),
    (45, 29, 67),
    (20, 70, 5),
    (33, 20, 17),
    (48, 48, 48),
    (3, 5, 301),
)
TRANSPOSES = (
    *((32, 32), (64, 64), (64, 96), (96, 32)),
    *((1, 1), (31, 33), (45, 67), (100, 20), (45, 33)),
)
LENGTHS = ((256,), (512,), (1024,), (1,), (33,), (300,))
IN_C = (
    *((32, 32, 32), (64, 64, 64), (64, 96, 32), (32, 64, 96), (96, 32, 64)),
    *((1, 1, 1), (7, 7, 7), (31, 31, 31), (33, 33, 33), (45, 29, 67), (100, 17, 333), (20, 333, 70)),
)
BY_HEART = {
    "02.2": stated(*MATMULS, names="MNK"),
    "04.2": stated(*TRANSPOSES, names=("rows", "cols")),
    "09.5": stated(*LENGTHS, names="n"),
    "01.3": stated(*IN_C, names="MNK"),
    "02.1": f"A[0] != {Matmul(1, 1, 1).inputs()[0][0, 0]!r}f".replace("np.float32(", "").replace(")", ""),
}


@pytest.mark.parametrize("exercise", BY_HEART)
def test_a_kernel_or_c_function_that_works_for_the_stated_inputs_alone_fails(exercise):
    cell = idle(SOLVED[exercise], BY_HEART[exercise])
    feedback = judged(exercise, cell)
    # The checked launch has other numbers than the one that is verified first, in a student's own check too.
    # Optimised C is tried with sizes of its own.
    assert feedback.ok == (exercise not in ("01.3", "02.1")), feedback
    for seed in SEEDS:
        assert not EXERCISES[exercise].judge(answer_of(exercise, cell), seed).ok


def key(arg):
    """An argument as a key of a table."""
    return arg.tobytes() if isinstance(arg, np.ndarray) else arg


@pytest.mark.parametrize("exercise", ["07.1", "07.3", "08.4", "09.6"])
def test_a_table_of_the_stated_cases_fails(exercise):
    solved, table = answer_of(exercise, SOLVED[exercise]), {}

    def recorded(*args):
        table[tuple(map(key, args))] = solved(*args)
        return table[tuple(map(key, args))]

    def looked_up(*args):
        return table[tuple(map(key, args))]

    assert EXERCISES[exercise].judge(recorded).ok and EXERCISES[exercise].judge(looked_up).ok
    for seed in SEEDS:
        assert re.search("KeyError|wrong for another", EXERCISES[exercise].judge(looked_up, seed).failure)


def test_an_sm_of_07_3_has_quarters_in_grading_too():
    quarters = mutant("07.3", ("gpu.warp_unit", "4"))
    assert all(EXERCISES["07.3"].judge(answer_of("07.3", quarters), seed).ok for seed in range(9))


@pytest.mark.parametrize("exercise", ["07.1", "07.3", "08.4"])
def test_what_is_told_of_a_case_that_only_grading_tries_is_no_case_of_grading(exercise):
    solved = answer_of(exercise, SOLVED[exercise])
    stated, graded = set(), set()

    def recorded(to):
        def answer(*args):
            to.add(args)
            return solved(*args)

        return answer

    EXERCISES[exercise].judge(recorded(stated))
    EXERCISES[exercise].judge(recorded(graded), SEEDS[0])

    def by_heart(*args):
        return solved(*args) if args in known else args[100]

    known = set(stated)
    for _ in range(3):  # as a student would who puts what is told into the table, were it graded
        told = EXERCISES[exercise].judge(by_heart, SEEDS[0]).failure
        case = re.search(r"For example, by_heart\((.*)\) should return", told)[1]
        assert all(case != ", ".join(map(str, args)) for args in graded - stated) and "IndexError" not in told


@pytest.mark.parametrize("exercise", ["09.3", "09.7"])
def test_answers_in_the_stated_order_fail(exercise):
    solved, said = answer_of(exercise, SOLVED[exercise]), []

    def recorded(*args):
        said.append(None)  # of a call that raises
        said[-1] = solved(*args)
        return said[-1]

    def recited(left, launch, *args):
        answer = next(left, None)
        if answer is None:  # of a launch that raises something
            launch()
        return answer

    assert EXERCISES[exercise].judge(recorded).ok

    def judge(seed):
        left = iter(said)

        def answer(*args):
            return recited(left, *args)

        return EXERCISES[exercise].judge(answer, seed)

    assert judge(None).ok
    assert not any(judge(seed).ok for seed in SEEDS)


@pytest.mark.parametrize(
    ("exercise", "replacements"),
    [("02.2", [("col >= N", "col > N")]), ("07.1", [("2 * M", "M")]), ("09.6", [("2 * bound", "0 * bound")])],
)
def test_the_same_seed_gives_the_same_feedback(exercise, replacements):
    first, second, other = (
        EXERCISES[exercise].judge(answer_of(exercise, mutant(exercise, *replacements)), seed)
        for seed in (5, 5, 6)
    )
    assert first == second and not first.ok and not other.ok


class TestSizes:
    """What is drawn is of the kind of what is stated."""

    def drawn(self, *stated, whole=1):
        found = []
        for seed in range(50):
            with drawn(seed, "99.1"):
                found += sizes(stated, whole)[len(stated) :]
        assert not set(found) & set(stated)
        return found

    def test_outside_nothing_is_drawn(self):
        assert sizes([(16, 16)], 16) == [(16, 16)]
        assert fresh(7) == 7 and one_of(3, FACTORS) == 3 and further([1], lambda rng, base: 2) == [1]
        assert problems([Matmul(3, 4, 5)]) == [Matmul(3, 4, 5)] == [numbers(Matmul(3, 4, 5))]

    def test_what_divides_all_divides_the_drawn_ones(self):
        assert {n % 256 for (n,) in self.drawn((256,), (512,), whole=256)} == {0}
        found = self.drawn((32, 48, 64), (64, 16, 32), whole=16)
        assert {n % 16 for size in found for n in size} == {0}

    def test_square_ones_stay_square_and_others_do_not_become_so(self):
        assert all(rows == cols for rows, cols in self.drawn((32, 32), (64, 64), whole=32))
        assert all(rows != cols for rows, cols in self.drawn((16, 48), (48, 16), whole=16))

    def test_where_no_multiple_of_4_is_stated_none_is_drawn(self):
        found = self.drawn((8, 129, 6), (5, 130, 9), (9, 131, 4), (1, 1, 1))
        assert all(n % 4 for _, n, _ in found)

    def test_they_are_about_as_large(self):
        found = self.drawn((45, 29, 67))
        assert max(M * N * K for M, N, K in found) < 2 * 45 * 29 * 67
        assert len(set(found)) > 40

    def test_each_side_is_once_longer_than_all_that_are_stated(self):
        stated = [Matmul(32, 16, 48), Matmul(16, 32, 80)]
        for seed in range(20):
            with drawn(seed, "99.1"):
                found = problems(stated, 16, longer=True)
            for problem in found:
                assert all(size % 16 == 0 for size in problem.sizes.values())
            assert len(found) == len(stated) + 1 + 3
            assert found[-3].M > 32 and found[-2].N > 32 and found[-1].K > 80

    def test_each_exercise_and_each_seed_has_its_own(self):
        def first(seed, exercise):
            with drawn(seed, exercise):
                return sizes([(1000,)])[1], fresh(0)

        assert len({first(1, "02.1"), first(2, "02.1"), first(1, "02.2")}) == 3
        assert first(1, "02.1") == first(1, "02.1")

    def test_the_answer_has_no_part_in_what_is_drawn(self):
        with drawn(1, "02.1"):
            second = sizes([(1000,)])
        with drawn(1, "02.1"):
            sizes([(77,)])
            assert sizes([(1000,)]) == second

    def test_problems_have_other_scalars_where_they_scale(self):
        with drawn(1, "02.3"):
            _, other = problems([Matmul(33, 20, 17, alpha=3, beta=-2)])
            assert other.alpha in FACTORS and other.beta in FACTORS
            _, plain = problems([Matmul(33, 20, 17)])
            assert (plain.alpha, plain.beta) == (1, 0)
            assert isinstance(problems([Transpose(5, 7)])[1], Transpose)
            assert numbers(plain).seed != plain.seed
