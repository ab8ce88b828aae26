"""The model of caches: footprints against counting every window, hits against an LRU cache kept by hand."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.counters.notes import LINE_BYTES
from simt.counters.traffic import FIRST, SITE_SHIFT, WARP_SHIFT
from simt.timing.caches import Stream, _footprint, in_step, reused

ALL_SECTORS = 0b1111


def stream(lines, sectors=None):
    """One request per line, at one instruction."""
    lines = np.array(lines, np.int64)
    sectors = np.full(len(lines), ALL_SECTORS) if sectors is None else np.array(sectors)
    return Stream(lines, sectors, np.zeros(len(lines), np.int64), np.arange(len(lines)))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_footprint_is_the_mean_over_all_windows(lines):
    found = _footprint(stream(lines))
    for width in range(1, len(lines) + 1):
        windows = [len(set(lines[i : i + width])) for i in range(len(lines) - width + 1)]
        assert found[width] == pytest.approx(np.mean(windows))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80))
@settings(max_examples=60, deadline=None)
def test_a_cache_that_holds_everything_has_all_but_first_uses(lines):
    hits = reused(stream(lines), LINE_BYTES * 1000).sum() / 4
    assert hits == len(lines) - len(set(lines))


def test_a_loop_over_more_than_twice_the_cache_never_hits():
    assert reused(stream(list(range(64)) * 5), 30 * LINE_BYTES).sum() == 0


def test_random_lines_hit_as_often_as_in_an_lru_cache():
    rng = np.random.default_rng(5)
    lines = np.where(rng.random(20_000) < 0.6, rng.integers(0, 40, 20_000), rng.integers(0, 4000, 20_000))
    room, cache, hits = 300, OrderedDict(), 0
    for line in lines.tolist():
        hits += line in cache
        cache[line] = True
        cache.move_to_end(line)
        if len(cache) > room:
            cache.popitem(last=False)
    modelled = reused(stream(lines), room * LINE_BYTES).sum() / 4
    assert modelled / len(lines) == pytest.approx(hits / len(lines), abs=0.03)


def test_sectors_of_a_line_are_fetched_apart():
    assert reused(stream([7, 7, 7], [0b0001, 0b0010, 0b0011]), 1 << 20).tolist() == [0, 0, 2]


def test_warps_take_turns_and_a_batch_is_one_turn():
    def touch(line, warp, site):
        return line, 0, site << SITE_SHIFT | warp << WARP_SHIFT | FIRST | ALL_SECTORS

    touches = np.array([touch(10 * warp + i, warp, i) for warp in (0, 1) for i in (0, 1, 2)])
    assert in_step(touches, np.arange(3)).line.tolist() == [0, 10, 1, 11, 2, 12]
    together = in_step(touches, np.array([0, 0, 2]))  # the first two loads go out one after the other
    assert together.line.tolist() == [0, 1, 10, 11, 2, 12]
