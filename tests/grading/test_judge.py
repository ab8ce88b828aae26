"""Judging in a sandbox: the same criteria as in the notebook, on answers that are elsewhere."""

import subprocess
import sys
import threading
import time

import pytest
from course_tables import SOLVED, failed_criterion, mistakes, mutant

from labkit.core.processor import cores
from labkit.course import EXERCISES
from labkit.course.criteria.undisturbed import Disturbed
from labkit.course.feedback import MET
from labkit.course.notebooks import release
from labkit.doctor import find_gpu
from labkit.grading.judging import judge, plugin
from labkit.grading.model import GRADED, REGRADE, Answer, Submission
from labkit.grading.sandbox import process as sandbox
from labkit.grading.sandbox.limits import Limits
from labkit.grading.sandbox.turns import Turns

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")

# Not 01: it asks for speed, which is not judged where tests run beside each other.
LABS = sorted({id.partition(".")[0] for id in EXERCISES} - {"01"})


def each_lab(*quick):
    """All labs as cases; all but the `quick` ones are thorough."""
    return [pytest.param(lab, marks=[] if lab in quick else [pytest.mark.thorough]) for lab in LABS]


def sources(lab):
    """The solutions of a lab, by exercise."""
    return {id: source for id, source in SOLVED.items() if id.startswith(f"{lab}.")}


def results(lab, answers, seed=7, **limits):
    """Results of a submission with these answers, by exercise."""
    submission = Submission("Ada", answers={id: Answer(id, source) for id, source in answers.items()})
    graded = judge.grade(submission, (lab,), seed, sandbox.best(), Limits(**limits))
    assert graded.submission == submission
    return {result.exercise: result for result in graded.results}


@pytest.mark.parametrize("lab", each_lab("00", "02", "09"))
def test_solutions_have_all_points_but_those_that_take_a_gpu(lab):
    found = results(lab, sources(lab))
    assert list(found) == sorted(sources(lab))
    for id, result in found.items():
        if id == "10.5" and find_gpu() is None:
            assert (result.state, result.points) == (REGRADE, None)
            assert "takes a GPU" in result.failure
        else:
            assert (result.state, result.points, result.failure) == (GRADED, EXERCISES[id].points, "")
            assert {line.state for line in result.lines} == {MET}


@pytest.mark.parametrize("lab", each_lab("02"))
def test_a_notebook_that_is_handed_in_as_it_was_released_has_no_points(lab):
    released = {id: release.without_solution(source) for id, source in sources(lab).items()}
    assert {id: result.points for id, result in results(lab, released).items()} == dict.fromkeys(released, 0)


MISTAKES = {row.exercise: row for row in reversed(mistakes())}  # the first of each exercise


@pytest.mark.parametrize("lab", each_lab("02", "09"))
def test_a_mistake_costs_points_and_is_found_no_later_than_in_the_notebook(lab):
    wrong = {id: MISTAKES[id] for id in sources(lab)}
    found = results(lab, {id: mutant(id, *row.replacements) for id, row in wrong.items()})
    for id, row in wrong.items():
        assert found[id].state == GRADED
        assert found[id].points < EXERCISES[id].points
        # Inputs are drawn, too: numbers may be others, and an earlier criterion may find it.
        assert 0 < failed_criterion(found[id]) <= row.told.criterion and found[id].failure, found[id]


def test_a_time_is_predicted_in_a_sandbox_as_it_is_here():
    """The loads that wait for stores are the starter's: what the sandbox predicts decides."""
    right = results("06", {"06.4": SOLVED["06.4"]})["06.4"]
    assert (right.state, right.points) == (GRADED, EXERCISES["06.4"].points), right
    late = results("06", {"06.4": release.without_solution(SOLVED["06.4"])})["06.4"]
    assert late.points == 0 and "predicted for an H200: 47.4 µs" in late.failure, late


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
            turns = Turns(tmp_path)
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
                Turns(tmp_path).refuse_if_busy()
        finally:
            for process in busy:
                process.kill()
                process.wait()
