// scan_steps: a running sum per block, log2 steps in shared memory with two barriers each
// kind: scan
// set: build
// launch: scan_steps; grid 3; block 128
// args: out out float32[3,128] nan; in x float32[3,128] uniform
// launch: scan_steps; grid 2048; block 256
// args: out out float32[2048,256] nan; in x float32[2048,256] uniform
// launch: scan_steps; grid 32768; block 1024
// args: out out float32[32768,1024] nan; in x float32[32768,1024] uniform
// launch: scan_steps; grid 262144; block 128
// args: out out float32[262144,128] nan; in x float32[262144,128] uniform
// expect: out = close(wide(x).cumsum(1), 128, 128)
extern "C" __global__ void scan_steps(float* out, const float* x) {
    __shared__ float s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = x[i];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        float before = t >= step ? s[t - step] : 0;
        __syncthreads();
        s[t] += before;
        __syncthreads();
    }
    out[i] = s[t];
}
