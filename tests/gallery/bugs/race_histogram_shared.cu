// race_histogram_shared: bins are counted without atomics
// launch: histogram; grid 1; block 128
// args: out counts int32[8] -1; in data int32[128] integers(0,8)
extern "C" __global__ void histogram(int* counts, const int* data) {
    __shared__ int bins[8];
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[data[threadIdx.x]] += 1;  // BUG racecheck race
    __syncthreads();
    if (threadIdx.x < 8) counts[threadIdx.x] = bins[threadIdx.x];
}
