// branch_by_lane: even and odd lanes take different loops, one after the other
// kind: divergence
// set: build
// launch: branch_by_lane; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 4; n int32 500
// launch: branch_by_lane; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 128; n int32 1048576
// launch: branch_by_lane; grid 16384; block 256
// args: out out float32[4194304] nan; in x float32[4194304] uniform; rounds int32 512; n int32 4194304
// launch: branch_by_lane; grid 256; block 256
// args: out out float32[65536] nan; in x float32[65536] uniform; rounds int32 1024; n int32 65536
// expect: out = close(np.where(np.arange(n) & 1, wide(x) / 2 ** 4 + 2 - 2 / 2 ** 4, (((wide(x) ** 2 - .25) ** 2 - .25) ** 2 - .25) ** 2 - .25), 50, 2)
extern "C" __global__ void branch_by_lane(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (i & 1)
        for (int j = 0; j < rounds; j++) v = v * 0.5f + 1.0f;
    else
        for (int j = 0; j < rounds; j++) v = v * v - 0.25f;
    out[i] = v;
}
