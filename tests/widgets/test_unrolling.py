"""PTX by line and by kind, against counts by hand and by the simulator; the explorer of unrolling."""

import re

import numpy as np
import pytest

from labkit import kernels, records, simt
from labkit.kernels.transpose.family import Transpose
from labkit.model import instructions
from labkit.model.instructions import ARITHMETIC, CONTROL, MOVES
from labkit.widgets import unrolling, unrolling_view
from labkit.widgets.unrolling_view import ELEMENTS, KEPT, UNROLLED, possible, reached, variant

SCALE = """
extern "C" __global__ void scale(float* x, float a, int n)
{
    int i = threadIdx.x;
    if (i < n)
        x[i] *= a;
}
"""


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def product(unroll):
    options = ("-DTILE=32", f"-DUNROLL={unroll}")
    return simt.RawModule(code=kernels.source("matmul/3_tiled_unrolled"), options=options).get_function(
        "matmul"
    )


class TestListing:
    def test_shows_the_instructions_of_a_line(self):
        kernel = simt.RawModule(code=SCALE).get_function("scale")
        lines = [line.split()[0] for line in instructions.listing(kernel, "x[i] *= a").splitlines()]
        assert lines == [
            "mul.wide.s32",
            "add.s64",
            "ld.global.f32",
            "mul.f32",
            "st.global.f32",
        ]

    def test_of_a_loop_has_its_label_and_what_jumps_there(self):
        first, *_, last = instructions.listing(product(1), "sum += A_tile", "for (int k = 0").splitlines()
        assert first.endswith(":") and last.endswith(f"bra {first[:-1]};")

    @pytest.mark.parametrize("unroll", [1, 4, 8])
    def test_a_step_has_three_instructions_and_the_loop_five(self, unroll):
        """Two loads and a multiply-add; two addresses and k go on, k is compared, and there is a jump."""
        text = instructions.listing(product(unroll), "sum += A_tile", "for (int k = 0")
        assert text.count(";") == 3 * unroll + 5
        assert text.count("fma.rn.f32") == unroll and text.count("ld.shared") == 2 * unroll

    def test_of_a_line_without_code_is_refused(self):
        kernel = simt.RawModule(code=SCALE).get_function("scale")
        with pytest.raises(ValueError, match="no source line with 'missing' has PTX"):
            instructions.listing(kernel, "missing")


def test_kinds_of_a_kernel_counted_by_hand():
    """x[i] *= a: one load, one store, one product; setp, bra and ret; the rest finds out where."""
    kernel = simt.RawModule(code=SCALE).get_function("scale")
    counts = instructions.per_thread(kernel)
    assert (counts[MOVES], counts[ARITHMETIC], counts[CONTROL]) == (2, 1, 3)
    assert sum(counts.values()) == len(re.findall(r"^\t(?!\.).*;$", kernel.module.ptx, re.M))


@pytest.mark.parametrize("loop", [UNROLLED, KEPT])
@pytest.mark.parametrize("elements", ELEMENTS)
def test_a_thread_runs_what_the_simulator_counts(loop, elements):
    chosen, problem = variant(loop, elements, 4), Transpose(64, 64)
    profile = chosen.kernel.profile(*problem.launch(32, 32 // elements), problem.args(np))
    warps = problem.rows * problem.cols / elements / 32
    assert sum(chosen.counts.values()) == profile.ptx["instructions"] / warps
    assert chosen.counts[MOVES] == 4 * elements and chosen.counts[ARITHMETIC] == 0


class TestLittlesLaw:
    def test_a_full_sm_with_four_bytes_a_thread(self):
        """132 SMs × 2048 threads × 4 bytes, read in 1100 ns and written too: 1966 bytes a nanosecond."""
        assert possible(2048 * 4, 1100) == pytest.approx(2 * 132 * 8192 / 1100)

    def test_ends_at_the_peak(self):
        assert possible(2**20, 200) == 4814

    def test_recorded_rates(self):
        rows = records.recorded("h200", "time", kernel="copy", rows=8192, dtype="float32")
        (copy,) = (point for point in reached() if (point.rung, point.size) == ("copy", 4))
        assert copy.kilobytes == 8
        assert copy.rate == pytest.approx(2 * 8192**2 * 4 / rows.value.item() / 1e6)

    @pytest.mark.parametrize("rung, threads", [("0_copy", 1024), ("3_padded", 1024), ("4_unrolled", 256)])
    def test_an_sm_is_full_of_the_recorded_rungs(self, rung, threads):
        kernel = simt.RawModule(code=kernels.source(f"transpose/{rung}")).get_function("transpose")
        held = unrolling_view.occupancy.occupancy(
            unrolling_view._GPU, threads, kernel.num_regs, kernel.shared_size_bytes
        )
        assert held.blocks * threads == unrolling_view.THREADS


class TestView:
    def test_states_its_numbers(self):
        text = unrolling_view.unrolling_view(UNROLLED, 4, 4, 1100).text
        assert "4 elements a thread, loops unrolled: 24.25 PTX instructions an element. 4 move it" in text
        assert "26 registers a thread: 100 % occupancy on H200" in text
        assert "2048 threads × 4 loads × 4 bytes are 32 KB" in text and "which is the memory's peak" in text

    def test_kept_loops_have_one_load_under_way(self):
        text = unrolling_view.unrolling_view(KEPT, 4, 4, 1100).text
        assert "2048 threads × 1 load × 4 bytes are 8 KB" in text and "at most 1,966 GB/s" in text

    def test_titles_say_what_the_panels_show(self):
        (figure,) = unrolling_view.unrolling_view(UNROLLED, 2, 8, 600).figures
        titles = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
        assert titles[0] == "thread (12, 4) of a block of 32×16 moves 2 of the 1024 elements of a tile"
        assert titles[1].startswith("2 a thread: 30.5 PTX instructions an element; 1 a thread: 44")
        assert titles[2].startswith("32 KB on their way for 600 ns: at most 4,814 GB/s")
        assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)
        assert "recorded: NVIDIA H200" in " ".join(text.get_text() for text in figure.texts)

    def test_every_control_changes_text_and_picture(self):
        shown = unrolling()
        for name, value in (("loop", KEPT), ("elements", 8), ("size", 8), ("wait", 1200)):
            shown.controls["elements"].value = 4
            before = shown.text.value, shown.pictures.value
            shown.controls[name].value = value
            assert shown.text.value != before[0] and shown.pictures.value != before[1], name
