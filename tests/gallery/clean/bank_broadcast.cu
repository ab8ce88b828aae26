// bank_broadcast: one word for all, two words of one bank, a word for each half
// launch: banks; grid 1; block 32
// args: out out int32[32] -1
extern "C" __global__ void banks(int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    s[t + 32] = 2 * t;
    __syncthreads();
    out[t] = s[7] + 100 * s[(t & 1) * 32] + 10000 * s[t / 16];
}
