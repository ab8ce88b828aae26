"""The ladder's steps, against counts by hand and the recorded tables; and its pictures."""

import math
import re

import pandas as pd
import pytest

from labkit import records
from labkit.figures import ladder_plot
from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running, steps
from labkit.model import predicted

LARGE = running.recorded(Matmul(4096, 4096, 4096))
CLIMB = [
    *("naive_uncoalesced", "naive", "tiled", "tiled_unrolled", "register_column", "register_tile"),
    *("vectorised", "double_buffered", "warp_tile", "tuned", "cublas"),
]


def time_of(kernel, n):
    """The recorded time, in ms, straight from the table."""
    rows = records.recorded("h200", "time", kernel=kernel, dtype="float32", m=n, n=n, k=n)
    (value,) = rows[~rows.tile.isin([1, 2, 4, 8]) | rows.tile.isna()].value.head(1)
    return value


class TestChanges:
    def test_two_indices_change_places(self):
        assert steps.changes("naive_uncoalesced", "naive").splitlines() == [
            "- int col = blockIdx.x * blockDim.x + threadIdx.y;",
            "- int row = blockIdx.y * blockDim.y + threadIdx.x;",
            "+ int col = blockIdx.x * blockDim.x + threadIdx.x;",
            "+ int row = blockIdx.y * blockDim.y + threadIdx.y;",
        ]

    def test_macros_checks_and_comments_are_left_out(self):
        assert steps.changes("tiled", "tiled_unrolled") == "+ #pragma unroll UNROLL"

    def test_places_by_what_they_are_about(self):
        told = steps.changes("tiled_unrolled", "register_column", about="B_tile[k][x]")
        assert "-     sum += A_tile[y][k] * B_tile[k][x];" in told.splitlines()
        assert "+         sum[i] += A_tile[y + i][k] * b;" in told.splitlines()
        assert "__launch_bounds__" not in told and "..." not in told
        assert "\n...\n" in steps.changes("tiled_unrolled", "register_column")

    def test_no_such_place(self):
        with pytest.raises(
            ValueError, match="tiled and tiled_unrolled do not differ in a line with 'float4'"
        ):
            steps.changes("tiled", "tiled_unrolled", about="float4")


class TestRates:
    def test_of_the_recorded_times(self):
        table = steps.rates(LARGE)
        assert list(table.index) == CLIMB
        tuned, cublas = time_of("tuned", 4096), time_of("cublas", 4096)
        assert table["TFLOP/s"]["tuned"] == pytest.approx(2 * 4096**3 / (tuned / 1e3) / 1e12)
        assert table["% of cublas"]["tuned"] == pytest.approx(100 * cublas / tuned)
        assert table["× the one before"]["tuned"] == pytest.approx(time_of("warp_tile", 4096) / tuned)
        assert pd.isna(table["× the one before"]["naive_uncoalesced"])

    def test_without_the_reference_there_is_no_percentage(self):
        assert steps.rates(LARGE[LARGE.kernel != "cublas"])["% of cublas"].isna().all()

    @pytest.mark.parametrize("times", [steps.recorded([256, 512], ["tiled"]), LARGE[LARGE.kernel == ""]])
    def test_of_several_sizes_or_none(self, times):
        with pytest.raises(ValueError, match="one time of each rung"):
            steps.rates(times)


def test_counters_are_those_of_the_recorded_table_for_each_multiply_add():
    table = steps.counters()
    raw = records.recorded("h200", kernel="tiled", dtype="float32", n=1024).set_index("quantity").value
    assert list(table.index) == CLIMB[:-1]
    assert table.instructions["tiled"] == pytest.approx(raw["smsp__inst_executed.sum"] * 32 / 1024**3)
    assert table.sectors["tiled"] == 0.5  # 2 TILE^2 elements, 8 a sector, for TILE^3 / 32, with TILE = 16
    assert table.sectors["naive"] == 5  # one element of A is one sector, 32 of B are four
    assert table.sectors["naive_uncoalesced"] == 33  # and the other way round
    assert table.registers["tuned"] == 215


def test_counts_of_a_tile_and_of_a_column():
    """Per warp: TILE = 16 multiply-adds per round and thread; 4 in a column, 8 rounds of k, make 32."""
    p = Matmul(64, 64, 64)
    column = running.case("register_column", p, TILE_M=32, TILE_N=32, TILE_K=8, THREAD_M=4)
    table = steps.counted(running.case("tiled", p), column)
    assert list(table.loc["tiled"]) == [2 / 16, 2, 2 / 16]
    assert list(table.loc["register_column"]) == [2 / 32, (4 + 1) / 4, 2 / 32]


def test_tiles_and_the_blocks_that_an_h200_holds_of_them():
    """64 K registers: 256 threads of 80 take 20 K, 256 of 128 take 32 K, 256 of 215 (of 216) 54 K."""
    table = steps.tiles()
    assert list(table.index) == CLIMB[:-1]
    held = {"tiled": 8, "tiled_unrolled": 2, "register_column": 3, "register_tile": 2, "tuned": 1}
    assert {rung: table["per SM"][rung] for rung in held} == held
    assert tuple(table.loc["tuned", ["TILE_M", "TILE_N"]]) == (128, 256)
    assert tuple(table.loc["tiled", ["TILE_M", "TILE_N"]]) == (16, 16)
    assert table["TFLOP/s"]["tuned"] == pytest.approx(2 * 8192**3 / time_of("tuned", 8192) / 1e9)


class TestPlots:
    here = LARGE.assign(value=3 * LARGE.value, source="measured here: NVIDIA T4")

    def test_bars_state_the_climb(self):
        figure = ladder_plot.bars(LARGE, here=running.here(Matmul(4096, 4096, 4096)))
        (axes,) = figure.axes
        assert len(axes.patches) == 2 * len(CLIMB)  # with an outline each; that of cublas is empty
        assert axes.get_title("left") == "N = 4096: tuned has 105× the rate of naive_uncoalesced"
        texts = [text.get_text() for text in axes.texts]
        assert "8.12 (15.8 %)" in texts and "52.2 (102 %)" in texts
        first, second = figure.get_supxlabel().splitlines()
        assert first == f"plain: {LARGE.source.iloc[0]}"
        assert re.fullmatch(r"dashed outline: predicted for an H200, ± \d+ %", second)

    def test_outlines_are_the_shipped_predictions(self):
        (axes,) = ladder_plot.bars(LARGE).axes
        outlines = [patch for patch in axes.patches if patch.get_linestyle() == "--"]
        widths = dict(zip(CLIMB, (patch.get_width() for patch in outlines), strict=True))
        shipped = predicted.times("H200", kernel=CLIMB, n=4096, dtype="float32").set_index("kernel")
        for rung in ("naive_uncoalesced", "register_tile", "tuned"):
            assert widths[rung] == pytest.approx(2 * 4096**3 / shipped.value[rung] / 1e9)
        assert math.isnan(widths["cublas"])
        elsewhere = LARGE.assign(machine="NVIDIA B200")
        assert len(ladder_plot.bars(elsewhere).axes[0].patches) == len(CLIMB)  # nothing is shipped for it

    def test_bars_of_two_machines(self):
        few = self.here[self.here.kernel.isin(["tiled", "tuned"])]
        figure = ladder_plot.bars(LARGE, here=few)
        (axes,) = figure.axes
        assert len(axes.patches) == 2 * len(CLIMB) + 2
        assert [text.get_text() for text in axes.texts][-2:] == ["2.71", "17.4"]  # no cublas: no percent
        assert axes.get_title("left") == "N = 4096, here: tuned has 6.43× the rate of tiled"
        assert figure.get_supxlabel().splitlines()[1] == "hatched: measured here: NVIDIA T4"

    def test_curves_name_the_fastest_at_each_size(self):
        sizes = [256, 512, 1024, 2048, 4096, 8192]
        chosen = ["tiled", "tiled_unrolled", "register_column", "tuned", "cublas"]
        figure = ladder_plot.by_size(steps.recorded(sizes, chosen), here=steps.here(sizes, chosen))
        (axes,) = figure.axes
        assert axes.get_title("left") == "fastest of ours: tiled at N = 256, tuned from N = 2048"
        assert [line.get_label() for line in axes.lines] == chosen
        assert list(axes.lines[0].get_xdata()) == sizes

    def test_curves_of_two_machines(self):
        figure = ladder_plot.by_size(LARGE, here=self.here)
        (axes,) = figure.axes
        assert {line.get_linestyle() for line in axes.lines[: len(CLIMB)]} == {"-"}
        assert {line.get_linestyle() for line in axes.lines[len(CLIMB) :]} == {"--"}
        assert len(axes.get_legend_handles_labels()[0]) == len(CLIMB)
        assert axes.get_title("left") == "N = 4096: fastest of ours: tuned"


def test_records_of_another_family_are_named():
    with pytest.raises(ValueError, match=r"these are records of reduction; .* Choose labkit\.plots"):
        steps.rates(records.recorded("h200", "time", problem="reduction"))
