// hopper.h: what sm_90a has for tiles, each instruction under its name in PTX. Three of its units work by
// themselves, and the threads only start them:
//   cp.async.bulk.tensor (TMA) copies a box of a matrix to shared memory and counts its bytes on an mbarrier;
//   wgmma has the tensor cores multiply tiles in shared memory, for the 128 threads of a warpgroup;
//   mbarrier counts arrivals of threads and bytes; when all of a phase have come, the next phase begins.
#include <cuda.h>
#include <cstdint>

__device__ uint32_t shared_address(const void* at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

// --- mbarrier ------------------------------------------------------------------------------------------
__device__ void mbarrier_init(uint64_t* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
__device__ void fence_mbarrier_init()  // the units and the other blocks of the cluster see the barriers
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void mbarrier_arrive(uint64_t* barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier))
                 : "memory");
}
__device__ void mbarrier_arrive_expect_tx(uint64_t* barrier, int bytes)  // the phase waits for bytes, too
{
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}
// Wait for the end of the phase of this parity: 0, 1, 0, … A barrier begins in phase 0, after a phase 1.
__device__ void mbarrier_wait(uint64_t* barrier, int parity)
{
    uint32_t over;
    do
        asm volatile("{ .reg .pred p;"
                     "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     "  selp.u32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    while (!over);
}

// Arrive at the barrier of block `block` of the cluster that lies where `barrier` lies in this block. With
// .release.cluster all that the thread wrote would have to be visible there first, a fence that takes longer
// than a step. The arrival says that wgmma has read, and the thread wrote nothing.
__device__ void mbarrier_arrive_cluster(uint64_t* barrier, int block)
{
    asm volatile("{ .reg .b32 there;"
                 "  mapa.shared::cluster.u32 there, %0, %1;"
                 "  mbarrier.arrive.shared::cluster.b64 _, [there]; }"
                 :: "r"(shared_address(barrier)), "r"(block) : "memory");
}

// --- threads -------------------------------------------------------------------------------------------
template <int REGISTERS> __device__ void setmaxnreg_dec()  // a warpgroup gives registers back to the block
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(REGISTERS));
}
template <int REGISTERS> __device__ void setmaxnreg_inc()  // and one takes them, once they are there
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(REGISTERS));
}
__device__ void bar_sync(int barrier, int threads)  // __syncthreads of some threads; its own barrier is 0
{
    asm volatile("bar.sync %0, %1;" :: "r"(barrier), "r"(threads) : "memory");
}
__device__ void barrier_cluster()  // __syncthreads of all blocks of the cluster
{
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

// --- TMA -----------------------------------------------------------------------------------------------
// Copy the box of the map whose first element is matrix[row][col]; elements past the edges come as 0.
__device__ void cp_async_bulk_tensor(void* to, const CUtensorMap& map, int row, int col, uint64_t* barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(shared_address(to)), "l"(&map), "r"(col), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

// The same to shared memory of each block of the cluster whose bit is set, and to its own barrier.
__device__ void cp_async_bulk_tensor_multicast(
    void* to, const CUtensorMap& map, int row, int col, uint64_t* barrier, int blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(shared_address(to)), "l"(&map), "r"(col), "r"(row), "r"(shared_address(barrier)),
                    "h"((uint16_t)blocks) : "memory");
}
// Copy a box from shared memory to the matrix; elements past the edges are left out.
__device__ void cp_async_bulk_tensor_store(const CUtensorMap& map, int row, int col, const void* from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(col), "r"(row), "r"(shared_address(from)) : "memory");
}
__device__ void cp_async_bulk_commit_group()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Wait until at most PENDING of this thread's groups have still to read their shared memory.
template <int PENDING> __device__ void cp_async_bulk_wait_group_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory");
}
__device__ void fence_proxy_async()  // what this thread wrote to shared memory comes before what TMA reads
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- wgmma ---------------------------------------------------------------------------------------------
// Describe rows of 128 bytes, swizzled as TMA writes them, from address `at`: 8 rows are 1024 bytes.
__device__ uint64_t descriptor(const void* at)
{
    return (shared_address(at) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}
__device__ void wgmma_fence()  // what the threads did with the sums comes before the wgmma that follow
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void wgmma_commit_group()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING> __device__ void wgmma_wait_group()  // until at most PENDING groups are at work
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}
template <int COUNT> __device__ void wgmma_wait_all(float (&sum)[COUNT])
{
    wgmma_wait_group<0>();
    for (float& each : sum)  // the compiler reads no sum before
        asm volatile("" : "+f"(each) :: "memory");
}

// sum (64,N) = a (64,k) b (N,k)^T + (accumulate ? sum : 0), with k of 32 bytes; N / 2 sums per thread
#define WGMMA_half "k16.f32.f16.f16", "1, 1, 0, 0"  // the last two 0: no transposing
#define WGMMA___nv_bfloat16 "k16.f32.bf16.bf16", "1, 1, 0, 0"
#define WGMMA_tf32 "k8.f32.tf32.tf32", "1, 1"
#define WGMMA___nv_fp8_e4m3 "k32.f32.e4m3.e4m3", "1, 1"
#define D0_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define D32_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define D64_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define D96_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_8(i) \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
    "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
#define WGMMA_OF(type) WGMMA_##type
#define WGMMA_AS(n, sums, a, b, p, kind, flags) \
    "{ .reg .pred p; setp.ne.b32 p, " p ", 0;" \
    "  wgmma.mma_async.sync.aligned.m64n" n kind " {" sums "}, " a ", " b ", p, " flags "; }"
#define WGMMA_IN(...) WGMMA_AS(__VA_ARGS__)
#define WGMMA(n, sums, a, b, p, type) WGMMA_IN(n, sums, a, b, p, WGMMA_OF(type))
__device__ void wgmma(float (&sum)[32], uint64_t a, uint64_t b, int accumulate)  // N = 64
{
    asm volatile(WGMMA("64", D0_31, "%32", "%33", "%34", DTYPE)
                 : SUMS_32(0) : "l"(a), "l"(b), "r"(accumulate));
}
__device__ void wgmma(float (&sum)[64], uint64_t a, uint64_t b, int accumulate)  // N = 128
{
    asm volatile(WGMMA("128", D0_31 ", " D32_63, "%64", "%65", "%66", DTYPE)
                 : SUMS_32(0), SUMS_32(32) : "l"(a), "l"(b), "r"(accumulate));
}
__device__ void wgmma(float (&sum)[96], uint64_t a, uint64_t b, int accumulate)  // N = 192
{
    asm volatile(WGMMA("192", D0_31 ", " D32_63 ", " D64_95, "%96", "%97", "%98", DTYPE)
                 : SUMS_32(0), SUMS_32(32), SUMS_32(64) : "l"(a), "l"(b), "r"(accumulate));
}
__device__ void wgmma(float (&sum)[128], uint64_t a, uint64_t b, int accumulate)  // N = 256
{
    asm volatile(WGMMA("256", D0_31 ", " D32_63 ", " D64_95 ", " D96_127, "%128", "%129", "%130", DTYPE)
                 : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96) : "l"(a), "l"(b), "r"(accumulate));
}
