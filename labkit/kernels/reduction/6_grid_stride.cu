// reduction_6_grid_stride.cu: out += sum of x (n)
// idea: 5_warp_shuffle with many elements per thread: the grid strides through x, 16 bytes per load and thread
//       few blocks are left to add to the result, where additions take turns, and the tree is little of the work
// launch: block (THREADS), grid (ceil(n/(THREADS*PER_THREAD))); any n
// small: THREADS=64 PER_THREAD=16
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef PER_THREAD
#define PER_THREAD 64
#endif
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "the block has whole warps: choose a multiple of 32 from 32 to 1024 for THREADS");
static_assert(PER_THREAD >= 1 && PER_THREAD <= 1024, "elements per thread: choose PER_THREAD from 1 to 1024");
using T = DTYPE;
constexpr int V = 16 / sizeof(T);
struct alignas(16) Vector {
    T at[V];
};

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
    T sum = block_sum(thread_sum(x, n, gridDim.x * THREADS));
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}
