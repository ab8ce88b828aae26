"""The choice of device: the simulator here, and a GPU as CuPy would describe it."""

import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import labkit
import simt
from labkit import kernels
from labkit.devices.select import (
    SIMULATOR,
    Device,
    NoGpu,
    _probe_gpus,
    array_module,
    device,
    find_gpu,
    gpus,
    sm_clock_mhz,
    synchronize,
)
from labkit.devices.timing import time_kernel
from labkit.kernels.problem import problem

H200 = {  # of cudaDeviceProp
    "name": b"NVIDIA H200",
    "major": 9,
    "minor": 0,
    "warpSize": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsDim": (1024, 1024, 64),
    "maxGridSize": (2147483647, 65535, 65535),
    "sharedMemPerBlock": 49152,
    "multiProcessorCount": 132,
    "l2CacheSize": 62914560,
}


class CudaError(RuntimeError):
    """Stands for cupy.cuda.runtime.CUDARuntimeError."""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("LABKIT_DEVICE", raising=False)
    _probe_gpus.cache_clear()
    yield
    _probe_gpus.cache_clear()


def pretend_cupy(monkeypatch, count):
    """A module in CuPy's place, whose device count is `count()`; `cupy.chosen` is the current device,
    first 0.
    """
    cupy = ModuleType("cupy")
    cupy.chosen = 0

    class CudaDevice:
        def __init__(self, index):
            self.index = index

        def use(self):
            cupy.chosen = self.index

    cupy.cuda = SimpleNamespace(
        Device=CudaDevice,
        runtime=SimpleNamespace(
            getDeviceCount=count,
            getDevice=lambda: cupy.chosen,
            getDeviceProperties=lambda index: H200 | {"name": [b"NVIDIA H200", b"Tesla T4"][index]},
            CUDARuntimeError=CudaError,
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


def test_without_cupy_the_simulator_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert device().kind == "simulator"
    assert labkit.xp is np
    assert labkit.RawModule is simt.RawModule
    synchronize()
    assert gpus() == ()
    assert sm_clock_mhz() is None
    with pytest.raises(NoGpu, match=r"CuPy cannot be imported .*labkit doctor"):
        find_gpu()


def test_a_gpu_is_taken_where_there_is_one(monkeypatch):
    cupy = pretend_cupy(monkeypatch, lambda: 1)
    expected = Device(
        "gpu",
        "NVIDIA H200",
        compute_capability="9.0",
        shared_bytes_per_block=49152,
        multiprocessors=132,
        l2_bytes=62914560,
    )
    assert device() == expected
    assert labkit.xp is cupy
    assert find_gpu() == device()
    assert str(device()) == "NVIDIA H200 (gpu:0, compute capability 9.0)"


def test_the_environment_overrides_a_gpu(monkeypatch):
    pretend_cupy(monkeypatch, lambda: 1)
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    assert device().kind == "simulator"
    assert labkit.xp is np
    with pytest.raises(NoGpu, match="LABKIT_DEVICE is simt: leave it unset"):
        find_gpu()
    assert str(device()) == "simt (no GPU: results are right, times are not a GPU's)"


@pytest.mark.parametrize(
    ("count", "why"), [(0, "CUDA finds no GPU"), (None, "CUDA does not start .no driver")]
)
def test_a_gpu_that_is_asked_for_and_missing_is_an_error(monkeypatch, count, why):
    def answer():
        if count is None:
            raise CudaError("no driver")
        return count

    pretend_cupy(monkeypatch, answer)
    assert device().kind == "simulator"
    monkeypatch.setenv("LABKIT_DEVICE", "gpu")
    with pytest.raises(NoGpu, match=f"LABKIT_DEVICE is gpu, but {why}.*set it to simt"):
        device()


@pytest.mark.parametrize("wanted", ["tpu", "gpu:", "gpu:-1", "gpu:a", "gpu:1 ", "GPU", "1"])
def test_an_unknown_override_is_named(monkeypatch, wanted):
    monkeypatch.setenv("LABKIT_DEVICE", wanted)
    with pytest.raises(ValueError, match=rf"LABKIT_DEVICE is '{wanted}'\. Choose gpu, gpu:1 .* or simt"):
        device()


class TestSeveralGpus:
    def test_the_index_chooses_at_each_use(self, monkeypatch):
        cupy = pretend_cupy(monkeypatch, lambda: 2)
        for wanted, index in (("", 0), ("gpu:1", 1), ("gpu", 0), ("gpu:1", 1), ("gpu:0", 0)):
            monkeypatch.setenv("LABKIT_DEVICE", wanted)
            assert (device().index, cupy.chosen) == (index, index)
        assert [gpu.name for gpu in gpus()] == ["NVIDIA H200", "Tesla T4"]

    @pytest.mark.parametrize("use", [lambda: labkit.xp, lambda: labkit.RawModule, synchronize, find_gpu])
    def test_what_works_on_a_gpu_makes_it_current(self, monkeypatch, use):
        cupy = pretend_cupy(monkeypatch, lambda: 2)
        cupy.RawModule = object
        monkeypatch.setitem(
            sys.modules, "labkit.devices.gpu", SimpleNamespace(raw_module=object, synchronize=lambda: None)
        )
        monkeypatch.setenv("LABKIT_DEVICE", "gpu:1")
        use()
        assert cupy.chosen == 1

    @pytest.mark.parametrize(
        ("count", "here"),
        [
            (1, "there is 1 GPU here: gpu:0 NVIDIA H200. Choose"),
            (2, "there are 2 GPUs here: gpu:0 NVIDIA H200, gpu:1 Tesla T4. Choose"),
        ],
    )
    def test_an_index_that_is_not_there_is_an_error(self, monkeypatch, count, here):
        pretend_cupy(monkeypatch, lambda: count)
        monkeypatch.setenv("LABKIT_DEVICE", "gpu:2")
        with pytest.raises(NoGpu, match=f"LABKIT_DEVICE is gpu:2, but {here}"):
            device()

    def test_an_index_without_any_gpu_is_an_error(self, monkeypatch):
        pretend_cupy(monkeypatch, lambda: 0)
        monkeypatch.setenv("LABKIT_DEVICE", "gpu:1")
        with pytest.raises(NoGpu, match="LABKIT_DEVICE is gpu:1, but CUDA finds no GPU"):
            device()


def test_the_simulator_has_no_clock(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    assert device() is SIMULATOR
    assert sm_clock_mhz() is None


@pytest.mark.gpu
def test_the_last_gpu_runs_what_is_asked_of_it(gpu, monkeypatch):
    """Arrays, kernels and times, also in another thread, which CUDA starts on GPU 0."""
    last = gpus()[-1]
    monkeypatch.setenv("LABKIT_DEVICE", f"gpu:{last.index}")
    kernel = kernels.load("matmul/1_naive")
    case = problem("matmul", 33, 31, 35)

    def run():
        args = case.args(labkit.xp)
        time_kernel(lambda: kernel(*case.launch(16), args), seconds=0)
        case.verify(case.output(args))
        return {array.device.id for array in args[:3]}

    with ThreadPoolExecutor(1) as pool:
        assert run() == pool.submit(run).result() == {last.index}
    assert 200 < sm_clock_mhz() < 3000
    with pytest.raises(NoGpu, match=f"but there .* {len(gpus())} GPU"):
        monkeypatch.setenv("LABKIT_DEVICE", f"gpu:{last.index + 1}")
        device()


def test_array_module_is_the_kernels():
    assert array_module(SimpleNamespace(xp="cupy")) == "cupy"
    code = 'extern "C" __global__ void nothing() {}'
    assert array_module(simt.RawModule(code=code).get_function("nothing")) is np
