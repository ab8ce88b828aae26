"""A student opens each notebook of the course, runs it, and moves every slider with the keyboard."""

import shutil
from pathlib import Path

import pytest
from lab import control, failing_on_purpose, move, open_notebook, result, run_all

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SLIDERS = {
    "00_start_here.ipynb": [],
    "01_cpu_baseline.ipynb": ["N", "cache lines", "ways", "matrix size", "block side"],
    "02_naive_cuda.ipynb": [
        *("rows M", "columns N", "block x", "block y", "row", "column"),
        *("matrix size", "block side"),
    ],
    "03_shared_memory_tiling.ipynb": [
        *("step", "TILE", "rows M", "columns N", "K", "block x", "block y"),
        *("matrix size", "tile"),
    ],
    "04_coalescing.ipynb": ["size (bytes)", "stride", "offset", "threads in x", "row length"],
    "05_bank_conflicts.ipynb": ["TILE", "padding", "size (bytes)", "warp"],
    "06_unrolling.ipynb": ["elements", "bytes each", "wait (ns)"],
    "07_roofline_and_occupancy.ipynb": ["matrix size", "rung", "block size", "registers", "shared KB"],
    "08_to_cublas.ipynb": ["TILE_M", "TILE_N", "TILE_K", "THREAD_M", "THREAD_N", "threadIdx.x", "M = N"],
    "09_when_kernels_break.ipynb": ["n", "warp"],
    "10_capstone.ipynb": ["TILE_M", "TILE_N", "TILE_K", "THREAD_M", "THREAD_N", "threadIdx.x", "M = N"],
}


def test_every_notebook_is_tried():
    assert sorted(SLIDERS) == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SLIDERS)
def test_notebook(page, server, folder, name):
    run_and_move(page, server, folder, name, SLIDERS[name][:2])


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in SLIDERS if SLIDERS[name][2:]])
def test_its_other_sliders(page, server, folder, name):
    run_and_move(page, server, folder, name, SLIDERS[name][2:])


def run_and_move(page, server, folder, name, labels):
    shutil.copy(NOTEBOOKS / name, folder)
    open_notebook(page, server, name)
    run_all(page, failing=failing_on_purpose(folder / name))
    for label in labels:
        before, value = result(page, label), control(page, label).input_value()
        seconds = move(page, label)
        after = result(page, label)
        print(f"{name}: {label} answered after {seconds:.2f} s")
        assert control(page, label).input_value() != value
        assert after.text != before.text
        assert after.pictures != before.pictures
