"""Where in a recording a finding happens: the events of its one or two accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.core.limits import WARP
from labkit.simt.counters.recording import ADDRESSES
from labkit.simt.sanitizer.findings import Finding
from labkit.stepping.events import kind_of, lanes_in
from labkit.stepping.memory import NOWHERE
from labkit.stepping.record import Recording

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
        if finding.site < 0:
            return Seen(finding, (), (), None)
        if finding.tool == "racecheck" and (pair := self._race(finding)):
            return pair
        x, y, z = finding.thread
        width, height, _ = self.recording.launch.block
        warp, lane = divmod(x + width * (y + height * z), WARP)
        here = (self.events.site == finding.site) & (self.events.warp == warp)
        mine = np.flatnonzero(here & (self.events.mask >> np.uint32(lane) & 1 > 0))
        if finding.kind == "never written":
            mine = mine[[self._is_unwritten(event, lane) for event in mine.tolist()]]
        if not len(mine) or self.recording.error:  # the mistake that ended the run is the last
            mine = np.flatnonzero(here)[-1:]
        if not len(mine):
            return Seen(finding, (), (), None)
        place = int(self._places(int(mine[0]))[lane])
        return Seen(finding, (int(mine[0]),), (lane,), None if place == NOWHERE else place)

    def _places(self, event: int) -> np.ndarray:
        """Return the addresses of an event, by lane."""
        found = self.events.vectors.values(event, ADDRESSES)
        if found is None:
            return np.full(WARP, NOWHERE)
        return self.recording.memory.places(found[None, :], self.events.warp[[event]])[0]

    def _race(self, finding: Finding) -> Seen | None:
        """Find accesses of two threads to one place between two barriers, of different warps if there are."""
        touched: dict[tuple[int, int], list[Side]] = {}
        for event in np.flatnonzero(self.events.site == finding.other_site).tolist():
            for lane, address in self._touched(event):
                touched.setdefault((self.intervals[event], address), []).append((event, lane))
        found: Seen | None = None
        for event in np.flatnonzero(self.events.site == finding.site).tolist():
            for lane, address in self._touched(event):
                for other, other_lane in touched.get((self.intervals[event], address), ()):
                    apart = self.events.warp[other] != self.events.warp[event]
                    if apart or (found is None and other_lane != lane):
                        (first, one), (second, two) = sorted(((event, lane), (other, other_lane)))
                        found = Seen(finding, (first, second), (one, two), address)
                    if apart:
                        return found
        return found

    def _touched(self, event: int) -> list[tuple[int, int]]:
        """Return (lane, address) of each lane of an event."""
        places = self._places(event)
        return [(lane, int(places[lane])) for lane in lanes_in(int(self.events.mask[event]))]

    def _is_unwritten(self, event: int, lane: int) -> bool:
        """Say whether no event before this one writes where the lane reads."""
        place = int(self._places(event)[lane])
        kinds = [kind_of(each) for each in self.recording.code]
        writes = [number for number, kind in enumerate(kinds) if kind in ("store", "atomic")]
        before = np.flatnonzero(np.isin(self.events.site[:event], writes)).tolist()
        return all(address != place for each in before for _, address in self._touched(each))


def _intervals(recording: Recording) -> np.ndarray:
    """Return how many barriers its warp had passed at each event."""
    barriers = [number for number, each in enumerate(recording.code) if kind_of(each) == "barrier"]
    at_barrier = np.isin(recording.events.site, barriers)
    passed = np.zeros(len(recording.events), np.int64)
    for warp in range(recording.warps):
        own = recording.events.warp == warp
        passed[own] = np.cumsum(at_barrier[own])
    return passed
