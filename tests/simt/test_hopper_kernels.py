"""Habits of published kernels for Hopper: what a warpgroup does together, where things lie, who ends first.

Expected results are NumPy's in float64. A macro plants a mistake, whose kind and line are expected.
"""

import numpy as np
import pytest

import labkit
import simt

COMMON = r"""
#include <cuda.h>
#include <cuda_fp16.h>
#include <cstdint>
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
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
__device__ void bring(void* to, const CUtensorMap& map, int x, int y, uint64_t* b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(at(to)), "l"(&map), "r"(x), "r"(y), "r"(at(b)) : "memory");
}
__device__ uint64_t descriptor(const void* p, uint64_t stride, uint64_t mode) {
    return (at(p) & 0x3FFFF) >> 4 | 1ull << 16 | stride >> 4 << 32 | mode << 62;
}
"""

# One buffer. Its filler waits for its own warp's products alone, since all four warps make them together.
PRODUCT = r"""
#ifndef STRIDE
#define STRIDE 1024
#endif
#ifndef MODE
#define MODE 1
#endif
struct Tiles { __half a[64 * 64], b[8 * 64]; };
extern __shared__ __align__(128) unsigned char memory[];
__shared__ uint64_t full;

extern "C" __global__ void k(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                             float* c, int steps, unsigned* start) {
    Tiles& tiles = *reinterpret_cast<Tiles*>(memory);
    if (threadIdx.x == 0) {
        init(&full, 1);
        *start = at(memory);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#ifndef UNMET
    __syncthreads();
#endif
    float d[4] = {};
    for (int i = 0; i < steps; ++i) {
        if (threadIdx.x == 0) {
            expect(&full, sizeof(Tiles));
            bring(tiles.a, a, 64 * i, 0, &full);  // FILL
            bring(tiles.b, b, 64 * i, 0, &full);
        }
        wait(&full, i & 1);  // WAIT
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 64; k += 16) {
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"  // WGMMA
                         " {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "l"(descriptor(tiles.a + k, STRIDE, MODE)), "l"(descriptor(tiles.b + k, 1024, 1)));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#ifdef LAST_UNAWAITED
        if (i + 1 < steps)
#endif
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = 2 * (threadIdx.x % 4);
    c[8 * row + column] = d[0];  // STORE
    c[8 * row + column + 1] = d[1];
    c[8 * row + column + 64] = d[2];
    c[8 * row + column + 65] = d[3];
}
"""
STEPS = 3


def line_of(source: str, mark: str) -> int:
    """Return the number of the one line that ends with a mark."""
    (line,) = (i for i, text in enumerate(source.split("\n"), 1) if text.endswith(f"// {mark}"))
    return line


def multiply(**macros: int):
    """Return the kernel, its arguments, and what C must be."""
    options = ("-std=c++17", *(f"-D{macro}={value}" for macro, value in macros.items()))
    k = simt.RawModule(code=COMMON + PRODUCT, options=options).get_function("k")
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((rows, 64 * STEPS)).astype(np.float16) for rows in (64, 8))
    maps = [labkit.tensor_map(each, (len(each), 64), swizzle=128) for each in (a, b)]
    c, start = np.full((64, 8), np.nan, np.float32), np.zeros(1, np.uint32)
    args = (*maps, c, np.int32(STEPS), start)
    return k, args, a.astype(np.float64) @ b.astype(np.float64).T


def findings_of(k: simt.Kernel, *args, block=128, grid=1, shared_mem=0):
    return list(k.check(grid, block, args, shared_mem=shared_mem))


def test_four_warps_make_a_product_together():
    k, args, expected = multiply()
    bytes_ = 2 * 64 * (64 + 8)
    k(1, 128, args, shared_mem=bytes_)
    np.testing.assert_allclose(args[2], expected, rtol=1e-5, atol=1e-4)
    assert findings_of(k, *args, shared_mem=bytes_) == []
    k.profile(1, 128, args, shared_mem=bytes_)


def test_dynamic_shared_memory_is_aligned_as_declared():
    k, args, _ = multiply()
    k(1, 128, args, shared_mem=2 * 64 * (64 + 8))
    assert args[-1][0] == 128  # behind the 8 bytes of the mbarrier, aligned to 128 bytes


@pytest.mark.parametrize(
    ("macros", "tool", "kind", "mark", "message"),
    [
        ({"LAST_UNAWAITED": 1}, "racecheck", "read before wgmma completes", "STORE", "wgmma.wait_group"),
        ({"STRIDE": 512}, "memcheck", "descriptor", "WGMMA", "stride byte offset 512"),
        ({"MODE": 2}, "memcheck", "descriptor", "WGMMA", "swizzle of 64 bytes, not 128"),
        ({"UNMET": 1}, "racecheck", "mbarrier used before its init", "WAIT", "`full`, which warp 0 init"),
    ],
)
def test_mistakes_of_a_product(macros, tool, kind, mark, message):
    k, args, _ = multiply(**macros)
    found = findings_of(k, *args, shared_mem=2 * 64 * (64 + 8))
    source = COMMON + PRODUCT
    lines = {line for f in found if (f.tool, f.kind) == (tool, kind) for line in (f.line, *f.calls)}
    assert line_of(source, mark) in lines, found
    assert any(message in f.message for f in found if f.kind == kind)


# Each block adds to a sum that lies in the cluster's first block.
SUM = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4) k(const int* x, int* sums) {
    __shared__ int sum;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
#ifndef NOT_BEGUN
    cluster.sync();
#endif
    int* first = cluster.map_shared_rank(&sum, 0);
    atomicAdd(first, x[blockIdx.x * blockDim.x + threadIdx.x]);  // ADD
#ifndef ENDED
    cluster.sync();
#endif
    if (cluster.block_rank() == 0 && threadIdx.x == 0) sums[blockIdx.x / 4] = sum;
}
extern "C" __global__ void __cluster_dims__(2) ring(int* out) {
    __shared__ int mine;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = blockIdx.x;
    cluster.sync();
    const int* other = cluster.map_shared_rank(&mine, 1 - cluster.block_rank());
    if (threadIdx.x == 0) out[blockIdx.x] = *other;  // ADD
#ifndef ENDED
    cluster.sync();
#endif
}
"""


def cluster_kernel(name: str, **macros: int) -> simt.Kernel:
    options = ("-std=c++17", *(f"-D{macro}={value}" for macro, value in macros.items()))
    return simt.RawModule(code=COMMON + SUM, options=options).get_function(name)


def test_blocks_add_to_a_sum_of_one():
    k, x = cluster_kernel("k"), np.arange(8 * 64, dtype=np.int32)
    sums = np.zeros(2, np.int32)
    k(8, 64, (x, sums))
    np.testing.assert_array_equal(sums, x.reshape(2, -1).sum(1))
    assert findings_of(k, x, sums, grid=8, block=64) == []


@pytest.mark.parametrize(
    ("name", "macro", "kind", "mark"),
    [
        ("k", "NOT_BEGUN", "read after write", "ADD"),
        ("k", "ENDED", "write after read", "ADD"),
        ("ring", "ENDED", "access after a block ends", "ADD"),
    ],
)
def test_blocks_of_a_cluster_that_do_not_meet(name, macro, kind, mark):
    k, x, out = cluster_kernel(name, **{macro: 1}), np.ones(8 * 64, np.int32), np.zeros(8, np.int32)
    args = (x, out) if name == "k" else (out,)
    found = findings_of(k, *args, grid=8, block=64)
    source = (COMMON + SUM).split("\n")
    assert any((f.tool, f.kind) == ("racecheck", kind) and source[f.line - 1].endswith(mark) for f in found)


def test_the_low_bits_of_a_generic_address_are_an_offset():
    """As on a GPU, where descriptors take `address & 0x3FFFF` of a generic address."""
    source = """
    extern "C" __global__ void __cluster_dims__(2) k(unsigned long long* out) {
        __shared__ alignas(16) char before[48], here[16];
        before[threadIdx.x] = here[threadIdx.x % 16] = 0;
        out[blockIdx.x] = (unsigned long long)before & 0x3FFFF;
        out[blockIdx.x + 2] = ((unsigned long long)here & 0x3FFFF) - __cvta_generic_to_shared(here);
    }
    """
    out = np.ones(4, np.uint64)
    simt.RawModule(code=source).get_function("k")(2, 32, (out,))
    np.testing.assert_array_equal(out % 16, 0)
    np.testing.assert_array_equal(out[2:], 0)


def test_headers_from_a_folder_may_use_hopper(tmp_path):
    (tmp_path / "mine.h").write_text(
        """
        __device__ void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); }
        """
    )
    source = """
    #include <mine.h>
    extern "C" __global__ void __launch_bounds__(128) k(int* out) {
    #ifdef __CUDA_ARCH_FEAT_SM90_ALL
        more_registers();
        out[threadIdx.x] = 1;
    #endif
    }
    """
    out = np.zeros(128, np.int32)
    simt.RawModule(code=source, options=(f"--include-path={tmp_path}",)).get_function("k")(1, 128, (out,))
    np.testing.assert_array_equal(out, 1)


def test_a_variable_of_a_namespace_has_its_name_in_findings():
    source = """
    namespace mine { extern __shared__ __align__(128) int memory[]; }
    extern "C" __global__ void __cluster_dims__(2) k(int* out) {
        mine::memory[threadIdx.x] = threadIdx.x;
        asm volatile("barrier.cluster.arrive;");
        out[threadIdx.x] = mine::memory[blockDim.x - 1 - threadIdx.x];
        asm volatile("barrier.cluster.wait;");
    }
    """
    k, out = simt.RawModule(code=source).get_function("k"), np.zeros(64, np.int32)
    found = findings_of(k, out, grid=2, block=64, shared_mem=256)
    assert any("of shared `mine::memory`" in each.message for each in found)
