"""A picture of the memories that a kernel's threads can use, and of who shares each."""

from labkit.figures.svg import BLUE, GREEN, ORANGE, Svg

_BLOCKS, _THREADS = 2, 2
_WIDE, _HIGH, _GAP = 122, 78, 12  # pixels: a thread's box, and the gap between boxes
_THREAD = ("registers", "local memory")


def memory_spaces() -> Svg:
    """Draw a grid with its blocks and their threads, each with the memory that belongs to it."""
    inner = _THREADS * _WIDE + (_THREADS - 1) * _GAP
    block_wide, block_high = inner + 2 * _GAP, _HIGH + 84
    grid_wide, grid_high = _BLOCKS * block_wide + (_BLOCKS + 1) * _GAP, block_high + 92
    told = "Registers belong to one thread, shared memory to one block, global memory to all"
    picture = Svg(grid_wide + 16, grid_high + 40, told)
    picture.title(told)
    left, top = 8.0, 28.0
    picture.rect(left, top, grid_wide, grid_high, class_="grid")
    picture.text(left + _GAP, top + 16, "grid")
    for number in range(_BLOCKS):
        _block(picture, left + _GAP + number * (block_wide + _GAP), top + 30, number, block_wide, block_high)
    bottom = top + 30 + block_high + _GAP
    shared = "global memory: all threads read and write it (constant, texture: read only)"
    _memory(picture, left + _GAP, bottom, grid_wide - 2 * _GAP, shared, BLUE)
    return picture


def _block(picture: Svg, left: float, top: float, number: int, wide: float, high: float) -> None:
    picture.rect(left, top, wide, high, class_="grid")
    picture.text(left + _GAP, top + 16, f"block {number}")
    for thread in range(_THREADS):
        x, y = left + _GAP + thread * (_WIDE + _GAP), top + 30
        picture.rect(x, y, _WIDE, _HIGH, class_="grid")
        picture.text(x + 8, y + 14, f"thread {thread}")
        for line, name in enumerate(_THREAD):
            _memory(picture, x + 6, y + 25 + 25 * line, _WIDE - 12, name, GREEN, 21)
    _memory(picture, left + _GAP, top + 30 + _HIGH + 8, wide - 2 * _GAP, "shared memory", ORANGE)


def _memory(
    picture: Svg, left: float, top: float, wide: float, name: str, colour: str, high: float = 30
) -> None:
    """Draw a memory as a box with its name."""
    picture.rect(left, top, wide, high, fill=colour, fill_opacity=0.25, stroke=colour)
    picture.text(left + wide / 2, top + high / 2, name, "middle")
