"""The pictures show what the kernels' own index rules say, and name it in titles and axes."""

from xml.etree import ElementTree

import numpy as np
import pytest

import simt
from labkit.figures.pictures import product as pictures
from labkit.figures.pictures.spaces import memory_spaces
from labkit.figures.pictures.transpose import through_a_tile
from simt.common.errors import LaunchError

WHO = """extern "C" __global__ void who(int* out, int M, int N) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
    int x = threadIdx.x, y = threadIdx.y;
    int number[6] = {int(blockIdx.x), int(blockIdx.y), x, y, thread / 32, thread % 32};
    if (row < M && col < N)
        for (int i = 0; i < 6; ++i)
            out[(row * N + col) * 6 + i] = number[i];
}"""


@pytest.mark.parametrize("block", [(1, 1), (16, 8), (5, 7), (32, 32), (40, 3)])
def test_worker_is_the_thread_that_the_kernel_says(block):
    M, N = 19, 45
    out = np.full((M, N, 6), -1, np.int32)
    kernel = simt.RawModule(code=WHO).get_function("who")
    kernel(pictures.grid_of(M, N, block), block, (out, np.int32(M), np.int32(N)))
    for row, col in np.ndindex(M, N):
        who = pictures.worker(row, col, block)
        assert (*who.block, *who.thread, who.warp, who.lane) == tuple(out[row, col])


@pytest.mark.parametrize(
    "M, N, K, tile", [(10, 14, 11, 4), (8, 8, 8, 4), (5, 3, 9, 7), (1, 1, 1, 1), (3, 20, 6, 8)]
)
def test_tile_rounds_bring_each_element_that_the_block_needs_once(M, N, K, tile):
    grid = pictures.grid_of(M, N, (tile, tile))
    for by, bx in np.ndindex(grid[1], grid[0]):
        rounds = [pictures.tile_round(M, N, K, tile, k0, (bx, by)) for k0 in range(0, K, tile)]
        rows, cols = min(tile, M - by * tile), min(tile, N - bx * tile)
        assert [each.number for each in rounds] == list(range(1, rounds[0].rounds + 1))
        assert sum(each.inside["A"] for each in rounds) == rows * K
        assert sum(each.inside["B"] for each in rounds) == K * cols
        assert {each.inside["C"] for each in rounds} == {rows * cols}


def drawings():
    return [
        pictures.thread_map(33, 45, (16, 8), 9, 20),
        pictures.thread_map(1, 1, (1, 1)),
        pictures.thread_map(40, 20, (32, 32)),
        pictures.naive_reads(6, 9, 7, 2, 3),
        pictures.tile_walk(10, 14, 11, 4, 8, (3, 2)),
        pictures.tile_walk(5, 5, 5, 1, 4, (4, 4)),
        pictures.tile_walk(20, 20, 20, 16, 16, (1, 1)),
        through_a_tile(8, 12, 4, (2, 0), 1),
        through_a_tile(64, 32, 8, (3, 7), 0),
        memory_spaces(),
    ]


@pytest.mark.parametrize("picture", drawings(), ids=lambda picture: picture.alt.partition(".")[0])
def test_a_picture_says_what_it_shows_and_all_of_its_text_is_inside(picture):
    drawn = ElementTree.fromstring(str(picture))
    assert drawn.get("aria-label") == picture.alt and len(picture.alt) > 40
    texts = [each for each in drawn.iter() if each.tag.endswith("}text")]
    assert texts
    for text in texts:
        x, y, wide = float(text.get("x")), float(text.get("y")), 6.2 * len(text.text)
        starts = x - wide * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        if not text.get("transform"):
            assert starts >= -4 and starts + wide <= picture.width + 4 and 6 <= y <= picture.height - 4, (
                text.text
            )


def test_the_findings_count_right():
    map_ = pictures.thread_map(33, 45, (16, 8), 9, 20)
    assert "C[9, 20]: thread (4, 1) of block (1, 1), warp 0, lane 20" in map_.alt
    none = f"{48 * 40 - 33 * 45} of {48 * 40} threads have none"
    assert none in pictures.idle_threads(33, 45, (16, 8))
    assert "all 256 threads have an element" in pictures.idle_threads(16, 16, (16, 8))
    assert "round 3 of 3" in pictures.tile_walk(10, 14, 11, 4, 8, (3, 2)).alt
    padding = pictures.padding(pictures.tile_round(10, 14, 11, 4, 8, (3, 2)))
    of = "10 of the 16 elements of {}_tile"
    assert padding == f"{of.format('A')} and {of.format('B')} lie past the edge and are 0"
    assert pictures.padding(pictures.tile_round(10, 14, 11, 4, 4, (1, 1))) == "both tiles lie inside"
    reads = pictures.naive_reads(6, 9, 7).alt
    assert "each element of A 9 times (N), of B 6 times (M)" in reads


def test_each_thread_has_registers_each_block_shared_memory_and_all_have_global_memory():
    drawn = ElementTree.fromstring(str(memory_spaces())).iter()
    texts = [each.text for each in drawn if each.tag.endswith("}text")]
    blocks, threads = (sum(text.startswith(name) for text in texts) for name in ("block", "thread"))
    assert texts.count("registers") == texts.count("local memory") == threads == 4
    assert texts.count("shared memory") == blocks == 2
    assert sum(text.startswith("global memory") for text in texts) == 1


def test_shared_tiles_show_zeros_past_the_edge():
    drawn = ElementTree.fromstring(str(pictures.tile_walk(10, 14, 11, 4, 8, (3, 2)))).iter()
    texts = [each.text for each in drawn if each.tag.endswith("}text")]
    in_a, in_b = (texts[texts.index(f"{name}_tile in shared memory") + 2 :][:16] for name in "AB")
    assert in_a == ["8,8", "8,9", "8,10", "0", "9,8", "9,9", "9,10", "0"] + ["0"] * 8
    assert in_b[:4] == ["8,12", "8,13", "0", "0"]


def test_a_tile_of_the_transpose_takes_a_row_in_and_a_row_out():
    """Block (2, 0) of 4 x 4: in[1, 8 + x] to tile[1][x], and tile[x][1] to out[9, 0 + x]."""
    picture = through_a_tile(8, 12, 4, (2, 0), 1)
    assert "read in[1, 8 + x], written out[9, 0 + x]" in picture.alt
    cell = 500 / 24
    found = [each for each in ElementTree.fromstring(str(picture)).iter() if each.get("class") == "on"]
    at = [
        (each.text, (float(each.get("x")) - 40) / cell, (float(each.get("y")) - 112) / cell) for each in found
    ]
    gap = 48 / cell
    tile, out = 12 + gap, 16 + 2 * gap
    in_tile = {(str(x), tile + x + 0.5, 1.5) for x in range(4)} | {
        (str(x), tile + 1.5, x + 0.5) for x in range(4)
    }
    expected = [
        *((str(x), 8 + x + 0.5, 1.5) for x in range(4)),
        *in_tile,
        *((str(x), out + x + 0.5, 9.5) for x in range(4)),
    ]
    rounded = [sorted((text, round(x, 2), round(y, 2)) for text, x, y in each) for each in (at, expected)]
    assert rounded[0] == rounded[1]


@pytest.mark.parametrize(
    "draw, error, message",
    [
        (
            lambda: pictures.thread_map(20, 20, (33, 32)),
            LaunchError,
            "1056 threads; a block holds at most 1024",
        ),
        (lambda: pictures.thread_map(20, 20, (0, 4)), LaunchError, "no threads"),
        (lambda: pictures.thread_map(20, 20, (4, 4), 20, 0), ValueError, r"row 20 is outside C \(20, 20\)"),
        (lambda: pictures.thread_map(65, 20, (4, 4)), ValueError, "M=65 cannot be drawn.*1 to 64"),
        (lambda: pictures.naive_reads(4, 4, 4, 0, 9), ValueError, "col 9 is outside"),
        (lambda: pictures.tile_walk(8, 8, 8, 33, 0), LaunchError, "Choose TILE ≤ 32"),
        (lambda: pictures.tile_walk(8, 8, 8, 4, 3), ValueError, "k0=3 is no round of TILE=4, K=8"),
        (lambda: pictures.tile_walk(8, 8, 8, 4, 8), ValueError, "k0=8 is no round"),
        (lambda: through_a_tile(8, 12, 4, (3, 0), 1), ValueError, r"row 1 of block \(3, 0\) is no row of"),
        (lambda: pictures.tile_walk(8, 8, 8, 4, 0, (2, 0)), ValueError, "block x 2 is outside the grid"),
    ],
)
def test_what_cannot_be_drawn_says_why(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
