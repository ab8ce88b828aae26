// copy_strided: reads every stride-th element
// launch: copy; grid 1; block 64
// args: out out float32[64] nan; in in float32[2048] uniform; stride int32 2
// launch: copy; grid 1; block 64
// args: out out float32[64] nan; in in float32[2048] uniform; stride int32 3
// launch: copy; grid 1; block 64
// args: out out float32[64] nan; in in float32[2048] uniform; stride int32 32
extern "C" __global__ void copy(float* out, const float* in, int stride) {
    out[threadIdx.x] = in[threadIdx.x * stride];
}
