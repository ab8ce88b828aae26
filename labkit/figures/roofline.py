"""The roofline: how fast each rung is, and how far below what memory, caches and arithmetic allow.

A kernel that does I operations per byte can do no more than I x bandwidth, nor more than the peak (Williams,
Waterman, Patterson 2009, "Roofline"). Bytes differ by level of memory, and so does I. So a picture shows one
level: its bytes below, and its roof above, as in the hierarchical roofline (Yang, Kurth, Williams 2020,
"Hierarchical Roofline Analysis for GPUs"). Over other bytes than its own a roof bounds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import atan2, degrees, isnan
from textwrap import wrap

import pandas as pd

from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, GREEN, RED, Svg, button
from labkit.kernels.problem import Problem, problem_of
from labkit.ladder.running import row_dicts
from labkit.model.roofline import DRAM, L1_BYTES, L1_REQUESTS, SHARED, count_sectors, intensities
from labkit.records.tables import sizes_of

__all__ = ["Roof", "count_sectors", "intensities", "roofline"]

_WIDTH, _HEIGHT = 640, 478
_LEFT, _ACROSS, _DOWN = 52, 400, 356  # of the axes
_COLUMN = _LEFT + _ACROSS + 14  # where the rungs' names begin
_NAME = 16  # room for a name downwards
_FULL_LINE = 96  # letters across the picture
# What stands below the axis, by level.
_BELOW = {
    L1_BYTES: "FLOP per byte asked of the L1 caches (loads and stores: sectors × 32 B)",
    L1_REQUESTS: "FLOP per byte that the L1 caches could deliver (requests: clocks × 128 B)",
    SHARED: "FLOP per byte that shared memory could deliver (its clocks × 128 B)",
    DRAM: "FLOP per byte that comes from the device memory, or goes there",
}
_ROOF = {L1_BYTES: "L1 caches", L1_REQUESTS: "L1 caches", SHARED: "shared memory", DRAM: "device memory"}


def roofline(
    times: pd.DataFrame, counters: pd.DataFrame, roofs: pd.DataFrame, chosen: str = "", untimed: str = ""
) -> Svg:
    """Draw rungs timed at one size and dtype under the peak of their GPU and the roof of its L1 caches.

    Both axes are logarithmic.

    The kernel `chosen` stands out, or otherwise the fastest of ours. The kernel `untimed`, where it was
    counted, is a line up to the roof.

    All three tables have the columns of `records.load`, and rows other than these are left out: `times` holds
    the times; `counters` the sectors of each rung at any one size, from Nsight Compute or `count_sectors`;
    `roofs` the rates of `ceilings.table()`. A kernel that was not counted, such as cublas, is a line at the
    edge, and where the rate of the L1 caches is not known, as on Pascal, there is the peak alone. The plot is
    not for tensor cores, whose peak differs. Raises ValueError for times of several sizes or dtypes, for
    several counts of a kernel or none of any, for roofs without a peak of that dtype, and for a kernel
    `chosen` that was not both timed and counted.
    """
    return draw(scene_of(times, counters, roofs), chosen, untimed=untimed)


@dataclass(frozen=True)
class Roof:
    """The GPU's highest rate, in 10^12 operations or bytes per second; None: there is no figure."""

    name: str
    unit: str
    theoretical: float | None
    measured: float | None

    @property
    def lines(self) -> list[tuple[str, float]]:
        """Return the figures that exist, each with the dashes of its line."""
        both = (("6 4", self.theoretical), ("", self.measured))
        return [(dashes, rate) for dashes, rate in both if rate is not None]

    @property
    def highest(self) -> float:
        """Return the theoretical rate if there is one, which is above what was measured."""
        return max(rate for _, rate in self.lines)

    def __str__(self) -> str:
        both = (("theoretical", self.theoretical), ("measured", self.measured))
        figures = ", ".join(f"{word} {rate:.3g}" for word, rate in both if rate is not None)
        return f"{self.name}: {figures} {self.unit}"


@dataclass(frozen=True)
class Rung:
    """A kernel's rate in 10^12 operations per second, and its operations per byte; NaN: not known."""

    kernel: str
    rate: float
    intensity: float


@dataclass(frozen=True)
class Scene:
    """What a roofline shows: rungs with rising rates, every intensity that was counted, and the roofs.

    Bytes are those of one `level`, and `slope` is its roof, where its rate is known.
    """

    problem: Problem
    rungs: tuple[Rung, ...]
    intensity: dict[str, float]
    peak: Roof
    slope: Roof | None
    source: str
    level: str = L1_BYTES

    @property
    def ours(self) -> tuple[Rung, ...]:
        """Return the rungs that were counted."""
        return tuple(rung for rung in self.rungs if not isnan(rung.intensity))

    @property
    def most(self) -> float:
        """Return the operations per byte of a kernel that asks for each element once."""
        return self.problem.flops / self.problem.bytes

    @property
    def ridge(self) -> float:
        """Return the operations per byte at which the roofs meet; 0 if there is no slope."""
        return self.peak.highest / self.slope.highest if self.slope else 0.0

    @property
    def window(self) -> tuple[Scale, Scale]:
        """Return scales across and downwards on which everything can be seen."""
        left = min(rung.intensity for rung in self.ours)
        left = min(left, self.ridge or left) / 2
        low = min(rung.rate for rung in self.rungs) / 3
        return Scale(left, 1.6 * self.most, log=True), Scale(low, 2 * self.peak.highest, log=True)

    def roof_at(self, intensity: float) -> float:
        """Return the highest rate of a kernel with so many operations per byte."""
        if not self.slope:
            return self.peak.highest
        return min(self.peak.highest, intensity * self.slope.highest)


@dataclass(frozen=True)
class Choice:
    """What an explorer adds: the rungs in its control's order, the lowest limit of the chosen one, scales."""

    kernels: Sequence[str]
    limit: str
    rate: float
    window: tuple[Scale, Scale]


def scene_of(times: pd.DataFrame, counters: pd.DataFrame, roofs: pd.DataFrame) -> Scene:
    """Read what `roofline` draws from its tables; raises as it does."""
    timed, problem = _timed(times)
    intensity = intensities(counters[counters.problem == problem.family])
    rungs = _rungs(timed, problem, intensity)
    if all(isnan(rung.intensity) for rung in rungs):
        raise ValueError(
            f"no sectors were counted of {', '.join(timed.kernel)}, only of {', '.join(intensity) or 'none'}."
        )
    source = "; ".join(dict.fromkeys(name for each in (timed, counters, roofs) for name in each.source))
    peak, slope, _ = _roofs(roofs, problem.dtype)
    return Scene(problem, rungs, intensity, peak, slope, source)


def scene_at(
    level: str, times: pd.DataFrame, intensity: dict[str, float], roofs: pd.DataFrame, source: str
) -> Scene:
    """Return a scene at a level of memory, with the operations per byte that kernels have there."""
    timed, problem = _timed(times)
    peak, caches, memory = _roofs(roofs, problem.dtype)
    slope = memory if level == DRAM else caches
    slope = replace(slope, name=_ROOF[level]) if slope else None
    told = "; ".join(dict.fromkeys([*timed.source, *roofs.source, source]))
    return Scene(problem, _rungs(timed, problem, intensity), intensity, peak, slope, told, level)


def draw(scene: Scene, chosen: str = "", choice: Choice | None = None, untimed: str = "") -> Svg:
    """Draw a scene as `roofline` does; with a `choice` a click on a rung chooses it, and it has no title."""
    shown = _shown(scene, chosen, bool(choice))
    finding = _finding(scene, shown)
    alt = f"Roofline: {finding}."
    if choice:
        alt += f" Its lowest limit, {choice.limit}, is {choice.rate:.3g} {scene.peak.unit}."
    picture = Svg(_WIDTH, _HEIGHT - (40 if choice else 0), alt)
    if not choice:
        picture.title(_reached(scene, shown))
    top = 26 if choice else 43
    axes = Axes(picture, (_LEFT, top, _ACROSS, _DOWN), *(choice.window if choice else scene.window))
    axes.frame(_BELOW[scene.level], scene.peak.unit)
    if scene.level in (L1_BYTES, DRAM):
        _draw_once(axes, scene)
    _draw_roofs(axes, scene, brief=choice is not None)
    if untimed in scene.intensity:
        _draw_untimed(axes, scene, untimed)
    _draw_rungs(axes, scene, shown, choice)
    if choice and not isnan(shown.intensity):
        _draw_limit(axes, scene, shown, choice)
    told = f"Solid: measured, dashed: theoretical. {scene.source}"
    if untimed and untimed not in scene.intensity:
        told = f"No line for {untimed}: it neither loads nor stores yet. {told}"
    for number, line in enumerate(wrap(told, _FULL_LINE)):
        picture.text(8, top + _DOWN + 54 + 15 * number, line, class_="soft", font_size=11)
        picture.height = max(picture.height, top + _DOWN + 64 + 15 * number)
    return picture


def _timed(times: pd.DataFrame) -> tuple[pd.DataFrame, Problem]:
    """Return the times of kernels that compute something, and their problem."""
    timed = times[times.quantity == "time"]
    timed = timed.loc[[bool(problem_of(row).flops) for row in row_dicts(timed)]]
    problems = timed[["problem", *sizes_of(timed), "dtype"]].drop_duplicates()
    if len(problems) != 1:
        raise ValueError(
            f"the frame has times of {len(problems)} matrix sizes and dtypes; choose one: "
            "frame[(frame.n == 4096) & (frame.dtype == 'float32')]."
        )
    return timed, problem_of(row_dicts(problems)[0])


def _rungs(timed: pd.DataFrame, problem: Problem, intensity: dict[str, float]) -> tuple[Rung, ...]:
    """Return the timed rungs with rising rates."""
    rungs = [
        Rung(str(kernel), problem.gflops(ms / 1e3) / 1e3, intensity.get(str(kernel), float("nan")))
        for kernel, ms in zip(timed.kernel, timed.value, strict=True)
    ]
    return tuple(sorted(rungs, key=lambda rung: rung.rate))


def _roofs(roofs: pd.DataFrame, dtype: str) -> tuple[Roof, Roof | None, Roof | None]:
    """Read from rows of `ceilings.table` the peak of the dtype, and the rates of L1 caches and memory."""

    def figure(quantity: str, **wanted: str) -> float | None:
        rows = roofs[roofs.quantity == quantity]
        for column, value in wanted.items():
            rows = rows[rows[column] == value]
        return None if rows.empty else float(rows.value.iloc[0]) / 1e3

    peak = Roof(
        "multiply-adds",
        "TOP/s" if dtype == "int32" else "TFLOP/s",
        figure("peak_performance", dtype=dtype),
        figure("performance", dtype=dtype, kernel="peak"),
    )
    if not peak.lines:
        raise ValueError(
            f"the roofs have no figure of multiply-adds ({dtype}): take those of ceilings.table()."
        )
    caches = Roof("L1 caches", "TB/s", figure("peak_l1_bandwidth"), None)
    memory = Roof("device memory", "TB/s", figure("peak_bandwidth"), figure("bandwidth", kernel="memcpy"))
    return peak, caches if caches.lines else None, memory if memory.lines else None


# Drawing.


def _draw_roofs(axes: Axes, scene: Scene, brief: bool) -> None:
    """Draw each roof, with its name above the higher line; a brief one leaves room in an explorer."""
    (left, right), low = (axes.x_scale.low, axes.x_scale.high), axes.y_scale.low
    peak = scene.peak
    look: dict[str, object] = {"class_": "line", "stroke_width": 1.3}
    ridge = max(left, scene.ridge)
    for dashes, rate in peak.lines:
        axes.line([(ridge, rate), (right, rate)], stroke_dasharray=dashes or None, **look)
    axes.picture.text(axes.x(ridge) + 4, axes.y(peak.highest) - 10, str(peak), class_="halo")
    if not (roof := scene.slope):
        return
    for dashes, rate in roof.lines:
        start = max(left, low / rate)
        points = [(start, start * rate), (peak.highest / rate, peak.highest)]
        axes.line(points, stroke_dasharray=dashes or None, **look)
    start = max(left, low / roof.highest)
    x, y = axes.x(start), axes.y(start * roof.highest)
    end = axes.x(peak.highest / roof.highest), axes.y(peak.highest)
    slope = degrees(atan2(end[1] - y, end[0] - x))  # along the line
    name = f"{roof.name}: {roof.highest:.3g} {roof.unit}" if brief else str(roof)
    tip = f"{roof}." if brief else None
    with axes.picture.group(transform=f"translate({x:.1f} {y:.1f}) rotate({slope:.2f})"):
        axes.picture.text(14, -10, name, class_="halo", data_tip=tip, tabindex=0 if brief else None)


def _draw_once(axes: Axes, scene: Scene) -> None:
    """Mark the intensity of a kernel that asks for each element once."""
    x, (_, top, _, height) = axes.x(scene.most), axes.place
    axes.picture.line(x, top, x, top + height, stroke_dasharray="2 4")
    _name_below(axes, x, 12, f"each element once: {scene.most:.0f} FLOP/B")


def _draw_untimed(axes: Axes, scene: Scene, kernel: str) -> None:
    """Draw a kernel that was counted only as a line up to the roof."""
    x, roof = scene.intensity[kernel], scene.roof_at(scene.intensity[kernel])
    axes.line([(x, axes.y_scale.low), (x, roof)], stroke=GREEN, stroke_dasharray="6 3")
    _name_below(axes, axes.x(x), 30, f"{kernel}: {x:.3g} FLOP/B", font_weight="600")


def _name_below(axes: Axes, x: float, above: float, text: str, **look: object) -> None:
    """Name an upright line near its lower end, `above` the axis, where there is room."""
    left, top, width, height = axes.place
    place, anchor = (x - 6, "end") if x > left + width / 2 else (x + 6, "start")
    axes.picture.text(place, top + height - above, text, anchor, class_="halo", **look)


def _draw_limit(axes: Axes, scene: Scene, shown: Rung, choice: Choice) -> None:
    """Draw a line from the rung up to its lowest limit, with the limit's name where no point is."""
    x, y = axes.x(shown.intensity), axes.y(choice.rate)
    if (ring := axes.y(shown.rate) - 9) > y:
        axes.picture.line(x, ring, x, y, stroke=RED, stroke_width=2, stroke_dasharray="2 3")
    axes.picture.line(x - 14, y, x + 14, y, stroke=RED, stroke_width=4)
    name = f"{choice.limit}: {choice.rate:.3g}"
    long = 6.6 * len(name)
    places = {
        "left": (x - 20 - long, y),
        "below": (x + 14, y + 22),
        "right": (x + 20, y),
        "lower left": (x - 20 - long, y + 18),
    }
    points = [(axes.x(rung.intensity), axes.y(rung.rate)) for rung in scene.ours]
    peak = axes.y(scene.peak.highest)
    free = [
        (left, down)
        for left, down in places.values()
        if left > 4
        and left + long < _COLUMN
        and abs(down - peak) > 12
        and not any(left - 16 < at < left + long + 6 and abs(below - down) < 14 for at, below in points)
    ]
    left, down = free[0] if free else places["lower left"]
    axes.picture.text(left, down, name, class_="halo", font_weight="600")


def _draw_rungs(axes: Axes, scene: Scene, shown: Rung, choice: Choice | None) -> None:
    """Draw one point per rung, or a line at the edge, and its name in a column at the right."""
    heights = _apart([axes.y(rung.rate) for rung in scene.rungs])
    for rung, height in zip(scene.rungs, heights, strict=True):
        with axes.picture.group(**_acts(scene, rung, shown, choice)):
            _draw_rung(axes, rung, rung == shown, height)


def _draw_rung(axes: Axes, rung: Rung, chosen: bool, height: float) -> None:
    picture, right, y = axes.picture, _LEFT + _ACROSS, axes.y(rung.rate)
    known = not isnan(rung.intensity)
    x = axes.x(rung.intensity) if known else right
    picture.line(x, y, _COLUMN - 3, height, class_="grid")
    if known:
        axes.point(rung.intensity, rung.rate, fill=RED if chosen else BLUE)
        if chosen:
            picture.add("circle", cx=x, cy=y, r=9, class_="line", stroke_width=2)
    else:
        picture.line(right - 60, y, right, y, stroke_dasharray="8 3 2 3")
    picture.add("circle", cx=x, cy=y, r=10, fill="transparent")
    picture.rect(_COLUMN - 2, height - 8, _WIDTH - _COLUMN, 16, fill="transparent")
    weight = "700" if chosen else None
    picture.text(_COLUMN, height, f"{rung.kernel} {rung.rate:.3g}", font_weight=weight)


def _acts(scene: Scene, rung: Rung, shown: Rung, choice: Choice | None) -> dict[str, object]:
    """Return what a rung does in an explorer: it can be pointed at, and chosen if the control offers it."""
    if not choice:
        return {}
    tip = f"{rung.kernel}: {rung.rate:.3g} {scene.peak.unit}"
    if isnan(rung.intensity):
        tip += ". It has no place across: no such bytes of it were counted."
    else:
        tip += f" with {rung.intensity:.3g} FLOP per byte; its roof is {scene.roof_at(rung.intensity):.3g}."
    if rung.kernel not in choice.kernels:
        return {"data_tip": tip, "data_link": rung.kernel, "tabindex": 0}
    positions = {"rung": list(choice.kernels).index(rung.kernel)}
    return {"data_link": rung.kernel} | button(rung.kernel, tip, positions, rung == shown)


def _apart(falling: list[float]) -> list[float]:
    """Move heights down so that neighbours have room for a name; there is most room below the points."""
    heights: list[float] = []
    for height in reversed(falling):
        heights.append(max(height, heights[-1] + _NAME) if heights else height)
    return heights[::-1]


# Sentences.


def _shown(scene: Scene, chosen: str, uncounted: bool) -> Rung:
    """Return the rung that stands out: `chosen`, which may be `uncounted`, or the fastest of ours."""
    some = {rung.kernel: rung for rung in (scene.rungs if uncounted else scene.ours)}
    if not chosen:
        return scene.ours[-1]
    if chosen not in some:
        raise ValueError(f"{chosen} was not both timed and counted. Choose one of {', '.join(some)}.")
    return some[chosen]


def _reached(scene: Scene, shown: Rung) -> str:
    """Say what share of the peak a rung has reached."""
    kind = "theoretical" if scene.peak.theoretical else "measured"
    share = _percent(shown.rate / scene.peak.highest)
    return f"{_size(scene.problem)}: {shown.kernel} reaches {share} % of the {kind} peak"


def _finding(scene: Scene, shown: Rung) -> str:
    """Say what a rung has reached, and compare it with the slowest."""
    found, first = _reached(scene, shown), scene.ours[0]
    if shown.kernel != first.kernel and not isnan(shown.intensity):
        speed, gain = shown.rate / first.rate, shown.intensity / first.intensity
        found += f", {speed:.3g}× {first.kernel}, with {gain:.3g}× its FLOP per byte"
    return found


def _in_a_row(name: str) -> int:
    """Return a sort key: M, K, N, the sides of A, then of B; other sizes keep their order."""
    return "MKN".find(name)


def _size(problem: Problem) -> str:
    """Write the sizes for a title: one if all are equal, else the sides of the inputs in a row."""
    if len(set(problem.sizes.values())) == 1:
        name = "N" if "N" in problem.sizes else problem.size_names[0]
        return f"{name} = {problem.sizes[name]}"
    return "×".join(str(problem.sizes[name]) for name in sorted(problem.sizes, key=_in_a_row))


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.095 else f"{100 * share:.0f}"
