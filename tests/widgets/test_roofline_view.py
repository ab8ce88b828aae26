"""The explorer of the roofline: what it says of a rung follows from the records."""

from xml.etree import ElementTree

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


def test_details_begin_with_the_rate_and_its_share_of_the_peak():
    text = view.roofline_view("float32", 4096, "tuned").details.splitlines()
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


CONCLUSIONS = {
    ("float32", "naive", 4096): (
        "naive reaches 6.27 of at most 13.4 TFLOP/s: the bandwidth of the L1 caches is its lowest limit."
    ),
    (
        "float32",
        "tuned",
        1024,
    ): "tuned reaches 12.6 of at most 16.2 TFLOP/s: its blocks are the lowest limit.",
    ("float32", "tiled", 256): (
        "tiled takes 15 µs: so little work is over before the GPU is busy."  # 2 * 256³ / 2.222e12 s
    ),
    ("int32", "tiled", 8192): (
        "tiled reaches 8.11 of at most 33.4 TOP/s, nearly the peak: its instructions, which may be the "
        "limit, were not counted."
    ),
}


@pytest.mark.parametrize("dtype, rung, n", CONCLUSIONS)
def test_the_conclusion_names_the_limit(dtype, rung, n):
    assert view.roofline_view(dtype, n, rung).conclusion == CONCLUSIONS[dtype, rung, n]


@pytest.mark.parametrize("rung, n", LOWEST)
def test_then_comes_the_lowest_limit_and_what_lifts_it(rung, n):
    limit, cure = LOWEST[rung, n]
    line = view.roofline_view("float32", n, rung).details.splitlines()[1]
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
    shown = view.roofline_view("int32", 4096, "tiled")
    assert "TOP/s" in shown.text and "of the measured peak of 33.4" in shown.text
    assert "TOP/s" in _texts(shown) and "TFLOP/s" not in _texts(shown)


def test_the_rung_is_marked_up_to_its_limit():
    """A dotted line and a bar: 16.2 is 32 of 132 SMs with 66.9; the rung has 12.56."""
    shown = view.roofline_view("float32", 1024, "tuned")
    (dotted,) = [each for each in _lines(shown) if each.get("stroke-dasharray") == "2 3"]
    (bar,) = [each for each in _lines(shown) if each.get("stroke-width") == "4"]
    assert float(dotted.get("y2")) == float(bar.get("y1")) < float(dotted.get("y1"))
    assert "blocks: 16.2" in _texts(shown) and "tuned 12.6" in _texts(shown)
    assert "tuned reaches 19 % of the theoretical peak" in shown.pictures[0].alt


def test_all_that_was_recorded_is_on_the_axes():
    across, down = view._WINDOW
    for dtype in view.DTYPES:
        for n in view.SIZES:
            scene = view._scene(Matmul(n, n, n, dtype=dtype))
            assert across.low < scene.most < across.high
            for rung in scene.rungs:
                assert 1.5 * down.low < rung.rate < down.high
            assert all(across.low < rung.intensity < across.high for rung in scene.ours)


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
    told = view.roofline_view("float32", 2048, "tiled", timed=True).text
    assert f"Here: {rate:.3g} TFLOP/s" in told and "(measured here: NVIDIA TEST)" in told
    assert "Here:" not in _text("tiled", 2048)  # a drag waits for no launch


def test_the_explorer_offers_what_was_timed():
    shown = widgets.roofline()
    assert "tuned" in dict(shown.now["rung"].choices)
    assert "float64" in shown.set(dtype="float64").text
    assert [label for label, _ in shown.now["rung"].choices] == ["naive", "tiled"]
    timed = limits.times_of(Matmul(4096, 4096, 4096, dtype="float64"))
    assert {"naive", "tiled"} <= set(timed.kernel)


def _text(rung, n):
    return view.roofline_view("float32", n, rung).text


def _lines(shown):
    return ElementTree.fromstring(str(shown.pictures[0])).iter("{http://www.w3.org/2000/svg}line")


def _texts(shown):
    root = ElementTree.fromstring(str(shown.pictures[0]))
    return [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
