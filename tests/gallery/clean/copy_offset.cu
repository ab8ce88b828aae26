// copy_offset: a copy that starts beside a sector's start: five sectors a request
// launch: copy; grid 2; block 128
// args: out out float32[300] 0; in in float32[300] uniform; offset int32 1
// launch: copy; grid 2; block 128
// args: out out float32[300] 0; in in float32[300] uniform; offset int32 8
extern "C" __global__ void copy(float* out, const float* in, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + offset;
    out[i] = in[i];
}
