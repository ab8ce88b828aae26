"""When each warp of a recorded block runs, and when it waits at a barrier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simt.common.limits import WARP
from simt.recording.record import Recording

RUNS, PARTLY, WAITS = "runs", "some lanes", "waits"


@dataclass(frozen=True)
class Segment:
    """A warp in one state from event `first` to before `end`: RUNS, PARTLY (some of its lanes), or WAITS."""

    warp: int
    first: int
    end: int
    state: str


def segments(recording: Recording) -> list[Segment]:
    """Return the segments of all warps, those of a warp in order."""
    return [each for warp in range(recording.warps) for each in _of_warp(recording, warp)]


def _of_warp(recording: Recording, warp: int) -> list[Segment]:
    events = recording.events
    own = np.flatnonzero(events.warp == warp)
    if not len(own):
        return []
    stops = recording.is_any("barrier")[own]
    partly = events.mask[own] != _all_lanes(recording, warp)
    found: list[Segment] = []
    begin = 0
    for i in range(len(own)):
        is_last = i + 1 == len(own)
        if is_last or own[i + 1] != own[i] + 1 or partly[i + 1] != partly[i] or stops[i]:
            state = PARTLY if partly[i] else RUNS
            found.append(Segment(warp, int(own[begin]), int(own[i]) + 1, state))
            if stops[i] and not is_last and own[i + 1] > own[i] + 1:
                found.append(Segment(warp, int(own[i]) + 1, int(own[i + 1]), WAITS))
            begin = i + 1
    return found


def _all_lanes(recording: Recording, warp: int) -> int:
    """Return the mask of the warp's threads."""
    x, y, z = recording.launch.block
    return (1 << min(WARP, x * y * z - WARP * warp)) - 1
