// race_dynamic_shared: parts of dynamic shared memory overlap
// launch: overlap; grid 1; block 64; shared 512
// args: out out int32[64] -1; in in int32[64] arange
extern "C" __global__ void overlap(int* out, const int* in) {
    extern __shared__ int s[];
    int *a = s, *b = s + 32, t = threadIdx.x;
    a[t] = in[t];  // OTHER
    b[t] = -in[t];  // BUG racecheck race
    __syncthreads();
    out[t] = a[t] + b[t];
}
