"""The bytes that a checked launch has read and written, as its shadow memory tells afterwards."""

import ctypes
from dataclasses import dataclass

import numpy as np

from simt.sanitizer.shadow import READ_SITE, READ_STAMP, WRITE_SITE, WRITE_STAMP


@dataclass(frozen=True)
class Shadow:
    """Where the shadow of memory from `first` to `end` lies."""

    first: int
    end: int
    granule: int
    planes: int
    plane_bytes: int

    def plane(self, number: int) -> np.ndarray:
        """Return one word for each granule."""
        count = (self.end - 1) // self.granule - self.first // self.granule + 1
        place = self.planes + number * self.plane_bytes
        return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(place))


@dataclass(frozen=True)
class Spans:
    """Bytes from `starts` up to `ends`, in order, and the instruction that has touched each span last."""

    starts: np.ndarray
    ends: np.ndarray
    sites: np.ndarray


def touched(shadow: Shadow, since: int) -> tuple[Spans, Spans]:
    """Return what has been read and written since a stamp."""
    read = _spans(shadow, since, READ_STAMP, READ_SITE)
    return read, _spans(shadow, since, WRITE_STAMP, WRITE_SITE)


def _spans(shadow: Shadow, since: int, stamps: int, sites: int) -> Spans:
    who = np.where(shadow.plane(stamps) >= since, shadow.plane(sites).astype(np.int64), -1)
    changes = np.flatnonzero(np.diff(who)) + 1
    begins, ends = np.r_[0, changes], np.r_[changes, who.size]
    kept = who[begins] >= 0
    base = shadow.first // shadow.granule
    return Spans(
        np.maximum((base + begins[kept]) * shadow.granule, shadow.first),
        np.minimum((base + ends[kept]) * shadow.granule, shadow.end),
        who[begins[kept]],
    )
