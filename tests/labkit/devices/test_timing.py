"""Timing in the simulator, whose figures are labelled, and on a GPU, whose figures are plausible."""

import re
from statistics import median
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest

import simt
from labkit import kernels
from labkit.devices import timing
from labkit.devices.timing import MOST, SIMULATED, STEPS, Timing, breakdown, time_kernel, until_steady
from labkit.kernels.problem import problem
from simt.common.errors import SimtError

COPIES = ["host to device", "device to host"]


@pytest.fixture
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


class Machine:
    """A clock, and batches of launches that take `times(seconds since the start)` milliseconds."""

    def __init__(self, times):
        self.times, self.now, self.batches = times, 0.0, []

    def batch(self, count):
        samples = []
        for _ in range(count):
            samples.append(self.times(self.now))
            self.now += samples[-1] / 1e3
        self.batches.append(count)
        return tuple(samples)

    def measure(self, seconds=0.5):
        return until_steady(self.batch, seconds, lambda: self.now)


class TestUntilSteady:
    def test_the_first_launch_is_left_out(self):
        machine = Machine(lambda now: 5.0 if now == 0 else 1.0)
        assert machine.measure() == (1.0,) * 2 * MOST
        assert machine.batches == [1, MOST, MOST]

    def test_a_clock_that_comes_up_is_waited_for(self):
        machine = Machine(lambda now: max(1.0, 6.0 - 20 * now))  # 6 ms at first, 1 ms after a quarter second
        assert set(machine.measure(2.0)) == {1.0}

    def test_a_change_of_a_percent_is_still_steady_and_one_of_three_is_not(self):
        assert len(Machine(lambda now: 1 + 0.009 * (now > 0.03)).measure()) == 2 * MOST
        drifting = Machine(lambda now: 1.03 ** (now // 0.05))
        assert len(drifting.measure()) == MOST
        assert drifting.now < 0.6

    @pytest.mark.parametrize(
        ("one", "batches"),
        [(0.002, [1, 50, 50]), (10, [1, 25, 25]), (100, [1, 2]), (300, [1, 1]), (600, [1])],
    )
    def test_slow_launches_are_few(self, one, batches):
        machine = Machine(lambda now: one)
        assert machine.measure()
        assert machine.batches == batches
        assert machine.now <= max(0.6, 1.1 * one / 1e3)

    def test_noise_does_not_go_on_for_ever(self):
        noise = np.random.default_rng(0)
        machine = Machine(lambda now: noise.uniform(1, 2))
        samples = machine.measure()
        assert machine.now < 0.6
        assert 1 < median(samples) < 2

    def test_a_time_too_short_to_tell(self):
        machine = Machine(lambda now: 0.0 if machine.batches else 0.001)
        assert machine.measure() == (0.0,) * 2 * MOST


def test_statistics():
    timing = Timing((4.0, 1.0, 2.0, 3.0, 10.0, 5.0), "by hand")
    assert timing.median == 3.5
    assert timing.seconds == 0.0035
    assert (timing.p20, timing.p80) == (2.0, 5.0)
    assert repr(timing) == "3.5 ms (p20 2, p80 5, 6 samples; by hand)"


def test_one_sample_and_the_clock_are_told():
    assert repr(Timing((2.0,), "here", 1980)) == "2 ms (p20 2, p80 2, 1 sample, SMs at 1980 MHz; here)"


@pytest.mark.usefixtures("simulator")
def test_the_simulators_time_is_labelled():
    calls = []
    timing = time_kernel(lambda: calls.append(sleep(0.01)))
    assert timing.source == SIMULATED == "simulator wall time, not a GPU's"
    assert (len(timing.samples), len(calls)) == (3, 4)
    assert timing.clock_mhz is None
    assert 10 <= timing.median < 200


@pytest.fixture
def small():
    """A small launch in the simulator, and what it takes."""
    case = problem("matmul", 64, 64, 64)
    kernel, args = kernels.load("matmul/1_naive"), case.args(np)
    return kernel, *case.launch(16), args


@pytest.mark.usefixtures("simulator")
def test_in_the_simulator_a_prediction_stands_beside_the_wall_time(small):
    kernel, grid, block, args = small
    timing = time_kernel(lambda: kernel(grid, block, args))
    expected = kernel.predict(grid, block, args)
    found = timing.predicted
    # Where arrays lie, neighbours in memory or apart, changes a prediction by some 0.2 %.
    assert found.seconds == pytest.approx(expected.seconds, rel=0.005)
    time, low, high = (f"{1e3 * each:.3g}" for each in (found.seconds, found.low, found.high))
    assert repr(timing).endswith(f"; {SIMULATED}); predicted for an H200: {time} ms ({low} to {high})")


@pytest.mark.usefixtures("simulator")
def test_on_a_gpu_the_prediction_is_for_that_gpu(small, monkeypatch):
    kernel, grid, block, args = small
    launch = time_kernel(lambda: kernel(grid, block, args)).launch
    monkeypatch.setattr(timing, "device", lambda: SimpleNamespace(name="NVIDIA H100 80GB HBM3"))
    measured = Timing((0.312,), "measured here: NVIDIA H100 80GB HBM3", launch=launch)
    assert measured.predicted.gpu.name == "H100 SXM5"
    assert re.search(
        r"; measured here: NVIDIA H100 80GB HBM3\); predicted [\d.]+ ms \([\d.]+ to [\d.]+\)$", repr(measured)
    )
    monkeypatch.setattr(timing, "device", lambda: SimpleNamespace(name="A GPU that nobody knows"))
    unknown = Timing((0.312,), "measured here: A GPU", launch=launch)
    assert unknown.predicted is None and repr(unknown).endswith("; measured here: A GPU)")


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("launches", [0, 2])
def test_no_launch_and_several_have_no_prediction(small, launches):
    kernel, grid, block, args = small
    timing = time_kernel(lambda: [kernel(grid, block, args) for _ in range(launches)])
    assert timing.predicted is None and repr(timing).endswith(f"{SIMULATED})")


@pytest.mark.usefixtures("simulator")
def test_a_timing_keeps_no_array_alive_and_needs_their_contents_where_they_decide():
    code = """extern "C" __global__ void steps(float *x, const int *n) {
        for (int i = 0; i < *n; i++) x[threadIdx.x] += x[(threadIdx.x + i) % 32];
    }"""
    kernel, arrays = simt.RawModule(code=code).get_function("steps"), [np.ones(32, "f4"), np.full(1, 3, "i4")]
    kept, gone = (time_kernel(lambda: kernel((1,), (32,), arrays)) for _ in range(2))
    assert kept.predicted is not None and kept.predicted.seconds > 0
    arrays.clear()
    assert gone.predicted is None and repr(gone).endswith(f"{SIMULATED})")


@pytest.mark.usefixtures("simulator")
def test_what_takes_longer_than_the_time_is_called_once():
    calls = []
    timing = time_kernel(lambda: calls.append(sleep(0.02)), seconds=0.01)
    assert len(timing.samples) == len(calls) == 1


def test_a_second_process_that_cuda_refuses_is_told(monkeypatch):
    monkeypatch.setattr(timing, "_START_CUDA", "raise RuntimeError('cudaErrorDevicesUnavailable')")
    with pytest.raises(SimtError, match="second process: RuntimeError: cudaErrorDevicesUnavailable"):
        timing._start_cuda()


def test_a_negative_time_is_refused():
    with pytest.raises(ValueError, match=r"seconds=-1\. Choose"):
        time_kernel(lambda: None, seconds=-1)


@pytest.mark.usefixtures("simulator")
def test_breakdown_in_the_simulator_has_only_the_kernel():
    case = problem("matmul", 17, 18, 19)
    table = breakdown(case, kernels.load("matmul/1_naive"), *case.launch(8))
    columns = ["step", "host_memory", "first_ms", "calls", "min_ms", "avg_ms", "max_ms", "source"]
    assert list(table.columns) == columns
    (kernel,) = table.to_dict("records")
    assert (kernel["step"], kernel["calls"], kernel["source"]) == ("kernel", 3, SIMULATED)
    assert kernel["first_ms"] > 0
    assert 0 < kernel["min_ms"] <= kernel["avg_ms"] <= kernel["max_ms"]


@pytest.mark.gpu
def test_gpu_times_grow_with_the_work(gpu):
    kernel = kernels.load("transpose/0_copy")

    def timed(size):
        case = problem("transpose", size, size)
        grid, block, args = *case.launch(32), case.args(gpu)
        return case, time_kernel(lambda: kernel(grid, block, args))

    small, large = timed(1024), timed(8192)
    assert small[1].source.startswith("measured here: ")
    assert len(small[1].samples) >= MOST
    assert small[1].p20 <= small[1].median <= small[1].p80
    assert 5 < large[1].median / small[1].median < 256  # 64 times the bytes
    assert 100 < large[0].gbytes_per_s(large[1].seconds) < 10_000  # no GPU's memory is beyond this


@pytest.mark.gpu
def test_gpu_times_without_the_hosts_latency(gpu):
    """A launch of one thread takes some microseconds on the GPU, though the host needs far more for it."""
    case = problem("transpose", 1, 1)
    args, kernel = case.args(gpu), kernels.load("transpose/0_copy")
    assert time_kernel(lambda: kernel(*case.launch(1), args)).median < 0.02


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("matmul/2_tiled", problem("matmul", 2048, 2048, 2048)),
        ("transpose/3_padded", problem("transpose", 2048, 2048)),
        ("transpose/3_padded", problem("transpose", 8192, 8192)),
    ],
)
def test_two_measurements_on_a_gpu_agree(gpu, name, case):
    """Within 2 % and the 0.5 us to which CUDA resolves events. The pause between lets the clock drop.

    Reference: CUDA Runtime API, cudaEventElapsedTime.
    """
    kernel, (grid, block), args = kernels.load(name), kernels.launch(name, case), case.args(gpu)
    first = time_kernel(lambda: kernel(grid, block, args))
    sleep(3)
    second = time_kernel(lambda: kernel(grid, block, args))
    assert abs(first.median - second.median) <= 0.02 * first.median + 0.5e-3, (first, second)


@pytest.mark.gpu
def test_the_clock_is_noted(gpu):
    pytest.importorskip("pynvml")
    clock = time_kernel(lambda: None).clock_mhz
    assert clock is not None and 200 < clock < 3000


@pytest.mark.gpu
def test_a_slow_kernel_on_a_gpu_is_launched_once(gpu):
    case = problem("matmul", 2048, 2048, 2048)
    kernel, grid, args, calls = kernels.load("matmul/1_naive"), case.launch(1), case.args(gpu), []
    kernel.rehearse = False
    timing = time_kernel(lambda: calls.append(kernel(*grid, args)), seconds=0.01)
    assert len(timing.samples) == len(calls) == 1
    assert timing.median > 10


@pytest.mark.gpu
def test_what_a_first_launch_does_on_the_host_is_no_time_of_the_kernel(gpu):
    """Compiling, or a trial in the simulator."""
    calls = []

    def launch():
        calls.append(sleep(0 if calls else 0.7))

    timing = time_kernel(launch)
    assert len(timing.samples) > 1 and timing.median < 0.1


@pytest.mark.gpu
def test_breakdown_on_a_gpu(gpu):
    case = problem("matmul", 2048, 2048, 2048)
    kernel = kernels.load("matmul/2_tiled", TILE=16)
    table = breakdown(case, kernel, *case.launch(16)).set_index(["step", "host_memory"])
    assert list(table.index) == list(STEPS)
    assert table.source.nunique() == 1 and table.source.iloc[0].startswith("measured here: ")
    assert np.isfinite(table.first_ms).all()
    assert table.first_ms["context creation", ""] > 10
    assert (table.calls.iloc[1:] == 10).all()
    assert (table.min_ms.dropna() <= table.avg_ms.dropna()).all()
    for copy in COPIES:
        assert table.min_ms[copy, "pinned"] < table.min_ms[copy, "pageable"]
    copied = 3 * 4 * 2048**2  # A, B and C go to the GPU
    assert 1 < copied / 1e6 / table.min_ms["host to device", "pinned"] < 1000  # GB/s
    parts = [
        ("allocation", ""),
        ("host to device", "pageable"),
        ("kernel", ""),
        ("device to host", "pageable"),
    ]
    assert table.avg_ms[parts].sum() == pytest.approx(table.avg_ms["end to end", "pageable"])
    args = case.args(gpu)
    timed = time_kernel(lambda: kernel(*case.launch(16), args))
    assert table.min_ms["kernel", ""] > 0.8 * timed.median  # the host's clock also sees the launch
