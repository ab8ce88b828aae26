// matmul_int: tiled product of int32 matrices, exact
// launch: matmul; grid 3 3; block 16 16
// args: out C int32[40,40] -1; in A int32[40,40] integers(-9,10); in B int32[40,40] integers(-9,10); n int32 40
// expect: C = A @ B
#define TILE 16
extern "C" __global__ void matmul(int* C, const int* A, const int* B, int n) {
    __shared__ int As[TILE][TILE];
    __shared__ int Bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x, sum = 0;
    for (int tile = 0; tile < (n + TILE - 1) / TILE; tile++) {
        int x = tile * TILE + threadIdx.x, y = tile * TILE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < n && x < n ? A[row * n + x] : 0;
        Bs[threadIdx.y][threadIdx.x] = y < n && col < n ? B[y * n + col] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}
