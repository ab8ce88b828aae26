"""A value that was never set may be copied within a block; what depends on it is a mistake."""

import numpy as np
import pytest

import simt

# As CUB does beyond the end of its data: a tile is loaded in part, goes through shared memory in another
# order, and each thread looks only at what lies within the data.
THROUGH_SHARED = """extern "C" __global__ void f(const TYPE* in, int* out, int n) {
    __shared__ TYPE tile[4 * 64];
    TYPE items[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        int at = i * 64 + threadIdx.x;
        if (at < n) items[i] = in[at];
    }
    #pragma unroll
    for (int i = 0; i < 4; i++) tile[i * 64 + threadIdx.x] = items[i];
    __syncthreads();
    int count = 0;
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        int at = threadIdx.x * 4 + i;
        bool is_kept = tile[at] > (TYPE)3;
        count += at < LIMIT && is_kept;
    }
    out[threadIdx.x] = count;
}"""


def checked(source, in_, n):
    kernel = simt.RawModule(code=source).get_function("f")
    out = np.full(64, -1, np.int32)
    found = kernel.check(1, 64, (in_, out, np.int32(n)))
    return [(finding.tool, finding.kind) for finding in found], out


@pytest.mark.parametrize("dtype", ["int", "float", "double", "long long", "short", "char"])
def test_a_copy_in_shared_memory_that_nothing_depends_on_is_no_mistake(dtype):
    numpys = {"int": "i4", "float": "f4", "double": "f8", "long long": "i8", "short": "i2", "char": "i1"}
    in_ = (np.arange(256) % 9).astype(numpys[dtype])
    source = THROUGH_SHARED.replace("TYPE", dtype).replace("LIMIT", "n")
    found, out = checked(source, in_, 201)
    assert found == []
    kept = (np.arange(256) < 201) & (in_ > 3)
    np.testing.assert_array_equal(out, kept.reshape(64, 4).sum(1))


@pytest.mark.parametrize("dtype", ["int", "float", "double", "long long"])
def test_a_result_that_depends_on_such_a_copy_is_one(dtype):
    numpys = {"int": "i4", "float": "f4", "double": "f8", "long long": "i8"}
    in_ = (np.arange(256) % 9).astype(numpys[dtype])
    source = THROUGH_SHARED.replace("TYPE", dtype).replace("LIMIT", "n + 1")
    assert set(checked(source, in_, 201)[0]) == {("initcheck", "unset variable")}
    assert checked(source, in_, 256)[0] == []


THROUGH = """extern "C" __global__ void f(const float* in, int* out, int n) {{
    __shared__ float tile[64];
    float v;
    if (threadIdx.x < n) v = in[threadIdx.x];
    {}
}}"""


@pytest.mark.parametrize(
    ("body", "is_wrong"),
    [
        (
            "tile[threadIdx.x] = v; __syncthreads(); if (threadIdx.x < n && tile[threadIdx.x] > 1) *out = 1;",
            0,
        ),
        ("tile[threadIdx.x] = v; __syncthreads(); if (tile[63 - threadIdx.x] > 1) *out = 1;", 1),
        ("tile[threadIdx.x] = v; __syncthreads(); out[threadIdx.x] = tile[63 - threadIdx.x] * 2;", 1),
        ("tile[(int)v & 63] = 1; __syncthreads(); out[threadIdx.x] = (int)tile[1];", 1),
        ("((float*)out)[threadIdx.x] = v;", 1),
    ],
    ids=["guarded", "decides", "result", "address", "leaves the block"],
)
def test_what_becomes_of_a_variable_that_some_threads_set(body, is_wrong):
    """The value is merged at optimised code where one path alone sets it, so n decides at run time."""
    source = THROUGH.format(body)
    source = source.replace("float v;", "float v; if (n < -1) v = in[n & 1];")
    in_ = np.ones(64, np.float32)
    kinds = {kind for _, kind in checked(source, in_, 40)[0]}
    assert kinds <= {"unset variable"}
    assert bool(kinds) == bool(is_wrong)
