// loop_by_lane: lanes of a warp take 1 to 32 times as many rounds
// kind: divergence
// set: held out
// launch: loop_by_lane; grid 2; block 256
// args: out out float32[500] nan; in x float32[500] uniform; rounds int32 1; n int32 500
// launch: loop_by_lane; grid 4096; block 256
// args: out out float32[1048576] nan; in x float32[1048576] uniform; rounds int32 8; n int32 1048576
// launch: loop_by_lane; grid 32768; block 256
// args: out out float32[8388608] nan; in x float32[8388608] uniform; rounds int32 8; n int32 8388608
// launch: loop_by_lane; grid 128; block 256
// args: out out float32[32768] nan; in x float32[32768] uniform; rounds int32 64; n int32 32768
// expect: out = close(wide(x) / 2.0 ** (np.arange(n) % 32 + 1) + 2 - 2 / 2.0 ** (np.arange(n) % 32 + 1), 50, 3)
extern "C" __global__ void loop_by_lane(float* out, const float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    int mine = rounds * (threadIdx.x % 32 + 1);
    for (int j = 0; j < mine; j++) v = v * 0.5f + 1.0f;
    out[i] = v;
}
