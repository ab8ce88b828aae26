"""The whole climb of the product in one picture: from three loops in C to tensor cores, beside the peaks.

All are products of N = 4096. The CPU's times are those of data/cpu/products.csv, the GPU's of
data/h200/bench.csv; a bar says where it comes from.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor, log10
from typing import Any

import pandas as pd

from labkit import cpu, records
from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, GREEN, GREY, SKY, Svg
from simt.common.occupancy import gpu
from simt.common.text import counted

N = 4096
_WIDTH, _LEFT, _TOP, _ACROSS, _ROW = 640, 166, 28.0, 320, 21

# Rungs of the course: what the picture calls them, and the kernel's name in the records.
_GPU = (
    ("naive CUDA", "naive"),
    ("tiled in shared memory", "tiled"),
    ("register tile", "register_tile"),
    ("tuned", "tuned"),
    ("cuBLAS", "cublas"),
)
_TENSOR = (
    ("wmma, the first rung", "wmma"),
    ("wgmma, fed by TMA", "wgmma"),
    ("tuned: TMA stores", "tma_store"),
    ("cuBLAS", "cublas"),
)
_ONE, _LIBRARY = "cpu_register_tile", (cpu.BLAS, "cublas")


@dataclass(frozen=True)
class Bar:
    """A rate in 10^9 operations per second, with its name and origin; `peak`: what can be done at most."""

    name: str
    rate: float
    origin: str
    library: bool = False
    peak: bool = False

    @property
    def tip(self) -> str:
        """Say it in a sentence."""
        return f"{self.name}: {self.rate:,.4g} GFLOP/s ({self.origin})."


@dataclass(frozen=True)
class Group:
    """Bars that belong together, on one machine and in one precision, the last one its peak."""

    title: str
    colour: str
    bars: tuple[Bar, ...]


def climb(here: pd.DataFrame | None = None) -> Svg:
    """Draw the rates of the products of N = 4096, from three loops in C to tensor cores, with their peaks.

    `here` may have rows of `labkit.cpu.ladder([4096])`: then these are the CPU's, beside the peak of this
    machine's processor, and the recorded ones are left out. Raises ValueError for other sizes.
    """
    return draw(groups(here))


def groups(here: pd.DataFrame | None = None) -> tuple[Group, ...]:
    """Return what `climb` draws."""
    return (_cpu() if here is None else _here(here), *_gpu_groups())


@lru_cache
def _cpu() -> Group:
    """Return the recorded rungs of the CPU."""
    runs = records.recorded("cpu")
    times, peaks = runs[runs.quantity == "time"], runs[runs.quantity == "performance"]
    threads = max(map(_threads, peaks.note))
    names = {
        ("cpu_naive", 1, True): "three loops, -O0",
        ("cpu_naive", 1, False): "three loops, -O3",
        ("cpu_loop_order", 1, False): "loop order, -O3",
        (_ONE, 1, False): "AVX, register tile",
        ("cpu_packed", 1, False): "packed panels",
        ("cpu_threads", threads, False): f"{threads} threads",
        (cpu.BLAS, threads, False): f"OpenBLAS, {threads} threads",
    }
    known = {
        (kernel, _threads(note), "-O0" in note): Bar("", _rate(value), source, kernel in _LIBRARY)
        for kernel, note, value, source in _rows(times, "kernel", "note", "value", "source")
    }
    bars = [replace(known[key], name=name) for key, name in names.items()]
    source = str(runs.source.iloc[0])
    top = Bar(f"peak, {threads} cores", float(peaks.value.max()), source, peak=True)
    return Group(f"CPU, float32; {source}", SKY, (*bars, top))


def _here(times: pd.DataFrame) -> Group:
    """Return the rungs of the CPU that were timed on this machine."""
    if set(times.n) != {N}:
        raise ValueError(
            f"here has N = {sorted(map(int, set(times.n)))}. Time N = {N}: labkit.cpu.ladder([{N}])."
        )
    bars, most = [], 1
    for kernel, value, source in _rows(times, "kernel", "value", "source"):
        threads = int(re.findall(r"(\d+) threads?$", source)[0])
        name = f"{kernel}, {counted(threads, 'thread')}" if threads > 1 else kernel
        bars.append(Bar(name, _rate(value), source, kernel in _LIBRARY))
        most = max(most, threads)
    source = f"measured here: {cpu.cpu_name()}"
    top = Bar(f"peak, {counted(most, 'thread')}", cpu.peak_gflops(most), source, peak=True)
    return Group(f"CPU, float32; {source}", SKY, (*bars, top))


def _rows(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these cells of each row."""
    yield from zip(*(frame[column] for column in columns), strict=True)


@lru_cache
def _gpu_groups() -> tuple[Group, Group]:
    """Return the recorded rungs of the GPU: in float32, and on tensor cores in float16."""
    runs = records.recorded("h200", "time", n=N, m=N, k=N)
    source = str(runs.source.iloc[0])
    board = gpu(str(runs.machine.iloc[0]))
    assert board.peak_gflop_s is not None and board.boost_mhz and board.tensor_fp16_flop_per_clock
    tensor = board.per_second(board.tensor_fp16_flop_per_clock, board.boost_mhz) / 1e9
    found = []
    for title, colour, problem, dtype, rungs, peak in (
        ("float32", BLUE, "matmul", "float32", _GPU, board.peak_gflop_s),
        ("tensor cores, float16", GREEN, "tensor_matmul", "float16", _TENSOR, tensor),
    ):
        of = runs[(runs.problem == problem) & (runs.dtype == dtype)]
        least = of.groupby("kernel").value.min()
        bars = [Bar(name, _rate(least[kernel]), source, kernel in _LIBRARY) for name, kernel in rungs]
        top = Bar("peak", peak, "computed from the data sheet, at the boost clock", peak=True)
        found.append(Group(f"GPU, {title}; {source}", colour, (*bars, top)))
    return found[0], found[1]


def draw(shown: Sequence[Group]) -> Svg:
    """Draw groups of bars on one logarithmic axis."""
    title = _finding(shown)
    rates = [bar.rate for group in shown for bar in group.bars]
    powers = range(min(-1, floor(log10(min(rates)))), 7)
    scale = Scale(10.0 ** powers[0], max(2e6, *rates), log=True, ticks=tuple(10.0**each for each in powers))
    bottom = _TOP + _ROW * (len(rates) + len(shown)) + 8
    told = "; ".join(bar.tip for group in shown for bar in group.bars)
    picture = Svg(_WIDTH, bottom + 46, f"Bars of GFLOP/s on a logarithmic axis. {title}. {told}")
    axes = Axes(picture, (_LEFT, _TOP, _ACROSS, bottom - _TOP), scale, Scale(0, 1))
    picture.title(title)
    for value in scale.marks():
        picture.line(axes.x(value), _TOP, axes.x(value), bottom, class_="grid")
        picture.text(axes.x(value), bottom + 12, _decade(value), "middle", class_="soft")
    y, best = _TOP, 0.0
    for group in shown:
        y, best = _draw_group(axes, group, y, best)
    label = f"GFLOP/s, 10⁹ operations per second; N = {N} (in brackets: times the best rung above)"
    picture.text(_WIDTH - 8, bottom + 32, label, "end")
    return picture


def _draw_group(axes: Axes, group: Group, top: float, best: float) -> tuple[float, float]:
    """Draw a group below `top`; return where it ends, and the best rate of a rung, which was `best`."""
    picture = axes.picture
    picture.text(8, top + _ROW / 2 + 2, group.title, class_="soft halo", font_size=11)
    y = top + _ROW
    for bar in group.bars:
        length, middle = axes.x(bar.rate) - _LEFT, y + _ROW / 2
        is_rung = not (bar.peak or bar.library)
        with picture.group(data_tip=bar.tip, data_link=f"{group.title} {bar.name}".replace(" ", "-")):
            picture.rect(0, y, _WIDTH, _ROW, fill="transparent")
            picture.text(_LEFT - 8, middle, bar.name, "end")
            if bar.peak:
                picture.rect(_LEFT, y + 3, length, _ROW - 6, class_="line", stroke_dasharray="5 3")
            else:
                picture.rect(_LEFT, y + 3, length, _ROW - 6, fill=GREY if bar.library else group.colour)
            gain = f" (× {_number(bar.rate / best, 2)})" if best and is_rung else ""
            told = f"{_number(bar.rate)}{gain}, {bar.origin.partition(':')[0].partition(' from')[0]}"
            picture.text(_LEFT + length + 6, middle, told, class_="halo", font_size=11)
        best = max(best, bar.rate) if is_rung else best
        y += _ROW
    return y, best


def _decade(value: float) -> str:
    """Write a power of ten: 0.1, 1, 10, 10²."""
    power = round(log10(value))
    return f"{value:g}" if power < 2 else f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[power]}"


def _number(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def _rate(ms: float) -> float:
    """Return 10^9 operations per second of a product that takes so many milliseconds."""
    return 2 * N**3 / float(ms) / 1e6


def _threads(note: str) -> int:
    return int(note.partition(";")[0].partition("=")[2])


def _finding(shown: Sequence[Group]) -> str:
    """Compare the slowest bar with the fastest that is no library's."""
    ours = [bar for group in shown for bar in group.bars if not (bar.peak or bar.library)]
    times = max(bar.rate for bar in ours) / min(bar.rate for bar in ours)
    told = f"{times / 1e6:.1f} million" if times >= 1e6 else f"{times:,.0f}"
    return f"From three loops in float32 to tensor cores in float16: {told} times the rate"
