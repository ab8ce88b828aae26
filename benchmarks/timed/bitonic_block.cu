// bitonic_block: each block sorts its part in shared memory by a bitonic network
// kind: sort
// set: build
// launch: bitonic_block; grid 3; block 128
// args: out out float32[3,128] nan; in x float32[3,128] uniform
// launch: bitonic_block; grid 1024; block 256
// args: out out float32[1024,256] nan; in x float32[1024,256] uniform
// launch: bitonic_block; grid 8192; block 1024
// args: out out float32[8192,1024] nan; in x float32[8192,1024] uniform
// launch: bitonic_block; grid 65536; block 256
// args: out out float32[65536,256] nan; in x float32[65536,256] uniform
// expect: out = np.sort(x, 1)
extern "C" __global__ void bitonic_block(float* out, const float* x) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int size = 2; size <= blockDim.x; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            int other = t ^ step;
            if (other > t) {
                float a = s[t], b = s[other];
                if ((a > b) == ((t & size) == 0)) s[t] = b, s[other] = a;
            }
            __syncthreads();
        }
    out[blockIdx.x * blockDim.x + t] = s[t];
}
