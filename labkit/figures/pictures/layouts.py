"""A picture of the two layouts of many points: an array of structs, and a struct of arrays.

A sector is counted as in the simulator (`simt.counters.sectors`).
"""

from dataclasses import dataclass

from labkit.figures.svg import SKY, Svg
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.sectors import SECTOR_BYTES, touched_sectors

FIELDS, FLOAT, LANES = "xyzw", 4, 8  # of a struct, the bytes of each, and the lanes that are drawn
STRUCT = len(FIELDS) * FLOAT
POINTS = 1024  # whose fields, in a struct of arrays, lie so far apart that no sector has two of them
_LEFT, _CELL, _HIGH, _WORDS = 92.0, 58.0, 34.0, SECTOR_BYTES // FLOAT
_READ: dict[str, object] = {"fill": SKY}
_LIES: dict[str, object] = {"class_": "empty"}


@dataclass(frozen=True)
class Layout:
    """Points in memory: the next point is `stride` bytes further on, the next field `apart` bytes."""

    name: str
    element: str
    stride: int
    apart: int

    def address(self, point: int, field: int) -> int:
        """Return where a field of a point lies, in bytes."""
        return point * self.stride + field * self.apart

    def sectors(self, lanes: int, field: int = 0) -> list[int]:
        """Return the sectors that the first lanes touch when lane i reads a field of point i."""
        return touched_sectors([self.address(lane, field) for lane in range(lanes)], FLOAT)

    def words(self) -> list[tuple[int, int]]:
        """Return the fields of the points that are drawn, as (point, field), in the order of memory."""
        every = [(point, field) for point in range(LANES) for field in range(len(FIELDS))]
        return sorted(every, key=lambda word: self.address(*word))


STRUCTS = Layout("Array of structs", "p[{point}].{field}", STRUCT, FLOAT)
ARRAYS = Layout(f"Struct of arrays, of {POINTS:,} points", "{field}[{point}]", FLOAT, POINTS * FLOAT)


def struct_layouts() -> Svg:
    """Draw which bytes lanes 0 to 7 read when each wants x of its point; a row is a sector."""
    touched = [len(layout.sectors(LANES)) for layout in (STRUCTS, ARRAYS)]
    first, second = (counted(count, "sector") for count in touched)
    finding = f"{LANES} lanes read x: {first} of an array of structs, {second} of a struct of arrays"
    whole = [len(layout.sectors(WARP)) for layout in (STRUCTS, ARRAYS)]
    told = f"All {WARP} lanes: {whole[0]} sectors against {whole[1]}, for the same {WARP * FLOAT} bytes"
    rows = LANES * len(FIELDS) // _WORDS
    high = rows * _HIGH + 62
    picture = Svg(_LEFT + _WORDS * _CELL + 108, 74 + 2 * high - 18, f"{finding}. {told}.")
    picture.title(finding)
    picture.text(8, 32, f"{told}; a row is a sector of {SECTOR_BYTES} bytes.", class_="soft")
    looks: list[tuple[str, dict[str, object]]] = [
        ("read", _READ),
        ("not read", _LIES),
        ("sector that moves", {"class_": "line", "stroke_width": 2.5}),
    ]
    picture.legend(_LEFT, 56, looks)
    for number, layout in enumerate((STRUCTS, ARRAYS)):
        _draw(picture, layout, 116 + number * high)
    return picture


def _draw(picture: Svg, layout: Layout, top: float) -> None:
    """Draw the words of a layout, a sector per row; those of field 0 have their lanes."""
    words, touched = layout.words(), layout.sectors(LANES)
    picture.text(_LEFT, top - 30, layout.name, font_weight="600")
    for word in range(_WORDS):
        middle = _LEFT + (word + 0.5) * _CELL
        picture.text(middle, top - 11, f"+{word * FLOAT}", "middle", class_="soft", font_size=11)
    for row in range(len(words) // _WORDS):
        own, y = words[row * _WORDS : (row + 1) * _WORDS], top + row * _HIGH
        start = layout.address(*own[0])
        used = FLOAT * sum(field == 0 for _, field in own)
        for column, (point, field) in enumerate(own):
            _draw_word(picture, layout, (_LEFT + column * _CELL, y), point, field)
        moves = start // SECTOR_BYTES in touched
        look = {"class_": "line", "stroke_width": 2.5} if moves else {"class_": "grid"}
        picture.rect(_LEFT, y + 1, _WORDS * _CELL - 1, _HIGH - 4, **look)
        picture.text(_LEFT - 8, y + _HIGH / 2 - 1, f"byte {start:,}", "end", class_="soft")
        said = f"{used} of {SECTOR_BYTES} used" if moves else "not moved"
        picture.text(_LEFT + _WORDS * _CELL + 8, y + _HIGH / 2 - 1, said)


def _draw_word(picture: Svg, layout: Layout, corner: tuple[float, float], point: int, field: int) -> None:
    """Draw one field of one point, with the lane that reads it."""
    (x, y), reads = corner, field == 0
    picture.rect(x, y + 1, _CELL - 1, _HIGH - 4, **(_READ if reads else _LIES))
    lines = [layout.element.format(point=point, field=FIELDS[field])]
    if reads:
        lines.append(f"lane {point}")
    for number, line in enumerate(lines):
        at = y + _HIGH / 2 - 1 + 13 * (number - (len(lines) - 1) / 2)
        ink = "on" if reads else "soft"
        picture.text(x + _CELL / 2, at, line, "middle", class_=ink, font_size=11)
