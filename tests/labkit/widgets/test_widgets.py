"""Views as plain functions, against the records and addresses worked out in NumPy; then the widgets."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from labkit import records, widgets
from labkit.figures.pictures.product import LOAD, MULTIPLY
from labkit.model import predicted
from labkit.widgets import explorer, local_counts, report_sweeps
from labkit.widgets import tiling_view as tiling_module
from labkit.widgets.block_sweep_view import block_sweep_view
from labkit.widgets.report_sweeps import sides_of, sizes_of
from labkit.widgets.thread_map_view import thread_map_view
from labkit.widgets.tile_walk_view import tile_walk_view
from labkit.widgets.tiling_view import tiling_view
from labkit.widgets.unrolling_view import UNROLLED, unrolling_view
from simt.common.errors import LaunchError

CUBES = {n: (n, n, n) for n in (32, 256, 512, 1024, 2048, 4096, 8192)}


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def sectors(kernel, n, side):
    """Sectors per multiply-add of one block of a square product, in 4-byte elements, from the address rules.

    All blocks are alike where `side` divides n and rows begin at whole sectors.
    """
    y, x = np.divmod(np.arange(side * side), side)
    warps = np.array_split(np.arange(side * side), range(32, side * side, 32))
    if kernel == "naive":
        rounds = [(n * y + k, n * k + x) for k in range(8)]  # k = 8 meets the same sectors shifted by one
        work = side * side * 8
    else:
        rounds, work = [(n * y + x + k0, n * (k0 + y) + x) for k0 in range(0, 8 * side, side)], side**3 * 8
    touched = sum(len(np.unique(each[warp] * 4 // 32)) for pair in rounds for each in pair for warp in warps)
    return touched / work


@pytest.mark.parametrize("kernel", ["naive", "tiled"])
@pytest.mark.parametrize("side", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("n", [256, 1024])
def test_counts_follow_the_address_rules(kernel, side, n):
    counted = local_counts.count(kernel, CUBES[n], side)
    assert counted.per_multiply_add == pytest.approx(sectors(kernel, n, side), rel=1e-12)
    assert re.fullmatch(r"counted by the simulator in \d+ of \d+ blocks, scaled", counted.label)


def test_a_small_grid_is_counted_whole():
    assert local_counts.count("tiled", CUBES[32], 16).label == "counted by the simulator"


SWEEPS = [
    (report, kernel, size, side)
    for report in ("int-matmul", "cpu-gpu-matmul", "tiled-matmul-ko")
    for kernel in ("naive", "tiled", "both")
    for size in sizes_of(report)[:2]
    for side in sides_of(report)[::3]
    if not (kernel == "naive" and report == "tiled-matmul-ko" and side != 16)
]


@pytest.mark.parametrize("report, kernel, size, side", SWEEPS)
def test_block_sweep_states_the_records_and_the_counts(report, kernel, size, side):
    view = block_sweep_view(report, kernel, size, side)
    names = ("naive", "tiled") if kernel == "both" else (kernel,)
    for name in names:
        times = records.load(report, "time", kernel=name, m=size[0], n=size[1], k=size[2])
        at = times[times.block_x == side]
        if len(at):
            assert f"{name} with {side}×{side} blocks: {at.value.item():.4g} ms (report {report}" in view.text
        else:
            assert f"{name}: no time with {side}×{side} blocks" in view.text
        counted = local_counts.count(name, size, side)
        assert f"{name} reads {counted.per_multiply_add:.5g} sectors per multiply-add" in view.text
    assert f"A block of {side}×{side} has {side * side} thread" in view.text
    written = texts(view.pictures[0])
    assert {"time (ms)", "global loads (sectors per", "multiply-add)", "block side (threads)"} <= set(written)
    assert any("counted by the simulator" in text for text in written)
    tips = [
        each.get("data-tip")
        for each in ElementTree.fromstring(str(view.pictures[0])).iter()
        if each.get("data-set")
    ]
    assert len(tips) == 2 * len(sides_of(report))
    assert any(
        f"{name}: {local_counts.count(name, size, side).per_multiply_add:.4g} sectors"
        in tips[sides_of(report).index(side) + len(sides_of(report))]
        for name in names
    )


@pytest.mark.parametrize("report, tile", [("int-matmul", 2), ("int-matmul", 16), ("cpu-gpu-matmul", 32)])
def test_tiling_states_speedup_and_traffic(report, tile):
    size = CUBES[512]
    view = tiling_view(report, size, tile)
    times = (
        records.load(report, "time", kernel=["naive", "tiled"], n=512, block_x=tile).set_index("kernel").value
    )
    assert f"{times['naive'] / times['tiled']:.3g}× as fast" in view.text
    assert (
        f"reads {sectors('naive', 512, tile) / sectors('tiled', 512, tile):.3g}× fewer sectors" in view.text
    )
    assert f"{8 * tile * tile} bytes of shared memory" in view.text
    written = texts(view.pictures[0])
    assert {"time (ms)", "time of naive / of", "global loads of", "tiled"} <= set(written)


def test_tiling_with_a_tile_of_one_gains_nothing():
    assert "tiled reads as much as naive" in tiling_view("int-matmul", CUBES[256], 1).text


def test_tiling_takes_the_only_block_of_a_kernel_and_says_so():
    text = tiling_view("tiled-matmul-ko", CUBES[256], 32).text
    assert "naive with 16×16 blocks takes 0.623 ms, tiled with TILE = 32 takes 0.036 ms" in text
    assert "Probably a misprint" in text
    text = tiling_view("cpu-gpu-matmul", CUBES[8192], 8).text
    assert "N = 8192: the report has no time of naive" in text


def test_thread_map_and_tile_walk_say_the_index_rules():
    text = thread_map_view(20, 30, 16, 8, 9, 20).text
    assert "blockIdx.y * blockDim.y + threadIdx.y = 1 * 8 + 1 = 9" in text
    assert "= 1 * 16 + 4 = 20" in text and "lane 20 of warp 0" in text
    assert (
        "A block of 3×3 has 9 threads in 1 warp of 32 lanes, 23 lanes of them idle."
        in thread_map_view(20, 30, 3, 3, 0, 0).text
    )
    load, multiply = (tile_walk_view(10, 14, 11, 4, 3, 2, (8, part)).text for part in (LOAD, MULTIPLY))
    assert "Round 3 of 3: thread (x, y) loads A[8 + y, 8 + x] and B[8 + y, 12 + x]." in load
    assert "each thread adds 4 products" in multiply
    assert "4 of the block's 16 threads have an element of C" in load


@pytest.mark.parametrize(
    "view, values, error, message",
    [
        (
            block_sweep_view,
            ("int-matmul", "both", CUBES[256], 33),
            LaunchError,
            "1089 threads.*TILE ≤ 32",
        ),
        (block_sweep_view, ("int-matmul", "fast", CUBES[256], 16), ValueError, "naive, tiled or both"),
        (block_sweep_view, ("nobody", "both", CUBES[256], 16), ValueError, "int-matmul"),
        (block_sweep_view, ("int-matmul", "both", (7, 7, 7), 16), ValueError, "m is one of: 256"),
        (tiling_view, ("int-matmul", CUBES[256], 33), LaunchError, "TILE ≤ 32"),
        (
            tiling_view,
            ("cpu-gpu-matmul", CUBES[512], 2),
            ValueError,
            "no time with TILE=2.*4, 8, 16, 32",
        ),
    ],
)
def test_a_view_says_what_does_not_go_together(view, values, error, message):
    with pytest.raises(error, match=message):
        view(*values)


# On a GPU, a stand-in for its times: the panels and the text take them in.


def test_on_a_gpu_measured_times_stand_beside_the_reports(monkeypatch):
    timing = SimpleNamespace(median=0.125, source="measured here: Test GPU")
    gpu = SimpleNamespace(kind="gpu")
    monkeypatch.setattr(local_counts, "measure", lambda *_: timing)
    monkeypatch.setattr(local_counts, "device", lambda: gpu)
    monkeypatch.setattr(report_sweeps, "device", lambda: gpu)
    view = block_sweep_view("int-matmul", "both", CUBES[256], 16)
    assert "tiled takes 0.125 ms (measured here: Test GPU)." in view.text
    assert any("measured here: Test GPU" in text for text in texts(view.pictures[0]))
    rows = local_counts.rows(["tiled"], [CUBES[4096]], [1, 16], (CUBES[4096], 16), "float32")
    assert rows[rows.quantity == "time"].block_x.tolist() == [16]  # 1×1 takes seconds
    rows = local_counts.rows(["tiled"], [CUBES[4096]], [1], (CUBES[4096], 1), "float32")
    assert rows.quantity.tolist() == ["time", local_counts.LOADS]  # but is measured when it is chosen


# Predicted times.

VIEWS = [
    (block_sweep_view, ("int-matmul", "both", CUBES[1024], 16)),
    (tiling_view, ("int-matmul", CUBES[1024], 16)),
    (unrolling_view, (UNROLLED, 4, 4, 1100)),
]


@pytest.mark.parametrize("view, values", VIEWS)
@pytest.mark.parametrize("gpu, name", [("H200", "an H200"), ("A100-SXM4-80GB", "an A100-SXM4-80GB")])
def test_a_predicted_curve_is_dashed_and_says_for_which_gpu(view, values, gpu, name):
    without, shown = view(*values), view(*values, gpu)
    label = re.compile(rf"predicted for {name}, ± \d+ %")
    assert any(label.search(text) for text in texts(shown.pictures[0]) if text)
    assert not any("predicted" in text for text in texts(without.pictures[0]) if text)
    assert f"redicted for {name}" in shown.text and "redicted" not in without.text
    assert str(shown.pictures[0]).count("stroke-dasharray") > str(without.pictures[0]).count(
        "stroke-dasharray"
    )


@pytest.mark.parametrize("report", report_sweeps.REPORTS)
@pytest.mark.parametrize("gpu", ["", "H200", "A100-SXM4-80GB"])
def test_a_legend_of_tiling_stands_between_title_and_lines(report, gpu):
    size = report_sweeps.sizes_of(report)[0]
    for plotted in tiling_module._plots(report, 16, size, gpu):
        (axes,) = plotted.plot.axes
        title, inside = axes._left_title.get_window_extent(), axes.get_window_extent()
        assert "\n" not in axes.get_title(loc="left") and title.x1 < plotted.plot.bbox.x1
        assert title.y1 < plotted.plot.bbox.y1
        if legend := axes.get_legend():
            box = legend.get_window_extent()
            assert inside.y1 <= box.y0 and box.y1 <= title.y0 and box.x1 <= plotted.plot.bbox.x1


def test_the_text_has_the_shipped_prediction_with_its_ends():
    text = block_sweep_view("int-matmul", "naive", CUBES[1024], 16, "H200").text
    row = predicted.times("H200", kernel="naive", dtype="int32", n=1024, block_x=16).iloc[0]
    ends = f"{row.low:.3g} to {row.high:.3g}; lowest limit: {row.limit}"
    assert f"Predicted for an H200, with 16×16 blocks: naive {row.value:.3g} ms ({ends})." in text


@pytest.mark.parametrize("make", [widgets.block_sweep, widgets.tiling, widgets.unrolling])
def test_on_a_gpu_nothing_is_predicted_unless_asked(make, monkeypatch):
    assert make().values["gpu"] == "H200"
    choices = [value for _, value in make().controls["gpu"].choices]
    assert choices == [*predicted.gpus(), ""]
    monkeypatch.setattr(report_sweeps, "device", lambda: SimpleNamespace(kind="gpu"))
    assert report_sweeps.predicted_menu().value == ""


# The widgets.


@pytest.mark.parametrize("name", widgets.EXPLORERS)
def test_every_control_is_labelled_and_every_picture_has_words(name):
    assert name in dir(widgets)
    shown = getattr(widgets, name)()
    labels = [control.label for control in shown.controls.values()]
    assert all(labels) and len(set(labels)) == len(labels)
    assert shown.current().conclusion and all(picture.alt for picture in shown.current().pictures)
    bundle = shown._repr_mimebundle_()[0]
    assert bundle["image/svg+xml"].startswith("<svg") and shown.current().conclusion in bundle["text/plain"]


MOVES = [
    (widgets.cpu_ladder, "rung", "cpu_packed"),
    (widgets.cpu_ladder, "n", 128),
    (widgets.cpu_ladder, "block", 16),
    (widgets.block_sweep, "side", 8),
    (widgets.block_sweep, "size", CUBES[512]),
    (widgets.block_sweep, "kernel", "naive"),
    (widgets.block_sweep, "report", "cpu-gpu-matmul"),
    (widgets.tiling, "tile", 8),
    (widgets.tiling, "size", CUBES[512]),
    (widgets.tiling, "report", "tiled-matmul-ko"),
    (widgets.tiling, "gpu", ""),
    (widgets.block_sweep, "gpu", "H100 SXM5"),
    (widgets.unrolling, "gpu", "A100-SXM4-80GB"),
    (widgets.thread_map, "M", 25),
    (widgets.thread_map, "block_x", 9),
    (widgets.thread_map, "row", 7),
    (widgets.tile_walk, "step", (4, LOAD)),
    (widgets.tile_walk, "tile", 5),
    (widgets.tile_walk, "block_y", 1),
    (widgets.roofline, "rung", "naive"),
    (widgets.roofline, "n", 1024),
    (widgets.occupancy, "threads", 512),
    (widgets.occupancy, "gpu", "T4"),
    (widgets.unrolling, "elements", 4),
    (widgets.unrolling, "wait", 1200),
    (widgets.cache, "version", "blocked"),
    (widgets.cache, "N", 33),
    (widgets.cache, "lines", 64),
    (widgets.cache, "ways", 2),
]


@pytest.mark.parametrize("make, name, value", MOVES)
def test_a_moved_control_changes_text_and_picture(make, name, value):
    shown = make()
    before = shown.shown
    view = shown.set(**{name: value})
    assert view.text and shown.shown["pictures"] != before["pictures"]
    assert (shown.shown["conclusion"], shown.shown["details"]) != (before["conclusion"], before["details"])
    assert shown.values[name] == value


def test_the_page_asks_by_positions_and_gets_the_answer_to_its_question():
    shown = widgets.thread_map()
    positions = {"row": 3, "col": 5, "M": 19, "N": 29, "block_x": 15, "block_y": 7}
    shown.asked = {"id": 7, "positions": positions}
    assert shown.shown["id"] == 7 and shown.values == {
        "row": 3,
        "col": 5,
        "M": 20,
        "N": 30,
        "block_x": 16,
        "block_y": 8,
    }
    assert "C[3, 5] belongs to thread (5, 3)" in shown.shown["conclusion"]
    shown.asked = {"id": 8, "positions": positions | {"row": 400}}  # more than there are
    assert shown.values["row"] == 19


def test_controls_offer_what_goes_together():
    shown = widgets.block_sweep()
    shown.set(side=2)
    shown.set(report="cpu-gpu-matmul")
    assert [side for _, side in shown.now["side"].choices] == [4, 8, 16, 32]
    assert shown.values["side"] in (4, 8, 16, 32) and shown.values["size"] in sizes_of("cpu-gpu-matmul")
    mapped = widgets.thread_map()
    mapped.set(row=19)
    mapped.set(M=5)
    assert mapped.values["row"] == 4
    with pytest.raises(ValueError, match=r"row has no position 19\. Choose one of: 0, 1, 2, 3, 4\."):
        mapped.set(row=19)


def test_an_error_is_a_sentence_and_no_old_picture_stays():
    shown = widgets.thread_map()
    shown.set(block_x=40)
    assert "1280 threads; a block holds at most 1024" in shown.set(block_y=32)
    assert shown.shown["pictures"] == [] and "1280 threads" in shown.shown["error"]
    assert "1000 threads" in shown.set(block_y=25).text and shown.shown["pictures"]


def test_a_place_seen_before_is_not_drawn_again():
    shown = widgets.tile_walk()
    shown.set(M=11)
    drawn = explorer.drawn.cache_info().misses
    shown.set(M=10)
    shown.set(M=11)
    assert explorer.drawn.cache_info().misses == drawn


def texts(picture):
    """Return the texts that a picture shows."""
    return [each.text for each in ElementTree.fromstring(str(picture)).iter() if each.tag.endswith("}text")]
