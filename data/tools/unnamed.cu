// Three kernels for the exercise of notebook 14: each is slowed, or not, by one thing.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int N = 8192, TILE = 32;

__global__ void x(const float* in, float* out) {
    __shared__ float tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = in[row * N + col];
    __syncthreads();
    out[(blockIdx.x * TILE + threadIdx.y) * N + blockIdx.y * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void y(const float* in, float* out) {
    extern __shared__ float unused[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] < -1) unused[threadIdx.x] = in[i];
    out[i] = 2 * in[i];
}

__global__ void z(const float4* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    out[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

int main() {
    float *in, *out;
    cudaMalloc(&in, sizeof(float) * N * N);
    cudaMalloc(&out, sizeof(float) * N * N);
    cudaMemset(in, 0, sizeof(float) * N * N);
    const int shared = 200 * 1024;
    cudaFuncSetAttribute(y, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    x<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(in, out);
    y<<<N * N / 64, 64, shared>>>(in, out);
    z<<<N * N / 4 / 256, 256>>>((const float4*)in, (float4*)out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
