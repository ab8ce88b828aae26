// reduce_last_block: the block that finishes last sums the others' sums (threadfence)
// launch: reduce; grid 6; block 64
// args: out sum int32[1] -1; scratch partial int32[6] 0; scratch done uint32[1] 0; in values int32[384] integers(0,9)
extern "C" __global__ void reduce(int* sum, volatile int* partial, unsigned* done, const int* values) {
    __shared__ int s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = values[blockIdx.x * 64 + t];
    __syncthreads();
#pragma unroll 1
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        int total = 0;
#pragma unroll 1
        for (int block = 0; block < gridDim.x; block++) total += partial[block];
        *sum = total;
    }
}
