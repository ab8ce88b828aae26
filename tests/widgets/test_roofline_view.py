"""The explorer of the roofline: what it says of a rung follows from the records."""

import pytest

from labkit import records, widgets
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits
from labkit.records import frame_of
from labkit.widgets import roofline_view as view


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def test_first_line_is_the_rate_and_its_share_of_the_peak():
    text = view.roofline_view("float32", 4096, "tuned").text.splitlines()
    time = records.recorded("h200", "time", kernel="tuned", m=4096, dtype="float32").value.item()
    rate = 2 * 4096**3 / time / 1e9
    assert text[0] == (
        f"tuned, N = 4096, float32: {rate:.3g} TFLOP/s, {100 * rate / 66.9082:.0f} % of the theoretical peak "
        "of 66.9 (recorded: NVIDIA H200, 2026-11-22)."
    )


LOWEST = {
    ("naive", 4096): ("the bandwidth of the L1 caches: at most 13.4", "fewer bytes"),
    ("tiled", 4096): ("its instructions: at most 17.6", "more multiply-adds for each load"),
    ("tuned", 1024): ("its blocks: at most 16.2", "more blocks"),
    ("tuned", 4096): ("its instructions: at most 60.2", "wider loads"),
    ("tiled", 256): ("its instructions: at most 17.6", "so little work is over before the GPU is busy"),
}


@pytest.mark.parametrize("rung, n", LOWEST)
def test_second_line_is_the_lowest_limit_and_what_lifts_it(rung, n):
    limit, cure = LOWEST[rung, n]
    line = view.roofline_view("float32", n, rung).text.splitlines()[1]
    assert f"The lowest limit is {limit}" in line and cure in line


def test_the_blocks_are_counted():
    assert "Its 32 blocks go to 132 SMs, 100 of which have none: at most 16.2." in _text("tuned", 1024)
    assert "Its 512 blocks go to 132 SMs, up to 4 to one: at most 64.9." in _text("tuned", 4096)


def test_what_nsight_saw_stands_there_for_float32_alone():
    assert "the L1 cache with shared memory busiest, at 99 %" in _text("naive_uncoalesced", 4096)
    assert "the start of instructions busiest, at 89 %, and 12.5 % of an SM's places" in _text("tuned", 4096)
    too_many = "So many requests leave it no time"
    assert too_many in _text("tiled", 4096) and too_many not in _text("tuned", 4096)
    assert "Nsight" not in view.roofline_view("int32", 4096, "naive").text


def test_integers_have_their_own_unit_and_peak():
    view_ = view.roofline_view("int32", 4096, "tiled")
    assert "TOP/s" in view_.text and "of the measured peak of 33.4" in view_.text
    assert view_.figures[0].axes[0].get_ylabel() == "TOP/s"


def test_the_rung_is_marked_up_to_its_limit():
    (figure,) = view.roofline_view("float32", 1024, "tuned").figures
    line = next(
        line for line in figure.axes[0].lines if line.get_linestyle() == ":" and line.get_color() == "#D55E00"
    )
    assert list(line.get_ydata()) == [pytest.approx(12.56, abs=0.01), pytest.approx(16.22, abs=0.01)]
    assert "tuned reaches 19 % of the theoretical peak" in figure.axes[0].get_title("left")
    bold = [text.get_text() for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    assert [text.split()[0] for text in bold] == ["tuned"]


def test_where_instructions_were_not_counted_blocks_near_the_peak_are_no_advice():
    text = view.roofline_view("float64", 8192, "tiled").text
    assert "were not counted" in text and "more blocks" not in text


def test_a_cublas_above_the_peak_is_explained():
    above = "above this peak"
    assert above in view.roofline_view("float64", 8192, "tiled").text
    assert above not in _text("tuned", 4096)


def test_on_a_gpu_the_rung_is_timed_here(monkeypatch):
    def here(problem, rung):
        place = running.case(rung, problem).place() | {"quantity": "time", "unit": "ms", "value": 5.0}
        return frame_of([place | {"source": "measured here: NVIDIA TEST"}])

    monkeypatch.setattr(running, "here", here)
    rate = 2 * 2048**3 / 5.0 / 1e9
    assert f"Here: {rate:.3g} TFLOP/s" in _text("tiled", 2048)
    assert "(measured here: NVIDIA TEST)" in _text("tiled", 2048)


def test_the_explorer_offers_what_was_timed():
    shown = widgets.roofline()
    assert "tuned" in dict(shown.controls["rung"].options)
    shown.controls["dtype"].value = "float64"
    assert [label for label, _ in shown.controls["rung"].options] == ["naive", "tiled"]
    assert "float64" in shown.text.value and "alt=" in shown.pictures.value
    timed = limits.times_of(Matmul(4096, 4096, 4096, dtype="float64"))
    assert {"naive", "tiled"} <= set(timed.kernel)


def _text(rung, n):
    return view.roofline_view("float32", n, rung).text
