"""The simulator runs CUDA C++: control flow, types, memory spaces, and thread shapes, against NumPy."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt


def run(source, grid, block, *args, name="f", shared_mem=0, options=(), name_expressions=None):
    """Compile `source` and run its kernel; give the arguments back."""
    module = simt.RawModule(code=source, options=options, name_expressions=name_expressions)
    module.get_function(name)(grid, block, args, shared_mem=shared_mem)
    return args


BLOCKS = [
    (1,),
    (7,),
    (32,),
    (33,),
    (64,),
    (16, 16),
    (8, 4),
    (4, 4, 4),
    (10, 10),
    (5, 3, 7),
    (1, 32),
    (2, 16),
    (32, 8),
    (1000,),
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_thread_knows_where_it_is(block):
    source = """extern "C" __global__ void f(int* out) {
        int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int size = blockDim.x * blockDim.y * blockDim.z;
        int* mine = out + 4 * (block * size + thread);
        mine[0] = threadIdx.x; mine[1] = threadIdx.y; mine[2] = threadIdx.z; mine[3] = block;
    }"""
    grid, (x, y, z) = (3, 2, 2), (*block, 1, 1)[:3]
    out = np.full((12, z, y, x, 4), -1, np.int32)
    run(source, grid, block, out)
    tz, ty, tx = np.meshgrid(range(z), range(y), range(x), indexing="ij")
    np.testing.assert_array_equal(
        out[..., :3], np.broadcast_to(np.stack([tx, ty, tz], -1), out[..., :3].shape)
    )
    np.testing.assert_array_equal(out[:, 0, 0, 0, 3], range(12))


def test_lanes_part_and_meet_again():
    source = """extern "C" __global__ void f(const int* in, int* out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r;
        if (v % 3 == 0) { if (v & 1) r = v * 2; else r = v - 7; }
        else if (v % 3 == 1) r = -v;
        else { r = 0; for (int k = 0; k < v % 11; k++) r += k * v; }
        switch (v & 7) { case 0: r += 100; break; case 3: r ^= 5; case 4: r -= 1; break; default: r++; }
        out[i] = r;
    }"""

    def expected(v):
        if v % 3 == 0:
            r = v * 2 if v & 1 else v - 7
        elif v % 3 == 1:
            r = -v
        else:
            r = sum(k * v for k in range(v % 11))
        return {0: r + 100, 3: (r ^ 5) - 1, 4: r - 1}.get(v & 7, r + 1)

    values = np.random.default_rng(1).integers(0, 1000, 256, dtype=np.int32)
    _, out = run(source, 4, 64, values, np.zeros(256, np.int32))
    np.testing.assert_array_equal(out, [expected(int(v)) for v in values])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=96))
def test_loops_of_different_length_in_one_warp(values):
    """Collatz steps: each lane leaves the loop at its own time, and its count must not change after that."""
    source = """extern "C" __global__ void f(const int* in, int* out, int n) {
        int i = threadIdx.x;
        if (i >= n) return;
        int v = in[i], steps = 0;
        while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; steps++; }
        out[i] = steps;
    }"""

    def collatz(v):
        steps = 0
        while v != 1:
            v, steps = (3 * v + 1 if v % 2 else v // 2), steps + 1
        return steps

    n = len(values)
    _, out, _ = run(source, 1, 96, np.array(values, np.int32), np.full(n, -1, np.int32), np.int32(n))
    assert out.tolist() == [collatz(v) for v in values]


def test_break_continue_and_nested_loops():
    source = """extern "C" __global__ void f(int* out, int n) {
        int t = threadIdx.x, sum = 0;
        for (int i = 0; i < n; i++) {
            if ((i + t) % 5 == 0) continue;
            if (i * t > 90) break;
            for (int j = t; j < i; j += 3) { sum += i * j; if (sum > 5000) goto done; }
        }
        sum = -sum;
    done:
        out[t] = sum;
    }"""

    def expected(t, n):
        total = 0
        for i in range(n):
            if (i + t) % 5 == 0:
                continue
            if i * t > 90:
                break
            for j in range(t, i, 3):
                total += i * j
                if total > 5000:
                    return total
        return -total

    out, _ = run(source, 1, 64, np.zeros(64, np.int32), np.int32(40))
    assert out.tolist() == [expected(t, 40) for t in range(64)]


@pytest.mark.parametrize("threads", [32, 48, 256, 1024])
def test_barriers_and_shared_memory(threads):
    source = """extern "C" __global__ void f(const float* in, float* out) {
        __shared__ float tile[1024];
        int t = threadIdx.x, n = blockDim.x;
        tile[t] = in[blockIdx.x * n + t];
        for (int half = 1; half < n; half *= 2) {
            __syncthreads();
            float other = t >= half ? tile[t - half] : 0.f;
            __syncthreads();
            tile[t] += other;
        }
        out[blockIdx.x * n + t] = tile[t];
    }"""
    values = np.random.default_rng(2).integers(-9, 9, (3, threads)).astype(np.float32)
    _, out = run(source, 3, threads, values, np.zeros_like(values))
    np.testing.assert_array_equal(out, np.cumsum(values, axis=1))


def test_dynamic_shared_memory_behind_static():
    source = """extern __shared__ int dynamic[];
    extern "C" __global__ void f(int* out) {
        __shared__ int fixed[3];
        int t = threadIdx.x;
        if (t < 3) fixed[t] = 100 + t;
        dynamic[blockDim.x - 1 - t] = t;
        __syncthreads();
        out[t] = dynamic[t] + fixed[t % 3];
    }"""
    (out,) = run(source, 1, 50, np.zeros(50, np.int32), shared_mem=200)
    np.testing.assert_array_equal(out, 49 - np.arange(50) + 100 + np.arange(50) % 3)


def test_early_return_before_a_barrier_of_whole_and_part_warps():
    source = """extern "C" __global__ void f(int* out, int n) {
        __shared__ int s[128];
        int t = threadIdx.x;
        if (t >= n) return;
        s[t] = t * t;
        __syncthreads();
        out[t] = s[n - 1 - t];
    }"""
    for n in (40, 64):
        out, _ = run(source, 1, 128, np.full(128, -1, np.int32), np.int32(n))
        np.testing.assert_array_equal(out, [*((n - 1 - np.arange(n)) ** 2), *[-1] * (128 - n)])


@pytest.mark.parametrize("n", range(61, 73))
def test_lanes_that_wait_still_run_when_all_others_have_left(n):
    """The last lane stores its 1 to 3 elements one by one and leaves; the others, which wait, store four."""
    source = """extern "C" __global__ void f(float* out, int n) {
        int i = 4 * threadIdx.x;
        if (i + 3 < n)
            *(float4*)&out[i] = make_float4(i, i + 1, i + 2, i + 3);
        else
            for (int j = 0; j < 3; ++j)
                if (i + j < n)
                    out[i + j] = i + j;
    }"""
    (out, *_) = run(source, 1, 32, np.full(80, -1, np.float32), np.int32(n))
    np.testing.assert_array_equal(out, np.where(np.arange(80) < n, np.arange(80), -1))


def test_templates_and_device_functions():
    source = """template <typename T> __device__ T square(T x) { return x * x; }
    template <int N, typename T> __global__ void f(const T* in, T* out) {
        T sum = 0;
        #pragma unroll
        for (int k = 0; k < N; k++) sum += square(in[threadIdx.x * N + k]);
        out[threadIdx.x] = sum;
    }"""
    names = ("f<3, float>", "f<5, int>")
    module = simt.RawModule(code=source, name_expressions=names)
    for name, n, dtype in ((names[0], 3, np.float32), (names[1], 5, np.int32)):
        values, out = np.arange(40 * n).astype(dtype), np.zeros(40, dtype)
        module.get_function(name)(1, 40, (values, out))
        np.testing.assert_array_equal(out, (values.reshape(40, n) ** 2).sum(1))


def test_local_arrays_and_vector_types():
    source = """extern "C" __global__ void f(const float4* in, float4* out, int shift) {
        float mine[8];
        float4 v = in[threadIdx.x];
        for (int i = 0; i < 8; i++) mine[i] = i;
        mine[shift & 7] = v.x; mine[(shift + 3) & 7] = v.w;
        float sum = 0;
        for (int i = 0; i < 8; i++) sum += mine[(i * shift) & 7] * (i + 1);
        out[threadIdx.x] = make_float4(sum, v.z, v.y, v.x);
    }"""
    values = np.random.default_rng(3).random((40, 4)).astype(np.float32)
    _, out, _ = run(source, 1, 40, values, np.zeros_like(values), np.int32(5))
    mine = np.tile(np.arange(8, dtype=np.float32), (40, 1))
    mine[:, 5], mine[:, 0] = values[:, 0], values[:, 3]
    sums = sum(mine[:, (i * 5) % 8] * np.float32(i + 1) for i in range(8))
    np.testing.assert_allclose(out[:, 0], sums, rtol=1e-6)
    np.testing.assert_array_equal(out[:, 1:], values[:, [2, 1, 0]])


def test_constant_and_device_variables():
    source = """__constant__ int table[4] = {10, 20, 30, 40};
    __device__ int offsets[2] = {1, -1};
    extern "C" __global__ void f(int* out) {
        out[threadIdx.x] = table[threadIdx.x % 4] + offsets[threadIdx.x & 1];
    }"""
    (out,) = run(source, 1, 37, np.zeros(37, np.int32))
    t = np.arange(37)
    np.testing.assert_array_equal(out, np.array([10, 20, 30, 40])[t % 4] + np.array([1, -1])[t % 2])


def test_variables_are_set_from_outside():
    """As with CuPy; arrays of other threads' blocks and later launches see the change."""
    source = """__constant__ float weights[4]; namespace deep { __device__ int count = 3; }
    __device__ int seen; template <typename T> __device__ T scale = T(2);
    extern "C" __global__ void f(float* out) {
        out[threadIdx.x] = weights[threadIdx.x] * deep::count * scale<float>;
        if (threadIdx.x == 0) seen += 1;
    }"""
    names = ("&deep::count", "&scale<float>")
    module = simt.RawModule(code=source, name_expressions=names)
    f, out = module.get_function("f"), np.zeros(4, np.float32)
    weights = np.ndarray((4,), np.float32, module.get_global("weights"))
    f(1, 4, (out,))
    assert out.tolist() == [0, 0, 0, 0]
    weights[:] = [1, 2, 3, 4]
    for name, value, factor in (("deep::count", 5, 10), ("&deep::count", 7, 14)):
        np.ndarray((1,), np.int32, module.get_global(name))[0] = value
        f(1, 4, (out,))
        assert out.tolist() == [factor * n for n in (1, 2, 3, 4)]
    np.ndarray((1,), np.float32, module.get_global("&scale<float>"))[0] = 1
    f(1, 4, (out,))
    assert out.tolist() == [7, 14, 21, 28]
    assert np.ndarray((), np.int32, module.get_global("seen")) == 4
    known = (
        r"no __device__ or __constant__ variable is called `w`; this module has: `weights`, .*`deep::count`"
    )
    with pytest.raises(simt.SimtError, match=known):
        module.get_global("w")


def test_variables_that_hold_addresses():
    source = """__device__ float x[4] = {1, 2, 3, 4};
    __device__ float* middle = &x[2];
    __constant__ const char* words[3] = {"alpha", "beta", nullptr};
    struct Record { int a; const float* p; char c; short d; };
    __device__ Record record = {7, x + 1, 'c', 9};
    extern "C" __global__ void f(float* out, int k) {
        out[0] = *middle; out[1] = words[k][1]; out[2] = *record.p + record.c + record.d;
        out[3] = words[2] == nullptr; *middle = 30;
    }"""
    module = simt.RawModule(code=source)
    out = np.zeros(4, np.float32)
    for k, letter in ((0, "l"), (1, "e")):
        module.get_function("f")(1, 1, (out, np.int32(k)))
        assert out.tolist() == [3 if k == 0 else 30, ord(letter), 2 + ord("c") + 9, 1]
    assert np.ndarray((4,), np.float32, module.get_global("x")).tolist() == [1, 2, 30, 4]


def test_structures_by_value_indexed_at_run_time():
    source = """struct Table { int size; float values[5]; double last; };
    extern "C" __global__ void f(Table t, const __grid_constant__ Table u, float* out) {
        const float* p = u.values;
        out[threadIdx.x] = t.values[threadIdx.x % t.size] + (float)t.last + p[threadIdx.x % 5];
    }"""
    table = np.zeros(2, [("size", "i4"), ("values", "f4", 5), ("last", "f8")])
    assert table.dtype.itemsize == 32
    table["size"], table["values"], table["last"] = 3, np.arange(10).reshape(2, 5), 100
    *_, out = run(source, 1, 40, table[0], table[1], np.zeros(40, np.float32))
    t = np.arange(40)
    np.testing.assert_array_equal(out, t % 3 + 100 + 5 + t % 5)


def test_unsigned_indices_that_wrap_round():
    """`i - 3` of the first threads is a huge number that the guard keeps out, and the others must still be
    exact.
    """
    source = """extern "C" __global__ void f(const float* in, float* out, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x - 3;
        if (i < n) out[i] = 2 * in[i];
    }"""
    values = np.arange(50, dtype=np.float32)
    _, out, _ = run(source, 2, 32, values, np.zeros_like(values), np.uint32(50))
    np.testing.assert_array_equal(out, 2 * values)


INTEGERS = st.integers(-(2**31), 2**31 - 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=64))
def test_integer_arithmetic_wraps_as_in_c(pairs):
    source = """extern "C" __global__ void f(const int* x, const int* y, int* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        int a = x[i], b = y[i]; unsigned ua = a, ub = b; int* o = out + i * 10;
        o[0] = (int)(ua + ub); o[1] = (int)(ua - ub); o[2] = (int)(ua * ub); o[3] = a >> (b & 31); o[4] =
        (int)(ua >> (ub & 31));
        o[5] = (int)(ua << (ub & 31)); o[6] = ub ? (int)(ua / ub) : 0; o[7] = ub ? (int)(ua % ub) : 0;
        o[8] = (int)(((long long)a * b) >> 32); o[9] = a < b ? __popc(a) : __clz(b);
    }"""
    n = len(pairs)
    x, y = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    *_, out, _ = run(source, 1, 64, x, y, np.zeros((n, 10), np.int32), np.int32(n))

    def wrapped(value):
        return (value + 2**31) % 2**32 - 2**31

    for (a, b), row in zip(pairs, out.tolist(), strict=True):
        ua, ub = a % 2**32, b % 2**32
        bits = bin(ua).count("1") if a < b else 32 - ub.bit_length()
        quotient, remainder = divmod(ua, ub) if ub else (0, 0)
        shift = b & 31
        exact = [
            a + b,
            a - b,
            a * b,
            a >> shift,
            ua >> shift,
            ua << shift,
            quotient,
            remainder,
            (a * b) >> 32,
            bits,
        ]
        assert row == [wrapped(value) for value in exact]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=32
    )
)
def test_float_arithmetic_rounds_as_ieee(rows):
    source = """extern "C" __global__ void f(const float* in, float* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; float* o = out + 6 * i;
        o[0] = __fadd_rn(a, b); o[1] = __fmul_rn(a, c); o[2] = b / c; o[3] = sqrtf(fabsf(a)); o[4] =
        fminf(a, b); o[5] = (float)((double)a * b);
    }"""
    values = np.array(rows, np.float32)
    _, out, _ = run(source, 1, 32, values, np.zeros((len(rows), 6), np.float32), np.int32(len(rows)))
    a, b, c = values.T
    with np.errstate(all="ignore"):
        expected = [
            a + b,
            a * c,
            b / c,
            np.sqrt(np.abs(a)),
            np.fmin(a, b),
            (a.astype(np.float64) * b).astype(np.float32),
        ]
    np.testing.assert_array_equal(out, np.stack(expected, 1))


def test_fused_multiply_add_rounds_once():
    source = """extern "C" __global__ void f(const double* in, double* out) {
        int i = threadIdx.x; out[i] = fma(in[0], in[1], in[2]); }"""
    _, out = run(source, 1, 3, np.array([1 + 2**-30, 1 - 2**-30, -1.0]), np.zeros(3))
    assert out.tolist() == [-(2.0**-60)] * 3


def test_conversions_saturate_as_the_hardware_does():
    source = """extern "C" __global__
    void f(const float* in, int* a, unsigned* b, short* c, float* d, long long* e) {
        int i = threadIdx.x;
        e[i] = (long long)in[i]; e[8 + i] = (int)(double)in[i]; e[16 + i] = __sad(i, 5, 100);
        a[i] = (int)in[i]; b[i] = (unsigned)in[i]; c[i] = (short)(int)in[i]; d[i] = rintf(in[i]);
    }"""
    values = np.array([0.5, -1.5, 2.5, 3e9, -3e9, 5e9, np.nan, 70000.7], np.float32)
    types = (np.int32, np.uint32, np.int16, np.float32)
    _, a, b, c, d, e = run(source, 1, 8, values, *(np.zeros(8, t) for t in types), np.zeros((3, 8), np.int64))
    assert a.tolist() == [0, -1, 2, 2**31 - 1, -(2**31), 2**31 - 1, 0, 70000]
    assert b.tolist() == [0, 0, 2, 3000000000, 0, 2**32 - 1, 0, 70000]
    assert c.tolist() == [0, -1, 2, -1, 0, -1, 0, 70000 - 65536]
    np.testing.assert_array_equal(d, np.rint(values))
    # NaN with 64 bits on one side: seen on an H200
    assert e[0].tolist() == [0, -1, 2, 3000000000, -3000000000, 5000000000, -(2**63), 70000]
    assert e[1].tolist() == [0, -1, 2, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 70000]
    assert e[2].tolist() == [100 + abs(n - 5) for n in range(8)]


def test_mathematical_functions():
    source = """extern "C" __global__ void f(const float* in, float* out) {
        int i = threadIdx.x, n = blockDim.x; float x = in[i];
        out[i] = expf(x); out[n + i] = sinf(x); out[2 * n + i] = logf(x + 4); out[3 * n + i] = powf(x + 4,
        1.5f); out[4 * n + i] = cosf(1e6f * x);
    }"""
    values = np.linspace(-3, 3, 45, dtype=np.float32)
    _, out = run(source, 1, 45, values, np.zeros((5, 45), np.float32))
    x = values.astype(np.float64)
    big = (np.float32(1e6) * values).astype(np.float64)
    expected = np.stack([np.exp(x), np.sin(x), np.log(x + 4), (x + 4) ** 1.5, np.cos(big)])
    np.testing.assert_allclose(out, expected, rtol=3e-6, atol=3e-7)


def test_device_functions_that_are_not_inlined():
    source = """struct Pair { int a; float b; double c; };
    __device__ __noinline__ Pair make(int i) { Pair p; p.a = i; p.b = 2 * i; p.c = 3 * i; return p; }
    __device__ __noinline__ float choose(const float* in, int i, Pair p) {
        if (i % 3 == 0) return in[i] + p.b;
        float mine[4];
        for (int k = 0; k < 4; k++) mine[k] = k * p.a;
        return mine[i & 3] + (float)make(i + 1).c;
    }
    __device__ __noinline__ void add(float* out, int i, float x) { if (i > 4) out[i] += x; }
    extern "C" __global__ void f(const float* in, float* out) {
        int t = threadIdx.x;
        out[t] = choose(in, t, make(t));
        if (t & 1) add(out, t, 100);
        add(out, t, 1000);
    }"""
    values, t = np.random.default_rng(4).random(50).astype(np.float32), np.arange(50)
    _, out = run(source, 1, 50, values, np.zeros(50, np.float32))
    expected = np.where(t % 3 == 0, values + 2 * t, (t & 3) * t + 3 * (t + 1))
    expected = expected + np.where(t > 4, 1000 + 100 * (t & 1), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_saturating_and_flushing_arithmetic():
    source = """extern "C" __global__ void f(const float* x, float* y, int* z) {
        int i = threadIdx.x;
        y[i] = __saturatef(x[i] + x[i]);
        asm("add.sat.s32 %0, %1, %2;" : "=r"(z[i]) : "r"(2000000000), "r"((i - 2) * 1000000000));
    }"""
    values = np.array([0.25, 0.75, -3, np.nan, 1e-40], np.float32)
    _, y, z = run(source, 1, 5, values, np.zeros(5, np.float32), np.zeros(5, np.int32))
    np.testing.assert_array_equal(y, np.array([0.5, 1, 0, 0, 2 * values[4]], np.float32))
    assert z.tolist() == [0, 10**9, 2 * 10**9, 2**31 - 1, 2**31 - 1]
    _, y, _ = run(
        source, 1, 5, values, np.zeros(5, np.float32), np.zeros(5, np.int32), options=("--ftz=true",)
    )
    assert y[4] == 0


def test_what_is_not_known_is_refused_not_guessed():
    source = """extern "C" __global__ void f(unsigned* y) {
        asm("swizzle.b32 %0, %1;" : "=r"(y[0]) : "r"(y[1]));
    }"""
    with pytest.raises(simt.SimtError, match=r"line 2: the simulator does not know the PTX instruction"):
        run(source, 1, 1, np.ones(2, np.uint32))


def test_carries_make_wide_numbers():
    source = """extern "C" __global__ void f(const unsigned* x, const unsigned* y, unsigned* o) {
        const unsigned *a = x + 4 * threadIdx.x, *b = y + 4 * threadIdx.x; o += 12 * threadIdx.x;
        asm("add.cc.u32 %0,%4,%8; addc.cc.u32 %1,%5,%9; addc.cc.u32 %2,%6,%10; addc.u32 %3,%7,%11;"
            : "=&r"(o[0]), "=&r"(o[1]), "=&r"(o[2]), "=r"(o[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
        asm("sub.cc.u32 %0,%4,%8; subc.cc.u32 %1,%5,%9; subc.cc.u32 %2,%6,%10; subc.u32 %3,%7,%11;"
            : "=&r"(o[4]), "=&r"(o[5]), "=&r"(o[6]), "=r"(o[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
        asm("mad.lo.cc.u32 %0,%3,%4,%5; madc.hi.u32 %1,%3,%4,%6;"
            : "=&r"(o[8]), "=r"(o[9]) : "r"(0), "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]));
        asm("bfind.u32 %0, %1;" : "=r"(o[10]) : "r"(a[0] >> threadIdx.x));
        asm("bfind.shiftamt.s32 %0, %1;" : "=r"(o[11]) : "r"(a[0]));
    }"""
    rng = np.random.default_rng(8)
    x, y = (rng.choice(np.array([0, 1, 2**32 - 1, 12345, 2**31], np.uint32), (32, 4)) for _ in range(2))
    _, _, out = run(source, 1, 32, x, y, np.zeros((32, 12), np.uint32))

    def number(words):
        return sum(int(word) << 32 * i for i, word in enumerate(words))

    for lane, (a, b, o) in enumerate(zip(x, y, out, strict=True)):
        assert number(o[:4]) == (number(a) + number(b)) % 2**128
        assert number(o[4:8]) == (number(a) - number(b)) % 2**128
        assert number(o[8:10]) == (int(a[0]) * int(b[0]) + int(a[1]) + (int(b[1]) << 32)) % 2**64
        assert int(o[10]) == ((int(a[0]) >> lane).bit_length() - 1) % 2**32
        signed = int(a[0].astype(np.int32))
        bits = (signed if signed >= 0 else ~signed).bit_length()
        assert int(o[11]) == (32 - bits if bits else 2**32 - 1)


def test_double_precision_functions_of_large_numbers():
    source = """extern "C" __global__ void f(const double* in, double* out) {
        int i = threadIdx.x;
        out[i] = sin(in[i]); out[32 + i] = cos(in[i]); out[64 + i] = exp(-fabs(in[i]) / 1e9);
    }"""
    values = np.random.default_rng(9).uniform(-1e10, 1e10, 32)
    _, out = run(source, 1, 32, values, np.zeros((3, 32)))
    expected = np.stack([np.sin(values), np.cos(values), np.exp(-np.abs(values) / 1e9)])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


def test_registers_declared_in_inline_assembly():
    source = """extern "C" __global__ void f(int* x) {
        int a = x[threadIdx.x], b = threadIdx.x, c;
        asm("{ .reg .u32 t, %k; .reg .pred p; mul.lo.u32 t, %1, 3; mov.u32 %k, 7; setp.gt.u32 p, t, 30;"
            " @p add.u32 t, t, %k; { .reg .u32 t; mov.u32 t, 1000; } mov.u32 %0, t; }" : "=r"(c) : "r"(a));
        x[threadIdx.x] = c + a * 1000 + b;
    }""".replace("%k", "%%k")
    values = np.arange(40, dtype=np.int32)
    (out,) = run(source, 1, 40, values.copy())
    np.testing.assert_array_equal(out, 3 * values + np.where(3 * values > 30, 7, 0) + 1001 * values)


def test_clocks_and_what_a_thread_knows_of_its_launch():
    source = """extern "C" __global__ void f(long long* out, const int* in) {
        extern __shared__ char dynamic[]; __shared__ volatile int fixed[5];
        long long start = clock64(); clock_t small = clock(); unsigned long long t0, t1; unsigned a, b;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
        long long sum = 0;
        for (int i = 0; i < 1000; i++) sum += in[i];
        __nanosleep(10);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
        asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(a));
        asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(b));
        fixed[threadIdx.x % 5] = 1; dynamic[0] = 1;
        out[0] = clock64() - start; out[1] = t1 - t0; out[2] = t0; out[3] = a; out[4] = b;
        out[5] = sum; out[6] = small;
        out[7] = __isShared(dynamic) + 2 * __isGlobal(out) + 4 * __isLocal(&sum);
    }"""
    before = time.time_ns()
    out, _ = run(source, 1, 1, np.zeros(8, np.int64), np.ones(1000, np.int32), shared_mem=100)
    assert out[0] > 0 and 0 <= out[1] < 10**10
    assert before - 10**6 <= out[2] <= time.time_ns()
    assert out[3:6].tolist() == [132, 100, 1000] and out[6] != 0 and out[7] == 7


def test_switch_tables_and_labels_in_assembly():
    source = """extern "C" __global__ void f(const int* in, int* out) {
        int r, x = in[threadIdx.x];
        asm volatile("{ .reg .u32 t; mov.u32 t, %1; brx.idx t, table; table: .branchtargets A, B, C;"
            " A: mov.u32 %0, 10; bra.uni end; B: mov.u32 %0, 20; bra.uni end; C: mov.u32 %0, 30; end: }"
            : "=r"(r) : "r"(x % 3));
        asm volatile("{ .reg .pred p; .reg .u32 n; mov.u32 n, %1; again: add.u32 %0, %0, 1; sub.u32 n, n, 1;"
            " setp.ne.u32 p, n, 0; @p bra again; }" : "+r"(r) : "r"(x));
        asm volatile("{ .reg .pred p; .reg .u32 n; mov.u32 n, %1; again: add.u32 %0, %0, 100;"
            " sub.u32 n, n, 1; setp.ne.u32 p, n, 0; @p bra again; }" : "+r"(r) : "r"(x));
        out[threadIdx.x] = r;
    }"""
    values = np.arange(1, 41, dtype=np.int32)
    _, out = run(source, 1, 40, values, np.zeros(40, np.int32))
    np.testing.assert_array_equal(out, 10 + 10 * (values % 3) + 101 * values)
