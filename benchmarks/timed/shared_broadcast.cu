// shared_broadcast: all lanes read the same word of shared memory
// kind: shared memory
// set: held out
// launch: shared_broadcast; grid 2; block 256
// args: out out float32[2,256] nan; in x float32[2,256] uniform; rounds int32 2
// launch: shared_broadcast; grid 1056; block 256
// args: out out float32[1056,256] nan; in x float32[1056,256] uniform; rounds int32 1024
// launch: shared_broadcast; grid 8448; block 256
// args: out out float32[8448,256] nan; in x float32[8448,256] uniform; rounds int32 512
// launch: shared_broadcast; grid 66; block 256
// args: out out float32[66,256] nan; in x float32[66,256] uniform; rounds int32 4096
// expect: out = close(wide(x) / 4 + x[:, :1] / 2 + x[:, 1:2], 5, 3)
extern "C" __global__ void shared_broadcast(float* out, const float* x, int rounds) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    float sum = s[t];
    for (int j = 0; j < rounds; j++) sum = sum * 0.5f + s[j % 256];
    out[blockIdx.x * 256 + t] = sum;
}
