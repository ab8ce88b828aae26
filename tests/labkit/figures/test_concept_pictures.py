"""The pictures of waiting, layouts, waves, tiles and partial results show what is counted by hand here."""

import heapq
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from titles import titles

from labkit.figures import pictures
from labkit.figures.pictures import block_waves, layouts, levels, partial_results, timelines
from labkit.figures.svg import BLUE, GREEN, ORANGE, PURPLE

KERNEL = Path(__file__).parents[3] / "labkit" / "kernels" / "matmul" / "8_warp_tile.cu"
CONCEPTS = (
    *("barrier_wait", "double_buffer", "full_empty", "last_block"),
    *("merged_softmax", "struct_layouts", "tile_levels", "waves"),
)
OTHERS = (
    lambda: pictures.barrier_wait((6, 2), 3),
    lambda: pictures.barrier_wait((5, 5)),
    lambda: pictures.double_buffer(6, 4, 2),
    lambda: pictures.full_empty(6, 6, 2),
    lambda: pictures.merged_softmax((-1.5, 2.25), (0, 0.5, 3, -2)),
    lambda: pictures.tile_levels(0, 31),
    lambda: pictures.waves(4, 1, 5),
    lambda: pictures.waves(2, 2, 8),
    lambda: pictures.waves(8, 4, 384),
)


def elements(picture, tag):
    """Return the attributes of the elements of a kind, each with its text."""
    found = ElementTree.fromstring(str(picture)).iter()
    return [{**each.attrib, "text": each.text or ""} for each in found if each.tag.endswith("}" + tag)]


def texts(picture):
    return [each["text"] for each in elements(picture, "text")]


def rects(picture, **look):
    """Return the rectangles that have these attributes."""
    wanted = {name.rstrip("_").replace("_", "-"): value for name, value in look.items()}
    return [each for each in elements(picture, "rect") if wanted.items() <= each.items()]


def unit(picture):
    """Return how a place across becomes a time, by the numbers below a timeline."""
    below = [each for each in elements(picture, "text") if each.get("class") == "soft"]
    marks = [(float(each["text"]), float(each["x"])) for each in below if each["text"].isdigit()]
    (first, left), (last, right) = min(marks), max(marks)
    return lambda x: first + (float(x) - left) / (right - left) * (last - first)


def spans(picture, boxes):
    """Return when the boxes of a timeline begin and end; they leave a pixel free at their end."""
    time = unit(picture)
    ends = [(time(box["x"]), time(float(box["x"]) + float(box["width"]) + 1)) for box in boxes]
    return [(round(begin, 2), round(end, 2)) for begin, end in ends]


def place(text):
    """Return left, top, right and bottom of a text, in the widest font in which pages are read."""
    size, bold = float(text.get("font-size", 12)), text.get("font-weight") == "600"
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    wide = text_to_path.get_text_width_height_descent(text["text"], font, ismath=False)[0]
    left = float(text["x"]) - wide * {"start": 0, "middle": 0.5, "end": 1}[text["text-anchor"]]
    return left, float(text["y"]) - 0.45 * size, left + wide, float(text["y"]) + 0.45 * size


@pytest.mark.parametrize("draw", [*(getattr(pictures, name) for name in CONCEPTS), *OTHERS])
def test_texts_are_inside_and_do_not_overlap(draw):
    picture = draw()
    assert len(titles(str(picture))) == 1 and picture.alt.startswith(titles(str(picture))[0])
    level = [each for each in elements(picture, "text") if "transform" not in each]
    boxes = {f"{number} {each['text']}": place(each) for number, each in enumerate(level)}
    for name, (left, top, right, bottom) in boxes.items():
        assert left >= 0 and right <= picture.width and top >= 0 and bottom <= picture.height, name
    for (one, a), (other, b) in combinations(boxes.items(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (one, other)


def test_they_are_exported_and_need_no_arguments():
    assert set(CONCEPTS) <= set(pictures.__all__)
    for name in CONCEPTS:
        assert f"pictures.{name}()" in pictures.__doc__


class TestBarrier:
    def test_the_early_warp_waits_for_the_late_one(self):
        picture = pictures.barrier_wait()
        (waits,) = rects(picture, stroke_dasharray="3 3")
        assert spans(picture, [waits]) == [(3, 7)] and waits["fill"] == BLUE
        assert "Warp 0 waits 4 units" in picture.alt
        solid = {
            fill: [each for each in rects(picture, fill=fill) if each is not waits] for fill in (BLUE, ORANGE)
        }
        assert spans(picture, solid[BLUE]) == [(0, 3), (3, 7), (7, 11)]
        assert spans(picture, solid[ORANGE]) == [(0, 7), (7, 11)]

    def test_none_reads_what_is_not_complete(self):
        picture = pictures.barrier_wait((2, 6), 3)
        pale = rects(picture, class_="empty")
        assert spans(picture, pale) == [(0, 2), (0, 6)]  # both halves are being written
        (barrier,) = [each for each in elements(picture, "line") if each.get("stroke-width") == "3"]
        assert unit(picture)(barrier["x1"]) == pytest.approx(6, abs=0.02)

    def test_warp_1_can_be_the_early_one(self):
        assert "Warp 1 waits 4 units at the barrier: tile[0…31]" in pictures.barrier_wait((6, 2), 3).alt
        even = pictures.barrier_wait((5, 5))
        assert "none waits" in even.alt and not rects(even, stroke_dasharray="3 3")


class TestBuffers:
    def test_turns_by_hand(self):
        double = [(0, 3, 3, 7), (3, 6, 7, 11), (7, 10, 11, 15), (11, 14, 15, 19)]
        assert timelines.turns(4, 3, 4, 2) == double
        assert timelines.turns(3, 3, 4, 1) == [(0, 3, 3, 7), (7, 10, 10, 14), (14, 17, 17, 21)]

    @pytest.mark.parametrize("buffers", [1, 2, 3])
    @pytest.mark.parametrize(("load", "compute"), [(1, 5), (4, 4), (5, 1)])
    def test_no_buffer_is_filled_while_it_is_read(self, load, compute, buffers):
        steps = timelines.turns(7, load, compute, buffers)
        for number, step in enumerate(steps):
            assert step.full - step.asked == load and step.empty - step.begun == compute
            assert step.begun >= step.full
            assert number < buffers or step.asked >= steps[number - buffers].empty
            assert not number or (
                step.asked >= steps[number - 1].full and step.begun >= steps[number - 1].empty
            )

    def test_the_picture(self):
        picture = pictures.double_buffer()
        assert "Two buffers take 19 units, one takes 28" in picture.alt  # 3 + 4 · 4, and 4 · (3 + 4)
        found = rects(picture, stroke_dasharray="3 3")
        assert spans(picture, found) == [
            *((3, 7), (10, 14), (17, 21)),  # one buffer: no load while it is computed
            *((0, 3), (7, 10), (14, 17), (21, 24)),
            *((6, 7), (10, 11)),  # two: a load until its buffer is free
            (0, 3),
        ]
        assert texts(picture).count("tile 3") == 4 and texts(picture).count("buffer 1") == 4


class TestFullEmpty:
    def test_phases_end_when_copies_and_products_do(self):
        picture = pictures.full_empty()
        time, dots = unit(picture), elements(picture, "circle")
        by_row = {}
        for dot in dots:
            by_row.setdefault(float(dot["cy"]), []).append(round(time(dot["cx"])))
        assert [sorted(ends) for _, ends in sorted(by_row.items())] == [[3, 11], [6, 16], [8, 18], [13, 23]]

    @pytest.mark.parametrize(("steps", "copy", "multiply"), [(4, 3, 5), (5, 4, 2), (6, 2, 2)])
    def test_each_wait_ends_with_the_phase_of_its_parity(self, steps, copy, multiply):
        """An mbarrier in phase p lets pass who waits for parity (p - 1) % 2."""
        done = timelines.turns(steps, copy, multiply, timelines.BUFFERS)
        for number, step in enumerate(done):
            own, turn = done[number % 2 :: 2], number // 2
            empties, fulls = [each.empty for each in own], [each.full for each in own]
            for start, ends, parity in ((step.asked, empties, turn % 2 ^ 1), (step.begun, fulls, turn % 2)):
                phase = sum(end <= start for end in ends)
                assert (phase - 1) % 2 == parity

    def test_the_drawn_parities(self):
        picture = pictures.full_empty()
        waits = rects(picture, stroke_dasharray="3 3")
        assert spans(picture, waits) == [(6, 8), (11, 13), (0, 3)]  # the producer's, and the consumer's
        said = [each for each in elements(picture, "text") if each["text"].startswith("parity")]
        inside = [[each["text"] for each in said if self.lies_in(each, box)] for box in waits]
        assert inside == [["parity 0"]] * 3  # phase 0 of empty[0], of empty[1], and of full[0]
        assert "producer waits 4 units for empty stages, the consumer 3 for full ones" in picture.alt
        grey = [(box, "parity 1") for box in rects(picture, class_="mid")]
        grey += [(box, "parity 0") for box in rects(picture, class_="empty")]
        assert len(grey) == 11
        for box, parity in grey:
            assert [each["text"] for each in said if self.lies_in(each, box)] == [parity]

    @staticmethod
    def lies_in(text, box):
        x, y, left, top = (float(each) for each in (text["x"], text["y"], box["x"], box["y"]))
        return left <= x < left + float(box["width"]) and top <= y < top + float(box["height"])


class TestWaves:
    def test_the_default_by_hand(self):
        """40 blocks in 16 slots: two full waves and 8 blocks in the third, so 8 of 48 slots are empty."""
        picture = pictures.waves()
        assert "40 blocks take 3 waves of 16: 16.7 % of the block slots stay empty" in picture.alt
        assert picture.alt.endswith("8 of 48 slots are empty.")
        (empty,) = [each for each in elements(picture, "path") if "stroke-dasharray" in each]
        assert empty["d"].count("M") == 48 - 40
        shown = [int(each) for each in texts(picture) if each.isdigit()]
        assert sorted(shown) == sorted([*range(40), 0, 1, 2, 3])  # the blocks, and the times below

    @pytest.mark.parametrize(
        ("sms", "slots", "blocks"), [(8, 2, 40), (4, 1, 5), (3, 2, 6), (2, 4, 17), (1, 1, 3)]
    )
    def test_blocks_start_as_slots_become_free(self, sms, slots, blocks):
        """Each block goes to the SM with the fewest blocks, as soon as it has a free slot."""
        free = [(0, slot, sm) for slot in range(slots) for sm in range(sms)]
        heapq.heapify(free)
        expected = np.full((sms, slots, -(-blocks // (sms * slots))), -1)
        for block in range(blocks):
            time, slot, sm = heapq.heappop(free)
            expected[sm, slot, time] = block
            heapq.heappush(free, (time + 1, slot, sm))
        assert (block_waves.placed(sms, slots, blocks) == expected).all()

    def test_without_a_tail(self):
        picture = pictures.waves(8, 2, 32)
        assert "32 blocks take 2 waves of 16: no block slot stays empty" in picture.alt
        assert "the tail" not in texts(picture) and "1 wave of 4" in pictures.waves(2, 2, 4).alt

    @pytest.mark.parametrize("numbers", [(0, 2, 4), (8, 2, 0), (33, 1, 4), (1, 1, 13)])
    def test_what_cannot_be_drawn(self, numbers):
        with pytest.raises(ValueError, match="at most 32 slots and 12 waves"):
            pictures.waves(*numbers)


class TestLayouts:
    @pytest.mark.parametrize(("lanes", "of_structs", "of_arrays"), [(8, 4, 1), (32, 16, 4)])
    @pytest.mark.parametrize("field", range(4))
    def test_sectors_of_both_layouts_are_those_of_arrays_of_numpy(self, lanes, field, of_structs, of_arrays):
        structs = np.zeros(layouts.POINTS, [(name, np.float32) for name in "xyzw"])
        arrays = np.zeros((4, layouts.POINTS), np.float32)
        for layout, own, whole, count in (
            (layouts.STRUCTS, structs["xyzw"[field]], structs, of_structs),
            (layouts.ARRAYS, arrays[field], arrays, of_arrays),
        ):
            start = own.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            first = {(start + lane * own.strides[0]) // 32 for lane in range(lanes)}
            last = {(start + lane * own.strides[0] + 3) // 32 for lane in range(lanes)}
            assert set(layout.sectors(lanes, field)) == first | last
            assert len(layout.sectors(lanes, field)) == count

    def test_the_picture(self):
        picture = pictures.struct_layouts()
        assert (
            "8 lanes read x: 4 sectors of an array of structs, 1 sector of a struct of arrays" in picture.alt
        )
        assert "All 32 lanes: 16 sectors against 4, for the same 128 bytes" in picture.alt
        written = texts(picture)
        assert written.count("8 of 32 used") == 4 and written.count("32 of 32 used") == 1
        assert written.count("not moved") == 3
        assert all(written.count(f"lane {lane}") == 2 for lane in range(8))
        framed = rects(picture, class_="line", stroke_width="2.5")
        assert len(framed) == 1 + 4 + 1  # in the legend, and one per sector that moves
        read = [written[place - 1] for place, text in enumerate(written) if text.startswith("lane ")]
        assert read == [*(f"p[{lane}].x" for lane in range(8)), *(f"x[{lane}]" for lane in range(8))]
        assert written[written.index("p[0].x") :][:5] == ["p[0].x", "lane 0", "p[0].y", "p[0].z", "p[0].w"]


class TestLevels:
    def test_tiles_add_up(self):
        """Each element of the block's tile is the sum of just one thread."""
        times = np.zeros((128, 128), int)
        for warp in range(8):
            of_warp = np.zeros_like(times)
            for lane in range(32):
                of_warp[np.ix_(*levels.thread_elements(warp, lane))] += 1
            rows, cols = np.nonzero(of_warp)
            assert (np.ptp(rows) + 1, np.ptp(cols) + 1, of_warp.sum()) == (32, 64, 32 * 64)
            assert (rows.min(), cols.min()) == levels.warp_corner(warp)
            times += of_warp
        assert (times == 1).all()

    def test_sizes_are_those_of_the_kernel(self):
        defined = dict(re.findall(r"#define (\w+) (\d+)", KERNEL.read_text(encoding="utf-8")))
        for name in ("TILE_M", "TILE_N", "WARP_M", "WARP_N", "THREAD_M", "THREAD_N"):
            assert getattr(levels, name) == int(defined[name]), name

    def test_a_thread_by_hand(self):
        """Warp 3 begins at (32, 64); lane 9 is second in the second row of lanes: 4 further on both ways."""
        rows, cols = levels.thread_elements(3, 9)
        assert rows.tolist() == [36, 37, 38, 39, 52, 53, 54, 55]
        assert cols.tolist() == [68, 69, 70, 71, 100, 101, 102, 103]

    def test_the_picture(self):
        picture, written = pictures.tile_levels(), texts(pictures.tile_levels())
        assert "8 warps of 32 × 64, each 32 threads of 8 × 8" in picture.alt
        assert {"rows 36…39, 52…55", "columns 68…71, 100…103"} <= set(written)
        for rows, cols, ratio in ((128, 128, "64"), (32, 64, "21.3"), (8, 8, "4")):
            assert f"per k: {rows} of A + {cols} of B" in written
            assert f"for {rows * cols:,} multiply-adds:" in written
            assert f"{ratio} per element read" in written
        corner = levels._LEFTS[0] + 64 * levels._CELLS[0], levels._TOP + 32 * levels._CELLS[0]
        (drawn,) = [
            each for each in rects(picture, fill=GREEN) if float(each["width"]) == 64 * levels._CELLS[0]
        ]
        assert (float(drawn["x"]), float(drawn["y"])) == corner

    @pytest.mark.parametrize(("warp", "lane"), [(8, 0), (-1, 0), (0, 32)])
    def test_a_thread_that_is_not_there(self, warp, lane):
        with pytest.raises(ValueError, match="warps below 8, lanes below 32"):
            pictures.tile_levels(warp, lane)


class TestLastBlock:
    def test_tickets_go_in_the_order_of_time(self):
        found = partial_results.blocks()
        assert [each.sum for each in found] == [10, 26, 42, 58]
        assert [each.ticket for each in found] == [1, 3, 0, 2]
        by_ticket = sorted(found, key=lambda each: each.ticket)
        assert by_ticket == sorted(found, key=lambda each: each.counted)

    def test_the_last_block_reads_when_all_fences_have_passed(self):
        picture = pictures.last_block()
        assert "Block 1 takes the last ticket, 3: all sums are there, and it adds them up: 136" in picture.alt
        assert sum(range(1, 17)) == 136
        (adds,) = spans(picture, rects(picture, fill=GREEN))
        fences = spans(picture, rects(picture, fill=PURPLE)[1:])  # without the legend's
        writes = spans(picture, rects(picture, fill=ORANGE)[1:])
        assert len(fences) == 4 and all(end <= adds[0] for _, end in fences)
        assert [begin for begin, _ in fences] == [end for _, end in writes]
        assert "10 + 26 + 42 + 58" in texts(picture)
        assert {f"ticket {number}" for number in range(4)} <= set(texts(picture))


class TestMergedSoftmax:
    @pytest.mark.parametrize("seed", range(4))
    def test_merged_parts_are_numpys_softmax(self, seed):
        random = np.random.default_rng(seed)
        first, second = (random.normal(scale=20, size=random.integers(1, 50)) for _ in range(2))
        whole = partial_results.merged(partial_results.part(first), partial_results.part(second))
        both = np.concatenate([first, second])
        assert whole.m == both.max()
        assert whole.s == pytest.approx(np.exp(both - both.max()).sum(), rel=1e-12)
        softmax = np.exp(both.astype(np.longdouble)) / np.exp(both.astype(np.longdouble)).sum()
        assert np.exp(both - whole.m) / whole.s == pytest.approx(softmax.astype(float), rel=1e-9)

    def test_the_picture(self):
        picture = pictures.merged_softmax((1, 3, 2), (4, 0, 3))
        first, second = (np.exp(np.array(part, float) - max(part)).sum() for part in ((1, 3, 2), (4, 0, 3)))
        whole = np.exp(np.array([1, 3, 2, 4, 0, 3]) - 4.0).sum()
        told = f"m = 4 and s = {first:.4g} × {np.exp(-1):.3g} + {second:.4g} × 1 = {whole:.4g}"
        assert told in picture.alt and f"exp(x − 4) is {whole:.4g}" in picture.alt
        assert whole == pytest.approx(first * np.exp(-1) + second)
        solid = [each for each in elements(picture, "rect") if "fill-opacity" not in each]
        heights = [float(each["height"]) / partial_results._HIGH for each in solid]
        for d, bars in ((first, heights[:3]), (second, heights[3:6]), (whole, heights[6:])):
            assert sum(bars) == pytest.approx(d, rel=1e-4)

    @pytest.mark.parametrize("parts", [((), (1,)), ((1,), ()), (range(4), range(3))])
    def test_what_cannot_be_drawn(self, parts):
        with pytest.raises(ValueError, match="at least one each, and together at most 6"):
            pictures.merged_softmax(*parts)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: pictures.barrier_wait((0, 3)), "arrive=0 cannot be drawn"),
        (lambda: pictures.double_buffer(tiles=13), "tiles=13 cannot be drawn. Choose 1 to 12"),
        (lambda: pictures.full_empty(copy=0), "copy=0 cannot be drawn"),
    ],
)
def test_times_that_cannot_be_drawn(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
