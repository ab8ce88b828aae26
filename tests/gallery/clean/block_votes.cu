// block_votes: how many, whether all and whether any of a block are positive
// launch: votes; grid 4; block 96
// args: out count int32[4] -1; out all int32[4] -1; out any int32[4] -1; in values int32[384] integers(-2,12)
extern "C" __global__ void votes(int* count, int* all, int* any, const int* values) {
    int positive = values[blockIdx.x * blockDim.x + threadIdx.x] > 0;
    int counted = __syncthreads_count(positive);
    int both = __syncthreads_and(positive || blockIdx.x == 1);
    int one = __syncthreads_or(positive && blockIdx.x != 2);
    if (threadIdx.x == 0) {
        count[blockIdx.x] = counted;
        all[blockIdx.x] = both != 0;
        any[blockIdx.x] = one != 0;
    }
}
