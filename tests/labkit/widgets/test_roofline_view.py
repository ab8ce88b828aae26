"""The explorer of the roofline: what it says of a rung follows from the records."""

from xml.etree import ElementTree

import pytest

from labkit import records, widgets
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits
from labkit.model.roofline import DRAM, L1_BYTES, L1_REQUESTS, SHARED
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
        "of 66.9 (recorded: NVIDIA H200, 2026-11-22 to 2026-11-24)."
    )


LOWEST = {
    ("float32", "naive", 4096): "L1 requests are the lowest limit",
    ("float32", "naive_uncoalesced", 1024): "L1 requests are the lowest limit",
    ("float32", "tiled", 4096): "shared memory is the lowest limit",
    ("float32", "tuned", 4096): "issue slots are the lowest limit",
    ("int32", "naive", 8192): "L1 requests are the lowest limit",
    ("float64", "tiled", 4096): "shared memory is the lowest limit",
}


@pytest.mark.parametrize("dtype, rung, n", LOWEST)
def test_the_conclusion_names_the_limit(dtype, rung, n):
    shown = view.roofline_view(dtype, n, rung)
    row = limits.bounds(Matmul(n, n, n, dtype=dtype), rung).iloc[0]
    lowest = row[list(limits.NAMES)].min()
    unit = "TOP/s" if dtype == "int32" else "TFLOP/s"
    reaches = f"{rung} reaches {row.measured:.3g} of at most {lowest:.3g} {unit}: "
    assert shown.conclusion == f"{reaches}{LOWEST[dtype, rung, n]}."


@pytest.mark.parametrize("rung, cure", [("naive", "fewer requests"), ("tiled", "removing bank conflicts")])
def test_then_comes_what_lifts_the_limit(rung, cure):
    assert cure in view.roofline_view("float32", 4096, rung).details.splitlines()[1]


def test_of_a_short_launch_start_and_end_are_told():
    shown = view.roofline_view("float32", 256, "tiled")  # 2 * 256³ / 2.222e12 s
    assert shown.conclusion.startswith(
        "tiled takes 15 µs, and the start and end of the launch are a good part of that"
    )
    assert "a launch that does next to nothing takes 5 µs already" in shown.details


def test_the_prediction_has_its_interval_and_the_name_of_the_gpu():
    row = limits.bounds(Matmul(4096, 4096, 4096), "tuned").iloc[0]
    told = (
        f"Predicted for an H200: {row.predicted:.3g} TFLOP/s, in most cases {row.low:.3g} to {row.high:.3g}"
    )
    shown = view.roofline_view("float32", 4096, "tuned")
    assert told in shown.details
    assert "predicted for an H200 (shaded: " in str(shown.pictures[0])


def test_a_rate_outside_the_interval_is_told():
    row = view._bounds(Matmul(1024, 1024, 1024))["tuned"]
    assert "The recorded rate is lower: the model misses" in view._predicted({**row, "low": 1e3}, "TFLOP/s")
    assert "The recorded rate is higher" in view._predicted({**row, "low": 0, "high": 1e-3}, "TFLOP/s")


def test_the_blocks_are_counted():
    assert "Its 32 blocks go to 132 SMs, 100 of which have none" in _text("tuned", 1024)
    assert "Its 512 blocks go to 132 SMs, up to 4 to one" in _text("tuned", 4096)


def test_what_nsight_saw_stands_there_for_float32_alone():
    assert "the L1 cache with shared memory busiest, at 99 %" in _text("naive_uncoalesced", 4096)
    assert "the issue slots busiest, at 89 %, and 12.5 % of an SM's warp slots" in _text("tuned", 4096)
    assert "Nsight" not in view.roofline_view("int32", 4096, "naive").text


@pytest.mark.parametrize("level, roof", [(L1_REQUESTS, 33.4541), (L1_BYTES, 33.4541), (DRAM, 4.814)])
def test_each_level_has_its_own_bytes_and_roof(level, roof):
    scene = view._scene(Matmul(4096, 4096, 4096), level)
    assert scene.slope.highest == pytest.approx(roof)
    assert all(rung.rate < 1.001 * scene.roof_at(rung.intensity) for rung in scene.ours)


def test_requests_stand_further_left_than_bytes():
    """A request takes a clock, in which the cache could deliver 128 bytes; it is for 128 at most."""
    problem = Matmul(4096, 4096, 4096)
    requests, asked = (limits.intensity_at(level, problem) for level in (L1_REQUESTS, L1_BYTES))
    assert all(requests[rung] < 1.05 * asked[rung] for rung in ("naive", "naive_uncoalesced", "tiled"))
    # 2 requests per 32 multiply-adds, one line each; 33 lines if they are not coalesced
    assert requests["naive"] == pytest.approx(64 / 2 / 128, rel=0.15)
    assert requests["naive_uncoalesced"] == pytest.approx(64 / 33 / 128, rel=0.05)


def test_a_rung_without_shared_memory_has_no_place_there():
    shown = view.roofline_view("float32", 4096, "naive", SHARED)
    assert "naive does not use shared memory, so it has no place across." in shown.details
    assert "each element once" not in str(shown.pictures[0])


def test_integers_have_their_own_unit_and_peak():
    shown = view.roofline_view("int32", 4096, "tiled")
    assert "TOP/s" in shown.text and "of the measured peak of 33.4" in shown.text
    assert "TOP/s" in _texts(shown) and "TFLOP/s" not in _texts(shown)


def test_the_rung_is_marked_up_to_its_limit():
    """A dotted line up to a bar."""
    shown = view.roofline_view("float32", 1024, "register_tile")
    (dotted,) = [each for each in _lines(shown) if each.get("stroke-dasharray") == "2 3"]
    (bar,) = [each for each in _lines(shown) if each.get("stroke-width") == "4"]
    assert float(dotted.get("y2")) == float(bar.get("y1")) < float(dotted.get("y1"))
    row = limits.bounds(Matmul(1024, 1024, 1024), "register_tile").iloc[0][list(limits.NAMES)]
    assert f"{row.astype(float).idxmin()}: {row.min():.3g}" in _texts(shown)
    assert "register_tile 8.15" in _texts(shown)  # 2 * 1024³ / 0.2636 ms
    assert "register_tile reaches 12 % of the theoretical peak" in shown.pictures[0].alt


def test_all_that_was_recorded_is_on_the_axes():
    across, down = view._WINDOW
    for dtype in view.DTYPES:
        for n in view.SIZES:
            for level in view.LEVELS:
                scene = view._scene(Matmul(n, n, n, dtype=dtype), level)
                assert across.low < scene.most < across.high
                for rung in scene.rungs:
                    assert 1.5 * down.low < rung.rate < down.high
                assert all(across.low < rung.intensity < across.high for rung in scene.ours)


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
