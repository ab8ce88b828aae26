"""Timing in the simulator, whose figures are labelled, and on a GPU, whose figures are plausible."""

from time import sleep

import numpy as np
import pytest

from labkit import kernels
from labkit.problems import problem
from labkit.timing import SIMULATED, Timing, breakdown, time_kernel


@pytest.fixture
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def test_statistics():
    timing = Timing((4.0, 1.0, 2.0, 3.0, 10.0, 5.0), "by hand")
    assert timing.median == 3.5
    assert timing.seconds == 0.0035
    assert (timing.p20, timing.p80) == (2.0, 5.0)
    assert repr(timing) == "3.5 ms (p20 2, p80 5, 6 samples; by hand)"


@pytest.mark.usefixtures("simulator")
def test_the_simulators_time_is_labelled():
    calls = []
    timing = time_kernel(lambda: calls.append(sleep(0.01)), samples=50)
    assert timing.source == SIMULATED == "simulator wall time, not a GPU's"
    assert (len(timing.samples), len(calls)) == (3, 4)
    assert 10 <= timing.median < 200


@pytest.mark.parametrize("settings", [{"samples": 0}, {"warmup": -1}])
def test_impossible_counts_are_refused(settings):
    with pytest.raises(ValueError, match=r"Choose at least 1 sample"):
        time_kernel(lambda: None, **settings)


@pytest.mark.usefixtures("simulator")
def test_breakdown_in_the_simulator_has_only_the_kernel():
    case = problem("matmul", 17, 18, 19)
    table = breakdown(case, kernels.load("matmul/1_naive"), tile=8)
    assert list(table.index) == ["allocation", "host to device", "kernel", "device to host"]
    assert list(table.columns) == ["first_ms", "later_ms", "source"]
    assert table.drop("kernel")[["first_ms", "later_ms"]].isna().all(axis=None)
    assert (table.loc["kernel", ["first_ms", "later_ms"]] > 0).all()
    assert table.loc["kernel", "source"] == SIMULATED
    assert table.loc["allocation", "source"].startswith("no GPU here")


@pytest.mark.gpu
def test_gpu_times_grow_with_the_work(gpu):
    kernel = kernels.load("transpose/0_copy")

    def timed(size):
        case = problem("transpose", size, size)
        args = case.args(gpu)
        return case, time_kernel(lambda: kernel(*case.launch(32), args))

    small, large = timed(1024), timed(8192)
    assert small[1].source.startswith("measured here: ")
    assert len(small[1].samples) == 50
    assert small[1].p20 <= small[1].median <= small[1].p80
    assert 5 < large[1].median / small[1].median < 256  # 64 times the bytes
    assert 100 < large[0].gbytes_per_s(large[1].seconds) < 10_000  # no GPU's memory is beyond this


@pytest.mark.gpu
def test_gpu_times_without_the_hosts_latency(gpu):
    "A launch of one thread takes some microseconds on the GPU, though the host needs far more for it."
    case = problem("transpose", 1, 1)
    args, kernel = case.args(gpu), kernels.load("transpose/0_copy")
    assert time_kernel(lambda: kernel(*case.launch(1), args)).median < 0.02


@pytest.mark.gpu
def test_breakdown_on_a_gpu(gpu):
    case = problem("matmul", 1024, 1024, 1024)
    table = breakdown(case, kernels.load("matmul/2_tiled", TILE=16), tile=16)
    assert np.isfinite(table[["first_ms", "later_ms"]].to_numpy()).all()
    assert (table["source"] == table["source"].iloc[0]).all()
    copied = 3 * 4 * 1024**2  # A, B and C go to the GPU
    assert 0.1 < copied / 1e6 / table.loc["host to device", "later_ms"] < 500  # GB/s
