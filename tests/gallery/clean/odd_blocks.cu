// odd_blocks: blocks whose last warp is not full; the last thread sums its block
// launch: sums; grid 3; block 33
// args: out out int32[300] -1; out sum int32[3] -1
// launch: sums; grid 3; block 48
// launch: sums; grid 3; block 100
extern "C" __global__ void sums(int* out, int* sum) {
    __shared__ int s[100];
    int t = threadIdx.x;
    s[t] = t * t + blockIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = s[blockDim.x - 1 - t];
    if (t == blockDim.x - 1) {
        int total = 0;
        for (int k = 0; k < blockDim.x; k++) total += s[k];
        sum[blockIdx.x] = total;
    }
}
