"""Sectors per request of loads and stores, against a count of the bytes that a warp touches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import simt
from simt.counters.sectors import touched_sectors

WORD = 4
PATTERNS = {  # the word that lane t of a warp touches
    "t": lambda t: t,
    "2 * t": lambda t: 2 * t,
    "8 * t": lambda t: 8 * t,
    "17 * t": lambda t: 17 * t,
    "31 - t": lambda t: 31 - t,
    "t / 4": lambda t: t // 4,
    "0": lambda t: 0 * t,
    "t + 1": lambda t: t + 1,
    "t * t % 97": lambda t: t * t % 97,
    "(t & 1) * 64 + t / 2": lambda t: (t & 1) * 64 + t // 2,
}
LINES = "\n".join(f"    out[{pattern}] = 1;" for pattern in PATTERNS)
SOURCE = f"""extern "C" __global__ void f(volatile int* out, volatile int* far, int n) {{
    int t = threadIdx.x % 32;
{LINES}
    far[8 * t * n] = 1; if (t < 5) far[8 * t * n] = 2;
}}"""


def expected(words):
    return len({WORD * int(word) // 32 for word in words})


@given(st.lists(st.integers(0, 4096), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_sectors_are_those_of_all_bytes(addresses, size):
    addresses = [address * size for address in addresses]
    every = {(address + byte) // 32 for address in addresses for byte in range(size)}
    assert touched_sectors(addresses, size) == sorted(every)


def test_each_request_touches_its_sectors():
    out, far = np.zeros(1024, np.int32), np.zeros(1024, np.int32)  # each begins with a sector, as on a GPU
    profile = simt.RawModule(code=SOURCE).get_function("f").profile(2, 64, (out, far, np.int32(1)))
    lanes, warps = np.arange(32), 4
    by_line = {}
    for site in profile.sites:
        if site.instruction.parts[0] == "st":
            by_line.setdefault(site.line, []).append(site)
    for line, (pattern, word) in enumerate(PATTERNS.items(), 3):
        (site,) = by_line[line]
        assert site.requests == warps, pattern
        assert site.sectors == warps * expected(word(lanes)), pattern
    whole, some = by_line[3 + len(PATTERNS)]
    assert (whole.sectors, whole.requests) == (32 * warps, warps)
    assert (some.sectors, some.requests) == (5 * warps, warps)
