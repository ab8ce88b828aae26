// histogram_shared: counts of 256 bins in shared memory, added to the global ones at the end
// kind: histogram
// set: held out
// launch: histogram_shared; grid 2; block 128
// args: out counts int32[256] 0; in x uint8[1500] integers(0,256); n int32 1500
// launch: histogram_shared; grid 264; block 256
// args: out counts int32[256] 0; in x uint8[8388608] integers(0,256); n int32 8388608
// launch: histogram_shared; grid 1056; block 256
// args: out counts int32[256] 0; in x uint8[67108864] integers(0,256); n int32 67108864
// launch: histogram_shared; grid 528; block 512
// args: out counts int32[256] 0; in x uint8[1048576] integers(0,256); n int32 1048576
// expect: counts = np.bincount(x, minlength=256)
extern "C" __global__ void histogram_shared(int* counts, const unsigned char* x, int n) {
    __shared__ int mine[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) mine[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) atomicAdd(&counts[bin], mine[bin]);
}
