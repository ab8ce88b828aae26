"""Views as plain functions, against the records and addresses worked out in NumPy; then the widgets."""

import gc
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from labkit import records, widgets
from labkit.core.errors import LaunchError
from labkit.widgets import explorer, here, report_sweeps
from labkit.widgets.block_sweep_view import block_sweep_view
from labkit.widgets.report_sweeps import sides_of, sizes_of
from labkit.widgets.thread_map_view import thread_map_view
from labkit.widgets.tile_walk_view import tile_walk_view
from labkit.widgets.tiling_view import tiling_view

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
    counted = here.count(kernel, CUBES[n], side)
    assert counted.per_multiply_add == pytest.approx(sectors(kernel, n, side), rel=1e-12)
    assert re.fullmatch(r"counted by the simulator in \d+ of \d+ blocks, scaled", counted.label)


def test_a_small_grid_is_counted_whole():
    assert here.count("tiled", CUBES[32], 16).label == "counted by the simulator"


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
    for name in ("naive", "tiled") if kernel == "both" else (kernel,):
        times = records.load(report, "time", kernel=name, m=size[0], n=size[1], k=size[2])
        at = times[times.block_x == side]
        if len(at):
            assert f"{name} with {side}×{side} blocks: {at.value.item():.4g} ms (report {report}" in view.text
        else:
            assert f"{name}: no time with {side}×{side} blocks" in view.text
        counted = here.count(name, size, side)
        assert f"{name} reads {counted.per_multiply_add:.5g} sectors per multiply-add" in view.text
    assert f"A block of {side}×{side} has {side * side} thread" in view.text
    (figure,) = view.figures
    time, loads = figure.axes
    assert (time.get_ylabel(), loads.get_ylabel()) == ("time (ms)", "global loads (sectors per multiply-add)")
    assert all(axes.get_title(loc="left") and axes.get_xlabel() for axes in figure.axes)
    assert "counted by the simulator" in figure_text(figure)


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
    assert [len(figure.axes) for figure in view.figures] == [1, 2]


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
    text = tile_walk_view(10, 14, 11, 4, 3, 2, 8).text
    assert "round 3 of 3: thread (x, y) brings A[8 + y, 8 + x]" in text and "B[8 + y, 12 + x]" in text
    assert "4 of the block's 16 threads" in text


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
    monkeypatch.setattr(here, "measure", lambda *_: timing)
    monkeypatch.setattr(here, "device", lambda: gpu)
    monkeypatch.setattr(report_sweeps, "device", lambda: gpu)
    view = block_sweep_view("int-matmul", "both", CUBES[256], 16)
    assert "tiled takes 0.125 ms (measured here: Test GPU)." in view.text
    assert len(view.figures[0].axes) == 2 and "measured here: Test GPU" in figure_text(view.figures[0])
    rows = here.rows(["tiled"], [CUBES[4096]], [1, 16], (CUBES[4096], 16), "float32")
    assert rows[rows.quantity == "time"].block_x.tolist() == [16]  # 1×1 takes seconds
    rows = here.rows(["tiled"], [CUBES[4096]], [1], (CUBES[4096], 1), "float32")
    assert rows.quantity.tolist() == ["time", here.LOADS]  # but is measured when it is chosen


# The widgets.


@pytest.mark.parametrize("name", widgets.EXPLORERS)
def test_every_control_is_labelled_and_redraws_on_release(name):
    assert name in dir(widgets)
    shown = getattr(widgets, name)()
    labels = [control.description for control in shown.controls.values()]
    assert all(labels) and len(set(labels)) == len(labels)
    sliders = [control for control in shown.controls.values() if hasattr(control, "continuous_update")]
    assert sliders and not any(control.continuous_update for control in sliders)
    assert 'role="status"' in shown.text.value and 'alt="' in shown.pictures.value


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
    (widgets.thread_map, "M", 25),
    (widgets.thread_map, "block_x", 9),
    (widgets.thread_map, "row", 7),
    (widgets.tile_walk, "k0", 4),
    (widgets.tile_walk, "tile", 5),
    (widgets.tile_walk, "block_y", 1),
    (widgets.cache, "version", "blocked"),
    (widgets.cache, "N", 33),
    (widgets.cache, "lines", 64),
    (widgets.cache, "ways", 2),
]


@pytest.mark.parametrize("make, name, value", MOVES)
def test_a_moved_control_changes_text_and_picture(make, name, value):
    shown = make()
    before = shown.text.value, shown.pictures.value
    shown.controls[name].value = value
    assert shown.text.value != before[0] and shown.pictures.value != before[1]
    assert shown.values[name] == value


def test_controls_offer_what_goes_together():
    shown = widgets.block_sweep()
    shown.controls["side"].value = 2
    shown.controls["report"].value = "cpu-gpu-matmul"
    assert [side for _, side in shown.controls["side"].options] == [4, 8, 16, 32]
    assert shown.values["side"] in (4, 8, 16, 32) and shown.values["size"] in sizes_of("cpu-gpu-matmul")
    walk = widgets.tile_walk()
    walk.controls["k0"].value = 8
    walk.controls["tile"].value = 16
    assert [k0 for _, k0 in walk.controls["k0"].options] == [0]
    assert walk.values["k0"] == 0 and "round 1 of 1" in walk.text.value
    mapped = widgets.thread_map()
    mapped.controls["row"].value = 19
    mapped.controls["M"].value = 5
    assert mapped.values["row"] == 4


def test_an_error_is_a_sentence_and_no_old_picture_stays():
    shown = widgets.thread_map()
    shown.controls["block_x"].value = 40
    shown.controls["block_y"].value = 32
    assert "1280 threads; a block holds at most 1024" in shown.text.value
    assert shown.pictures.value == ""
    shown.controls["block_y"].value = 25
    assert "1000 threads" in shown.text.value and "<img" in shown.pictures.value


def test_a_place_seen_before_is_not_drawn_again():
    shown = widgets.tile_walk()
    shown.controls["k0"].value = 4
    drawn = explorer.drawn.cache_info().misses
    shown.controls["k0"].value = 0
    shown.controls["k0"].value = 4
    assert explorer.drawn.cache_info().misses == drawn


def test_no_figure_is_left():
    shown = widgets.tile_walk()
    gc.collect()
    before = sum(isinstance(each, Figure) for each in gc.get_objects())
    for tile in range(1, 9):
        shown.controls["tile"].value = tile
    gc.collect()
    assert sum(isinstance(each, Figure) for each in gc.get_objects()) == before
    assert plt.get_fignums() == []


def figure_text(figure):
    return " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))
