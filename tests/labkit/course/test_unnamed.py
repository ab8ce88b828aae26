"""The kernels without names: what they count, what is recorded of them, and what students get of them."""

import numpy as np
import pytest
from course_tables import released, solved

import simt
from labkit.course import mystery_kernels
from labkit.course.exercises.lab_09 import CAUSES, DIAGNOSES
from labkit.course.notebooks.release import solution
from labkit.course.predictions import QUESTIONS
from simt.common.occupancy import gpu

CASES = mystery_kernels.cases()
SLOW = "ABCDEF"
LIMITS = {
    **{"A": "L1 requests", "B": "special functions", "C": "latency", "D": "shared memory"},
    **{"E": "issue slots", "F": "issue slots", "G": "DRAM"},
}


def exercise(letter):
    return f"09.{SLOW.index(letter) + 9}"


@pytest.mark.parametrize("letter", SLOW)
def test_a_student_starts_from_the_kernel_that_is_to_be_diagnosed(letter):
    cell = released(exercise(letter)).partition("\n")[2]
    lines = [line for line in cell.splitlines() if line.strip() != "// your code here"]
    assert lines == CASES[letter].source.splitlines()


@pytest.mark.parametrize("letter", CASES)
def test_each_has_the_limit_and_the_time_that_an_h200_had(letter):
    predicted = CASES[letter].predicted
    assert predicted.limit == LIMITS[letter]
    assert 1e3 * predicted.seconds == pytest.approx(mystery_kernels.times().before[letter], rel=0.15)


@pytest.mark.parametrize("letter", SLOW)
def test_the_solved_notebooks_fix_gains_what_an_h200_recorded(letter):
    code = solution(solved(exercise(letter))).partition("\n")[2]
    fixed = simt.RawModule(code=code).get_function(letter.lower())
    found = fixed.predict(*CASES[letter].launch())
    assert 1e3 * found.seconds == pytest.approx(mystery_kernels.times().after[letter], rel=0.15)


class TestFigures:
    """The figures of 09.8, each read as the notebook says."""

    def figure(self, letter):
        cause, figure, margin = DIAGNOSES[letter]
        assert cause in CAUSES
        return pytest.approx(figure, rel=margin / 2)

    def test_sectors_per_request(self):
        lines = CASES["A"].profile.lines.query("space == 'global' and op == 'ld'")
        assert lines.sectors.sum() / lines.requests.sum() == self.figure("A")

    def test_pipe_xu_per_warp_and_round(self):
        rounds, n = CASES["B"].small
        counted = CASES["B"].profile.metrics["sm__inst_executed_pipe_xu.sum"]
        assert counted / (n / 32 * rounds) == self.figure("B")

    def test_instructions_of_each_kind_per_warp(self):
        """A round of kernel B is one multiply-add in double, with a conversion before and after it."""
        rounds, n = CASES["B"].small
        issued = CASES["B"].issued
        assert CASES["B"].warps == n / 32
        assert issued[["DFMA", "convert"]].tolist() == [rounds, 2 * rounds]

    def test_warps_per_scheduler(self):
        """By hand: a block of 8 warps on an SM, or 128 of them over 132 SMs."""
        (blocks,), (threads,), _ = CASES["C"].launch()
        assert threads / 32 / 4 == self.figure("C")
        average = blocks * threads / 32 / gpu("H200").multiprocessors / 4
        assert average == pytest.approx(DIAGNOSES["C"][1], rel=DIAGNOSES["C"][2])

    def test_conflicts_per_request(self):
        assert CASES["D"].profile.lines.conflicts_per_request.max() == self.figure("D")

    def test_instructions_per_warp_and_round(self):
        _, rounds, n = CASES["E"].small
        assert CASES["E"].profile.metrics["smsp__inst_executed.sum"] / (n / 32 * rounds) == self.figure("E")

    def test_active_threads(self):
        assert CASES["F"].profile.ptx["threads_per_instruction"] == self.figure("F")

    def test_bytes_per_element(self):
        """Two floats are read and one is written: so the launch has the bandwidth that the H200 has."""
        (n,) = CASES["G"].large
        rate = DIAGNOSES["G"][1] * n / (mystery_kernels.times().before["G"] / 1e3) / 1e9
        assert rate == pytest.approx(gpu("H200").dram_gb_s, rel=0.1)


def test_the_gains_are_those_of_the_record():
    asked = dict(zip(SLOW, "ijklmn", strict=True))
    gains = {letter: float(QUESTIONS[f"09.{id}"].inputs[0].right) for letter, id in asked.items()}
    assert gains["B"] == pytest.approx(0.147616 / 0.01584) and min(gains.values()) > 1.5


def test_a_table_compares_the_fixes_that_there_are():
    fixed = simt.RawModule(code=CASES["B"].source.replace("0.999 + 0.001", "0.999f + 0.001f"))

    def answer(id):
        if id != "09.10":
            raise simt.SimtError("there is no answer")
        return fixed.get_function("b")

    table = mystery_kernels.compared(answer)
    own = table["your fix, predicted"]
    assert own.notna().sum() == 1 and own["B"] == pytest.approx(0.0158, rel=0.1)
    assert np.isnan(table.after["G"]) and mystery_kernels.source() == "recorded: NVIDIA H200, 2026-11-24"


def test_says_its_launches():
    assert repr(CASES["D"]) == (
        "kernel D: tiles=65536 in 65536 blocks of 32×8 threads\n  profiled: tiles=4 in 4 blocks"
    )
