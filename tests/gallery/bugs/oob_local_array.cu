// oob_local_array: an index from memory that is larger than the local array
// launch: pick; grid 1; block 32
// args: out out int32[32] -1; in index int32[32] integers(4000,5000)
extern "C" __global__ void pick(int* out, const int* index) {
    int mine[8];
    for (int k = 0; k < 8; k++) mine[k] = k * threadIdx.x;
    mine[index[threadIdx.x] % 8] = 1;
    out[threadIdx.x] = mine[index[threadIdx.x]];  // BUG memcheck out of bounds
}
