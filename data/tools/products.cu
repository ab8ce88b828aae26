// The matrix product C = AB of 1024 x 1024 floats by three kernels of the course, for the tools of notebook 14.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int N = 1024, TILE = 32;

__global__ void by_columns(const float* A, const float* B, float* C) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += A[row * N + k] * B[k * N + col];
    C[row * N + col] = sum;
}

__global__ void naive(const float* A, const float* B, float* C) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += A[row * N + k] * B[k * N + col];
    C[row * N + col] = sum;
}

__global__ void tiled(const float* A, const float* B, float* C) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < N; k += TILE) {
        As[threadIdx.y][threadIdx.x] = A[row * N + k + threadIdx.x];
        Bs[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * N + col];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += As[threadIdx.y][i] * Bs[i][threadIdx.x];
        __syncthreads();
    }
    C[row * N + col] = sum;
}

int main() {
    float *A, *B, *C;
    cudaMallocManaged(&A, N * N * sizeof(float));
    cudaMallocManaged(&B, N * N * sizeof(float));
    cudaMallocManaged(&C, N * N * sizeof(float));
    for (int i = 0; i < N * N; ++i) A[i] = i % 7, B[i] = i % 5;
    dim3 block(TILE, TILE), grid(N / TILE, N / TILE);
    by_columns<<<grid, block>>>(A, B, C);
    naive<<<grid, block>>>(A, B, C);
    tiled<<<grid, block>>>(A, B, C);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s, C[0] = %g\n", cudaGetErrorString(error), C[0]);
    return error != cudaSuccess;
}
