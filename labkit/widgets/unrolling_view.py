"""The explorer of unrolling: what several elements per thread save, and how many bytes they keep in flight.

The kernel is transpose/4_unrolled with 32 / ROWS elements per thread, compiled for each choice. Instructions
are counted in its PTX, registers are the assembler's for an H200, and the rates beside them are recorded.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from labkit import kernels, simt
from labkit.core import occupancy
from labkit.core.occupancy import Occupancy
from labkit.core.text import counted
from labkit.figures.style import Plot
from labkit.kernels.problem import C_TYPES
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running
from labkit.model import instructions
from labkit.model.instructions import CONTROL, INDEX, MOVES
from labkit.widgets.explorer import Explorer, View, menu, plain, selection

TILE = 32
ELEMENTS = (1, 2, 4, 8, 16)
UNROLLED, KEPT = "unrolled", "kept"
DTYPES = {4: "float32", 8: "float64"}
RECORDED = {"copy": 1, "padded": 1, "unrolled": 4}  # rungs with an H200's time, and their elements a thread
SIDE = 8192  # of the matrix that was timed
THREADS = 2048  # that an SM of the H200 holds of each of these rungs
WAITS = range(200, 2001, 100)  # nanoseconds
_GPU = occupancy.gpu("H200")
_PEAK = float(_GPU.bandwidth_gb_s or np.inf)
_COLORS = {MOVES: "#0072B2", INDEX: "#E69F00", CONTROL: "#CC79A7"}
_CHOSEN = "#D55E00"
_MARKS = {"copy": "P", "padded": "D", "unrolled": "^"}


def unrolling() -> Explorer:
    """Show what several elements per thread save, and how many bytes they keep in flight.

    A menu chooses the loop; sliders set the elements per thread, their size, and how long a load is in
    flight.
    """
    controls = {
        "loop": menu("loop", plain((UNROLLED, KEPT))),
        "elements": selection("elements", plain(ELEMENTS), 1),
        "size": selection("bytes each", plain(DTYPES), 4),
        "wait": selection("wait (ns)", plain(WAITS), 1100),
    }
    return Explorer(unrolling_view, controls)


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

    @cached_property
    def held(self) -> Occupancy:
        """Return what an SM of an H200 holds of it."""
        threads = TILE * TILE // self.elements
        return occupancy.occupancy(_GPU, threads, self.kernel.num_regs, self.kernel.shared_size_bytes)

    @property
    def threads(self) -> int:
        """Return the threads that an SM holds."""
        return self.held.blocks * self.held.threads_per_block


def unrolling_view(loop: str, elements: int, size: int, wait: int) -> View:
    """Draw the rows that a thread moves, its instructions, and Little's law beside what an H200 has reached.

    `loop` is unrolled or kept, `size` is that of an element in bytes, and `wait` the nanoseconds that a load
    is in flight.
    """
    chosen = variant(loop, elements, size)
    loads = elements if loop == UNROLLED else 1
    figure = Plot(figsize=(11.5, 3.9))
    # placed by hand: a search for room takes longer than all the rest
    tile, bars, law = (figure.add_axes((left, 0.19, width, 0.65)) for left, width in _PLACES)
    _draw_tile(tile, TILE // elements)
    _draw_bars(bars, [variant(loop, each, size) for each in ELEMENTS], elements)
    _draw_law(law, chosen.threads * loads * size, wait)
    source = f"instructions counted in PTX; rates {reached()[0].source}, {SIDE} × {SIDE}"
    figure.text(0.01, 0.02, source, fontsize=8, color="0.35")
    lines = _instructions(chosen, loop), _room(chosen), _little(chosen, loads, size, wait)
    return View((figure,), "\n".join(lines))


_PLACES = ((0.045, 0.22), (0.33, 0.24), (0.64, 0.35))  # left and width of the three panels


@lru_cache(maxsize=64)
def variant(loop: str, elements: int, size: int) -> Variant:
    """Compile the kernel with so many elements per thread, its loops unrolled or kept."""
    code = kernels.source("transpose/4_unrolled")
    if loop == KEPT:
        code = code.replace("#pragma unroll", "#pragma unroll 1")
    options = (f"-DROWS={TILE // elements}", f"-DDTYPE={C_TYPES[DTYPES[size]]}")
    kernel = simt.RawModule(code=code, options=options).get_function("transpose")
    return Variant(elements, kernel, instructions.per_thread(kernel, elements))


def possible(under_way: float, wait: float) -> float:
    """Return the GB/s that an H200 reads and writes with `under_way` bytes per SM in flight for `wait` ns.

    Little's law: what is in flight is its rate times how long it is in flight. What is read is written too.
    The memory's peak is the most.
    """
    return min(2 * _GPU.multiprocessors * under_way / wait, _PEAK)


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


# Drawing.


def _draw_tile(axes: Axes, rows: int) -> None:
    """Draw the tile in strips as high as the block; one thread's elements stand out."""
    x, y = 12, rows // 4
    own = np.arange(y, TILE, rows)
    axes.set(xlim=(-0.5, TILE - 0.5), ylim=(TILE - 0.5, -0.5), aspect="equal", facecolor="0.93")
    axes.hlines(np.arange(rows, TILE, rows) - 0.5, -0.5, TILE - 0.5, color="0.3", linewidth=0.8)
    axes.scatter(np.full(len(own), x), own, marker="s", s=18, color=_CHOSEN)
    title = f"thread ({x}, {y}) of a block of 32×{rows} moves\n{len(own)} of the 1024 elements of a tile"
    _titled(axes, title, "column of the tile", "row of the tile")
    axes.set(xticks=(0, 8, 16, 24, 31), yticks=(0, 8, 16, 24, 31))


def _draw_bars(axes: Axes, variants: list[Variant], chosen: int) -> None:
    """Draw PTX instructions per element, by kind, for each number of elements per thread."""
    places, bottom = range(len(variants)), np.zeros(len(variants))
    for name, color in _COLORS.items():
        heights = np.array([each.counts[name] / each.elements for each in variants])
        bars = axes.bar(places, heights, bottom=bottom, color=color, label=name)
        for bar, each in zip(bars, variants, strict=True):
            bar.set_alpha(1 if each.elements == chosen else 0.4)
        bottom += heights
    for place, height in zip(places, bottom, strict=True):
        axes.text(place, height + 0.6, f"{height:.4g}", ha="center", fontsize=9)
    axes.set_xticks(places, [str(each.elements) for each in variants])
    axes.set_ylim(0, 66)
    legend = axes.legend(frameon=False, fontsize=8, loc="upper right", reverse=True)
    for patch in legend.get_patches():
        patch.set_alpha(1)
    now, first = bottom[ELEMENTS.index(chosen)], bottom[0]
    title = f"{chosen} a thread: {now:.4g} PTX instructions\nan element; 1 a thread: {first:.4g}"
    _titled(axes, title, "elements a thread", "PTX instructions an element")


def _draw_law(axes: Axes, under_way: int, wait: int) -> None:
    """Draw GB/s over the bytes in flight: Little's law, the memory's peak, and recorded rates."""
    rate, places = possible(under_way, wait), np.geomspace(2**11, 2**18, 80)
    law = [possible(each, wait) for each in places]
    axes.plot(places / 1024, law, color="0.4", label=f"possible with {wait} ns", zorder=1)
    for point in reached():
        at, name = (point.kilobytes, point.rate), f"{point.rung}, {point.size} bytes"
        face = "#0072B2" if point.size == 4 else "white"
        axes.scatter(*at, marker=_MARKS[point.rung], s=50, edgecolor="#0072B2", color=face, zorder=3)
        (shift, side) = ((-8, 7), "right") if point.rung == "copy" else ((7, -11), "left")
        if name == "unrolled, 8 bytes":  # below it stands the name of its neighbour
            shift = (8, -3)
        axes.annotate(name, at, shift, textcoords="offset points", fontsize=8, ha=side)
    axes.axvline(under_way / 1024, color=_CHOSEN, linestyle=":", zorder=0)
    axes.scatter(under_way / 1024, rate, marker="o", s=70, color=_CHOSEN, label="your choice", zorder=2)
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log", base=2)
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set(xlim=(2, 256), ylim=(400, 8000), yticks=(500, 1000, 2000, 4000, 8000))
    axes.legend(framealpha=0.9, edgecolor="none", fontsize=8, loc="lower right")
    axes.grid(alpha=0.3)
    held = f"{under_way / 1024:g} KB on their way for {wait} ns:"
    title = f"{held}\nat most {rate:,.0f} GB/s (blue: an H200 reached)"
    _titled(axes, title, "KB of loads on their way in an SM, at most", "GB/s read and written")


def _titled(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, fontsize=9.5, loc="left", y=1)  # a given y spares a search for room
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=9)


# Sentences.


def _instructions(chosen: Variant, loop: str) -> str:
    moves, index, control = (chosen.counts[name] / chosen.elements for name in (MOVES, INDEX, CONTROL))
    loops = "" if chosen.elements == 1 else f", loops {loop}"
    return (
        f"{counted(chosen.elements, 'element')} a thread{loops}: {chosen.an_element:.4g} PTX instructions "
        f"an element. {moves:.3g} move it, {index:.3g} are index arithmetic, {control:.3g} guards and jumps."
    )


def _room(chosen: Variant) -> str:
    return f"{chosen.kernel.num_regs} registers a thread: {chosen.held}, {chosen.threads} threads."


def _little(chosen: Variant, loads: int, size: int, wait: int) -> str:
    """Write Little's law with this choice's numbers."""
    under_way = chosen.threads * loads * size
    rate, registers = possible(under_way, wait), chosen.kernel.num_regs
    end = "which is the memory's peak" if rate == _PEAK else f"of the memory's {_PEAK:,.0f}"
    many = f" (At most: each load on its way holds a register, and a thread has {registers}.)"
    return (
        f"Little's law: {chosen.threads} threads × {counted(loads, 'load')} × {size} bytes are "
        f"{under_way / 1024:g} KB on their way in an SM. If that takes {wait} ns, {_GPU.multiprocessors} SMs "
        f"read and write at most {rate:,.0f} GB/s, {end}.{many if loads > 4 else ''}"
    )
