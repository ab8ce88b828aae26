// scan_warp: inclusive prefix sum of each warp with __shfl_up_sync
// launch: scan; grid 2; block 64
// args: out out int32[128] -1; in in int32[128] integers(-5,6)
extern "C" __global__ void scan(int* out, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, sum = in[i];
    for (int step = 1; step < 32; step <<= 1) {
        int below = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += below;
    }
    out[i] = sum;
}
