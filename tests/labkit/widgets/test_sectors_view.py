"""Sectors of a warp's request: counted by hand, by a kernel in the simulator, and as pictures and words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import simt
from labkit.figures.pictures.sectors import COLUMNS, ROWS, Request, request_picture, transposed_warp
from labkit.figures.svg import SKY
from labkit.widgets import explorer, sectors, sectors_view
from simt.counters.sectors import touched_sectors

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
TYPES = {4: "float", 8: "double", 16: "float4"}
READ = """extern "C" __global__ void read({type}* in, {type}* out, int length, int stride, int offset)
{{
    int row = {row}, col = {col};
    out[threadIdx.y * blockDim.x + threadIdx.x] = in[row * length + col * stride + offset];
}}"""


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def counted(request):
    """Sectors that the simulator counts when a kernel makes the request."""
    y, x = ("threadIdx.y", "threadIdx.x") if request.x_counts == COLUMNS else ("threadIdx.x", "threadIdx.y")
    kernel = simt.RawModule(code=READ.format(type=TYPES[request.size], row=y, col=x)).get_function("read")
    floats = request.size // 4
    args = np.zeros(floats * (max(request.elements) + 1), "float32"), np.zeros(floats * 32, "float32")
    numbers = map(np.int32, (request.row_length, request.stride, request.offset))
    profile = kernel.profile(1, (request.threads_x, 32 // request.threads_x), (*args, *numbers))
    return profile.metrics[SECTORS]


REQUESTS = [
    (Request(), 4),
    (Request(offset=1), 5),
    (Request(offset=8), 4),
    (Request(stride=0), 1),
    (Request(stride=3), 12),  # 31 steps of 12 bytes: bytes 0 to 375
    (Request(stride=9), 32),
    (Request(x_counts=ROWS), 32),
    (Request(threads_x=16), 4),
    (Request(threads_x=16, row_length=513), 5),  # row 1 begins one element into a sector
    (Request(threads_x=16, x_counts=ROWS), 16),  # 16 rows, two neighbours in each
    (Request(threads_x=8, x_counts=ROWS), 8),
    (Request(threads_x=8, offset=3), 8),
    (Request(size=8), 8),
    (Request(size=8, x_counts=ROWS), 32),
    (Request(size=16), 16),
    (Request(size=16, stride=2), 32),
]


@pytest.mark.parametrize(("request_", "by_hand"), REQUESTS, ids=lambda value: repr(value))
def test_sectors_are_those_counted_by_hand_and_by_the_simulator(request_, by_hand):
    assert len(request_.sectors) == by_hand == counted(request_)


def test_touched_sectors_are_numbered_from_address_0():
    assert touched_sectors([64, 68, 0], 4) == [0, 2]
    assert touched_sectors([28, 60], 8) == [0, 1, 2]  # an access over a border touches both sides


def test_bytes_moved_and_used():
    same = Request(stride=0)
    assert (same.moved, same.used, same.ideal) == (32, 4, 1)
    wide = Request(size=16, offset=1)
    assert (wide.moved, wide.used, wide.ideal) == (17 * 32, 512, 16)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"x_counts": "both"}, "x counts columns or rows"),
        ({"size": 12}, "Choose 4, 8, 16"),
        ({"threads_x": 12}, "does not divide a warp"),
        ({"stride": -1}, "begin at 0"),
    ],
)
def test_a_request_that_no_warp_makes_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Request(**settings)


def parts(picture):
    """Return what can be pointed at, by its link; and all texts."""
    found = list(ElementTree.fromstring(str(picture)).iter())
    links = [each.get("data-link") for each in found if each.get("data-link")]
    return links, [each.text for each in found if each.tag.endswith("}text")]


def test_the_picture_has_a_row_a_sector_and_a_line_a_lane():
    request = Request(threads_x=16, stride=2, row_length=64)
    links, texts = parts(request_picture(request, 17))
    assert [link for link in links if link.startswith("lane") and " " not in link] == [
        f"lane{lane}" for lane in range(32)
    ]
    rows = [link for link in links if link.startswith("sector") and link.count(" ") == 4]
    assert len(rows) == 8 and "sector8 lane16 lane17 lane18 lane19" in rows
    assert {f"lane{lane} sector{8 * (lane // 16) + lane % 16 // 4}" for lane in range(32)} < set(links)
    assert "31: thread (15, 1)" in texts and "sector 8: byte 256" in texts
    assert "lane 17, thread (1, 1): element 66, byte 264, in sector 8" in texts


CELL = 6.8  # pixels: 540 for 32 + 48 cells


def cells(picture, look):
    """Return (x, y) of the corners of all cells with a look, in units of cells."""
    found = [each for each in ElementTree.fromstring(str(picture)).iter() if each.tag.endswith("}path")]
    drawn = "".join(each.get("d") for each in found if look in (each.get("fill"), each.get("class")))
    corners = np.array(re.findall(r"M([\d.]+) ([\d.]+)h", drawn), float)
    return np.rint((corners - [34, 92]) / CELL).astype(int).tolist()


def test_a_transposed_warp_reads_a_row_and_writes_a_column():
    picture = transposed_warp(32, 48, 3)
    texts = parts(picture)[1]
    assert "reads in (32, 48): 4 sectors" in texts and "writes out (48, 32): 32 sectors" in texts
    blue, beside = cells(picture, SKY), 48 + 46 / CELL
    assert blue[:32] == [[x, 3] for x in range(32)]
    assert blue[32:] == [[round(beside + 3), y] for y in range(32)]
    assert len(cells(picture, "mid")) == 32 * 7  # of each sector written, one element in eight is used
    texts = parts(transposed_warp(32, 48, 3, ROWS))[1]
    assert "reads in (32, 48): 32 sectors" in texts and "writes out (48, 32): 4 sectors" in texts


def test_a_warp_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="Choose 0 to 31"):
        transposed_warp(32, 48, 32)
    with pytest.raises(ValueError, match="rows=20 cannot be drawn"):
        transposed_warp(20, 48)


def text_of(*place):
    return sectors_view.sectors_view(*place).text.splitlines()


@pytest.mark.parametrize(
    ("place", "first", "last"),
    [
        (
            (COLUMNS, 4, 1, 0, 16, 64),
            "4 sectors and uses 100 % of what they move.\nThat is 4 × 32 = 128 bytes; the request uses 128",
            "No request",
        ),
        (
            (COLUMNS, 4, 1, 1, 32, 64),
            "5 sectors and uses 80 % of what they move.\nThat is 5 × 32 = 160 bytes",
            "With offset 0 it would touch 4 sectors",
        ),
        ((COLUMNS, 4, 4, 0, 32, 64), "uses 25 %", "With stride 1 it would touch 4 sectors"),
        ((ROWS, 4, 1, 0, 32, 64), "12.5 %", "With x counting columns it would touch 4 sectors"),
        ((COLUMNS, 4, 1, 0, 16, 65), "5 sectors", "With rows of 72, whole sectors it would touch 4"),
        (
            (COLUMNS, 4, 0, 0, 32, 64),
            "1 sector and uses 12.5 % of what they move.\nThat is 1 × 32 = 32 bytes; the request uses 4 of",
            "No request",
        ),
        ((COLUMNS, 8, 2, 1, 16, 65), "side by side", "With stride 1 it would touch"),
    ],
)
def test_the_text_says_the_figures_and_what_would_mend_them(place, first, last):
    lines = text_of(*place)
    assert first.lower() in "\n".join(lines[:2]).lower() and lines[-1].startswith(last)


def test_the_text_says_the_rule():
    assert (
        "row y and column x, the element with index y * 65 + x * 2 + 3."
        in text_of(COLUMNS, 4, 2, 3, 16, 65)[2]
    )
    assert (
        "row x and column y, the element with index x * 64 + y * 1 + 0. Lane 31 is thread (15, 1)."
        in text_of(ROWS, 4, 1, 0, 16, 64)[2]
    )


def test_each_control_changes_text_and_picture():
    shown = sectors()
    assert "100 %" in shown.current().text
    places = {"lane": 9, "x_counts": ROWS, "size": 8, "stride": 2, "offset": 1, "threads_x": 32}
    for name, value in {**places, "row_length": 513}.items():
        start, before = shown.values[name], shown.shown
        assert shown.set(**{name: value}).text
        for part in ("details", "pictures"):
            assert shown.shown[part] != before[part], name
        shown.set(**{name: start})


def test_an_error_is_shown_as_a_sentence():
    place = {"size": 4, "stride": 1, "offset": 0, "threads_x": 32, "row_length": 64}
    shown = explorer.drawn(sectors_view.sectors_view, "simt", x_counts="both", **place)
    assert "x counts columns or rows" in shown
