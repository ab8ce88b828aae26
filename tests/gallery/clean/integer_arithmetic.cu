// integer_arithmetic: signed and unsigned division, remainder, shifts and wide products
// launch: arithmetic; grid 1; block 64
// args: out out int64[6,64] -1; in a int32[64] integers(-1000000,1000000); in b int32[64] integers(1,1000)
extern "C" __global__ void arithmetic(long long* out, const int* a, const int* b) {
    int t = threadIdx.x, x = a[t], y = b[t];
    out[t] = x / y;
    out[64 + t] = x % y;
    out[128 + t] = (unsigned)x / (unsigned)y;
    out[192 + t] = (long long)x * x * y;
    out[256 + t] = (x >> (y % 20)) + ((unsigned)x >> (y % 32)) + (x << (y % 8));
    out[320 + t] = ((long long)x * 1000000007LL) % (y * 77777LL) - (long long)x * y / 13;
}
