"""The explorer of unrolling: what several elements per thread save, and how many bytes they keep in flight.

The kernel is transpose/4_unrolled with 32 / ROWS elements per thread, compiled for each choice. Instructions
are counted in its PTX, and registers are the assembler's for the GPU. The rates beside them are recorded on
an H200, or predicted.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import simt
from labkit import kernels, records
from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, GREEN, ORANGE, PURPLE, RED, Svg, button, ink_on
from labkit.kernels.problem import C_TYPES
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running
from labkit.model import instructions, predicted
from labkit.model.instructions import CONTROL, INDEX, MOVES
from labkit.widgets.explorer import Choices, Explorer, View, menu, plain, selection
from labkit.widgets.report_sweeps import predicted_menu
from simt.common import occupancy
from simt.common.occupancy import Gpu, Occupancy
from simt.common.text import counted

TILE = 32
ELEMENTS = (1, 2, 4, 8, 16)
UNROLLED, KEPT = "unrolled", "kept"
KERNEL = "kernel"  # the group of controls
DTYPES = {4: "float32", 8: "float64"}
RECORDED = {"copy": 1, "padded": 1, "unrolled": 4}  # rungs with an H200's time, and their elements per thread
SIDE = 8192  # of the matrix that was timed
IN_FLIGHT = 512  # bytes that each warp of a measured copy has in flight
THREADS = 2048  # per SM of an H200, for each of these rungs
_GPU = occupancy.gpu("H200")  # whose rates are recorded, and whose latency is measured
_MEASURED = records.limits("h200")
LATENCY = round(
    1e3 * float(_MEASURED[_MEASURED.variant == "DRAM"].value.item()) / float(_GPU.boost_mhz or np.nan)
)
WAITS = sorted({LATENCY, *range(200, 2001, 100)})  # nanoseconds
_TICKS = (20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0)  # GB/s
_COLORS = {MOVES: BLUE, INDEX: ORANGE, CONTROL: PURPLE}
# Where the names stand at their markers, which lie close together.
_NAMES = {
    ("copy", 4): (-10, -8, "end"),
    ("padded", 4): (-10, 12, "end"),
    ("copy", 8): (10, 21, "start"),
    ("padded", 8): (10, 32, "start"),
    ("unrolled", 4): (9, 14, "start"),
    ("unrolled", 8): (12, 4, "start"),
}
_MARKS = {"copy": "P", "padded": "D", "unrolled": "^"}


def unrolling() -> Explorer:
    """Show what several elements per thread save, and how many bytes they keep in flight.

    Menus choose the loop and the GPU of predicted rates; sliders set the elements per thread, their size, and
    how long a load is in flight. In the picture a click on a bar or on a recorded rate chooses its elements.
    """
    controls = {
        "elements": selection("elements of each thread", plain(ELEMENTS), 1, KERNEL),
        "size": selection("size of each", [(f"{size} bytes", size) for size in DTYPES], 4, KERNEL),
        "loop": menu("loops over them", plain((UNROLLED, KEPT)), group=KERNEL),
        "wait": selection("a load takes", _waits(), LATENCY, "memory"),
        "gpu": predicted_menu("memory"),
    }
    return Explorer(unrolling_view, controls, title="What several elements per thread save")


def _waits() -> Choices:
    return [(f"{wait} ns{' (measured)' if wait == LATENCY else ''}", wait) for wait in WAITS]


@dataclass(frozen=True)
class Variant:
    """A kernel with `elements` per thread, and its PTX instructions of each kind per thread."""

    elements: int
    kernel: simt.Kernel
    counts: dict[str, int]

    @property
    def an_element(self) -> float:
        """Return the PTX instructions per element."""
        return sum(self.counts.values()) / self.elements

    def held(self, gpu: Gpu) -> Occupancy:
        """Return what an SM of a GPU holds of it."""
        return occupancy.occupancy(gpu, TILE * TILE // self.elements, self.kernel)

    def threads(self, gpu: Gpu) -> int:
        """Return the threads that an SM of a GPU holds."""
        held = self.held(gpu)
        return held.blocks * held.threads_per_block


def unrolling_view(loop: str, elements: int, size: int, wait: int, gpu: str = "") -> View:
    """Draw the rows that a thread moves, its instructions, and Little's law beside what an H200 has reached.

    `loop` is unrolled or kept, `size` is that of an element in bytes, and `wait` the nanoseconds that a load
    is in flight. With a `gpu`, the law is that GPU's, and its predicted rates stand beside it.
    """
    chosen, on_gpu = variant(loop, elements, size), occupancy.gpu(gpu) if gpu else _GPU
    loads = elements if loop == UNROLLED else 1
    under_way = chosen.threads(on_gpu) * loads * size
    rate = possible(under_way, wait, on_gpu)
    told = (
        f"{counted(elements, 'element')} per thread: {chosen.an_element:.4g} PTX instructions for each, and "
        f"at most {rate:,.0f} GB/s with {under_way / 1024:g} KB in flight."
    )
    picture = Svg(640, 478, f"A thread's elements in a tile, its instructions, and Little's law. {told}")
    _draw_tile(picture, TILE // elements)
    _draw_bars(picture, [variant(loop, each, size) for each in ELEMENTS], elements)
    expected = guessed(gpu, size) if gpu and loop == UNROLLED else ()
    _draw_law(picture, under_way, wait, on_gpu, expected)
    rates = f"rates {reached()[0].source}" if on_gpu == _GPU else "no rate of this GPU was recorded"
    note = f"Instructions counted in PTX; {rates}, {SIDE} × {SIDE}."
    picture.text(8, 470, note, class_="soft", font_size=11)
    lines = [_instructions(chosen, loop), _room(chosen, on_gpu), _little(chosen, loads, size, wait, on_gpu)]
    lines += [_guess(each) for each in expected if each.elements == elements]
    hint = "Point at a bar or a marker to see its numbers; a click chooses its elements."
    return View((picture,), told, "\n".join(lines), hint)


@lru_cache(maxsize=64)
def variant(loop: str, elements: int, size: int) -> Variant:
    """Compile the kernel with so many elements per thread, its loops unrolled or kept."""
    code = kernels.source("transpose/4_unrolled")
    if loop == KEPT:
        code = code.replace("#pragma unroll", "#pragma unroll 1")
    options = (f"-DROWS={TILE // elements}", f"-DDTYPE={C_TYPES[DTYPES[size]]}")
    kernel = simt.RawModule(code=code, options=options).get_function("transpose")
    return Variant(elements, kernel, instructions.per_thread(kernel, elements))


def possible(under_way: float, wait: float, gpu: Gpu = _GPU) -> float:
    """Return the GB/s that a GPU reads and writes with `under_way` bytes per SM in flight for `wait` ns.

    Little's law: what is in flight is its rate times how long it is in flight. What is read is written too.
    The memory's peak is the most.
    """
    return min(2 * gpu.multiprocessors * under_way / wait, _peak(gpu))


def _peak(gpu: Gpu) -> float:
    return float(gpu.bandwidth_gb_s or np.inf)


@dataclass(frozen=True)
class Reached:
    """What an H200 reached with a rung: KB of loads in flight in an SM, at most, and GB/s."""

    rung: str
    size: int
    kilobytes: float
    rate: float
    source: str


@lru_cache(maxsize=1)
def reached() -> tuple[Reached, ...]:
    """Return the recorded rates of the RECORDED rungs, for both sizes of an element."""
    found = []
    for size, dtype in DTYPES.items():
        problem = Transpose(SIDE, SIDE, dtype=dtype)
        times = running.recorded(problem).set_index("kernel")
        for rung, elements in RECORDED.items():
            rate = problem.gbytes_per_s(float(times.value[rung]) / 1e3)
            kilobytes = THREADS * elements * size / 1024
            found.append(Reached(rung, size, kilobytes, rate, str(times.source[rung])))
    return tuple(found)


@lru_cache(maxsize=1)
def in_flight() -> tuple[tuple[float, float], ...]:
    """Return what an H200's copies reached with known bytes of loads in flight: KB per SM, and GB/s."""
    rows = _MEASURED[_MEASURED.quantity == "dram_in_flight"]
    warps = rows.variant.str.removesuffix(" warps/SM").astype(int)
    return tuple(zip((warps * IN_FLIGHT / 1024).tolist(), rows.value.tolist(), strict=True))


@dataclass(frozen=True)
class Guessed:
    """A predicted rate in GB/s, with its ends, of the unrolled kernel with so many elements per thread."""

    elements: int
    kilobytes: float
    rate: float
    low: float
    high: float
    limit: str
    source: str


@lru_cache(maxsize=16)
def guessed(gpu: str, size: int) -> tuple[Guessed, ...]:
    """Return the predicted rates on a GPU, by elements per thread."""
    plane, on_gpu = Transpose(SIDE, SIDE, dtype=DTYPES[size]), occupancy.gpu(gpu)
    rows = predicted.times(gpu, kernel="unrolled", dtype=plane.dtype, rows=SIDE, cols=SIDE)
    found = []
    for row in rows.sort_values("block_y", ascending=False).to_dict("records"):
        elements = TILE // int(row["block_y"])
        under_way = variant(UNROLLED, elements, size).threads(on_gpu) * elements * size
        rate, low, high = (plane.gbytes_per_s(row[name] / 1e3) for name in ("value", "high", "low"))
        found.append(Guessed(elements, under_way / 1024, rate, low, high, row["limit"], row["source"]))
    return tuple(found)


# Drawing.


def _draw_tile(picture: Svg, rows: int) -> None:
    """Draw the tile in strips as high as the block; one thread's elements stand out."""
    x, y, left, top, cell = 12, rows // 4, 36.0, 52.0, 4.75
    own = list(range(y, TILE, rows))
    side = TILE * cell
    picture.text(8, 12, f"thread ({x}, {y}) of 32×{rows}", font_weight="600")
    picture.text(8, 30, f"moves {len(own)} of 1024 elements")
    picture.rect(left, top, side, side, class_="empty")
    for row in range(0, TILE + 1, rows):
        picture.line(left, top + row * cell, left + side, top + row * cell, class_="grid")
    for row in own:
        at = left + x * cell - 1, top + row * cell - 1
        picture.rect(*at, cell + 2, cell + 2, fill=RED)
    for each in (0, 8, 16, 24, 31):
        middle = (each + 0.5) * cell
        picture.text(left + middle, top + side + 10, str(each), "middle", class_="soft")
        picture.text(left - 5, top + middle, str(each), "end", class_="soft")
    picture.text(left + side / 2, top + side + 28, "column of the tile", "middle")
    picture.text(10, top + side / 2, "row", "middle", transform=f"rotate(-90 10 {top + side / 2})")


def _draw_bars(picture: Svg, variants: list[Variant], chosen: int) -> None:
    """Draw PTX instructions per element, by kind, for each number of elements per thread."""
    names = {float(place): str(each.elements) for place, each in enumerate(variants)}
    across = Scale(-0.6, len(variants) - 0.4, ticks=tuple(names))
    axes = Axes(picture, (258, 52, 376, 152), across, Scale(0, 64, ticks=(0, 20, 40, 60)))
    axes.frame("elements of each thread", "PTX instructions for each element", names=names)
    picture.legend(214, 12, [(name, {"fill": color}) for name, color in reversed(_COLORS.items())])
    for place, each in enumerate(variants):
        _draw_bar(axes, place, each, each.elements == chosen)


def _draw_bar(axes: Axes, place: int, each: Variant, chosen: bool) -> None:
    picture, wide, left = axes.picture, 46, axes.x(place) - 23
    parts = {name: each.counts[name] / each.elements for name in _COLORS}
    told = ", ".join(f"{count:.3g} {name}" for name, count in parts.items())
    tip = f"{counted(each.elements, 'element')} per thread: {each.an_element:.4g} for each ({told})."
    position = ELEMENTS.index(each.elements)
    with picture.group(**button(f"bar {each.elements}", tip, {"elements": position}, chosen)):
        below = 0.0
        for name, color in _COLORS.items():
            y, height = axes.y(below + parts[name]), axes.y(below) - axes.y(below + parts[name])
            picture.rect(left, y, wide, height, fill=color)
            if height > 13:
                count = f"{parts[name]:.3g}"
                picture.text(left + wide / 2, y + height / 2, count, "middle", class_=ink_on(color))
            below += parts[name]
        top, bottom = axes.y(below), axes.y(0)
        if chosen:
            picture.rect(
                left - 3, top - 3, wide + 6, bottom - top + 3, fill="none", class_="line", stroke_width=2
            )
        weight = "700" if chosen else None
        picture.text(left + wide / 2, top - 11, f"{below:.4g}", "middle", font_weight=weight)


def _draw_law(picture: Svg, under_way: int, wait: int, gpu: Gpu, expected: tuple[Guessed, ...] = ()) -> None:
    """Draw GB/s over the bytes in flight: Little's law, the memory's peak, recorded and predicted rates."""
    peak, end = _peak(gpu), 256.0
    low, top = 0.0935 * peak, 1.205 * peak
    across = Scale(2, end, log=True, ticks=tuple(2.0**power for power in range(1, 9)))
    ticks = tuple(tick for tick in _TICKS if low < tick < top)
    axes = Axes(picture, (58, 292, 556, 120), across, Scale(low, top, log=True, ticks=ticks))
    axes.frame("KB of loads in flight per SM, at most", "GB/s read and written")
    a_kilobyte = 2 * gpu.multiprocessors * 1024 / wait  # GB/s for each KB
    start, knee = max(2.0, low / a_kilobyte), peak / a_kilobyte
    axes.line([(start, start * a_kilobyte), (knee, peak), (end, peak)], class_="line", stroke_width=1.5)
    x, rate = axes.x(under_way / 1024), possible(under_way, wait, gpu)
    right = x - 14 if x > axes.x(100) else axes.x(end)
    picture.text(right, axes.y(peak) - 10, f"memory's peak: {peak:,.0f}", "end", class_="halo")
    picture.line(x, 292, x, 412, stroke=RED, stroke_width=1.5, stroke_dasharray="2 3")
    if expected:
        _draw_guessed(axes, expected, low)
    for kilobytes, measured in in_flight() if gpu == _GPU else ():
        if kilobytes >= across.low:
            _draw_in_flight(axes, kilobytes, measured)
    if gpu == _GPU:
        picture.text(axes.x(2) + 8, 398, "green: a copy with so many KB all the time", class_="soft halo")
    for point in reached() if gpu == _GPU else ():
        _draw_reached(axes, point)
    axes.point(under_way / 1024, rate, size=6, fill=RED)
    picture.add("circle", cx=x, cy=axes.y(rate), r=10, class_="line", stroke_width=2)
    told = f"at most {rate:,.0f}, if a load takes {wait} ns"
    picture.text(axes.x(end), 266, told, "end", font_weight="600")


def _draw_guessed(axes: Axes, expected: tuple[Guessed, ...], low: float) -> None:
    """Draw predicted rates: a dashed line, and at each number of elements what a pointer shows."""
    inside = [each for each in expected if each.rate > low and each.kilobytes <= 256]
    line = [(each.kilobytes, each.rate) for each in inside]
    axes.line(line, stroke=PURPLE, stroke_width=2, stroke_dasharray="7 4")
    end, label = axes.x(256), expected[0].source
    axes.picture.text(end, 398, label, "end", class_="halo")
    start = end - 12 - 6.6 * len(label)
    axes.picture.line(start - 36, 398, start, 398, stroke=PURPLE, stroke_width=2, stroke_dasharray="7 4")
    for each in inside:
        positions = {"elements": ELEMENTS.index(each.elements)}
        with axes.picture.group(**button(f"predicted {each.elements}", _guess(each), positions, False)):
            x, y = axes.x(each.kilobytes), axes.y(each.rate)
            axes.picture.add("circle", cx=x, cy=y, r=2.5, fill=PURPLE)
            axes.picture.add("circle", cx=x, cy=y, r=9, fill="transparent")


def _draw_in_flight(axes: Axes, kilobytes: float, rate: float) -> None:
    """Draw what a copy reached that has these bytes in flight all the time."""
    tip = f"A copy with {kilobytes:g} KB in flight in each SM all the time: {rate:,.0f} GB/s, measured."
    with axes.picture.group(data_tip=tip, data_link=f"flight{kilobytes:g}", tabindex=0):
        axes.point(kilobytes, rate, size=4, fill=GREEN)
        axes.picture.add("circle", cx=axes.x(kilobytes), cy=axes.y(rate), r=9, fill="transparent")


def _draw_reached(axes: Axes, point: Reached) -> None:
    """Draw what an H200 reached; a click chooses the elements of that rung."""
    name = f"{point.rung}, {point.size} bytes"
    tip = f"{name}: an H200 reached {point.rate:,.0f} GB/s with {point.kilobytes:g} KB in flight, at most."
    elements = ELEMENTS.index(RECORDED[point.rung])
    positions = {"loop": 0, "elements": elements, "size": list(DTYPES).index(point.size)}
    x, y = axes.x(point.kilobytes), axes.y(point.rate)
    right, down, anchor = _NAMES[point.rung, point.size]
    with axes.picture.group(**button(name, tip, positions, False)):
        face: dict[str, object] = {"fill": BLUE} if point.size == 4 else {"class_": "paper"}
        axes.point(point.kilobytes, point.rate, _MARKS[point.rung], 6, stroke=BLUE, stroke_width=1.5, **face)
        axes.picture.add("circle", cx=x, cy=y, r=11, fill="transparent")
        axes.picture.text(x + right, y + down, name, anchor, class_="halo")


# Sentences.


def _instructions(chosen: Variant, loop: str) -> str:
    moves, index, control = (chosen.counts[name] / chosen.elements for name in (MOVES, INDEX, CONTROL))
    loops = "" if chosen.elements == 1 else f", loops {loop}"
    return (
        f"{counted(chosen.elements, 'element')} per thread{loops}: {chosen.an_element:.4g} PTX instructions "
        f"per element. {moves:.3g} move it, {index:.3g} are index arithmetic, {control:.3g} guards and jumps."
    )


def _guess(each: Guessed) -> str:
    return (
        f"{counted(each.elements, 'element')} per thread, {each.source}: {each.rate:,.0f} GB/s "
        f"({each.low:,.0f} to {each.high:,.0f}); the lowest limit is {each.limit}."
    )


def _room(chosen: Variant, gpu: Gpu) -> str:
    held = chosen.held(gpu)
    return f"{held.launch__registers_per_thread} registers per thread: {held}, {chosen.threads(gpu)} threads."


def _little(chosen: Variant, loads: int, size: int, wait: int, gpu: Gpu) -> str:
    """Write Little's law with this choice's numbers."""
    threads, peak = chosen.threads(gpu), _peak(gpu)
    under_way = threads * loads * size
    rate, registers = possible(under_way, wait, gpu), chosen.held(gpu).launch__registers_per_thread
    end = "which is the memory's peak" if rate == peak else f"of the memory's {peak:,.0f}"
    many = f" (At most: each load in flight holds a register, and a thread has {registers}.)"
    return (
        f"Little's law: {threads} threads × {counted(loads, 'load')} × {size} bytes are "
        f"{under_way / 1024:g} KB in flight in an SM. If that takes {wait} ns, {gpu.multiprocessors} SMs "
        f"read and write at most {rate:,.0f} GB/s, {end}.{many if loads > 4 else ''}"
    )
