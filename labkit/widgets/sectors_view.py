"""The explorer of sectors: which bytes of memory a warp's request moves, and how many of them it uses."""

from dataclasses import replace

from labkit.figures.pictures.sectors import COLUMNS, ROWS, SIZES, Request, follow, request_picture
from labkit.widgets.explorer import Explorer, View, menu, plain, selection, slider
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.sectors import SECTOR_BYTES

_THREADS_X = (4, 8, 16, 32)


def sectors() -> Explorer:
    """Show which sectors of memory a warp's request moves, and how much of them it uses.

    A menu chooses what threadIdx.x counts; sliders set the size and the places of the elements, the block's
    width, and the lane to follow.
    """
    controls = {
        "lane": slider("lane", 0, WARP - 1, 5, group="follow one lane"),
        "x_counts": menu("threadIdx.x counts", plain((COLUMNS, ROWS)), group="block"),
        "threads_x": selection("threads in x", plain(_THREADS_X), 16, group="block"),
        "stride": slider("stride", 0, 16, 1, group="elements"),
        "offset": slider("offset", 0, 16, 0, group="elements"),
        # so long that no row reaches into the next: 32 threads with stride 16
        "row_length": slider("row length", 512, 544, 512, group="elements"),
        "size": selection("size", [(counted(each, "byte"), each) for each in SIZES], 4, group="elements"),
    }
    return Explorer(sectors_view, controls, title="Which sectors of memory a warp's request moves")


def sectors_view(
    x_counts: str, size: int, stride: int, offset: int, threads_x: int, row_length: int, lane: int = 0
) -> View:
    """Draw the sectors that a warp's request touches; tell what it uses of them, and which change saves most.

    The settings are those of `Request`; `lane` is followed to its element.
    """
    request = Request(x_counts, size, stride, offset, threads_x, row_length)
    count = len(request.sectors)
    lines = (
        f"That is {count} × {SECTOR_BYTES} = {request.moved} bytes; the request uses {request.used} of them. "
        f"Side by side these would fill {counted(request.ideal, 'sector')}.",
        _rule(request),
        f"{follow(request, lane).capitalize()}.",
        _mend(request),
    )
    return View(
        (request_picture(request, lane),),
        f"The request touches {counted(count, 'sector')} and uses {100 * request.used / request.moved:.3g} % "
        "of what they move.",
        "\n".join(lines),
        "Point at a lane or a sector to see what belongs together; click a lane to follow it.",
    )


def _rule(request: Request) -> str:
    """Say which element a thread asks for."""
    row, col = ("y", "x") if request.x_counts == COLUMNS else ("x", "y")
    return (
        f"Thread (x, y) asks for row {row} and column {col}, the element with index "
        f"{row} * {request.row_length} + {col} * {request.stride} + {request.offset}. "
        f"Lane {WARP - 1} is thread {request.threads[-1]}."
    )


def _mend(request: Request) -> str:
    """Name the one change that leaves the fewest sectors."""
    if len(request.sectors) == request.ideal:
        return "No request for so many bytes touches fewer sectors."
    in_sector = SECTOR_BYTES // request.size
    whole_rows = -(-request.row_length // in_sector) * in_sector
    others = {
        "x counting columns": replace(request, x_counts=COLUMNS),
        "stride 1": replace(request, stride=min(request.stride, 1)),
        "offset 0": replace(request, offset=0),
        f"rows of {whole_rows}, whole sectors": replace(request, row_length=whole_rows),
        f"{WARP} threads in x": replace(request, threads_x=WARP),
    }
    name, best = min(others.items(), key=lambda other: len(other[1].sectors))
    if len(best.sectors) >= len(request.sectors):
        return "No single change of these settings saves a sector."
    return f"With {name} it would touch {counted(len(best.sectors), 'sector')}."
