// shuffle_double: values of eight bytes go round and sum in a warp
// launch: shuffle; grid 1; block 64
// args: out turned float64[64] nan; out sums int64[2] -1; in a float64[64] normal; in b int64[64] integers(-9000000000000,9000000000000)
// expect: turned = np.roll(a.reshape(2, 32), -1, 1)
// expect: sums = b.reshape(2, 32).sum(1)
extern "C" __global__ void shuffle(double* turned, long long* sums, const double* a, const long long* b) {
    int t = threadIdx.x;
    turned[t] = __shfl_sync(0xffffffff, a[t], (t + 1) % 32);
    long long sum = b[t];
    for (int mask = 16; mask; mask /= 2) sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (t % 32 == 0) sums[t / 32] = sum;
}
