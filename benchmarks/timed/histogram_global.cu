// histogram_global: counts in global memory, with as many bins as said
// kind: histogram
// set: build
// launch: histogram_global; grid 3; block 128
// args: out counts int32[50] 0; in x int32[1000] integers(0,50); n int32 1000
// launch: histogram_global; grid 1056; block 256
// args: out counts int32[65536] 0; in x int32[4194304] integers(0,65536); n int32 4194304
// launch: histogram_global; grid 1056; block 256
// args: out counts int32[4194304] 0; in x int32[16777216] integers(0,4194304); n int32 16777216
// launch: histogram_global; grid 1056; block 256
// args: out counts int32[2048] 0; in x int32[4194304] integers(0,2048); n int32 4194304
// expect: counts = np.bincount(x, minlength=len(counts))
extern "C" __global__ void histogram_global(int* counts, const int* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[x[i]], 1);
}
