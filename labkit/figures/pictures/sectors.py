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
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from labkit.core.limits import WARP
from labkit.core.text import counted
from labkit.figures.pictures.product import GAP, LARGEST, MARGIN, headline, panel
from labkit.figures.style import Plot
from labkit.simt.counters.sectors import SECTOR_BYTES, touched_sectors

COLUMNS, ROWS = "columns", "rows"
SIZES = (4, 8, 16)  # bytes that a lane can ask for, as float, double and float4 do

_GROUP_COLORS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#7FB2D9", "#EA8B4B", "#BBBBBB")
_USED, _UNUSED, _UNTOUCHED = "#56B4E9", "#D9D9D9", "#F7F7F7"


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


def request_picture(request: Request) -> Plot:
    """Draw a warp's lanes on the left, and on the right the sectors they touch, joined by lines."""
    figure = Plot(figsize=(8.2, 5.8))
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.9))
    axes.set(xlim=(0, 20), ylim=(WARP - 0.4, -1.4))
    axes.set_axis_off()
    _draw_lanes(axes, request)
    _draw_sectors(axes, request)
    headline(
        figure,
        f"{counted(len(request.sectors), 'sector')} for {request.used} bytes: "
        f"{100 * request.used / request.moved:.3g} % of what is moved is used",
        describe(request),
    )
    return figure


def describe(request: Request) -> str:
    """Return the request's settings in one line."""
    return (
        f"{request.size}-byte elements, x counts {request.x_counts}, stride {request.stride}, "
        f"offset {request.offset}, {counted(request.threads_x, 'thread')} in x, rows of {request.row_length}"
    )


def transposed_warp(rows: int = 32, cols: int = 48, warp: int = 3, x_counts: str = COLUMNS) -> Plot:
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
    scale = 0.085
    figure = Plot(figsize=(2 * MARGIN + GAP + (rows + cols) * scale, MARGIN + 0.95 + max(rows, cols) * scale))
    top, left = figure.get_figheight() - 0.95, MARGIN
    for name, request, shape in (("in", read, (rows, cols)), ("out", written, (cols, rows))):
        axes = panel(figure, left, top - shape[0] * scale, shape[1], shape[0], scale)
        _draw_matrix(axes, request, shape)
        what = "reads" if name == "in" else "writes"
        axes.set_title(f"{what} {name} {shape}: {len(request.sectors)} sectors", fontsize=10, y=1)
        axes.set(xlabel="column (elements)", ylabel="row (elements)")
        left += shape[1] * scale + GAP
    headline(
        figure,
        f"A warp moves 32 elements: {len(read.sectors)} sectors to read, {len(written.sectors)} to write",
        "blue: the 32 elements; grey: the rest of the sectors that they lie in",
    )
    return figure


# Drawing. Each lane and each sector is a row; x has no unit.

_LANE, _BOX = (0.0, 3.4), (8.2, 15.6)  # from left to right: the lanes and the sectors


def _draw_lanes(axes: Axes, request: Request) -> None:
    axes.text(_LANE[0], -0.9, "lanes, with their threads (x, y)", va="center", fontsize=9)
    boxes = [Rectangle((_LANE[0], lane - 0.4), _LANE[1] - _LANE[0], 0.8) for lane in range(WARP)]
    axes.add_collection(PatchCollection(boxes, facecolor=_lane_colors(request), edgecolor="none"))
    for lane, thread in enumerate(request.threads):
        axes.text(0.15, lane, f"{lane}: thread {thread}", va="center", fontsize=8)


def _draw_sectors(axes: Axes, request: Request) -> None:
    axes.text(_BOX[0], -0.9, "memory, 32 bytes a row (grey: moved, not used)", va="center", fontsize=9)
    width = (_BOX[1] - _BOX[0]) * request.size / SECTOR_BYTES
    place = {number: row for row, number in enumerate(request.sectors)}
    in_sector = SECTOR_BYTES // request.size
    back = [Rectangle((_BOX[0], row - 0.4), _BOX[1] - _BOX[0], 0.8) for row in place.values()]
    axes.add_collection(PatchCollection(back, facecolor=_UNUSED, edgecolor="0.4", linewidth=0.8))
    lanes_of: dict[int, list[int]] = {}
    for lane, element in enumerate(request.elements):
        lanes_of.setdefault(element, []).append(lane)
    cells, colors, wires, wire_colors = [], [], [], []
    lane_colors = _lane_colors(request)
    for element, lanes in lanes_of.items():
        number, column = divmod(element, in_sector)
        left, row = _BOX[0] + column * width, place[number]
        cells.append(Rectangle((left, row - 0.4), width, 0.8))
        colors.append(lane_colors[lanes[0]])
        axes.text(left + width / 2, row, _lane_names(lanes), ha="center", va="center", fontsize=8)
        wires += [((_LANE[1], lane), (_BOX[0], row)) for lane in lanes]
        wire_colors += [lane_colors[lane] for lane in lanes]
    axes.add_collection(LineCollection(wires, colors=wire_colors, linewidths=0.9, zorder=0))
    axes.add_collection(PatchCollection(cells, facecolor=colors, edgecolor="white", linewidth=0.8))
    for number, row in place.items():
        axes.text(_BOX[1] + 0.25, row, _label(number), va="center", fontsize=8)
        if number - 1 not in place and row:  # memory that nobody asks for lies between
            axes.plot(_BOX, (row - 0.5, row - 0.5), color="0.4", linestyle=":", linewidth=0.8)


def _lane_colors(request: Request) -> list[str]:
    return [_GROUP_COLORS[y % len(_GROUP_COLORS)] for _, y in request.threads]


def _lane_names(lanes: Sequence[int]) -> str:
    return str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]} …"


def _label(number: int) -> str:
    return f"sector {number}: byte {number * SECTOR_BYTES:,}"


def _draw_matrix(axes: Axes, request: Request, shape: tuple[int, int]) -> None:
    """Draw a matrix of 4-byte elements with the request's elements, and the sectors that they lie in."""
    colors = np.full((shape[0] * shape[1], 3), to_rgb(_UNTOUCHED))
    in_sector = SECTOR_BYTES // request.size
    for number in request.sectors:
        colors[number * in_sector : (number + 1) * in_sector] = to_rgb(_UNUSED)
    colors[request.elements] = to_rgb(_USED)
    axes.imshow(colors.reshape(*shape, 3), aspect="auto")
    first = np.arange(0, shape[0] * shape[1], in_sector)
    x = first % shape[1] - 0.5
    axes.vlines(x, first // shape[1] - 0.5, first // shape[1] + 0.5, color="0.6", linewidth=0.5)
    axes.hlines(np.arange(shape[0]) - 0.5, -0.5, shape[1] - 0.5, color="0.85", linewidth=0.4)
    axes.set(xticks=range(0, shape[1], 8), yticks=range(0, shape[0], 8))
