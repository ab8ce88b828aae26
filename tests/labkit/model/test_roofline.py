"""The roofline: intensities against counting by hand, and what the picture shows."""

import itertools
import json
import math
import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from labkit.figures.roofline import Choice, draw, roofline, scene_of
from labkit.kernels.matmul.family import Matmul
from labkit.model.roofline import COUNTED, SECTORS, count_sectors, intensities
from labkit.records import frame_of

CUBE = Matmul(4096, 4096, 4096)
HERE = "measured here: NVIDIA H200"
# Plausible TFLOP/s of an H200, and FLOP per byte; cuBLAS is not ours to count.
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
def picture():
    return roofline(times(), counters(), roofs())


def parsed(picture):
    return ElementTree.fromstring(str(picture))


def elements(picture, tag):
    return parsed(picture).iter(f"{{http://www.w3.org/2000/svg}}{tag}")


def texts(picture):
    return [each.text for each in elements(picture, "text") if each.text]


def bold(picture):
    return [each.text for each in elements(picture, "text") if each.get("font-weight") == "700"]


class TestPicture:
    def points(self, picture):
        """Return the filled markers' middles, in pixels."""
        found = []
        for path in elements(picture, "path"):
            if path.get("fill") in ("#0072B2", "#D55E00"):
                corners = [tuple(map(float, corner.split())) for corner in path.get("d")[1:-1].split("L")]
                found.append(tuple(sum(each) / len(corners) for each in zip(*corners, strict=True)))
        return found

    def test_every_counted_rung_is_a_point_in_its_place(self, picture):
        """Three points give the scale of each axis; the others lie on it."""
        found = self.points(picture)
        rungs = [(each, RATES[name]) for name, each in INTENSITIES.items() if each]
        assert len(found) == len(rungs) == 10
        for axis, direction in ((0, 1), (1, -1)):
            values = sorted(math.log(rung[axis]) for rung in rungs)
            pixels = sorted(direction * point[axis] for point in found)
            scale = (pixels[-1] - pixels[0]) / (values[-1] - values[0])
            for value, pixel in zip(values, pixels, strict=True):
                assert pixel - pixels[0] == pytest.approx(scale * (value - values[0]), abs=0.2)

    def test_no_rung_is_above_the_caches_roof_or_the_peak(self):
        scene = scene_of(times(), counters(), roofs())
        assert scene.roof_at(1) == pytest.approx(33.454) and scene.roof_at(9) == pytest.approx(66.908)
        assert all(rung.rate < scene.roof_at(rung.intensity) for rung in scene.ours)

    def test_names_have_room(self, picture):
        names = {
            each.text: float(each.get("y"))
            for each in elements(picture, "text")
            if each.text and each.text.split()[0] in RATES
        }
        assert {name.split()[0] for name in names} == set(RATES)
        heights = sorted(names.values())
        assert all(below - above >= 15.9 for above, below in itertools.pairwise(heights))
        assert heights[0] > 0 and heights[-1] < picture.height and picture.width <= 640

    def test_the_title_says_what_was_found(self, picture):
        found = (
            "N = 4096: tuned reaches 78 % of the theoretical peak, 42× naive_uncoalesced, "
            "with 700× its FLOP per byte"
        )
        assert found.partition(",")[0] in texts(picture) and picture.alt == f"Roofline: {found}."

    def test_axes_have_units_and_the_sources_are_told(self, picture):
        told = " ".join(texts(picture))
        for words in ("sectors × 32 B", "TFLOP/s", "each element once: 683 FLOP/B"):
            assert words in told
        for source in (HERE, COUNTED, "theoretical: H200"):
            assert source in told

    def test_one_rung_alone(self):
        picture = roofline(times({"tuned": 52.5}), counters({"tuned": 42}), roofs())
        assert "N = 4096: tuned reaches 78 % of the theoretical peak" in texts(picture)
        assert len(self.points(picture)) == 1

    def test_the_chosen_rung_stands_out(self):
        picture = roofline(times(), counters(), roofs(), chosen="naive")
        assert picture.alt == (
            "Roofline: N = 4096: naive reaches 9 % of the theoretical peak, 4.8× naive_uncoalesced, "
            "with 6.67× its FLOP per byte."
        )
        assert bold(picture) == ["naive 6"]
        assert [path.get("fill") for path in elements(picture, "path")].count("#D55E00") == 1

    def test_without_theory_the_measured_peak_is_the_roof(self):
        measured = {key: value for key, value in ROOFS.items() if not key[0].startswith("peak")}
        assert "83 % of the measured peak" in roofline(times(), counters(), roofs(measured)).alt

    def test_the_memory_has_no_roof_over_bytes_of_the_caches(self, picture):
        assert "L1 caches: theoretical 33.5 TB/s" in texts(picture) and "memory" not in str(picture)

    def test_where_the_caches_rate_is_unknown_there_is_the_peak_alone(self):
        figures = {key: value for key, value in ROOFS.items() if key[0] != "peak_l1_bandwidth"}
        scene = scene_of(times(), counters(), roofs(figures))
        assert scene.slope is None and scene.roof_at(0.01) == pytest.approx(66.908)
        assert "TB/s" not in str(roofline(times(), counters(), roofs(figures)))

    def test_without_an_explorer_nothing_can_be_clicked(self, picture):
        assert not re.search(r" data-(set|tip|link|cols)=| tabindex=", str(picture))


def test_in_an_explorer_a_click_chooses_a_rung():
    """The positions are those of the control; cublas, whose bytes are unknown, can be pointed at only."""
    scene = scene_of(times(), counters(), roofs())
    order = [name for name in INTENSITIES if name != "cublas"]
    picture = draw(scene, "tiled", Choice(order, "instructions", 17.6, scene.window))
    buttons = [each for each in elements(picture, "g") if each.get("role") == "button"]
    positions = {each.get("data-key"): json.loads(each.get("data-set"))["rung"] for each in buttons}
    assert positions == {name: place for place, name in enumerate(order)}
    assert [each.get("data-key") for each in buttons if each.get("aria-pressed") == "true"] == ["tiled"]
    assert all(each.get("aria-label") and each.get("tabindex") == "0" for each in buttons)
    tips = {each.get("data-link"): each.get("data-tip") for each in elements(picture, "g")}
    assert tips["tiled"] == "tiled: 9 TFLOP/s with 4 FLOP per byte; its roof is 66.9."
    assert tips["naive"] == "naive: 6 TFLOP/s with 0.4 FLOP per byte; its roof is 13.4."
    assert tips["cublas"].endswith("no such bytes of it were counted.")
    assert "instructions: 17.6" in texts(picture) and "instructions, is 17.6 TFLOP/s" in picture.alt


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

    def test_roofs_that_lack_a_peak(self):
        figures = {key: value for key, value in ROOFS.items() if "performance" not in key[0]}
        with pytest.raises(ValueError, match=r"the roofs have no figure of .* take those of ceilings"):
            roofline(times(), counters(), roofs(figures))
