// many_barriers: a rotation through shared memory with two barriers per round
// kind: barriers
// set: build
// launch: many_barriers; grid 2; block 64
// args: out out float32[2,64] nan; in x float32[2,64] uniform; rounds int32 3
// launch: many_barriers; grid 132; block 1024
// args: out out float32[132,1024] nan; in x float32[132,1024] uniform; rounds int32 500
// launch: many_barriers; grid 1056; block 256
// args: out out float32[1056,256] nan; in x float32[1056,256] uniform; rounds int32 500
// launch: many_barriers; grid 4224; block 64
// args: out out float32[4224,64] nan; in x float32[4224,64] uniform; rounds int32 500
// launch: many_barriers; grid 66; block 128
// args: out out float32[66,128] nan; in x float32[66,128] uniform; rounds int32 2000
// expect: out = np.roll(x, -3, 1)
extern "C" __global__ void many_barriers(float* out, const float* x, int rounds) {
    __shared__ float s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = x[i];
    __syncthreads();
    for (int j = 0; j < rounds; j++) {
        float v = s[(t + 1) % blockDim.x];
        __syncthreads();
        s[t] = v;
        __syncthreads();
    }
    out[i] = s[t];
}
