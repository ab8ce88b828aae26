// oob_wrong_array: a result for each element goes to the array of a result for each block
// launch: sums; grid 4; block 32
// args: out sums int32[4] -1; out all int32[128] -1; in in int32[128] integers(0,9)
extern "C" __global__ void sums(int* sums, int* all, const int* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[i] = 2 * in[i];  // BUG memcheck out of bounds
    if (threadIdx.x == 0) all[blockIdx.x] = i;
}
