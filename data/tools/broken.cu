// Two mistakes for compute-sanitizer: a race in shared memory, and a read past the end.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void reverse(const int* in, int* out, int n) {
    __shared__ int tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];  // the last block reads past the end
    int other = tile[255 - threadIdx.x];  // no barrier before
    if (i < n) out[i] = other;
}

int main() {
    const int n = 1000;
    int *in, *out;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    cudaMemset(in, 0, n * sizeof(int));
    reverse<<<4, 256>>>(in, out, n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
