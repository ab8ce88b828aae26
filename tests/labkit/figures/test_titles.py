"""A title states one finding in one line, which has room. What tests draw is looked at in conftest.py."""

import json
import re
from pathlib import Path

import pytest
from titles import misfits, titles

from labkit.figures import findings
from labkit.figures.findings import Finding, one_line
from labkit.figures.style import Plot, titled
from labkit.figures.svg import Svg

ROOT = Path(__file__).parents[3]
SOLVED = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
BY_MATPLOTLIB = 'stroke-linejoin="round"'  # which Plot.svg sets


def stored(path):
    """Yield the pictures in a notebook's outputs, each with the id of its cell."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if svg := output.get("data", {}).get("image/svg+xml"):
                yield cell["id"], "".join(svg)


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_stored_titles_have_one_line_and_room(path):
    assert {cell: wrong for cell, svg in stored(path) if (wrong := misfits(svg))} == {}


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_each_stored_plot_has_a_title(path):
    """Run the notebook again if its plots were drawn before titles were marked."""
    assert [cell for cell, svg in stored(path) if BY_MATPLOTLIB in svg and not titles(svg)] == []


def test_titles_are_set_in_one_place():
    calls = re.compile(r"\.set_title\(|\.suptitle\(")
    found = {path.name for path in (ROOT / "labkit").rglob("*.py") if calls.search(path.read_text("utf-8"))}
    assert found == {"style.py"}


class TestMisfits:
    def test_of_a_picture(self):
        picture = Svg(200, 60, "a picture")
        picture.title("short")
        assert misfits(str(picture)) == []
        picture.title("a title that is longer than the picture is wide")
        with pytest.raises(AssertionError, match="titles without room"):
            str(picture)

    def test_of_a_plot(self):
        plot = Plot(figsize=(4, 3), layout="constrained")
        titled(plot.subplots(), "two\nlines become one")
        assert titles(str(plot.svg())) == ["two lines become one"]
        plot.axes[0].set_title("the title\nof a notebook's own plot")
        with pytest.raises(AssertionError, match="2 lines: 'the title'"):
            str(plot.svg())


class TestOneLine:
    at, faster = "N = 4096", (" as fast as naive",)

    def found(self, number, who="", kernel="", before="tiled is ", gain=1.0):
        return Finding(before, number, *self.faster, at=self.at, who=who, kernel=kernel, gain=gain)

    def test_one_finding(self):
        assert one_line([self.found("1.4×")], 80) == "N = 4096: tiled is 1.4× as fast as naive"

    def test_sets_that_differ_in_a_number_have_one_each(self):
        found = [self.found("1.77×", "report"), self.found("1.4×", "H200")]
        assert one_line(found, 80) == "N = 4096: tiled is 1.77× as fast as naive (report), 1.4× (H200)"

    def test_what_all_say_is_said_once(self):
        found = [self.found("2×", "report"), self.found("2×", "H200")]
        assert one_line(found, 80) == "N = 4096: tiled is 2× as fast as naive"

    def test_where_sets_differ_in_more_or_have_no_room_the_last_speaks(self):
        other = [self.found("2×", "report"), self.found("9×", "here", before="packed is ")]
        assert one_line(other, 80) == "N = 4096, here: packed is 9× as fast as naive"
        many = [self.found("2×", "report"), self.found("3×", "here")]
        assert one_line(many, 50) == "N = 4096, here: tiled is 3× as fast as naive"

    def test_of_kernels_that_differ_in_more_the_one_that_gains_most_speaks(self):
        found = [
            self.found("16×", kernel="naive", before="16×16 is ", gain=16),
            self.found("256×", kernel="tiled", before="32×32 is ", gain=256),
        ]
        assert one_line(found, 80) == "N = 4096: tiled 32×32 is 256× as fast as naive"
        alike = [each._replace(before="32×32 is ") for each in found]
        assert one_line(alike, 80) == "N = 4096: 32×32 is 16× as fast as naive (naive), 256× (tiled)"


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("report int-matmul, GPU not stated", "report"),
        ("recorded: NVIDIA H200, 2026-11-22 to 2026-11-24", "H200"),
        ("measured here: NVIDIA L4", "here"),
        ("recorded: AMD EPYC, 2 cores", "AMD EPYC"),
    ],
)
def test_a_source_is_a_word_in_a_title(source, word):
    assert findings.brief(source) == word
