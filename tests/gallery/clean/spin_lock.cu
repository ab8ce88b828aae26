// spin_lock: one thread of each block takes a lock to add to a sum that is no atomic
// launch: locked; grid 8; block 64
// args: scratch lock int32[1] 0; out sum int32[2] 0; in values int32[512] integers(0,50)
// expect: sum = np.array([values.sum(), 8])
extern "C" __global__ void locked(int* lock, volatile int* sum, const int* values) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, values[blockIdx.x * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        __threadfence();
        sum[0] += total;
        sum[1] += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}
