"""What `labkit bench --limits` measured, as a table."""

import pytest

from labkit import records


def test_an_h200s_latencies_and_source():
    table = records.limits("h200").set_index(["quantity", "variant"])
    assert table.value["latency", "DRAM"] == pytest.approx(670, rel=0.04)  # differs from run to run
    assert table.unit["latency", "L1"] == "clocks"
    assert set(table.source) == {"recorded: NVIDIA H200, 2026-11-24"}


def test_a_folder_without_the_table(tmp_path):
    with pytest.raises(ValueError, match=r"limits.csv: `labkit bench .* --limits` writes it, on a GPU"):
        records.limits(tmp_path)
