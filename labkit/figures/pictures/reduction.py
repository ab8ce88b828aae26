"""A picture of one round of a reduction in a block: which threads add, and what else their warps do."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.figures.svg import BLUE, ORANGE, Svg
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.banks import BANK_BYTES, bank_conflicts

SPREAD, PACKED, HALVES, SHUFFLE = "spread", "packed", "halves", "shuffle"
FORMS = {
    SPREAD: "every 2nd, 4th, … thread adds its neighbour",
    PACKED: "the first threads add neighbours",
    HALVES: "the first threads add the other half",
    SHUFFLE: "lanes of a warp, by shuffles",
}
_LEFT, _TOP, _WIDE, _HIGH = 66, 64, 22, 26
_ADDS, _BESIDE, _RESTS = range(3)
_LOOKS: list[dict[str, object]] = [
    {"fill": BLUE},
    {"fill": ORANGE, "fill_opacity": 0.45},
    {"class_": "empty"},
]


@dataclass(frozen=True)
class Round:
    """Round `number`, from 1, of a reduction by a block of `threads` threads in one of the FORMS.

    In `shuffle` each warp adds up by itself. Then, in five more rounds, the first warp adds the warps' sums.
    A lane without a partner adds its own value.
    """

    form: str
    threads: int
    number: int

    @property
    def rounds(self) -> int:
        """Return how many rounds there are: log2 of the threads, or five per level of warps."""
        if self.form == SHUFFLE:
            return 5 * (1 + (self.threads > WARP))
        return self.threads.bit_length() - 1

    @cached_property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the threads that add, and the words whose values they add to their own sum's word."""
        if self.form == SHUFFLE:
            apart = WARP >> (self.number - 1) % 5 + 1
            every = np.arange(self.threads if self.number <= 5 else WARP)
            return every, np.where(every % WARP + apart < WARP, every + apart, every)  # or its own
        if self.form == HALVES:
            apart = self.threads >> self.number
            return np.arange(apart), np.arange(apart) + apart
        apart = 1 << self.number - 1
        own = np.arange(0, self.threads, 2 * apart)
        return (own if self.form == SPREAD else own // (2 * apart)), own + apart

    @property
    def own(self) -> np.ndarray:
        """Return the word of the own sum of each thread that adds."""
        adders, other = self.sides
        if self.form == PACKED:
            return other - (1 << self.number - 1)
        return adders

    @property
    def warps(self) -> int:
        """Return the warps with a thread that adds."""
        return len(np.unique(self.sides[0] // WARP))

    @property
    def lanes(self) -> float:
        """Return the part of the lanes of these warps whose additions count."""
        if self.form == SHUFFLE:
            needed = (WARP >> (self.number - 1) % 5 + 1) * (self.warps if self.number <= 5 else 1)
            return needed / (WARP * self.warps)
        return len(self.sides[0]) / (WARP * self.warps)

    @property
    def conflicts(self) -> int:
        """Return the bank conflicts of the loads of both sums, and of the store of the new one."""
        if self.form == SHUFFLE:
            return 0
        adders, other = self.sides
        return sum(
            bank_conflicts((words[adders // WARP == warp] * BANK_BYTES).tolist(), BANK_BYTES)
            for warp in np.unique(adders // WARP)
            for words in (self.own, other, self.own)
        )


def tree(form: str = HALVES, threads: int = 128, number: int = 1) -> Svg:
    """Draw the threads of a block, one row per warp; each thread that adds carries the word that it adds.

    Raises ValueError where there is no such round.
    """
    now = Round(form, threads, number)
    if not 1 <= number <= now.rounds:
        raise ValueError(f"{FORMS[form]}: there is no round {number}. Choose 1 to {now.rounds}.")
    adders, other = now.sides
    rows = -(-threads // WARP)
    kinds = np.full((rows, WARP), _RESTS)
    kinds[np.unique(adders // WARP)] = _BESIDE
    kinds[adders // WARP, adders % WARP] = _ADDS
    said = f"{counted(len(adders), 'thread')} add, in {now.warps} of {counted(rows, 'warp')}"
    picture = Svg(
        _LEFT + WARP * _WIDE + 6, _TOP + rows * _HIGH + 64, f"Round {number} of {now.rounds}: {said}"
    )
    picture.title(f"Round {number} of {now.rounds}: {said}")
    what = "lane" if form == SHUFFLE else "word of shared memory"
    picture.text(8, 32, f"A number is the {what} whose sum the thread adds to its own.", class_="soft")
    picture.cells(_LEFT, _TOP, (_WIDE, _HIGH), kinds, _LOOKS)
    for warp in range(rows):
        picture.text(_LEFT - 6, _TOP + (warp + 0.5) * _HIGH, f"warp {warp}", "end", class_="soft")
    for thread, mine, word in zip(adders.tolist(), now.own.tolist(), other.tolist(), strict=True):
        x, y = _LEFT + thread % WARP * _WIDE, _TOP + thread // WARP * _HIGH
        tip = f"Thread {thread} adds the sum of {what} {word % WARP if form == SHUFFLE else word} to {mine}."
        shown = word % WARP if form == SHUFFLE else word
        with picture.group(data_link=f"thread{thread}", data_tip=tip):
            picture.rect(x, y, _WIDE - 1, _HIGH - 1, fill="transparent")
            middle = x + (_WIDE - 1) / 2
            picture.text(middle, y + _HIGH / 2, str(shown), "middle", class_="dark", font_size=10)
    for lane in (0, 8, 16, 24, 31):
        picture.text(
            _LEFT + (lane + 0.5) * _WIDE, _TOP + rows * _HIGH + 12, str(lane), "middle", class_="soft"
        )
    picture.text(_LEFT + WARP * _WIDE / 2, _TOP + rows * _HIGH + 28, "lane", "middle")
    entries = [
        ("adds", _LOOKS[_ADDS]),
        ("waits for its warp", _LOOKS[_BESIDE]),
        ("warp rests", _LOOKS[_RESTS]),
    ]
    picture.legend(_LEFT, _TOP + rows * _HIGH + 50, entries)
    return picture
