"""Memory for shadows, kept between launches so that it need not be cleared.

Each launch numbers its stamps on from the last: what an earlier launch left is older than its first stamp.
"""

from __future__ import annotations

import numpy as np

from labkit.simt.sanitizer.shadow import PLANES, STAMP_STEP

MOST_KEPT = 32 << 20  # bytes
LAST_STAMP = 1 << 31


class ShadowMemory:
    """Gives shadows to one launch at a time."""

    def __init__(self) -> None:
        self._first_stamp = STAMP_STEP
        self._free: dict[int, list[np.ndarray]] = {}  # by bytes of a plane: planes stay where they are
        self._lent: list[tuple[int, np.ndarray]] = []

    def begin(self) -> int:
        """First stamp of a new launch; what the last one was lent may be lent again."""
        for plane_bytes, shadow in self._lent:
            self._free.setdefault(plane_bytes, []).append(shadow)
        self._lent.clear()
        kept = sum(shadow.nbytes for shadows in self._free.values() for shadow in shadows)
        if kept > MOST_KEPT or self._first_stamp > LAST_STAMP:
            self._free.clear()
            self._first_stamp = STAMP_STEP
        return self._first_stamp

    def end(self, last_stamp: int) -> None:
        """The launch is over; later ones have later stamps."""
        self._first_stamp = last_stamp + STAMP_STEP

    def lend(self, plane_bytes: int) -> int:
        """Address of a shadow with planes of this size; only pages that are touched take memory.

        0 where the system refuses so much, several times the array: then no race on it is found.
        """
        free = self._free.get(plane_bytes)
        try:
            shadow = free.pop() if free else np.zeros(PLANES * plane_bytes + 8, np.uint8)
        except MemoryError:
            return 0
        self._lent.append((plane_bytes, shadow))
        return shadow.ctypes.data
