"""Counters follow Nsight Compute's address rules: 32-byte sectors, 32 banks of 4 bytes; expected values
come from NumPy.
"""

import numpy as np
import pytest

from labkit import simt

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"


def profile(source, grid, block, *args, **options):
    kernel = simt.RawModule(code=source).get_function("f")
    return kernel.profile(grid, block, args, **options)


def sectors(addresses, size):
    """Distinct 32-byte sectors of each warp's request, summed; `addresses` has a row a warp."""
    return sum(len({(a + k) // 32 for a in row for k in range(0, size, 4)}) for row in addresses.tolist())


@pytest.mark.parametrize("dtype, ctype", [(np.float32, "float"), (np.float64, "double"), (np.int16, "short")])
@pytest.mark.parametrize("stride", [0, 1, 2, 5, 8, 33])
@pytest.mark.parametrize("start", [0, 3])
def test_sectors_of_strided_access(dtype, ctype, stride, start):
    source = f"""extern "C" __global__ void f(const {ctype}* in, {ctype}* out) {{
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        out[t] = in[{start} + {stride} * t];
    }}"""
    values, out = np.arange(128 * stride + 8).astype(dtype), np.zeros(128, dtype)
    metrics = profile(source, 2, 64, values, out).metrics
    size, threads = out.itemsize, np.arange(128).reshape(4, 32)
    assert metrics[REQUESTS.format("ld")] == metrics[REQUESTS.format("st")] == 4
    assert metrics[SECTORS.format("ld")] == sectors((start + stride * threads) * size, size)
    assert metrics[SECTORS.format("st")] == sectors(threads * size, size)
    np.testing.assert_array_equal(out, values[start + stride * np.arange(128)])


def test_sectors_do_not_depend_on_where_the_host_put_the_array():
    source = (
        'extern "C" __global__ void f(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }'
    )
    memory = np.zeros(400, np.float32)
    for view, expected in ((memory[:64], 4), (memory[3:67], 5)):
        counted = profile(source, 1, 32, view, np.zeros(32, np.float32)).metrics
        assert counted[SECTORS.format("ld")] == expected


@pytest.mark.parametrize("pitch, degree", [(32, 32), (33, 1), (34, 2), (36, 4), (40, 8), (48, 16)])
def test_bank_conflicts_of_a_column(pitch, degree):
    source = f"""extern "C" __global__ void f(float* out) {{
        __shared__ float tile[32][{pitch}];
        int x = threadIdx.x, y = threadIdx.y;
        tile[y][x] = x + 100 * y;
        __syncthreads();
        out[32 * y + x] = tile[x][y];
    }}"""
    out = np.zeros((32, 32), np.float32)
    counted = profile(source, 1, (32, 32), out)
    assert counted.metrics[CONFLICTS.format("ld")] == 32 * (degree - 1)
    assert counted.metrics[CONFLICTS.format("st")] == 0
    np.testing.assert_array_equal(out, np.arange(32)[None, :] * 100 + np.arange(32)[:, None])
    lines = counted.lines.set_index(["space", "op"])
    assert lines.loc[("shared", "ld"), ["line", "conflicts", "source"]].tolist() == [
        6,
        32 * (degree - 1),
        "out[32 * y + x] = tile[x][y];",
    ]


def test_one_word_for_all_lanes_is_no_conflict():
    source = """extern "C" __global__ void f(float* out) {
        __shared__ float s[64];
        s[threadIdx.x] = threadIdx.x; s[threadIdx.x + 32] = 0;
        __syncthreads();
        out[threadIdx.x] = s[5] + s[threadIdx.x / 2];
    }"""
    assert profile(source, 1, 32, np.zeros(32, np.float32)).metrics[CONFLICTS.format("ld")] == 0


def test_only_active_lanes_count():
    source = (
        'extern "C" __global__ void f(float* out, int n) { if (threadIdx.x < n) out[8 * threadIdx.x] = 1; }'
    )
    for n, requests in ((0, 0), (5, 1), (32, 1), (40, 2)):
        counted = profile(source, 1, 64, np.zeros(512, np.float32), np.int32(n)).metrics
        assert counted[SECTORS.format("st")] == n
        assert counted[REQUESTS.format("st")] == requests


def test_a_sample_of_blocks_is_scaled_and_says_so():
    source = 'extern "C" __global__ void f(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }'
    whole = profile(source, 1000, 64, np.zeros(64000, np.float32))
    sample = profile(source, 1000, 64, np.zeros(64000, np.float32), blocks=10)
    assert whole.metrics == sample.metrics
    assert whole.label == "counted by the simulator"
    assert sample.label == "counted by the simulator in 10 of 1000 blocks, scaled"


def test_registers_are_the_assemblers():
    source = """extern "C" __global__ void __launch_bounds__(128) f(float* out) {
        __shared__ float s[100]; s[threadIdx.x % 100] = 1; __syncthreads(); out[threadIdx.x] = s[0]; }"""
    kernel = simt.RawModule(code=source).get_function("f")
    assert kernel.shared_size_bytes == 400
    assert 4 <= kernel.num_regs <= 32
    assert (kernel.local_size_bytes, kernel.max_threads_per_block) == (0, 128)
    with pytest.raises(simt.LaunchError, match="launch_bounds"):
        kernel(1, 256, (np.zeros(256, np.float32),))
