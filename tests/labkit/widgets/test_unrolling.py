"""PTX by line and by kind, against counts by hand and by the simulator; the explorer of unrolling."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import simt
from labkit import kernels, records
from labkit.kernels.transpose.family import Transpose
from labkit.model import instructions, predicted
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

    def test_the_latency_is_measured_and_nothing_reached_is_above_the_law(self):
        """Some 670 clocks at 1.98 GHz; each warp of the measured copy has 512 bytes in flight."""
        assert pytest.approx(670 / 1.98, rel=0.04) == unrolling_view.LATENCY
        assert unrolling_view.unrolling().now["wait"].value == unrolling_view.LATENCY
        rates = dict(unrolling_view.in_flight())
        assert rates[0.5] == pytest.approx(315, rel=0.05) and rates[32] == pytest.approx(3720, rel=0.05)
        points = [*rates.items(), *((point.kilobytes, point.rate) for point in reached())]
        assert all(rate < possible(1024 * kilobytes, unrolling_view.LATENCY) for kilobytes, rate in points)

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


class TestPredicted:
    def test_rates_are_those_of_the_shipped_times(self):
        found = unrolling_view.guessed("H200", 8)
        assert [each.elements for each in found] == list(ELEMENTS)
        row = predicted.times("H200", kernel="unrolled", dtype="float64", block_y=4).iloc[0]
        assert found[3].rate == pytest.approx(2 * 8192**2 * 8 / row.value / 1e6)
        assert found[3].low < found[3].rate < found[3].high

    def test_the_law_is_that_of_the_gpu(self):
        """An A100 has 108 SMs and 2039 GB/s; it holds 2048 threads of these per SM, too."""
        view = unrolling_view.unrolling_view(UNROLLED, 1, 4, 1100, "A100-SXM4-80GB")
        assert (
            f"108 SMs read and write at most {2 * 108 * 8192 / 1100:,.0f} GB/s, of the memory's 2,039"
            in view.text
        )
        assert "1 element per thread, predicted for an A100-SXM4-80GB" in view.text
        assert not any("recorded: NVIDIA" in (each.text or "") for each in elements_of(view, "text"))

    def test_kept_loops_have_no_prediction(self):
        assert "predicted" not in unrolling_view.unrolling_view(KEPT, 4, 4, 1100, "H200").text


class TestView:
    def test_states_its_numbers(self):
        text = unrolling_view.unrolling_view(UNROLLED, 4, 4, 1100).text
        assert "4 elements per thread, loops unrolled: 24.25 PTX instructions per element. 4 move it" in text
        assert "26 registers per thread: 100 % occupancy on H200" in text
        assert "2048 threads × 4 loads × 4 bytes are 32 KB" in text and "which is the memory's peak" in text

    def test_kept_loops_have_one_load_under_way(self):
        text = unrolling_view.unrolling_view(KEPT, 4, 4, 1100).text
        assert "2048 threads × 1 load × 4 bytes are 8 KB" in text and "at most 1,966 GB/s" in text

    def test_the_picture_says_what_its_panels_show(self):
        shown = unrolling_view.unrolling_view(UNROLLED, 2, 8, 600)
        assert shown.conclusion == (
            "2 elements per thread: 30.5 PTX instructions for each, "
            "and at most 4,814 GB/s with 32 KB in flight."
        )
        texts = [each.text for each in elements_of(shown, "text")]
        assert {"thread (12, 4) of 32×16", "moves 2 of 1024 elements", "30.5", "44"} <= set(texts)
        assert "at most 4,814, if a load takes 600 ns" in texts
        assert any("recorded: NVIDIA H200" in text for text in texts)
        assert shown.conclusion in shown.pictures[0].alt

    def test_a_thread_has_its_elements_one_per_strip(self):
        """A block of 32×8 passes over the tile four times: rows 2, 10, 18 and 26 of column 12."""
        shown = unrolling_view.unrolling_view(UNROLLED, 4, 4, 1100)
        own = [each for each in elements_of(shown, "rect") if each.get("fill") == "#D55E00"]
        places = [(float(each.get("x")), float(each.get("y"))) for each in own]
        rows = [(y - places[0][1]) / 4.75 + 2 for _, y in places]  # a row is 4.75 pixels high
        assert rows == pytest.approx([2, 10, 18, 26]) and len({x for x, _ in places}) == 1

    def test_bars_and_recorded_rates_choose_their_elements(self):
        shown = unrolling_view.unrolling_view(KEPT, 2, 4, 1100)
        buttons = {
            each.get("data-key"): json.loads(each.get("data-set"))
            for each in elements_of(shown, "g")
            if each.get("role") == "button"
        }
        bars = {f"bar {each}": {"elements": place} for place, each in enumerate((1, 2, 4, 8, 16))}
        assert buttons == bars | {
            f"{rung}, {size} bytes": {"loop": 0, "elements": elements, "size": place}
            for rung, elements in (("copy", 0), ("padded", 0), ("unrolled", 2))
            for place, size in enumerate((4, 8))
        }
        pressed = [
            each.get("data-key") for each in elements_of(shown, "g") if each.get("aria-pressed") == "true"
        ]
        assert pressed == ["bar 2"]

    def test_a_bar_is_as_high_as_its_instructions(self):
        """At 1 element per thread: 4 moves, 30 of index arithmetic and 10 guards and jumps."""
        shown = unrolling_view.unrolling_view(UNROLLED, 1, 4, 1100)
        bar = next(each for each in elements_of(shown, "g") if each.get("data-key") == "bar 1")
        heights = [
            float(each.get("height"))
            for each in bar
            if each.get("fill", "none") != "none" and each.get("height")
        ]
        assert heights == pytest.approx([each * sum(heights) / 44 for each in (4, 30, 10)], rel=1e-3)
        assert bar.get("data-tip") == (
            "1 element per thread: 44 for each (4 loads, stores, 30 index arithmetic, 10 guards, jumps)."
        )

    def test_every_control_changes_text_and_picture(self):
        shown = unrolling()
        for name, value in (("loop", KEPT), ("elements", 8), ("size", 8), ("wait", 1200)):
            before = shown.set(elements=4)
            after = shown.set(**{name: value})
            assert after.text != before.text and str(after.pictures[0]) != str(before.pictures[0]), name


def elements_of(shown, tag):
    return list(ElementTree.fromstring(str(shown.pictures[0])).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))
