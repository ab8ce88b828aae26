"""Loads and stores at any constant distance between lanes, in any block shape, move the right elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt

TYPES = {
    "float": np.dtype("f4"),
    "double": np.dtype("f8"),
    "short": np.dtype("i2"),
    "char": np.dtype("i1"),
    "float2": np.dtype(("f4", (2,))),
    "float4": np.dtype(("f4", (4,))),
}
SOURCE = """extern "C" __global__
void f(const TYPE* in, TYPE* from_global, TYPE* from_shared, TYPE* turned, int n) {
    __shared__ TYPE tile[SIZE];
    int x = threadIdx.x, y = threadIdx.y, t = y * blockDim.x + x;
    for (int i = t; i < SIZE; i += blockDim.x * blockDim.y) tile[i] = in[i];
    __syncthreads();
    if (x + 2 * y < n) {
        from_global[t] = in[A * x + B * y + C];
        from_shared[t] = tile[A * x + B * y + C];
        turned[x * blockDim.y + y] = tile[t];
    }
}"""
BLOCKS = [(32, 8), (16, 16), (8, 8), (4, 4), (2, 3), (1, 40), (33, 3), (10, 10), (64, 2), (1, 1)]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(TYPES)),
    st.sampled_from(BLOCKS),
    st.integers(0, 5),
    st.integers(0, 40),
    st.integers(0, 3),
    st.sampled_from([0, 5, 1000]),
)
def test_elements_go_where_they_should(ctype, block, a, b, c, n):
    (width, height), dtype = block, TYPES[ctype]
    size = max(width * height, a * width + b * height + c + 1)
    if size * dtype.itemsize > 48 * 1024:
        return
    values = np.random.default_rng(0).integers(-100, 100, (size, *dtype.shape)).astype(dtype.base)
    outputs = [np.zeros((width * height, *dtype.shape), dtype.base) for _ in range(3)]
    macros = {"TYPE": ctype, "SIZE": size, "A": a, "B": b, "C": c}
    options = [f"-D{name}={value}" for name, value in macros.items()]
    kernel = simt.RawModule(code=SOURCE, options=options).get_function("f")
    kernel(1, block, (values, *outputs, np.int32(n)))
    y, x = np.divmod(np.arange(width * height), width)
    active = x + 2 * y < n
    picked = np.where(active.reshape(-1, *[1] * len(dtype.shape)), values[a * x + b * y + c], 0)
    turned = np.zeros_like(outputs[2])
    turned[(x * height + y)[active]] = values[: width * height][active]
    for got, expected in zip(outputs, (picked, picked, turned), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("index", ["j", "j ^ 1", "3"])
def test_a_vector_that_all_lanes_read(index):
    source = f"""extern "C" __global__ void f(const float4* in, float* out) {{
        __shared__ float4 all[64];
        all[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        float sum = 0;
        for (int j = 0; j < 64; j++) {{ float4 v = all[{index}]; sum += v.x - 2 * v.y + v.w * in[j].z; }}
        out[threadIdx.x] = sum;
    }}"""
    values, out = (
        np.random.default_rng(1).integers(-9, 9, (64, 4)).astype(np.float32),
        np.zeros(64, np.float32),
    )
    simt.RawModule(code=source).get_function("f")(1, 64, (values, out))
    v = values[[eval(index, {"j": j}) for j in range(64)]]
    np.testing.assert_array_equal(out, np.sum(v[:, 0] - 2 * v[:, 1] + v[:, 3] * values[:, 2]))


WIDENED = """extern "C" __global__ void f(unsigned long long* out, int shift) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    size_t index = i, shifted = i - shift;
    if (blockIdx.x == gridDim.x - 1) {
        out[2 * threadIdx.x] = index;
        out[2 * threadIdx.x + 1] = shifted;
    }
}"""


@pytest.mark.parametrize(
    "grid, block",
    [
        (1, 64),
        (7, 96),
        (4194303, 1024),  # the last index is 2^32 - 1025
        (4294968, 1000),  # within warp 9 of the last block indices go from 2^32 - 1 to 0
    ],
)
def test_unsigned_indices_wrap_round_as_32_bit_numbers_do(grid, block):
    out = np.zeros((block, 2), np.uint64)
    kernel = simt.RawModule(code=WIDENED).get_function("f")
    kernel.profile(grid, block, (out, np.int32(5)), blocks=2)  # runs the first block and the last
    index = np.arange(block, dtype=np.uint64) + np.uint64((grid - 1) * block)
    np.testing.assert_array_equal(out[:, 0], index % 2**32)
    np.testing.assert_array_equal(out[:, 1], (index - np.uint64(5)) % 2**32)


@pytest.mark.parametrize("divisor", [3, 7, 10, 40, 641])
def test_indices_divided_by_a_constant(divisor):
    # the compiler multiplies by 2^32 / divisor and more, which PTX writes as a negative number
    source = f"""extern "C" __global__ void f(unsigned* out) {{
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        out[2 * i] = i / {divisor};
        out[2 * i + 1] = threadIdx.x % {divisor};
    }}"""
    out = np.zeros((192, 2), np.uint32)
    simt.RawModule(code=source).get_function("f")(3, 64, (out,))
    np.testing.assert_array_equal(out[:, 0], np.arange(192) // divisor)
    np.testing.assert_array_equal(out[:, 1], np.arange(192) % 64 % divisor)
