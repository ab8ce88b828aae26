// reduction_3_tree.cu: out += sum of x (n)
// idea: 2_tree_divergent with the first threads of the block at work in each round: whole warps add or rest
//       half of the threads load one element and never add
// launch: block (THREADS), grid (ceil(n/THREADS)); any n
// small: THREADS=64
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef THREADS
#define THREADS 512
#endif
static_assert(THREADS >= 1 && THREADS <= 1024 && (THREADS & (THREADS - 1)) == 0,
              "the tree halves the block in each round: choose a power of two from 1 to 1024 for THREADS");
using T = DTYPE;

extern "C" __global__ void reduction(const T* x, T* out, int n)
{
    __shared__ T sums[THREADS];

    int i = blockIdx.x * THREADS + threadIdx.x;
    sums[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();  // all elements are there before anyone adds

    for (int apart = THREADS / 2; apart > 0; apart /= 2) {
        if (threadIdx.x < apart)
            sums[threadIdx.x] += sums[threadIdx.x + apart];
        __syncthreads();  // this round's sums are there before the next round adds them
    }
    if (threadIdx.x == 0)
        atomicAdd(out, sums[0]);
}
