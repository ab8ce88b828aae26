// histogram_global: counts of byte values, atomics in global memory
// launch: histogram; grid 4; block 128
// args: out counts uint32[256] 0; in data uint8[500] integers(0,256); n int32 500
extern "C" __global__ void histogram(unsigned* counts, const unsigned char* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[data[i]], 1u);
}
