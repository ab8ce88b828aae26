// recursion_factorial: a device function that calls itself, a depth a lane
// launch: factorials; grid 1; block 32
// args: out out int64[32] -1
// expect: out = np.array([math.factorial(t % 20) for t in range(32)])
__device__ __noinline__ long long factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }

extern "C" __global__ void factorials(long long* out) { out[threadIdx.x] = factorial(threadIdx.x % 20); }
