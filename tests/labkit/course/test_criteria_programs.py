"""Criteria for whole programs, with made-up runs: each is met exactly, and missed by one thing."""

from dataclasses import replace

import numpy as np
import pytest

from labkit.course.criteria import programs
from labkit.course.criteria.programs import Work
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_13
from labkit.course.fresh_inputs import drawn
from simt.programs.program import Outcome
from simt.programs.recording import Arrays, Copied, Elapsed, Launched, Record, Returned, Span
from simt.programs.server.memory import DEVICE_START, HOST_START

DOUBLE = Work("double", lambda n: 2.0 * np.arange(n), lambda args, x: 2 * x, inputs=1)
NOTHING = Record(ended=True, is_whole=True, gpu="H200", found=[])


def arrays(before, after, start=DEVICE_START):
    return Arrays(*(np.asarray(each, np.float32).view(np.uint8) for each in (before, after)), start)


def launch(n=4, at=1, first=0, start=DEVICE_START, **more):
    """A launch that doubles n numbers from `first` on, behind which 2 more lie."""
    x = np.arange(first, first + n + 2, dtype=np.float32)
    after = np.where(np.arange(n + 2) < n, 2 * x, x)
    pseudo = np.full(n + 2, 7, np.float32)
    tried = [arrays(pseudo, np.where(np.arange(n + 2) < n, 14, 7), 0)]
    made = Launched(at, "double", (1, 1, 1), (32, 1, 1), 0, 1e-6, [arrays(x, after, start)], tried)
    return replace(made, **more)


def copy(contents, at=2, to=64):
    return Copied(at, to, np.asarray(contents, np.float32).view(np.uint8))


RIGHT = replace(NOTHING, launches=[launch()], copies=[copy([0, 2, 4, 6])])


def ended(text="sum: 12\n", code=0, stderr="", record=RIGHT, **more):
    return Outcome(text, stderr, code, record=record, **more)


class Program:
    """A program whose run is made up."""

    def __init__(self, outcome):
        self.outcome, self.asked = outcome, []

    def run(self, *words, mode, timeout, variables, record):
        self.asked.append((words, mode, variables["LABKIT_GPU"], record))
        assert timeout == programs.SECONDS
        return self.outcome(*words) if callable(self.outcome) else self.outcome


def refused(criterion, outcome):
    with pytest.raises(Unmet) as unmet:
        criterion.test(Program(outcome))
    return str(unmet.value)


class TestPrints:
    asked = programs.prints("text", (4,), by=DOUBLE, of=lambda n: n * (n - 1), draw=None, hint="<hint>")

    def test_every_case_is_tried_and_recorded(self):
        program = Program(ended())
        programs.prints("text", (4,), (4,), by=DOUBLE, of=lambda n: 12, draw=None, hint="").test(program)
        assert [each[:3] for each in program.asked] == 2 * [(("4",), "run", "H200")]
        assert all(isinstance(seed, int) for *_, seed in program.asked)
        assert refused(self.asked, ended("sum: 13")).endswith("\n<hint>")

    def test_a_grader_draws_the_seed_of_what_is_tried(self):
        seeds = set()
        for seed in (1, 2):
            program = Program(ended())
            with drawn(seed, "13.1"):
                programs.computes("text", (4,), work=DOUBLE, draw=lambda rng, case: case, hint="").test(
                    program
                )
            seeds |= {each[3] for each in program.asked}
        assert len(seeds) == 2

    @pytest.mark.parametrize(
        ("text", "is_met"),
        [
            ("sum:12", True),
            ("sum: 12.000012", True),
            ("sum: 12.000014", False),
            ("sum: 11.999986", False),
            ("sum: 0.12e2", True),
            ("sum: 1\nsum: 12", True),  # the last one
            ("sum: nan", False),
            ("checksum: 12", False),
            ("sum = 12", False),
            ("", False),
        ],
    )
    def test_the_number(self, text, is_met):
        assert self.asked.test(Program(ended(text))) is None if is_met else refused(self.asked, ended(text))

    @pytest.mark.parametrize(
        ("outcome", "words"),
        [
            (ended(code=2), "exit code is 2;"),
            (ended(code=139), "signal 11."),
            (ended(timed_out=True), "20 s"),
            (ended(record=replace(RIGHT, is_whole=False)), "more"),
            (ended(record=None), "double"),
        ],
    )
    def test_it_must_come_to_its_end(self, outcome, words):
        assert words in refused(self.asked, outcome)

    def test_what_it_prints_is_shown_up_to_eight_lines(self):
        told = refused(self.asked, ended("".join(f"line {n}\n" for n in range(20))))
        assert "    line 7" in told and "line 8" not in told


PARTS = [launch(2, 1), launch(2, 2, first=2, start=DEVICE_START + 8)]
SAME_BUFFER = [launch(2, 1), launch(2, 3, first=2)]


class TestComputed:
    """What launches compute, and how it comes to the host."""

    asked = programs.prints("text", (4,), by=DOUBLE, of=lambda n: 12, draw=None, hint="<hint>")

    @pytest.mark.parametrize(
        "record",
        [
            RIGHT,
            replace(RIGHT, launches=PARTS, copies=[copy([0, 2, 4, 6], at=3)]),
            replace(RIGHT, launches=PARTS, copies=[copy([0, 2]), copy([4, 6], 3, 72)]),
            replace(RIGHT, launches=PARTS, copies=[copy([4, 6], to=72), copy([0, 2], 3)]),
            replace(RIGHT, launches=SAME_BUFFER, copies=[copy([0, 2]), copy([4, 6], 4)]),  # into one place
            replace(RIGHT, launches=[launch(at=0, first=50), launch()]),  # a warm-up on other numbers
            replace(RIGHT, launches=[launch(start=HOST_START)], copies=[]),  # pinned or managed memory
            replace(RIGHT, launches=[launch(code=1), launch()]),
            replace(RIGHT, copies=[copy([9, 0, 2, 4, 6, 9])]),
            replace(RIGHT, copies=[copy([0, 2]), copy([4, 6], 3, 80)]),  # apart from each other
            replace(RIGHT, copies=[copy([0, 2, 4, 6]), copy([1], 3, 68)]),  # overwritten when it was used
            replace(RIGHT, launches=[launch(arrays=[arrays([0, 1, 2, 3], [0, 1, 2, 3]),
                                                    arrays([5, 5, 5, 5, 8], [0, 2, 4, 6, 8])])]),
        ],
    )  # fmt: skip
    def test_right(self, record):
        self.asked.test(Program(ended(record=record)))

    @pytest.mark.parametrize(
        "record",
        [
            replace(RIGHT, launches=[]),
            replace(RIGHT, launches=[launch(kernel="triple")]),
            replace(RIGHT, launches=[launch(code=700)]),
            replace(RIGHT, launches=[launch(3)]),
            replace(RIGHT, launches=PARTS[:1]),
            replace(RIGHT, launches=[launch(first=1)]),
            replace(RIGHT, launches=[launch(arrays=None)]),
            replace(RIGHT, launches=[launch(arrays=[arrays([0, 1, 2, 3], [0, 2, 4, 7])])]),
            replace(RIGHT, launches=[launch(arrays=[arrays([0, 2, 4, 6], [0, 2, 4, 6])])]),  # nothing is done
            replace(RIGHT, copies=[]),
            replace(RIGHT, copies=[copy([0, 2, 4, 6], at=0)]),  # before the launch
            replace(RIGHT, copies=[copy([0, 2, 4])]),
            replace(RIGHT, copies=[copy([0, 2, 4, 7])]),
            replace(RIGHT, copies=[Copied(2, 64, None)]),
        ],
    )  # fmt: skip
    def test_wrong(self, record):
        refused(self.asked, ended(record=record))


class TestComputes:
    asked = programs.computes("text", (4,), work=DOUBLE, draw=None, hint="<hint>")

    def tried(self, tried):
        return ended(record=replace(RIGHT, launches=[launch(tried=tried)]))

    def test_right(self):
        self.asked.test(Program(ended()))
        self.asked.test(Program(self.tried(None)))  # too large to be tried

    @pytest.mark.parametrize(
        "tried",
        [
            "out of bounds",
            [arrays([7, 7, 7, 7, 7, 7], [7, 7, 7, 7, 7, 7])],
            [arrays([7, 7, 7, 7, 7, 7], [14, 14, 14, 7, 7, 7])],  # one fewer than it changed
            [arrays([7, 7, 7, 7, 7, 7], [14, 14, 14, 14, 7, 8])],
            [arrays([7, 7, 7, 7, 7, 7], [0, 2, 4, 6, 7, 7])],  # the stated result
        ],
    )
    def test_wrong(self, tried):
        assert refused(self.asked, self.tried(tried)).endswith("\n<hint>")

    def test_no_launch(self):
        refused(self.asked, ended(record=NOTHING))


class TestFails:
    asked = programs.fails("text", (0,), draw=None, code=1, message="invalid argument", hint="<hint>")
    record = replace(
        NOTHING, returned=[Returned(1, "__cudaLaunchKernel", 1), Returned(2, "cudaGetLastError", 1)]
    )

    def test_right(self):
        self.asked.test(Program(ended("", 1, "error: invalid argument\n", self.record)))
        failing = replace(NOTHING, launches=[launch(code=1)], returned=[Returned(2, "cudaMemcpy", 1)])
        self.asked.test(Program(ended("", 1, "error: invalid argument\n", failing)))

    @pytest.mark.parametrize(
        ("outcome", "words"),
        [
            (ended("sum: 0", 1, "invalid argument", record), '"invalid argument"'),
            (ended("", 3, "invalid argument", record), "exit code is 3;"),
            (ended("", 0, "invalid argument", record), "exit code is 0;"),
            (ended("invalid argument", 1, "failed", record), "stderr"),
            (ended("", 1, "invalid argument", NOTHING), "no kernel"),
            (ended("", 1, "invalid argument", None), "no kernel"),
            (ended("", 1, "invalid argument", replace(NOTHING, launches=[launch(code=710)])), "no kernel"),
            (ended("", 1, "invalid argument", replace(record, returned=record.returned[:1])), "never asks"),
            (ended("", 1, "invalid argument", replace(record, returned=record.returned[1:])), "no kernel"),
            (
                ended("", 1, "invalid argument",
                      replace(record, returned=[record.returned[0], Returned(2, "cudaGetLastError", 2)])),
                "never asks",
            ),
        ],
    )  # fmt: skip
    def test_wrong(self, outcome, words):
        told = refused(self.asked, outcome)
        assert words in told and told.endswith("\n<hint>")


class TestNoMistake:
    def asked(self, **more):
        return programs.no_mistake("text", (4,), draw=None, hints={"leak": "<leak>"}, by=DOUBLE, **more)

    def found(self, *mistakes, **more):
        return ended(
            stderr="labkit check: no mistake found\n", record=replace(RIGHT, found=[*mistakes], **more)
        )

    def test_nothing_is_found(self):
        program = Program(self.found())
        self.asked().test(program)
        assert [mode for _, mode, *_ in program.asked] == ["check"]

    def test_the_first_is_told_with_its_hint(self):
        found = ("leak", "20 bytes"), ("race", "x[0]")
        told = refused(self.asked(), self.found(*found))
        assert "(mode check): 2 found," in told and told.endswith("    leak: 20 bytes\n<leak>")
        assert refused(self.asked(), self.found(found[1])).endswith("    race: x[0]")

    def test_other_kinds_do_not_count(self):
        self.asked(kinds=("race",)).test(Program(self.found(("leak", "20 bytes"))))
        assert "1 found" in refused(self.asked(kinds=("race", "leak")), self.found(("leak", "20 bytes")))

    def test_a_program_that_ends_before_it_is_checked(self):
        assert "(mode check)" in refused(self.asked(), self.found(ended=False))

    @pytest.mark.parametrize("launches", [[], [launch(kernel="double2")], [launch(code=700)]])
    def test_the_kernel_must_stay(self, launches):
        for asked in (self.asked(), self.asked(kinds=("race",))):
            assert "kernel double " in refused(asked, self.found(launches=launches))

    def test_the_result_must_be_right_there_too(self):
        wrong = [launch(3)]
        self.asked(kinds=("race",)).test(Program(self.found(launches=wrong)))
        refused(self.asked(), self.found(launches=wrong))


class TestTimed:
    def of(self, text, *elapsed):
        record = replace(RIGHT, launches=[launch(at=at) for at in (3, 4, 9)], elapsed=[*elapsed])
        return programs.timed(
            programs.ProgramRun("./program", ended(text, record=record), record), "double", "<hint>"
        )

    two = Elapsed(started=2, stopped=5, begin=1.0, end=1.008)

    @pytest.mark.parametrize("ms", ["8", "8.0079", "7.9921", "4", "4.0039"])
    def test_right(self, ms):
        assert self.of(f"ms: {ms}", self.two) == float(ms)

    @pytest.mark.parametrize("ms", ["8.0081", "4.005", "2.6667", "16", "0", "-8"])
    def test_wrong(self, ms):
        with pytest.raises(Unmet, match="<hint>"):
            self.of(f"ms: {ms}", self.two)

    def test_one_of_several(self):
        assert self.of("ms: 8", Elapsed(5, 6, 2, 3), self.two) == 8

    def test_launches_at_the_events_are_not_between(self):
        with pytest.raises(Unmet):
            self.of("ms: 4", replace(self.two, started=3))
        with pytest.raises(Unmet):
            self.of("ms: 4", replace(self.two, stopped=4))

    def test_no_event(self):
        with pytest.raises(Unmet, match="<hint>"):
            self.of("ms: 8")


class TestTimedWhole:
    spans = (Span(1, 1, 7, 1.0, 1.002), Span(2, Span.KERNEL, 8, 1.002, 1.005), Span(3, 2, 8, 1.004, 1.008))
    whole = Elapsed(0, 9, 1.0, 1.008)

    def of(self, text, *elapsed):
        record = replace(RIGHT, elapsed=[*elapsed], spans=[*self.spans])
        return programs.timed_whole(
            programs.ProgramRun("./program", ended(text, record=record), record), "<hint>"
        )

    def test_right(self):
        assert self.of("ms: 8", self.whole) == 8
        assert self.of("ms: 9", Elapsed(0, 9, 0.9995, 1.0085)) == 9
        assert self.of("ms: 8", Elapsed(0, 1, 1.0, 1.001), self.whole) == 8

    @pytest.mark.parametrize(
        ("ms", "elapsed"),
        [
            (8, []),
            (8, [Elapsed(0, 9, 1.0, 1.0085)]),
            (4, [whole]),  # a mean
            (7, [Elapsed(0, 9, 1.001, 1.008)]),
            (7, [Elapsed(0, 9, 1.0, 1.007)]),
            (7, [Elapsed(0, 9, 1.0, 1.007), whole]),  # other events around all
        ],
    )
    def test_wrong(self, ms, elapsed):
        with pytest.raises(Unmet, match="<hint>"):
            self.of(f"ms: {ms}", *elapsed)


def test_the_gpu_is_drawn():
    assert programs.drawn_gpu() == programs.GPU
    seen = set()
    for seed in range(20):
        with drawn(seed, "13.4"):
            seen.add(programs.drawn_gpu())
    assert seen == set(programs.GPUS)


@pytest.mark.parametrize("gpu", programs.GPUS)
def test_times_are_predicted_for_each(gpu):
    assert lab_13._triad_ms(1 << 16, gpu) > 0


DIFFERENCE = Work("subtract", None, lambda args, x, y: x - y, inputs=2)


class TestTwoInputs:
    """out = x - y, whichever pointers they are behind."""

    x, y = np.arange(10, 14, dtype=np.float32), np.ones(4, np.float32)

    def arrays(self, order, out=(9, 10, 11, 12), y=y):
        made = {"x": arrays(self.x, self.x), "y": arrays(y, y), "o": arrays([5] * len(out), out)}
        return [made[name] for name in order]

    @pytest.mark.parametrize("order", ["xyo", "oyx", "yox"])
    def test_any_order(self, order):
        part = programs.part_of(DIFFERENCE, (4,), self.arrays(order))
        assert part.numbers.tolist() == [9, 10, 11, 12] and part.changed == 4

    def test_the_shorter_input_decides(self):
        part = programs.part_of(DIFFERENCE, (4,), self.arrays("xyo", out=(9, 10, 11), y=self.y[:3]))
        assert part.numbers.tolist() == [9, 10, 11]

    def test_something_else(self):
        """Nothing of it counts, not even the numbers before the wrong one."""
        part = programs.part_of(DIFFERENCE, (4,), self.arrays("xyo", out=(9, 10, 11, 13)))
        assert part is None or not part.numbers.size

    def test_no_input(self):
        """A kernel that fills an array has none: nothing can be expected of it."""
        fill = Work("fill", None, lambda args: np.ones(3), inputs=0)
        part = programs.part_of(fill, (3,), [arrays([0, 0, 0, 8], [1, 1, 1, 8])])
        assert part.numbers.tolist() == [1, 1, 1] and part.changed == 3


def test_the_longest_part_counts():
    """Both arrays hold doubled numbers; one of them more of them."""
    short, long = arrays([0, 1, 5], [0, 2, 5], 100), arrays([0, 1, 2, 3], [0, 2, 4, 6], 200)
    for given in ([short, long], [long, short]):
        found = programs.part_of(DOUBLE, (4,), given)
        assert (found.start, found.numbers.size, found.changed) == (200, 4, 4)


def test_bytes_behind_the_last_whole_number_are_left_out():
    assert programs._as_floats(np.zeros(11, np.uint8)).size == 2
    assert programs._as_floats(np.zeros(12, np.uint8)).size == 3


def regions(*pieces):
    return [bytes(each) for each in programs._regions([(to, np.frombuffer(p, np.uint8)) for to, p in pieces])]


@pytest.mark.parametrize(
    ("pieces", "stretches"),
    [
        ([], []),
        ([(5, b"abc")], [b"abc"]),
        ([(5, b"abc"), (8, b"de")], [b"abcde"]),
        ([(8, b"de"), (5, b"abc")], [b"abcde"]),
        ([(5, b"abc"), (9, b"de")], [b"abc", b"de"]),
        ([(5, b"abcdef"), (7, b"X")], [b"abXdef"]),
        ([(7, b"X"), (5, b"abcdef")], [b"abcdef"]),
        ([(5, b"abc"), (7, b"XY"), (20, b"z")], [b"abXY", b"z"]),
        ([(0, b"a"), (0, b"bc")], [b"bc"]),
        ([(5, b"abcdef"), (7, b"X"), (11, b"g")], [b"abXdefg"]),
    ],
)
def test_pieces_where_they_lie(pieces, stretches):
    assert regions(*pieces) == stretches


@pytest.mark.parametrize(
    ("parts", "holds"),
    [
        ([[1, 2, 3]], True), ([[1], [2, 3]], True), ([[1, 2], [9], [3]], True), ([[9], [1, 2, 3]], True),
        ([[1], [1, 2, 3]], True), ([[1, 2]], False), ([[2, 3], [1]], False), ([], False),
        ([[], [1, 2, 3]], True), ([[1, 2, 3, 4]], False), ([[1, 2], [2, 3]], False),
    ],
)  # fmt: skip
def test_parts_one_behind_the_other(parts, holds):
    assert programs._holds([np.array(each) for each in parts], np.array([1, 2, 3])) is holds


class TestBounds:
    @pytest.mark.parametrize(("code", "words"), [(128, "exit code is 128;"), (129, "ended by signal 1.")])
    def test_signals_begin_behind_128(self, code, words):
        assert words in refused(TestPrints.asked, ended(code=code))

    @pytest.mark.parametrize(("text", "is_met"), [("9e-7", True), ("-9e-7", True), ("1.1e-6", False)])
    def test_near_0_a_number_may_be_off_by_a_millionth(self, text, is_met):
        zero = programs.prints("text", (4,), by=DOUBLE, of=lambda n: 0, draw=None, hint="<hint>")
        outcome = ended(f"sum: {text}")
        assert zero.test(Program(outcome)) is None if is_met else refused(zero, outcome).endswith("<hint>")

    def test_another_name_and_another_tolerance(self):
        asked = programs.prints(
            "text", (4,), by=DOUBLE, of=lambda n: 100, draw=None, hint="", name="mean", relative=0.1
        )
        asked.test(Program(ended("mean: 109")))
        assert "mean is 111; it should be 100." in refused(asked, ended("mean: 111"))
        assert '"mean: ' in refused(asked, ended("sum: 100"))

    def test_a_long_line_is_cut(self):
        told = refused(TestPrints.asked, ended("x" * 149 + "yz"))
        assert "x" * 149 + "y\n" in told + "\n" and "yz" not in told

    def test_what_is_printed_to_either_stream_is_shown(self):
        told = refused(TestPrints.asked, ended("out", 1, "err"))
        assert told.endswith("It prints\n    out\n    err")
        assert refused(TestPrints.asked, ended("", 1)).endswith("It prints\n    (nothing)")

    def test_another_result_must_not_be_printed(self):
        asked = programs.fails("text", (0,), draw=None, code=1, message="m", hint="", silent="mean")
        record = TestFails.record
        asked.test(Program(ended("sum: 1", 1, "m", record)))
        assert "it prints a result" in refused(asked, ended("mean: 1", 1, "m", record))

    def test_a_kernel_that_changes_nothing_of_other_numbers(self):
        """It computes none of them, even where it has changed nothing of the real ones either."""
        idle = [arrays([0, 0], [0, 0])]
        tried = ended(record=replace(RIGHT, launches=[launch(arrays=idle, tried=[arrays([7, 7], [7, 7])])]))
        assert refused(TestComputes.asked, tried).endswith("<hint>")

    def test_as_many_other_numbers_as_it_has_changed(self):
        longer = [arrays([7] * 6, [14] * 5 + [7])]
        TestComputes.asked.test(Program(ended(record=replace(RIGHT, launches=[launch(tried=longer)]))))


@pytest.mark.parametrize("other", [1, 3])
def test_another_error_is_not_the_one_that_is_asked_for(other):
    asked = programs.fails("text", (0,), draw=None, code=2, message="m", hint="<hint>")
    returned = [Returned(1, "cudaLaunchKernel", other), Returned(2, "cudaGetLastError", other)]
    outcome = ended("", 1, "m", replace(NOTHING, returned=returned))
    assert "it launches no kernel that fails" in refused(asked, outcome)


class TestTicks:
    """Sums of floats: an event may lie a billionth of a second inside, and no two."""

    @pytest.mark.parametrize(("off", "is_met"), [(0.9e-9, True), (programs.TICK, True), (2e-9, False)])
    @pytest.mark.parametrize("at_end", [False, True])
    def test_an_event_that_is_late_or_early(self, off, is_met, at_end):
        begin, end = (1.0, 1.008 - off) if at_end else (1.0 + off, 1.008)
        whole = TestTimedWhole()
        if is_met:
            assert whole.of("ms: 8", Elapsed(0, 9, begin, end)) == 8
        else:
            with pytest.raises(Unmet, match="from the first copy to the end of the last"):
                whole.of("ms: 8", Elapsed(0, 9, begin, end))

    def test_three_elapsed_times_are_told(self):
        elapsed = [Elapsed(0, 9, 1.0, 1.0 + each / 1e3) for each in (1, 2, 3, 5)]
        with pytest.raises(Unmet, match=r"ms is 4; cudaEventElapsedTime gave 1, 2, 3 ms\."):
            TestTimedWhole().of("ms: 4", *elapsed)
        with pytest.raises(Unmet, match=r"gave no ms\."):
            TestTimedWhole().of("ms: 4")

    def test_another_name(self):
        record = replace(RIGHT, elapsed=[Elapsed(0, 2, 1.0, 1.008)])
        run = programs.ProgramRun("./program", ended("copy: 8", record=record), record)
        assert programs.timed(run, "double", "", "copy") == 8
