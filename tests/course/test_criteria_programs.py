"""Criteria for whole programs, with made-up runs: what one prints, how it ends, what a checked run finds."""

import pytest

from labkit.course.criteria import programs
from labkit.course.exercise import Unmet
from labkit.programs.program import Outcome

DOUBLE = {"of": lambda n: 2.0 * n, "draw": None, "hint": "<hint>"}
LAUNCHED = "     1  saxpy\n"


class Program:
    """A program whose runs are made up, by mode."""

    def __init__(self, **runs):
        self.runs, self.asked = runs, []

    def run(self, *words, mode, timeout, variables):
        self.asked.append((words, mode))
        assert timeout == programs.SECONDS and variables["LABKIT_DEVICE"] == "simt"
        run = self.runs[mode]
        return run(*words) if callable(run) else run


def refused(criterion, program):
    with pytest.raises(Unmet) as unmet:
        criterion.test(program)
    return str(unmet.value)


def printing(text, code=0, stderr="", **more):
    return Outcome(text, stderr, code, **more)


class TestPrints:
    asked = programs.prints("text", (3,), (10,), **DOUBLE)

    def test_every_case_is_tried(self):
        program = Program(run=lambda n: printing(f"sum: {2 * int(n)}\n"))
        self.asked.test(program)
        assert program.asked == [(("3",), "run"), (("10",), "run")]
        told = refused(self.asked, Program(run=printing("sum: 6\n")))
        assert told.startswith("./program 10: sum is 6; it should be 20.\n") and told.endswith("\n<hint>")

    @pytest.mark.parametrize(
        ("text", "is_met"),
        [
            ("sum:6", True),
            ("sum: 6.000006", True),
            ("sum: 6.000007", False),
            ("sum: 5.999993", False),
            ("sum: 0.6e1", True),
            ("sum: 1\nsum: 6", True),  # the last one
            ("sum: nan", False),
            ("checksum: 6", False),
            ("sum = 6", False),
            ("", False),
        ],
    )
    def test_the_number(self, text, is_met):
        criterion, program = programs.prints("text", (3,), **DOUBLE), Program(run=printing(text))
        assert criterion.test(program) is None if is_met else refused(criterion, program)

    @pytest.mark.parametrize(
        ("outcome", "words"),
        [
            (printing("sum: 6", code=2), "exit code is 2;"),
            (printing("sum: 6", code=139), "signal 11."),
            (printing("sum: 6", timed_out=True), "20 s"),
        ],
    )
    def test_it_must_come_to_its_end(self, outcome, words):
        assert words in refused(programs.prints("text", (3,), **DOUBLE), Program(run=outcome))

    def test_what_it_prints_is_shown_up_to_eight_lines(self):
        told = refused(self.asked, Program(run=printing("".join(f"line {n}\n" for n in range(20)))))
        assert "    line 7" in told and "line 8" not in told


class TestFails:
    asked = programs.fails("text", (0,), draw=None, message="invalid argument", hint="<hint>")

    def test_right(self):
        self.asked.test(Program(run=printing("", 1, "error: invalid argument\n")))

    @pytest.mark.parametrize(
        ("outcome", "words"),
        [
            (printing("sum: 0", 1, "invalid argument"), '"invalid argument"'),
            (printing("", 3, "invalid argument"), "exit code is 3;"),
            (printing("", 0, "invalid argument"), "exit code is 0;"),
            (printing("invalid argument", 1, "failed"), "stderr"),
        ],
    )
    def test_wrong(self, outcome, words):
        told = refused(self.asked, Program(run=outcome))
        assert words in told and told.endswith("\n<hint>")


class TestNoMistake:
    def asked(self, **more):
        return programs.no_mistake("text", (5,), draw=None, hints={"leak": "<leak>"}, **more)

    def found(self, monkeypatch, *mistakes, stderr="labkit check: done\n", profile=LAUNCHED):
        monkeypatch.setattr(Outcome, "mistakes", property(lambda self: list(mistakes)))
        return Program(check=printing("", 0, stderr), profile=printing("", 0, profile))

    def test_nothing_is_found(self, monkeypatch):
        program = self.found(monkeypatch)
        self.asked(kernel="saxpy").test(program)
        assert [mode for _, mode in program.asked] == ["check", "profile"]

    def test_the_first_is_told_with_its_hint(self, monkeypatch):
        found = ("leak", "20 bytes"), ("race", "x[0]")
        told = refused(self.asked(), self.found(monkeypatch, *found))
        assert "(mode check): 2 found," in told and told.endswith("    leak: 20 bytes\n<leak>")
        assert refused(self.asked(), self.found(monkeypatch, found[1])).endswith("    race: x[0]")

    def test_other_kinds_do_not_count(self, monkeypatch):
        program = self.found(monkeypatch, ("leak", "20 bytes"))
        self.asked(kinds=("race",)).test(program)
        assert "1 found" in refused(self.asked(kinds=("race", "leak")), program)

    def test_a_program_that_ends_before_it_is_checked(self, monkeypatch):
        assert "(mode check)" in refused(self.asked(), self.found(monkeypatch, stderr=""))

    @pytest.mark.parametrize("profile", ["", "     1  saxpy2\n", "saxpy\n"])
    def test_the_kernel_must_stay(self, monkeypatch, profile):
        assert "kernel saxpy " in refused(
            self.asked(kernel="saxpy"), self.found(monkeypatch, profile=profile)
        )


def test_a_launch_is_asked_for():
    criterion = programs.launches("text", "saxpy", (5,), "<hint>")
    criterion.test(Program(profile=printing("", 0, LAUNCHED)))
    assert refused(criterion, Program(profile=printing("", 0, "nothing"))).endswith("\n<hint>")
