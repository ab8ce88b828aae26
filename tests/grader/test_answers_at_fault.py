"""An error while an answer is judged is the answer's, but for a few causes; no student sees the inside."""

import errno
import socket
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from course_tables import SOLVED

import labkit
from grader.judging import clock, faults, judge, plugin
from grader.judging.clock import Clock, Late
from grader.judging.remote import RemoteFunction, RemoteKernel, RemoteModule, RemoteProgram, Stopped
from grader.model import GRADED, REGRADE, Answer, Submission
from grader.sandbox import process
from grader.sandbox.limits import Limits
from grader.sandbox.wire import BorderError, Channel
from grader.text import clean
from labkit.course import EXERCISES
from labkit.course.criteria import kernels
from labkit.course.criteria.python import called
from labkit.course.criteria.undisturbed import Disturbed
from labkit.course.exercise import Criterion, Exercise, Unmet
from labkit.course.exercises import lab_01
from labkit.course.feedback import FAILED, MET, NOT_JUDGED
from labkit.course.reimported import Elsewhere, Raised
from simt.common.errors import SimtError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")


def raising(error, asks=True):
    """An exercise of three criteria, of which the second raises this, after it has called the answer."""

    def test(answer):
        if asks:
            answer()
        raise error

    met = Criterion("met", lambda answer: None)
    return Exercise("00.1", "Made up", 3, (met, Criterion("raises", test), met), magic="answer")


@pytest.fixture
def an_answer():
    """A function in a sandbox, which returns something."""
    return Elsewhere("answer", lambda: (0, ""))


FLOOD = """%%cuda 00.1
#include <cstdio>
extern "C" __global__ void scale(float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int line = 0; line < 20; ++line)
        printf("thread %d prints more and more, line after line: %d\\n", i, line);
    if (i < n)
        x[i] = a * x[i];
}
"""


@pytest.mark.parametrize("lines", [20, 100000])
def test_what_an_answer_prints_while_it_is_judged_costs_no_other_one(lines):
    """A few lines per thread cost nothing; so many that it does not end in time cost its own points."""
    sources = {"00.1": FLOOD.replace("20", str(lines)), "00.2": SOLVED["00.2"]}
    submission = Submission("Eve", answers={id: Answer(id, source) for id, source in sources.items()})
    found = {each.exercise: each for each in judge.grade(submission, ("00",), 7, process.best()).results}
    assert found["00.1"].points == (EXERCISES["00.1"].points if lines == 20 else 0), found["00.1"]
    assert found["00.2"].points == EXERCISES["00.2"].points, found["00.2"]


OF_VALUES = [
    ValueError("inhomogeneous shape"),
    RecursionError("maximum recursion depth exceeded"),
    KeyError("brx.idx"),
    AssertionError(),
    ZeroDivisionError(),
    MemoryError(),
    OSError("no number"),
    StopIteration(),
    AttributeError("no shape", name="shape", obj=[1]),
]
MISTAKES = [
    NameError("using"),
    UnboundLocalError("using"),
    ImportError("gone"),
    NotImplementedError("no operands"),
    AttributeError("no sites", name="sites", obj=Limits()),
]


class TestGuarded:
    @pytest.mark.parametrize(
        "error",
        [
            *OF_VALUES,
            Raised("KeyError", "simt/code.py"),
            Raised("NameError", "of the answer's own"),
            Raised("<img src=x>\n" * 99, "forged"),
        ],
        ids=repr,
    )
    def test_what_a_value_can_cause_is_a_criterion_that_is_not_met_and_the_traceback_is_kept(
        self, error, an_answer
    ):
        errors = []
        feedback = faults.guarded(raising(error), errors).judge(an_answer)
        assert [line.state for line in feedback.lines] == [MET, FAILED, NOT_JUDGED]
        assert feedback.failure == faults.strange(error)
        assert "\n" not in feedback.failure and "<" not in feedback.failure
        (inside,) = errors
        assert "Traceback" in inside and __file__ in inside

    @pytest.mark.parametrize(
        ("error", "asks"),
        [*((error, True) for error in MISTAKES), *((error, False) for error in [*MISTAKES, *OF_VALUES])],
        ids=repr,
    )
    def test_a_mistake_of_the_grader_s_own_code_costs_no_points(self, error, asks, an_answer):
        """Whatever is raised before the answer has handed out anything is one, too."""
        errors = []
        with pytest.raises(faults.Mistake) as raised:
            faults.guarded(raising(error, asks), errors).judge(an_answer)
        assert raised.value.__cause__ is error and faults.ours(raised.value) == faults.AGAIN
        assert errors == []

    @pytest.mark.parametrize("error", [Unmet("why"), SimtError("why")], ids=repr)
    def test_what_a_criterion_says_stays_as_it_is(self, error, an_answer):
        errors = []
        assert faults.guarded(raising(error), errors).judge(an_answer).failure == "why"
        assert errors == []

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (Disturbed("This machine was busy."), "This machine was busy."),
            (OSError(errno.ENOSPC, "No space"), faults.SHORT.format("disk space")),
            (OSError(errno.ENOMEM, "No memory"), faults.SHORT.format("memory")),
            (BlockingIOError(errno.EAGAIN, "fork"), faults.SHORT.format("processes")),
            (process.NoSandbox("sudo apt install bubblewrap"), faults.AGAIN),
        ],
        ids=repr,
    )
    def test_a_cause_of_the_grader_is_told_in_a_sentence(self, error, told, an_answer):
        with pytest.raises(type(error)):
            faults.guarded(raising(error), []).judge(an_answer)
        assert faults.ours(error) == told

    def test_memory_that_is_missing_is_the_grader_s_only_where_the_machine_has_none(self, monkeypatch):
        assert not faults.ours(MemoryError())
        monkeypatch.setattr(faults, "LITTLE_BYTES", 2**60)
        assert faults.ours(MemoryError()) == faults.SHORT.format("memory")


def broken_answer(exercise, asked):
    """The answer to an exercise, in a sandbox that a mistake in the grader's code keeps out of reach.

    `asked` gets what was asked of it.
    """

    def ask(do, *_, **__):
        asked.append(do)
        raise NameError(do)

    session = SimpleNamespace(ask=ask, isolation="", make=ask)
    source = SOLVED[exercise.id].partition("\n")[2]
    if exercise.magic == "cuda":
        return RemoteKernel(RemoteModule(session, source, (), ()), "k", 0)
    if exercise.magic == "c":
        return RemoteFunction(session, source, "f", (), 0, ("f", ["const float *x", "int n"], False))
    if exercise.magic == "program":
        return RemoteProgram(session, source, ())
    return Elsewhere("f", lambda *_: ask("call"))


@pytest.mark.parametrize("id", EXERCISES)
def test_no_criterion_of_the_course_takes_a_mistake_of_the_grader_for_one_of_the_answer(id):
    asked = []
    exercise = faults.guarded(EXERCISES[id], [])
    for criterion in exercise.criteria:
        before = len(asked)
        try:
            criterion.test(broken_answer(exercise, asked))
        except faults.Mistake:
            continue
        except Exception as error:
            assert len(asked) == before, (criterion.text, error)  # it has only read the source
    assert asked


class TestMistakes:
    """Criteria that are wrong, on answers of each kind in real sandboxes."""

    def judged(self, id, test, source):
        """Judge an answer by a criterion of this test alone."""
        exercise = replace(EXERCISES[id], criteria=(Criterion("wrong", test),))
        answers = {id: Answer(id, source)}
        return judge.judge(answers, {id: exercise}, 7, process.best(), Limits())[id]

    def is_to_be_graded_again(self, judgement):
        """It has no points, and the instructor reads why."""
        assert (judgement.feedback, judgement.broken) == (None, faults.AGAIN)
        assert "NameError: name 'undefined' is not defined" in judgement.inside
        return True

    def test_what_does_not_come_out_of_a_sandbox_is_no_reason_to_take_points(self):
        """Operands, machine code: a criterion that reads them would find none."""

        def operands(kernel):
            profile = kernel.profile((1,), (32,), (np.zeros(32, np.float32), np.float32(2), np.int32(32)))
            untold = (
                lambda: profile.sites[0].instruction.sources,
                lambda: profile.sites[0].instruction.results,
                lambda: profile.sites[0].instruction.operands[0],
                lambda: bool(profile.sites[0].instruction.guard),
                lambda: profile.metrics["smsp__inst_executed.sum"],
            )
            for read in untold:
                with pytest.raises(NotImplementedError):
                    read()
            assert {site.instruction.opcode for site in profile.sites} > {"ld.global.f32"}
            return undefined  # noqa: F821

        assert self.is_to_be_graded_again(self.judged("00.1", operands, SOLVED["00.1"]))

    def test_a_function_of_the_judge_that_is_wrong(self):
        """An answer in Python calls it, and does not let its error through."""

        def wrong(*_):
            return undefined  # noqa: F821

        patient = "%%answer 09.7\ndef answer(f):\n    try: f()\n    except Exception: return 0"
        assert self.is_to_be_graded_again(self.judged("09.7", lambda answer: called(answer, wrong), patient))

    def test_a_criterion_for_c(self):
        assert self.is_to_be_graded_again(
            self.judged("01.1", lambda function: undefined, SOLVED["01.1"])  # noqa: F821
        )

    def test_points_are_those_of_an_exercise_that_is_to_be_graded_again(self, monkeypatch):
        wrong = replace(EXERCISES["07.1"], criteria=(Criterion("wrong", lambda _: undefined),))  # noqa: F821
        monkeypatch.setitem(judge.EXERCISES, "07.1", wrong)
        found = results({"07.1": SOLVED["07.1"]})["07.1"]
        assert (found.state, found.points, found.failure) == (REGRADE, None, faults.AGAIN)


def test_folders_of_this_machine_are_not_told():
    try:
        labkit.RawModule(code="", nonsense=1)
    except Exception:
        told = traceback.format_exc()
    told += f"{labkit.__file__}:1: {sys.prefix}/lib/x.h(3): error"
    fit = faults.fit(raising(Unmet("")).not_judged("runs", told)).failure
    assert str(labkit.__file__) not in fit and sys.prefix not in fit
    assert "labkit/__init__.py:1: lib/x.h(3): error" in fit


# What an answer in Python may return that is neither a number nor an array.
RAGGED = (
    "[[1, 2], [3]]",
    "[[], 1]",
    "{1: 2}",
    "iter(())",
    "b'x'",
    "'1'",
    "[None]",
    "(1, (2, 3))",
    "{'a'}",
    "print",
)


def results(answers, **limits):
    """Results by exercise of these answers."""
    labs = {id.partition(".")[0] for id in answers}
    submission = Submission("Eve", answers={id: Answer(id, source) for id, source in answers.items()})
    graded = judge.grade(submission, sorted(labs), 7, process.best(), Limits(**limits))
    return {result.exercise: result for result in graded.results if result.exercise in answers}


def are_told(found):
    """Each has fewer than all points, a sentence, and nothing of the grader's inside."""
    for id, result in found.items():
        assert result.state == GRADED and result.points < EXERCISES[id].points, result
        assert result.failure and "Traceback" not in result.failure, result
        assert str(judge.__file__).partition("/labkit/")[0] not in result.failure
    return True


def crossed(value):
    """What arrives of a value at the other side of a sandbox's border. Raises as a session does."""
    here, there = socket.socketpair()
    with here, there:
        Channel(here).send(value)
        try:
            return Channel(there).receive(seconds=10)
        except BorderError as error:
            raise Stopped(str(error)) from None


@pytest.mark.parametrize("id", [id for id, each in EXERCISES.items() if each.magic == "answer"])
@pytest.mark.parametrize("returned", RAGGED)
def test_values_of_any_form_are_wrong_and_no_mistake_of_the_grader(id, returned):
    answer = Elsewhere("answer", lambda *_: (crossed(eval(returned)), ""))
    feedback = faults.guarded(EXERCISES[id], []).judge(answer, seed=7)
    assert not feedback.ok and feedback.failure


def test_a_value_of_a_strange_form_is_wrong_and_no_error():
    """The same in real sandboxes."""
    answers = {
        id: f"%%answer {id}\ndef answer(*args):\n    return {returned}\n"
        for id, returned in zip(("07.1", "08.4", "09.3", "09.6"), RAGGED, strict=False)
    }
    assert are_told(results(answers))


def test_no_page_has_a_traceback_of_the_magic(monkeypatch):
    """Neither where an answer's own Python raises, nor where it makes the compiler of its cell raise."""
    found = results({"07.1": "%%answer 07.1\ndef f():\n    return 1 / 0\nf()\n"})
    assert are_told(found)
    assert found["07.1"].failure.splitlines()[0] == "Cell In[1], line 4"
    assert found["07.1"].failure.endswith("ZeroDivisionError: division by zero")
    raised = (
        "-----\nKeyError   Traceback (most recent call last)\nCell In[1], line 1\n\n"
        "File /opt/simt/code.py:3\n\nKeyError: 'a'"
    )
    error = plugin.NbCellError(0, "", "", raised)
    told, inside = plugin._told(error, EXERCISES["02.1"])
    assert "(KeyError)" in told and "Traceback" not in told and "/opt" not in told and inside == raised


@pytest.fixture
def endless(monkeypatch):
    """Judging 07.1 never ends, in the judge itself."""

    def test(answer):
        while True:
            with suppress(Exception):
                time.sleep(0.001)

    monkeypatch.setattr(clock, "GRACE_SECONDS", 0.1)
    endless = Exercise("07.1", "Endless", 2, (Criterion("ends", test),), magic="answer")
    return {"07.1": endless, "07.3": EXERCISES["07.3"]}


@pytest.mark.parametrize(
    "read",
    [partial(kernels.COMMENT.sub, ""), lab_01._STEP.findall, clean, partial(plugin._COLOURS.sub, "")],
)
@pytest.mark.parametrize("piece", ["a", "a ", "/*a", "a = ", "a=a", "\x1b[0", "\x1b]", "a\n"])
def test_what_the_judge_reads_of_a_source_takes_time_in_proportion_to_its_length(read, piece):
    """A regular expression that begins anew at each letter would take minutes, and cannot be interrupted."""
    read(piece * 2**17)


class TestLimits:
    def test_the_judge_s_own_work_on_an_answer_has_a_limit(self, endless):
        answers = {id: Answer(id, SOLVED[id]) for id in endless}
        judged = judge.judge(answers, endless, 7, process.best(), Limits(answer_seconds=2))
        assert judged["07.1"].feedback.failure == "Judging this answer took more than 2 s and was stopped."
        assert judged["07.3"].feedback.ok

    def test_a_submission_has_a_limit_per_lab(self, endless):
        answers = {id: Answer(id, SOLVED[id]) for id in endless}
        judged = judge.judge(answers, endless, 7, process.best(), Limits(lab_seconds=4))
        why = "Judging this submission took more than 4 s and was stopped."
        assert {each.feedback.failure for each in judged.values()} == {why}

    def test_an_endless_cell_is_stopped_by_the_submission_s_limit(self):
        found = results(
            {"07.1": "%%answer 07.1\nwhile True: pass\ndef f(): pass", "07.3": SOLVED["07.3"]}, lab_seconds=3
        )
        assert {(each.state, each.points) for each in found.values()} == {(GRADED, 0)}, found
        whys = {each.failure for each in found.values()}
        assert whys == {"Judging this submission took more than 3 s and was stopped."}


class TestClock:
    def test_a_part_is_late_with_the_whole(self):
        whole = Clock(0.0, "All")
        assert whole.part(60, "A part").left() <= 0
        assert whole.part(60, "A part").why() == "All took more than 0 s and was stopped."
        assert Clock(60, "All").part(0, "A part").why().startswith("A part took more than 0 s")

    def test_time_in_which_it_is_paused_is_not_counted(self):
        whole = Clock(60, "All")
        part = whole.part(60, "A part")
        before = whole.left()
        with part.paused():
            time.sleep(0.2)
            assert before - whole.left() < 0.1
        assert before - whole.left() < 0.1

    def test_work_that_does_not_end_is_interrupted_after_what_it_runs_was_stopped(self, monkeypatch):
        monkeypatch.setattr(clock, "GRACE_SECONDS", 0.1)
        told = []
        with pytest.raises(Late), Clock(0.1, "Work").enforced(told.append):
            while True:
                pass
        assert told == ["Work took more than 0.1 s and was stopped."]

    def test_nothing_of_a_clock_is_left_that_makes_a_profiled_call_endless(self):
        """CPython 3.11 goes round for ever in a profiled call while an exception is said to be under way."""
        script = """if True:
            import sys, time
            from contextlib import suppress
            from grader.judging import clock
            clock.GRACE_SECONDS = 0.0
            for seconds in (60, 0.01):
                with suppress(clock.Late), clock.Clock(seconds, "Work").enforced(lambda why: None):
                    time.sleep(0.1)
            sys.setprofile(lambda *_: None)
            print((lambda: "done")())
        """
        command = [sys.executable, "-c", script]
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        assert told.stdout == "done\n"

    def test_work_that_ends_in_time_is_not_interrupted(self, monkeypatch):
        monkeypatch.setattr(clock, "GRACE_SECONDS", 0.0)
        for _ in range(200):
            with Clock(60, "Work").enforced(pytest.fail):
                pass


def test_a_thread_that_cannot_start_is_the_answers_processes():
    """The system may refuse one before the sandbox's watch has counted them."""
    error = Raised("RuntimeError", "can't start new thread")
    assert faults.strange(error) == "It started too many processes and threads and was stopped."
    assert "processes" not in faults.strange(Raised("RuntimeError", "another"))
