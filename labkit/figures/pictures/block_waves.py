"""A picture of waves: the blocks of a launch in the block slots of the SMs, and the slots that stay empty."""

import numpy as np

from labkit.figures.svg import BLUE, ORANGE, Svg, ink_on
from simt.common.text import counted

MOST_SLOTS, MOST_WAVES = 32, 12
_LEFT, _TOP, _WIDE, _HIGH = 66.0, 78.0, 600.0, 17.0  # pixels: the corner, all waves, and a block slot
_FULL, _TAIL, _EMPTY = range(3)
_LOOKS: list[dict[str, object]] = [
    {"fill": BLUE},
    {"fill": ORANGE},
    {"class_": "line", "stroke_width": 0.8, "stroke_dasharray": "2 3"},
]


def placed(multiprocessors: int, per_sm: int, blocks: int) -> np.ndarray:
    """Return the block in each slot, or -1: (multiprocessors, per_sm, waves).

    A wave gives each SM one block before any gets its second.
    """
    each = multiprocessors * per_sm
    waves = -(-blocks // each)
    numbers = np.arange(waves * each).reshape(waves, per_sm, multiprocessors).transpose(2, 1, 0)
    return np.where(numbers < blocks, numbers, -1)


def waves(multiprocessors: int = 8, per_sm: int = 2, blocks: int = 40) -> Svg:
    """Draw when each block runs on which SM, if all take equally long and start with their wave.

    Raises ValueError for numbers that cannot be drawn.
    """
    slots = multiprocessors * per_sm
    if min(multiprocessors, per_sm, blocks) < 1 or slots > MOST_SLOTS or blocks > MOST_WAVES * slots:
        raise ValueError(
            f"{blocks} blocks in {multiprocessors} x {per_sm} slots cannot be drawn. Choose at most "
            f"{MOST_SLOTS} slots and {MOST_WAVES} waves."
        )
    numbers = placed(multiprocessors, per_sm, blocks).reshape(slots, -1)
    empty, count = int((numbers < 0).sum()), numbers.shape[1]
    share = f"{100 * empty / numbers.size:.3g} % of the block slots stay" if empty else "no block slot stays"
    finding = f"{blocks} blocks take {counted(count, 'wave')} of {slots}: {share} empty"
    told = f"{multiprocessors} SMs with {per_sm} block slots each; {empty} of {numbers.size} slots are empty."
    picture = Svg(_LEFT + _WIDE + 14, _TOP + slots * _HIGH + 44, f"{finding}. {told}")
    picture.title(finding)
    kinds = np.where(numbers < 0, _EMPTY, _FULL)
    if empty:
        kinds[:, -1] = np.where(kinds[:, -1] == _EMPTY, _EMPTY, _TAIL)
    names = [("a full wave", _LOOKS[_FULL]), ("the tail", _LOOKS[_TAIL]), ("an empty slot", _LOOKS[_EMPTY])]
    picture.legend(_LEFT, 36, names if empty else names[:1])
    _draw_slots(picture, numbers, kinds)
    _draw_axes(picture, multiprocessors, per_sm, count)
    return picture


def _draw_slots(picture: Svg, numbers: np.ndarray, kinds: np.ndarray) -> None:
    """Draw the slots with the numbers of their blocks, where those have room."""
    wide = _WIDE / numbers.shape[1]
    picture.cells(_LEFT, _TOP, (wide, _HIGH), kinds, _LOOKS, 2)
    for (row, wave), number in np.ndenumerate(numbers):
        if number < 0 or wide < 28:
            continue
        ink = ink_on(ORANGE if kinds[row, wave] == _TAIL else BLUE)
        x, y = _LEFT + (wave + 0.5) * wide - 1, _TOP + (row + 0.5) * _HIGH - 1
        picture.text(x, y, str(number), "middle", class_=ink, font_size=11)


def _draw_axes(picture: Svg, multiprocessors: int, per_sm: int, count: int) -> None:
    """Name the SMs and the waves, and part them with lines; below runs time, in durations of a block."""
    wide, bottom = _WIDE / count, _TOP + multiprocessors * per_sm * _HIGH
    for sm in range(multiprocessors):
        top = _TOP + sm * per_sm * _HIGH
        picture.text(_LEFT - 8, top + per_sm * _HIGH / 2, f"SM {sm}", "end")
        if sm:
            picture.line(_LEFT - 52, top - 1, _LEFT + _WIDE, top - 1, class_="grid")
    for wave in range(count):
        name = f"wave {wave + 1}" if wide > 52 else str(wave + 1)
        picture.text(_LEFT + (wave + 0.5) * wide, _TOP - 13, name, "middle", class_="soft")
    for mark in range(count + 1):
        picture.text(_LEFT + mark * wide - 1, bottom + 12, str(mark), "middle", class_="soft")
    time = "time (durations of a block, all alike); a number is the block"
    picture.text(_LEFT + _WIDE / 2, bottom + 31, time, "middle")
