// init_shared_histogram: bins that nobody set to zero
// launch: histogram; grid 1; block 64
// args: out counts int32[8] -1; in data int32[64] integers(0,8)
extern "C" __global__ void histogram(int* counts, const int* data) {
    __shared__ int bins[8];
    atomicAdd(&bins[data[threadIdx.x]], 1);  // BUG initcheck uninitialised read
    __syncthreads();
    if (threadIdx.x < 8) counts[threadIdx.x] = bins[threadIdx.x];  // OR
}
