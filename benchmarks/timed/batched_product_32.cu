// batched_product_32: products of pairs of 32 x 32 matrices, one block and 2 x 2 results per thread
// kind: tiles
// set: build
// launch: batched_product_32; grid 2; block 16 16
// args: out C float32[2,32,32] nan; in A float32[2,32,32] uniform; in B float32[2,32,32] uniform
// launch: batched_product_32; grid 1000; block 16 16
// args: out C float32[1000,32,32] nan; in A float32[1000,32,32] uniform; in B float32[1000,32,32] uniform
// launch: batched_product_32; grid 16384; block 16 16
// args: out C float32[16384,32,32] nan; in A float32[16384,32,32] uniform; in B float32[16384,32,32] uniform
// launch: batched_product_32; grid 131072; block 16 16
// args: out C float32[131072,32,32] nan; in A float32[131072,32,32] uniform; in B float32[131072,32,32] uniform
// expect: C = close(wide(A) @ B, 40, 32)
extern "C" __global__ void batched_product_32(float* C, const float* A, const float* B) {
    __shared__ float a[32][33], b[32][32];
    int x = threadIdx.x, y = threadIdx.y, first = blockIdx.x * 1024;
    for (int j = y * 16 + x; j < 1024; j += 256) {
        a[j / 32][j % 32] = A[first + j];
        b[j / 32][j % 32] = B[first + j];
    }
    __syncthreads();
    float sums[2][2] = {};
    #pragma unroll 8
    for (int p = 0; p < 32; p++)
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 2; c++) sums[r][c] += a[y + 16 * r][p] * b[p][x + 16 * c];
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++) C[first + (y + 16 * r) * 32 + x + 16 * c] = sums[r][c];
}
