// race_global_block_sums: block 0 reads the other blocks' sums and nothing makes it wait
// launch: sums; grid 4; block 32
// args: out total int32[1] -1; scratch partial int32[4] 0; in in int32[128] integers(0,9)
extern "C" __global__ void sums(int* total, int* partial, const int* in) {
    int sum = in[blockIdx.x * 32 + threadIdx.x];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;  // OTHER
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int all = sum;
        for (int block = 1; block < gridDim.x; block++)
            all += partial[block];  // BUG racecheck race
        *total = all;
    }
}
