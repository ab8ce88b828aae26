// reduction_7_last_block.cu: out += sum of x (n)
// idea: 6_grid_stride without a race for the result: each block leaves its sum in memory, and the last block to
//       finish adds them all, always in the same order. So floats round in the same way in each run
// launch: block (THREADS), grid (BLOCKS); any n
// small: THREADS=64 BLOCKS=5
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef BLOCKS
#define BLOCKS 528
#endif
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "the block has whole warps: choose a multiple of 32 from 32 to 1024 for THREADS");
static_assert(BLOCKS >= 1 && BLOCKS <= 65536, "choose BLOCKS from 1 to 65536");
using T = DTYPE;
constexpr int V = 16 / sizeof(T);
struct alignas(16) Vector {
    T at[V];
};

__device__ T block_sums[BLOCKS];
__device__ unsigned finished;  // blocks

// The sum over the warp's 32 lanes, in lane 0.
__device__ T warp_sum(T sum)
{
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, apart);
    return sum;
}

// The sum over the block's threads, in thread 0.
__device__ T block_sum(T sum)
{
    __shared__ T sums[32];  // one per warp

    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();  // the sums of all warps are there
    return threadIdx.x < 32 ? warp_sum(threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : T(0)) : T(0);
}

// The sum of the thread's share of x: every `threads`-th vector, and of the last elements at most one.
__device__ T thread_sum(const T* x, int n, int threads)
{
    int thread = blockIdx.x * THREADS + threadIdx.x, vectors = n / V;
    T sum = thread < n % V ? x[vectors * V + thread] : T(0);
    #pragma unroll 4  // several loads are on their way at once
    for (int i = thread; i < vectors; i += threads) {
        Vector loaded = ((const Vector*)x)[i];
        for (int v = 0; v < V; ++v)
            sum += loaded.at[v];
    }
    return sum;
}

extern "C" __global__ void reduction(const T* x, T* out, int n)
{
    __shared__ bool is_last;

    T sum = block_sum(thread_sum(x, n, BLOCKS * THREADS));
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = sum;
        __threadfence();  // the sum is in memory before the count says so
        is_last = atomicInc(&finished, BLOCKS - 1) == BLOCKS - 1;  // the last one sets it back to 0
    }
    __syncthreads();  // all threads know whether theirs is the last block, and the shared sums are free again
    if (!is_last)
        return;

    sum = 0;
    for (int block = threadIdx.x; block < BLOCKS; block += THREADS)
        sum += *(volatile T*)&block_sums[block];  // other blocks wrote them: read memory, not this SM's cache
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *out += sum;
}
