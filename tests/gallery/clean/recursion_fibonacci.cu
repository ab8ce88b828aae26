// recursion_fibonacci: two calls of itself
// launch: numbers; grid 1; block 40
// args: out out int32[40] -1
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void numbers(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }
