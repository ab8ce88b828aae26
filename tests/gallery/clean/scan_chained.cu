// scan_chained: prefix sums of many blocks in one launch: a block takes its number by an atomic and waits for the one before
// launch: scan; grid 5; block 64
// args: out out int32[320] 0; scratch total int32[5] 0; scratch ready int32[5] 0; scratch ticket int32[1] 0; in in int32[320] integers(-9,10)
extern "C" __global__ void scan(int* out, volatile int* total, int* ready, int* ticket, const int* in) {
    __shared__ int number, before, s[64];
    if (threadIdx.x == 0) number = atomicAdd(ticket, 1);
    __syncthreads();
    int i = number * 64 + threadIdx.x;
    s[threadIdx.x] = in[i];
    for (int o = 1; o < 64; o *= 2) {
        __syncthreads();
        int v = threadIdx.x >= o ? s[threadIdx.x - o] : 0;
        __syncthreads();
        s[threadIdx.x] += v;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        before = 0;
        if (number > 0) {
            while (atomicAdd(&ready[number - 1], 0) == 0) __nanosleep(20);
            __threadfence();
            before = total[number - 1];
        }
        total[number] = before + s[63];
        __threadfence();
        atomicExch(&ready[number], 1);
    }
    __syncthreads();
    out[i] = before + s[threadIdx.x];
}
