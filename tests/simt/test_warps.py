"""Lanes that look at each other, and atomics, against NumPy."""

import numpy as np
import pytest

import simt


def run(source, grid, block, *args):
    simt.RawModule(code=source).get_function("f")(grid, block, args)
    return args


VALUES = np.random.default_rng(5).integers(-1000, 1000, 64, dtype=np.int32)
LANES = np.arange(32)


@pytest.mark.parametrize("width", [32, 16, 4])
@pytest.mark.parametrize(
    "name, by", [("up", 1), ("up", 7), ("down", 2), ("down", 16), ("xor", 5), ("xor", 31)]
)
def test_shuffles(name, by, width):
    source = f"""extern "C" __global__ void f(const int* in, int* out) {{
        out[threadIdx.x] = __shfl_{name}_sync(0xffffffff, in[threadIdx.x], {by}, {width});
    }}"""
    _, out = run(source, 1, 64, VALUES, np.zeros(64, np.int32))
    first = LANES - LANES % width
    source_lane = {"up": LANES - by, "down": LANES + by, "xor": LANES ^ by}[name]
    inside = source_lane >= first if name == "up" else source_lane < first + width
    source_lane = np.where(inside, source_lane, LANES)
    np.testing.assert_array_equal(out, VALUES.reshape(2, 32)[:, source_lane].ravel())


def test_shuffle_from_any_lane_and_warp_sum():
    source = """extern "C" __global__ void f(const int* in, int* out) {
        int t = threadIdx.x, v = in[t];
        out[t] = __shfl_sync(0xffffffff, v, (t * 7 + 3) & 31);
        for (int half = 16; half > 0; half /= 2) v += __shfl_down_sync(0xffffffff, v, half);
        if (t % 32 == 0) out[64 + t / 32] = v;
    }"""
    _, out = run(source, 1, 64, VALUES, np.zeros(66, np.int32))
    np.testing.assert_array_equal(out[:64], VALUES.reshape(2, 32)[:, (LANES * 7 + 3) & 31].ravel())
    np.testing.assert_array_equal(out[64:], VALUES.reshape(2, 32).sum(1))


def test_votes_and_the_active_mask():
    source = """extern "C" __global__ void f(const int* in, unsigned* out) {
        int t = threadIdx.x; bool positive = in[t] > 0;
        out[4 * t] = __ballot_sync(0xffffffff, positive);
        out[4 * t + 1] = __any_sync(0xffffffff, in[t] > 995) + 2 * __all_sync(0xffffffff, in[t] > -1000);
        if (positive) out[4 * t + 2] = __activemask(); else out[4 * t + 3] = __popc(__activemask());
    }"""
    _, out = run(source, 1, 64, VALUES, np.zeros((64, 4), np.uint32))
    for warp in range(2):
        values, got = VALUES.reshape(2, 32)[warp], out[32 * warp : 32 * warp + 32]
        ballot = int(np.sum((values > 0) * (1 << LANES)))
        assert set(got[:, 0].tolist()) == {ballot}
        assert set(got[:, 1].tolist()) == {int((values > 995).any()) + 2 * int((values > -1000).all())}
        np.testing.assert_array_equal(got[:, 2], np.where(values > 0, ballot, 0))
        np.testing.assert_array_equal(got[:, 3], np.where(values > 0, 0, np.sum(values <= 0)))


def test_histogram_with_shared_and_global_atomics():
    source = """extern "C" __global__ void f(const int* in, int* counts, int n) {
        __shared__ int mine[16];
        if (threadIdx.x < 16) mine[threadIdx.x] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            atomicAdd(&mine[in[i] & 15], 1);
        __syncthreads();
        if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
    }"""
    values = np.random.default_rng(6).integers(0, 1 << 20, 5000, dtype=np.int32)
    _, counts, _ = run(source, 7, 64, values, np.zeros(16, np.int32), np.int32(5000))
    np.testing.assert_array_equal(counts, np.bincount(values & 15, minlength=16))


def test_every_atomic_operation():
    source = """extern "C" __global__ void f(const int* in, int* o, float* sum, unsigned long long* wide) {
        int v = in[threadIdx.x];
        atomicMin(&o[0], v); atomicMax(&o[1], v); atomicAnd(&o[2], v); atomicOr(&o[3], v);
        atomicXor(&o[4], v); atomicSub(&o[5], v); atomicInc((unsigned*)&o[6], 10);
        atomicMax((unsigned*)&o[7], (unsigned)v);
        int seen = o[8], old;
        do { old = seen; seen = atomicCAS(&o[8], old, old + 3); } while (seen != old);
        if (atomicExch(&o[9], v) == 12345) o[10] = threadIdx.x;
        atomicAdd(sum, 0.5f); atomicAdd(wide, 1ull << 33);
    }"""
    start = np.array([0, 0, -1, 0, 0, 0, 0, 0, 0, 12345, -1], np.int32)
    _, o, total, wide = run(source, 1, 64, VALUES, start, np.zeros(1, np.float32), np.zeros(1, np.uint64))
    expected = [
        VALUES.min(),
        VALUES.max(),
        np.bitwise_and.reduce(VALUES),
        np.bitwise_or.reduce(VALUES),
        np.bitwise_xor.reduce(VALUES),
        -VALUES.sum(),
        64 % 11,
        VALUES.view(np.uint32).max().astype(np.int32),
        3 * 64,
    ]
    assert o[:9].tolist() == [int(value) for value in expected]
    assert o[9] in VALUES
    assert o[10] >= 0
    assert (total[0], wide[0]) == (32.0, 64 << 33)


def test_atomic_outside_an_array():
    source = 'extern "C" __global__ void f(int* out) { atomicAdd(&out[threadIdx.x], 1); }'
    with pytest.raises(simt.InvalidAccess, match="invalid global atomic operation of 4 bytes"):
        run(source, 1, 32, np.zeros(31, np.int32))


def test_matches_and_reductions_of_a_warp():
    source = """extern "C" __global__ void f(const int* in, unsigned* out, const long long* wide) {
        int t = threadIdx.x, n = blockDim.x, v = in[t], all, same;
        out[t] = __match_any_sync(~0u, v & 7); out[n + t] = __match_any_sync(~0u, wide[t]);
        out[2 * n + t] = __match_all_sync(~0u, v & 7, &all);
        out[3 * n + t] = __match_all_sync(~0u, t / 32, &same);
        out[4 * n + t] = all + 2 * same;
        out[5 * n + t] = __reduce_add_sync(~0u, v); out[6 * n + t] = __reduce_min_sync(~0u, v);
        out[7 * n + t] = __reduce_max_sync(~0u, (unsigned)v); out[8 * n + t] = __reduce_and_sync(~0u, v | 5);
        out[9 * n + t] = __reduce_xor_sync(~0u, v);
        if (v & 1) out[10 * n + t] = __match_any_sync(__activemask(), v & 7);
        unsigned half = t & 16 ? 0xffff0000 : 0xffff;
        out[11 * n + t] = __reduce_add_sync(half, v); out[12 * n + t] = __ballot_sync(half, v > 0);
        out[13 * n + t] = __any_sync(half, v > 900) + 2 * __all_sync(half, v > -900);
        asm volatile("{ .reg .pred p; elect.sync %0|p, %1; @p add.u32 %0, %0, 1000; }"
            : "=r"(out[14 * n + t]) : "r"(half));
    }"""
    wide = np.where(VALUES % 3 == 0, 1 << 40, VALUES).astype(np.int64)
    _, out, _ = run(source, 1, 64, VALUES, np.zeros((15, 64), np.uint32), wide)
    for warp in range(2):
        mine = slice(32 * warp, 32 * warp + 32)
        v, got = VALUES[mine], out[:, mine]

        def groups(x, members=-1):
            return ((x[:, None] == x[None, :]) << LANES).sum(1) & members

        np.testing.assert_array_equal(got[0], groups(v & 7))
        np.testing.assert_array_equal(got[1], groups(wide[mine]))
        assert not got[2].any() and set(got[3].tolist()) == {2**32 - 1} and set(got[4].tolist()) == {2}
        words = v.view(np.uint32)
        expected = [
            words.sum(dtype=np.uint32),
            v.min().view(np.uint32),
            words.max(),
            np.bitwise_and.reduce(words | 5),
            np.bitwise_xor.reduce(words),
        ]
        np.testing.assert_array_equal(got[5:10], np.repeat(np.array(expected)[:, None], 32, 1))
        odd = int(((v & 1) << LANES).sum())
        np.testing.assert_array_equal(got[10], np.where(v & 1, groups(v & 7, odd), 0))
        for half in range(2):
            part, rows = v[16 * half : 16 * half + 16], got[11:, 16 * half : 16 * half + 16]
            assert set(rows[0].tolist()) == {int(part.view(np.uint32).sum(dtype=np.uint32))}
            assert set(rows[1].tolist()) == {int(((part > 0) << np.arange(16)).sum()) << 16 * half}
            assert set(rows[2].tolist()) == {int((part > 900).any()) + 2 * int((part > -900).all())}
            assert rows[3].tolist() == [16 * half + 1000] + [16 * half] * 15


def test_atomics_of_16_and_128_bits_and_on_vectors():
    source = """struct alignas(16) Pair { unsigned long long a, b; };
    extern "C" __global__ void f(unsigned short* h, Pair* p, float4* v, double* d, int* o, Pair* seen) {
        __shared__ unsigned short mine; __shared__ double sum;
        int t = threadIdx.x;
        if (t == 0) mine = 0, sum = 0;
        __syncthreads();
        unsigned short* place = t & 1 ? h : &mine;  // a generic address
        unsigned short old = *place, was;
        do { was = old; old = atomicCAS(place, was, (unsigned short)(was + 3)); } while (old != was);
        Pair now = *p, before;
        do { before = now; now = atomicCAS(p, before, Pair{before.a + 1, before.b + t}); }
        while (now.a != before.a || now.b != before.b);
        atomicAdd(v, make_float4(1, 2, 3, 4)); atomicAdd((float2*)v, make_float2(1, 1));
        atomicAdd(d, 0.5); atomicAdd_block(&sum, 2.0); atomicAdd_block(o, 2); atomicAdd_system(o + 1, 3);
        atomicDec((unsigned*)o + 2, 9); atomicExch((float*)o + 3, 2.f);
        atomicMin((long long*)(o + 4), (long long)-t); atomicMax((unsigned long long*)(o + 6), 1ull << t);
        __syncthreads();
        if (t == 0) h[1] = mine, d[1] = sum, seen[0] = atomicExch(p, Pair{5, 6});
    }"""
    h, p, seen = np.zeros(2, np.uint16), np.zeros(2, np.uint64), np.zeros(2, np.uint64)
    v, d, o = np.zeros(4, np.float32), np.zeros(2), np.zeros(8, np.int32)
    run(source, 1, 60, h, p, v, d, o, seen)
    assert h.tolist() == [90, 90] and seen.tolist() == [60, sum(range(60))] and p.tolist() == [5, 6]
    assert v.tolist() == [120, 180, 180, 240] and d.tolist() == [30, 120] and o[:2].tolist() == [120, 180]
    assert o[2] == 0 and o[3:4].view(np.float32) == 2  # 9, 8, ... 0, 9: the 60th is 0
    assert o[4:].view(np.int64).tolist() == [-59, 1 << 59]
