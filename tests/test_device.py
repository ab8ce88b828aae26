"""The choice of device: the simulator here, and a GPU as CuPy would describe it."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import labkit
from labkit import simt
from labkit.device import Device, NoGpu, _probe_gpu, array_module, device, find_gpu, synchronize

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
    "Stands for cupy.cuda.runtime.CUDARuntimeError."


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("LABKIT_DEVICE", raising=False)
    _probe_gpu.cache_clear()
    yield
    _probe_gpu.cache_clear()


def pretend_cupy(monkeypatch, count):
    "A module in CuPy's place, whose device count is `count()`."
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(
        runtime=SimpleNamespace(
            getDeviceCount=count, getDeviceProperties=lambda _: H200, CUDARuntimeError=CudaError
        )
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


def test_without_cupy_the_simulator_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert device().kind == "simulator"
    assert labkit.xp is np
    assert labkit.RawModule is simt.RawModule
    synchronize()
    with pytest.raises(NoGpu, match=r"CuPy cannot be imported .*pip install 'labkit\[cuda13\]'"):
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
    assert str(device()) == "NVIDIA H200 (GPU, compute capability 9.0)"


def test_the_environment_overrides_a_gpu(monkeypatch):
    pretend_cupy(monkeypatch, lambda: 1)
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    assert device().kind == "simulator"
    assert labkit.xp is np
    assert find_gpu().kind == "gpu"
    assert str(device()) == "labkit.simt (no GPU: results are right, times are not a GPU's)"


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


def test_an_unknown_override_is_named(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "tpu")
    with pytest.raises(ValueError, match=r"LABKIT_DEVICE is 'tpu'\. Choose gpu or simt"):
        device()


def test_array_module_is_the_kernels():
    assert array_module(SimpleNamespace(xp="cupy")) == "cupy"
    code = 'extern "C" __global__ void nothing() {}'
    assert array_module(simt.RawModule(code=code).get_function("nothing")) is np
