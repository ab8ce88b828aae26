"""Judging in a sandbox: the same criteria as in the notebook, on answers that are elsewhere."""

import subprocess
import sys
import threading
import time

import pytest
from course_tables import SOLVED, answer_of, exercises, failed_criterion, judged, mistakes, mutant

from grader.judging import judge, plugin
from grader.model import GRADED, REGRADE, Answer, Submission
from grader.sandbox import process as sandbox
from grader.sandbox.limits import Limits
from grader.sandbox.machine_lock import MachineLock
from labkit.course import EXERCISES
from labkit.course.criteria.undisturbed import Disturbed
from labkit.course.feedback import MET, NEEDS_GPU, NOT_JUDGED, Feedback, Line
from labkit.course.notebooks import release
from labkit.doctor import find_gpu
from simt.common.processor import cores

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")

LABS = tuple(sorted({id.partition(".")[0] for id in EXERCISES}))
AGAIN_IF_BUSY = (
    4  # times that an answer whose time is taken is judged where tests beside it keep the machine busy
)


def sources(lab):
    """The solutions of a lab, by exercise."""
    return {id: source for id, source in SOLVED.items() if id.startswith(f"{lab}.")}


def graded(labs, answers, seed=7, **limits):
    """Results of a submission with these answers, by exercise."""
    submission = Submission("Ada", answers={id: Answer(id, source) for id, source in answers.items()})
    graded = judge.grade(submission, labs, seed, sandbox.best(), Limits(**limits))
    assert graded.submission == submission
    return {result.exercise: result for result in graded.results}


def results(lab, answers, seed=7, **limits):
    """Results of a submission to one lab."""
    return graded((lab,), answers, seed, **limits)


# Whole courses, each of which is one submission: the answers in CUDA share a kernel, as a student's do.


@pytest.fixture(scope="module")
def solved():
    """Results of all solved notebooks, by exercise."""
    found = graded(LABS, SOLVED)
    for _ in range(AGAIN_IF_BUSY):
        busy = {id for id, result in found.items() if result.state == REGRADE and id != TAKES_A_GPU}
        for id in busy & TIMED:
            found |= {id: results(id.partition(".")[0], {id: SOLVED[id]})[id]}
    return found


@pytest.fixture(scope="module")
def mistaken():
    """Results of notebooks with a mistake in each answer, by exercise."""
    return graded(LABS, {id: mutant(id, *row.replacements) for id, row in MISTAKES.items()})


@pytest.fixture(scope="module")
def handed_out():
    """Results of notebooks that are handed in as they were released, by exercise."""
    return graded(LABS, {id: release.without_solution(source) for id, source in SOLVED.items()})


TIMED, TAKES_A_GPU = {"01.4"}, "10.5"
MISTAKES = {row.exercise: row for row in reversed(mistakes())}  # the first of each exercise
ASKED = judge.asked(LABS)


def lines_of(id, source):
    """What the notebook's own check says, and the criteria that the grader alone has, which come last."""
    own = judged(id, source)
    hidden = ASKED[id].criteria[len(EXERCISES[id].criteria) :]
    return *own.lines, *(Line(each.text, MET if own.ok else NOT_JUDGED) for each in hidden)


@pytest.mark.parametrize("id", exercises())
class TestAgreement:
    """The grader says what the notebook's own check says, criterion by criterion."""

    def test_of_a_solution(self, id, solved):
        result = solved[id]
        assert result.lines == lines_of(id, SOLVED[id]), result
        if id == TAKES_A_GPU and find_gpu() is None:
            assert {line.state for line in result.lines} == {MET, NEEDS_GPU}
            assert (result.state, result.points, result.failure) == (REGRADE, None, judge.NO_GPU)
        else:
            assert {line.state for line in result.lines} == {MET}
            assert (result.state, result.points, result.failure) == (GRADED, EXERCISES[id].points, "")

    @pytest.mark.slow  # the course once more, through the sandbox
    def test_of_a_mistake(self, id, mistaken):
        """The tests of each lab say which criterion it fails in the notebook."""
        result, criterion = mistaken[id], MISTAKES[id].told.criterion
        assert (result.state, result.inside) == (GRADED, "")  # the criterion says it, and no error
        # Inputs are drawn, too: an earlier criterion may find it.
        assert 0 < failed_criterion(result) <= criterion and result.failure, result
        assert result.points == ASKED[id].points_of(Feedback("", result.lines)) < EXERCISES[id].points

    @pytest.mark.slow  # the course once more, through the sandbox
    def test_of_what_was_handed_out(self, id, handed_out):
        assert (handed_out[id].state, handed_out[id].points) == (GRADED, 0)


def test_all_exercises_are_compared():
    assert SOLVED.keys() == MISTAKES.keys() == EXERCISES.keys()


def test_a_wait_that_nobody_asks_again_is_found_in_a_sandbox():
    """Whether the answer of a wait decides something is worked out there: its operands stay inside."""
    (row,) = (each for each in mistakes() if (each.exercise, each.name) == ("11.3", "asks once"))
    found = results("11", {"11.3": mutant("11.3", *row.replacements)})["11.3"]
    assert failed_criterion(found) == row.told.criterion and found.inside == "", found


def test_a_time_is_predicted_in_a_sandbox_as_it_is_here():
    """The loads that wait for stores are the starter's: what the sandbox predicts decides."""
    right = results("06", {"06.4": SOLVED["06.4"]})["06.4"]
    assert (right.state, right.points) == (GRADED, EXERCISES["06.4"].points), right
    late = results("06", {"06.4": release.without_solution(SOLVED["06.4"])}, seed=7)["06.4"]
    own = EXERCISES["06.4"].judge(answer_of("06.4", release.without_solution(SOLVED["06.4"])), seed=7)
    assert late.points == 0 and (late.lines, late.failure) == (own.lines, own.failure)


def test_the_same_seed_gives_the_same_results():
    answers = sources("02") | {"02.2": mutant("02.2", (" || col >= N", ""))}
    first, second = (results("02", answers) for _ in range(2))
    told = [(each.points, each.lines, each.failure) for each in first.values()]
    assert told == [(each.points, each.lines, each.failure) for each in second.values()]


def test_an_exercise_without_an_answer_costs_that_exercise_alone():
    answers = sources("00")
    del answers["00.1"]
    found = results("00", answers)
    assert (found["00.1"].points, found["00.2"].points) == (0, EXERCISES["00.2"].points)
    assert found["00.1"].failure == judge.MISSING


def test_an_answer_that_does_not_compile_is_told_with_the_compiler_s_message():
    found = results("00", sources("00") | {"00.1": mutant("00.1", ("a * x[i]", "a * y[i]"))})
    assert (found["00.1"].points, found["00.2"].points) == (0, EXERCISES["00.2"].points)
    assert 'identifier "y" is undefined' in found["00.1"].failure


@pytest.mark.parametrize(
    ("answer", "seconds", "why"),
    [
        ("def rates(M, N, K, ms):\n    import os\n    os._exit(0)", 60, "has ended"),
        ("import os\nos._exit(0)\ndef rates(*_): pass", 60, "has ended the process"),
        ("while True: pass\ndef rates(*_): pass", 3, "ran for more than 3 s"),
        ("x = [bytearray(10**8) for _ in range(30)]\ndef rates(*_): pass", 60, "of memory and was stopped"),
        ("import os\nwhile True: os.fork()\ndef rates(*_): pass", 3, "and was stopped"),
    ],
    ids=["ends when called", "ends", "never ends", "takes memory", "forks"],
)
def test_an_answer_that_ends_its_process_costs_that_exercise_alone(answer, seconds, why):
    given = {"07.1": f"%%answer 07.1\n{answer}", "07.3": SOLVED["07.3"]}
    found = results("07", given, cell_seconds=seconds, memory_bytes=2**30)
    assert found["07.1"].points == 0
    assert why in found["07.1"].failure
    assert found["07.3"].points == EXERCISES["07.3"].points


def test_a_kernel_that_is_stopped_leaves_the_next_its_turn(monkeypatch):
    monkeypatch.setattr(plugin, "END_SECONDS", 1)
    endless = mutant("00.1", ("if (i < n)", "volatile int k = 1; while (k) k = 2;\n    if (i < n)"))
    found = results("00", sources("00") | {"00.1": endless}, answer_seconds=2)
    assert found["00.1"].points == 0
    assert "more than 2 s" in found["00.1"].failure
    assert found["00.2"].points == EXERCISES["00.2"].points


def test_a_hidden_check_counts_and_is_not_in_the_students_notebook():
    (hidden,) = (
        each for each in judge.asked(["02"])["02.2"].criteria if each not in EXERCISES["02.2"].criteria
    )
    narrow = mutant("02.2", ("if (row >= M", "if (M == 1) return;\n    if (row >= M"))
    found = results("02", sources("02") | {"02.2": narrow})["02.2"]
    assert found.points < EXERCISES["02.2"].points
    assert hidden.text in [line.text for line in found.lines]


class TestTurns:
    def test_who_is_alone_has_nobody_beside(self, tmp_path):
        inside, most = set(), []

        def work(number, is_alone):
            turns = MachineLock(tmp_path)
            with turns.beside():
                for _ in range(5):
                    if is_alone:
                        with turns.alone():
                            inside.add(number)
                            time.sleep(0.01)
                            most.append((is_alone, len(inside)))
                            inside.discard(number)
            if not is_alone:
                for _ in range(20):
                    with turns.beside():
                        inside.add(number)
                        time.sleep(0.005)
                        most.append((is_alone, len(inside)))
                        inside.discard(number)
            turns.close()

        workers = [threading.Thread(target=work, args=(k, k < 2)) for k in range(5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert {count for is_alone, count in most if is_alone} == {1}
        assert max(count for is_alone, count in most if not is_alone) > 1

    def test_a_machine_that_is_busy_says_nothing_of_an_answer_s_speed(self, tmp_path):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores())]
        try:
            with pytest.raises(Disturbed, match="busy with something else"):
                MachineLock(tmp_path).refuse_if_busy()
        finally:
            for process in busy:
                process.kill()
                process.wait()
