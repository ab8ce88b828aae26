// matmul_register_1d: each thread makes a column of four results from shared tiles of 32 x 8 and 8 x 32
// launch: matmul; grid 2 2; block 256
// args: out C float32[64,64] nan; in A float32[64,40] uniform; in B float32[40,64] uniform; N int32 64; K int32 40
#define BM 32
#define BK 8
#define TM 4
extern "C" __global__ void matmul(float* C, const float* A, const float* B, int N, int K) {
    __shared__ float As[BM][BK], Bs[BK][BM];
    int t = threadIdx.x, tx = t % BM, ty = t / BM;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BM;
    float sum[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        As[t / BK][t % BK] = A[(row0 + t / BK) * K + k0 + t % BK];
        Bs[t / BM][t % BM] = B[(k0 + t / BM) * N + col0 + t % BM];
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < BK; k++) {
            float b = Bs[k][tx];
            for (int m = 0; m < TM; m++) sum[m] += As[ty * TM + m][k] * b;
        }
        __syncthreads();
    }
    for (int m = 0; m < TM; m++) C[(row0 + ty * TM + m) * N + col0 + tx] = sum[m];
}
