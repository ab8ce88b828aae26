"""The tables under data/ against the reports' printed numbers, and how they are loaded."""

import json

import numpy as np
import pandas as pd
import pytest

from labkit import records
from labkit.records import tables

KEYS = [column for column in records.COLUMNS if column not in ("unit", "value", "note")]

# Written down from the reports by hand, apart from the CSV files.
BLOCKS = (1, 2, 4, 8, 16, 32)
INT_MATMUL_MS = {
    ("naive", 256): (0.56473, 0.13613, 0.054879, 0.031744, 0.026688, 0.023872),
    ("naive", 512): (4.4398, 1.1367, 0.44064, 0.23501, 0.15773, 0.17721),
    ("naive", 1024): (35.417, 9.0106, 3.4307, 1.7674, 1.2336, 1.1299),
    ("naive", 4096): (2549.44, 653.77, 214.05, 148.98, 79.828, 72.097),
    ("tiled", 256): (2.7026, 0.42278, 0.081760, 0.024095, 0.018592, 0.016960),
    ("tiled", 512): (21.337, 3.2758, 0.57011, 0.15664, 0.099935, 0.10003),
    ("tiled", 1024): (170.39, 26.046, 4.4598, 1.1589, 0.73126, 0.64396),
    ("tiled", 4096): (11434.7, 1634.59, 309.47, 78.990, 44.777, 40.793),
}
CPU_LADDER_MS = {
    "cpu_naive": (4.83, 39.48, 344.29, 4192, 91657),
    "cpu_avx": (0.99, 8.65, 72.96, 922.9, 17343),
    "cpu_avx_blocked": (1.28, 9.18, 78.30, 743.2, 7496),
    "cpu_avx_blocked_bt": (3.37, 27.44, 208.6, 1717, 13412),
}
CPU_SWEEP_MS = {
    1024: (748.3, 691.7, 631.4, 586.9, 714.1, 608.6, 665.1, 838.7),
    2048: (8220, 6245, 5405, 5052, 4980, 5090, 5779, 8392),
}
GPU_MS = {
    ("naive", 512): (6.785, 3.480, 2.100, 1.737),
    ("naive", 1024): (56.59, 27.21, 16.20, 14.73),
    ("naive", 2048): (383.5, 93.50, 74.77, 71.19),
    ("naive", 4096): (2461, 843, 647, 585),
    ("tiled", 512): (3.82, 1.16, 0.74, 0.70),
    ("tiled", 1024): (30.33, 9.11, 5.79, 5.26),
    ("tiled", 2048): (231.6, 73.0, 46.3, 41.5),
    ("tiled", 4096): (960, 377, 310, 272),
    ("tiled", 8192): (8209, 2709, 1650, 1284),
}
KOREAN_MS = {
    32: (0.051, 0.039, 0.037, 0.040),
    256: (1.159, 0.424, 0.351, 0.036),
    4096: (1588.934, 1131.003, 961.827, 898.472),
}
TRANSPOSE = {  # time in ms, bandwidth as printed, step speed-up, speed-up over the CPU
    "cpu_naive": (4370, 0.716),
    "naive": (195, 16.026, 22.383, 22.383),
    "shared": (183, 17.077, 1.066, 23.383),
    "padded": (155, 20.161, 1.181, 28.158),
    "unrolled": (130, 24.038, 1.192, 33.573),
}


def values(by: str, **filters: object) -> tuple[float, ...]:
    """Values in the order of a column."""
    return tuple(records.load(**filters).sort_values(by).value)


@pytest.mark.parametrize(("kernel", "n"), INT_MATMUL_MS)
def test_int_matmul_times(kernel, n):
    table = records.load("int-matmul", "time", kernel=kernel, m=n).sort_values("block_x")
    assert tuple(table.block_x) == tuple(table.block_y) == BLOCKS
    assert tuple(table.value) == INT_MATMUL_MS[kernel, n]
    assert set(table.unit) == {"ms"} and set(table.dtype) == {"int32"}


def test_int_matmul_shares():
    assert values("block_x", report="int-matmul", quantity="gpu_activity", kernel="naive", m=512) == (
        *(94.37, 81.19, 62.38, 47.12, 37.16, 40.01),
    )
    assert values("block_x", report="int-matmul", quantity="gpu_activity", kernel="tiled", m=4096) == (
        *(99.33, 95.50, 79.99, 50.58, 36.62, 34.71),
    )


@pytest.mark.parametrize("n", [256, 512, 1024, 4096])
def test_int_matmul_times_and_shares_leave_the_same_time_for_copies(n):
    # A share of p % in t ms leaves t (100/p - 1) ms for the copies, which depend on N alone; printed shares
    # are good to 0.005 %. A slip in a leading digit of either column, or swapped rows, would stand out.
    rows = records.load("int-matmul", ["time", "gpu_activity"], kernel=["naive", "tiled"], m=n)
    table = rows.pivot(index=["kernel", "block_x"], columns="quantity", values="value")
    copies = table.time * (100 / table.gpu_activity - 1)
    blur = table.time * 100 / table.gpu_activity**2 * 0.005
    assert ((copies - copies.median()).abs() <= 0.06 * copies.median() + blur).all(), copies


def test_cpu_ladder():
    for kernel, expected in CPU_LADDER_MS.items():
        ladder = {"report": "cpu-gpu-matmul", "quantity": "time", "kernel": kernel, "tile": ""}
        assert values("m", **ladder) == expected
        assert tuple(records.load(**ladder).m) == (128, 256, 512, 1024, 2048)


@pytest.mark.parametrize("n", CPU_SWEEP_MS)
def test_cpu_block_sweep(n):
    tiles = [8, 16, 32, 64, 128, 256, 512, 1024]
    sweep = {
        "report": "cpu-gpu-matmul",
        "quantity": "time",
        "kernel": "cpu_avx_blocked",
        "m": n,
        "tile": tiles,
    }
    assert values("tile", **sweep) == CPU_SWEEP_MS[n]


@pytest.mark.parametrize(("kernel", "n"), GPU_MS)
def test_gpu_times(kernel, n):
    assert (
        values("block_x", report="cpu-gpu-matmul", quantity="time", kernel=kernel, m=n) == GPU_MS[kernel, n]
    )


def test_copies_and_allocation():
    at = {"report": "cpu-gpu-matmul", "kernel": "naive"}
    assert values("block_x", **at, quantity="htod_time", m=512) == (0.176, 0.178, 0.177, 0.176)
    assert values("block_x", **at, quantity="htod_time", m=4096) == (23.45, 23.25, 23.34, 23.54)
    assert values("block_x", **at, quantity="dtoh_time", m=2048) == (2.374, 2.410, 2.414, 2.528)
    assert values("block_x", **at, quantity="malloc_time", m=1024) == (227, 231, 236, 229)
    unreadable = records.load(**at, quantity="malloc_time", m=2048, block_x=32)
    assert unreadable.value.isna().all() and "not readable" in unreadable.note[0]


@pytest.mark.parametrize("m", KOREAN_MS)
def test_korean_tiles(m):
    assert values("tile", report="tiled-matmul-ko", quantity="time", kernel="tiled", m=m) == KOREAN_MS[m]


def test_korean_naive():
    table = records.load("tiled-matmul-ko", "time", kernel="naive")
    assert tuple(table.value) == (0.037, 0.623, 1655.744)
    assert set(table.block_x) == set(table.block_y) == {16}
    assert tuple(table.iloc[2][["m", "n", "k"]]) == (4096, 4096, 2048)  # 4096×2048 by 2048×4096


def test_transpose_ladder():
    for kernel, expected in TRANSPOSE.items():
        for quantity, value in zip(
            ("time", "bandwidth", "step_speedup", "speedup_over_cpu"), expected, strict=False
        ):
            row = records.load("int-transpose", quantity, kernel=kernel, rows=2048)
            assert tuple(row.value) == (value,), (kernel, quantity)
    unrolled = records.load("int-transpose", "time", kernel="unrolled").iloc[0]
    assert (unrolled.block_x, unrolled.block_y, unrolled.cols) == (32, 8, 2048)
    assert unrolled.source == "report int-transpose, GeForce GTX 770M"


@pytest.mark.parametrize(
    ("report", "quantity", "value", "unit"),
    [
        ("cublas-gap", "performance", 1272, "GFLOP/s"),
        ("cublas-gap", "time", 0.154, "ms"),
        ("cublas-gap", "peak_compute", 134.4, "GFLOP/s"),
        ("cublas-gap", "peak_bandwidth", 17.064, "GHz"),
        ("cublas-gap", "unroll_gain", 10, "GFLOP/s"),
        ("cublas-gap", "speedup_over_own", 3, "1"),
        ("int-transpose", "peak_bandwidth", 96.19, "GB/s"),
        ("int-transpose", "memory_data_rate", 4008, "MHz"),
        ("int-transpose", "memory_bus_width", 192, "bit"),
        ("int-transpose", "cuda_cores", 960, "1"),
        ("int-transpose", "graphics_clock", 705, "MHz"),
        ("int-transpose", "memory", 4, "GB"),
        ("int-transpose", "iterations", 100, "1"),
        ("tiled-matmul-ko", "max_threads_per_block", 1024, "1"),
        ("cpu-gpu-matmul", "tolerance", 0.1, "1"),
        ("cpu-gpu-matmul", "shared_memory_per_sm", 96, "KB"),
    ],
)
def test_stated_figures(report, quantity, value, unit):
    row = records.load(report, quantity).iloc[0]
    assert (row.value, row.unit) == (value, unit)


@pytest.mark.parametrize(
    ("report", "rows", "times"),
    [
        ("int-matmul", 99, 48),  # two tables of 4 sizes × 6 blocks
        ("cublas-gap", 14, 1),
        ("tiled-matmul-ko", 19, 15),  # 3 naive, 3 sizes × 4 tiles
        ("cpu-gpu-matmul", 132, 72),  # ladder 4×5, sweeps 2×8, naive 4×4, tiled 5×4
        ("int-transpose", 35, 5),
    ],
)
def test_tables_are_whole(report, rows, times):
    assert len(records.load(report)) == rows
    assert len(records.load(report, "time")) == times


def test_rows_are_tidy():
    every = records.load()
    assert tuple(every.columns) == (*records.COLUMNS, "source")
    assert not every[KEYS].duplicated().any()
    assert (every.quantity != "").all()
    assert set(every.report) == set(records.reports())
    assert set(every.problem) == {"matmul", "transpose", ""}
    assert every.loc[every.quantity == "time", "unit"].eq("ms").all()
    assert every.loc[every.value.isna(), "note"].ne("").all()  # an empty value says why
    matmul_times = every[(every.problem == "matmul") & (every.quantity == "time")]
    assert matmul_times[["m", "n", "k"]].notna().all(axis=None)


def test_what_reports_do_not_say_is_empty():
    every = records.load()
    assert every[every.report != "int-transpose"].machine.isin(["", "Tesla V100"]).all()
    assert records.load("int-matmul", "time").source.unique() == ["report int-matmul, GPU not stated"]
    assert records.load("int-transpose", "time", kernel="cpu_naive").source[0].endswith("CPU not stated")


def test_misprints_are_kept_and_noted():
    every = records.load()
    misprints = every[every.note.str.startswith("misprint:")]
    assert sorted(zip(misprints.report, misprints.quantity, misprints.value, strict=True)) == [
        ("cublas-gap", "peak_bandwidth", 17.064),
        ("cublas-gap", "performance", 1272),
        ("cublas-gap", "time", 0.154),
        ("int-transpose", "speedup_over_cpu", 23.383),
        ("tiled-matmul-ko", "time", 0.036),
    ]


def test_load_filters_by_lists_and_empty_cells():
    table = records.load("int-matmul", "time", kernel=["naive", "tiled"], block_x=[16, 32], m=256)
    assert len(table) == 4 and list(table.index) == [0, 1, 2, 3]
    assert records.load("cpu-gpu-matmul", "time", block_x="").kernel.str.startswith("cpu_").all()


def test_load_gives_a_fresh_frame():
    table = records.load("int-matmul")
    table["value"] = 0.0
    assert records.load("int-matmul", "time").value.min() > 0


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"report": "matmul"}, "report='matmul'; report is one of: cpu-gpu-matmul, cublas-gap, int-matmul"),
        ({"report": "int-matmul", "quantity": "speed"}, "quantity is one of: best_block, gpu_activity"),
        ({"report": "int-matmul", "kernel": "fast"}, r"kernel is one of: .*naive, tiled"),
        (
            {"report": "int-matmul", "m": 300},
            "m=300 where report='int-matmul'; m is one of: 256, 512, 1024, 4096",
        ),
        ({"colour": 1}, "no column 'colour'; columns: report, machine"),
    ],
)
def test_load_lists_valid_names(filters, message):
    with pytest.raises(ValueError, match=message):
        records.load(**filters)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr("labkit.records.shipped._DATA", tmp_path)
    return tmp_path


def write_run(folder, **changes):
    row = dict.fromkeys(tables.FILE_COLUMNS, "") | {"kernel": "tiled", "size": "m=512", "quantity": "time"}
    folder.mkdir(exist_ok=True)
    pd.DataFrame([row | {"unit": "ms", "value": "0.25"} | changes]).to_csv(folder / "matmul.csv", index=False)


PROVENANCE = {"gpu": "NVIDIA H200", "driver": "570.1", "versions": {}, "date": "2026-01-31", "command": "x"}


def test_recorded_runs_carry_their_source(data):
    write_run(data / "h200")
    (data / "h200" / "matmul.json").write_text(json.dumps(PROVENANCE))
    runs = records.recorded("h200")
    assert tuple(runs.columns) == (*records.COLUMNS, "source")
    assert runs.loc[0, ["m", "value", "source"]].tolist() == [512, 0.25, "recorded: NVIDIA H200, 2026-01-31"]


def test_recorded_runs_need_provenance(data):
    write_run(data / "h200")
    with pytest.raises(
        ValueError, match=r"matmul\.csv has no provenance.*gpu, driver, versions, date, command"
    ):
        records.recorded("h200")
    (data / "h200" / "matmul.json").write_text(json.dumps({"gpu": "NVIDIA H200"}))
    with pytest.raises(ValueError, match="does not say: driver, versions, date, command"):
        records.recorded("h200")


def test_a_cpus_table_names_the_processor_in_the_place_of_a_gpu(data):
    write_run(data / "cpu")
    run = {"processor": "some CPU, 2 cores", "versions": "", "date": "2026-01-31", "command": "x"}
    (data / "cpu" / "matmul.json").write_text(json.dumps(run))
    assert set(records.recorded("cpu").source) == {"recorded: some CPU, 2 cores, 2026-01-31"}


def test_recorded_lists_machines(data):
    write_run(data / "h200")
    with pytest.raises(ValueError, match="no runs recorded on 'a100'; machines with records: h200"):
        records.recorded("a100")


def test_a_bad_file_is_named(data):
    with pytest.raises(FileNotFoundError, match=r"int-matmul\.csv is missing; reinstall labkit"):
        records.load()
    write_run(data / "bad", value="fast")
    with pytest.raises(ValueError, match=r"matmul\.csv, line 2: value 'fast' is not a number"):
        records.recorded("bad")
    write_run(data / "odd", colour="red")
    with pytest.raises(ValueError, match=r"matmul\.csv: columns must be .*not known: colour"):
        records.recorded("odd")


def test_recorded_takes_a_folder_and_filters(tmp_path, monkeypatch):
    write_run(tmp_path / "mine")
    (tmp_path / "mine" / "matmul.json").write_text(json.dumps(PROVENANCE))
    assert len(records.recorded(tmp_path / "mine", "time", kernel=["tiled"])) == 1
    monkeypatch.chdir(tmp_path)
    assert len(records.recorded("mine")) == 1
    with pytest.raises(ValueError, match="no record has kernel='naive'; kernel is one of: tiled"):
        records.recorded("mine", kernel="naive")
    write_run(tmp_path / "mine", kernel="naive")  # a table that grows is read anew
    assert list(records.recorded("mine").kernel) == ["naive"]


SQUARE = {"problem": "matmul", "quantity": "time", "unit": "ms", "dtype": "float32"}


def product(n, side, **others):
    return SQUARE | dict.fromkeys("mnk", n) | {"block_x": side, "block_y": side} | others


@pytest.fixture
def mine(tmp_path):
    """A folder that holds the runs that it is called with."""

    def folder(*rows):
        frame = pd.DataFrame([dict.fromkeys(records.COLUMNS, "") | row for row in rows])
        tables.write(tmp_path / "bench.csv", frame)
        (tmp_path / "bench.json").write_text(json.dumps(PROVENANCE))
        return tmp_path

    return folder


def test_beside_puts_the_figure_of_the_same_kernel_size_block_and_dtype_next(mine):
    folder = mine(
        product(1024, 32, kernel="naive", dtype="int32", value=7),
        product(1024, 32, kernel="naive", dtype="float32", value=8),
        product(1024, 32, kernel="naive", dtype="int32", quantity="time_p20", value=9),
        product(1024, 16, kernel="tiled", dtype="int32", tile=16, value=10),
        product(2048, 16, kernel="tiled", dtype="int32", value=11),
        product(1024, 16, kernel="register_tile", dtype="int32", value=12),
    )
    table = records.beside("int-matmul", folder)
    assert list(table.columns.levels[0]) == ["1024", "256", "4096", "512"]
    assert list(table.columns)[:3] == [("256", "report"), ("256", "H200"), ("256", "this machine")]
    assert list(table.index)[:2] == [("naive", "1×1"), ("naive", "2×2")] and len(table) == 12
    ours = table.xs("this machine", axis="columns", level=1)
    assert ours.loc[("naive", "32×32"), "1024"] == 7 and ours.loc[("tiled", "16×16"), "1024"] == 10
    assert ours.notna().to_numpy().sum() == 2
    printed = table.xs("report", axis="columns", level=1)
    assert tuple(printed.loc["naive", "512"]) == INT_MATMUL_MS["naive", 512]


def test_copies_stand_beside_each_block_and_those_of_pinned_memory_nowhere(mine):
    copy = product(1024, 32, kernel="naive", quantity="htod_time")
    folder = mine(copy | {"value": 3, "note": "pageable"}, copy | {"value": 1, "note": "pinned"})
    table = records.beside("cpu-gpu-matmul", folder)
    ours = table.loc[("htod_time", "naive"), ("1024", "this machine")]
    assert list(ours.index) == ["4×4", "8×8", "16×16", "32×32"] and set(ours) == {3.0}
    assert table[("2048", "this machine")].isna().all()
    assert set(table.index.get_level_values("kernel")) == {"naive", "tiled"}


def test_every_kernel_at_the_size_of_the_librarys_report_and_its_rate(mine):
    folder = mine(product(680, 32, kernel="tiled", value=0.1), product(680, "", kernel="cublas", value=0.05))
    table = records.beside("cublas-gap", folder)
    rates = table[("performance", "this machine")]
    assert rates[("tiled", "32×32")] == pytest.approx(2 * 680**3 / 1e-4 / 1e9)
    assert rates[("cublas", "")] == 2 * rates[("tiled", "32×32")]
    assert table[("time", "report")][("cublas", "")] == 0.154


def test_transposes_stand_beside_those_measured_in_the_reports_way(mine):
    plane = {"problem": "transpose", "dtype": "int32", "rows": 2048, "cols": 2048, "unit": "ms"}
    step = plane | {"kernel": "shared", "block_x": 32, "block_y": 32}
    folder = mine(
        step | {"quantity": "time", "value": 0.02},  # one launch: another thing
        step | {"quantity": records.REPORT_TIME, "value": 5, "note": "for 100 iterations"},
        plane | {"kernel": "cpu_naive", "quantity": records.REPORT_TIME, "value": 900},
        step | {"quantity": "speedup_over_cpu", "value": 180},
    )
    table = records.beside("int-transpose", folder)
    assert list(table.index.get_level_values(0)) == ["cpu_naive", "naive", "shared", "padded", "unrolled"]
    row = table.loc[("shared", "32×32")].xs("this machine", level=1)
    assert (row["time"], row["speedup_over_cpu"]) == (5, 180) and np.isnan(row["step_speedup"])
    assert table.loc[("cpu_naive", ""), ("time", "this machine")] == 900
    (time,) = records.counterparts("int-transpose", folder, quantity="time", kernel="shared").value
    assert time == 5


def test_beside_names_the_reports():
    with pytest.raises(ValueError, match="report is one of: cpu-gpu-matmul, cublas-gap, int-matmul"):
        records.beside("matmul")


def test_provenance_needs_a_gpu(monkeypatch):
    from labkit.devices.select import NoGpu

    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    with pytest.raises(NoGpu):
        records.provenance("labkit bench")


@pytest.mark.gpu
def test_provenance_of_a_gpu(gpu):
    origin = records.provenance("a command", ncu="2025.3")
    assert origin["gpu"] == gpu.cuda.runtime.getDeviceProperties(0)["name"].decode()
    assert origin["driver"][0].isdigit() and origin["command"] == "a command"
    for part in ("CUDA runtime ", "cuBLAS ", f"CuPy {gpu.__version__}", "ncu 2025.3", "Python 3."):
        assert part in origin["versions"]
