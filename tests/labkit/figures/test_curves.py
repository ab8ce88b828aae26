"""What the plots say: titles computed from the data, units, lines, sources, and errors."""

import json
import re
import sys
from xml.etree import ElementTree

import matplotlib
import pandas as pd
import pytest

from labkit import records
from labkit.figures import curves, svg
from labkit.figures.looks import look_of, rank
from labkit.kernels.problem import families, problem_class
from labkit.ladder import running
from labkit.records.tables import write


@pytest.fixture
def matmul():
    return records.load("int-matmul", "time", kernel=["naive", "tiled"], m=4096)


@pytest.fixture
def by_size():
    return records.load("int-matmul", "time", block_x=32)


@pytest.fixture
def transpose():
    return records.load("int-transpose", "time")


def title(axes) -> str:
    return axes.get_title(loc="left")


def labels(axes) -> list[str]:
    return [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]


def ticks(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def signature(figure) -> str:
    return figure.get_supxlabel()


def counts(frame: pd.DataFrame, values, unit="sectors", quantity="global load sectors") -> pd.DataFrame:
    return frame.assign(
        value=values, unit=unit, quantity=quantity, note="", source="counted by the simulator"
    )


def test_block_curve_of_one_size(matmul):
    figure = curves.time_by_block(matmul)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("block side (threads)", "time (ms)")
    assert ticks(axes.xaxis) == ["1", "2", "4", "8", "16", "32"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert labels(axes) == ["naive", "tiled"]
    # 2549.44 / 72.097 and 11434.7 / 40.793
    assert title(axes) == "N = 4096: 32×32 is 35.4× as fast as 1×1 (naive), 280× (tiled)"
    assert signature(figure) == "report int-matmul, GPU not stated"
    assert axes.lines[0].get_ydata()[0] == 2549.44


def test_title_follows_the_data(matmul):
    slower = matmul.assign(value=[float(row.block_x) for row in matmul.itertuples()])
    assert "N = 4096: 1×1 is 32× as fast as 32×32" in title(curves.time_by_block(slower).axes[0])


def test_block_curves_of_all_sizes():
    (axes,) = curves.time_by_block(records.load("int-matmul", "time", kernel="naive")).axes
    assert labels(axes) == ["N = 256", "N = 512", "N = 1024", "N = 4096"]
    assert title(axes) == "naive, best side: 32×32 at 3 of 4 sizes"
    assert len({line.get_color() for line in axes.lines}) == 4


def test_naive_against_tiled(by_size):
    (axes,) = curves.time_by_size(by_size).axes
    assert labels(axes) == ["naive", "tiled"]
    assert axes.get_xlabel() == "matrix size N"
    assert ticks(axes.xaxis) == ["256", "512", "1024", "4096"]
    assert title(axes) == "N = 4096: tiled is 1.77× as fast as naive"  # 72.097 / 40.793


def test_a_kernel_keeps_its_colour(matmul, by_size):
    one, other = curves.time_by_block(matmul).axes[0], curves.time_by_size(by_size).axes[0]
    assert [line.get_color() for line in one.lines] == [line.get_color() for line in other.lines]


def test_speedup_curve(by_size):
    (axes,) = curves.speedup_by_size(by_size).axes
    assert axes.get_ylabel() == "time of naive / of tiled"
    assert list(axes.lines[0].get_ydata()) == pytest.approx(
        [23.872 / 16.960, 177.21 / 100.03, 1.1299 / 0.64396, 72.097 / 40.793]
    )
    assert title(axes) == "tiled is 1.41× to 1.77× as fast as naive, most at N = 512"


def test_cpu_ladder():
    figure = curves.time_by_size(records.load("cpu-gpu-matmul", "time", block_x="", tile=""))
    (axes,) = figure.axes
    assert labels(axes) == ["cpu_naive", "cpu_avx", "cpu_avx_blocked", "cpu_avx_blocked_bt"]
    assert title(axes) == "N = 2048: cpu_avx_blocked is 12.2× as fast as cpu_naive"  # 91657 / 7496
    assert signature(figure) == "report cpu-gpu-matmul, CPU not stated"


def test_block_sweep():
    sweep = records.load("cpu-gpu-matmul", "time", kernel="cpu_avx_blocked")
    (axes,) = curves.time_by_tile(sweep[sweep.tile.notna()]).axes
    assert axes.get_xlabel() == "tile side (elements)"
    assert ticks(axes.xaxis) == ["8", "16", "32", "64", "128", "256", "512", "1024"]
    assert title(axes) == "cpu_avx_blocked, best side: 128×128 at N = 2048"


@pytest.mark.parametrize("times", [0.1, 3])
def test_the_texts_of_two_ladders_stand_above_the_higher_and_below_the_lower(transpose, times):
    gpu = transpose[transpose.kernel != "cpu_naive"]
    figure = curves.transpose_steps(gpu, gpu.assign(value=gpu.value * times, source="measured here"))
    above = {text.xy[1] for text in figure.axes[0].texts if text.get_va() == "bottom"}
    assert above == set(gpu.value * max(1, times))


def test_transpose_steps(transpose):
    figure = curves.transpose_steps(transpose)
    (axes,) = figure.axes
    assert ticks(axes.xaxis) == ["cpu_naive", "naive", "shared", "padded", "unrolled"]
    texts = ["4,370", "195\n22.4×", "183\n1.07×", "155\n1.18×", "130\n1.19×"]
    assert [text.get_text() for text in axes.texts] == texts
    assert title(axes) == "N = 2048: unrolled is 33.6× as fast as cpu_naive"  # 4370 / 130
    assert "GeForce GTX 770M" in signature(figure) and "CPU not stated" in signature(figure)


def test_bandwidth_is_formed_from_times():
    chosen = {"problem": "transpose", "dtype": "float64", "kernel": ["memcpy", "naive"]}
    times = records.recorded("h200", "time", **chosen)
    times["GB/s"] = 2 * 8e-6 * times.rows * times.cols / times.value  # a student's own column is no size
    here = times[times.rows == 2048].assign(value=0.5, source="measured here: a GPU")
    figure = curves.bandwidth_by_size(times, here=[here])
    (axes,) = figure.axes
    assert axes.get_ylabel() == "effective bandwidth (GB/s)"
    assert ticks(axes.xaxis) == ["1024", "2048", "4096", "8192", "16384"]
    drawn = {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in axes.lines}
    at = times[(times.kernel == "naive") & (times.rows == 4096)].value.item()
    assert drawn["naive, NVIDIA H200"][4096] == pytest.approx(2 * 4096 * 4096 * 8 / (at / 1e3) / 1e9)
    # 2 * 2048 * 2048 * 8 B in half a millisecond
    assert drawn["naive, measured here"] == {2048: pytest.approx(134.217728)}
    assert title(axes) == "N = 2048, here: naive reaches 100 % of the bandwidth of memcpy"


def test_a_title_compares_the_lowest_bandwidth_with_the_highest():
    chosen = {"problem": "transpose", "dtype": "float64", "kernel": ["memcpy", "naive", "copy"]}
    (axes,) = curves.bandwidth_by_size(records.recorded("h200", "time", **chosen)).axes
    assert title(axes) == "N = 16384: naive reaches 23 % of the bandwidth of memcpy"  # 975 of 4,266 GB/s


def test_a_bandwidth_wants_the_time_of_one_transpose(transpose, matmul):
    with pytest.raises(ValueError, match="time of transpose cpu_naive for several launches"):
        curves.bandwidth_by_size(transpose)
    with pytest.raises(ValueError, match="not from time of matmul naive; choose"):
        curves.bandwidth_by_size(matmul)


def test_a_size_that_is_not_square_is_spelled_out():
    (axes,) = curves.time_by_size(records.load("tiled-matmul-ko", "time", block_x=16)).axes
    assert ticks(axes.xaxis) == ["32", "256", "4096×2048×4096"]
    assert axes.get_xlabel() == "matrix size"


def test_a_misprint_is_marked_and_not_believed():
    (axes,) = curves.time_by_block(records.load("tiled-matmul-ko", "time", kernel="tiled", m=256)).axes
    assert [text.get_text() for text in axes.texts] == ["misprint?"]
    assert title(axes) == "N = 256: tiled 16×16 is 3.3× as fast as 4×4"  # 1.159 / 0.351, not / 0.036


def test_this_machine_is_laid_over(matmul):
    here = matmul.assign(value=matmul.value / 10, source="measured here: NVIDIA H200")
    figure = curves.time_by_block(matmul, here)
    (axes,) = figure.axes
    assert labels(axes) == [
        *("naive, report int-matmul", "tiled, report int-matmul"),
        *("naive, measured here", "tiled, measured here"),
    ]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--", "--"]
    assert axes.lines[0].get_color() == axes.lines[2].get_color()
    assert title(axes) == "N = 4096, here: 32×32 is 35.4× as fast as 1×1 (naive), 280× (tiled)"
    assert signature(figure) == (
        "filled: report int-matmul, GPU not stated\nopen: measured here: NVIDIA H200"
    )


class TestThreeSets:
    """A report, a recorded run and this machine in one plot."""

    @pytest.fixture
    def recorded(self, matmul):
        return matmul.assign(value=matmul.value / 10, source="recorded: NVIDIA H200, 2026-11-22")

    @pytest.fixture
    def live(self, matmul):
        return matmul.assign(value=matmul.value / 20, source="measured here: NVIDIA L4")

    def test_the_second_is_dashed_and_the_third_dotted(self, matmul, recorded, live):
        figure = curves.time_by_block(matmul, [recorded, live])
        (axes,) = figure.axes
        assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--", "--", ":", ":"]
        assert [line.get_markerfacecolor() == "white" for line in axes.lines] == 2 * [False] + 4 * [True]
        assert labels(axes)[2:] == [
            f"{k}, {who}" for who in ("NVIDIA H200", "measured here") for k in ("naive", "tiled")
        ]
        assert signature(figure).splitlines()[1:] == [
            "open: recorded: NVIDIA H200, 2026-11-22",
            "dotted: measured here: NVIDIA L4",
        ]
        assert title(axes) == "N = 4096, here: 32×32 is 35.4× as fast as 1×1 (naive), 280× (tiled)"

    @pytest.mark.parametrize("empty", ["none", "first", "second", "both"])
    def test_an_empty_set_is_left_out(self, matmul, recorded, empty):
        """`ladder.here` gives one where there is no GPU."""
        nothing = recorded[:0]
        here = {
            "none": [],
            "first": [nothing, recorded],
            "second": [recorded, nothing],
            "both": [nothing, nothing],
        }
        figure = curves.time_by_block(matmul, here[empty])
        drawn = 4 if empty in ("first", "second") else 2
        assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "-", "--", "--"][:drawn]
        assert len(signature(figure).splitlines()) == drawn // 2
        assert "nan" not in title(figure.axes[0])

    def test_an_empty_frame_alone_is_left_out(self, by_size, recorded):
        (axes,) = curves.time_by_size(by_size, here=recorded[:0]).axes
        assert labels(axes) == ["naive", "tiled"]

    def test_more_are_refused(self, matmul, recorded, live):
        with pytest.raises(ValueError, match="here holds 3 sets; a plot shows 2 beside the records"):
            curves.time_by_block(matmul, [recorded, live, live])

    def test_steps_and_ratios_take_three_too(self, transpose, by_size):
        sets = [
            [frame.assign(value=frame.value / n, source=f"measured here: GPU {n}") for n in (2, 3)]
            for frame in (transpose, by_size)
        ]
        (steps,) = curves.transpose_steps(transpose, sets[0]).axes
        assert {"-", "--", ":"} <= {line.get_linestyle() for line in steps.lines}
        (ratios,) = curves.speedup_by_size(by_size, sets[1]).axes
        assert [line.get_linestyle() for line in ratios.lines][:3] == ["-", "--", ":"]


def test_counts_have_an_axis_of_their_own(matmul):
    here = counts(matmul, [2.0**20 / row.block_x for row in matmul.itertuples()])
    figure = curves.time_by_block(matmul, here)
    times, sectors = figure.axes
    assert (times.get_ylabel(), sectors.get_ylabel()) == ("time (ms)", "global load sectors (sectors)")
    assert len(times.lines) == len(sectors.lines) == 2
    assert "32×32 has 32× fewer sectors than 1×1" in title(sectors)
    assert "open: counted by the simulator" in signature(figure)


def test_times_in_another_unit_have_an_axis_of_their_own(by_size):
    here = by_size.assign(unit="us", source="measured here: NVIDIA H200")
    assert [axes.get_ylabel() for axes in curves.time_by_size(by_size, here).axes] == [
        "time (ms)",
        "time (us)",
    ]


def test_zero_is_a_count(transpose):
    steps = transpose[transpose.kernel != "cpu_naive"]
    conflicts = counts(steps, [0.0, 126976.0, 0.0, 0.0], unit="1", quantity="bank conflicts")
    axes = curves.transpose_steps(transpose, conflicts).axes[1]
    assert (axes.get_yscale(), axes.get_ylabel()) == ("linear", "bank conflicts")
    assert title(axes) == "N = 2048: naive has none, shared 126,976 bank conflicts"
    assert [text.get_text() for text in axes.texts] == ["0", "126,976", "0", "0"]


def test_ratio_of_counts(by_size):
    sectors = counts(by_size, [80.0, 160.0, 320.0, 640.0, 10.0, 20.0, 40.0, 40.0])
    axes = curves.speedup_by_size(by_size, sectors).axes[1]
    assert title(axes) == "naive has 8× to 16× the sectors of tiled, most at N = 4096"


def test_records_without_a_value_are_left_out():
    allocation = records.load("cpu-gpu-matmul", "malloc_time", m=2048)
    (axes,) = curves.time_by_block(allocation).axes
    assert list(axes.lines[0].get_xdata()) == [4, 8, 16]


def test_figures_show_themselves_and_stay_out_of_pyplot(matmul):
    plot = curves.time_by_block(matmul)
    shown = ElementTree.fromstring(plot._repr_svg_())
    title = plot.axes[0].get_title(loc="left")
    assert shown.get("role") == "img" and title in shown.get("aria-label")
    assert title in "".join(shown.itertext()) and str(plot).startswith("plot: ")
    colours = set(re.findall(r"#[0-9a-f]{6}\b(?!\))", plot._repr_svg_().partition("</style>")[2]))
    assert not {"#000000", "#ffffff"} & colours  # which a dark page would hide, or show as a slab
    if "matplotlib.pyplot" in sys.modules:
        assert not matplotlib.pyplot.get_fignums()


def test_what_is_added_to_a_plot_that_was_shown_has_room(matmul):
    plot = curves.time_by_block(matmul)
    plot.svg()
    before = plot.axes[0].get_position().x0
    plot.axes[0].set_ylabel("an axis\nwith a name\nin three lines")
    plot.svg()
    assert plot.axes[0].get_position().x0 > before


def two_times(frame):
    return curves.time_by_size(pd.concat([frame, frame]))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda frame: curves.time_by_block(frame.drop(columns="source")), "frame lacks columns: source"),
        (lambda frame: curves.time_by_block(frame, frame.drop(columns="unit")), "here lacks columns: unit"),
        (lambda frame: curves.time_by_block(frame[:0]), "frame holds no value to plot"),
        (lambda frame: curves.time_by_block(frame.assign(unit="GB/s")), r"holds rates \(GB/s\)"),
        (
            lambda frame: curves.time_by_block(frame.assign(m=pd.NA, n=pd.NA, k=pd.NA)),
            "without a matrix size",
        ),
        (lambda frame: curves.time_by_block(frame.assign(block_x=pd.NA)), "no record has a block_x"),
        (lambda frame: curves.time_by_size(frame), "6 values for naive at N = 4096, which differ in block_x"),
        (
            lambda frame: curves.speedup_by_size(frame, kernel="fast"),
            "no record of fast; kernels: naive, tiled",
        ),
        (
            lambda _: curves.time_by_block(records.load("int-matmul", "time")),
            r"kernels naive, tiled and sizes N = 256, .*: choose one",
        ),
        (
            lambda _: curves.transpose_steps(records.load("int-matmul", "time", block_x=32)),
            "sizes N = 256, N = 512, N = 1024, N = 4096: choose one",
        ),
    ],
)
def test_errors_say_what_to_do(matmul, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(matmul)


def test_a_ratio_that_does_not_change_is_said_of_every_size():
    frame = records.load("int-matmul", "time", kernel=["naive", "tiled"], block_x=16)
    frame["value"] = frame.kernel.map({"naive": 8.0, "tiled": 2.0})
    title = curves.speedup_by_size(frame).axes[0].get_title(loc="left").replace("\n", " ")
    assert title == "tiled is 4× as fast as naive at every size"


def test_kernels_are_compared_at_the_largest_size_that_has_them():
    frame = records.load("cpu-gpu-matmul", "time", kernel=["naive", "tiled"], block_x=16)
    assert set(frame[frame.n == 8192].kernel) == {"tiled"}
    assert curves.time_by_size(frame).axes[0].get_title(loc="left").startswith("N = 4096: tiled is 2.09×")


def test_a_recorded_run_is_drawn_over_a_reports_curves(tmp_path):
    """What notebooks draw: the report's blocks, and those of another GPU beside them."""
    rows = records.load("int-matmul", "time", kernel=["naive", "tiled"], m=4096).drop(columns="source")
    write(tmp_path / "bench.csv", rows.assign(report="", value=rows.value / 40))
    origin = {"gpu": "NVIDIA H200", "driver": "1", "versions": "v", "date": "2026-01-31", "command": "c"}
    (tmp_path / "bench.json").write_text(json.dumps(origin))
    report = records.load("int-matmul", "time", kernel=["naive", "tiled"], m=4096)
    figure = curves.time_by_block(report, records.counterparts("int-matmul", tmp_path, m=4096))
    (axes,) = figure.axes
    assert labels(axes) == [
        *("naive, report int-matmul", "tiled, report int-matmul", "naive, NVIDIA H200", "tiled, NVIDIA H200")
    ]
    assert signature(figure).endswith("open: recorded: NVIDIA H200, 2026-01-31")
    ours = axes.lines[2].get_ydata() * 40
    assert list(ours) == pytest.approx(list(axes.lines[0].get_ydata()))


def test_the_ladder_has_its_order_and_looks():
    for family in families():
        names = [*running.rungs(family), problem_class(family).reference_name]
        assert len({look_of(name)[0] for name in names}) == len(names)  # they meet in one plot
    climbed = sorted(running.rungs("matmul"), key=rank)
    assert climbed[0] == "naive_uncoalesced" and climbed[-4:] == [
        "tuned",
        "any_tile",
        "stream_k",
        "tensor_cores",
    ]


# Predicted times.


@pytest.fixture
def guess():
    """Predicted times of a product at N = 4096, by block side."""
    rows = records.load("int-matmul", "time", kernel=["naive", "tiled"], m=4096)
    rows = rows.assign(value=rows.value / 20, source="predicted for an H200, ± 30 %")
    return rows.assign(low=0.7 * rows.value, high=1.3 * rows.value)


def test_predicted_times_are_dashed_in_a_band_and_labelled(matmul, guess):
    figure = curves.time_by_block(matmul, [guess])
    (axes,) = figure.axes
    name = "predicted for an H200, ± 30 %"
    assert labels(axes) == [
        *(f"{kernel}, report int-matmul" for kernel in ("naive", "tiled")),
        *(f"{kernel}, {name}" for kernel in ("naive", "tiled")),
    ]
    recorded, predicted = axes.lines[0], axes.lines[2]
    assert recorded.get_linestyle() == "-" and predicted.is_dashed()
    assert predicted.get_marker() == "None" and predicted.get_color() == recorded.get_color()
    assert len(axes.collections) == 2
    ends = axes.collections[0].get_paths()[0].get_extents()
    naive = guess[guess.kernel == "naive"]
    assert (ends.ymin, ends.ymax) == (pytest.approx(naive.low.min()), pytest.approx(naive.high.max()))
    assert title(axes) == title(curves.time_by_block(matmul).axes[0])  # it states what the report found
    assert signature(figure).splitlines()[1] == f"dashed: {name}"


def test_predicted_and_measured_times_are_told_apart(matmul, guess):
    mine = matmul.assign(value=matmul.value / 10, source="measured here: a GPU")
    (axes,) = curves.time_by_block(matmul, [mine, guess]).axes
    markers = [line.get_marker() for line in axes.lines]
    assert markers[:4].count("None") == 0 and markers[4:] == ["None", "None"]


def test_a_predicted_rate_has_its_ends_and_a_ratio_has_none(matmul, guess):
    times = records.recorded("h200", "time", problem="transpose", dtype="float32", kernel="copy")
    predicted = times.assign(source="predicted for an H200, ± 50 %", low=times.value / 2, high=times.value)
    (axes,) = curves.bandwidth_by_size(times, here=predicted).axes
    top = axes.collections[0].get_paths()[0].get_extents().ymax
    assert top == pytest.approx(2 * max(axes.lines[1].get_ydata()))
    (axes,) = curves.speedup_by_size(
        records.load("int-matmul", "time", block_x=32), here=guess[guess.block_x == 32]
    ).axes
    assert not axes.collections and axes.lines[1].is_dashed()


def test_a_transpose_has_predicted_steps(transpose):
    rows = transpose[transpose.kernel != "cpu_naive"]
    predicted = rows.assign(value=rows.value / 30, source="predicted for an H200, ± 30 %")
    (axes,) = curves.transpose_steps(rows, predicted).axes
    assert any(line.is_dashed() for line in axes.lines)


def test_colours_too_dark_for_a_dark_theme_are_lighter_there_and_others_stay():
    assert svg.seen_in_the_dark("#0072b2") == "#0072b2"
    assert (
        svg.seen_in_the_dark("#00224e") == "color-mix(in srgb, #00224e, #fff calc(var(--lk-dark, 0) * 35%))"
    )
    assert "--lk-dark:1" in svg.STYLE
