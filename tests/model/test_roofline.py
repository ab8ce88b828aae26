"""The roofline: intensities against counting by hand, and what the picture shows."""

import itertools

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from labkit.figures.roofline import roofline
from labkit.kernels.matmul.family import Matmul
from labkit.model.roofline import COUNTED, SECTORS, count_sectors, intensities
from labkit.records import frame_of

CUBE = Matmul(4096, 4096, 4096)
HERE = "measured here: NVIDIA H200"
# Plausible TFLOP/s of an H200, and FLOP a byte; cuBLAS is not ours to count.
RATES = {
    "naive_uncoalesced": 1.25,
    "naive": 6,
    "tiled": 9,
    "tiled_unrolled": 9.6,
    "register_column": 17,
    "register_tile": 30,
    "vectorised": 37,
    "double_buffered": 40,
    "warp_tile": 48,
    "cublas": 51.7,
    "tuned": 52.5,
}
INTENSITIES = dict(zip(RATES, (0.06, 0.4, 4, 8, 16, 32, 32, 32, 32, None, 42), strict=True))
ROOFS = {
    ("peak_performance", ""): 66908,
    ("performance", "peak"): 63000,
    ("performance", "cublas"): 51700,
    ("peak_bandwidth", ""): 4814,
    ("peak_l1_bandwidth", ""): 33454,
    ("bandwidth", "memcpy"): 4150,
}


def rows(values, source, **others):
    """Rows at CUBE: a value for each (quantity, kernel)."""
    place = {"problem": "matmul", "dtype": "float32", "m": 4096, "n": 4096, "k": 4096, "source": source}
    return frame_of(
        place | {"quantity": quantity, "kernel": kernel, "value": value} | others
        for (quantity, kernel), value in values.items()
    )


def times(rates=RATES):
    return rows({("time", name): CUBE.flops / rate / 1e9 for name, rate in rates.items()}, HERE)


def counters(found=INTENSITIES):
    return rows({(SECTORS[0], name): CUBE.flops / 32 / each for name, each in found.items() if each}, COUNTED)


def roofs(figures=ROOFS):
    return rows(figures, "theoretical: H200")


class TestIntensities:
    def test_of_counts(self):
        assert intensities(counters()) == pytest.approx({k: v for k, v in INTENSITIES.items() if v})

    def test_several_counts_of_a_kernel_are_refused(self):
        with pytest.raises(ValueError, match=r"several counts of naive_uncoalesced: choose one size"):
            intensities(pd.concat([counters(), counters()]))

    def test_the_simulators_counts_are_those_of_counting_by_hand(self, monkeypatch):
        """A warp of naive reads 1 + 4 sectors per step and writes 4; one of tiled reads 8 per 16 steps."""
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        cube = Matmul(128, 128, 128)
        counted = count_sectors(["naive", "tiled"], cube)
        assert set(counted.source) == {COUNTED}
        warps = 128 * 128 / 32
        by_hand = {"naive": 5 * 128 + 4, "tiled": 8 * 128 / 16 + 4}
        expected = {name: cube.flops / 32 / warps / sectors for name, sectors in by_hand.items()}
        assert intensities(counted) == pytest.approx(expected)


@pytest.fixture(scope="module")
def figure():
    figure = roofline(times(), counters(), roofs())
    FigureCanvasAgg(figure).draw()
    return figure


class TestPicture:
    def points(self, figure):
        dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
        return sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in dots)

    def test_every_counted_rung_is_a_point(self, figure):
        expected = sorted((each, RATES[name]) for name, each in INTENSITIES.items() if each)
        assert self.points(figure) == [pytest.approx(point) for point in expected]

    def test_no_point_is_above_the_caches_roof_or_the_peak(self, figure):
        lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
        highest = max(line.get_ydata()[-1] for line in lines)
        steepest = max(line.get_ydata()[0] / line.get_xdata()[0] for line in lines)
        assert highest == pytest.approx(66.908)
        assert steepest == pytest.approx(33.454)
        assert all(y < min(highest, steepest * x) for x, y in self.points(figure))

    def test_names_have_room(self, figure):
        boxes = {text.get_text(): Text.get_window_extent(text) for text in figure.axes[0].texts}
        assert {name.split()[0] for name in boxes} >= set(RATES)
        column = {name: box for name, box in boxes.items() if name.split()[0] in RATES}
        for (one, box), (other, its) in itertools.combinations(column.items(), 2):
            assert not box.overlaps(its), (one, other)
        width, height = figure.canvas.get_width_height()
        for name, box in boxes.items():
            assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height, name

    def test_the_title_says_what_was_found(self, figure):
        title = figure.axes[0].get_title("left").replace("\n", " ")
        assert title == (
            "N = 4096: tuned reaches 78 % of the theoretical peak, 42× naive_uncoalesced, "
            "with 700× its FLOP a byte"
        )

    def test_axes_have_units_and_the_sources_are_told(self, figure):
        axes = figure.axes[0]
        assert "sectors × 32 B" in axes.get_xlabel() and axes.get_ylabel() == "TFLOP/s"
        assert "each element once: 683 FLOP/B" in [text.get_text() for text in axes.texts]
        for source in (HERE, COUNTED, "theoretical: H200"):
            assert source in figure.get_supxlabel()

    def test_one_rung_alone(self):
        figure = roofline(times({"tuned": 52.5}), counters({"tuned": 42}), roofs())
        assert figure.axes[0].get_title("left") == "N = 4096: tuned reaches 78 % of the theoretical peak"
        assert self.points(figure) == [(42, pytest.approx(52.5))]

    def test_the_chosen_rung_stands_out(self):
        axes = roofline(times(), counters(), roofs(), chosen="naive").axes[0]
        assert axes.get_title("left") == (
            "N = 4096: naive reaches 9 % of the theoretical peak, 4.8× naive_uncoalesced, "
            "with 6.67× its FLOP a byte"
        )
        assert [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"] == [" naive 6"]

    def test_without_theory_the_measured_peak_is_the_roof(self):
        measured = {key: value for key, value in ROOFS.items() if not key[0].startswith("peak")}
        figure = roofline(times(), counters(), roofs(measured))
        assert "83 % of the measured peak" in figure.axes[0].get_title("left")


class TestRefusals:
    def test_several_sizes(self):
        both = pd.concat([times(), times().assign(m=8192)])
        with pytest.raises(ValueError, match="2 matrix sizes and dtypes; choose one"):
            roofline(both, counters(), roofs())

    def test_no_counts(self):
        with pytest.raises(ValueError, match=r"no sectors were counted of .*tuned.*, only of other"):
            roofline(times(), counters({"other": 1}), roofs())

    def test_a_chosen_kernel_that_was_not_counted(self):
        with pytest.raises(
            ValueError, match=r"cublas was not both timed and counted. Choose one of naive_un"
        ):
            roofline(times(), counters(), roofs(), chosen="cublas")

    @pytest.mark.parametrize("lacking", ["performance", "bandwidth"])
    def test_roofs_that_lack_a_peak_or_a_memory(self, lacking):
        figures = {key: value for key, value in ROOFS.items() if lacking not in key[0]}
        with pytest.raises(ValueError, match=r"the roofs have no figure of .* take those of ceilings"):
            roofline(times(), counters(), roofs(figures))
