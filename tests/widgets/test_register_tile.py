"""Tiles in registers: the formulas against what real kernels do, the picture, the explorer."""

import numpy as np
import pytest

from labkit import kernels, widgets
from labkit.figures.pictures.register_tile import RegisterTile, register_tile_picture
from labkit.kernels.matmul.family import Matmul
from labkit.widgets.register_tile_view import register_tile_view

CASES = [
    ("matmul/4_register_column", RegisterTile(32, 32, 4, 4, 1)),
    ("matmul/5_register_tile", RegisterTile(32, 64, 4, 4, 2)),
]


def macros_of(name, tile):
    macros = {"TILE_M": tile.tile_m, "TILE_N": tile.tile_n, "TILE_K": tile.tile_k, "THREAD_M": tile.m}
    return macros | ({"THREAD_N": tile.n} if "register_tile" in name else {})


@pytest.mark.parametrize("name, tile", CASES)
def test_the_formulas_are_what_a_kernel_does(name, tile):
    problem, macros = Matmul(64, 128, 16), macros_of(name, tile)
    kernel, (grid, block) = kernels.load(name, **macros), kernels.launch(name, problem, **macros)
    lines = kernel.profile(grid, block, problem.args(np)).lines
    loads = lines[(lines.space == "shared") & (lines.op == "ld")].requests.sum()
    assert tile.loads == loads / (problem.flops / 2 / 32)
    assert tile.shared_bytes == kernel.shared_size_bytes
    assert tile.threads == block[0]
    assert tile.grid(problem.M, problem.N) == grid[:2]


def test_a_tile_of_eight_floats_along_k_moves_whole_sectors():
    """As counted for the defaults of 5_register_tile on an H200: 2 097 152 sectors for 1024^3
    multiply-adds.
    """
    assert RegisterTile(128, 128, 8, 8, 8).sectors == 2097152 / (1024**3 / 32)


def test_threads_cover_the_tile_once():
    tile = RegisterTile(32, 64, 8, 4, 8)
    count = np.zeros((32, 64), int)
    for thread in range(tile.threads):
        count[np.ix_(*tile.elements(thread))] += 1
    assert (count == 1).all()
    rows, cols = RegisterTile(128, 128, 8, 8, 8).elements(37)  # 16 threads in a row: y = 2, x = 5
    assert list(rows) == [2, 18, 34, 50, 66, 82, 98, 114]
    assert list(cols) == [5, 21, 37, 53, 69, 85, 101, 117]


@pytest.mark.parametrize(
    "tile, n, rounds",
    [
        ((128, 128), 1024, (1, 64)),
        ((128, 128), 4096, (8, 100)),
        ((128, 256), 512, (1, 8)),
        ((64, 64), 1025, (3, 25)),
    ],
)
def test_rounds_of_the_multiprocessors(tile, n, rounds):
    """64, 1024, 8 and 17 * 17 = 289 blocks on 132."""
    assert RegisterTile(*tile, 8, 8, 8).rounds(n, n) == rounds


@pytest.mark.parametrize(
    "sides, message",
    [
        ((100, 64, 8, 8, 8), "THREAD_M=8 does not divide TILE_M=100"),
        ((64, 64, 8, 1, 1), "4096 threads; a block holds at most 1024"),
        ((256, 256, 32, 16, 8), "65536 bytes of shared memory; a block has 49152"),
        ((128, 256, 8, 16, 16), "take 288 registers; a thread has at most 255"),
    ],
)
def test_what_no_gpu_takes_is_refused(sides, message):
    with pytest.raises(ValueError, match=message):
        RegisterTile(*sides)


def test_no_such_thread():
    with pytest.raises(ValueError, match=r"no thread 256\. Choose one from 0 to 255"):
        register_tile_picture(RegisterTile(128, 128, 8, 8, 8), 256, 1024)


def test_the_picture_marks_the_thread_and_its_warp():
    figure = register_tile_picture(RegisterTile(128, 128, 8, 8, 8), 37, 1024)
    of_a, of_b, of_c, multiprocessors = figure.axes
    assert [axes.get_title("left") for axes in (of_a, of_b, of_c)] == [
        "A_tile 128 × 8",
        "B_tile 8 × 128",
        "tile of C 128 × 128",
    ]
    assert [len(axes.lines[0].get_xdata()) for axes in (of_a, of_b, of_c)] == [8, 8, 64]
    coloured = [(axes.images[0].get_array() != 0xF2 / 255).any(axis=2).sum() for axes in (of_a, of_b, of_c)]
    assert coloured == [16, 128, 16 * 128]  # of a warp: 2 x 16 threads, 8 x 8 elements each
    assert multiprocessors.get_title("left").startswith("N = 1024: 64 of 132 multiprocessors")


def test_the_text_states_the_numbers():
    text = register_tile_view(128, 256, 8, 8, 16, 0, 512).text
    assert "Thread 0 of the block computes rows 0, 16, …, 112 and columns 0, 16, …, 240 of" in text
    assert "8 × 16 = 128 multiply-adds: 0.1875 loads" in text
    assert "12288 bytes of shared memory" in text
    assert "at least 152, of 255" in text and "at most 1 block." in text
    assert "2 × 4 = 8 blocks for the 132" in text and "6 % of the machine" in text


@pytest.mark.parametrize(
    "name, value",
    [
        *(("tile_m", 128), ("tile_n", 128), ("tile_k", 16)),
        *(("thread_m", 8), ("thread_n", 2), ("thread", 38), ("N", 2048)),
    ],
)
def test_a_moved_slider_changes_text_and_picture(name, value):
    shown = widgets.register_tile()
    before = shown.text.value, shown.pictures.value
    shown.controls[name].value = value
    assert shown.text.value != before[0]
    assert shown.pictures.value != before[1]


def test_a_thread_with_one_column():
    text = register_tile_view(64, 32, 8, 2, 1, 33, 512).text
    assert "Thread 33 of the block computes rows 1, 33 and column 1 of" in text


def test_threads_are_offered_that_the_block_has():
    shown = widgets.register_tile()
    shown.controls["thread"].value = 255
    shown.controls["thread_m"].value = 8
    assert [value for _, value in shown.controls["thread"].options] == list(range(128))
    assert "There" not in shown.text.value and shown.pictures.value
