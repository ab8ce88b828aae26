// scan_blelloch: exclusive prefix sum of a block, up the tree and down again
// launch: scan; grid 2; block 64
// args: out out int32[256] -1; in in int32[256] integers(0,20)
extern "C" __global__ void scan(int* out, const int* in) {
    __shared__ int s[128];
    int t = threadIdx.x, first = blockIdx.x * 128, step = 1;
    s[2 * t] = in[first + 2 * t];
    s[2 * t + 1] = in[first + 2 * t + 1];
#pragma unroll 1
    for (int active = 64; active > 0; active /= 2) {
        __syncthreads();
        if (t < active) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
        step *= 2;
    }
    if (t == 0) s[127] = 0;
#pragma unroll 1
    for (int active = 1; active < 128; active *= 2) {
        step /= 2;
        __syncthreads();
        if (t < active) {
            int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1, kept = s[left];
            s[left] = s[right];
            s[right] += kept;
        }
    }
    __syncthreads();
    out[first + 2 * t] = s[2 * t];
    out[first + 2 * t + 1] = s[2 * t + 1];
}
