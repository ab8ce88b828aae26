// reduction_5_warp_shuffle.cu: out += sum of x (n)
// idea: 4_first_add with the tree in registers: the lanes of a warp read each other's sums by __shfl_down_sync,
//       without shared memory and without barriers; only the warps' sums meet in shared memory
// launch: block (THREADS), grid (ceil(n/(2*THREADS))); any n
// small: THREADS=64
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef THREADS
#define THREADS 512
#endif
static_assert(THREADS >= 32 && THREADS <= 1024 && THREADS % 32 == 0,
              "the block has whole warps: choose a multiple of 32 from 32 to 1024 for THREADS");
using T = DTYPE;

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

extern "C" __global__ void reduction(const T* x, T* out, int n)
{
    int i = blockIdx.x * 2 * THREADS + threadIdx.x;
    T sum = i < n ? x[i] : T(0);
    if (i + THREADS < n)
        sum += x[i + THREADS];

    sum = block_sum(sum);
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}
