"""A picture of contention: which elements of a warp go to the same bin of a histogram, and so take turns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.figures.svg import BLUE, GREEN, ORANGE, RED, SKY, YELLOW, Svg
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.sectors import SECTOR_BYTES

SHOWN = 12  # warps
WORD_BYTES = 4
_LEFT, _TOP, _WIDE, _HIGH = 66, 64, 22, 20
_COLOURS = (BLUE, SKY, GREEN, YELLOW, ORANGE, RED)  # of turns; the last one is for all that come later
_LOOKS: list[dict[str, object]] = [{"fill": colour} for colour in _COLOURS]


@dataclass(frozen=True)
class Elements:
    """The bins of n elements that are drawn: `skew` 1 has all bins alike, a larger one favours the first."""

    bins: int
    skew: float
    n: int = 2**14

    @cached_property
    def drawn(self) -> np.ndarray:
        """Return the bin of each element: those of a warp in one row."""
        x = self.bins * np.random.default_rng(12).random(self.n) ** self.skew
        return x.astype(np.int32).reshape(-1, WARP)

    @cached_property
    def turns(self) -> np.ndarray:
        """Return how many turns each warp takes: as many as its commonest bin has lanes."""
        return self._lane_turns.max(axis=1) + 1

    @cached_property
    def _lane_turns(self) -> np.ndarray:
        """Return for each element how many lanes before it have the same bin: its turn, from 0."""
        alike = self.drawn[:, :, None] == self.drawn[:, None, :]
        return np.tril(alike, -1).sum(axis=2)

    @property
    def lane_turns(self) -> np.ndarray:
        """Return the turns of the warps that are shown, one row each."""
        return self._lane_turns[:SHOWN]

    @property
    def sectors(self) -> float:
        """Return how many sectors of eight bins each a warp's elements touch, on average."""
        ordered = np.sort(self.drawn // (SECTOR_BYTES // WORD_BYTES), axis=1)
        return float(1 + (np.diff(ordered, axis=1) > 0).sum(axis=1).mean())

    @property
    def busiest(self) -> float:
        """Return the part of the elements that the commonest bin has."""
        return float(np.bincount(self.drawn.ravel()).max() / self.n)


def turns(bins: int = 64, skew: float = 1) -> Svg:
    """Draw the bins of some warps' elements, one row per warp; the colour is the turn that counts it."""
    now = Elements(bins, skew)
    average = now.turns.mean()
    share = f"the busiest bin has {100 * now.busiest:.3g} % of the elements"
    title = f"{average:.3g} turns per warp on average"
    picture = Svg(_LEFT + WARP * _WIDE + 70, _TOP + SHOWN * _HIGH + 64, f"{title}; {share}")
    picture.title(title)
    told = f"A number is the bin of a lane's element. Lanes of one bin take turns; {share}."
    picture.text(8, 32, told, class_="soft")
    kinds = np.minimum(now.lane_turns, len(_COLOURS) - 1)
    picture.cells(_LEFT, _TOP, (_WIDE, _HIGH), kinds, _LOOKS)
    for warp, (row, when) in enumerate(zip(now.drawn[:SHOWN], now.lane_turns, strict=True)):
        y = _TOP + (warp + 0.5) * _HIGH
        picture.text(_LEFT - 6, y, f"warp {warp}", "end", class_="soft")
        picture.text(_LEFT + WARP * _WIDE + 6, y, counted(int(when.max()) + 1, "turn"), class_="soft")
        for lane, (bin_, turn) in enumerate(zip(row.tolist(), when.tolist(), strict=True)):
            x = _LEFT + lane * _WIDE
            tip = f"Warp {warp}, lane {lane}: bin {bin_}, turn {turn + 1} of {int(when.max()) + 1}."
            with picture.group(data_link=f"bin{bin_}", data_tip=tip):
                picture.rect(x, _TOP + warp * _HIGH, _WIDE - 1, _HIGH - 1, fill="transparent")
                ink = "dark" if turn in (0, 2) or turn >= len(_COLOURS) - 1 else "on"
                picture.text(x + (_WIDE - 1) / 2, y, str(bin_), "middle", class_=ink, font_size=9)
    for lane in (0, 8, 16, 24, 31):
        picture.text(
            _LEFT + (lane + 0.5) * _WIDE, _TOP + SHOWN * _HIGH + 12, str(lane), "middle", class_="soft"
        )
    picture.text(_LEFT + WARP * _WIDE / 2, _TOP + SHOWN * _HIGH + 28, "lane", "middle")
    names = [f"turn {number}" for number in range(1, len(_COLOURS))] + [f"turn {len(_COLOURS)} and later"]
    picture.legend(_LEFT, _TOP + SHOWN * _HIGH + 50, list(zip(names, _LOOKS, strict=True)))
    return picture
