// reduction_1_atomic.cu: out += sum of x (n)
// idea: one thread per element, and each thread adds its element to the result
//       additions to one address take turns, so the threads wait for each other
// launch: block (THREADS), grid (ceil(n/THREADS)); any n
// small: THREADS=64
#ifndef DTYPE
#define DTYPE float
#endif
#ifndef THREADS
#define THREADS 512
#endif
static_assert(THREADS >= 1 && THREADS <= 1024, "a block holds 1 to 1024 threads: choose such a THREADS");
using T = DTYPE;

extern "C" __global__ void reduction(const T* x, T* out, int n)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        atomicAdd(out, x[i]);
}
