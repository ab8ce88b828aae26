// reduction_4_first_add.cu: out += sum of x (n)
// idea: 3_tree with two elements per thread, added as they are loaded: no thread only loads, and half as many
//       blocks run through the rounds
// launch: block (THREADS), grid (ceil(n/(2*THREADS))); any n
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

    int i = blockIdx.x * 2 * THREADS + threadIdx.x;
    T sum = i < n ? x[i] : T(0);
    if (i + THREADS < n)
        sum += x[i + THREADS];
    sums[threadIdx.x] = sum;
    __syncthreads();  // all elements are there before anyone adds

    for (int apart = THREADS / 2; apart > 0; apart /= 2) {
        if (threadIdx.x < apart)
            sums[threadIdx.x] += sums[threadIdx.x + apart];
        __syncthreads();  // this round's sums are there before the next round adds them
    }
    if (threadIdx.x == 0)
        atomicAdd(out, sums[0]);
}
