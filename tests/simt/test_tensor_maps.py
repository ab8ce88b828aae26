"""Tensor maps and the copies of tiles by them, against their rules element by element.

Reference: CUDA Driver API, "Tensor Map Object Management"; PTX ISA, "Tensors" and `cp.async.bulk.tensor`.
What neither says is what an H200 does.
"""

import gc
from dataclasses import dataclass
from math import inf, nan, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
import simt
from simt.asynchronous import tensor_copy
from simt.common.errors import InvalidAccess, LaunchError, SimtError
from simt.common.tensor_map import decode

SHARED = 40960  # bytes of shared memory in these tests
TYPES = ("uint8", "int8", "uint16", "int32", "uint64", "int64", "float16", "float32", "float64")


def swizzled(address: int, swizzle: int) -> int:
    """Exchange chunks of 16 bytes: address bits 4, 5, 6 are XORed with bits 7, 8, 9, as far as it goes."""
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    for bit in range(bits):
        address ^= (address >> 7 + bit & 1) << 4 + bit
    return address


@dataclass
class Copy:
    """A tensor map's array and arguments, and a tile: coordinates in the array's order, its address."""

    array: np.ndarray
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    fill: str
    start: tuple[int, ...]
    address: int

    def tensor_map(self):
        how = {"swizzle": self.swizzle, "element_strides": self.steps, "fill": self.fill}
        return labkit.tensor_map(self.array, self.box, **how)

    @property
    def coordinates(self) -> tuple[int, ...]:
        return self.start[::-1]  # CUDA's order

    @property
    def tile(self) -> tuple[int, ...]:
        return tuple(-(-side // step) for side, step in zip(self.box, self.steps, strict=True))

    def elements(self):
        """Yield each element of the tile: its place in the array, and the place of its first byte."""
        itemsize = self.array.itemsize
        pitch = max(self.tile[-1] * itemsize, self.swizzle)
        for index in np.ndindex(self.tile):
            place = tuple(s + i * by for s, i, by in zip(self.start, index, self.steps, strict=True))
            row = 0
            for side, i in zip(self.tile[:-1], index[:-1], strict=True):
                row = row * side + i
            address = self.address + row * pitch + index[-1] * itemsize
            yield place, swizzled(address, self.swizzle)

    def is_inside(self, place: tuple[int, ...]) -> bool:
        return all(0 <= at < size for at, size in zip(place, self.array.shape, strict=True))


@st.composite
def copies(draw, writes: bool = False) -> Copy:
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    unit = 16 // dtype.itemsize
    outer = draw(st.lists(st.integers(1, 9), max_size=4))
    inner = draw(st.integers(1, 5 * unit))
    rows = np.zeros((*outer, -(-inner // unit) * unit + draw(st.sampled_from([0, unit]))), dtype)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    rows.view(np.uint8)[...] = random.integers(0, 256, rows.view(np.uint8).shape)
    swizzle = draw(st.sampled_from([0, 32, 64, 128]))
    box = [draw(st.integers(1, 8 if len(outer) < 3 else 3)) for _ in outer]
    box.append(unit * draw(st.integers(1, (swizzle or 96) // 16)))
    steps = [draw(st.sampled_from([1, 1, 2, 3])) for _ in outer] + [1]
    least = 0 if writes else -9
    start = [draw(st.integers(least, 10)) for _ in outer] + [unit * draw(st.integers(0 if writes else -2, 5))]
    fill = draw(st.sampled_from(["zero", "nan"])) if dtype.kind == "f" else "zero"
    address = 128 * draw(st.integers(0, 16))
    return Copy(rows[..., :inner], tuple(box), tuple(steps), swizzle, fill, tuple(start), address)


def noise(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, SHARED, dtype=np.uint8)


def loaded(copy: Copy, shared: np.ndarray) -> np.ndarray:
    """Return what a load makes of shared memory, element by element."""
    result, itemsize = shared.copy(), copy.array.itemsize
    outside = {"zero": bytes(itemsize), "nan": bytes.fromhex("f77f") * (itemsize // 2)}[copy.fill]
    for place, at in copy.elements():
        data = copy.array[place].tobytes() if copy.is_inside(place) else outside
        result[at : at + itemsize] = np.frombuffer(data, np.uint8)
    return result


@given(copies())
@settings(max_examples=120, deadline=None)
def test_load(copy):
    shared = noise()
    expected = loaded(copy, shared)
    moved = tensor_copy.load(copy.tensor_map().data, copy.coordinates, shared, copy.address)
    assert moved == prod(copy.tile) * copy.array.itemsize  # what an mbarrier counts: also what is filled in
    np.testing.assert_array_equal(shared, expected)


@given(copies(writes=True))
@settings(max_examples=120, deadline=None)
def test_store(copy):
    shared, whole = noise(), copy.array.base
    expected, unit = whole.copy(), 16 // copy.array.itemsize
    for place, at in copy.elements():
        # A row ends at a multiple of 16 bytes for a store.
        inner = -(-copy.array.shape[-1] // unit) * unit
        sizes = *copy.array.shape[:-1], inner
        if all(0 <= here < size for here, size in zip(place, sizes, strict=True)):
            expected[place] = shared[at : at + whole.itemsize].view(whole.dtype)[0]
    tensor_copy.store(copy.tensor_map().data, copy.coordinates, shared, copy.address)
    np.testing.assert_array_equal(whole.view(np.uint8), expected.view(np.uint8))


def test_a_store_leaves_alone_what_is_behind_an_array():
    memory = np.arange(100, dtype=np.uint16)
    array = memory.copy()[:85]
    owner = array.base
    exact = np.ndarray(85, np.uint16)  # owns 170 bytes, no more
    for each in (array, exact):
        tensor_copy.store(labkit.tensor_map(each, (96,)).data, (0,), np.zeros(192, np.uint8), 0)
        assert not each.any()
    np.testing.assert_array_equal(owner[85:88], 0)  # the rest of 16 bytes, as on an H200
    np.testing.assert_array_equal(owner[88:], memory[88:])


def single(op: str, old, new):
    """Return one result of a reduction."""
    if op in ("min", "max"):
        return {"min": min, "max": max}[op](old, new)
    if op == "inc":
        return 0 if old >= new else old + 1
    if op == "dec":
        return new if old == 0 or old > new else old - 1
    if op == "add":
        return old + new
    return {"and": old & new, "or": old | new, "xor": old ^ new}[op]


INTEGERS = [("add", "uint32"), ("add", "int32"), ("add", "uint64"), ("inc", "uint32"), ("dec", "uint32")]
INTEGERS += [(op, kind) for op in ("and", "or", "xor") for kind in ("uint32", "int32", "uint64")]
INTEGERS += [(op, kind) for op in ("min", "max") for kind in ("uint32", "int32", "uint64", "int64")]


@pytest.mark.parametrize(("op", "dtype"), INTEGERS)
def test_reductions_of_integers(op, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    random = np.random.default_rng(1)
    array = random.integers(0, 256, 64 * bits // 8, dtype=np.uint8).view(dtype).reshape(4, 16)
    array[0, :4] = 0, 1, -1 if dtype[0] == "i" else 2**bits - 1, 5
    shared = noise()
    given = shared[128 : 128 + array.nbytes].view(dtype).reshape(4, 16)
    given[0, 3] = 5
    whole = [single(op, int(a), int(b)) for a, b in zip(array.flat, given.flat, strict=True)]
    expected = np.array([each % 2**bits for each in whole], f"u{bits // 8}").view(dtype).reshape(4, 16)
    tensor_copy.reduce(op, labkit.tensor_map(array, (4, 16)).data, (0, 0), shared, 128)
    np.testing.assert_array_equal(array, expected)


def test_reductions_of_floats():
    old = np.array([1, 2048, -0.0, nan, nan, 60000, 1e-7, -inf], np.float16)
    new = np.array([0.5, 1, 0.0, 3, nan, 60000, 1e-7, 2], np.float16)
    results = {
        "add": [
            1.5,
            2048,
            0.0,
            nan,
            nan,
            inf,
            2.4e-7,
            -inf,
        ],  # 2049 lies between two halves, and 2048 is even
        "min": [0.5, 1, -0.0, 3, nan, 60000, 1e-7, -inf],
        "max": [1, 2048, 0.0, 3, nan, 60000, 1e-7, 2],
    }
    for op, expected in results.items():
        array, shared = old.copy(), new.copy().view(np.uint8)
        tensor_copy.reduce(op, labkit.tensor_map(array, (8,)).data, (0,), shared, 0)
        np.testing.assert_array_equal(array, np.array(expected, np.float16))
        np.testing.assert_array_equal(np.signbit(array[2]), np.signbit(expected[2]))


def bfloat16(numbers) -> np.ndarray:
    return (np.array(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("op", "expected"), [("add", [1.5, 256, -3, 258]), ("min", [0.5, 1, -2, 1]), ("max", [1, 256, -1, 256])]
)
def test_reductions_of_bfloat16(op, expected):
    old, new = bfloat16([1, 256, -2, 256, *[0] * 4]), bfloat16([0.5, 1, -1, 1.5, *[0] * 4])
    expected = expected if op != "min" else [0.5, 1, -2, 1.5]
    tensor_map = labkit.tensor_map(old, (8,), dtype="bfloat16")
    tensor_copy.reduce(op, tensor_map.data, (0,), new.view(np.uint8), 0)
    np.testing.assert_array_equal(old[:4], bfloat16(expected))


def test_tf32_is_rounded_to_nearest_even():
    bits = [0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x7F7FFFFF, 0x7F800001, 0x80000001, 0x1FFF]
    on_h200 = [0x3F800000, 0x3F800000, 0x3F802000, 0x3F804000, 0x7F800000, 0x7FFFE000, 0x80000000, 0x2000]
    array, shared = np.array(bits, np.uint32).view(np.float32), np.zeros(32, np.uint8)
    tensor_copy.load(labkit.tensor_map(array, (8,), dtype="tf32").data, (0,), shared, 0)
    assert shared.view(np.uint32).tolist() == on_h200
    tensor_copy.load(labkit.tensor_map(array, (8,), dtype="float32_ftz").data, (0,), shared, 0)
    assert shared.view(np.uint32).tolist() == bits


MATRIX = np.zeros((64, 64), np.float32)
REFUSED = [
    ("address", lambda: (np.zeros(65, np.float32)[1:], (16,), {}), "multiple of 16 bytes"),
    ("stride", lambda: (np.zeros((4, 5), np.float32), (4, 4), {}), "stride of dimension 0 is 20 bytes"),
    ("order", lambda: (np.zeros((64, 64), np.float32).T, (4, 4), {}), "array in C order"),
    ("backwards", lambda: (np.zeros((64, 64), np.float32)[::-1], (4, 4), {}), "-256 bytes"),
    ("dimensions", lambda: (np.zeros((1,) * 6, np.float32), (1,) * 6, {}), "6 dimensions"),
    ("empty", lambda: (np.zeros((0, 64), np.float32), (4, 4), {}), "1 to 2\\^32"),
    ("type", lambda: (np.zeros((4, 4), np.complex64), (4, 4), {}), "complex64"),
    ("byte order", lambda: (np.zeros((4, 4), ">f4"), (4, 4), {}), ">f4"),
    ("read-only", lambda: (np.broadcast_to(np.float32(1), (4, 4)), (4, 4), {}), "read-only"),
    ("size of dtype", lambda: (MATRIX, (8, 16), {"dtype": "bfloat16"}), "2 bytes per element"),
    ("box of 257", lambda: (MATRIX, (257, 16), {}), "1 to 256"),
    ("box of 0", lambda: (MATRIX, (0, 16), {}), "1 to 256"),
    ("length of box", lambda: (MATRIX, (16,), {}), "2 whole numbers"),
    ("row of 12 bytes", lambda: (MATRIX, (8, 3), {}), "12 bytes"),
    ("too much", lambda: (MATRIX, (256, 256), {}), "262144 bytes"),
    ("swizzle", lambda: (MATRIX, (8, 16), {"swizzle": 16}), "32, 64 or 128"),
    ("row of the swizzle", lambda: (MATRIX, (8, 16), {"swizzle": 32}), "at most 8 elements"),
    ("step", lambda: (MATRIX, (8, 16), {"element_strides": (9, 1)}), "1 to 8"),
    ("inner step", lambda: (MATRIX, (8, 16), {"element_strides": (1, 2)}), "must be 1"),
    ("fill", lambda: (np.zeros((8, 16), np.int32), (8, 16), {"fill": "nan"}), "int32"),
    ("promotion", lambda: (MATRIX, (8, 16), {"l2_promotion": 32}), "0, 64, 128 or 256"),
    ("interleave", lambda: (MATRIX, (8, 16), {"interleave": 16}), "interleave=16"),
    ("strides", lambda: (MATRIX, (8, 16), {"strides": (512, 4)}), "Choose smaller strides"),
]


@pytest.mark.parametrize(
    ("array", "words"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_what_cuda_refuses_has_a_reason(array, words):
    given, box, how = array()
    with pytest.raises(ValueError, match=words):
        labkit.tensor_map(given, box, **how)


def test_a_geometry_is_what_was_given():
    array = np.zeros((3, 5, 7, 40), np.float16)[..., :33]
    tensor_map = labkit.tensor_map(
        array, (1, 2, 3, 32), swizzle=64, element_strides=(1, 2, 3, 1), fill="nan", l2_promotion=256
    )
    geometry = decode(np.asarray(tensor_map).tobytes())
    assert geometry == tensor_map.geometry
    assert (geometry.sizes, geometry.strides, geometry.tile) == (array.shape, array.strides, (1, 1, 1, 32))


@pytest.mark.parametrize(
    ("coordinates", "address", "words"),
    [
        ((0, 0), 64, "multiple of 128"),
        ((0, 0), SHARED - 128, "ends past"),
        ((0,), 0, "1 coordinates"),
        ((3, 0), 0, "multiples of 16 bytes"),
    ],
)
def test_copies_that_a_gpu_refuses(coordinates, address, words):
    with pytest.raises(InvalidAccess, match=words):
        tensor_copy.load(labkit.tensor_map(MATRIX, (8, 16)).data, coordinates, noise(), address)


def test_a_store_takes_no_negative_coordinate():
    with pytest.raises(InvalidAccess, match="none may be negative"):
        tensor_copy.store(labkit.tensor_map(MATRIX, (8, 16)).data, (0, -1), noise(), 0)


def test_an_array_that_is_gone_is_no_crash():
    data = labkit.tensor_map(np.zeros((64, 64), np.float32), (8, 16)).data
    gc.collect()
    with pytest.raises(InvalidAccess, match="does not exist any more"):
        tensor_copy.load(data, (0, 0), noise(), 0)


def test_other_bytes_are_no_tensor_map():
    with pytest.raises(InvalidAccess, match="no tensor map"):
        tensor_copy.load(bytes(128), (0, 0), noise(), 0)


def test_plain_bytes():
    to, from_ = np.zeros(64, np.uint8), noise()[:64]
    assert tensor_copy.copy_bytes(to, from_, 0, 32) == 64
    np.testing.assert_array_equal(to, from_)
    tensor_copy.reduce_bytes("xor", "b32", to, from_, 0, 32)
    assert not to.any()
    with pytest.raises(InvalidAccess, match="24 bytes"):
        tensor_copy.copy_bytes(to[:24], from_[:24], 0, 0)
    with pytest.raises(InvalidAccess, match="8 bytes past"):
        tensor_copy.copy_bytes(to, from_, 8, 0)


VISIT = r"""
#include <cuda.h>
#include <cuda/ptx>
namespace ptx = cuda::ptx;

// One tile to shared memory, or with `writes` from there; `seen` is shared memory before and after.
__device__ void visit_by(const CUtensorMap* map, const int* start,
                         unsigned char* seen, int address, int bytes, int writes)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    uint64_t* bar = (uint64_t*)(shared + SHARED);
    int at[RANK];
    for (int d = 0; d < RANK; ++d)
        at[d] = start[d];
    for (int i = threadIdx.x; i < SHARED; i += blockDim.x)
        shared[i] = seen[i];
    if (threadIdx.x == 0)
        ptx::mbarrier_init(bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0 && writes) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map, at, shared + address);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    } else if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared + address, map, at, bar);
        while (!ptx::mbarrier_try_wait_parity(bar, 0))
            ;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SHARED; i += blockDim.x)
        seen[i] = shared[i];
}

extern "C" __global__ void visit(const __grid_constant__ CUtensorMap map, const int* start,
                                 unsigned char* seen, int address, int bytes, int writes)
{
    visit_by(&map, start, seen, address, bytes, writes);
}

extern "C" __global__ void visit_in_memory(const CUtensorMap* map, const int* start,
                                           unsigned char* seen, int address, int bytes, int writes)
{
    visit_by(map, start, seen, address, bytes, writes);
}

__constant__ CUtensorMap constant;

extern "C" __global__ void visit_constant(const int* start,
                                          unsigned char* seen, int address, int bytes, int writes)
{
    visit_by(&constant, start, seen, address, bytes, writes);
}
"""


def visiting(raw_module, rank: int, name: str = "visit"):
    kernel = raw_module(code=VISIT, options=(f"-DRANK={rank}", f"-DSHARED={SHARED}")).get_function(name)
    kernel.max_dynamic_shared_size_bytes = SHARED + 64
    return kernel


def launch(kernel, args):
    kernel((1,), (128,), args, shared_mem=SHARED + 64)


def counted(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.arange(prod(shape), dtype=dtype).reshape(shape)


GEOMETRIES = [
    Copy(counted((90,), "f4"), (32,), (1,), 0, "nan", (64,), 128),
    Copy(counted((40, 72), "f2"), (16, 64), (1, 1), 128, "zero", (30, 40), 1024),
    Copy(counted((40, 72), "f2"), (8, 16), (2, 1), 128, "nan", (36, 8), 384),
    Copy(counted((5, 6, 16), "i4"), (2, 3, 8), (1,) * 3, 64, "zero", (3, 4, 8), 0),
    Copy(counted((2, 2, 6, 16), "i8"), (2, 1, 3, 4), (1,) * 4, 32, "zero", (1, 0, 4, 12), 256),
    Copy(counted((2, 2, 2, 6, 16), "u1"), (1, 2, 1, 4, 16), (1,) * 5, 0, "zero", (1, 0, 1, 3, 0), 0),
]


@pytest.mark.parametrize("copy", GEOMETRIES, ids=lambda copy: f"{copy.array.ndim}d-{copy.array.dtype}")
def test_a_kernel_loads_a_tile(copy):
    seen, tensor_map = noise(), copy.tensor_map()
    expected = loaded(copy, seen)
    kernel, bytes_ = visiting(simt.RawModule, copy.array.ndim), prod(copy.tile) * copy.array.itemsize
    start = np.array(copy.coordinates, np.int32)
    launch(kernel, (tensor_map, start, seen, np.int32(copy.address), np.int32(bytes_), np.int32(0)))
    np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize("name", ["visit_in_memory", "visit_constant"])
def test_a_kernel_finds_tensor_maps_in_memory(name):
    copy, seen = GEOMETRIES[1], noise()
    expected, tensor_map = loaded(copy, seen), np.asarray(copy.tensor_map())
    kernel, start = visiting(simt.RawModule, 2, name), np.array(copy.coordinates, np.int32)
    rest = (start, seen, np.int32(copy.address), np.int32(2048), np.int32(0))
    if name == "visit_constant":
        np.ndarray(128, np.uint8, kernel.module.get_global("constant"))[...] = tensor_map
        launch(kernel, rest)
    else:
        launch(kernel, (tensor_map, *rest))
    np.testing.assert_array_equal(seen, expected)


def test_a_kernel_takes_tensor_maps_and_arrays_apart():
    kernel = visiting(simt.RawModule, 2)
    others = (np.zeros(2, np.int32), noise(), np.int32(0), np.int32(512), np.int32(0))
    with pytest.raises(LaunchError, match=r"labkit.tensor_map\(array, box\)"):
        launch(kernel, (MATRIX, *others))
    with pytest.raises(LaunchError, match="the kernel takes 8 bytes here"):
        launch(visiting(simt.RawModule, 2, "visit_in_memory"), (labkit.tensor_map(MATRIX, (8, 16)), *others))


def test_a_copy_that_a_gpu_refuses_names_its_line():
    kernel = visiting(simt.RawModule, 2)
    args = (np.array([2, 0], np.int32), noise(), np.int32(0), np.int32(512), np.int32(0))
    with pytest.raises(SimtError, match="multiples of 16 bytes"):
        launch(kernel, (labkit.tensor_map(MATRIX, (8, 16)), *args))


@pytest.mark.gpu
@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize("copy", GEOMETRIES, ids=lambda copy: f"{copy.array.ndim}d-{copy.array.dtype}")
def test_a_gpu_copies_the_same_tile(copy, writes, gpu):
    array, seen = copy.array.copy(), noise()
    there, seen_there = labkit.xp.asarray(array), labkit.xp.asarray(seen)
    how = {"swizzle": copy.swizzle, "element_strides": copy.steps, "fill": copy.fill}
    maps = [labkit.tensor_map(each, copy.box, **how) for each in (array, there)]
    start, bytes_ = np.array(copy.coordinates, np.int32), prod(copy.tile) * array.itemsize
    rest = np.int32(copy.address), np.int32(bytes_), np.int32(writes)
    launch(visiting(simt.RawModule, array.ndim), (maps[0], start, seen, *rest))
    launch(visiting(labkit.RawModule, array.ndim), (maps[1], labkit.xp.asarray(start), seen_there, *rest))
    np.testing.assert_array_equal(seen_there.get(), seen)
    np.testing.assert_array_equal(there.get(), array)


PUBLIC = {  # as kernels for Hopper are written elsewhere
    "barrier": r"""
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda/barrier>
#include <utility>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

extern "C" __global__ void add_one(const __grid_constant__ CUtensorMap map, int x, int y)
{
    __shared__ alignas(128) int tile[8][32];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int row = 0; row < 8; ++row)
        tile[row][threadIdx.x] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}
""",
    "asm": r"""
#include <cuda.h>
#include <stdint.h>

extern "C" __global__ void add_one(const __grid_constant__ CUtensorMap map, int x, int y)
{
    __shared__ alignas(128) int tile[8 * 32];
    __shared__ alignas(8) uint64_t bar;
    uint32_t to = __cvta_generic_to_shared(tile), b = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(1024));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&map), "r"(b), "r"(x), "r"(y) : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nWAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(b) : "memory");
    for (int row = 0; row < 8; ++row)
        tile[row * 32 + threadIdx.x] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];"
                     ::"l"(&map), "r"(to), "r"(x), "r"(y) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}
""",
}


@pytest.mark.parametrize("source", PUBLIC.values(), ids=PUBLIC.keys())
def test_public_ways_to_write_a_copy(source):
    before = np.arange(40 * 64, dtype=np.int32).reshape(40, 64)
    array, expected = before.copy(), before.copy()
    expected[36:, 32:] += 1
    kernel = simt.RawModule(code=source).get_function("add_one")
    args = (labkit.tensor_map(array, (8, 32)), np.int32(32), np.int32(36))
    kernel((1,), (32,), args)
    np.testing.assert_array_equal(array, expected)
    assert kernel.check((1,), (32,), args) == []


def test_no_sum_of_many_blocks_is_lost():
    array = np.zeros((8, 32), np.int32)
    kernel = simt.RawModule(code=PUBLIC["asm"]).get_function("add_one")
    kernel((500,), (32,), (labkit.tensor_map(array, (8, 32)), np.int32(0), np.int32(0)))
    np.testing.assert_array_equal(array, 500)
