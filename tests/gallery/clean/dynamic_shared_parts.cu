// dynamic_shared_parts: doubles and ints in one piece of dynamic shared memory, beside a static array
// launch: mix; grid 1; block 64; shared 768
// args: out out float64[64] nan; in a float64[64] uniform; in b int32[64] integers(0,64)
// expect: out = a[b[::-1]] + (63 - b)
extern "C" __global__ void mix(double* out, const double* a, const int* b) {
    extern __shared__ double values[];
    __shared__ short order[64];
    int* picks = (int*)(values + 64);
    int t = threadIdx.x;
    values[t] = a[t];
    picks[t] = b[t];
    order[t] = 63 - t;
    __syncthreads();
    out[t] = values[picks[order[t]]] + order[picks[t]];
}
