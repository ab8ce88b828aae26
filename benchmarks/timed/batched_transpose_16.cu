// batched_transpose_16: small matrices of 16 x 16 transposed in shared memory, four per block
// kind: tiles
// set: held out
// launch: batched_transpose_16; grid 2; block 256
// args: out out float32[8,16,16] nan; in x float32[8,16,16] uniform; n int32 8
// launch: batched_transpose_16; grid 2048; block 256
// args: out out float32[8192,16,16] nan; in x float32[8192,16,16] uniform; n int32 8192
// launch: batched_transpose_16; grid 16384; block 256
// args: out out float32[65536,16,16] nan; in x float32[65536,16,16] uniform; n int32 65536
// launch: batched_transpose_16; grid 131072; block 256
// args: out out float32[524288,16,16] nan; in x float32[524288,16,16] uniform; n int32 524288
// expect: out = x.swapaxes(1, 2)
extern "C" __global__ void batched_transpose_16(float* out, const float* x, int n) {
    __shared__ float tile[4][16][17];
    int t = threadIdx.x, which = t / 16 % 4, col = t % 16;
    float* to = out + (blockIdx.x * 4 + which) * 256;
    const float* from = x + (blockIdx.x * 4 + which) * 256;
    for (int r = t / 64; r < 16; r += 4) tile[which][r][col] = from[r * 16 + col];
    __syncthreads();
    for (int r = t / 64; r < 16; r += 4) to[r * 16 + col] = tile[which][col][r];
}
