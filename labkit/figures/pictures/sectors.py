"""Pictures of a warp's request: which sectors of memory its 32 lanes touch, and what of them they use.

They follow the address rule of the kernels, index = row * row_length + col * stride + offset, and the rule by
which the simulator counts sectors. Each y among the warp's threads has a colour: Okabe and Ito's, the dark
ones lightened so that text on them is legible.
Errors: ValueError for a request that cannot be drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.figures.pictures.product import LARGEST, matrix
from labkit.figures.svg import SKY, Svg, grid, ink_on
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.sectors import SECTOR_BYTES, touched_sectors

COLUMNS, ROWS = "columns", "rows"
SIZES = (4, 8, 16)  # bytes that a lane can ask for, as float, double and float4 do

_GROUP_COLORS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#7FB2D9", "#EA8B4B", "#BBBBBB")
_UNTOUCHED: dict[str, object] = {"class_": "empty"}
_REST: dict[str, object] = {"class_": "mid"}
_USED: dict[str, object] = {"fill": SKY}


@dataclass(frozen=True)
class Request:
    """What the 32 threads of a warp ask for: one element of `size` bytes each, by its row and column.

    threadIdx.x counts the `x_counts`, columns or rows, and threadIdx.y counts the others; a block has
    `threads_x` threads in x. The element's index is row * row_length + col * stride + offset.
    """

    x_counts: str = COLUMNS
    size: int = 4
    stride: int = 1
    offset: int = 0
    threads_x: int = 32
    row_length: int = 512

    def __post_init__(self) -> None:
        if self.x_counts not in (COLUMNS, ROWS):
            raise ValueError(f"x counts {COLUMNS} or {ROWS}, and not {self.x_counts!r}.")
        if self.size not in SIZES:
            raise ValueError(f"no lane asks for {self.size} bytes. Choose {', '.join(map(str, SIZES))}.")
        if not 1 <= self.threads_x <= WARP or WARP % self.threads_x:
            raise ValueError(
                f"threads_x={self.threads_x} does not divide a warp. Choose 1, 2, 4, 8, 16 or 32."
            )
        if min(self.stride, self.offset, self.row_length) < 0:
            raise ValueError("stride, offset and row_length begin at 0.")

    @cached_property
    def threads(self) -> list[tuple[int, int]]:
        """Return (threadIdx.x, threadIdx.y) of each lane."""
        return [(lane % self.threads_x, lane // self.threads_x) for lane in range(WARP)]

    @cached_property
    def elements(self) -> list[int]:
        """Return the index of the element that each lane asks for."""
        places = [(y, x) if self.x_counts == COLUMNS else (x, y) for x, y in self.threads]
        return [row * self.row_length + col * self.stride + self.offset for row, col in places]

    @cached_property
    def sectors(self) -> list[int]:
        """Return the numbers of the sectors that the request touches."""
        return touched_sectors([element * self.size for element in self.elements], self.size)

    @property
    def moved(self) -> int:
        """Return the bytes in these sectors."""
        return len(self.sectors) * SECTOR_BYTES

    @property
    def used(self) -> int:
        """Return the bytes that lanes ask for, each counted once."""
        return len(set(self.elements)) * self.size

    @property
    def ideal(self) -> int:
        """Return how many sectors these bytes would fill if they lay side by side."""
        return -(-self.used // SECTOR_BYTES)


def request_picture(request: Request, lane: int = 0) -> Svg:
    """Draw a warp's lanes on the left, and on the right the sectors they touch, joined by lines.

    `lane` stands out. In an explorer a click or an arrow key moves the control `lane`.
    """
    told = follow(request, lane)
    picture = Svg(640, _TOP + WARP * _ROW + 8, f"A warp's 32 lanes and the sectors they touch. {told}")
    picture.title(told)
    picture.text(_LANE[0], _TOP - 14, "lanes, with their threads (x, y)", class_="soft")
    _draw_sectors(picture, request, lane)
    _draw_lanes(picture, request, lane)
    return picture


def follow(request: Request, lane: int) -> str:
    """Say which element a lane asks for, and where it lies."""
    element = request.elements[lane]
    byte = element * request.size
    return (
        f"lane {lane}, thread {request.threads[lane]}: element {element:,}, byte {byte:,}, "
        f"in sector {byte // SECTOR_BYTES:,}"
    )


def transposed_warp(rows: int = 32, cols: int = 48, warp: int = 3, x_counts: str = COLUMNS) -> Svg:
    """Draw what a warp of a transpose reads of `in` (rows, cols), and writes of `out` (cols, rows).

    Its 32 threads lie along x. In the kernel naive, x counts the columns of `in`; in naive_write_coalesced,
    its rows.
    """
    for name, size in (("rows", rows), ("cols", cols)):
        if not WARP <= size <= LARGEST:
            raise ValueError(f"{name}={size} cannot be drawn with a warp in it. Choose {WARP} to {LARGEST}.")
    across = x_counts == COLUMNS
    if not 0 <= warp < (rows if across else cols):
        raise ValueError(
            f"warp {warp} lies outside the matrix. Choose 0 to {(rows if across else cols) - 1}."
        )
    turned = ROWS if across else COLUMNS
    read = Request(x_counts, offset=warp * (cols if across else 1), row_length=cols)
    written = Request(turned, offset=warp * (1 if across else rows), row_length=rows)
    finding = (
        f"A warp moves 32 elements: {len(read.sectors)} sectors to read, {len(written.sectors)} to write"
    )
    cell, top, left = round(540 / (rows + cols), 1), 92, 34.0
    picture = Svg(left + (rows + cols) * cell + 60, top + max(rows, cols) * cell + 8, finding)
    picture.title(finding)
    looks = [("an element of the warp", _USED), ("the rest of the sectors it lies in", _REST)]
    picture.legend(8, 36, looks)
    for name, request, shape in (("in", read, (rows, cols)), ("out", written, (cols, rows))):
        did = "reads" if name == "in" else "writes"
        title = f"{did} {name} {shape}: {len(request.sectors)} sectors"
        kinds = np.zeros(shape[0] * shape[1], int)
        in_sector = SECTOR_BYTES // request.size
        for number in request.sectors:
            kinds[number * in_sector : (number + 1) * in_sector] = 1
        kinds[request.elements] = 2
        matrix(picture, kinds.reshape(shape), [_UNTOUCHED, _REST, _USED], (left, top), cell, title)
        left += shape[1] * cell + 46
    return picture


# Drawing. Each lane and each sector is a row; sizes in pixels.

_TOP, _ROW = 52, 13
_LANE, _BOX = (0, 122), (250, 506)  # from left to right: the lanes and the sectors


def _draw_lanes(picture: Svg, request: Request, chosen: int) -> None:
    """Draw the lanes: one control that a click or the arrow keys move."""
    tip = f"Lanes; up and down arrow keys choose one. {follow(request, chosen)}"
    with picture.group(**grid("lanes", tip, y=("lane", WARP))):
        for lane, thread in enumerate(request.threads):
            y, colour = _TOP + lane * _ROW, _lane_colour(request, lane)
            with picture.group(data_link=f"lane{lane}", data_tip=f"{follow(request, lane)}."):
                picture.rect(_LANE[0], y, _LANE[1], _ROW - 1, fill=colour)
                picture.text(6, y + _ROW / 2, f"{lane}: thread {thread}", class_=ink_on(colour), font_size=11)
        picture.rect(_LANE[0], _TOP + chosen * _ROW - 1, _LANE[1], _ROW + 1, class_="line", stroke_width=2.5)


def _draw_sectors(picture: Svg, request: Request, chosen: int) -> None:
    """Draw a row for each sector, with the lanes' elements in it, and a line from each lane to its sector."""
    picture.text(_BOX[0], _TOP - 14, "memory, 32 bytes per row (grey: moved, not used)", class_="soft")
    in_sector = SECTOR_BYTES // request.size
    width = (_BOX[1] - _BOX[0]) / in_sector
    elements: dict[int, list[int]] = {}
    for lane, element in enumerate(request.elements):
        elements.setdefault(element, []).append(lane)
    for row, number in enumerate(request.sectors):
        y = _TOP + row * _ROW
        lanes = [lane for lane, element in enumerate(request.elements) if element // in_sector == number]
        link = " ".join([f"sector{number}", *(f"lane{lane}" for lane in lanes)])
        with picture.group(data_link=link, data_tip=_used(request, number, lanes)):
            picture.rect(_BOX[0], y, _BOX[1] - _BOX[0], _ROW - 1, class_="mid")
            picture.text(_BOX[1] + 8, y + _ROW / 2, _label(number), font_size=11)
        if row and number - 1 != request.sectors[row - 1]:  # memory that nobody asks for lies between
            picture.line(_BOX[0] - 6, y - 0.5, _BOX[1] + 6, y - 0.5, class_="line", stroke_dasharray="2 3")
        for lane in lanes:
            thick = 3 if lane == chosen else 1.2
            start, stop = (_LANE[1], _TOP + (lane + 0.5) * _ROW), (_BOX[0], y + _ROW / 2)
            colour, link = _lane_colour(request, lane), f"lane{lane} sector{number}"
            picture.line(*start, *stop, data_link=link, stroke=colour, stroke_width=thick)
    place = {number: row for row, number in enumerate(request.sectors)}
    for element, lanes in elements.items():
        number, column = divmod(element, in_sector)
        x, y, colour = _BOX[0] + column * width, _TOP + place[number] * _ROW, _lane_colour(request, lanes[0])
        link = " ".join([f"sector{number}", *(f"lane{lane}" for lane in lanes)])
        with picture.group(data_link=link, data_tip=f"{follow(request, lanes[0])}."):
            picture.rect(x, y, width - 1, _ROW - 1, fill=colour)
            name = _lane_names(lanes)
            picture.text(x + width / 2, y + _ROW / 2, name, "middle", class_=ink_on(colour), font_size=11)
            if chosen in lanes:
                picture.rect(x, y - 1, width - 1, _ROW + 1, class_="line", stroke_width=2.5)


def _lane_colour(request: Request, lane: int) -> str:
    return _GROUP_COLORS[request.threads[lane][1] % len(_GROUP_COLORS)]


def _lane_names(lanes: Sequence[int]) -> str:
    return str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]} …"


def _label(number: int) -> str:
    return f"sector {number}: byte {number * SECTOR_BYTES:,}"


def _used(request: Request, number: int, lanes: Sequence[int]) -> str:
    used = len({request.elements[lane] for lane in lanes}) * request.size
    return (
        f"Sector {number:,}, bytes {number * SECTOR_BYTES:,} to {(number + 1) * SECTOR_BYTES - 1:,}: "
        f"{counted(len(lanes), 'lane')} use {used} of its {SECTOR_BYTES} bytes."
    )
