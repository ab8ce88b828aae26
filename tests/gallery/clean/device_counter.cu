// device_counter: the last block to finish adds up; the counter belongs to the module and goes back to zero
// launch: sum; grid 5; block 32
// args: out total int32[1] -1; scratch partial int32[5] 0; in in int32[160] integers(0,50)
__device__ unsigned finished = 0;

extern "C" __global__ void sum(int* total, volatile int* partial, const int* in) {
    int value = in[blockIdx.x * 32 + threadIdx.x];
    for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        if (atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1) {
            __threadfence();
            int sum = 0;
            for (int block = 0; block < gridDim.x; block++) sum += partial[block];
            *total = sum;
        }
    }
}
