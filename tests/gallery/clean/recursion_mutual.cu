// recursion_mutual: two functions that call each other
// launch: parities; grid 1; block 32
// args: out out int32[32] -1
__device__ __noinline__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }

extern "C" __global__ void parities(int* out) { out[threadIdx.x] = even(threadIdx.x) + 2 * odd(threadIdx.x / 2); }
