// scan_shuffle: a running sum per block with shuffles, and the warps' sums in shared memory
// kind: scan
// set: held out
// launch: scan_shuffle; grid 3; block 128
// args: out out float32[3,128] nan; in x float32[3,128] uniform
// launch: scan_shuffle; grid 2048; block 256
// args: out out float32[2048,256] nan; in x float32[2048,256] uniform
// launch: scan_shuffle; grid 32768; block 1024
// args: out out float32[32768,1024] nan; in x float32[32768,1024] uniform
// launch: scan_shuffle; grid 262144; block 128
// args: out out float32[262144,128] nan; in x float32[262144,128] uniform
// expect: out = close(wide(x).cumsum(1), 128, 128)
extern "C" __global__ void scan_shuffle(float* out, const float* x) {
    __shared__ float sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = x[i];
    for (int step = 1; step < 32; step *= 2) {
        float before = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) sum += sums[w];
    out[i] = sum;
}
