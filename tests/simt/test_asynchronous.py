"""Mbarriers, barriers of some threads, clusters and bulk copies: results, and mistakes by name.

Expected results are NumPy's. A line of a kernel with a planted mistake says so: `// BUG tool kind`.
"""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
import simt

PTX = r"""
#include <cuda.h>
#include <cstdint>
using word = unsigned;
__device__ word at(const void* p) { return (word)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t* b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(uint64_t* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory");
}
__device__ void expect(uint64_t* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes)
                 : "memory");
}
__device__ void wait(uint64_t* b, int parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }"
                 :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void bring(void* to, const void* from, int bytes, uint64_t* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void take(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ void taken() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void fence_inits() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
"""


def kernel(source: str, name: str = "k", **macros: int) -> simt.Kernel:
    options = ("-std=c++17", *(f"-D{macro}={value}" for macro, value in macros.items()))
    return simt.RawModule(code=PTX + source, options=options).get_function(name)


def listed(findings) -> str:
    return "\n".join(f"{f.tool}, {f.kind}, line {f.line}: {f.message}" for f in findings)


def clean(launched: simt.Kernel, grid, block, args, **more) -> None:
    """Run a kernel, and check a second run of it: no finding."""
    launched(grid, block, args, **more)
    findings = launched.check(grid, block, args, **more)
    assert not findings, listed(findings)


# --- mbarriers ---

PIPELINE = r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void k(const float* in, float* out, int steps) {
    __shared__ float tile[STAGES][64];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier full[STAGES], empty[STAGES];
    int t = threadIdx.x % 64;
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; ++i) {
            init(&full[i], 128);
            init(&empty[i], 128);
        }
    __syncthreads();
    for (int i = 0; i < steps; ++i)
        if (threadIdx.x < 64) {
            if (i >= STAGES)
                empty[i % STAGES].wait(empty[i % STAGES].arrive());
            tile[i % STAGES][t] = in[64 * i + t];
            (void)full[i % STAGES].arrive();
        } else {
            full[i % STAGES].wait(full[i % STAGES].arrive());
            out[64 * i + t] = 2 * tile[i % STAGES][63 - t];
            if (i + STAGES < steps)
                (void)empty[i % STAGES].arrive();
        }
}
"""


@pytest.mark.parametrize(("stages", "steps"), [(1, 3), (2, 7), (4, 9)])
def test_producers_and_consumers_meet_at_barriers(stages, steps):
    """cuda::barrier, as CUDA's own library makes it of mbarriers."""
    x = np.arange(64 * steps, dtype=np.float32)
    y = np.full_like(x, np.nan)
    clean(kernel(PIPELINE, STAGES=stages), (1,), (128,), (x, y, np.int32(steps)))
    np.testing.assert_array_equal(y.reshape(steps, 64), 2 * x.reshape(steps, 64)[:, ::-1])


COUNTS = r"""
extern "C" __global__ void k(unsigned long long* out) {
    __shared__ alignas(8) uint64_t b;
    uint64_t state, next;
    word over, pending;
    if (threadIdx.x != 0) return;
    init(&b, 3);
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&b)) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[0] = pending;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(at(&b)), "l"(state) : "memory");
    out[1] = over;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&b)) : "memory");
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(next) : "r"(at(&b)) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(at(&b)), "l"(state) : "memory");
    out[2] = over;
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&b)) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(at(&b)), "l"(state) : "memory");
    out[3] = over;
    arrive(&b);  // now 2 arrivals complete a phase
    arrive(&b);
    wait(&b, 1);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&b)) : "memory");
    out[4] = 1;
}
"""


def test_a_phase_counts_arrivals_and_bytes():
    out = np.zeros(5, np.uint64)
    clean(kernel(COUNTS), (1,), (32,), (out,))
    assert out.tolist() == [3, 0, 0, 1, 1]


# --- barriers of some threads ---

NAMED = r"""
extern "C" __global__ void k(int* out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t] = s[63 - t];
        asm volatile("bar.arrive 3, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        out[t] = s[191 - t];
        asm volatile("bar.sync 3, 128;" ::: "memory");
        out[256 + t] = s[127 - t];
    }
    __syncthreads();
    int all = __syncthreads_and(t < 128), any = __syncthreads_or(t == 200);
    out[128 + t] = __syncthreads_count(t % 3 == 0) + 1000 * all + 100 * any;
}
"""


def test_some_threads_of_a_block_meet():
    out = np.zeros(384, np.int32)
    clean(kernel(NAMED), (1,), (128,), (out,))
    t = np.arange(128)
    np.testing.assert_array_equal(out[:128], np.where(t < 64, 63 - t, 191 - t))
    np.testing.assert_array_equal(out[128:256], np.full(128, 43 + 1000))
    np.testing.assert_array_equal(out[320:], 127 - t[64:])


# --- clusters ---

CLUSTER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(X, Y, Z) k(int* out) {
    __shared__ int mine[32], sum;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), blocks = cluster.num_blocks(), t = threadIdx.x;
    mine[t] = 100 * rank + t;
    if (t == 0) sum = 0;
    cluster.sync();
    int next = (rank + 1) % blocks;
    int read = *cluster.map_shared_rank(&mine[t], next);
    atomicAdd(cluster.map_shared_rank(&sum, 0), 1 + rank);
    cluster.sync();
    word there, of;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at(&mine[t])), "r"(next));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(of) : "r"(there));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there), "r"(7000 + 100 * rank + t) : "memory");
    cluster.sync();
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int* row = &out[(block * 32 + t) * 6];
    row[0] = rank; row[1] = read; row[2] = mine[t]; row[3] = of; row[4] = *cluster.map_shared_rank(&sum, 0);
    auto place = cluster.block_index();
    row[5] = (place.z * 10 + place.y) * 10 + place.x;
    cluster.sync();
}
"""


@pytest.mark.parametrize("cluster", [(2, 1, 1), (4, 1, 1), (2, 2, 1), (1, 2, 3)])
def test_blocks_of_a_cluster_share_their_memory(cluster):
    grid = tuple(2 * side for side in cluster)
    blocks = int(np.prod(grid))
    out = np.zeros((blocks, 32, 6), np.int32)
    clean(kernel(CLUSTER, X=cluster[0], Y=cluster[1], Z=cluster[2]), grid, (32,), (out,))
    together, t = int(np.prod(cluster)), np.arange(32)
    for number, place in enumerate(product(*map(range, grid[::-1]))):
        inside = [at % side for at, side in zip(place, cluster[::-1], strict=True)]
        rank = int(np.ravel_multi_index(inside, cluster[::-1]))
        after, before = (rank + 1) % together, (rank - 1) % together
        rows = out[number]
        assert set(rows[:, 0]) == {rank}
        np.testing.assert_array_equal(rows[:, 1], 100 * after + t)
        np.testing.assert_array_equal(rows[:, 2], 7000 + 100 * before + t)
        assert set(rows[:, 3]) == {after}
        assert set(rows[:, 4]) == {32 * together * (together + 1) // 2}
        assert set(rows[:, 5]) == {(inside[0] * 10 + inside[1]) * 10 + inside[2]}


def test_a_sample_has_whole_clusters():
    launched, out = kernel(CLUSTER, X=2, Y=1, Z=1), np.zeros((8, 32, 6), np.int32)
    launched.profile((8,), (32,), (out,), blocks=[3])
    assert [bool(rows.any()) for rows in out] == [False, False, True, True, False, False, False, False]


def test_clusters_that_do_not_fit_the_grid():
    with pytest.raises(simt.LaunchError, match=r"clusters of \(2, 1, 1\) blocks; grid \(3, 1, 1\)"):
        kernel(CLUSTER, X=2, Y=1, Z=1)((3,), (32,), (np.zeros(600, np.int32),))


REMOTE = r"""
extern "C" __global__ void __cluster_dims__(2) k(int* out) {
    __shared__ alignas(16) int got[64];
    __shared__ alignas(8) uint64_t b;
    int t = threadIdx.x;
    word rank, there, barrier;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    got[2 * t] = got[2 * t + 1] = 5;
    if (t == 0) init(&b, 1);
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (t == 0) expect(&b, 32 * 8);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at(&got[2 * t])), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(at(&b)), "r"(rank ^ 1));
    if (t % 2)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                     :: "r"(there), "r"(10 * t + rank), "r"(10 * t + rank + 1000), "r"(barrier) : "memory");
    else
        for (int i = 0; i < 2; ++i)
            asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
                         " [%0], %1, [%2];"
                         :: "r"(there + 4 * i), "r"(t + 100 * i), "r"(barrier) : "memory");
    wait(&b, 0);
    out[(rank * 32 + t) * 2] = got[2 * t];
    out[(rank * 32 + t) * 2 + 1] = got[2 * t + 1];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
"""


def test_words_for_another_block():
    out = np.zeros((2, 32, 2), np.int32)
    clean(kernel(REMOTE), (2,), (32,), (out,))
    t = np.arange(32)
    for rank in (0, 1):
        stored = np.stack([10 * t + (rank ^ 1), 10 * t + (rank ^ 1) + 1000], 1)
        added = np.stack([5 + t, 105 + t], 1)
        np.testing.assert_array_equal(out[rank], np.where(t[:, None] % 2, stored, added))


# --- bulk copies ---

BULK = r"""
extern "C" __global__ void k(const int* in, int* out, int* sums, int n) {
    extern __shared__ __align__(128) int tile[];
    __shared__ alignas(8) uint64_t b;
    if (threadIdx.x == 0) init(&b, 1), fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&b, 4 * n);
        bring(tile, &in[blockIdx.x * n], 4 * n, &b);
    }
    wait(&b, 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = 3 * tile[i];
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        take(&out[blockIdx.x * n], tile, 4 * n);
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;"
                     :: "l"(sums), "r"(at(tile)), "r"(4 * n) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        taken();
    }
}
"""


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 50), st.integers(1, 4), st.sampled_from([32, 64, 96]))
def test_bulk_copies_bring_and_take_bytes(quarters, blocks, threads):
    n = 4 * quarters
    x = np.arange(blocks * n, dtype=np.int32)
    y, sums = np.zeros_like(x), np.zeros(n, np.int32)
    kernel(BULK)((blocks,), (threads,), (x, y, sums, np.int32(n)), shared_mem=4 * n)
    np.testing.assert_array_equal(y, 3 * x)
    np.testing.assert_array_equal(sums, 3 * x.reshape(blocks, n).sum(0))
    findings = kernel(BULK).check((blocks,), (threads,), (x, y, sums, np.int32(n)), shared_mem=4 * n)
    assert not findings, listed(findings)


TILES = r"""
extern "C" __global__ void __cluster_dims__(2) k(
    const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap turned, float* got)
{
    __shared__ __align__(1024) float tile[32][32];
    __shared__ alignas(8) uint64_t b;
    word rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) init(&b, 1), fence_inits();
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0) {
        expect(&b, sizeof tile);
        // each block brings half of the tile to both
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     :: "r"(at(&tile[16 * rank][0])), "l"(&in), "r"(8), "r"((int)(16 * rank) - 4),
                        "r"(at(&b)), "h"((unsigned short)3) : "memory");
    }
    wait(&b, 0);
    for (int i = threadIdx.x; i < 1024; i += 32) {
        int row = i / 32, col = i % 32;
        got[rank * 1024 + i] = tile[row][col / 4 % 8 * 4 ^ row % 8 * 4 | col % 4];  // undo the swizzle
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(&turned), "r"(0), "r"((int)(rank * 32)), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""


def test_tiles_reach_all_blocks_of_a_cluster():
    x = np.arange(40 * 36, dtype=np.float32).reshape(40, 36)
    back, got = np.zeros((64, 32), np.float32), np.zeros((2, 32, 32), np.float32)
    maps = [labkit.tensor_map(array, box, swizzle=128) for array, box in ((x, (16, 32)), (back, (32, 32)))]
    clean(kernel(TILES), (2,), (32,), (*maps, got))
    expected = np.zeros((32, 32), np.float32)  # the tile begins at row -4 and column 8; 4 columns lie outside
    expected[4:, :28] = x[:28, 8:36]
    np.testing.assert_array_equal(got, [expected, expected])
    np.testing.assert_array_equal(back, np.concatenate([expected, expected]))


MEMCPY = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
extern "C" __global__ void k(const float* in, float* out) {
    __shared__ alignas(128) float tile[256];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cooperative_groups::this_thread_block();
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(1024), bar);
    bar.arrive_and_wait();
    out[threadIdx.x] = 2 * tile[255 - threadIdx.x];
}"""


def test_a_copy_by_the_library_needs_no_fence_of_the_users():
    launched = kernel(MEMCPY)
    assert "cp.async.bulk" in launched.module.ptx
    x = np.arange(256, dtype=np.float32)
    y = np.full_like(x, np.nan)
    clean(launched, (1,), (256,), (x, y))
    np.testing.assert_array_equal(y, 2 * x[::-1])


# --- mistakes ---

COPY = r"""
extern "C" __global__ void k(const float* in, float* out, int steps) {
    __shared__ __align__(128) float tile[2][64];
    __shared__ alignas(8) uint64_t full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0) for (int i = 0; i < 2; ++i) { init(&full[i], 1); init(&empty[i], 64); }
    if (t == 0) fence_inits();
    __syncthreads();
    if (t >= 64) {
        for (int i = 0; t == 64 && i < steps; ++i) {
            wait(&empty[i % 2], i / 2 % 2 ^ 1);
            expect(&full[i % 2], 256);
            bring(tile[i % 2], &in[64 * i], 256, &full[i % 2]);
        }
    } else {
        for (int i = 0; i < steps; ++i) {
            wait(&full[i % 2], i / 2 % 2);
            float x = tile[i % 2][63 - t];
            arrive(&empty[i % 2]);
            out[64 * i + t] = x;
        }
    }
}
"""
STORE = r"""
extern "C" __global__ void k(const float* in, float* out, int steps) {
    __shared__ __align__(128) float tile[64];
    int t = threadIdx.x;
    for (int i = 0; i < steps; ++i) {
        if (t < 64) tile[t] = 2 * in[64 * i + t];
        fence();
        __syncthreads();
        if (t == 0) {
            take(&out[64 * i], tile, 256);
            taken();
        }
        __syncthreads();
    }
}
"""
PLANTED = {
    "wait forgotten": (
        COPY,
        "wait(&full[i % 2], i / 2 % 2);",
        "",
        ("racecheck", "read before copy completes", "float x = tile"),
    ),
    "wrong parity": (
        COPY,
        "wait(&full[i % 2], i / 2 % 2);",
        "wait(&full[i % 2], 0);",
        ("racecheck", "wrong parity", "float x = tile"),
    ),
    "parity turned round": (
        COPY,
        "wait(&full[i % 2], i / 2 % 2);",
        "wait(&full[i % 2], i / 2 % 2 ^ 1);",
        ("synccheck", "wrong parity", "wait(&full"),
    ),
    "too many bytes expected": (
        COPY,
        "expect(&full[i % 2], 256);",
        "expect(&full[i % 2], 272);",
        ("synccheck", "hang", "wait(&full"),
    ),
    "too few bytes expected": (
        COPY,
        "expect(&full[i % 2], 256);",
        "expect(&full[i % 2], 240);",
        ("synccheck", "hang", "wait(&full"),
    ),
    "released too early": (
        COPY,
        "float x = tile[i % 2][63 - t];\n            arrive(&empty[i % 2]);",
        "arrive(&empty[i % 2]);\n            float x = tile[i % 2][63 - t];",
        ("racecheck", "write after read", "bring(tile"),
    ),
    "never waits for room": (
        COPY,
        "wait(&empty[i % 2], i / 2 % 2 ^ 1);",
        "if (i < 2) wait(&empty[i % 2], 1);",
        ("racecheck", "write after write", "bring(tile"),
    ),
    "a barrier for too many": (
        COPY,
        "init(&empty[i], 64)",
        "init(&empty[i], 65)",
        ("synccheck", "hang", "wait(&empty"),
    ),
    "a barrier for too few": (
        COPY,
        "init(&empty[i], 64)",
        "init(&empty[i], 48)",
        ("racecheck", "write after read", "bring(tile"),
    ),
    "no barrier at all": (
        COPY,
        "init(&empty[i], 64);",
        "",
        ("synccheck", "mbarrier", "wait(&empty"),
    ),
    "copy past the end": (
        COPY,
        "bring(tile[i % 2], &in[64 * i], 256",
        "bring(tile[i % 2], &in[64 * i + 32], 256",
        ("memcheck", "invalid access", "bring(tile"),
    ),
    "copy of odd size": (
        COPY,
        "bring(tile[i % 2], &in[64 * i], 256",
        "bring(tile[i % 2], &in[64 * i], 250",
        ("memcheck", "invalid access", "bring(tile"),
    ),
    "fence forgotten": (
        STORE,
        "fence();",
        "",
        ("racecheck", "missing proxy fence", "take(&out"),
    ),
    "init without its fence": (
        COPY,
        "if (t == 0) fence_inits();",
        "",
        ("racecheck", "mbarrier init not fenced", "bring(tile"),
    ),
    "fence of another thread, unordered": (
        COPY,
        "if (t == 0) fence_inits();\n    __syncthreads();",
        "__syncthreads();\n    if (t == 0) fence_inits();",
        ("racecheck", "mbarrier init not fenced", "bring(tile"),
    ),
    "overwrites what leaves": (
        STORE,
        "taken();",
        "",
        ("racecheck", "overwritten while a copy reads", "tile[t] = 2"),
    ),
}


@pytest.mark.parametrize(("source", "steps"), [(COPY, 6), (STORE, 3)])
def test_a_right_pipeline_has_no_finding(source, steps):
    x = np.arange(64 * steps, dtype=np.float32)
    y = np.full_like(x, np.nan)
    clean(kernel(source), (1,), (96,), (x, y, np.int32(steps)))
    right = x.reshape(steps, 64)[:, ::-1].ravel() if source is COPY else 2 * x
    np.testing.assert_array_equal(y, right)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_named(name):
    source, right, wrong, (tool, kind, where) = PLANTED[name]
    assert right in source
    source = source.replace(right, wrong)
    x = np.arange(64 * 6, dtype=np.float32)
    findings = kernel(source).check((1,), (96,), (x, np.zeros_like(x), np.int32(6)))
    line = next(n for n, text in enumerate((PTX + source).splitlines(), 1) if where in text)
    found = [f for f in findings if (f.tool, f.kind) == (tool, kind) and line in (f.line, *f.calls)]
    assert found, listed(findings)
    assert re.search(r"called in line \d+", str(found[0])) or found[0].line == line


def test_a_wait_for_ever_ends_at_once_without_a_check():
    """A launch says what is missing, long before its time limit."""
    source = COPY.replace("expect(&full[i % 2], 256);", "expect(&full[i % 2], 512);")
    x = np.zeros(64, np.float32)
    with pytest.raises(simt.BarrierError, match="256 bytes that it expects are missing"):
        kernel(source)((1,), (96,), (x, x.copy(), np.int32(1)), timeout=60)
