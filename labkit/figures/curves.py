"""The reports' curves, redrawn from records, with this machine's measurements beside them.

Every function takes records (the columns of `records.load`) and returns a matplotlib figure. Titles are
computed from the data; suspected misprints are marked, and left out of titles. `here` is a second set in the
same columns, drawn open and dashed, or a list of two, the last of which is dotted. An empty set is left out,
so `ladder.here` can be passed on any machine. The `source` column labels a set: "measured here: NVIDIA H200",
"counted by the simulator". A set of predicted times (`labkit.model.predicted.times`) is a dashed line without
markers, in a band from the low to the high end of each time, and titles leave it out. Each quantity and unit
has its own panel, so times and simulator counts never share an axis. Values are costs: lower is better;
`bandwidth_by_size` computes rates. Raises ValueError for records that lack a column, hold no value, hold
rates, or give one point several values.
"""

from collections.abc import Callable, Sequence
from math import prod

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.figures.findings import Finding, brief, one_line
from labkit.figures.looks import look_of, rank
from labkit.figures.style import Plot, sign, titled
from labkit.kernels.problem import families, problem_class, problem_of
from labkit.ladder.running import row_dicts
from labkit.model.predicted import PREDICTED
from labkit.records import COLUMNS
from labkit.records.tables import sides_of

Here = pd.DataFrame | Sequence[pd.DataFrame] | None
# ("filled" for the records, "open" or "dotted" for `here`, "dashed" for what is predicted; the data)
_Sets = list[tuple[str, pd.DataFrame]]
_LINES = {"filled": "-", "open": "--", "dotted": ":"}
_DASHES = (0, (6, 3))
_ENDS = ["low", "high"]  # of the interval of a predicted time
# Where the text at a point stands, for the highest line, the lowest and one between: its offset in points,
# and its alignment.
_BESIDE = ((7, 4, "left", "bottom"), (-7, -4, "right", "top"), (-7, 4, "right", "bottom"))
_Findings = Callable[[pd.DataFrame], list[Finding]]


def time_by_block(frame: pd.DataFrame, here: Here = None) -> Plot:
    """Draw cost against a square block's side: one line per kernel or, for one kernel, per size."""
    return _curves(frame, here, "block_x", "block side (threads)", lambda data: _best_side(data, "block_x"))


def time_by_tile(frame: pd.DataFrame, here: Here = None) -> Plot:
    """Draw cost against the side of a tile in cache or shared memory; lines as in `time_by_block`."""
    return _curves(frame, here, "tile", "tile side (elements)", lambda data: _best_side(data, "tile"))


def time_by_size(frame: pd.DataFrame, here: Here = None) -> Plot:
    """Draw cost against matrix size, one line per kernel: naive and tiled, or the CPU versions."""
    return _curves(frame, here, "size", "matrix size", _best_kernel)


def speedup_by_size(
    frame: pd.DataFrame, here: Here = None, *, baseline: str = "naive", kernel: str = "tiled"
) -> Plot:
    """Draw how many times as much `baseline` costs as `kernel`, against matrix size."""
    sets = [(mark, _ratios(data, baseline, kernel)) for mark, data in _prepared(frame, here)]
    figure, panels = _panels(sets)
    for axes, members in panels:
        for mark, data in members:
            label = f"{baseline} / {kernel}{whose}" if (whose := _whose(members, data)) else ""
            _draw_line(axes, data, "size", mark, label, look_of(kernel))
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set(ylim=(0, None), ylabel=f"{members[0][1].quantity.iloc[0]} of {baseline} / of {kernel}")
        _size_ticks(axes, members)
        _finish(axes, members, lambda data: _ratio_range(data, baseline))
    return figure


def bandwidth_by_size(frame: pd.DataFrame, here: Here = None) -> Plot:
    """Draw the effective bandwidth of memory-bound kernels, from their times: each element moves once."""
    sets = [(mark, _bandwidths(data)) for mark, data in _prepared(frame, here)]
    figure, panels = _panels(sets)
    for axes, members in panels:
        for mark, data in members:
            for kernel, line in data.groupby("kernel", sort=False):
                label = f"{kernel}{_whose(members, data)}"
                _draw_line(axes, line, "size", mark, label, look_of(str(kernel)))
        axes.set(ylim=(0, None), ylabel="effective bandwidth (GB/s)")
        _size_ticks(axes, members)
        _finish(axes, members, _rate_share)
    return figure


def transpose_steps(frame: pd.DataFrame, here: Here = None) -> Plot:
    """Draw each step of the transpose: its cost, and how many times better it is than the step before."""
    sets = [(mark, _one_value_each(data, "quantity")) for mark, data in _prepared(frame, here)]
    figure, panels = _panels(sets)
    for axes, members in panels:
        kernels = sorted({name for _, data in members for name in data.kernel}, key=rank)
        highest, *lower = sorted(members, key=lambda member: -member[1].value.mean())
        order = [highest, *lower[-1:], *lower[:-1]]
        sides = {mark: side for (mark, _), side in zip(order, _BESIDE, strict=False)}
        for mark, data in members:
            if data.size_label.nunique() > 1:
                raise ValueError(
                    f"sizes {', '.join(data.size_label.unique())}: choose one with records.load()"
                )
            steps = data.assign(step=data.kernel.map(kernels.index))
            style = _LINES.get(mark, _DASHES)
            axes.plot(steps.step, steps.value, color="0.6", linestyle=style, zorder=1)
            for kernel, row in steps.groupby("kernel", sort=False):
                _draw_line(axes, row, "step", mark, "", look_of(str(kernel)))
            _annotate_steps(axes, steps, sides[mark])
        axes.set_xticks(range(len(kernels)), kernels)
        axes.margins(x=0.18)  # room for the text at the last point
        _value_axis(axes, members)
        axes.margins(y=0.2)  # on a logarithmic axis: room for the text below the last point
        _finish(axes, members, _best_kernel)
    return figure


def _curves(frame: pd.DataFrame, here: Here, x: str, x_label: str, finding: _Findings) -> Plot:
    sets = [(mark, _one_value_each(data, x, "quantity")) for mark, data in _prepared(frame, here)]
    figure, panels = _panels(sets)
    for axes, members in panels:
        sizes = list(dict.fromkeys(label for _, data in members for label in data.size_label))
        for mark, data in members:
            by = "kernel" if x == "size" else _line_key(data)
            for key, line in data.groupby(by, sort=False):
                name = str(key)
                look = look_of(name) if by == "kernel" else _size_look(sizes.index(name), len(sizes))
                _draw_line(axes, line, x, mark, name + _whose(members, data), look)
        if x == "size":
            _size_ticks(axes, members)
        else:
            _side_ticks(axes, members, x, x_label)
        _value_axis(axes, members)
        _finish(axes, members, finding)
    return figure


# Records, checked and prepared.


def _prepared(frame: pd.DataFrame, here: Here) -> _Sets:
    given = [] if here is None else [here] if isinstance(here, pd.DataFrame) else list(here)
    others = [_ready(data, "here") for data in given if len(data)]
    predicted = [data for data in others if _is_predicted(data)]
    others = [data for data in others if not _is_predicted(data)]
    if len(others) >= len(_LINES):
        raise ValueError(f"here holds {len(others)} sets; a plot shows {len(_LINES) - 1} beside the records")
    sets = list(zip(_LINES, [_ready(frame, "frame"), *others], strict=False))
    return [*sets, *(("dashed", data) for data in predicted)]


def _is_predicted(data: pd.DataFrame) -> bool:
    return bool(data.source.str.startswith(PREDICTED).all())


def _ready(data: pd.DataFrame, name: str) -> pd.DataFrame:
    """Select rows with a value; add `size`, `size_label` and `suspect`.

    The size is the side of a cube or square of equal volume.
    """
    missing = [column for column in (*COLUMNS, "source") if column not in data.columns]
    if missing:
        raise ValueError(
            f"{name} lacks columns: {', '.join(missing)}; plots take the columns of records.load()"
        )
    data = data[data.value.notna()].sort_values("kernel", key=lambda names: names.map(rank), kind="stable")
    if data.empty:
        raise ValueError(f"{name} holds no value to plot")
    rates = sorted({unit for unit in data.unit if unit.endswith("/s")})
    if rates:
        raise ValueError(
            f"{name} holds rates ({', '.join(rates)}); plots take costs, such as quantity='time'"
        )
    rows = data[sides_of(data)].astype("Float64").to_numpy("float64", na_value=float("nan"))
    sides = [[int(side) for side in row if side == side] for row in rows]  # NaN: a side of another problem
    if not all(sides):
        raise ValueError(f"{name} holds rows without a matrix size; leave them out")
    return data.assign(
        size=[prod(row) ** (1 / len(row)) for row in sides],
        size_label=[f"N = {row[0]}" if len(set(row)) == 1 else "×".join(map(str, row)) for row in sides],
        suspect=data.note.str.startswith("misprint"),
    )


def _one_value_each(data: pd.DataFrame, *axes: str) -> pd.DataFrame:
    """Sort the data by its axes; refuse several values of one kernel and size at one point."""
    data = data.dropna(subset=list(axes)).sort_values(list(axes), kind="stable")
    if data.empty:
        raise ValueError(f"no record has a {axes[0]}; choose others with records.load()")
    place = ["kernel", "size_label", *axes]
    again = data[data.duplicated(place, keep=False)]
    if len(again):
        same = again[(again[place] == again[place].iloc[0]).all(axis=1)]
        differ = [c for c in ("source", "dtype", "block_x", "tile") if same[c].nunique(dropna=False) > 1]
        raise ValueError(
            f"{len(same)} values for {same.kernel.iloc[0]} at {same.size_label.iloc[0]},"
            f" which differ in {', '.join(differ) or 'nothing'}; choose one with records.load()"
        )
    return data


def _line_key(data: pd.DataFrame) -> str:
    """Return the column that tells lines apart: the kernel, or the size if there is only one kernel."""
    kernels, sizes = data.kernel.unique(), data.size_label.unique()
    if len(kernels) > 1 and len(sizes) > 1:
        raise ValueError(
            f"kernels {', '.join(kernels)} and sizes {', '.join(sizes)}: choose one with records.load()"
        )
    return "size_label" if len(sizes) > 1 else "kernel"


def _ratios(data: pd.DataFrame, baseline: str, kernel: str) -> pd.DataFrame:
    """Divide the value of `baseline` by that of `kernel`, with one row per size and quantity."""
    missing = [name for name in (baseline, kernel) if name not in set(data.kernel)]
    if missing:
        raise ValueError(f"no record of {', '.join(missing)}; kernels: {', '.join(data.kernel.unique())}")
    keys = ["quantity", "unit", "size", "size_label"]
    over, under = (_one_value_each(data[data.kernel == name], "quantity") for name in (baseline, kernel))
    both = over.merge(under[[*keys, "value", "suspect"]], on=keys, suffixes=("", "_under"))
    both = both[both.value_under > 0].sort_values("size")
    if both.empty:
        raise ValueError(f"{baseline} and {kernel} have no size in common with a value above 0")
    both = both.assign(
        kernel=kernel, value=both.value / both.value_under, suspect=both.suspect | both.suspect_under
    )
    return both.drop(columns=_ENDS, errors="ignore")  # the ends of a time are none of a ratio


def _bandwidths(data: pd.DataFrame) -> pd.DataFrame:
    """Convert times in ms to 10^9 bytes of compulsory traffic per second."""
    several = data.note.str.contains("iterations")
    limited = [family for family in families() if problem_class(family).unit == "GB/s"]
    is_launch = data.problem.isin(limited) & (data.quantity == "time") & ~several
    if not is_launch.all():
        row = data[~is_launch].iloc[0]
        raise ValueError(
            f"a bandwidth is formed from the time of one {' or '.join(limited)}, not from {row.quantity} of "
            f"{row.problem} "
            f"{row.kernel}{' for several launches' if several.any() else ''}; choose with records.recorded()"
        )
    data = _one_value_each(data, "size")
    moved = pd.Series([problem_of(row).bytes for row in row_dicts(data)], index=data.index, dtype="float64")
    rates = {name: moved / data[name] / 1e6 for name in ("value", *_ENDS) if name in data.columns}
    return data.assign(quantity="bandwidth", unit="GB/s", **rates)


# Drawing.


def _panels(sets: _Sets) -> tuple[Plot, list[tuple[Axes, _Sets]]]:
    """Make a figure with one panel per quantity and unit, signed with its sources.

    Returns the figure, and each panel with what it shows.
    """
    keys = list(dict.fromkeys(key for _, data in sets for key in zip(data.quantity, data.unit, strict=True)))
    figure = Plot(figsize=(7 if len(keys) == 1 else 4.8 * len(keys), 4), layout="constrained")
    panels = []
    for axes, (quantity, unit) in zip(figure.subplots(1, len(keys), squeeze=False)[0], keys, strict=True):
        parts = [(mark, data[(data.quantity == quantity) & (data.unit == unit)]) for mark, data in sets]
        panels.append((axes, [(mark, part) for mark, part in parts if len(part)]))
    sign(figure, *(data for _, data in sets), looks=[mark for mark, _ in sets])
    return figure, panels


def _draw_line(axes: Axes, line: pd.DataFrame, x: str, mark: str, label: str, look: tuple[str, str]) -> None:
    color, marker = look
    face = color if mark == "filled" else "white"
    places = line[x].astype(float)
    if mark == "dashed":
        axes.plot(places, line.value, linestyle=_DASHES, color=color, label=label or None)
        if set(_ENDS) <= set(line.columns):
            low, high = (line[end].astype(float) for end in _ENDS)
            axes.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
        return
    style = _LINES[mark]
    (drawn,) = axes.plot(places, line.value, style, color=color, marker=marker, mfc=face, label=label or None)
    drawn.set_clip_on(False)  # draw a marker at 0 whole
    for place, value in zip(places[line.suspect], line.value[line.suspect], strict=True):
        axes.annotate("misprint?", (place, value), (0, 9), textcoords="offset points", ha="center")


def _annotate_steps(axes: Axes, steps: pd.DataFrame, side: tuple[float, float, str, str]) -> None:
    """Write at each point its value, and how many times lower it is than the one before, beside the point."""
    x, y, ha, va = side
    steps = steps.sort_values("step")
    values = [float(value) for value in steps.value]
    for place, before, value in zip(steps.step, [0.0, *values], values, strict=False):
        text = _number(value) + (f"\n{_number(before / value)}×" if before and value else "")
        axes.annotate(text, (place, value), (x, y), textcoords="offset points", fontsize=9, ha=ha, va=va)


def _side_ticks(axes: Axes, members: _Sets, x: str, label: str) -> None:
    """Put a tick at each side: 1, 2, 4, …, 32."""
    sides = sorted({int(side) for _, data in members for side in data[x]})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sides, [str(side) for side in sides])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def _size_ticks(axes: Axes, members: _Sets) -> None:
    sizes = {
        size: label for _, data in members for size, label in zip(data["size"], data.size_label, strict=True)
    }
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(sizes), [label.removeprefix("N = ") for label in sizes.values()])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("matrix size" if any("×" in label for label in sizes.values()) else "matrix size N")


def _value_axis(axes: Axes, members: _Sets) -> None:
    """Name the axis with its unit; it is logarithmic if values differ more than tenfold, else from 0."""
    quantity, unit = members[0][1][["quantity", "unit"]].iloc[0]
    axes.set_ylabel(quantity if unit == "1" else f"{quantity} ({unit})")
    axes.margins(y=0.12)
    low = min(data.value.min() for _, data in members)
    high = max(data.value.max() for _, data in members)
    if low > 0 and high > 10 * low:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high > 300 * low else (1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.2 * high or 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _finish(axes: Axes, members: _Sets, finding: _Findings) -> None:
    """Add title, grid and legend. The title states what is measured or counted, if anything is."""
    stated = [data for mark, data in members if mark != "dashed"] or [data for _, data in members]
    lines = len(axes.get_legend_handles_labels()[0])
    figure = axes.get_figure(root=True)
    is_beside = lines > 3 and len(axes.figure.axes) == 1  # no room for such a legend inside
    room = 112 if is_beside else 82 if len(axes.figure.axes) == 1 else 56  # characters that fit above
    found = []
    for data in stated:
        who = brief(str(data.source.iloc[0])) if len(stated) > 1 else ""
        found += [each._replace(who=who) for each in _stated(data[~data.suspect], finding)]
    titled(axes, one_line(found, room))
    axes.grid(alpha=0.3)
    if is_beside and figure is not None:
        figure.set_figwidth(9.5)
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    elif lines:
        axes.legend(frameon=False, fontsize=9)


def _stated(trusted: pd.DataFrame, finding: _Findings) -> list[Finding]:
    return finding(trusted) if len(trusted) else [Finding("every value is a suspected misprint")]


def _short_source(data: pd.DataFrame) -> str:
    """Return the source up to its first comma or colon, such as "measured here"; if recorded, the GPU.

    That of predicted times is short, and says how far they may be off.
    """
    if _is_predicted(data):
        return str(data.source.iloc[0])
    return data.source.iloc[0].removeprefix("recorded: ").partition(",")[0].partition(":")[0]


def _whose(members: _Sets, data: pd.DataFrame) -> str:
    """Name the source of a line, where a panel shows two sets."""
    return f", {_short_source(data)}" if len(members) > 1 else ""


def _size_look(place: int, count: int) -> tuple[str, str]:
    """Return a colour, from dark to light with size (cividis, for colour-blind eyes), and a marker."""
    return to_hex(colormaps["cividis"](0.85 * place / max(count - 1, 1))), "osD^vP"[place % 6]


# Findings: what a title states.


def _best_side(data: pd.DataFrame, x: str) -> list[Finding]:
    """Compare each kernel's best side with its smallest; for several sizes, say which is mostly the best."""
    if _line_key(data) == "size_label":
        best = data.sort_values("value", kind="stable").drop_duplicates("size_label").sort_values("size")
        sides = [_side(row, x) for _, row in best.iterrows()]
        side = max(reversed(sides), key=sides.count)  # that of the largest size, of those that are equal
        often = "every size" if len(set(sides)) == 1 else f"{sides.count(side)} of {len(sides)} sizes"
        if 2 * sides.count(side) <= len(sides):
            often = best.size_label.iloc[-1]
        return [Finding("best side: ", f"{side} at {often}", kernel=f"{data.kernel.iloc[0]},")]
    found = []
    for kernel, line in data.groupby("kernel", sort=False):
        rows = line.sort_values(x)
        each = _versus(rows, [_side(row, x) for _, row in rows.iterrows()])
        found.append(each._replace(at=data.size_label.iloc[0], kernel=str(kernel)))
    return found


def _side(row: pd.Series, x: str) -> str:
    """Name a tile or a block by its side: 16×16, or 256 for a block in a row."""
    is_row = x == "block_x" and row.block_y == 1 < row.block_x
    return f"{row[x]}" if is_row else f"{row[x]}×{row[x]}"


def _largest(data: pd.DataFrame) -> pd.DataFrame:
    """Select the largest size that has most kernels."""
    kernels = data.groupby("size").kernel.nunique()
    return data[data["size"] == kernels[kernels == kernels.max()].index.max()]


def _best_kernel(data: pd.DataFrame) -> list[Finding]:
    """Compare, at the largest size that has most kernels, the best with the first step of the ladder."""
    largest = _largest(data).sort_values("kernel", key=lambda names: names.map(rank))
    return [_versus(largest, list(largest.kernel))._replace(at=largest.size_label.iloc[0])]


def _rate_share(data: pd.DataFrame) -> list[Finding]:
    """Compare the lowest rate with the highest, at the largest size that has most kernels."""
    ranked = _largest(data).sort_values("value")
    low, high, at = ranked.iloc[0], ranked.iloc[-1], ranked.size_label.iloc[0]
    if low.kernel == high.kernel:
        return [Finding(f"{low.kernel} reaches ", f"{_number(low.value)} GB/s", at=at)]
    share = 100 * low.value / high.value
    part = f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"
    return [Finding(f"{low.kernel} reaches ", part, f" of the bandwidth of {high.kernel}", at=at)]


def _ratio_range(data: pd.DataFrame, baseline: str) -> list[Finding]:
    ranked = data.sort_values("value")
    most = ranked.iloc[-1]
    ends = dict.fromkeys([_number(ranked.value.iloc[0]), _number(most.value)])
    span, where = "× to ".join(ends) + "×", f", most at {most.size_label}" if len(ends) > 1 else ""
    if most.unit == "ms":
        return [Finding(f"{most.kernel} is ", span, f" as fast as {baseline}", where or " at every size")]
    counts = f" the {_counted(most)} of {most.kernel}"
    return [Finding(f"{baseline} has ", span, counts, where or " at every size")]


def _versus(rows: pd.DataFrame, names: list[str]) -> Finding:
    """Compare the best row with the first, or with the worst where the first is the best."""
    values = list(rows.value)
    best = values.index(min(values))
    other = values.index(max(values)) if best == 0 else 0
    if values[best] == values[other]:
        return Finding(f"{names[best]} is as good as any")
    if values[best] == 0:
        told = f"{names[best]} has none, {names[other]} {_number(values[other])} {_counted(rows.iloc[0])}"
        return Finding(told)
    gain, first = values[other] / values[best], rows.iloc[0]
    times = f"{_number(gain)}×"
    if first.unit == "ms":
        return Finding(f"{names[best]} is ", times, f" as fast as {names[other]}", gain=gain)
    return Finding(f"{names[best]} has ", times, f" fewer {_counted(first)} than {names[other]}", gain=gain)


def _counted(row: pd.Series) -> str:
    return row.quantity if row.unit == "1" else row.unit


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
