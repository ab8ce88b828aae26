// histogram_shared: each block counts in shared memory, then adds to the global counts
// launch: histogram; grid 3; block 64
// args: out counts int32[32] 0; in data int32[1000] integers(0,32); n int32 1000
extern "C" __global__ void histogram(int* counts, const int* data, int n) {
    __shared__ int mine[32];
    if (threadIdx.x < 32) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1);
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
