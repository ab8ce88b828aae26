"""The ladder in pictures: the rate of each rung at one size, and of some rungs over the sizes.

Both take times in the columns of `records.load`, with one time per rung, size and source. `here` is a second
set, such as `ladder.here` returns, drawn hatched or dashed; an empty one is left out.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.figures.findings import Finding, brief, one_line
from labkit.figures.looks import look_of
from labkit.figures.style import Plot, label_bar, sign, titled
from labkit.ladder.steps import REFERENCE, climb, product_of, rates
from labkit.model import predicted

_BAR, _BEST, _REFERENCE = "#56B4E9", "#0072B2", "#7F7F7F"  # Okabe and Ito's
_PERCENT = f"% of {REFERENCE}"
_ROOM = 100  # letters that fit above the axes


def bars(times: pd.DataFrame, here: pd.DataFrame | None = None) -> Plot:
    """Draw one bar per rung: its rate, and what share that is of the reference's in the same set.

    Dashed outlines are the rates predicted for the GPU of `times`, if they are shipped. Raises ValueError
    where a set has several times for one rung.
    """
    order = climb(product_of(times))
    sets, guess = _sets(times, here), _predicted(times)
    tables = [rates(each) for each in sets]
    expected = rates(guess)["TFLOP/s"] if len(guess) else pd.Series(dtype=float)
    rungs = [rung for rung in order if any(rung in table.index for table in tables)]
    figure = Plot(figsize=(8.5, 0.26 * len(rungs) * (len(sets) + 0.5) + 1.3), layout="constrained")
    axes = figure.subplots()
    thickness = 0.8 / len(sets)
    for number, (table, hatch) in enumerate(zip(tables, ("", "///"), strict=False)):
        table = table.reindex(rungs).dropna(subset="TFLOP/s")
        best = str(_ours(table)["TFLOP/s"].idxmax())
        colours = [{best: _BEST, REFERENCE: _REFERENCE}.get(rung, _BAR) for rung in table.index]
        places = [rungs.index(rung) + (number - (len(sets) - 1) / 2) * thickness for rung in table.index]
        axes.barh(places, table["TFLOP/s"], thickness, color=colours, hatch=hatch, edgecolor="white")
        ends = table["TFLOP/s"]
        if number == 0 and len(expected):
            outlined = expected.reindex(table.index)
            axes.barh(places, outlined, 0.8 * thickness, fill=False, linestyle="--", linewidth=0.9)
            ends = ends.clip(lower=outlined)
        for place, end, rate, part in zip(places, ends, table["TFLOP/s"], table[_PERCENT], strict=True):
            percent = "" if part != part else f" ({part:.3g} %)"
            label_bar(axes, end, place, f"{rate:.3g}{percent}")
    axes.set_yticks(range(len(rungs)), rungs)
    axes.invert_yaxis()
    highest = max(*(table["TFLOP/s"].max() for table in tables), expected.max() if len(expected) else 0)
    axes.set(xlabel=f"TFLOP/s, and {_PERCENT}", xlim=(0, 1.2 * highest))
    titled(axes, _title(sets, [_steps(table) for table in tables]))
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    looks = [*("plain", "hatched")[: len(sets)], "dashed outline"]
    sign(figure, *sets, *([guess] if len(guess) else []), looks=looks)
    return figure


def by_size(times: pd.DataFrame, here: pd.DataFrame | None = None) -> Plot:
    """Draw rates over the size of square products, one line per rung; both axes are logarithmic.

    Raises ValueError where a set has several times for one rung and size.
    """
    sets, order = _sets(times, here), climb(product_of(times))
    figure = Plot(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    for data, style in zip(sets, ("-", "--"), strict=False):
        table = _by_size(data)
        for rung in (rung for rung in order if rung in table.columns):
            line, (colour, marker) = table[rung].dropna(), look_of(rung)
            face = colour if style == "-" else "white"
            label = rung if style == "-" or rung not in set(times.kernel) else None
            axes.plot(line.index, line, style, color=colour, marker=marker, mfc=face, label=label)
    _log_axes(axes, sorted({int(n) for data in sets for n in data.n}))
    titled(axes, _title(sets, [_fastest(_by_size(data)) for data in sets]))
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    sign(figure, *sets, looks=("solid", "dashed"))
    return figure


def _sets(times: pd.DataFrame, here: pd.DataFrame | None) -> list[pd.DataFrame]:
    return [times] if here is None or here.empty else [times, here]


def _predicted(times: pd.DataFrame) -> pd.DataFrame:
    """Return the shipped predictions for the GPU of the times, and for the same launches."""
    gpu = str(times.machine.iloc[0]).removeprefix("NVIDIA ")
    if gpu not in predicted.gpus():
        return times.iloc[:0]
    return predicted.beside(times, gpu, "block_x", "block_y", "note")


def _by_size(data: pd.DataFrame) -> pd.DataFrame:
    """Return TFLOP/s with one row per size and one column per rung."""
    columns = {n: rates(at)["TFLOP/s"] for n, at in data.groupby("n")}
    return pd.DataFrame(columns).T.sort_index()


def _ours(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(index=REFERENCE, errors="ignore")


def _log_axes(axes: Axes, sizes: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set(xlabel="M = N = K", ylabel="TFLOP/s")
    axes.grid(alpha=0.3)


# Titles and the line below.


def _steps(table: pd.DataFrame) -> Finding:
    """Compare the best rung with the first one; the bars say what share of the reference's rate it has."""
    rate = _ours(table)["TFLOP/s"]
    return Finding(
        f"{rate.idxmax()} has ", f"{rate.max() / rate.iloc[0]:.3g}×", f" the rate of {rate.index[0]}"
    )


def _fastest(table: pd.DataFrame) -> Finding:
    """Say which of our rungs is the fastest at the smallest size, and which at the largest ones."""
    best = table.drop(columns=REFERENCE, errors="ignore").idxmax(axis="columns").astype(str)
    sizes, rungs = [int(n) for n in table.index], list(best)
    if len(set(rungs)) == 1:
        return Finding("fastest of ours: ", f"{rungs[0]} at every size" if len(sizes) > 1 else rungs[0])
    from_here = max(place for place, rung in enumerate(rungs) if rung != rungs[-1]) + 1
    word = "from" if from_here < len(sizes) - 1 else "at"
    last = f"{rungs[-1]} {word} N = {sizes[from_here]}"
    return Finding("fastest of ours: ", f"{rungs[0]} at N = {sizes[0]}, {last}")


def _title(sets: list[pd.DataFrame], findings: list[Finding]) -> str:
    """State one finding, with what each set has of it where there are two."""
    sizes = sets[0].n.unique()
    at = f"N = {sizes[0]}" if len(sizes) == 1 else ""
    whos = [brief(str(data.source.iloc[0])) for data in sets] if len(sets) > 1 else [""]
    return one_line([each._replace(at=at, who=who) for each, who in zip(findings, whos, strict=True)], _ROOM)
