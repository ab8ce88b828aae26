"""The transpose as the report measured it: no figures from a simulator, plausible ones from a GPU."""

import pytest

from labkit import records
from labkit.devices.select import NoGpu
from labkit.figures import curves
from labkit.ladder.transpose_report import here, transpose_report


def test_a_simulator_is_not_measured(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    with pytest.raises(NoGpu):
        transpose_report()
    assert here().empty and list(here().columns) == list(records.load("int-transpose").columns)


@pytest.mark.gpu
def test_the_reports_table_on_a_gpu(gpu):
    table = transpose_report()
    figures = table.pivot(index="kernel", columns="quantity", values="value")
    report = records.load("int-transpose")
    assert set(figures.index) == set(report.kernel[report.quantity == "bandwidth"])
    assert {"time", "bandwidth", "step_speedup", "speedup_over_cpu"} <= set(figures)
    moved = 2 * 2048**2 * 4 * 100
    assert (figures.bandwidth * figures.time * 1e6).to_numpy() == pytest.approx(moved)
    ours = figures.drop("cpu_naive")
    assert (ours.launch_time < ours.time).all()
    assert (ours.speedup_over_cpu * ours.time).to_numpy() == pytest.approx(figures.time["cpu_naive"])
    assert ours.step_speedup["shared"] == pytest.approx(ours.time["naive"] / ours.time["shared"])
    assert ours.launch_time["padded"] < ours.launch_time["shared"]  # no bank conflicts
    assert 100 * 2e-3 < ours.launch_time["padded"] < 100  # a launch takes from 2 us to 1 ms
    curves.transpose_steps(records.load("int-transpose", "time"), table[table.quantity == "time"])
