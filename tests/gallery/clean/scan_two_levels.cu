// scan_two_levels: prefix sums of a block of eight warps: scans of warps, a scan of their sums, four elements per thread
// launch: scan; grid 2; block 256
// args: out out uint32[2,1024] 0; in in uint32[2,1024] integers(0,50)
__device__ inline unsigned warp_scan(unsigned value) {
    const int lane = threadIdx.x & (warpSize - 1);
#pragma unroll
    for (int i = 1; i <= 16; i *= 2) {
        unsigned n = __shfl_up_sync(0xffffffffu, value, i, 32);
        if (lane >= i) value += n;
    }
    return value;
}

extern "C" __global__ void scan(uint4* out, const uint4* in) {
    __shared__ unsigned sums[8];
    int at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint4 v = in[at];
    v.y += v.x, v.z += v.y, v.w += v.z;
    unsigned mine = warp_scan(v.w);
    if (lane == 31) sums[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        unsigned total = lane < 8 ? sums[lane] : 0;
        total = warp_scan(total);
        if (lane < 8) sums[lane] = total;
    }
    __syncthreads();
    unsigned before = mine - v.w + (warp > 0 ? sums[warp - 1] : 0);
    out[at] = make_uint4(v.x + before, v.y + before, v.z + before, v.w + before);
}
