// shared_float4: 16 bytes per lane from shared memory
// kind: shared memory
// set: build
// launch: shared_float4; grid 2; block 256
// args: out out float32[2,256] nan; in x float32[2,256,4] uniform; rounds int32 2
// launch: shared_float4; grid 1056; block 256
// args: out out float32[1056,256] nan; in x float32[1056,256,4] uniform; rounds int32 256
// launch: shared_float4; grid 4224; block 256
// args: out out float32[4224,256] nan; in x float32[4224,256,4] uniform; rounds int32 512
// launch: shared_float4; grid 132; block 256
// args: out out float32[132,256] nan; in x float32[132,256,4] uniform; rounds int32 1024
// expect: out = close((wide(x) + np.roll(x, -1, 1)).sum(2), 10, 8)
extern "C" __global__ void shared_float4(float* out, const float4* x, int rounds) {
    __shared__ float4 s[512];
    int t = threadIdx.x;
    s[t] = s[t + 256] = x[blockIdx.x * 256 + t];
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int j = 0; j < rounds; j++) {
        float4 v = s[t + j % 256];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    out[blockIdx.x * 256 + t] = sum.x + sum.y + sum.z + sum.w;
}
