"""`labkit bench`: what it plans to measure, and the table that it writes, goes on with and mends."""

import json
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from labkit import records
from labkit.devices.timing import Timing
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import problem
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import bench, matmul_reports, running, transpose_report
from labkit.ladder.running import case
from labkit.ladder.transpose_report import SIZE, STEPS
from labkit.records import COLUMNS, tables

ORIGIN = {"gpu": "GPU", "driver": "1", "versions": "v", "date": "2026-01-31", "command": "labkit bench a"}


@pytest.fixture(autouse=True)
def simulator(monkeypatch, request):
    if not request.node.get_closest_marker("gpu"):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.fixture
def cases():
    return [
        case("naive", Matmul(8, 8, 8), TILE=4),
        case("tiled", Matmul(8, 8, 8), TILE=4),
        case("unrolled", Transpose(9, 7, dtype="int32")),
    ]


def rows(each):
    """Rows of a case as a run on a GPU would have them."""
    if isinstance(each, matmul_reports.Breakdown):
        return [each.place() | {"quantity": step} for step in ("malloc_time", "htod_time", "dtoh_time")]
    if isinstance(each, bench.Ceilings):
        return [each.place() | {"quantity": "peak_performance"}]
    if not isinstance(each, transpose_report.AsReported):
        return [each.place() | {"quantity": "time"}]
    steps = [running.Case("cpu_naive", SIZE), *(case(rung, SIZE) for rung in STEPS)]
    return [
        step.place() | {"quantity": quantity}
        for step in steps
        for quantity in (records.REPORT_TIME, "bandwidth", "step_speedup", "speedup_over_cpu")
    ]


def write(folder, cases):
    """A table of all cases; values count up."""
    table = records.frame_of(row | {"unit": "ms"} for each in cases for row in rows(each))
    table["value"] = range(1, len(table) + 1)
    tables.write(folder / "bench.csv", table)
    (folder / "bench.json").write_text(json.dumps(ORIGIN))


class TestPlan:
    @pytest.mark.parametrize("quick", [False, True])
    def test_each_place_once_and_a_problems_cases_together(self, quick):
        plan = bench.plan(quick)
        places = bench._places(each.place() for each in plan)
        assert len(set(places)) == len(places) > 100
        assert len([*groupby(plan, lambda each: each.problem)]) == len({each.problem for each in plan})

    def test_a_quick_run_measures_a_part_of_a_full_one(self):
        assert set(bench.plan(quick=True)) < set(bench.plan())

    def test_sections_make_up_the_plan(self):
        parts = [set(bench.plan(only=[section])) for section in bench.SECTIONS]
        assert set().union(*parts) == set(bench.plan()) and all(parts)
        with pytest.raises(ValueError, match=r"no section 'speed'\. Choose from matmul, .*tiles, shapes"):
            bench.plan(only=["matmul", "speed"])

    def test_every_rung_and_reference_at_every_size(self):
        plan = set(bench.plan())
        for n in (256, 512, 1024, 2048, 4096, 8192):
            assert {case(rung, Matmul(n, n, n)) for rung in (*running.rungs("matmul"), "cublas")} <= plan
            assert case("tensor_cores", Matmul(n, n, n), PRECISION="half") in plan
        for n, dtype in ((1024, "int32"), (16384, "float64"), (4096, "float32"), (2048, "int32")):
            plane = Transpose(n, n, dtype=dtype)
            assert {case(rung, plane) for rung in (*running.rungs("transpose"), "memcpy")} <= plan

    @pytest.mark.parametrize("report", records.reports())
    def test_a_full_run_has_a_counterpart_of_every_figure_of_a_report(self, tmp_path, report):
        write(tmp_path, bench.plan())
        beside = records.beside(report, tmp_path).swaplevel(axis="columns")
        printed, ours = beside["report"].notna(), beside["this machine"].notna()
        assert printed.to_numpy().any() and (ours | ~printed).to_numpy().all()


class TestTable:
    def test_rows_are_those_of_the_records(self, tmp_path, cases):
        assert bench.run(cases, tmp_path / "new", ORIGIN) == []
        table = records.recorded(tmp_path / "new")
        assert len(table) == 15 and set(table.source) == {"recorded: GPU, 2026-01-31"}
        assert list(table.quantity[:5]) == ["time", "time_p20", "time_p80", "clock", "samples"]
        assert table.value[table.quantity != "clock"].gt(0).all()
        assert set(table.kernel) == {"naive", "tiled", "unrolled"}

    def test_what_is_there_is_not_measured_again(self, tmp_path, cases):
        bench.run(cases[:2], tmp_path, ORIGIN)
        before = (tmp_path / "bench.csv").read_text()
        bench.run(cases, tmp_path, ORIGIN | {"date": "2026-02-01", "command": "labkit bench b"})
        after = (tmp_path / "bench.csv").read_text()
        assert after.startswith(before) and after.count("\n") == 16
        origin = json.loads((tmp_path / "bench.json").read_text())
        assert origin["date"] == "2026-01-31 to 2026-02-01"
        assert origin["command"] == "labkit bench a; labkit bench b"

    @pytest.mark.parametrize("lost", [1, 2, 9, 120, 400, 10**6])
    def test_a_table_that_was_cut_short_is_mended(self, tmp_path, cases, lost):
        bench.run(cases, tmp_path, ORIGIN)
        table = tmp_path / "bench.csv"
        text = table.read_text()
        table.write_text(text[: max(0, len(text) - lost)])
        assert bench.run(cases, tmp_path, ORIGIN) == []
        rows = running.row_dicts(records.read(table))
        assert len(rows) == 15
        assert set(bench._places(rows)) == set(bench._places(each.place() for each in cases))
        first = text.split("\n")[:6]
        assert lost > 500 or table.read_text().split("\n")[:6] == first  # the first case was whole

    def test_an_interruption_loses_the_case_at_hand_alone(self, tmp_path, cases, monkeypatch):
        timed = []

        def stop(launch, **settings):
            timed.append(launch)
            if len(timed) == 4:  # each case is timed twice
                raise KeyboardInterrupt
            return real(launch, **settings)

        real = running.time_kernel
        monkeypatch.setattr(running, "time_kernel", stop)
        with pytest.raises(KeyboardInterrupt):
            bench.run(cases, tmp_path, ORIGIN)
        assert set(records.recorded(tmp_path).kernel) == {"naive"}
        bench.run(cases, tmp_path, ORIGIN)
        assert len(records.recorded(tmp_path)) == 15

    @pytest.mark.parametrize("key", ["gpu", "driver", "versions"])
    def test_another_machines_table_is_refused_and_kept(self, tmp_path, cases, key):
        bench.run(cases[:1], tmp_path, ORIGIN)
        before = [(tmp_path / name).read_text() for name in ("bench.csv", "bench.json")]
        message = f"was measured with {key} {ORIGIN[key]}; this is other. Choose another folder"
        with pytest.raises(ValueError, match=message):
            bench.run(cases, tmp_path, ORIGIN | {key: "other"})
        assert [(tmp_path / name).read_text() for name in ("bench.csv", "bench.json")] == before

    def test_a_table_without_provenance_is_refused(self, tmp_path, cases):
        bench.run(cases[:1], tmp_path, ORIGIN)
        (tmp_path / "bench.json").unlink()
        with pytest.raises(ValueError, match=r"bench\.csv has no provenance"):
            bench.run(cases, tmp_path, ORIGIN)

    def test_a_wrong_result_is_told_and_not_in_the_table(self, tmp_path, cases, monkeypatch):
        real = running.launcher
        monkeypatch.setattr(
            running,
            "launcher",
            lambda each, args: (lambda: None) if each.rung == "tiled" else real(each, args),
        )
        (failure,) = bench.run(cases, tmp_path, ORIGIN)
        assert failure.startswith("tiled TILE=4 matmul M=8 N=8 K=8 float32: C[0, 0] is nan")
        assert set(records.recorded(tmp_path).kernel) == {"naive", "unrolled"}


def test_of_the_smallest_tiles_a_band_is_timed_and_scaled(monkeypatch):
    def two_milliseconds(launch, **_):
        launch()
        return Timing((2.0,), "by hand")

    monkeypatch.setattr(running, "time_kernel", two_milliseconds)
    band = matmul_reports.Band("naive", Matmul(8, 64, 64), (("TILE", 8),), m=64)
    found = {row["quantity"]: row for row in band.rows(band.problem.args(np))}
    assert found["time"]["value"] == 2 * 64 / 8
    assert found["samples"]["value"] == 1
    assert {(row["m"], row["note"]) for row in found.values()} == {(64, "8 of 64 rows of C, scaled")}
    slow = [each for each in bench.plan(only=["tiles"]) if isinstance(each, matmul_reports.Band)]
    assert {(each.m, dict(each.macros)["TILE"]) for each in slow} == {
        *((4096, 1), (4096, 2), (8192, 1), (8192, 2), (8192, 4))
    }


def test_a_breakdown_in_the_simulator_has_the_kernel_alone(tmp_path):
    each = matmul_reports._broken_down(case("naive", problem("matmul", 16, 16, 16)))
    bench.run([each], tmp_path, ORIGIN)
    table = records.recorded(tmp_path)
    assert list(table.quantity) == [
        *("kernel_time", "kernel_time_first", "kernel_time_min", "kernel_time_max", "samples")
    ]
    size = (tmp_path / "bench.csv").stat().st_size
    bench.run([each], tmp_path, ORIGIN)
    assert (tmp_path / "bench.csv").stat().st_size == size


@pytest.mark.gpu
def test_a_run_on_a_gpu_and_the_same_again(gpu, tmp_path):
    plan = [
        *bench.plan(True, ["shapes", "breakdown", "ceilings"]),
        transpose_report.AsReported("naive", SIZE),
    ]
    origin = records.provenance("labkit bench")
    assert bench.run(plan, tmp_path, origin) == []
    table = records.recorded(tmp_path)
    assert (table.quantity == "time").sum() == 10
    assert table.value[table.quantity == "clock"].gt(100).all()
    assert {"context_time_first", "htod_time", "dtoh_time_max", "total_time"} <= set(table.quantity)
    assert {"peak_performance", "peak_bandwidth", "performance"} <= set(table.quantity)
    assert list(table.kernel[table.quantity == records.REPORT_TIME]) == ["cpu_naive", *STEPS]
    start = time.perf_counter()
    assert bench.run(plan, tmp_path, origin) == []
    assert time.perf_counter() - start < 1 and len(records.recorded(tmp_path)) == len(table)


RECORD = Path(__file__).parents[3] / "data" / "h200" / "bench.csv"


@pytest.fixture(scope="module")
def table():
    return records.read(RECORD)


@pytest.fixture(scope="module")
def timings(table):
    """Return one row per case, with one column per quantity."""
    place = [column for column in COLUMNS if column not in ("quantity", "unit", "value")]
    timed = table[table.quantity.isin(["time", "time_p20", "time_p80", "clock", "samples"])]
    timings = timed.pivot(index=place, columns="quantity", values="value").reset_index()
    sides = timings[["m", "n", "k"]].astype("float64").prod(axis=1)
    return timings.assign(gflops=2 * sides / timings.time / 1e6).dropna(subset="time")


class TestRecord:
    """The run on an H200 in data/h200, which notebooks show."""

    def test_it_is_a_whole_run(self, timings):
        """Whatever macros the rungs had then. A family is asked for once the run has some of it."""
        keys = ["problem", "kernel", "dtype", "m", "n", "k", "rows", "cols", "block_x", "block_y", "tile"]
        there = {
            tuple(None if value != value else value for value in row)
            for row in timings[keys].astype(object).where(timings[keys].notna(), None).itertuples(index=False)
        }
        timed = [each.place() for each in bench.plan() if type(each) is running.Case]
        timed = [place for place in timed if place["problem"] in set(timings.problem)]
        missing = [place for place in timed if tuple(place[key] for key in keys) not in there]
        assert not missing

    def test_figures_fit_each_other(self, timings):
        assert (timings.time_p20 <= timings.time).all() and (timings.time <= timings.time_p80).all()
        assert timings.samples.ge(1).all() and timings.time.gt(0).all()
        assert set(timings.machine) == {"NVIDIA H200"} and timings.clock.between(300, 1980).all()

    def test_no_rate_is_beyond_the_hardware(self, timings):
        """67 TFLOP/s in float32 without tensor cores, 4.8 TB/s (NVIDIA H200 Tensor Core GPU datasheet)."""
        full = timings[(timings.dtype == "float32") & (timings.kernel != "tensor_cores")]
        assert full.gflops.max() < 67e3
        planes = timings[(timings.problem == "transpose") & (timings["rows"] >= 8192)]
        sizes = planes.dtype.map({"int32": 4, "float32": 4, "float64": 8})
        moved = 2 * planes["rows"].astype("float64") * planes["cols"].astype("float64") * sizes
        assert (moved / planes.time / 1e6).between(10, 4800).all()

    def test_larger_blocks_are_faster_than_single_threads(self, timings):
        swept = timings[
            timings.kernel.isin(["naive", "tiled"]) & (timings.m >= 1024) & (timings.m == timings.k)
        ]
        for _, line in swept.groupby(["kernel", "dtype", "m"]):
            times = line.set_index("block_x").time
            assert times[16] < times[1] / 10 if 1 in times else True

    def test_copies_from_pinned_memory_are_faster(self, table):
        copies = table[table.quantity.isin(["htod_time", "dtoh_time"]) & (table.m >= 1024)]
        times = copies.pivot(index=["quantity", "m"], columns="note", values="value")
        assert len(times) == 6 and (times.pinned < times.pageable).all()

    @pytest.mark.parametrize("report", records.reports())
    def test_every_figure_of_a_report_has_its_counterpart(self, report):
        beside = records.beside(report).swaplevel(axis="columns")
        printed, ours = beside["report"].notna(), beside["H200"].notna()
        assert (ours | ~printed).to_numpy().all()
