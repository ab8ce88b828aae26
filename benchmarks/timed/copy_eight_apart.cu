// copy_eight_apart: a copy, eight elements per thread, a block apart: all loads come before the stores
// kind: copy
// set: build
// launch: copy_eight_apart; grid 3; block 128
// args: out out float32[3000] nan; in x float32[3000] uniform; n int32 3000
// launch: copy_eight_apart; grid 4096; block 128
// args: out out float32[4194304] nan; in x float32[4194304] uniform; n int32 4194304
// launch: copy_eight_apart; grid 24576; block 128
// args: out out float32[25165824] nan; in x float32[25165824] uniform; n int32 25165824
// launch: copy_eight_apart; grid 131072; block 128
// args: out out float32[134217728] nan; in x float32[134217728] uniform; n int32 134217728
// expect: out = x
extern "C" __global__ void copy_eight_apart(float* out, const float* x, int n) {
    int first = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float part[8];
    #pragma unroll
    for (int j = 0; j < 8; j++) part[j] = first + j * blockDim.x < n ? x[first + j * blockDim.x] : 0;
    #pragma unroll
    for (int j = 0; j < 8; j++)
        if (first + j * blockDim.x < n) out[first + j * blockDim.x] = part[j];
}
