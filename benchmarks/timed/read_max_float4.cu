// read_max_float4: reads only: the largest of 16 float4 per thread, one result per warp
// kind: read
// set: held out
// launch: read_max_float4; grid 2; block 64
// args: out out float32[4] nan; in x float32[8192] uniform
// launch: read_max_float4; grid 256; block 128
// args: out out float32[1024] nan; in x float32[2097152] uniform
// launch: read_max_float4; grid 4096; block 256
// args: out out float32[32768] nan; in x float32[67108864] uniform
// launch: read_max_float4; grid 16384; block 256
// args: out out float32[131072] nan; in x float32[268435456] uniform
// expect: out = x.reshape(2, 16, 2, 128).max((1, 3)).ravel()
extern "C" __global__ void read_max_float4(float* out, const float4* x) {
    int i = blockIdx.x * blockDim.x * 16 + threadIdx.x;
    float most = -1e30f;
    #pragma unroll 4
    for (int j = 0; j < 16; j++) {
        float4 v = x[i + j * blockDim.x];
        most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = most;
}
