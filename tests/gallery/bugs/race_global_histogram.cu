// race_global_histogram: bins in global memory are counted without atomics
// launch: histogram; grid 4; block 64
// args: out counts int32[8] 0; in data int32[256] integers(0,8)
extern "C" __global__ void histogram(int* counts, const int* data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    counts[data[i]] += 1;  // BUG racecheck race
}
