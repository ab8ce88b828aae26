"""Where in a recording a finding happens: the events of its one or two accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simt.common.limits import WARP
from simt.findings import Finding
from simt.recording.events import lanes_in
from simt.recording.memory import NOWHERE

if TYPE_CHECKING:
    from simt.recording.record import Recording

Side = tuple[int, int]  # an event, and a lane of it


@dataclass(frozen=True)
class Seen:
    """A finding in a recording: `events` and `lanes` of its sides, the earlier first; [] if it is not there.

    `address` is the one that they meet at, in the recording's own addresses, or None.
    """

    finding: Finding
    events: tuple[int, ...]
    lanes: tuple[int, ...]
    address: int | None


def seen(recording: Recording) -> list[Seen]:
    """Return the findings of a recording, each with its events."""
    sides = _Sides(recording)
    return [sides.of(finding) for finding in recording.findings]


class _Sides:
    def __init__(self, recording: Recording) -> None:
        self.recording, self.events = recording, recording.events
        self.intervals = _intervals(recording)

    def of(self, finding: Finding) -> Seen:
        """Return where a finding is seen."""
        if finding.tool == "timeout" and len(self.events):
            last = len(self.events) - 1
            return Seen(finding, (last,), (lanes_in(int(self.events.mask[last]))[0],), None)
        if finding.site < 0:
            return Seen(finding, (), (), None)
        if finding.tool == "racecheck" and (pair := self._race(finding)):
            return pair
        warp, lane = self._thread(finding)
        here = (self.events.site == finding.site) & (self.events.warp == warp)
        mine = np.flatnonzero(here & (self.events.mask >> np.uint32(lane) & 1 > 0))
        if finding.tool == "initcheck":
            mine = self._unwritten(mine, lane)
        if not len(mine) or self.recording.error:  # the mistake that ended the run is the last
            mine = np.flatnonzero(here)[-1:]
        if not len(mine):
            return Seen(finding, (), (), None)
        place = int(self._places(int(mine[0]))[lane])
        return Seen(finding, (int(mine[0]),), (lane,), None if place == NOWHERE else place)

    def _thread(self, finding: Finding) -> Side:
        """Return the warp and the lane of a finding's thread."""
        x, y, z = finding.thread
        width, height, _ = self.recording.launch.block
        warp, lane = divmod(x + width * (y + height * z), WARP)
        return warp, lane

    def _places(self, event: int) -> np.ndarray:
        """Return the addresses of an event, by lane."""
        found = self.recording.addresses(event)
        return np.full(WARP, NOWHERE) if found is None else found

    def _race(self, finding: Finding) -> Seen | None:
        """Find accesses of two threads to one place between two barriers.

        The finding's own thread comes first, and one of another warp that was there before it, as the check
        has seen it. In another order of warps, or where a warp races with itself, any pair will do.
        """
        touched: dict[tuple[int, int], list[Side]] = {}
        for event in np.flatnonzero(self.events.site == finding.other_site).tolist():
            for lane, address in self._touched(event):
                touched.setdefault((self.intervals[event], address), []).append((event, lane))
        warp, lane = self._thread(finding)
        best, found = 0, None
        for event in np.flatnonzero(self.events.site == finding.site).tolist():
            for own, address in self._touched(event):
                is_named = (self.events.warp[event], own) == (warp, lane)
                for other, other_lane in touched.get((self.intervals[event], address), ()):
                    apart = self.events.warp[other] != self.events.warp[event]
                    if not apart and other_lane == own:
                        continue
                    rank = 1 + 2 * (other < event) + 4 * apart + is_named
                    if rank > best:
                        (first, one), (second, two) = sorted(((event, own), (other, other_lane)))
                        best, found = rank, Seen(finding, (first, second), (one, two), address)
        return found

    def _touched(self, event: int) -> list[tuple[int, int]]:
        """Return (lane, address) of each lane of an event."""
        places = self._places(event)
        return [(lane, int(places[lane])) for lane in lanes_in(int(self.events.mask[event]))]

    def _unwritten(self, mine: np.ndarray, lane: int) -> np.ndarray:
        """Return the first of these events in which a lane reads what no event before it has written."""
        writes, written, done = np.flatnonzero(self.recording.is_any("store", "atomic")), set[int](), 0
        for number, event in enumerate(mine.tolist()):
            before = int(np.searchsorted(writes, event))
            for each in writes[done:before].tolist():
                written.update(address for _, address in self._touched(each))
            done = before
            if int(self._places(event)[lane]) not in written:
                return mine[number : number + 1]
        return mine[:0]


def _intervals(recording: Recording) -> np.ndarray:
    """Return how many barriers its warp had passed at each event."""
    at_barrier = recording.is_any("barrier")
    passed = np.zeros(len(recording.events), np.int64)
    for warp in range(recording.warps):
        own = recording.events.warp == warp
        passed[own] = np.cumsum(at_barrier[own])
    return passed
