"""The explorer of divergence: masks worked out by hand and in NumPy, sums as a profile counts them."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import simt
from labkit import widgets
from labkit.figures.pictures.warp import lanes_in_words, rows_of, warp_time
from labkit.widgets.divergence_view import PATTERNS, THREADS, divergence_view
from simt.trace import trace

MODULO, LESS, GROUPS, LOOP, GUARD = PATTERNS
LANES = np.arange(THREADS).reshape(2, 32)


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def kernel(pattern):
    return simt.RawModule(code=PATTERNS[pattern]).get_function("pattern")


def ran(pattern, n, warp):
    args = np.ones(THREADS, np.float32), np.int32(n)
    return rows_of(trace(kernel(pattern), 1, THREADS, args), warp)


def line_of(pattern, text, which=0):
    """Number of a source line that holds a text."""
    return [i for i, line in enumerate(PATTERNS[pattern].splitlines(), 1) if text in line][which]


def masks(rows, line):
    """The different sets of lanes that ran a line, in order."""
    return list(dict.fromkeys(tuple(mask) for mask in rows.active[rows.lines == line]))


CONDITIONS = {
    MODULO: lambda x, n: x % n == 0,
    LESS: lambda x, n: x < n,
    GROUPS: lambda x, n: x // n % 2 == 0,
}


@pytest.mark.parametrize("warp", [0, 1])
@pytest.mark.parametrize("n", [1, 3, 32, 40])
@pytest.mark.parametrize("pattern", CONDITIONS)
def test_each_side_of_a_branch_has_the_lanes_of_its_condition(pattern, n, warp):
    rows, holds = ran(pattern, n, warp), CONDITIONS[pattern](LANES[warp], n)
    for text, which, lanes in (("sqrtf", 0, holds), ("1 / (v", 0, ~holds), ("out[x] = v", 0, holds | ~holds)):
        assert masks(rows, line_of(pattern, text, which)) == ([tuple(lanes)] if lanes.any() else [])


@pytest.mark.parametrize("n", [1, 4, 40])
def test_a_loop_lasts_as_long_as_its_longest_lane(n):
    rows, rounds = ran(LOOP, n, 0), LANES[0] % n
    lanes = [tuple(rounds > number) for number in range(rounds.max())]
    assert masks(rows, line_of(LOOP, "sqrtf")) == list(dict.fromkeys(lanes))
    (per_round,) = {(rows.lines == line_of(LOOP, "sqrtf")).sum() / max(1, rounds.max())}
    assert per_round in (0, 2)  # a square root and a division


@pytest.mark.parametrize("n, active", [(20, None), (32, None), (40, 8), (64, 32)])
def test_behind_a_guard_only_threads_with_an_element_go_on(n, active):
    """Of warp 1, threads 32 to 63."""
    rows = ran(GUARD, n, 1)
    expected = [] if active is None else [tuple(LANES[1] < n)]
    assert masks(rows, line_of(GUARD, "sqrtf")) == expected
    assert sum(map(sum, expected)) == (active or 0)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("n", [3, 40])
def test_the_warps_together_are_what_a_profile_counts(pattern, n):
    counted = kernel(pattern).profile(1, THREADS, (np.ones(THREADS, np.float32), np.int32(n))).ptx
    both = [ran(pattern, n, warp).active for warp in (0, 1)]
    assert sum(len(active) for active in both) == counted["instructions"]
    assert sum(active.sum() for active in both) == counted["thread_instructions"]
    text = divergence_view(pattern, n, 0).text
    assert f"Block of 64 threads: {counted['threads_per_instruction']:.3g} threads per instruction" in text
    assert f"branch efficiency {counted['branch_efficiency_pct']:.0f} %" in text


def test_the_text_of_a_branch_that_parts():
    view = divergence_view(MODULO, 3, 0)
    used, average = re.fullmatch(
        r"Warp 0 uses (\d+) % of its lanes' time: on average (\S+) of 32 lanes are active\.", view.conclusion
    ).groups()
    assert float(average) == pytest.approx(ran(MODULO, 3, 0).active.sum(1).mean(), abs=0.05)
    assert int(used) == round(100 * float(average) / 32)
    assert "Active on average: 11 in line 7, 11 in line 8, 21 in line 10, 21 in line 11;" in view.details
    (picture,) = view.pictures
    assert picture.alt.startswith("warp 0: 21 instructions, on average 25.4 of 32 lanes active")
    assert "line 7: 2 instructions, 11 lanes;" in picture.alt


def test_lanes_that_agree_cost_nothing():
    view = divergence_view(GROUPS, 32, 1)
    assert "100 % of its lanes' time: on average 32 of 32 lanes" in view.conclusion
    assert "All lanes go the same way" in view.text and "branch efficiency 100 %" in view.text


SVG = "{http://www.w3.org/2000/svg}"


def drawn(pattern, n, warp):
    """The groups of a picture that can be pointed at: source lines, passes, threads."""
    (picture,) = divergence_view(pattern, n, warp).pictures
    groups = [each for each in ElementTree.fromstring(str(picture)).iter() if each.get("data-link")]
    source = [each for each in groups if each.get("data-key")]
    passes = [each for each in groups if each.get("data-tip").startswith("Instruction")]
    threads = [each for each in groups if each.get("data-tip").startswith("Thread")]
    assert len(source) + len(passes) + len(threads) == len(groups)
    return source, passes, threads


def texts(element):
    return [each.text for each in element.iter(SVG + "text")]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_line_of_the_source_marks_all_its_passes_and_a_pass_its_line(pattern):
    rows = ran(pattern, 40, 1)
    source, passes, threads = drawn(pattern, 40, 1)
    assert [each.get("data-link") for each in source] == [f"line-{line}" for line in np.unique(rows.lines)]
    assert {each.get("data-link") for each in passes} == {each.get("data-link") for each in source}
    assert all(each.get("tabindex") == "0" for each in source)
    for lane, thread in enumerate(threads):
        own = np.unique(rows.lines[rows.active[:, lane]])
        assert thread.get("data-link") == " ".join(f"line-{line}" for line in own)


def test_a_line_has_its_instructions_and_its_lanes():
    source, _, _ = drawn(LESS, 40, 1)
    (line,) = [each for each in source if each.get("data-link") == "line-7"]
    assert texts(line) == ["2", "8", "7", "        v = sqrtf(v) / 3;"]
    assert line.get("data-tip") == "Line 7: 2 instructions for lanes 0 to 7; 48 lane slots lost to waiting."
    (line,) = [each for each in source if each.get("data-link") == "line-4"]
    assert line.get("data-tip") == "Line 4: 2 instructions for all 32 lanes; no lane waits."


def test_work_is_drawn_in_the_lanes_that_do_it():
    """Of `x < 8`: lanes side by side are one box."""
    rows, (_, passes, threads) = ran(LESS, 8, 0), drawn(LESS, 8, 0)
    left = float(threads[0].get("x"))
    wide = float(threads[1].get("x")) - left
    for each in passes:
        (path,) = each.iter(SVG + "path")
        x, width = (float(value) for value in re.fullmatch(r"M(\S+) \S+h(\S+?)v.*z", path.get("d")).groups())
        lanes = np.flatnonzero(rows.active[int(re.search(r"\d+", each.get("data-tip"))[0])])
        assert ((x - left) / wide, width / wide) == pytest.approx((lanes[0], len(lanes)), abs=0.02)
        assert (path.get("fill") == "#0072B2") == (len(lanes) == 32)


def test_lanes_wait_until_their_last_instruction_and_then_have_ended():
    rows = ran(GUARD, 40, 1)
    assert not rows.waits.any()  # those behind the guard come back for nothing
    rows = ran(LESS, 8, 0)
    assert (rows.active | rows.waits).all()


def test_lanes_in_words():
    lanes = np.arange(32)
    assert lanes_in_words(lanes >= 0) == "all 32 lanes"
    assert lanes_in_words(lanes == 5) == "lane 5"
    assert lanes_in_words(lanes > 29) == "lanes 30 to 31"
    assert lanes_in_words(lanes % 10 == 0) == "lanes 0, 10, 20, 30"
    assert lanes_in_words(lanes % 3 == 0) == "11 lanes (0, 3, 6, …, 30)"


def test_a_picture_of_any_kernel_and_a_warp_that_is_not_there():
    args = np.ones(THREADS, np.float32), np.int32(3)
    assert warp_time(kernel(LOOP), 1, THREADS, args, warp=1).alt.startswith("warp 1: ")
    with pytest.raises(ValueError, match=r"has no warp 2\. Choose 0 to 1\."):
        warp_time(kernel(LOOP), 1, THREADS, args, warp=2)


def test_controls_change_text_and_picture():
    shown = widgets.divergence()
    assert list(shown.now) == ["pattern", "n", "warp"]
    for name, value in (("n", 4), ("warp", 1), ("pattern", GUARD)):
        before = shown.current()
        after = shown.set(**{name: value})
        assert after.text != before.text and str(after.pictures[0]) != str(before.pictures[0])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("n", [1, 3, 64])
def test_the_picture_is_not_larger_than_its_place(pattern, n):
    (picture,) = divergence_view(pattern, n, 0).pictures
    assert picture.width <= 640 and picture.height <= 480
