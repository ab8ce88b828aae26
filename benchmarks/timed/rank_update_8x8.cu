// rank_update_8x8: C += X Y for a depth of 8: 8 x 8 results per thread in registers, no shared memory
// kind: tiles
// set: build
// launch: rank_update_8x8; grid 1 2; block 8 4
// args: out C float32[64,64] uniform; in X float32[8,64] uniform; in Y float32[8,64] uniform; n int32 64
// launch: rank_update_8x8; grid 4 32; block 32 4
// args: out C float32[1024,1024] uniform; in X float32[8,1024] uniform; in Y float32[8,1024] uniform; n int32 1024
// launch: rank_update_8x8; grid 16 128; block 32 4
// args: out C float32[4096,4096] uniform; in X float32[8,4096] uniform; in Y float32[8,4096] uniform; n int32 4096
// launch: rank_update_8x8; grid 48 384; block 32 4
// args: out C float32[12288,12288] uniform; in X float32[8,12288] uniform; in Y float32[8,12288] uniform; n int32 12288
// expect: C = close(C + wide(X).T @ Y, 20, 9)
extern "C" __global__ void rank_update_8x8(float* C, const float* X, const float* Y, int n) {
    int top = (blockIdx.y * blockDim.y + threadIdx.y) * 8, left = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float sums[8][8] = {};
    #pragma unroll
    for (int p = 0; p < 8; p++) {
        float y[8];
        #pragma unroll
        for (int c = 0; c < 8; c++) y[c] = Y[p * n + left + c * blockDim.x];
        #pragma unroll
        for (int r = 0; r < 8; r++) {
            float x = X[p * n + top + r];
            #pragma unroll
            for (int c = 0; c < 8; c++) sums[r][c] += x * y[c];
        }
    }
    #pragma unroll
    for (int r = 0; r < 8; r++)
        #pragma unroll
        for (int c = 0; c < 8; c++) C[(top + r) * n + left + c * blockDim.x] += sums[r][c];
}
