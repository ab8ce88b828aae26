// imbalance_by_block: blocks take rounds in proportion to their index: the last ones run alone
// kind: imbalance
// set: build
// launch: imbalance_by_block; grid 4; block 64
// args: out out float32[4,64] nan; in x float32[4,64] uniform; rounds int32 4
// launch: imbalance_by_block; grid 1056; block 256
// args: out out float32[1056,256] nan; in x float32[1056,256] uniform; rounds int32 4096
// launch: imbalance_by_block; grid 16384; block 256
// args: out out float32[16384,256] nan; in x float32[16384,256] uniform; rounds int32 1024
// launch: imbalance_by_block; grid 200; block 1024
// args: out out float32[200,1024] nan; in x float32[200,1024] uniform; rounds int32 8192
// expect: out = close((wide(x) - 2) / 2.0 ** np.arange(1, 5)[:, None] + 2, 10, 3)
extern "C" __global__ void imbalance_by_block(float* out, const float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    int mine = rounds * (blockIdx.x + 1) / gridDim.x;
    for (int j = 0; j < mine; j++) v = v * 0.5f + 1.0f;
    out[i] = v;
}
