// uniform_barrier: barriers in a branch and in a loop that whole blocks take
// launch: blocks; grid 4; block 96
// args: out out int32[384] -1; in in int32[384] integers(0,100)
extern "C" __global__ void blocks(int* out, const int* in) {
    __shared__ int s[96];
    int t = threadIdx.x, i = blockIdx.x * 96 + t;
    s[t] = in[i];
    if (blockIdx.x % 2) {
        __syncthreads();
        out[i] = s[95 - t];
    } else {
        for (int round = 0; round <= blockIdx.x; round++) {
            __syncthreads();
            int next = s[(t + 1) % 96];
            __syncthreads();
            s[t] = next;
        }
        out[i] = s[t];
    }
}
