// bank_stride: 32 lanes read and write words a stride apart
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 1
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 2
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 4
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 8
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 16
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 32
// launch: stride; grid 1; block 32
// args: out out int32[32] -1; stride int32 33
// expect: out = 3 * np.arange(31, -1, -1)
extern "C" __global__ void stride(int* out, int stride) {
    __shared__ int s[32 * 33];
    int t = threadIdx.x;
    s[t * stride] = 3 * t;
    __syncthreads();
    out[t] = s[(31 - t) * stride];
}
