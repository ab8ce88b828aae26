"""The climb: each bar's rate follows from a recorded time, and says where it comes from."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

import labkit
from labkit import records
from labkit.figures import ladder_chart as module

DATA = Path(labkit.__file__).parent.parent / "data"
WORK = 2 * 4096**3 / 1e6  # operations of a product, times GFLOP/s per operation and ms


def times(table, **wanted):
    """The times in ms of N = 4096 in a table, of rows whose cells begin with what is wanted."""
    with (DATA / table).open(encoding="utf-8", newline="") as file:
        return [
            float(row["value"])
            for row in csv.DictReader(file)
            if row["quantity"] == "time"
            and row["size"] == "m=4096 n=4096 k=4096"
            and all(row[key].startswith(value) for key, value in wanted.items())
        ]


def bars():
    return [{bar.name: bar for bar in group.bars} for group in module.groups()]


def test_the_cpus_rates_are_those_of_the_record():
    cpu, _, _ = bars()
    for name, kernel, note in (
        ("three loops, -O0", "cpu_naive", "threads=1; -O0"),
        ("three loops, -O3", "cpu_naive", "threads=1; 8 of"),
        ("loop order, -O3", "cpu_loop_order", "threads=1"),
        ("AVX, register tile", "cpu_register_tile", "threads=1"),
        ("packed panels", "cpu_packed", "threads=1"),
        ("2 threads", "cpu_threads", "threads=2"),
        ("OpenBLAS, 2 threads", "cpu_blas", "threads=2"),
    ):
        (took,) = times("cpu/products.csv", kernel=kernel, note=note)
        assert cpu[name].rate == pytest.approx(WORK / took), name
        assert cpu[name].origin == "recorded: AMD EPYC, 2 cores, 2026-11-25"
    assert max(bar.rate for bar in cpu.values()) == cpu["peak, 2 cores"].rate


def test_the_gpus_rates_are_the_best_of_the_record():
    _, single, half = bars()
    for name, kernel in module._GPU:
        took = min(
            times("h200/bench.csv", problem="matmul", kernel=kernel, dtype="float32", machine="NVIDIA")
        )
        if kernel not in ("naive", "tiled"):  # other kernels have names that begin so
            assert single[name].rate == pytest.approx(WORK / took), name
    assert single["naive CUDA"].rate == pytest.approx(WORK / 21.9333)
    assert single["tiled in shared memory"].rate == pytest.approx(WORK / 15.5381)
    for name, kernel in module._TENSOR:
        (took,) = times("h200/bench.csv", problem="tensor_matmul", kernel=kernel, dtype="float16")
        assert half[name].rate == pytest.approx(WORK / took), name
    assert single["peak"].rate == pytest.approx(2 * 132 * 128 * 1.98e9 / 1e9)  # NVIDIA: 67 TFLOP/s
    assert half["peak"].rate == pytest.approx(132 * 4096 * 1.98e9 / 1e9)
    for group in (single, half):
        assert max(bar.rate for bar in group.values()) == group["peak"].rate


def test_the_picture_has_each_bar_at_its_place_with_its_origin():
    picture = labkit.climb()
    root = ElementTree.fromstring(str(picture))
    tips = {each.get("data-tip"): each for each in root.iter() if each.get("data-tip")}
    shown = [bar for group in module.groups() for bar in group.bars]
    assert list(tips) == [bar.tip for bar in shown]
    ticks = {round(float(each.get("x1")), 1) for each in root.iter() if each.get("class") == "grid"}
    zero, decade = min(ticks), (max(ticks) - min(ticks)) / 7  # 0.1 to a million
    for bar in shown:
        (box,) = [
            each for each in tips[bar.tip] if each.tag.endswith("rect") and each.get("fill") != "transparent"
        ]
        power = (float(box.get("width")) + float(box.get("x")) - zero) / decade - 1
        assert 10**power == pytest.approx(bar.rate, rel=0.02), bar.name
        words = [each.text for each in tips[bar.tip] if each.tag.endswith("text")]
        assert words[0] == bar.name and words[1].endswith(("recorded", "computed"))
    title = next(each.text for each in root.iter() if each.get("font-weight") == "600")
    fastest, slowest = 750934, 0.29713
    assert title.startswith("From three loops in float32 to tensor cores in float16: 2.5 million times")
    assert fastest / slowest == pytest.approx(2.5e6, rel=0.02)


def test_what_was_timed_here_stands_in_the_place_of_the_record(monkeypatch):
    rows = [
        {"problem": "matmul", "kernel": kernel, "m": n, "n": n, "k": n, "value": value, "source": source}
        for kernel, n, value, source in (
            ("cpu_naive", 4096, 1e6, "measured here: some CPU, 1 thread"),
            ("cpu_threads", 4096, 500.0, "measured here: some CPU, 8 threads"),
        )
    ]
    monkeypatch.setattr(module.cpu, "peak_gflops", lambda threads: 100.0 * threads)
    group = module.groups(records.frame_of(rows))[0]
    assert [(bar.name, bar.origin) for bar in group.bars[:2]] == [
        ("cpu_naive", "measured here: some CPU, 1 thread"),
        ("cpu_threads, 8 threads", "measured here: some CPU, 8 threads"),
    ]
    assert group.bars[0].rate == pytest.approx(WORK / 1e6)
    assert (group.bars[2].name, group.bars[2].rate, group.bars[2].peak) == ("peak, 8 threads", 800.0, True)
    written = str(module.climb(records.frame_of(rows)))
    assert ">0.137, measured here<" in written and ">275 (× 2,000), measured here<" in written
    rows[0] |= dict.fromkeys("mnk", 2048)
    with pytest.raises(ValueError, match=r"N = \[2048, 4096\].*labkit.cpu.ladder\(\[4096\]\)"):
        module.groups(records.frame_of(rows))


def test_a_slow_machine_has_a_longer_axis(monkeypatch):
    row = {"problem": "matmul", "kernel": "cpu_naive", "value": 4e6, **dict.fromkeys("mnk", 4096)}
    monkeypatch.setattr(module.cpu, "peak_gflops", lambda threads: 5.0)
    frame = records.frame_of([{**row, "source": "measured here: some CPU, 1 thread"}])
    root = ElementTree.fromstring(str(module.climb(frame)))
    assert "0.01" in [each.text for each in root.iter()]
    assert all(float(each.get("width", 0)) >= 0 for each in root.iter())
