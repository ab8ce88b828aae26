"""Ceilings: the kernel that only multiplies and adds, theory from table or CUDA, figures on a GPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import kernels
from labkit.devices.select import Device, NoGpu
from labkit.devices.timing import Timing
from labkit.kernels.problem import problem
from labkit.ladder import ceilings
from labkit.records import COLUMNS
from simt.common.errors import CompileError
from simt.compiler.nvrtc import compile_ptx

H200 = Device("gpu", "NVIDIA H200", multiprocessors=132)
H100_NVL = Device("gpu", "NVIDIA H100 NVL", multiprocessors=132, index=1)  # not in gpus.csv
TOLD = {"ClockRate": 1785000, "MemoryClockRate": 2619000, "GlobalMemoryBusWidth": 6144}


@pytest.fixture
def use(monkeypatch):
    """Pretend to have a GPU, of which CUDA tells some attributes."""

    def use(gpu, **attributes):
        monkeypatch.setattr(ceilings, "find_gpu", lambda: gpu)
        device = {gpu.index: SimpleNamespace(attributes=attributes)}
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(Device=device.get)))
        monkeypatch.setattr(ceilings, "_multiply_adds", lambda *_: Timing((1.0,), "here", clock_mhz=990))

    return use


class TestMultiplyAdds:
    @pytest.fixture(autouse=True)
    def simulator(self, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")

    @pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
    @pytest.mark.parametrize("size", [(64, 64, 100), (64, 64, 1), (16, 16, 33), (3, 5, 7)])
    def test_each_sum_takes_a_step_for_each_k(self, dtype, size):
        """With factors of 1 a sum that begins at s ends at s + K."""
        case = problem("matmul", *size, dtype=dtype, alpha=2, beta=5)
        sums, one = np.zeros(case.M * case.N, dtype), np.ones(1, dtype)
        kernel, (grid, block) = (
            kernels.load(ceilings.PEAK, DTYPE=case.ctype),
            kernels.launch(ceilings.PEAK, case),
        )
        kernel(grid, block, (one, one, sums, *case.scalars()))
        threads = min(grid[0] * block[0], case.M * case.N)
        starts = np.arange(threads)[:, None] + np.arange(8)
        assert sums[:threads].tolist() == (5 + 2 * (starts + case.K).sum(axis=1)).tolist()
        assert not sums[threads:].any()

    def test_the_work_is_exact(self):
        work = ceilings._work(H200)
        (blocks, *_), (threads, *_) = kernels.launch(ceilings.PEAK, work)
        assert blocks == 8 * 132
        assert 2 * blocks * threads * kernels.defaults(ceilings.PEAK)["CHAINS"] * work.K == work.flops

    @pytest.mark.parametrize("wrong", ["BLOCK=2048", "CHAINS=0", "CHAINS=64"])
    def test_parameters_that_do_not_fit_are_refused(self, wrong):
        with pytest.raises(CompileError, match=f"choose.*{wrong.partition('=')[0]}"):
            compile_ptx(kernels.source(ceilings.PEAK), ("--std=c++17", f"-D{wrong}"), ())


class TestTheory:
    def test_of_a_gpu_in_the_table(self, use):
        use(H200)
        assert ceilings.board().source == "h200"
        found = {row["quantity"]: row["value"] for row in ceilings._theory(ceilings.board())}
        assert found == pytest.approx(
            {
                "peak_bandwidth": 4814,
                "peak_l1_bandwidth": 128 * 132 * 1.98,
                "peak_performance": 66908.16,  # NVIDIA's data sheet: 67 TFLOP/s
                "peak_at_clock": 66908.16 / 2,
            }
        )

    def test_of_another_gpu_from_what_cuda_tells(self, use):
        use(H100_NVL, **TOLD)
        gpu = ceilings.board()
        assert (gpu.name, gpu.boost_mhz, gpu.fp32_cores_per_sm) == ("NVIDIA H100 NVL", 1785, 128)
        assert gpu.peak_gflop_s / 1e3 == pytest.approx(60, rel=0.01)  # NVIDIA's data sheet
        assert gpu.bandwidth_gb_s == 4023  # 2 x 2.619 GHz x 768 bytes

    def test_a_slice_of_a_gpu_is_not_the_whole(self, use):
        use(Device("gpu", "NVIDIA H200", multiprocessors=16), **TOLD)
        assert ceilings.board().multiprocessors == 16

    def test_what_is_not_told_is_left_out(self, use):
        use(H100_NVL)
        assert ceilings.board().boost_mhz is ceilings.board().bandwidth_gb_s is None
        assert [row["quantity"] for row in ceilings._theory(ceilings.board())] == ["peak_at_clock"]

    def test_an_unknown_compute_capability_is_named(self, use):
        use(Device("gpu", "NVIDIA X", compute_capability="99.0"))
        with pytest.raises(ValueError, match=r"no GPU of compute capability 99\.0.*NVIDIA X.*Give it a row"):
            ceilings.board()


def test_without_a_gpu_there_are_no_ceilings(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    for ask in (ceilings.table, ceilings.board, ceilings.peak_gflops, ceilings.copy_gbytes_per_s):
        with pytest.raises(NoGpu):
            ask()


def test_share_of_multiply_adds_among_the_instructions():
    assert ceilings.fma_share(1, 1) == pytest.approx(1 / 3)
    assert ceilings.fma_share(8, 8) == pytest.approx(64 / 80)
    assert ceilings.fma_share(8, 8, words=4) == pytest.approx(64 / 68)


@pytest.mark.gpu
class TestOnAGpu:
    def test_measured_rates_are_near_theory(self, gpu):
        board = ceilings.board()
        assert 0.6 < ceilings.peak_gflops() / board.peak_gflop_s <= 1.01
        assert 0.6 < ceilings.copy_gbytes_per_s() / board.bandwidth_gb_s <= 1

    def test_the_table_agrees_with_what_cuda_tells(self, gpu):
        board, told = ceilings.board(), ceilings._clocks(ceilings.find_gpu())
        assert told["boost_mhz"] == pytest.approx(board.boost_mhz, rel=0.01)
        assert told["bandwidth_gb_s"] == pytest.approx(board.bandwidth_gb_s, rel=0.01)

    def test_the_table_falls_from_theory_to_programs(self, gpu):
        table = ceilings.table()
        assert list(table.columns) == [*COLUMNS, "source"]
        floats = table[(table.dtype == "float32") & (table.unit == "GFLOP/s")]
        peak, clock, measured, cublas = floats.value
        assert list(floats.quantity) == ["peak_performance", "peak_at_clock", "performance", "performance"]
        assert 1.01 * peak >= clock > 0.97 * measured and 1.01 * measured > cublas > 0.5 * peak
        bandwidth = table[table.quantity == "bandwidth"].set_index("kernel").value
        assert 0.3 < bandwidth["copy"] / bandwidth["memcpy"] < 1.1  # one element per thread: 0.47 on an H200
