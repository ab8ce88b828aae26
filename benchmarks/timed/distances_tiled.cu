// distances_tiled: squared distances of all pairs of points in 16 dimensions, 4 x 4 pairs per thread
// kind: tiles
// set: build
// launch: distances_tiled; grid 2 2; block 16 16
// args: out D float32[128,128] nan; in P float32[128,16] uniform; in Q float32[128,16] uniform; n int32 128
// launch: distances_tiled; grid 16 16; block 16 16
// args: out D float32[1024,1024] nan; in P float32[1024,16] uniform; in Q float32[1024,16] uniform; n int32 1024
// launch: distances_tiled; grid 64 64; block 16 16
// args: out D float32[4096,4096] nan; in P float32[4096,16] uniform; in Q float32[4096,16] uniform; n int32 4096
// launch: distances_tiled; grid 256 256; block 16 16
// args: out D float32[16384,16384] nan; in P float32[16384,16] uniform; in Q float32[16384,16] uniform; n int32 16384
// expect: D = close(((wide(P)[:, None] - Q) ** 2).sum(2), 40, 64)
extern "C" __global__ void distances_tiled(float* D, const float* P, const float* Q, int n) {
    __shared__ float p[16][64], q[16][64];
    int x = threadIdx.x, y = threadIdx.y, t = y * 16 + x, top = blockIdx.y * 64, left = blockIdx.x * 64;
    for (int j = t; j < 1024; j += 256) {
        p[j % 16][j / 16] = P[top * 16 + j];
        q[j % 16][j / 16] = Q[left * 16 + j];
    }
    __syncthreads();
    float sums[4][4] = {};
    #pragma unroll 4
    for (int d = 0; d < 16; d++)
        #pragma unroll
        for (int r = 0; r < 4; r++)
            #pragma unroll
            for (int c = 0; c < 4; c++) {
                float gap = p[d][y * 4 + r] - q[d][x + 16 * c];
                sums[r][c] += gap * gap;
            }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) D[(top + y * 4 + r) * n + left + x + 16 * c] = sums[r][c];
}
