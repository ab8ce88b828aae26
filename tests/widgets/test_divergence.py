"""The explorer of divergence: masks worked out by hand and in NumPy, sums as a profile counts them."""

import re

import numpy as np
import pytest

from labkit import simt, widgets
from labkit.figures.pictures.warp import rows_of, warp_time
from labkit.simt.trace import trace
from labkit.widgets.divergence_view import PATTERNS, THREADS, divergence_view

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
    assert f"Block of 64 threads: {counted['threads_per_instruction']:.3g} threads an instruction" in text
    assert f"branch efficiency {counted['branch_efficiency_pct']:.0f} %" in text


def test_the_text_of_a_branch_that_parts():
    view = divergence_view(MODULO, 3, 0)
    average, used = re.search(r"on average (\S+) of 32 lanes active.* (\d+) are used", view.text).groups()
    assert float(average) == pytest.approx(ran(MODULO, 3, 0).active.sum(1).mean(), abs=0.05)
    assert int(used) == round(100 * float(average) / 32)
    assert "Active on average: 11 in line 6, 11 in line 7, 21 in line 9, 21 in line 10;" in view.text
    (figure,) = view.figures
    assert figure.get_suptitle().startswith("warp 0: 21 instructions, on average 25.4 of 32 lanes active")


def test_lanes_that_agree_cost_nothing():
    view = divergence_view(GROUPS, 32, 1)
    assert "on average 32 of 32 lanes active" in view.text
    assert "All lanes go the same way" in view.text and "branch efficiency 100 %" in view.text


def test_every_line_that_was_run_has_its_colour_and_its_lanes():
    (figure,) = divergence_view(LESS, 40, 1).figures
    texts = [text.get_text() for text in figure.texts]
    assert " 6          v = sqrtf(v) / 3;" in texts
    assert texts[texts.index(" 6          v = sqrtf(v) / 3;") + 1] == "8"
    assert len(figure.patches) == len(set(ran(LESS, 40, 1).lines))
    assert len({patch.get_facecolor() for patch in figure.patches}) == len(figure.patches)
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [str(x) for x in range(32, 64, 4)]
    assert axes.get_ylabel() == "time (PTX instructions)"


def test_full_colour_is_active_and_pale_waits():
    (figure,) = divergence_view(LESS, 8, 0).figures
    rows, image = ran(LESS, 8, 0), figure.axes[0].images[0].get_array()
    row = int(np.flatnonzero(rows.lines == line_of(LESS, "sqrtf"))[0])
    assert image.shape == (*rows.active.shape, 3)
    assert image[row, 0].min() < 0.5 and image[row, 8:].min() > 0.85


def test_a_picture_of_any_kernel_and_a_warp_that_is_not_there():
    args = np.ones(THREADS, np.float32), np.int32(3)
    title = warp_time(kernel(LOOP), 1, THREADS, args, warp=1).get_suptitle()
    assert title.startswith("warp 1: ")
    with pytest.raises(ValueError, match=r"has no warp 2\. Choose 0 to 1\."):
        warp_time(kernel(LOOP), 1, THREADS, args, warp=2)


def test_controls_change_text_and_picture():
    shown = widgets.divergence()
    assert [control.description for control in shown.controls.values()] == ["pattern", "n", "warp"]
    assert not any(shown.controls[name].continuous_update for name in ("n", "warp"))
    assert 'role="status"' in shown.text.value and 'alt="warp 0: 21 instructions' in shown.pictures.value
    for name, value in (("n", 4), ("warp", 1), ("pattern", GUARD)):
        before = shown.text.value, shown.pictures.value
        shown.controls[name].value = value
        assert shown.text.value != before[0] and shown.pictures.value != before[1]
