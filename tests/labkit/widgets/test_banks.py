"""The explorer of banks against profiles of real kernels and against counts by hand."""

from xml.etree import ElementTree

import numpy as np
import pytest

import simt
from labkit import widgets
from labkit.figures.pictures import banks as bank_pictures
from labkit.figures.pictures.banks import COLUMN, ROW, STRIDE, Request
from labkit.figures.svg import GREEN, RED
from labkit.widgets.banks_view import PADDINGS, TILES, banks_view

START = {
    "access": COLUMN,
    "swizzled": False,
    "tile": 32,
    "padding": 0,
    "size": 4,
    "warp": 0,
    "stride": 2,
}
# Stores rows of a tile and loads columns, as kernels/transpose does.
TURN = """
struct alignas(SIZE) T { float at[SIZE / 4]; };
extern "C" __global__ void turn(T* out)
{
    __shared__ T tile[TILE][TILE + PADDING];
    int x = threadIdx.x, y = threadIdx.y;
    T mine = {float(x)};
    tile[y][SWIZZLED ? x ^ y : x] = mine;
    __syncthreads();
    out[y * TILE + x] = tile[x][SWIZZLED ? y ^ x : y];
}"""
STRIDED = """
struct alignas(SIZE) T { float at[SIZE / 4]; };
extern "C" __global__ void strided(T* out)
{
    __shared__ T words[40 * 32];
    T mine = {1};
    words[STRIDE * threadIdx.x] = mine;
    __syncthreads();
    out[threadIdx.x] = words[STRIDE * threadIdx.x];
}"""
LOADS, STORES = (f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st"))


def profile(source, name, threads, **macros):
    options = [f"-D{macro}={value}" for macro, value in macros.items()]
    out = np.zeros((np.prod(threads), macros["SIZE"] // 4), np.float32)
    return simt.RawModule(code=source, options=options).get_function(name).profile(1, threads, (out,))


@pytest.mark.parametrize(
    "tile, size, padding, swizzled",
    [
        *((32, 4, padding, False) for padding in (0, 1, 2)),
        *((32, 8, padding, False) for padding in (0, 1)),
        *((32, 16, padding, False) for padding in (0, 1)),
        *((16, 4, padding, False) for padding in (1, 2)),
        *((32, size, 0, True) for size in bank_pictures.SIZES),
        *((8, size, padding, True) for size, padding in ((4, 0), (8, 0), (16, 3))),
    ],
)
def test_a_tile_is_counted_as_in_a_kernel(tile, size, padding, swizzled):
    counted = profile(
        TURN, "turn", (tile, tile), TILE=tile, SIZE=size, PADDING=padding, SWIZZLED=str(swizzled).lower()
    )
    for access, metric in ((ROW, STORES), (COLUMN, LOADS)):
        requests = [Request(access, tile, padding, swizzled, size, warp) for warp in range(tile * tile // 32)]
        assert sum(request.conflicts for request in requests) == counted.metrics[metric]
        passes = sum(request.wavefronts for request in requests)
        assert passes == counted.ptx[f"shared_passes_{'st' if access == ROW else 'ld'}"]


@pytest.mark.parametrize("size, stride", [(4, 2), (4, 32), (8, 33), (16, 3)])
def test_a_stride_is_counted_as_in_a_kernel(size, stride):
    counted = profile(STRIDED, "strided", (32, 1), SIZE=size, STRIDE=stride)
    request = Request(STRIDE, size=size, stride=stride)
    assert request.conflicts == counted.metrics[LOADS] == counted.metrics[STORES]


def test_the_worst_banks_of_the_parts_add_up_to_the_wavefronts():
    for request in (
        *(
            Request(COLUMN, tile, padding, size=size)
            for tile in TILES
            for padding in PADDINGS
            for size in (4, 8, 16)
        ),
        *(Request(STRIDE, size=size, stride=stride) for size in (4, 8, 16) for stride in range(34)),
    ):
        assert request.in_banks.max(axis=1).sum() == request.wavefronts


@pytest.mark.parametrize(
    "chosen, words",
    [
        ({}, "for 32 different words. It takes 32 wavefronts (passes over the banks) where 1 would do: 31"),
        ({}, "Bank 0 is asked for most, for 32 different words; banks in use: 1 of 32."),
        ({"warp": 5}, "Bank 5 is asked for most, for 32 different words"),
        ({}, "4,096 bytes; none of them is wasted"),
        ({"padding": 1}, "1 wavefront (passes over the banks), as few as possible: no bank conflict."),
        ({"padding": 1}, "the next begins 1 bank further on. The tile takes 4,224 bytes; 128 of them (3.0%)"),
        ({"padding": 2}, "1 bank conflict."),  # 17 rows on, the 34 words of a row are again in the first bank
        ({"padding": 8}, "7 bank conflicts."),  # 40 words per row: banks 0, 8, 16 and 24
        ({"swizzled": True}, "no bank conflict"),
        ({"size": 8}, "30 bank conflicts. With 8 bytes per lane it is served in half-warps"),
        ({"size": 8}, "Bank 0 is asked for most, for 16 different words by one half-warp, and 1 other bank"),
        ({"size": 16}, "28 bank conflicts. With 16 bytes per lane it is served in quarter-warps"),
        ({"access": ROW}, "no bank conflict"),
        ({"tile": 16, "padding": 1}, "1 bank conflict."),
        ({"tile": 16}, "in rows nor in columns: none of 0 to 8."),
        ({"tile": 16, "swizzled": True}, "swizzled, has no conflict in rows nor in columns: 0."),
        ({}, "has no conflict in rows nor in columns: 1, 3, 5, 7."),
        ({"access": STRIDE, "stride": 0}, "for 1 different word."),
        ({"access": STRIDE, "stride": 0}, "hands it to all of them at once (broadcast)"),
        ({"access": STRIDE, "stride": 32}, "From lane to lane it is 32 words: the same bank."),
        ({"access": STRIDE, "stride": 33}, "From lane to lane it is 33 words: 1 bank further on."),
    ],
)
def test_the_text_says_what_was_counted_by_hand(chosen, words):
    assert words in banks_view(**START | chosen).text


def words(picture):
    """Return each drawn word: its link, its fill, the lane written on it, if it is framed, if it is pale."""
    found = []
    for group in ElementTree.fromstring(str(picture)).iter("{http://www.w3.org/2000/svg}g"):
        if "pass" in (link := group.get("data-link")):
            cell, *others = group
            lanes = [each.text for each in others if each.tag.endswith("text")]
            framed = any(each.get("class") == "line" for each in others)
            found.append((link, cell.get("fill"), lanes, framed, bool(cell.get("fill-opacity"))))
    return found[::-1]


def test_the_picture_numbers_the_lanes_and_names_the_axes():
    (picture,) = banks_view(**START | {"padding": 1}).pictures
    assert [(link, lane) for link, _, lane, *_ in words(picture)] == [
        (f"bank{lane} pass1", [str(lane)]) for lane in range(32)
    ]
    texts = [each.text for each in ElementTree.fromstring(str(picture)).iter() if each.tag.endswith("}text")]
    assert {"bank (word % 32)", "words", "unused", "first pass"} < set(texts)
    assert picture.alt.startswith("1 wavefront, 0 bank conflicts: tile[x][y], a column of the tile")


def test_a_pass_stands_out_after_those_before_it():
    view = banks_view(**START, step=3)
    assert view.conclusion == "Pass 3 of 32: 1 bank delivers one word each, to lane 2."
    drawn = words(view.pictures[0])
    assert [link for link, *_ in drawn] == [f"bank0 pass{number}" for number in range(1, 33)]
    assert [fill for _, fill, *_ in drawn] == [GREEN] + 31 * [RED]
    assert [framed for *_, framed, _ in drawn].index(True) == 2 and sum(
        framed for *_, framed, _ in drawn
    ) == 1
    assert [pale for *_, pale in drawn] == [True, True] + 30 * [False]


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("stride", [0, 1, 2, 3, 7, 16, 32, 33])
def test_the_passes_deliver_all_words_one_from_each_bank(size, stride):
    request = Request(STRIDE, size=size, stride=stride)
    assert len(request.passes) == request.wavefronts
    for _, together in request.passes:
        assert len({word % 32 for word in together}) == len(together)
    assert set().union(*(together for _, together in request.passes)) == set().union(*request.parts)


def test_a_picture_of_many_words_says_what_it_leaves_out():
    picture = bank_pictures.banks(Request(COLUMN, 32, 0, size=16))
    assert "96 rows of words that no lane touches are left out" in str(picture)
    assert [lane for _, _, lanes, *_ in words(picture) for lane in lanes] == [str(lane) for lane in range(32)]
    broadcast = bank_pictures.banks(Request(STRIDE, stride=0))
    assert [lanes for _, _, lanes, *_ in words(broadcast)] == [["×32"]]


class TestWidget:
    def test_what_an_access_does_not_use_is_kept_for_the_next(self):
        shown = widgets.banks()
        shown.set(padding=3)
        shown.set(access=STRIDE)
        assert {name for name, control in shown.now.items() if control.why} == {
            *("tile", "padding", "swizzled", "warp"),
        }
        assert "From lane to lane" in shown.current().text
        shown.set(access=COLUMN)
        assert shown.values["padding"] == 3 and "35 words long" in shown.current().text
        assert {name for name, control in shown.now.items() if control.why} == {"stride"}

    def test_a_smaller_tile_has_fewer_warps_and_fewer_conflicts_fewer_steps(self):
        shown = widgets.banks()
        shown.set(step=32)
        shown.set(warp=31)
        shown.set(tile=8)
        assert shown.values["warp"] == 1
        assert "request of warp 1 is for 32 different words" in shown.current().text
        last = max(value for _, value in shown.now["step"].choices)
        assert shown.values["step"] == last == Request(COLUMN, 8, warp=1).wavefronts
