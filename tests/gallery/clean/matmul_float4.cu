// matmul_float4: each thread makes four neighbours in a row with float4 loads and stores
// launch: matmul; grid 2 4; block 8 8
// args: out C float32[32,64] nan; in A float32[32,24] uniform; in B float32[24,64] uniform; N int32 64; K int32 24
extern "C" __global__ void matmul(float4* C, const float* A, const float4* B, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int k = 0; k < K; k++) {
        float a = A[row * K + k];
        float4 b = B[k * (N / 4) + col];
        sum.x += a * b.x;
        sum.y += a * b.y;
        sum.z += a * b.z;
        sum.w += a * b.w;
    }
    C[row * (N / 4) + col] = sum;
}
