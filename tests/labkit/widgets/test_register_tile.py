"""Tiles in registers: the formulas against what real kernels do, the picture, the explorer."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from labkit import kernels, widgets
from labkit.figures.pictures.register_tile import RegisterTile, register_tile_picture
from labkit.figures.svg import ORANGE
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


def parts(picture):
    return list(ElementTree.fromstring(str(picture)).iter())


def test_the_picture_marks_the_thread_and_its_warp():
    picture = register_tile_picture(RegisterTile(128, 128, 8, 8, 8), 37, 1024)
    found = parts(picture)
    texts = [each.text for each in found if each.tag.endswith("}text")]
    assert {"A_tile 128 × 8", "B_tile 8 × 128", "tile of C 128 × 128"} < set(texts)
    assert {"M = N = 1024: 64 blocks", "64 of 132 SMs", "work in the only wave"} < set(texts)
    links = [each.get("data-link") for each in found if each.get("data-link")]
    rows, cols = range(2, 128, 16), range(5, 128, 16)  # of A, of B, and of C each pair of them
    assert set(links) == {
        *(f"row{row}" for row in rows),
        *(f"col{col}" for col in cols),
        *(f"row{row} col{col}" for row in rows for col in cols),
    }
    of_warp = [each.get("d") for each in found if each.get("fill") == ORANGE and each.get("d")]
    boxes = [re.findall(r"h([\d.]+)v([\d.]+)", path) for path in of_warp]
    cell, thin = 296 / 128, 7  # pixels
    sizes = [sum(float(width) * float(height) for width, height in each) for each in boxes]
    # 2 x 16 threads with 8 x 8 elements each: 16 whole rows of C
    assert sizes == pytest.approx([16 * 128 * cell**2, 16 * cell * thin, 128 * cell * thin], rel=0.001)


def test_pointing_at_any_element_chooses_its_thread():
    tile = RegisterTile(32, 64, 8, 4, 8)
    grids = [each for each in parts(register_tile_picture(tile, 0, 1024)) if each.get("data-cols")]
    assert len(grids) == 4 * 8
    cell = 296 / 64
    for row, col in ((0, 0), (9, 5), (31, 63), (17, 40)):
        x, y = 124 + (col + 0.5) * cell, 152 + (row + 0.5) * cell
        (at,) = [
            (int((x - left) / wide * 8), int((y - top) / high * 8))
            for left, top, wide, high in (
                [float(each.get(side)) for side in ("x", "y", "width", "height")] for each in grids
            )
            if left <= x < left + wide and top <= y < top + high
        ]
        rows, cols = tile.elements(at[1] * 8 + at[0])  # both are 8 threads wide and high
        assert row in rows and col in cols
    assert {(each.get("data-cols"), each.get("data-rows")) for each in grids} == {("8", "8")}
    assert [each.get("data-x") + each.get("data-y") for each in grids if each.get("tabindex")] == ["xy"]


@pytest.mark.parametrize("sides", [(32, 256, 32, 8, 16), (256, 32, 4, 16, 2), (64, 64, 8, 4, 4)])
def test_all_of_the_picture_lies_inside(sides):
    picture = register_tile_picture(RegisterTile(*sides), 9, 8192)
    assert picture.width <= 640 and picture.height <= 480
    for each in parts(picture):
        if each.tag.endswith("}text"):
            x, wide = float(each.get("x")), (7.3 if each.get("font-weight") else 6.2) * len(each.text)
            starts = x - wide * {"start": 0, "middle": 0.5, "end": 1}[each.get("text-anchor")]
            assert starts >= 0 and starts + wide <= 640 and 6 <= float(each.get("y")) <= picture.height - 4


def test_the_text_states_the_numbers():
    text = register_tile_view(128, 256, 8, 8, 16, 0, 0, 512).text
    assert "Thread 0 of the block computes rows 0, 16, …, 112 and columns 0, 16, …, 240 of" in text
    assert (
        "8 × 16 = 128 multiply-adds: 0.1875 loads" in text and "takes 0.1875 loads from shared memory" in text
    )
    assert "12288 bytes of shared memory" in text
    assert "at least 152, of 255" in text and "at most 1 block." in text
    assert "2 × 4 = 8 blocks for the 132" in text and "6 % of the machine" in text


@pytest.mark.parametrize(
    "name, value",
    [
        *(("tile_m", 128), ("tile_n", 128), ("tile_k", 16)),
        *(("thread_m", 8), ("thread_n", 2), ("x", 6), ("y", 3), ("N", 2048)),
    ],
)
def test_a_moved_slider_changes_text_and_picture(name, value):
    shown = widgets.register_tile()
    before, after = shown.current(), shown.set(**{name: value})
    assert after.text != before.text
    assert str(after.pictures[0]) != str(before.pictures[0])


def test_a_thread_with_one_column():
    text = register_tile_view(64, 32, 8, 2, 1, 1, 1, 512).text
    assert "Thread 33 of the block computes rows 1, 33 and column 1 of" in text


def test_threads_are_offered_that_the_block_has():
    shown = widgets.register_tile()
    shown.set(y=15)
    view = shown.set(thread_m=8)
    assert [value for _, value in shown.now["y"].choices] == list(range(8))
    assert [value for _, value in shown.now["x"].choices] == list(range(16))
    assert "Thread 117 of the block" in view.text  # y = 7, x = 5
