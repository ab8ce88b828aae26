"""Which accesses find their data in the L1, which in the L2, and which go to memory.

A sector that was accessed before is still in a cache if the lines accessed since then fit. How many these are
follows from the time that has passed, with the average footprint of all windows of that length (Xiang et al.,
"HOTL: a Higher Order Theory of Locality", ASPLOS 2013). Time is counted in requests of one multiprocessor,
whose warps are taken to be equally far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simt.counters.notes import LINE_BYTES, SECTORS_OF_LINE
from simt.counters.traffic import (
    BLOCK,
    FIRST,
    LINE,
    SITE_SHIFT,
    WARP_SHIFT,
    WHAT,
)

SECTOR_BYTES = 32


@dataclass(frozen=True)
class Stream:
    """Accesses to global memory in the order of time: one entry per request and line.

    `sectors` has a bit per sector of the line, `site` is the instruction of machine code, and `time` counts
    the requests.
    """

    line: np.ndarray
    sectors: np.ndarray
    site: np.ndarray
    time: np.ndarray

    def __len__(self) -> int:
        return len(self.line)

    def where(self, chosen: np.ndarray) -> Stream:
        """Return the entries for which `chosen` holds."""
        return Stream(*(each[chosen] for each in vars(self).values()))


def in_step(touches: np.ndarray, batch_of: np.ndarray) -> Stream:
    """Return what the warps of some blocks accessed, as if all of them were equally far at all times.

    `batch_of` gives instructions that a warp issues one after the other, without waiting, the same number: it
    makes their requests in one turn.
    """
    what, block = touches[:, WHAT], touches[:, BLOCK]
    warp = what >> WARP_SHIFT & 0xFFFF
    place = np.unique(block * (1 << 16) + warp, return_inverse=True)[1]
    order = np.argsort(place, kind="stable")  # by warp, in its own order
    site = (what >> SITE_SHIFT)[order]
    batch = batch_of[site]
    is_first = np.diff(place[order], prepend=-1) != 0
    begins = (
        is_first
        | (np.diff(batch, prepend=-1) != 0)
        | ((np.diff(site, prepend=-1) <= 0) & (what & FIRST > 0)[order])
    )
    turn = np.cumsum(begins)
    start = np.flatnonzero(is_first)
    turn -= np.repeat(turn[start], np.diff(np.append(start, len(order))))
    by_time = order[np.lexsort((place[order], turn))]
    what = what[by_time]
    return Stream(
        line=touches[by_time, LINE],
        sectors=what & (1 << SECTORS_OF_LINE) - 1,
        site=what >> SITE_SHIFT,
        time=np.cumsum(what & FIRST > 0),
    )


def reused(stream: Stream, capacity: float, weight: float = 1.0) -> np.ndarray:
    """Return, for each entry, how many of its sectors a cache of `capacity` bytes still has; may be a part.

    A line counts as `weight` lines: less than 1 where other multiprocessors use the same. The chance falls
    from 1 where as many lines fit as were accessed since, to 0 where twice as many were: caches do not
    replace the oldest line without fail.
    """
    if not len(stream):
        return np.zeros(0)
    footprint = _footprint(stream) * LINE_BYTES * weight
    chance = np.append((2 - footprint / capacity).clip(0, 1), 0.0)
    found = np.zeros(len(stream))
    for sector in range(SECTORS_OF_LINE):
        has = np.flatnonzero(stream.sectors >> sector & 1)
        age = _ages(stream.line[has], stream.time[has])
        found[has] += chance[np.minimum(age, len(chance) - 1)]
    return found


def _ages(keys: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the time since each key was last seen; a huge number where it was not."""
    order = np.argsort(keys, kind="stable")
    same = np.zeros(len(keys), bool)
    same[1:] = keys[order[1:]] == keys[order[:-1]]
    since = np.full(len(keys), np.iinfo(np.int64).max)
    since[1:][same[1:]] = (time[order[1:]] - time[order[:-1]])[same[1:]]
    ages = np.empty_like(since)
    ages[order] = since
    return ages


def _footprint(stream: Stream) -> np.ndarray:
    """Return the average number of different lines in a window of each length, from 0 to the whole."""
    length = int(stream.time[-1]) + 1
    lines, inverse = np.unique(stream.line, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    time, key = stream.time[order], inverse[order]
    new = np.flatnonzero(np.diff(key, prepend=-1))
    last = np.append(new[1:], len(key)) - 1
    gaps = np.diff(time)[np.diff(key) == 0]
    # A window misses a line if it lies in a gap between its uses, before its first or after its last.
    before, after = time[new], length - 1 - time[last]
    windows = np.bincount(np.concatenate([gaps - 1, before, after]).clip(0), minlength=length + 1)[
        : length + 1
    ]
    free = np.arange(length + 1)
    # missing(w) = sum over gaps g of max(0, g - w + 1), for windows of w requests
    at_least = np.cumsum(windows[::-1])[::-1]  # gaps of at least g
    weighted = np.cumsum((windows * free)[::-1])[::-1]
    missing = weighted - at_least * (free - 1)
    counts = np.maximum(1, length - free + 1)
    footprint = len(lines) - missing / counts
    footprint[0] = 0
    return np.maximum.accumulate(footprint.clip(0, len(lines)))
