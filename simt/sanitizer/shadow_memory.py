"""Memory for shadows, kept between launches so that it need not be cleared.

Each launch continues the numbering of stamps, so what an earlier launch left is older than its first stamp.
"""

import numpy as np

from simt.sanitizer.shadow import PLANES, STAMP_STEP

MOST_KEPT = 32 << 20  # bytes
LAST_STAMP = 1 << 31


class ShadowMemory:
    """Lends shadows to one launch at a time."""

    def __init__(self) -> None:
        self._first_stamp = STAMP_STEP
        self._free: dict[int, list[np.ndarray]] = {}  # by bytes per plane: planes stay where they are
        self._lent: list[tuple[int, np.ndarray]] = []

    def begin(self) -> int:
        """Return the first stamp of a new launch, and take back what the last launch was lent."""
        for plane_bytes, shadow in self._lent:
            self._free.setdefault(plane_bytes, []).append(shadow)
        self._lent.clear()
        kept = sum(shadow.nbytes for shadows in self._free.values() for shadow in shadows)
        if kept > MOST_KEPT or self._first_stamp > LAST_STAMP:
            self._free.clear()
            self._first_stamp = STAMP_STEP
        return self._first_stamp

    def end(self, last_stamp: int) -> None:
        """End the launch; later ones have later stamps."""
        self._first_stamp = last_stamp + STAMP_STEP

    def lend(self, plane_bytes: int) -> int:
        """Return the address of a shadow with planes of this size. Only pages that are touched use memory.

        Returns 0 where the system refuses so much, which is several times the array; races on that array are
        then not found.
        """
        free = self._free.get(plane_bytes)
        try:
            shadow = free.pop() if free else np.zeros(PLANES * plane_bytes + 8, np.uint8)
        except MemoryError:
            return 0
        self._lent.append((plane_bytes, shadow))
        return shadow.ctypes.data
