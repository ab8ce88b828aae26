"""Reports and runs in small made-up folders: what is found, compared and labelled, counted by hand."""

import json

import pandas as pd
import pytest

from labkit import records
from labkit.records import shipped
from labkit.records.tables import HEADER

RUN = {"gpu": "NVIDIA Made-Up", "driver": "1", "versions": "ncu 1, compute-sanitizer 2", "command": "x"}


def product(kernel, n, value, *, report="", machine="", block="16,16", quantity="time", note=""):
    """A line of a table: float32 matrices of n x n."""
    unit = "GFLOP/s" if quantity == "performance" else "ms"
    where = f"{report},{machine},matmul,{kernel},float32,m={n} n={n} k={n}"
    return f"{where},{block},,{quantity},{unit},{value},{note}\n"


def transpose(kernel, value, *, report="", quantity="time"):
    return f"{report},,transpose,{kernel},int32,rows=2048 cols=2048,32,8,,{quantity},ms,{value},\n"


@pytest.fixture
def compared(monkeypatch):
    """Have a report of these quantities alone compared."""
    return lambda report, *quantities: monkeypatch.setitem(
        shipped._TABLES, report, ({"quantity": list(quantities)}, shipped._TABLES[report][1])
    )


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty data/ in the place of the shipped one; it makes tables there, and what lies beside them."""
    monkeypatch.setattr(shipped, "_DATA", tmp_path)

    def table(name, *lines, run=None, header=HEADER):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + "".join(lines), encoding="utf-8")
        if run:
            path.with_suffix(".json").write_text(json.dumps(RUN | run), encoding="utf-8")
        return path

    for report in records.reports():
        table(f"reports/{report}.csv")
    return table


RATED = ("time", "performance")
DAY, LATER = {"date": "2026-01-02"}, {"date": "2026-03-04"}


class TestLoad:
    @pytest.fixture(autouse=True)
    def printed(self, data):
        data(
            "reports/int-matmul.csv",
            product("naive", 256, 0.5, report="int-matmul", machine="GTX 1"),
            product("tiled", 256, 0.25, report="int-matmul"),
            product("cpu_naive", 256, 50, report="int-matmul"),
        )
        data("reports/int-transpose.csv", transpose("naive", 2, report="int-transpose"))

    def test_every_row_says_which_report_and_machine_it_is_from(self):
        assert records.load().source.tolist() == [
            "report int-matmul, GTX 1",
            "report int-matmul, GPU not stated",
            "report int-matmul, CPU not stated",
            "report int-transpose, GPU not stated",
        ]

    def test_filters(self):
        assert records.load("int-matmul").kernel.tolist() == ["naive", "tiled", "cpu_naive"]
        assert records.load(kernel="naive").value.tolist() == [0.5, 2]
        assert records.load("int-matmul", "time", kernel=["tiled", "cpu_naive"]).value.tolist() == [0.25, 50]
        assert records.load(rows=2048).report.tolist() == ["int-transpose"]

    def test_what_no_report_has(self):
        with pytest.raises(ValueError, match=r"no record has report='x'; report is one of: int-matmul, "):
            records.load("x")
        with pytest.raises(ValueError, match="no column 'warps'"):
            records.load(warps=3)

    def test_what_a_caller_does_with_it_is_its_own(self):
        loaded = records.load()
        loaded.loc[0, "value"] = 99
        assert records.load().value[0] == 0.5

    def test_the_list_of_reports_is_a_copy(self):
        records.reports().clear()
        assert "int-matmul" in records.reports()


class TestRecorded:
    def test_all_tables_of_a_machine_with_the_gpu_and_the_day_of_each(self, data):
        data("made/a.csv", product("naive", 64, 3), run=DAY)
        data("made/b.csv", product("tiled", 64, 1), run=LATER | {"gpu": "", "processor": "Xeon"})
        data("made/limits.csv", header="quantity,variant,unit,value\n", run=DAY)
        found = records.recorded("made")
        assert found.value.tolist() == [3, 1]
        assert found.source.tolist() == ["recorded: NVIDIA Made-Up, 2026-01-02", "recorded: Xeon, 2026-03-04"]
        assert records.recorded("made", "time", kernel="tiled").value.tolist() == [1]

    def test_a_folder_of_a_users_own_may_grow(self, data, tmp_path_factory):
        folder = tmp_path_factory.mktemp("own")
        for lines in ([product("naive", 64, 3)], [product("naive", 64, 3), product("tiled", 64, 1)]):
            (folder / "run.csv").write_text(HEADER + "".join(lines))
            (folder / "run.json").write_text(json.dumps(RUN | DAY))
            assert len(records.recorded(folder)) == len(lines)

    def test_a_machine_without_records_and_those_that_there_are(self, data):
        data("made/a.csv", run=DAY)
        data("h100/a.csv", run=DAY)
        with pytest.raises(ValueError, match=r"recorded on 'b200'; machines with records: h100, made$"):
            records.recorded("b200")

    def test_a_run_without_its_file(self, data):
        data("made/a.csv", product("naive", 64, 3))
        with pytest.raises(ValueError, match=r"a\.csv has no provenance"):
            records.recorded("made")


def test_limits_have_their_source_and_a_machine_without_them_is_told(data):
    data("made/limits.csv", "latency,L1,clocks,32.5\n", header="quantity,variant,unit,value\n", run=DAY)
    assert records.limits("made").to_dict("records") == [
        {
            "quantity": "latency",
            "variant": "L1",
            "unit": "clocks",
            "value": 32.5,
            "source": "recorded: NVIDIA Made-Up, 2026-01-02",
        }
    ]
    with pytest.raises(ValueError, match=r"limits\.csv: `labkit bench other --limits` writes it"):
        records.limits("other")


def test_what_the_sanitizer_found_has_the_tools_version(data):
    header = "kernel,tool,kind,hits,lines,note\n"
    path = data("made/gallery/sanitizer.csv", "a,memcheck,,0,,\nb,racecheck,Race,2,8 9,\n", header=header)
    (path.parent / "provenance.json").write_text(json.dumps(RUN | DAY))
    found = records.sanitizer("made")
    assert found.kind.tolist() == ["", "Race"] and found.lines.tolist() == ["", "8 9"]
    assert set(found.source) == {"recorded: NVIDIA Made-Up, compute-sanitizer 2, 2026-01-02"}


class TestCounterparts:
    def test_the_same_kernels_sizes_and_blocks_in_the_reports_order(self, data):
        data(
            "reports/int-matmul.csv",
            product("tiled", 64, 5, report="int-matmul"),
            product("naive", 64, 7, report="int-matmul", block="8,8"),
            product("naive", 64, 99, report="int-matmul", quantity="gpu_activity"),
        )
        data(
            "made/a.csv",
            product("naive", 64, 1, block="8,8"),
            product("naive", 64, 2),  # in a block that the report has not
            product("naive", 128, 3, block="8,8"),
            product("naive", 64, 4, block="8,8", quantity="time_p20"),
            product("tiled", 64, 0.5),
            run=DAY,
        )
        found = records.counterparts("int-matmul", "made")
        assert found[["kernel", "value"]].values.tolist() == [["tiled", 0.5], ["naive", 1]]
        assert tuple(found.columns) == (*records.COLUMNS, "source")
        assert set(found.source) == {"recorded: NVIDIA Made-Up, 2026-01-02"}
        assert records.counterparts("int-matmul", "made", kernel="naive").value.tolist() == [1]

    def test_a_copy_is_repeated_for_each_block_and_a_pinned_one_is_left_out(self, data, compared):
        report = "cpu-gpu-matmul"
        compared(report, "time", "htod_time")
        data(
            f"reports/{report}.csv",
            *(
                product("naive", 64, 9, report=report, block=block, quantity=quantity)
                for block in ("8,8", "16,16")
                for quantity in ("time", "htod_time")
            ),
        )
        data(
            "made/a.csv",
            product("naive", 64, 1, block="8,8"),
            product("", 64, 0.5, block=",", quantity="htod_time"),
            product("", 64, 0.1, block=",", quantity="htod_time", note=records.PINNED),
            run=DAY,
        )
        found = records.counterparts(report, "made")
        assert found[["quantity", "block_x", "value"]].values.tolist() == [
            ["time", 8, 1],
            ["htod_time", 8, 0.5],
            ["htod_time", 16, 0.5],
        ]

    def test_a_time_of_cublas_gap_has_its_rate_whatever_the_kernel(self, data):
        printed = (product("cublas", 100, 2, report="cublas-gap", block=",", quantity=q) for q in RATED)
        data("reports/cublas-gap.csv", *printed)
        data("made/a.csv", product("naive", 100, 4), product("naive", 200, 4), run=DAY)
        found = records.counterparts("cublas-gap", "made")
        rates = found[found.quantity == "performance"]
        assert len(found) == 2 and rates.value.tolist() == [pytest.approx(0.5)]  # 2 * 100^3 in 4 ms
        assert rates.unit.tolist() == ["GFLOP/s"] and found.n.tolist() == [100, 100]

    def test_int_transpose_is_compared_with_100_launches_and_the_copies(self, data, compared):
        compared("int-transpose", "time")
        data("reports/int-transpose.csv", transpose("naive", 50, report="int-transpose"))
        times = transpose("naive", 1), transpose("naive", 40, quantity=records.REPORT_TIME)
        data("made/a.csv", *times, run=DAY)
        found = records.counterparts("int-transpose", "made")
        assert found[["quantity", "value"]].values.tolist() == [["time", 40]]


class TestBeside:
    @pytest.fixture(autouse=True)
    def runs(self, data):
        data(
            "reports/int-matmul.csv",
            product("naive", 64, 8, report="int-matmul"),
            product("naive", 128, 60, report="int-matmul"),
            product("tiled", 64, 5, report="int-matmul", block="8,8"),
        )
        data("h200/a.csv", product("naive", 64, 2), product("tiled", 64, 1, block="8,8"), run=DAY)

    def test_a_report_beside_an_h200(self):
        table = records.beside("int-matmul")
        assert table.columns.tolist() == [(n, who) for n in ("64", "128") for who in ("report", "H200")]
        assert table.index.tolist() == [("naive", "16×16"), ("tiled", "8×8")]
        assert table.loc[("naive", "16×16")].fillna(-1).tolist() == [8, 2, 60, -1]
        assert table.loc[("tiled", "8×8")].fillna(-1).tolist() == [5, 1, -1, -1]

    def test_and_the_runs_of_a_folder(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("own")
        (folder / "run.csv").write_text(HEADER + product("naive", 128, 30))
        (folder / "run.json").write_text(json.dumps(RUN | DAY))
        table = records.beside("int-matmul", folder)
        assert table.columns.get_level_values(1).unique().tolist() == ["report", "H200", "this machine"]
        assert table[("128", "this machine")].fillna(-1).tolist() == [30, -1]


def test_a_size_is_written_once_where_all_sides_are_equal():
    frame = records.frame_of(
        [
            {"m": 4, "k": 4, "n": 4, "block_x": 8, "block_y": 4},
            {"m": 4, "n": 8, "k": 2},
            {"rows": 3, "cols": 5},
        ]
    )
    placed = shipped._placed(frame)
    assert placed["size"].tolist() == ["4", "4×2×8", "3×5"]
    assert placed.block.tolist() == ["8×4", "", ""]
    assert isinstance(placed, pd.DataFrame)
