// tall_skinny: transposed A times A for 32 columns: each block sums 4 x 4 results per thread over its rows
// kind: tiles
// set: held out
// launch: tall_skinny; grid 2; block 64
// args: out C float32[32,32] 0.0; in A float32[64,32] uniform; chunk int32 32
// launch: tall_skinny; grid 528; block 64
// args: out C float32[32,32] 0.0; in A float32[67584,32] uniform; chunk int32 128
// launch: tall_skinny; grid 1056; block 64
// args: out C float32[32,32] 0.0; in A float32[1081344,32] uniform; chunk int32 1024
// launch: tall_skinny; grid 132; block 64
// args: out C float32[32,32] 0.0; in A float32[540672,32] uniform; chunk int32 4096
// launch: tall_skinny; grid 8192; block 64
// args: out C float32[32,32] 0.0; in A float32[4194304,32] uniform; chunk int32 512
// expect: C = product(A.T, A)
extern "C" __global__ void tall_skinny(float* C, const float* A, int chunk) {
    __shared__ float tile[16][32];
    int t = threadIdx.x, row = t / 8 * 4, col = t % 8 * 4;
    float sums[4][4] = {};
    const float* mine = A + (size_t)blockIdx.x * chunk * 32;
    for (int first = 0; first < chunk; first += 16) {
        for (int j = t; j < 512; j += 64) tile[j / 32][j % 32] = mine[first * 32 + j];
        __syncthreads();
        #pragma unroll 4
        for (int p = 0; p < 16; p++) {
            float4 u = *(float4*)&tile[p][row], v = *(float4*)&tile[p][col];
            float a[4] = {u.x, u.y, u.z, u.w}, b[4] = {v.x, v.y, v.z, v.w};
            #pragma unroll
            for (int r = 0; r < 4; r++)
                #pragma unroll
                for (int c = 0; c < 4; c++) sums[r][c] += a[r] * b[c];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) atomicAdd(&C[(row + r) * 32 + col + c], sums[r][c]);
}
