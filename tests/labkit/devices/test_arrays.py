"""Every entry that takes arrays takes them from the host and from a GPU, and changes none on a GPU.

Without a GPU `GpuArray` stands in for CuPy's; the same table runs on a GPU with CuPy's own.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_array import GpuArray, aligned

import labkit
import simt
from labkit.devices import simulated_fallback
from labkit.devices.timed_launch import launched
from simt.common.errors import LaunchError
from simt.common.launches import LaunchLog
from simt.common.tensor_map import TensorMap, describe
from simt.launch import twins

ROWS = 8  # of 32 floats
COUNT = 32 * ROWS
GRID, BLOCK = 2, COUNT // 2
DIRECT = """extern "C" __global__ void twice(const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}
"""
BY_MAP = r"""
#include <cuda.h>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void twice(const __grid_constant__ CUtensorMap map, float* y)
{
    __shared__ alignas(128) float tile[4][32];
    __shared__ uint64_t bar;
    int start[2] = {0, int(4 * blockIdx.x)};
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, start, &bar);
        ptx::mbarrier_arrive_expect_tx(
            ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof tile);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    y[blockIdx.x * 128 + threadIdx.x] = 2 * tile[threadIdx.x / 32][threadIdx.x % 32];
}
"""


def cupy_or_its_stand_in(monkeypatch, has_gpu):
    """CuPy where there is a GPU; elsewhere as much of it as labkit needs."""
    if has_gpu:
        return pytest.importorskip("cupy")

    def asarray(values):
        memory = aligned(values.size, values.dtype).reshape(values.shape)
        memory[...] = values
        return GpuArray(memory)

    library = SimpleNamespace(ndarray=GpuArray, asarray=asarray)
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    return library


def tensor_map(array):
    """A map of rows of 32 floats, four of them in a box."""
    matrix = array.reshape(ROWS, 32)
    if not isinstance(matrix, GpuArray):
        return labkit.tensor_map(matrix, (4, 32))
    geometry = describe(matrix, matrix.data.ptr, (4, 32), 0, None, None, None, "zero", 0)
    return TensorMap(matrix, geometry, bytes(128))


def values(array):
    return array.get() if twins.is_on_gpu(array) else array.copy()


X = np.arange(2 * COUNT + 64, dtype=np.float32)
SAME = 1e-5  # of a predicted time: where views share a line of a cache, its last digits depend on the host
# A kind: where x and y lie, by how many elements they begin after a boundary, whether they are one array.
KINDS = {
    "host": ("host", "host", 0, False),
    "gpu": ("gpu", "gpu", 0, False),
    "x of the host, y on the gpu": ("host", "gpu", 0, False),
    "x on the gpu, y of the host": ("gpu", "host", 0, False),
    "views of the host": ("host", "host", 3, False),
    "views on the gpu": ("gpu", "gpu", 3, False),
    "views of one array of the host": ("host", "host", 3, True),
    "views of one array on the gpu": ("gpu", "gpu", 3, True),
}


class Arrays:
    """The arrays x and y of a kind; `by_map` passes x by a tensor map."""

    def __init__(self, library, kind, by_map):
        self.kind, (x_at, y_at, self.offset, is_one) = kind, KINDS[kind]
        self.offset = 4 * (self.offset > 0) if by_map else self.offset  # maps begin at multiples of 16 bytes
        make = {"host": np.copy, "gpu": library.asarray}
        whole = make[x_at](X)
        other = whole if is_one else make[y_at](X)
        self.x = whole[self.offset : self.offset + COUNT]
        self.y = (
            other[self.offset + COUNT : self.offset + 2 * COUNT] if is_one else other[self.offset :][:COUNT]
        )
        self.wholes = [whole, other]
        self.args = (tensor_map(self.x) if by_map else self.x, self.y)

    @property
    def are_unchanged(self):
        """Say whether no array that lies on the GPU has changed."""
        return all(np.array_equal(values(each), X) for each in self.wholes if twins.is_on_gpu(each))


def sectors(offset):
    """Sectors of 32 bytes that a warp's 32 floats touch, for all warps: by the addresses alone."""
    return COUNT // 32 * len({(4 * (offset + lane)) // 32 for lane in range(32)})


def profiled(kernel, arrays, by_map):
    profile = kernel.profile(GRID, BLOCK, arrays.args)
    assert profile.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == sectors(arrays.offset)
    if not by_map:
        assert profile.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == sectors(arrays.offset)
        assert profile.metrics["smsp__inst_executed.sum"] > 0, "by the machine code, from the contents kept"


def checked(kernel, arrays, by_map):
    assert kernel.check(GRID, BLOCK, arrays.args) == []


def predicted(kernel, arrays, by_map):
    if by_map:
        return  # machine code with mbarriers is not counted
    first = kernel.predict(GRID, BLOCK, arrays.args).seconds
    here = Arrays(SimpleNamespace(asarray=np.copy), arrays.kind, by_map).args
    assert first == pytest.approx(kernel.simulated.predict(GRID, BLOCK, here).seconds, rel=SAME)


def timed(kernel, arrays, by_map):
    """What `labkit.time` keeps of a launch predicts the same time."""
    seen = LaunchLog()
    seen.count, seen.last = 1, (kernel, GRID, BLOCK, arrays.args, 0)
    kept = launched(seen, 1)
    if by_map:
        return
    predicted = kernel.predict(GRID, BLOCK, arrays.args).seconds
    assert kept.predict("H200").seconds == pytest.approx(predicted, rel=SAME)


def traced(kernel, arrays, by_map):
    stores = labkit.trace(kernel, GRID, BLOCK, arrays.args, at=1).accesses.query("kind == 'store'")
    stores = stores[stores.space == "global"]
    expected = 2 * X[arrays.offset + BLOCK : arrays.offset + 2 * BLOCK]
    assert sorted(stores.value) == expected.tolist()


def stepped(kernel, arrays, by_map):
    view = labkit.step(kernel, GRID, BLOCK, arrays.args, at=1)
    assert view.recorded.error is None and view.recorded.findings == []


ENTRIES = [profiled, checked, predicted, timed, traced, stepped]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_entry = pytest.mark.parametrize("entry", ENTRIES)
by_map_or_not = pytest.mark.parametrize("by_map", [False, True], ids=["arrays", "tensor map"])
with_and_without_gpu = pytest.mark.parametrize(
    "has_gpu", [False, pytest.param(True, marks=pytest.mark.gpu)], ids=["stand-in", "gpu"]
)


@with_and_without_gpu
@by_map_or_not
@each_entry
@each_kind
def test_every_entry_takes_every_kind(monkeypatch, kind, entry, by_map, has_gpu):
    library = cupy_or_its_stand_in(monkeypatch, has_gpu)
    modules = [simt.RawModule, simulated_fallback.RawModule] + [labkit.RawModule] * has_gpu
    for module in modules:
        kernel = module(code=BY_MAP if by_map else DIRECT).get_function("twice")
        arrays = Arrays(library, kind, by_map)
        entry(kernel, arrays, by_map)
        assert arrays.are_unchanged


@with_and_without_gpu
@by_map_or_not
@each_kind
def test_a_launch_in_the_simulator_writes_to_arrays_on_a_gpu(monkeypatch, kind, by_map, has_gpu):
    """Of kernels that the GPU cannot run; the plain simulator's refuse such arrays, with the way out."""
    library = cupy_or_its_stand_in(monkeypatch, has_gpu)
    arrays = Arrays(library, kind, by_map)
    kernel = simulated_fallback.RawModule(code=BY_MAP if by_map else DIRECT).get_function("twice")
    kernel(GRID, BLOCK, arrays.args)
    expected = 2 * X[arrays.offset : arrays.offset + COUNT]
    np.testing.assert_array_equal(values(arrays.y), expected)
    if "gpu" in kind:
        plain = simt.RawModule(code=BY_MAP if by_map else DIRECT).get_function("twice")
        with pytest.raises(LaunchError, match="on the GPU; the simulator takes"):
            plain(GRID, BLOCK, arrays.args)


def test_twins_of_arrays_that_share_memory_share_it():
    whole = GpuArray(aligned(100))
    whole[...] = np.arange(100)
    first, second, other = whole[3:50], whole[40:], GpuArray(aligned(6)).reshape(2, 3)
    one, two, three, number = twins.on_host([first, second, other, 7])
    np.testing.assert_array_equal(one, np.arange(3, 50))
    np.testing.assert_array_equal(two, np.arange(40, 100))
    assert three.shape == (2, 3) and number == 7
    assert two.ctypes.data - one.ctypes.data == 37 * 4
    one[...] = -1
    assert (two[:10] == -1).all() and (three == 0).all()
    assert one.ctypes.data % 256 == 12


@pytest.mark.parametrize("steps", [(1, -1), (-2, 3), (3, 1)])
def test_twins_have_the_strides_of_their_arrays(steps):
    memory = aligned(64).reshape(8, 8)
    memory[...] = np.arange(64).reshape(8, 8)
    array = memory[:: steps[0], :: steps[1]]
    for twin in (twins.on_host([GpuArray(array)])[0], twins.copies([array])[0]):
        np.testing.assert_array_equal(twin, array)
        assert twin.strides == array.strides
        twin[...] = 0
    assert memory[0, 0] == 0 and memory[7, 7] == 63


def test_twins_of_no_elements():
    empty = GpuArray(aligned(8))[:0]
    assert [each.shape for each in twins.on_host([empty, empty, GpuArray(aligned(4))])] == [(0,), (0,), (4,)]


def test_twins_are_far_apart():
    """An access a little past the end of an array must not reach another one, where it would be valid."""
    arrays = [GpuArray(aligned(4)) for _ in range(4)]
    starts = sorted(each.ctypes.data for each in twins.zeros(arrays))
    assert min(np.diff(starts)) >= 1 << 20


def test_zeros_take_no_contents():
    array = GpuArray(aligned(4))
    array[...] = np.ones(4, np.float32)
    assert not twins.zeros([array])[0].any()
    assert not twins.zeros(twins.described([array]))[0].any()


def test_copies_count_as_never_written_where_the_array_does():
    kernel = simt.RawModule(code=DIRECT).get_function("twice")
    x, y = simt.empty(COUNT), np.zeros(COUNT, np.float32)
    (finding,) = kernel.check(GRID, BLOCK, twins.copies([x, y]))
    assert finding.tool == "initcheck"
    assert np.isnan(x).all() and not y.any()
