"""Records of where a launch accesses global memory, against lines and sectors of the addresses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.code.abi import Counter
from simt.counters.notes import LINE_BYTES
from simt.counters.sectors import SECTOR_BYTES
from simt.counters.traffic import FIRST, SITE_SHIFT, WARP_SHIFT, TrafficRecorder, placed
from simt.kernel import launch_of

SOURCE = """extern "C" __global__ void f(const TYPE* x, const int* at, TYPE* out, int rounds) {
    TYPE sum = 0;
    int warp = blockIdx.x * 2 + threadIdx.x / 32;
    #pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        int i = at[(warp * rounds + round) * 32 + threadIdx.x % 32];
        sum += x[i];
    }
    if (sum == 77) *out = sum;
}"""
TYPES = {"short": "i2", "float": "f4", "double": "f8"}
LANES, BLOCKS, LENGTH = (32, 16), 2, 4000  # of the warps of a block
KERNELS = {name: simt.RawModule(code=SOURCE, options=[f"-DTYPE={name}"]).get_function("f") for name in TYPES}


@st.composite
def patterns(draw):
    """The elements that each lane loads, round by round. Many rounds are like the one before."""
    lanes, found = np.arange(32), []
    index = np.zeros(32, int)
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["again", "moved", "moved", "stride", "random"]))
        if kind == "moved":
            index = index + draw(st.sampled_from([1, 2, 4, 8, 16, 32, 33]))
        elif kind == "stride":
            step = draw(st.sampled_from([0, 1, 2, 3, 8, 32, 65]))
            index = step * lanes + draw(st.integers(0, 64))
        elif kind == "random":
            index = np.random.default_rng(draw(st.integers(0, 99))).integers(0, LENGTH // 2, 32)
        found.append(index % LENGTH)
    return np.array(found)


def touched(row, size, start):
    """The lines of a request, each with its sectors as bits; the array begins at `start`."""
    found = {}
    for place in start + size * row:
        line, sector = divmod(int(place), LINE_BYTES)
        found[line] = found.get(line, 0) | 1 << sector // SECTOR_BYTES
    return list(found.items())


def run(ctype, rounds, recorder):
    """Launch with a row of requests per warp and round; return the totals and where x lies."""
    x = np.zeros(LENGTH, TYPES[ctype])
    args = (x, rounds.astype(np.int32), np.zeros(1, TYPES[ctype]), np.int32(rounds.shape[1]))
    kernel = KERNELS[ctype]
    bound = kernel.bind(launch_of((BLOCKS,), (sum(LANES),), args, 0, 10))
    bound = replace(bound, ranges=placed(bound.ranges))
    start = next(each.shift for each in bound.ranges if each.start == x.ctypes.data)
    loads = [
        site
        for site, each in enumerate(kernel.parsed.code)
        if each.is_access and each.family.reads and each.type != "s32" and "param" not in each.parts
    ]
    return bound.run(recorder), start, loads[-1]


@settings(max_examples=60, deadline=None)
@given(ctype=st.sampled_from(sorted(TYPES)), draws=st.lists(patterns(), min_size=1, max_size=4))
def test_records_are_the_lines_and_sectors_of_each_request(ctype, draws):
    rounds = min(map(len, draws))
    warps = len(LANES) * BLOCKS
    rows = np.array([draws[warp % len(draws)][:rounds] for warp in range(warps)])
    totals, start, site = run(ctype, rows, TrafficRecorder())
    size, requests = np.dtype(TYPES[ctype]).itemsize, []
    for warp in range(warps):
        block, own = divmod(warp, len(LANES))
        of_warp = [
            (int(line), int(what))
            for line, at, what in totals.touches
            if at == block and what >> SITE_SHIFT == site and (what >> WARP_SHIFT) & 0xFFFF == own
        ]
        of_rounds = [touched(row[: LANES[own]], size, start) for row in rows[warp]]
        requests += of_rounds
        expected = [touch for each in of_rounds for touch in each]
        assert sorted((line, what & FIRST - 1) for line, what in of_warp) == sorted(expected)
        assert sum(bool(what & FIRST) for _, what in of_warp) == rounds
    counter = dict(zip((name for name, _ in Counter._fields_), totals.counters[site].tolist(), strict=True))
    assert counter["distinct"] == sum(map(len, requests))
    assert counter["sectors"] == sum(each.bit_count() for request in requests for _, each in request)
    assert counter["requests"] == rounds * warps


def test_accesses_like_earlier_ones_may_be_left_out():
    rows = np.tile(np.arange(32), (len(LANES) * BLOCKS, 8, 1))
    everything, _, site = run("float", rows, TrafficRecorder())
    alike = np.arange(len(KERNELS["float"].parsed.code))
    fewer, start, _ = run("float", rows, TrafficRecorder(alike))
    own = fewer.touches[fewer.touches[:, 2] >> SITE_SHIFT == site]
    lines = {line for line, _ in touched(rows[0, 0], 4, start)}
    assert {int(line) for line in own[:, 0]} == lines
    assert len(own) < len(everything.touches[everything.touches[:, 2] >> SITE_SHIFT == site]) / 4
    assert fewer.recorded == everything.recorded == len(everything.touches)


@pytest.mark.parametrize("sizes", [[100], [100, 300, 1], [256, 256]])
def test_arrays_lie_apart_and_aligned(sizes):
    memory = [
        next(iter(KERNELS["float"].bind(launch_of((1,), (32,), a, 0, 10)).ranges))
        for a in [
            (np.zeros(n, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32), np.int32(0))
            for n in sizes
        ]
    ]
    found = placed([replace(each, shift=0) for each in memory])
    assert found[0].shift == 0 and all(each.shift % 256 == 0 for each in found)
    ends = [each.shift + each.size for each in found]
    assert all(after.shift >= end + 256 for end, after in zip(ends, found[1:], strict=False))
