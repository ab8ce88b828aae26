// monte_carlo_xorshift: 64-bit xorshift numbers, their warp sums
// launch: draw; grid 1; block 64
// args: out out uint64[64] 0; out sums uint64[2] 0
extern "C" __global__ void draw(unsigned long long* out, unsigned long long* sums) {
    unsigned long long x = 88172645463325252ull + threadIdx.x;
    for (int k = 0; k < 10; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    out[threadIdx.x] = x;
    for (int step = 16; step; step /= 2) x += __shfl_down_sync(~0u, x, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
}
