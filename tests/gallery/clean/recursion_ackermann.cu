// recursion_ackermann: a call whose argument is a call
// launch: numbers; grid 1; block 9
// args: out out int32[9] -1
// expect: out = np.array([(n + 1, n + 2, 2 * n + 3)[m] for m in range(3) for n in range(3)])
__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void numbers(int* out) { out[threadIdx.x] = ackermann(threadIdx.x / 3, threadIdx.x % 3); }
