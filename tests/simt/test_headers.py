"""CUDA's own headers: cooperative groups, pipelines, the cuda:: library; and what is refused by name."""

import numpy as np
import pytest

import simt
from simt.common.errors import CompileError
from simt.compiler import nvrtc

T = np.arange(64)
VALUES = np.random.default_rng(1).integers(-1000, 1000, 64, dtype=np.int32)


def run(source, grid, block, *args, name="f", names=None):
    module = simt.RawModule(code=source, name_expressions=names)
    module.get_function(name)(grid, block, args)
    return args


GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


def test_block_and_tiles_of_cooperative_groups():
    source = (
        GROUPS
        + """extern "C" __global__ void f(const int* in, int* out) {
        __shared__ int s[64];
        cg::thread_block block = cg::this_thread_block();
        int t = block.thread_rank(), n = block.size(), v = in[t];
        s[n - 1 - t] = v; block.sync(); out[t] = s[t];
        auto tile = cg::tiled_partition<16>(block);
        out[n + t] = tile.shfl_down(v, 3); out[2 * n + t] = tile.shfl_xor(v, 5);
        out[3 * n + t] = tile.any(v > 900) + 2 * tile.all(v > -900) + 4 * (tile.ballot(v > 0) != 0);
        out[4 * n + t] = tile.ballot(v > 0);
        out[5 * n + t] = tile.meta_group_rank() * 100 + tile.thread_rank();
        out[6 * n + t] = tile.match_any(v & 3);
        for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
        out[7 * n + t] = tile.shfl(v, 0);
        cg::thread_group half = cg::tiled_partition(block, 8);
        out[8 * n + t] = half.thread_rank() * half.size();
    }"""
    )
    _, out = run(source, 1, 64, VALUES, np.zeros((9, 64), np.int32))
    tiles, lane = VALUES.reshape(4, 16), np.arange(16)
    np.testing.assert_array_equal(out[0], VALUES[::-1])
    np.testing.assert_array_equal(out[1].reshape(4, 16), tiles[:, np.where(lane + 3 < 16, lane + 3, lane)])
    np.testing.assert_array_equal(out[2].reshape(4, 16), tiles[:, lane ^ 5])
    ballot = ((tiles > 0) << lane).sum(1)
    answers = (tiles > 900).any(1) + 2 * (tiles > -900).all(1) + 4 * (ballot != 0)
    np.testing.assert_array_equal(out[3].reshape(4, 16), np.repeat(answers[:, None], 16, 1))
    np.testing.assert_array_equal(out[4].reshape(4, 16), np.repeat(ballot[:, None], 16, 1))
    np.testing.assert_array_equal(out[5], T // 16 * 100 + T % 16)
    same = (tiles[:, :, None] & 3) == (tiles[:, None, :] & 3)
    np.testing.assert_array_equal(out[6].reshape(4, 16), (same << lane).sum(2))
    np.testing.assert_array_equal(out[7].reshape(4, 16), np.repeat(tiles.sum(1)[:, None], 16, 1))
    np.testing.assert_array_equal(out[8], T % 8 * 8)


def test_reductions_of_tiles_and_of_the_threads_that_came():
    source = (
        "#include <cooperative_groups/reduce.h>\n"
        + GROUPS
        + """
    extern "C" __global__ void f(const int* in, int* out, float* x) {
        auto block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        int t = block.thread_rank(), n = block.size(), v = in[t];
        out[t] = cg::reduce(tile, v, cg::plus<int>()); out[n + t] = cg::reduce(tile, v, cg::less<int>());
        out[2 * n + t] = cg::reduce(tile, v, cg::bit_xor<int>());
        x[t] = cg::reduce(tile, (float)v, cg::greater<float>());
        if (v & 1) {
            cg::coalesced_group odd = cg::coalesced_threads();
            out[3 * n + t] = odd.size() * 100 + odd.thread_rank();
            out[4 * n + t] = cg::reduce(odd, v, cg::plus<int>()); out[5 * n + t] = odd.shfl(v, 1);
        }
    }"""
    )
    _, out, x = run(source, 1, 64, VALUES, np.zeros((6, 64), np.int32), np.zeros(64, np.float32))
    tiles = VALUES.reshape(8, 8)
    for row, expected in zip(
        out, [tiles.sum(1), tiles.min(1), np.bitwise_xor.reduce(tiles, 1)], strict=False
    ):
        np.testing.assert_array_equal(row, np.repeat(expected, 8))
    np.testing.assert_array_equal(x, np.repeat(tiles.max(1), 8).astype(np.float32))
    for warp in range(2):
        values = VALUES[32 * warp : 32 * warp + 32]
        odd = np.flatnonzero(values & 1)
        got = out[3:, 32 * warp + odd]
        np.testing.assert_array_equal(got[0], 100 * len(odd) + np.arange(len(odd)))
        assert set(got[1].tolist()) == {int(values[odd].sum())} and set(got[2].tolist()) == {
            int(values[odd[1]])
        }


@pytest.mark.parametrize("missing", [0, 4, 7, 12, 16])
def test_asynchronous_copies_fill_the_rest_with_zeros(missing):
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void f(const float4* in, float4* out, const float* small, float* copy,
                                 int missing) {
        __shared__ float4 s[2][64]; __shared__ float t[64];
        int i = threadIdx.x;
        __pipeline_memcpy_async(&s[0][i], &in[i], 16); __pipeline_commit();
        __pipeline_memcpy_async(&s[1][i], &in[i], 16, missing); __pipeline_memcpy_async(&t[i], &small[i], 4);
        __pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();
        out[i] = s[0][i ^ 1];
        __pipeline_wait_prior(0); __syncthreads();
        out[64 + i] = s[1][i ^ 1]; copy[i] = t[63 - i];
    }"""
    values, small = (np.random.default_rng(2).random(shape).astype(np.float32) for shape in ((64, 4), 64))
    args = (values, np.zeros((2, 64, 4), np.float32), small, np.zeros(64, np.float32), np.int32(missing))
    _, out, _, copy, _ = run(source, 1, 64, *args)
    np.testing.assert_array_equal(out[0], values[T ^ 1])
    np.testing.assert_array_equal(
        out[1].view(np.uint8)[:, : 16 - missing], values[T ^ 1].view(np.uint8)[:, : 16 - missing]
    )
    assert not out[1].view(np.uint8)[:, 16 - missing :].any()
    np.testing.assert_array_equal(copy, small[::-1])


def test_a_count_of_bytes_known_at_run_time_and_a_guard():
    source = """extern "C" __global__ void f(const int4* in, int4* out) {
        __shared__ int4 s[32];
        int i = threadIdx.x; unsigned place = __cvta_generic_to_shared(&s[i]);
        s[i] = make_int4(-1, -1, -1, -1);
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0;"
            " @p cp.async.cg.shared.global [%0], [%1], 16, %2; }"
            :: "r"(place), "l"(in + i), "r"(i % 17), "r"(i % 5));
        asm volatile("cp.async.commit_group; cp.async.wait_all;");
        out[i] = s[i];
    }"""
    values = np.random.default_rng(3).integers(1, 255, (32, 16), dtype=np.uint8)
    _, out = run(source, 1, 32, values, np.zeros_like(values))
    for i, (row, given) in enumerate(zip(out, values, strict=True)):
        expected = np.where(np.arange(16) < i % 17, given, 0) if i % 5 else np.full(16, 255)
        np.testing.assert_array_equal(row, expected)


def test_a_copy_beyond_the_array_is_named():
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void f(const float* in) {
        __shared__ float s[64];
        __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    }"""
    with pytest.raises(simt.InvalidAccess, match=r"line 4: .*read of 4 bytes"):
        run(source, 1, 64, np.zeros(63, np.float32))


def test_the_pipeline_of_the_cuda_library():
    source = (
        GROUPS
        + """#include <cuda/pipeline>
    #include <cooperative_groups/memcpy_async.h>
    extern "C" __global__ void f(const float* in, float* out) {
        __shared__ float s[2][64];
        auto pipe = cuda::make_pipeline();
        int t = threadIdx.x;
        for (int stage = 0; stage < 2; stage++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[stage][t], &in[64 * stage + t], cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        for (int stage = 0; stage < 2; stage++) {
            pipe.consumer_wait(); __syncthreads();
            out[64 * stage + t] = 2 * s[stage][63 - t];
            pipe.consumer_release();
        }
        __syncthreads();
        auto block = cg::this_thread_block();
        cg::memcpy_async(block, s[1], in, sizeof(float) * 64); cg::wait(block);
        out[128 + t] = s[1][63 - t];
    }"""
    )
    values = np.random.default_rng(4).random((2, 64)).astype(np.float32)
    _, out = run(source, 1, 64, values, np.zeros((3, 64), np.float32))
    np.testing.assert_array_equal(out, [2 * values[0, ::-1], 2 * values[1, ::-1], values[0, ::-1]])


REFUSED = {
    "questions about a texture": (
        'cudaTextureObject_t t, int* y) {\n asm volatile("txq.width.b32 %0, [%1];" : "=r"(y[0]) : "l"(t));'
    ),
    "bulk stores": 'unsigned s) {\n asm volatile("st.bulk.shared::cta [%0], 64, 0;" :: "r"(s));',
    "products of sparse matrices": (
        "unsigned* y) {\n asm volatile("
        '"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "'
        '"{%0, %1}, {%0, %1}, {%0, %1}, {%0, %1}, %0, 0x0;" : "+r"(y[0]), "+r"(y[1]));'
    ),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_what_the_simulator_does_not_have_is_named(feature):
    source = f'extern "C" __global__ void f({REFUSED[feature]}\n}}'
    with pytest.raises(simt.SimtError, match=f"^line 2: the simulator has no {feature}"):
        simt.RawModule(code=source)


def test_grid_wide_synchronisation_without_optimisation_is_refused():
    source = (
        GROUPS + 'extern "C" __global__ void f(int* x) {\n x[0] = 1;\n cg::this_grid().sync();\n x[1] = 2; }'
    )
    with pytest.raises(simt.SimtError, match=r"^line 4: the simulator has no grid-wide .*: leave -G away"):
        simt.RawModule(code=source, options=("-G",))


def test_a_missing_header_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nvrtc, "include_paths", tuple)
    monkeypatch.setattr(nvrtc, "_version", lambda package: "13" if "nvrtc" in package else "")
    with pytest.raises(
        CompileError, match="pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
    ):
        nvrtc.compile_ptx('#include <cuda_fp16.h>\nextern "C" __global__ void f(half* x) { x[0] = 2; } //?')
    monkeypatch.undo()
    with pytest.raises(CompileError, match="no host headers such as <vector>: a kernel has arrays"):
        nvrtc.compile_ptx('#include <vector>\nextern "C" __global__ void f(int* x) {}')


def test_headers_of_the_host_are_harmless_and_the_cuda_library_is_there():
    source = """#include <cstdio>
    #include <cmath>
    #include <cuda_runtime.h>
    #include <cuda/std/cstdint>
    #include <cuda/std/limits>
    #include <cuda/std/array>
    extern "C" __global__ void f(cuda::std::uint32_t* x) {
        cuda::std::array<int, 3> a = {1, 2, 3};
        x[0] = cuda::std::numeric_limits<short>::max() + a[x[0] % 3] + (int)sqrtf(16);
    }"""
    (x,) = run(source, 1, 1, np.ones(1, np.uint32))
    assert x[0] == 32767 + 2 + 4


def test_what_nvcc_takes_from_the_hosts_headers_is_there():
    source = """#include <cfloat>
    #include <climits>
    #include <cstdint>
    #include <math.h>
    extern "C" __global__ void f(float* x, double* y, int64_t* n) {
        x[0] = INFINITY; x[1] = -INFINITY; x[2] = NAN; x[3] = FLT_MAX; x[4] = FLT_MIN; x[5] = FLT_EPSILON;
        y[0] = DBL_MAX; y[1] = DBL_MIN; y[2] = DBL_EPSILON; y[3] = M_PI; y[4] = M_E;
        n[0] = INT_MAX; n[1] = INT_MIN; n[2] = UINT_MAX; n[3] = LLONG_MAX; n[4] = LLONG_MIN;
        n[5] = sizeof(uint8_t) + 10 * sizeof(int16_t) + 100 * sizeof(uint32_t) + 1000 * sizeof(uint64_t);
    }"""
    x, y, n = np.zeros(6, np.float32), np.zeros(5), np.zeros(6, np.int64)
    simt.RawModule(code=source).get_function("f")(1, 1, (x, y, n))
    single, double, whole = np.finfo(np.float32), np.finfo(np.float64), np.iinfo
    np.testing.assert_array_equal(x, [np.inf, -np.inf, np.nan, single.max, single.tiny, single.eps])
    np.testing.assert_array_equal(y, [double.max, double.tiny, double.eps, np.pi, np.e])
    limits = [whole(np.int32).max, whole(np.int32).min, whole(np.uint32).max]
    assert n.tolist() == [*limits, whole(np.int64).max, whole(np.int64).min, 8421]


STANDARD = {
    "algorithm": ("std::max(3, 4) + std::min(2.f, 1.f) + std::clamp(9, 0, 5)", 10),
    "array": ("std::array<int, 3>{1, 2, 3}[2]", 3),
    "bit": ("std::popcount(255u) + std::bit_cast<int>(1.f) % 7", 8 + 0x3F800000 % 7),
    "cmath": (
        "std::sqrt(16.f) + sqrt(9) + std::abs(-2.5f) + std::pow(2, 3) + std::fmax(1.f, 2.0) + pow(3, 2)",
        28.5,
    ),
    "complex": (
        "std::abs(std::complex<float>(3, 4)) + std::abs(-1.f) + std::norm(std::complex<double>(1, 2))",
        11,
    ),
    "cstdint": ("std::uint32_t(7) + sizeof(std::uintptr_t) + sizeof(uint_fast8_t)", 16),
    "cstdlib": ("std::abs(-3)", 3),
    "cuda_runtime.h": ("uint(3) + sqrt(4) + INT8_MAX + CHAR_BIT + FLT_DIG + M_SQRT2 / M_SQRT2", 147),
    "functional": ("std::plus<int>()(1, 2) + std::greater<>()(2, 1)", 4),
    "initializer_list": ("std::initializer_list<int>{1, 2}.size()", 2),
    "limits": ("-std::numeric_limits<float>::infinity()", -np.inf),
    "numeric": ("std::gcd(12, 18) + std::midpoint(2, 4)", 9),
    "optional": ("std::optional<int>(4).value_or(1)", 4),
    "tuple": (
        "std::get<1>(std::make_tuple(1, 2)) + std::tuple_size<std::tuple<int, int, int, int, int>>::value",
        7,
    ),
    "type_traits": (
        "std::is_same_v<std::remove_const_t<const int>, int> + std::is_integral<float>::value",
        1,
    ),
    "utility": ("std::make_pair(1, 2).second + std::move(3)", 5),
}


@pytest.mark.parametrize("header", STANDARD)
def test_the_standard_library_is_there_in_namespace_std(header):
    value, expected = STANDARD[header]
    using = "using namespace std;" if header != "complex" else ""
    source = f"""#include <{header}>
    {using}
    extern "C" __global__ void f(double* x, double y) {{ x[0] = {value}; x[1] = sqrt(y) + max(1, 2); }}"""
    (x, _) = run(source, 1, 1, np.zeros(2), np.float64(4))
    assert x.tolist() == [expected, 4]


@pytest.mark.parametrize("backwards", [True, False])
def test_standard_headers_live_together_in_any_order(backwards):
    names = {path.name for path in nvrtc.HOST_HEADERS.iterdir()} - {"labkit_cuda_std.h"}
    kernel = (
        'extern "C" __global__ void f(int* x) { int a = 1, b = 2; std::swap(a, b); *x = std::max(a, b) + a; }'
    )
    includes = "".join(f"#include <{name}>\n" for name in sorted(names, reverse=backwards))
    compiled = nvrtc.compile_ptx(f"#include <cuda_fp16.h>\n{includes}{kernel}", ["-Werror=all-warnings"])
    assert compiled.log == ""


def test_a_name_of_the_library_without_its_header_says_which():
    with pytest.raises(CompileError, match="<algorithm> for max, min and swap"):
        nvrtc.compile_ptx('extern "C" __global__ void f(int* x) { *x = std::max(1, 2); }')


def test_the_key_notices_our_headers_only_where_a_source_includes_one(monkeypatch):
    def keys():
        return [nvrtc._key(source, (), (), "sm_90") for source in sources]

    sources = ["#include <mma.h>\n", "// include algorithm\n", "#include <algorithm>\n", "#include HEADER\n"]
    before = keys()
    monkeypatch.setattr(nvrtc, "_own_headers", lambda: {"algorithm": "other"})
    assert [one == other for one, other in zip(before, keys(), strict=True)] == [True, True, False, False]
