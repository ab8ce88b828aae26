// compact_block: positive elements move to the front of their block's part: ballot, count, scattered store
// kind: scan
// set: build
// launch: compact_block; grid 3; block 128
// args: out out float32[3,128] 0.0; out counts int32[3] 0; in x float32[3,128] uniform
// launch: compact_block; grid 4096; block 256
// args: out out float32[4096,256] 0.0; out counts int32[4096] 0; in x float32[4096,256] uniform
// launch: compact_block; grid 65536; block 512
// args: out out float32[65536,512] 0.0; out counts int32[65536] 0; in x float32[65536,512] uniform
// launch: compact_block; grid 262144; block 128
// args: out out float32[262144,128] 0.0; out counts int32[262144] 0; in x float32[262144,128] uniform
// expect: out = np.array([np.r_[row[row > 0], 0 * row[row <= 0]] for row in x])
// expect: counts = (x > 0).sum(1)
extern "C" __global__ void compact_block(float* out, int* counts, const float* x) {
    __shared__ int sums[32];
    int first = blockIdx.x * blockDim.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float value = x[first + threadIdx.x];
    unsigned kept = __ballot_sync(~0u, value > 0);
    if (lane == 0) sums[warp] = __popc(kept);
    __syncthreads();
    int place = __popc(kept & ((1u << lane) - 1)), total = 0;
    for (int w = 0; w < blockDim.x / 32; w++) {
        if (w == warp) place += total;
        total += sums[w];
    }
    if (value > 0) out[first + place] = value;
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}
