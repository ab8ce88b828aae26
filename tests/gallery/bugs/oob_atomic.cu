// oob_atomic: a value that has no bin
// launch: histogram; grid 1; block 64
// args: out counts int32[8] 0; in data int32[64] integers(0,12)
extern "C" __global__ void histogram(int* counts, const int* data) {
    atomicAdd(&counts[data[threadIdx.x]], 1);  // BUG memcheck out of bounds
}
